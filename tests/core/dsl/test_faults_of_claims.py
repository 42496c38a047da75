"""Errors of ill-formed tags, claims and assumptions (E106), reported at the user's line."""

# ruff: noqa: ARG001, ARG005
# Reason: bodies share one signature and have no use for what a faulty line would give.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# pyright: reportUnusedExpression=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

from argus.language import (
    Tensor,
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_relation,
    assert_written_once,
    assume,
    block_id,
    f32,
    loop,
    tag,
    zeros,
)
from tests.core.dsl.tracing import BY, Fault, Faults

faulty = Faults()


@faulty("E106", "is a function of 2 arguments")
def arity_of_a_tag(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m: dict(m=m))  # here


@faulty("E106", "is a function of 2 arguments, found 3")
def tag_is_a_number(A: Tensor, C: Tensor) -> None:
    tag(A, 3)  # here


@faulty("E106", "returns a named record, found (")
def tag_is_a_tuple(A: Tensor, C: Tensor) -> None:
    tag(A, lambda m, k: (m, k))  # here


@faulty("E106", "returns a named record, found {}")
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
