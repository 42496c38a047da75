"""Errors of operands of arithmetic, matrix instructions, waits and fences: E101, E106, E205 to E207."""

# ruff: noqa: ARG001, B015
# Reason: bodies share one signature and have no use for what a faulty line would give.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# pyright: reportUnusedExpression=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError
from argus.language import (
    Tensor,
    assume,
    bf16,
    block_id,
    exp2,
    f16,
    f32,
    fence,
    interleave,
    lds,
    load,
    loop,
    maximum,
    mfma_f32_32x32x8_bf16,
    mma,
    priority,
    registers,
    reset,
    shared,
    spread,
    sync,
    vmem,
    when,
    where,
    zeros,
)
from tests.core.dsl.tracing import BY, MM, Fault, Faults

faulty = Faults()
OTHER = spread((64, 32), threads=256, vector=4)


# -- arithmetic --------------------------------------------------------------------------------------------


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


@faulty("E205", "`gather` combines elements that different threads hold")
def elements_of_other_threads(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY).gather(BY, lambda row, column: (63 - row, column))  # here


@faulty("E106", "`gather` gives 1 coordinates for 2 axes")
def a_gather_of_rows_alone(A: Tensor, C: Tensor) -> None:
    zeros(f32, BY).gather(BY, lambda row, _: (row,))  # here


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


@faulty("E106", "an operand of a wrong type")
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


# -- matrix instructions, waits, fences --------------------------------------------------------------------


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


@faulty("E106", "no instructions are of the kind `lds`")
def kind_of_no_instructions(A: Tensor, C: Tensor) -> None:
    interleave(2, lds=1)  # here


@faulty("E106", "a pattern of 0 instructions, 2 times")
def pattern_of_nothing(A: Tensor, C: Tensor) -> None:
    interleave(2, mfma=0)  # here


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
