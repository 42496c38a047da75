"""Row fragments: reductions, scans, shifts, masks, and broadcasting of operands by coordinates."""

# ruff: noqa: ARG001, ARG005, B015, PLR0124
# Reason: bodies share one signature and have no use for what a line gives.
# pyright: reportArgumentType=false, reportUnusedExpression=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

from math import inf

from argus.core.ir import Copy, Fold, Stmt, walk
from argus.core.ir.pretty import pretty
from argus.core.layout import TV
from argus.language import (
    Mask,
    Tensor,
    add,
    all_to_each,
    copy,
    exp,
    f32,
    first_lane,
    last_lane,
    load,
    log,
    maximum,
    minimum,
    mul,
    ones,
    registers,
    replicated,
    rsqrt,
    runs,
    shared,
    spread,
    sqrt,
    thread,
    warp,
    wave,
    where,
    zeros,
)
from tests.core.dsl.tracing import MM, Body, Fault, Faults, trace

faulty = Faults()
ROW = spread((1024,), threads=256, vector=4)


def lines(body: Body) -> list[str]:
    """The assignments and copies in a body."""
    text = pretty(trace(body)).splitlines()
    return [line.strip() for line in text if not line.strip().startswith(("alloc", "tensor", "block", "kernel"))]


def of(body: Body, kind: type[Stmt]) -> list[Stmt]:
    return [stmt for stmt in walk(trace(body).body) if isinstance(stmt, kind)]


def test_a_row_fragment_is_broadcast_over_its_tile() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = zeros(f32, MM.C)
        rows, columns, number = (registers(f32, tv) for tv in (MM.C.axis(0), MM.C.axis(1), MM.C.axis()))
        tile[:] = tile * rows
        tile += columns
        tile *= number
        tile -= rows * number

    product, *updates = [line.partition(" = ") for line in lines(body)][1:]
    assert product[2].startswith("mul(tile, ")
    assert [target for target, _, _ in updates if target == "tile"] == ["tile"] * 4
    assert sum(text.endswith("(i1))") for _, _, text in updates) == 1


def test_a_partial_sum_is_broadcast_by_thread() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        v = zeros(f32, ROW)
        total = zeros(f32, ROW.partial(0))
        v *= total

    assert lines(body)[-1] == "v = mul(v, total(i0 // 4))"


def test_reductions_stay_within_the_given_level() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        v = zeros(f32, ROW)
        v.sum(0, within=thread)
        v.fold(0, add, within=warp)
        tile = zeros(f32, MM.C)
        tile.max(0, within=thread)
        tile.fold(1, minimum, within=warp)
        tile.fold(1, mul, within=thread)

    folds = [stmt for stmt in of(body, Fold) if isinstance(stmt, Fold)]
    assert [(fold.op, fold.within, fold.axis) for fold in folds] == [
        ("add", "thread", 0),
        ("add", "warp", 0),
        ("max", "thread", 0),
        ("min", "warp", 1),
        ("mul", "thread", 1),
    ]
    assert [shape_of(fold) for fold in folds] == [(256,), (4,), (4, 64), (64, 2), (64, 64)]


def shape_of(fold: Fold) -> tuple[int, ...]:
    layout = fold.target.buffer.layout
    assert isinstance(layout, TV)
    return layout.tile


def test_a_reduction_of_a_row_in_one_thread_needs_no_shuffle() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        box = shared(f32, (4,))
        heads = load(box, all_to_each(256))
        heads.sum(0)
        heads.min(0)

    assert [(fold.op, fold.within) for fold in of(body, Fold) if isinstance(fold, Fold)] == [
        ("add", "thread"),
        ("min", "thread"),
    ]


def test_masked_elements_of_a_reduction_are_neutral() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        v = zeros(f32, ROW)
        (e,) = v.index
        v.sum(0, within=thread, where=e < 5)
        v.max(0, within=thread, where=e < 5)
        v.fold(0, mul, within=thread, where=v > 0.0)
        v.min(0, within=thread, where=(e < 5) & ~(v <= v))

    found = [line for line in lines(body) if "where(" in line]
    assert [line.rpartition(", ")[2] for line in found] == ["0)", "-inf)", "1)", "inf)"]
    assert "0 < v" in found[2]
    assert "not(v <= v)" in found[3]


