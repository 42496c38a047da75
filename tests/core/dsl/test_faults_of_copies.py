"""Errors of copies, buffers and views, at the user's line: E101, E106, E108, E109, E203 to E205, E209, E211."""

# ruff: noqa: ARG001
# Reason: bodies share one signature and have no use for what a faulty line would give.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# pyright: reportUnusedExpression=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

from argus.language import (
    Swizzle,
    Tensor,
    bf16,
    buffer_load,
    copy,
    ds_read_b128,
    f32,
    global_load,
    load,
    mfma,
    mfma_f32_32x32x8_bf16,
    registers,
    shared,
    spread,
)
from tests.core.dsl.tracing import BY, Fault, Faults

faulty = Faults()
OTHER = spread((64, 32), threads=256, vector=4)


# -- copies ------------------------------------------------------------------------------------------------


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


@faulty("E106", "does not say which thread moves what")
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


# -- storage -----------------------------------------------------------------------------------------------


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


# -- views -------------------------------------------------------------------------------------------------


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


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    fault.check()
