"""Operands that do not fit: E106, E108, E109, E203 to E207, E209 to E211; every one at the user's line."""

# ruff: noqa: ARG001, ARG005, B015
# Reason: bodies share one signature and have no use for what a faulty line would give.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# pyright: reportUnusedExpression=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError
from argus.language import (
    Swizzle,
    Tensor,
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_relation,
    assert_written_once,
    assume,
    bf16,
    block_id,
    buffer_load,
    copy,
    ds_read_b128,
    exp2,
    f16,
    f32,
    fence,
    global_load,
    lds,
    load,
    loop,
    maximum,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    priority,
    registers,
    reset,
    shared,
    spread,
    sync,
    tag,
    vmem,
    when,
    where,
    zeros,
)
from tests.core.dsl.tracing import BY, MM, Fault, Faults

faulty = Faults()
OTHER = spread((64, 32), threads=256, vector=4)


# -- copies --------------------------------------------------------------------------------------------------


@faulty("E203", "a copy of shape (64, 16) into shape (64, 32)")
def shapes(A: Tensor, C: Tensor) -> None:
    copy(A.tile((64, 16), (0, 0)), registers(bf16, BY))  # here


@faulty("E203", "a copy of shape (M, K) into shape (64, 32)")
def symbolic_shape(A: Tensor, C: Tensor) -> None:
    load(A, BY)  # here


@faulty("E203", "by a layout of the tile (64, 32)")
def layout_of_another_tile(A: Tensor, C: Tensor) -> None:
    copy(A.tile((32, 32), (0, 0)), shared(bf16, (32, 32)), by=BY)  # here


@faulty("E209", "the symbolic extent M")
def copy_of_symbolic_extent(A: Tensor, C: Tensor) -> None:
    copy(A, A, by=BY)  # here


@faulty("E204", "a copy from bf16 to f32")
def element_types(A: Tensor, C: Tensor) -> None:
    copy(A.tile((64, 32), (0, 0)), registers(f32, BY))  # here


@faulty("E205", "held by different threads")
def movers(A: Tensor, C: Tensor) -> None:
    copy(A.tile((64, 32), (0, 0)), registers(bf16, BY), by=OTHER)  # here


@faulty("E106", "says nowhere who moves what")
def no_movers(A: Tensor, C: Tensor) -> None:
    copy(A.tile((64, 32), (0, 0)), shared(bf16, (64, 32)))  # here


@faulty("E108", "from global to shared")
def no_instruction(A: Tensor, C: Tensor) -> None:
    copy(A.tile((64, 32), (0, 0)), shared(bf16, (64, 32)), by=BY)  # here


@faulty("E108", "no instruction of gfx942 named here")
def instruction_of_other_memories(A: Tensor, C: Tensor) -> None:
    load(A.tile((64, 32), (0, 0)), BY, via=ds_read_b128)  # here


@faulty("E108", "each thread moves runs of 16 bits")
def runs_too_short(A: Tensor, C: Tensor) -> None:
    load(A.T.tile((64, 32), (0, 0)), BY, via=global_load[3])  # here


@faulty("E106", "is an immutable value")
def copy_into_a_value(A: Tensor, C: Tensor) -> None:
    value = load(A.tile((64, 32), (0, 0)), BY, edge=0)
    copy(A.tile((64, 32), (0, 0)), value, edge=0)  # here


@faulty("E106", "expected a tensor or a register tile, found None")
def copy_of_nothing(A: Tensor, C: Tensor) -> None:
    copy(None, registers(bf16, BY))  # here


@faulty("E106", "`via` names instructions, found 'buffer_load'")
def via_text(A: Tensor, C: Tensor) -> None:
    load(A.tile((64, 32), (0, 0)), BY, via="buffer_load")  # here


@faulty("E106", "`edge` is the number read outside the tensor, found 'zero'")
def edge_text(A: Tensor, C: Tensor) -> None:
    load(A.tile((64, 32), (0, 0)), BY, via=buffer_load, edge="zero")  # here


@faulty("E106", "expected a thread-value layout, found (64, 32)")
def layout_is_a_shape(A: Tensor, C: Tensor) -> None:
    load(A.tile((64, 32), (0, 0)), (64, 32))  # here


# -- storage -------------------------------------------------------------------------------------------------


@faulty("E101", "the integer `K` has no value")
def symbolic_shared(A: Tensor, C: Tensor) -> None:
    shared(bf16, (64, A.shape[1]))  # here


@faulty("E106", "an extent of `shared` is 0")
def empty_shared(A: Tensor, C: Tensor) -> None:
    shared(bf16, (64, 0))  # here


@faulty("E106", "an extent of `shared` is -8")
def negative_shared(A: Tensor, C: Tensor) -> None:
    shared(bf16, (64, -8))  # here


