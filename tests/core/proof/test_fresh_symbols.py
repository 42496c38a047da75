"""Symbols that the analysis creates differ from the kernel's, also if a kernel from text uses their names."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import sym
from argus.core.index import Index, Symbol
from argus.core.ir import For, Kernel, walk
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.dataflow.timeline import timeline
from argus.core.proof.sync.roles import clusters
from argus.core.proof.sync.roles.context import fresh_block_symbol
from argus.core.serde import read, write
from argus.core.verdict import Proved, Refuted
from argus.language import (
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    kernel,
    load,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    tag,
    tma,
    warpgroup,
    wgmma,
)
from argus.verifier.kernel import verify


@kernel(target=sm_90a, threads=256, cluster=(2, 1))
def rows_by_another_axis(A: Tensor["M K", bf16], B: Tensor["16 K", bf16], C: Tensor["M 16", bf16]) -> None:
    """Wrong unless a block's number along the second axis is its rank: two blocks store each row, of different rows."""
    M, K = A.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, M <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    m, n = block_id((2 * ceil_div(M, 128), 2))
    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(ceil_div(K, 16)):
            with ring.fill() as slot:
                copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((16, 16), (0, k)), slot.b, via=tma, edge=0)
    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for k in loop(ceil_div(K, 16)):
            slot = ring.wait()
            mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 16), (m // 2 * 2 + n, 0)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


def renamed(made: Kernel, axis: int, name: str) -> Kernel:
    """The kernel as it comes back from rows of data, one of its blocks' coordinates under another name."""
    block = made.blocks[axis]
    other = evolve(block, name=name)
    names: dict[Symbol, Index] = {block: sym(other)}
    assert made.roles is not None
    roles = rewrite_stmt(made.roles, names)
    blocks = (*made.blocks[:axis], other, *made.blocks[axis + 1 :])
    body = {part: tuple(rewrite_stmt(s, names) for s in getattr(made, part)) for part in ("prologue", "epilogue")}
    (found,) = read(write([evolve(made, blocks=blocks, roles=roles, **body)]))
    assert isinstance(found, Kernel)
    return found


@pytest.mark.share(3)
def test_a_coordinate_named_rank_is_not_the_rank() -> None:
    made = renamed(rows_by_another_axis.trace(), 1, "rank")

    assert isinstance(verify(made, solver="z3").verdict, Refuted)


def test_one_symbol_for_both_would_be_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    def plainly(_: Kernel, wanted: str, high: int | None = None) -> Symbol:
        return Symbol(wanted, "block", 0, high)

    monkeypatch.setattr(clusters, "fresh_block_symbol", plainly)
    made = renamed(rows_by_another_axis.trace(), 1, "rank")

    assert isinstance(verify(made, solver="z3").verdict, Proved)


def test_a_fresh_name_is_unused() -> None:
    made = renamed(rows_by_another_axis.trace(), 1, "tile")

    assert fresh_block_symbol(made, "tile").name == "tile_"
    assert fresh_block_symbol(made, "rank", 1) == Symbol("rank", "block", 0, 1)


def test_copies_of_a_loop_have_fresh_names() -> None:
    """The inner loop's copies are called k_1 and k_2 where no other loop is."""

    @kernel(target=sm_90a, threads=128)
    def twice(X: Tensor["M 128", f32], Y: Tensor["M 128", f32]) -> None:
        by = spread((1, 128), threads=128, vector=1)
        for _ in loop(2):
            for k in loop(X.shape[0]):
                copy(load(X.tile((1, 128), (k, 0)), by, edge=0), Y.tile((1, 128), (k, 0)), edge=0)
        for k_1 in loop(X.shape[0]):
            copy(load(X.tile((1, 128), (k_1, 0)), by, edge=0), Y.tile((1, 128), (k_1, 0)), edge=0)

    made = twice.trace()
    own = {stmt.symbol.name for stmt in walk(made.body) if isinstance(stmt, For)}
    loops = [segment.loop.symbol.name for segment in timeline(made).segments if segment.loop is not None]

    assert "k_1" in own
    assert len(set(loops)) == len(loops) == 3
