"""Semantics of the language's constructs: views compared with NumPy, values with the traced IR."""

# ruff: noqa: ARG001
# Reason: bodies share one signature.

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from argus.core.index import Const
from argus.core.index_text import show
from argus.core.ir import (
    Alloc,
    Assert,
    Assume,
    Copy,
    If,
    Kernel,
    Map,
    Op,
    Policy,
    Relation,
    Staged,
)
from argus.core.walk import IntArray, evaluate
from argus.language import (
    Int,
    Swizzle,
    Tensor,
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_relation,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read_b64,
    ds_read_b128,
    eq,
    exp2,
    f32,
    fence,
    global_load,
    interleave,
    lds,
    load,
    loop,
    maximum,
    minimum,
    otherwise,
    priority,
    registers,
    reset,
    sched_barrier,
    shared,
    sync,
    tag,
    when,
    where,
    zeros,
)
from tests.core.dsl.tracing import BY, fault_of, template, trace

Change = Callable[[Tensor], Tensor]
Truth = Callable[[IntArray], IntArray]

VIEWS: dict[str, tuple[Change, Truth]] = {
    "tile": (lambda x: x.tile((2, 4), (1, 2)), lambda x: x[2:4, 8:12]),
    "part": (lambda x: x.part(1, 2, of=4), lambda x: x[:, 8:12]),
    "row": (lambda x: x[3], lambda x: x[3]),
    "column": (lambda x: x[:, 5], lambda x: x[:, 5]),
    "transposed": (lambda x: x.T, lambda x: x.T),
    "reshaped": (lambda x: x.reshape(4, 3, 8), lambda x: x.reshape(4, 3, 8)),
    "gathered": (lambda x: x.gather((5,), lambda i: (i, 2 * i + 1)), lambda x: x[np.arange(5), 2 * np.arange(5) + 1]),
    "chained": (lambda x: x.T.reshape(4, 24).tile((2, 6), (1, 1)).T[3], lambda x: x.T.reshape(4, 24)[2:4, 6:12].T[3]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_match_numpy(name: str) -> None:
    change, truth = VIEWS[name]
    numbers = np.arange(6 * 16, dtype=np.int64).reshape(6, 16)
    seen: list[Tensor] = []

    def body(A: Tensor, C: Tensor) -> None:
        seen.append(change(shared(bf16, (6, 16))))

    trace(body)
    view = seen[0].view
    shape = tuple(extent.value for extent in view.shape if isinstance(extent, Const))
    coords = list(np.indices(shape, dtype=np.int64))
    at = tuple(np.broadcast_to(cast(IntArray, evaluate(index, {}, coords)), shape) for index in view.at)
    assert np.array_equal(numbers[at], truth(numbers))


def kinds(made: Kernel) -> list[str]:
    return [type(stmt).__name__ for stmt in made.body]


def test_statements_in_order() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        box = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3), banks=2)
        value = load(A.tile((64, 32), (0, 0)), BY, edge=0)
        copy(value, box)
        lds.wait(0)
        fence("device")
        sync()
        with priority(2):
            sched_barrier()
        interleave(2, lds_read=1, mfma=4)
        reset(box)

    made = trace(body)
    assert kinds(made) == [
        *("Alloc", "Alloc", "Copy", "Copy", "Wait", "Fence", "Sync", *["Policy"] * 7, "Reset"),
    ]
    assert [stmt.args for stmt in made.body if isinstance(stmt, Policy)] == [(2,), (0,), (0,), *[(256, 1), (8, 4)] * 2]
    box = next(stmt.buffer for stmt in made.body if isinstance(stmt, Alloc))
    assert (box.name, box.banks) == ("box", 2)
    assert isinstance(box.layout, Staged)
    assert str(box.layout.swizzle) == "Sw<2,3,3>"


def test_values_are_eager_and_registers_are_assigned() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        x = zeros(f32, BY)
        row, column = x.index
        y = where(row < column, x * 2.0, exp2(-x))
        x[:] = maximum(y, 1.0)
        x -= minimum(1, y)
        x /= column + 1
        x *= (3 + y).to(f32)

    maps = [stmt for stmt in trace(body).body if isinstance(stmt, Map)]
    kinds_of_elements = [stmt.elem.name if isinstance(stmt.elem, Op) else type(stmt.elem).__name__ for stmt in maps]
    assert kinds_of_elements == [
        *("Lit", "mul", "neg", "exp2", "Where", "max", "Get", "min", "sub", "div", "add", "Cast", "mul"),
    ]
    in_place = [index for index, stmt in enumerate(maps) if stmt.target.buffer.name == "x"]
    assert in_place == [0, 6, 8, 9, 12]


def test_integers_are_numbers_in_arithmetic_of_tiles() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        x = zeros(f32, BY)
        for k in loop(4):
            x += k + x
            x += k * x - x * k
            x += k - x + x / (k + 1) + (k + 1) / x

    assert kinds(trace(body)) == ["Alloc", "Map", "For"]