@faulty("E106", "an extent of `shared` is an integer, found 2.5")
def fractional_shared(A: Tensor, C: Tensor) -> None:
    shared(bf16, (64, 2.5))  # here


@faulty("E106", "`shared` takes one integer an axis, found 64")
def shared_without_axes(A: Tensor, C: Tensor) -> None:
    shared(bf16, 64)  # here


@faulty("E106", "expected an element type, found 'bf16'")
def shared_of_text(A: Tensor, C: Tensor) -> None:
    shared("bf16", (64, 32))  # here


@faulty("E211", "which do not divide 192")
def swizzle_too_large(A: Tensor, C: Tensor) -> None:
    shared(bf16, (6, 32), swizzle=Swizzle(3, 3, 3))  # here


@faulty("E106", "the degree of bank conflicts is 0")
def no_banks(A: Tensor, C: Tensor) -> None:
    shared(bf16, (6, 32), banks=0)  # here


@faulty("E109", "a layout of 128 threads in a kernel of 256")
def too_few_threads(A: Tensor, C: Tensor) -> None:
    registers(bf16, spread((64, 32), threads=128, vector=8))  # here


@faulty("E109", "do not divide rows of 12")
def rows_do_not_divide(A: Tensor, C: Tensor) -> None:
    spread((64, 12), threads=256, vector=8)  # here


@faulty("E109", "is not a multiple of 32 x 2 waves")
def tile_does_not_divide(A: Tensor, C: Tensor) -> None:
    mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(96, 64), k=32)  # here


@faulty("E106", "an extent of `waves` is 0")
def no_waves(A: Tensor, C: Tensor) -> None:
    mfma(mfma_f32_32x32x8_bf16).over(waves=(0, 2), tile=(64, 64), k=32)  # here


@faulty("E106", "`tile` is a pair")
def tile_of_three(A: Tensor, C: Tensor) -> None:
    mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 2), tile=(64, 64, 32), k=32)  # here


@faulty("E106", "`global_load_b128` is not a matrix instruction")
def a_load_does_not_multiply(A: Tensor, C: Tensor) -> None:
    mfma(global_load[3])  # here


# -- views ---------------------------------------------------------------------------------------------------


@faulty("E106", "has 2 axes, the tile 3 and its number 2")
def rank_of_a_tile(A: Tensor, C: Tensor) -> None:
    A.tile((64, 32, 1), (0, 0))  # here


@faulty("E106", "the number of a tile takes one integer an axis, found 0")
def number_of_a_tile(A: Tensor, C: Tensor) -> None:
    A.tile((64, 32), 0)  # here


@faulty("E106", "an extent of a tile is -64")
def negative_tile(A: Tensor, C: Tensor) -> None:
    A.tile((-64, 32), (0, 0))  # here


@faulty("E106", "has 2 axes, 3 are indexed")
def too_many_indices(A: Tensor, C: Tensor) -> None:
    A[0, 1, 2]  # here


@faulty("E106", "only `:` slices make a view")
def python_slice(A: Tensor, C: Tensor) -> None:
    A[0:64]  # here


@faulty("E106", "of extent 64 does not divide into 3 parts")
def unequal_parts(A: Tensor, C: Tensor) -> None:
    A.tile((64, 32), (0, 0)).part(0, 0, 3)  # here


@faulty("E106", "has the symbolic extent M")
def parts_of_symbolic_axis(A: Tensor, C: Tensor) -> None:
    A.part(0, 0, 3)  # here


@faulty("E106", "has no axis 2")
def parts_of_no_axis(A: Tensor, C: Tensor) -> None:
    A.part(2, 0, 3)  # here


@faulty("E106", "a view of shape (64, 32) is reshaped to (64, 16)")
def reshape_loses(A: Tensor, C: Tensor) -> None:
    A.tile((64, 32), (0, 0)).reshape(64, 16)  # here


@faulty("E106", "an extent is -64")
def reshape_negative(A: Tensor, C: Tensor) -> None:
    A.tile((64, 32), (0, 0)).reshape(-64, -32)  # here


@faulty("E106", "the gather gives 1 coordinates for 2 axes")
def gather_rank(A: Tensor, C: Tensor) -> None:
    A.gather((64,), lambda i: (i,))  # here


@faulty("E106", "the function of a gather takes one integer an axis")
def gather_scalar(A: Tensor, C: Tensor) -> None:
    A.gather((64,), lambda i: i)  # here


# -- arithmetic ----------------------------------------------------------------------------------------------


@faulty("E205", "`add` combines elements that different threads hold")
def layouts_differ(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY) + zeros(f32, OTHER)  # here


