"""Errors of formulas in claims (E110 to E114), reported at the user's line."""

# ruff: noqa: ARG001, ARG005
# Reason: bodies share one signature and have no use for what a faulty line would give.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportGeneralTypeIssues=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# Reason: elements are values only while a formula is made, and what the type checker would refuse must be refused.

from __future__ import annotations

from argus.language import (
    Tensor,
    argmax,
    assert_equals,
    block_id,
    copy,
    elements,
    exp,
    f32,
    global_store,
    shared,
    total,
    where,
    zeros,
)
from tests.core.dsl.tracing import BY, Fault, Faults

faulty = Faults()


@faulty("E110", "`C` has 2 axes, the formula takes 1 coordinates")
def one_coordinate_too_few(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m: A[m, 0])  # here


@faulty("E110", "is a function of coordinates, found 3")
def formula_is_a_number(A: Tensor, C: Tensor) -> None:
    assert_equals(C, 3)  # here


@faulty("E110", "the body of `total` takes 2 variables, `over` gives 1 ranges")
def one_range_for_two_variables(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: total(lambda i, k: A[i, k], over=A.shape[1]))  # here


@faulty("E110", "the body of `argmax` takes one variable")
def place_along_two_axes(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: argmax(lambda i, j: A[i, j], over=A.shape[1]))  # here


@faulty("E110", "a range of `total` has 3 ends")
def range_of_three_ends(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: total(lambda k: A[m, k], over=(0, 1, 2)))  # here


@faulty("E110", "`C` has 2 axes, `where` takes 1 coordinates")
def restriction_of_one_coordinate(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: A[m, 0], where=lambda m: m < 3)  # here


@faulty("E110", "`where` of `C` is a function of coordinates, found 3")
def restriction_is_a_number(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: A[m, 0], where=3)  # here


@faulty("E114", "`where` of `C` is a condition on coordinates, found")
def restriction_is_no_condition(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: A[m, 0], where=lambda m, n: m + n)  # here


@faulty("E106", "names `block_0`, which is not a size")
def restriction_to_a_block(A: Tensor, C: Tensor) -> None:
    (b,) = block_id((4,))
    assert_equals(C, lambda m, n: A[m, 0], where=lambda m, n: m < b)  # here


@faulty("E111", "a formula is computed from a value of type `Fragment`")
def formula_of_registers(A: Tensor, C: Tensor) -> None:
    x = zeros(f32, BY)
    assert_equals(C, lambda m, n: exp(x))  # here


@faulty("E111", "reads `box`, which is in shared memory")
def formula_of_shared_memory(A: Tensor, C: Tensor) -> None:
    box = shared(f32, (64,))
    assert_equals(C, lambda m, n: box[m])  # here


@faulty("E112", "the formula of `C` reads `C`, which is written")
def formula_of_its_own_output(A: Tensor, C: Tensor) -> None:
    m, n = block_id((1, 1))
    copy(zeros(f32, BY), C.tile((64, 32), (m, n)), via=global_store, edge=0)
    assert_equals(C, lambda m, n: C[m, n] * 2)  # here


@faulty("E113", "`A` has 2 axes, a formula reads it at 1 coordinates")
def formula_of_a_row(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: A[m] + 1)  # here


@faulty("E113", "A[i0, i1] in a formula is 2 axes short of an element")
def formula_of_a_tensor(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: exp(A))  # here


@faulty("E114", "expected a value of the formula, found {'m': ")
def formula_is_a_record(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: {"m": 0})  # here


@faulty("E114", "NaN is no number of a formula")
def formula_of_nan(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: A[m, n] + float("nan"))  # here


@faulty("E106", "`assert_equals` takes a parameter of the kernel, found None")
def claim_about_nothing(A: Tensor, C: Tensor) -> None:
    assert_equals(None, lambda m, n: 0)  # here


@faulty("E106", "names `block_0`, which is not a size")
def formula_of_a_block(A: Tensor, C: Tensor) -> None:
    m, _ = block_id((1, 1))
    assert_equals(C, lambda i, j: A[m, j])  # here


@faulty("E106", "`total` was called outside a formula")
def reduction_outside(A: Tensor, C: Tensor) -> None:
    total(lambda k: A[0, k], over=4)  # here


@faulty("E106", "`elements` was called outside a formula")
def elements_outside(A: Tensor, C: Tensor) -> None:
    elements(A)(0, 0)  # here


@faulty("E111", "`elements` takes a tensor, found 5")
def elements_of_a_number(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: elements(5)(n, m))  # here


@faulty("E113", "`A` has 2 axes, a formula reads it at 1 coordinates")
def elements_of_a_row(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: elements(A)(m))  # here


@faulty("E101", "a comparison of values of a formula has no truth value")
def branch_on_values(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: 1.0 if A[m, n] > 0 else 0.0)  # here


@faulty("E106", "expected a condition, found")
def where_without_a_condition(A: Tensor, C: Tensor) -> None:
    assert_equals(C, lambda m, n: where(A[m, n], 0.0, 1.0))  # here


@faulty.parametrize()
def test_faulty_formulas(fault: Fault) -> None:
    fault.check()