def test_integers_of_python_and_of_the_kernel_mix() -> None:
    seen: list[Int] = []

    def body(A: Tensor, C: Tensor) -> None:
        m, k = A.shape
        seen.extend([2 * m - k, 7 - m, (m << 2) + (k >> 1), 64 // (m + 1), 64 % (m + 1), (m & 7) | (k ^ 3), 1 << k])
        seen.extend([ceil_div(m, 32), maximum(m, k), minimum(m, 3), -m, +k, 3 & m, 5 | k, 100 >> m])

    sizes = dict(zip(trace(body).sizes, (13, 5, 0), strict=True))
    assert [evaluate(value.node, sizes) for value in seen] == [
        *(21, -6, 54, 4, 8, 7, 32, 1, 13, 3, -13, 5, 1, 5, 0),
    ]


def test_conditions_combine() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        m, k = A.shape
        with when((m > 3) & ~(k == 2) | (False | eq(m, k))):
            sync()
        with otherwise():
            sync()
        with when(True & (m != 2)):
            sync()
        assume(k >= 1, True)

    first, second, *assumed = trace(body).body
    assert isinstance(first, If)
    assert isinstance(second, If)
    assert show(second.cond) == "M != 2"
    assert len(assumed) == 2
    assert isinstance(assumed[0], Assume)


def test_claims_are_recorded() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(C, lambda m, n: dict(m=m, n=n // 2))
        x = load(A.tile((64, 32), (0, 0)), BY, edge=0)
        assert_equal(x.tag.m, x.tag.k)
        assert_distinct(x.tag.m, x.tag.k)
        assert_covers(x.tag.k, 0, A.shape[1], where=A.shape[1] > 2)
        assert_relation(x.tag.m, x.tag.k, lambda m, k: m <= k)

    claims = [stmt.claim for stmt in trace(body).body if isinstance(stmt, Assert)]
    assert [type(claim).__name__ for claim in claims] == ["Equal", "Distinct", "Covers", "Relation"]
    assert isinstance(claims[-1], Relation)
    assert [symbol.name for symbol, _ in claims[-1].names] == ["x.m", "x.k"]


def test_the_widest_instruction_that_fits_is_chosen() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        box = shared(bf16, (64, 32))
        into = registers(bf16, BY)
        for view, via in ((A, None), (A.T, None), (A, global_load)):
            copy(view.tile((64, 32), (0, 0)), into, via=via, edge=0)
        copy(box, into)
        copy(box, into, via=(ds_read_b64, ds_read_b128))
        copy(box, into, via=ds_read_b64)

    chosen = [str(stmt.atom) for stmt in trace(body).body if isinstance(stmt, Copy)]
    assert chosen == [
        *("global_load_b128", "global_load_b16", "global_load_b128", "ds_read_b128", "ds_read_b128", "ds_read_b64"),
    ]


def test_an_address_that_divides_by_a_block_is_copied_element_by_element() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        (k,) = block_id((4,))
        load(A.gather((64, 32), lambda i, j: (i // k, j)), BY, edge=0)

    (copied,) = [stmt for stmt in trace(body).body if isinstance(stmt, Copy)]
    assert str(copied.atom) == "global_load_b16"


def test_the_grid_declares_block_symbols() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        block_id((ceil_div(A.shape[0], 64), 3))

    made = trace(body)
    assert [show(count) for count in made.grid] == ["(M + 63) // 64", "3"]
    assert [(symbol.low, symbol.high) for symbol in made.blocks] == [(0, (1 << 24) - 1), (0, 2)]


def test_deep_arithmetic_needs_no_recursion() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        m, k = A.shape
        total, mixed = m, k
        for step in range(2000):
            total = total + m * step
            mixed = (mixed // 3 + m) % (k + 7) ^ step
        with when(total < mixed):
            sync()
        A.tile((64, 32), (total, mixed))
        tag(A, lambda i, j: dict(i=i + mixed, j=j * total))

    assert kinds(trace(body)) == ["If", "Tag"]


def test_deep_arithmetic_is_reported_shortly() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        mixed = A.shape[0]
        for step in range(1, 60):
            mixed = mixed // step + mixed % (step + 1)
        if mixed > 3:
            sync()

    assert len(fault_of(body).message) < 20_000


def test_the_span_has_the_call_stack() -> None:
    def inner() -> None:
        sync()

    def body(A: Tensor, C: Tensor) -> None:
        inner()

    (stmt,) = template(body).trace().body
    assert [frame.function for frame in stmt.span.frames] == ["inner", "body", "traced"]


def test_a_comprehension_is_no_function_of_its_own() -> None:
    """Since CPython 3.12 it has no frame, and reports are the same on all versions."""

    def body(A: Tensor, C: Tensor) -> None:
        assert [[sync() for _ in range(1)] for _ in range(1)]

    (stmt,) = template(body).trace().body
    assert [frame.function for frame in stmt.span.frames] == ["body", "traced"]
    assert stmt.span.frame is not None
    assert stmt.span.frame.column == 17