@faulty("E205", "`mul` combines elements that different threads hold")
def layouts_differ_in_place(A: Tensor, C: Tensor) -> None:
    x = zeros(f32, BY)
    x *= zeros(f32, OTHER)  # here


@faulty("E205", "`assignment` combines elements that different threads hold")
def layouts_differ_assigned(A: Tensor, C: Tensor) -> None:
    x = zeros(f32, BY)
    x[:] = zeros(f32, OTHER)  # here


@faulty("E106", "`add` combines f32 and bf16")
def types_differ(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY) + zeros(bf16, BY)  # here


@faulty("E106", "`assignment` combines f32 and bf16")
def types_differ_assigned(A: Tensor, C: Tensor) -> None:
    x = zeros(f32, BY)
    x[:] = zeros(bf16, BY)  # here


@faulty("E106", "is an immutable value")
def value_in_place(A: Tensor, C: Tensor) -> None:
    value = load(A.tile((64, 32), (0, 0)), BY, edge=0)
    value += 1.0  # here


@faulty("E106", "only the whole of a register tile")
def part_assigned(A: Tensor, C: Tensor) -> None:
    x = zeros(f32, BY)
    x[0:3] = 1.0  # here


@faulty("E106", "expected a register tile or a number, found 'one'")
def text_added(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY) + "one"  # here


@faulty("E106", "`max` needs a register tile")
def maximum_of_numbers(A: Tensor, C: Tensor) -> None:
    maximum(1.0, 2.0)  # here


@faulty("E106", "expected a condition, found 'yes'")
def where_text(A: Tensor, C: Tensor) -> None:
    where("yes", zeros(f32, BY), 0.0)  # here


@faulty("E106", "expected an element type, found 'bf16'")
def converted_to_text(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY).to("bf16")  # here


@faulty("E106", "an operand of a wrong kind")
def exponent_of_nothing(A: Tensor, C: Tensor) -> None:
    exp2(3, 4) if C is A else vmem.wait.__func__(None)  # here


@faulty("E106", "divided by zero")
def division_by_zero(A: Tensor, C: Tensor) -> None:
    A.shape[0] // 0  # here


@faulty("E106", "have no fractions: `M / 2`")
def fraction(A: Tensor, C: Tensor) -> None:
    A.shape[0] / 2  # here


@faulty("E106", "expected an integer, found 0.5")
def float_added(A: Tensor, C: Tensor) -> None:
    A.shape[0] + 0.5  # here


@faulty("E106", "shifted by -1 bits")
def negative_shift(A: Tensor, C: Tensor) -> None:
    A.shape[0] << -1  # here


@faulty("E106", "compared with 'all'")
def compared_with_text(A: Tensor, C: Tensor) -> None:
    A.shape[0] == "all"  # here


# -- matrix instructions, waits, fences ----------------------------------------------------------------------


@faulty("E206", "operand a of `mfma_f32_32x32x8_bf16` wants 16 registers in 256 threads, `wrong` has 8 in 256")
def operand_registers(A: Tensor, C: Tensor) -> None:
    wrong = registers(bf16, BY)
    mma(MM, zeros(f32, MM.C), wrong, registers(bf16, MM.B))  # here


@faulty("E206", "operand b of `mfma_f32_32x32x8_bf16` is bf16, `b` is f16")
def operand_type(A: Tensor, C: Tensor) -> None:
    b = registers(f16, MM.B)
    mma(MM, zeros(f32, MM.C), registers(bf16, MM.A), b)  # here


@faulty("E106", "`mma` takes a tiled instruction")
def untiled(A: Tensor, C: Tensor) -> None:
    mma(mfma_f32_32x32x8_bf16, zeros(f32, MM.C), registers(bf16, MM.A), registers(bf16, MM.B))  # here


@faulty("E106", "`mma` multiplies register tiles")
def multiplied_in_memory(A: Tensor, C: Tensor) -> None:
    mma(MM, zeros(f32, MM.C), A.tile((64, 32), (0, 0)), registers(bf16, MM.B))  # here


@faulty("E106", "a wait for -1 pending operations")
def negative_wait(A: Tensor, C: Tensor) -> None:
    vmem.wait(-1)  # here


@faulty("E101", "the integer `M` has no value")
def symbolic_wait(A: Tensor, C: Tensor) -> None:
    lds.wait(A.shape[0])  # here


@faulty("E106", "gfx942 has no fence 'async proxy'")
def unknown_fence(A: Tensor, C: Tensor) -> None:
    fence("async proxy")  # here


@faulty("E106", "a priority of 4")
def priority_too_high(A: Tensor, C: Tensor) -> None:
    with priority(4):  # here
        sync()


