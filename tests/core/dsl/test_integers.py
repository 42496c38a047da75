"""Integers from memory as index terms, promises about them, and relations between tiles of several shapes."""

# ruff: noqa: UP037, ARG001, ARG005, PLW0108
# Reason: names of sizes; bodies share one signature, whatever they use of it.

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from argus.core.algebra import coord, read, sym
from argus.core.check import check
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Assert, Copy, If, Kernel, Relation, Tag, walk
from argus.core.ir.pretty import pretty
from argus.core.verdict import Unknown
from argus.emit.hip.text import hip_text
from argus.language import (
    Tensor,
    assert_relation,
    assume,
    bf16,
    block_id,
    copy,
    eq,
    f32,
    gfx942,
    i32,
    kernel,
    load,
    mfma,
    mfma_f32_32x32x8_bf16,
    promise,
    registers,
    scalar,
    shared,
    spread,
    tag,
    vmem,
    when,
    zeros,
)
from argus.verifier.api import interpret
from argus.verifier.kernel import verify

BY = spread((64, 32), threads=256, vector=4)
MM = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32)


@kernel(target=gfx942, threads=256)
def chosen(X: Tensor["G M N", f32], which: Tensor["B", i32], Y: Tensor["B M N", f32]) -> None:
    """Y[b] = X[which[b]], unchanged where that is negative."""
    promise(which, lambda e: (e == -1) | ((e >= 0) & (e < X.shape[0])))
    assume(X.shape[2] % 4 == 0)
    tag(X, lambda g, m, n: dict(g=g, m=m, n=n))
    tag(Y, lambda b, m, n: dict(g=which[b], m=m, n=n))
    (b,) = block_id((which.shape[0],))
    x = scalar(which[b])
    with when(x >= 0):
        held = load(X[x].tile((64, 32), (0, 0)), BY, edge=0)
        vmem.wait(0)
        copy(held, Y[b].tile((64, 32), (0, 0)), edge=0)


def test_an_integer_from_memory_is_a_term() -> None:
    made = chosen.trace()
    assert check(made) == ()
    block = sym(made.blocks[0])
    term = read("which", (block,))
    branch = next(stmt for stmt in walk(made.body) if isinstance(stmt, If))
    source = next(stmt.source for stmt in walk(made.body) if isinstance(stmt, Copy))
    assert source.at[0] is term
    assert "which[block_0] >= 0" in pretty(made)
    assert next(stmt for stmt in walk((branch,)) if isinstance(stmt, Copy))
    named = [dict(stmt.names) for stmt in walk(made.body) if isinstance(stmt, Tag)]
    assert named[1]["g"] is read("which", (coord(0),))


def test_a_promise_holds_for_every_element() -> None:
    made = chosen.trace()
    which = next(buffer for buffer in made.parameters if buffer.name == "which")
    line = next(line for line in pretty(made).splitlines() if "promise" in line)
    assert all(part in line for part in ("which[i0] + 1 == 0", "which[i0] < G", "which[i0] >= 0", " or "))
    assert which.promise is not chosen.trace().parameters[0].promise


@pytest.mark.nightly
def test_a_copy_indexed_by_an_integer_from_memory_is_emitted_and_not_proved_without_a_claim() -> None:
    made = chosen.trace()
    report = verify(made, solver="z3")
    assert isinstance(report.verdict, Unknown)  # nothing is claimed of Y
    assert "64 bits" in report.verdict.reason
    assert "if (which_[(long)block_0_] >= 0) {" in hip_text(made)


def test_an_integer_from_memory_indexes_a_copy() -> None:
    held = np.arange(2 * 64 * 32, dtype=np.float32).reshape(2, 64, 32)
    after = interpret(chosen.trace(), held, np.array([1, -1, 0], np.int32), np.empty((3, 64, 32), np.float32))["Y"]
    np.testing.assert_array_equal(after[[0, 2]], held[[1, 0]])
    assert np.isnan(after[1]).all()  # what no thread stores is not a number


Body = Callable[[Tensor, Tensor], object]


def traced(body: Body) -> Kernel:
    @kernel(target=gfx942, threads=256)
    def made(A: Tensor["M N", bf16], which: Tensor["B C", i32]) -> None:
        body(A, which)

    return made.trace()


def refused(body: Body) -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        traced(body)
    return caught.value.diagnostic