def test_a_prefix_a_last_and_a_shift() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        v = zeros(f32, runs((1024,), threads=256, vector=4))
        run = v.scan(0, add, within=thread)
        lane = run.last(0).scan(0, maximum, within=warp)
        lane.last(0)
        lane.shift(0, 2, fill=-inf)

    folds = [(fold.op, fold.keep, fold.within) for fold in of(body, Fold) if isinstance(fold, Fold)]
    assert folds == [
        ("add", "prefix", "thread"),
        ("last", "total", "thread"),
        ("max", "prefix", "warp"),
        ("last", "total", "warp"),
    ]
    (moved,) = [stmt for stmt in of(body, Copy) if isinstance(stmt, Copy)]
    assert moved.edge == -inf
    assert "lane[i0 - 2 : 256] where i0 % 64 >= 2 -> " in " ".join(lines(body))


def test_one_lane_writes_what_all_lanes_hold() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        v, box = zeros(f32, ROW), shared(f32, (4,))
        copy(v.max(0, within=warp), box, by=first_lane)
        copy(v.max(0, within=warp), box, by=last_lane)

    text = " ".join(lines(body))
    assert "box where thread % 64 == 0 by" in text
    assert "box where thread % 64 == 63 by" in text


def test_masks_select_elementwise() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        s = zeros(f32, MM.C)
        row, column = s.index
        top = s.max(0, within=thread)
        where((column <= row) | (s == -inf), s, -inf)
        where(s == top, s, row)

    found = [line.partition(" = ")[2] for line in lines(body)[2:]]
    assert found[0] == "where(any(s == -inf, i1 <= i0), s, -inf)"
    assert found[1].startswith("where(s == ")
    assert found[1].endswith(", s, num(i0))")


def test_a_mask_without_values_has_the_layout_of_its_tiles() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        s = zeros(f32, MM.C)
        row, _ = s.index
        where((s < 1.0) & (row < 3) & True, 1.0, 0.0)
        where((row < 3) | (s >= 2.0), s, 0.0)
        where((s != 0.0) | (s > s), s, wave + 1)

    found = [line.partition(" = ")[2] for line in lines(body)[1:]]
    assert found == [
        "where(all(all(s < 1, i0 <= 2), true), 1, 0)",
        "where(any(2 <= s, i0 <= 2), s, 0)",
        "where(any(not(s == 0), s < s), s, num((thread // 64) + 1))",
    ]


def test_functions_of_elements() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        one = ones(f32, ROW)
        for function in (exp, log, sqrt, rsqrt):
            function(one)
        add(one, one)

    found = [line.partition(" = ")[2] for line in lines(body)]
    assert found == ["1", "exp(one)", "log(one)", "sqrt(one)", "rsqrt(one)", "add(one, one)"]


def test_a_transposed_tile_reads_the_same_registers() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        s = registers(f32, MM.C)
        s[:] = 0.0
        turned = s.T
        high = registers(f32, MM.C.axis(1))
        high[:] = 0.0
        u = turned * high
        s[:] = u.T

    found = lines(body)
    assert found[-2].endswith("= mul(s[i1, i0 : 64 x 64], high)")
    assert found[-1].startswith("s = ")
    assert "[i1, i0 : 64 x 64]" in found[-1]


def test_a_register_is_compared_by_identity_where_python_hashes_it() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        one = zeros(f32, ROW)
        assert {one: 1}[one] == 1
        assert isinstance(one == one, Mask)

    trace(body)


# -- faults --------------------------------------------------------------------------------------------------


@faulty("E205", "is held by several warps")
def all_of_a_row_over_warps(A: Tensor, C: Tensor) -> None:
    zeros(f32, ROW).sum(0)  # here