@faulty("E106", "expected a tensor or a register tile, found 3")
def reset_of_a_number(A: Tensor, C: Tensor) -> None:
    reset(3)  # here


@faulty("E207", "the branch `i0 >= 4` differs between threads")
def divergent(A: Tensor, C: Tensor) -> None:
    with when(zeros(f32, BY).index[0] > 3):  # here
        sync()


@faulty("E207", "the loop bound `i1` differs between threads")
def divergent_loop(A: Tensor, C: Tensor) -> None:
    _, column = zeros(f32, BY).index
    for _ in loop(column):  # here
        sync()


@faulty("E207", "`i0 == 0` differs between threads")
def divergent_start_of_a_sum(A: Tensor, C: Tensor) -> None:
    acc = zeros(f32, MM.C)
    row, _ = acc.index
    mma(MM, acc, registers(bf16, MM.A), registers(bf16, MM.B), init=row == 0)  # here


@faulty("E106", "`i0` is the coordinate of an element")
def coordinate_as_a_tile(A: Tensor, C: Tensor) -> None:
    row, _ = zeros(f32, BY).index
    A.tile((64, 32), (row, 0))  # here


@faulty("E106", "`i0 + 1` is the coordinate of an element")
def coordinate_as_an_index(A: Tensor, C: Tensor) -> None:
    row, _ = zeros(f32, BY).index
    A[row + 1]  # here


@faulty("E106", "it names an element's coordinate")
def assumption_on_an_element(A: Tensor, C: Tensor) -> None:
    row, _ = zeros(f32, BY).index
    assume(row < 3)  # here


# -- claims --------------------------------------------------------------------------------------------------


@faulty("E106", "is a function of 2 arguments")
def arity_of_a_tag(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m: dict(m=m))  # here


@faulty("E106", "is a function of 2 arguments, found 3")
def tag_is_a_number(A: Tensor, C: Tensor) -> None:
    tag(A, 3)  # here


@faulty("E106", "gives a named record, found (")
def tag_is_a_tuple(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m, k: (m, k))  # here


@faulty("E106", "gives a named record, found {}")
def empty_tag(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m, k: {})  # here


@faulty("E106", "is named by an identifier, found 3")
def tag_named_by_a_number(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m, k: {3: k})  # here


@faulty("E106", "expected an integer, found 'k'")
def tag_of_text(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m, k: dict(k="k"))  # here


@faulty("E106", "`tag` takes a tensor or a register tile, found None")
def tag_of_nothing(A: Tensor, C: Tensor) -> None:
    tag(None, lambda m, k: dict(k=k))  # here


@faulty("E106", "`assert_covers` takes a component of a tag")
def covers_of_a_tile(A: Tensor, C: Tensor) -> None:
    assert_covers(zeros(f32, BY), 0, 1)  # here


@faulty("E106", "`assert_equal` takes a component of a tag")
def equal_to_a_number(A: Tensor, C: Tensor) -> None:
    assert_equal(A.tag.k, 3)  # here


@faulty("E106", "needs at least one component")
def distinct_nothing(A: Tensor, C: Tensor) -> None:
    assert_distinct()  # here


@faulty("E106", "takes tag components or tiles and, last, a function")
def relation_without_condition(A: Tensor, C: Tensor) -> None:
    assert_relation(A.tag.k, C.tag.k)  # here


@faulty("E106", "is a function of 1 arguments")
def relation_arity(A: Tensor, C: Tensor) -> None:
    assert_relation(A.tag.k, lambda x, y: x < y)  # here


@faulty("E106", "is a function of 2 arguments")
def written_once_arity(A: Tensor, C: Tensor) -> None:
    assert_written_once(C, lambda m: dict(m=m))  # here


@faulty("E106", "the assumption `k <= 2` is not about sizes alone: it names `k`")
def assumption_on_a_loop(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        assume(k < 3)  # here


@faulty("E106", "it names `block_0`")
def assumption_on_a_block(A: Tensor, C: Tensor) -> None:
    (m,) = block_id((A.shape[0],))
    assume(m < 3)  # here


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    fault.check()


def outside_calls() -> list[object]:
    return [
        sync,
        lambda: loop(3).__iter__(),
        lambda: when(True).__enter__(),
        lambda: zeros(f32, BY),
        lambda: shared(bf16, (8,)),
        lambda: vmem.wait(0),
        lambda: block_id((1,)),
        lambda: assume(True),
    ]


@pytest.mark.parametrize("call", outside_calls())
def test_outside_a_kernel(call: object) -> None:
    with pytest.raises(ArgusError) as caught:
        call() if callable(call) else None
    found = caught.value.diagnostic
    assert found.primary.span.frame is not None
    assert found.primary.span.frame.file == __file__
    assert found.code in {"E105", "E106"}