def test_ill_formed_integers_from_memory_are_refused() -> None:
    assert refused(lambda a, w: scalar(w[0])).code == "E106"
    assert refused(lambda a, w: scalar(a[0, 0])).code == "E106"
    assert refused(lambda a, w: scalar(shared(i32, (4,))[0])).code == "E501"
    assert refused(lambda a, w: scalar(3)).code == "E106"  # pyright: ignore[reportArgumentType]  # the fault


def test_ill_formed_promises_are_refused() -> None:
    assert refused(lambda a, w: promise(a, lambda e: e >= 0)).code == "E106"
    assert refused(lambda a, w: promise(w[0], lambda e: e >= 0)).code == "E106"

    def late(A: Tensor, which: Tensor) -> None:
        tag(which, lambda b, c: dict(b=b))
        promise(which, lambda e: e >= 0)

    assert "comes too late" in refused(late).message

    def inside(A: Tensor, which: Tensor) -> None:
        with when(A.shape[0] > 1):
            promise(which, lambda e: e >= 0)

    assert refused(inside).code == "E106"


def test_promises_are_conjoined() -> None:
    def twice(A: Tensor, which: Tensor) -> None:
        promise(which, lambda e: e >= 0)
        promise(which, lambda e: e < A.shape[0])

    (_, which) = traced(twice).parameters
    assert "promise (which[i0, i1] >= 0) and (which[i0, i1] < M)" in pretty(traced(twice))
    assert which.name == "which"


def test_a_tensor_read_as_a_constant_is_not_written() -> None:
    def body(A: Tensor, which: Tensor) -> None:
        with when(scalar(which[0, 0]) > 0):
            copy(registers(i32, BY), which.tile((64, 32), (0, 0)), edge=0)

    found = refused(body)
    assert (found.code, "the kernel writes `which`" in found.message) == ("E220", True)


def test_a_view_is_indexed_by_its_own_coordinates() -> None:
    """An element's coordinate may be used in its tag, not in a copy."""

    def body(A: Tensor, which: Tensor) -> None:
        kept: list[Tensor] = []

        def record(m: object, n: object) -> dict[str, int]:
            kept.append(which[m, n])  # pyright: ignore[reportArgumentType]  # integers of the kernel
            return dict(m=0)

        tag(A, record)
        load(kept[0], MM.C.axis())

    found = refused(body)
    assert (found.code, "coordinate of another" in found.message) == ("E201", True), found


# -- relations between tiles ---------------------------------------------------------------------------------


def test_tiles_of_several_shapes_are_compared_element_by_element() -> None:
    def body(A: Tensor, which: Tensor) -> None:
        tile, row, one = zeros(f32, MM.C), zeros(f32, MM.C.axis(0)), zeros(f32, MM.C.axis())
        assert_relation(row, tile, one, lambda r, t, o: eq(r.kb, t.k // 8) & (o.n <= t.n))

    (claim,) = [stmt.claim for stmt in walk(traced(body).body) if isinstance(stmt, Assert)]
    assert isinstance(claim, Relation)
    views = {symbol.name: of.view for symbol, of in claim.names}
    assert sorted(views) == ["one.n", "row.kb", "tile.k", "tile.n"] or len(views) == 4
    assert {len(view.shape) for view in views.values()} == {2}
    projected = next(view for name, view in views.items() if name.endswith(".kb"))
    assert projected.at == (coord(0),)
    number = next(of.view for _, of in claim.names if of.name == "n" and of.view.at == ())
    assert number.shape == projected.shape


def test_components_of_two_views_of_one_tile_are_two() -> None:
    def body(A: Tensor, which: Tensor) -> None:
        tile = zeros(f32, MM.C)
        assert_relation(tile.T.tag.k, tile.tag.k, lambda x, y: x <= y)

    (claim,) = [stmt.claim for stmt in walk(traced(body).body) if isinstance(stmt, Assert)]
    assert isinstance(claim, Relation)
    assert len({symbol for symbol, _ in claim.names}) == 2


def test_relations_without_components_are_refused() -> None:
    def tiles(A: Tensor, which: Tensor) -> None:
        assert_relation(zeros(f32, MM.C), zeros(f32, BY), lambda x, y: eq(x.k, y.k))

    assert refused(tiles).code == "E205"
    assert refused(lambda a, w: assert_relation(a, lambda x: eq(1, 1))).code == "E106"
    assert refused(lambda a, w: assert_relation(a, w)).code == "E106"
    assert refused(lambda a, w: assert_relation(cast(Tensor, 3), lambda x: eq(x.k, 1))).code == "E106"