@faulty("E205", "`add` combines elements that different threads hold")
def a_row_and_a_column(A: Tensor, C: Tensor) -> None:
    zeros(f32, MM.C.axis(0)) + zeros(f32, MM.C.axis(1))  # here


@faulty("E205", "`assignment` combines")
def a_tile_into_a_row(A: Tensor, C: Tensor) -> None:
    rows = registers(f32, MM.C.axis(0))
    rows[:] = zeros(f32, MM.C)  # here


@faulty("E205", "`mul` combines")
def a_partial_sum_of_another_tile(A: Tensor, C: Tensor) -> None:
    v = zeros(f32, runs((1024,), threads=256, vector=4))
    v *= zeros(f32, spread((2048,), threads=256, vector=4).partial(0))  # here


@faulty("E205", "comparison")
def a_comparison_of_elements_held_apart(A: Tensor, C: Tensor) -> None:
    zeros(f32, ROW) < zeros(f32, runs((1024,), threads=256, vector=4).axis())
    zeros(f32, MM.C) < zeros(f32, spread((64, 64), threads=256, vector=4))  # here


@faulty("E106", "no axis 2")
def an_axis_that_is_none(A: Tensor, C: Tensor) -> None:
    zeros(f32, MM.C).sum(2)  # here


@faulty("E106", "no fold by")
def a_fold_by_no_operation(A: Tensor, C: Tensor) -> None:
    zeros(f32, MM.C).fold(0, lambda a, b: a, within=thread)  # here


@faulty("E106", "`within` is")
def a_level_that_is_none(A: Tensor, C: Tensor) -> None:
    zeros(f32, MM.C).sum(0, within="block")  # here


@faulty("E205", "one element each, in order")
def a_shift_of_several_elements_a_lane(A: Tensor, C: Tensor) -> None:
    zeros(f32, ROW).shift(0, 1, fill=0.0)  # here


@faulty("E101", "no truth value")
def a_comparison_in_a_python_if(A: Tensor, C: Tensor) -> None:
    if zeros(f32, ROW) == 0.0:  # here
        pass


@faulty("E106", "`i1` is not a coordinate of a tile of (64,)")
def a_coordinate_of_another_tile(A: Tensor, C: Tensor) -> None:
    s = zeros(f32, MM.C)
    _, column = s.index
    where(column < 3, zeros(f32, MM.C.axis(0)), 0.0)  # here


@faulty("E106", "is compared with")
def a_comparison_with_text(A: Tensor, C: Tensor) -> None:
    zeros(f32, ROW) == "many"  # here


@faulty("E106", "one lane writes a part")
def one_lane_into_a_part(A: Tensor, C: Tensor) -> None:
    box = shared(f32, (8,))
    copy(zeros(f32, ROW).max(0, within=warp), box.tile((4,), (1,)), by=first_lane)  # here


@faulty("E106", "registers to memory")
def one_lane_reads(A: Tensor, C: Tensor) -> None:
    copy(shared(f32, (4,)), registers(f32, ROW.partial(0, 64)), by=first_lane)  # here


@faulty("E109", "numbers groups of threads")
def a_part_of_partial_sums(A: Tensor, C: Tensor) -> None:
    zeros(f32, MM.C.partial(0)).tile((2, 64), (0, 0))  # here


@faulty("E109", "not runs of multiples")
def runs_that_do_not_divide(A: Tensor, C: Tensor) -> None:
    runs((1000,), threads=256, vector=4)  # here


@faulty("E109", "do not divide 1000")
def threads_that_do_not_divide(A: Tensor, C: Tensor) -> None:
    spread((1000,), threads=256, vector=4)  # here


@faulty("E209", "symbolic extent")
def all_of_a_tensor_to_each(A: Tensor, C: Tensor) -> None:
    load(A, all_to_each(256))  # here


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    fault.check()


def test_a_replicated_scalar() -> None:
    tv = replicated(256)
    assert (tv.tile, tv.threads.size(), tv.values.size()) == ((), 256, 1)
    assert tv == MM.C.axis()
