"""Errors of loops, branches and Python control flow that tracing cannot follow: E101, E102, E104, E201, E212."""

# ruff: noqa: ARG001, B007
# Reason: bodies share one signature, and a loop variable is used after its loop on purpose.
# pyright: reportPossiblyUnboundVariable=false
# Reason: as above.

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from argus.core.ir import For, If, walk
from argus.language import (
    Int,
    Tensor,
    block_id,
    copy,
    f32,
    load,
    loop,
    otherwise,
    priority,
    registers,
    sync,
    when,
    zeros,
)
from tests.core.dsl.tracing import BY, MM, Fault, Faults, trace

faulty = Faults()


@faulty("E101", "the condition `M >= 6` has no value")
def symbolic_if(A: Tensor, C: Tensor) -> None:
    if A.shape[0] > 5:  # here
        sync()


@faulty("E101", "the condition `k >= 4` has no value")
def chained_comparison(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        with when(3 < k < A.shape[0]):  # here
            sync()


@faulty("E101", "the integer `M % 2` has no value")
def symbolic_truth(A: Tensor, C: Tensor) -> None:
    if A.shape[0] % 2:  # here
        sync()


@faulty("E101", "the integer `K` has no value")
def python_range(A: Tensor, C: Tensor) -> None:
    for _ in range(A.shape[1]):  # here
        sync()


@faulty("E101", "truth value")
def truth_of_a_tile(A: Tensor, C: Tensor) -> None:
    acc = zeros(f32, MM.C)
    if acc:  # here
        sync()


@faulty("E102", "`previous` is rebound")
def carried_value(A: Tensor, C: Tensor) -> None:
    previous = load(A.tile((64, 32), (0, 0)), BY, edge=0)
    into = registers(A.dtype, BY)
    for k in loop(A.shape[1]):  # here
        copy(previous, A.tile((64, 32), (0, k)), edge=0)
        following = load(A.tile((64, 32), (0, k)), BY, edge=0)
        into[:] = following
        previous = following


@faulty("E102", "`count` is rebound")
def python_counter(A: Tensor, C: Tensor) -> None:
    count = 0
    for _ in loop(A.shape[1]):  # here
        count = count + 1
        sync()


@faulty("E102", "`count` is rebound")
def python_counter_in_place(A: Tensor, C: Tensor) -> None:
    count = 1000
    for _ in loop(A.shape[1]):  # here
        with when(A.shape[0] > 3):
            count += 1000


@faulty("E102", "`offset` is rebound")
def carried_integer(A: Tensor, C: Tensor) -> None:
    offset = A.shape[0] * 0
    for k in loop(A.shape[1]):  # here
        offset = offset + k


@faulty("E104", "`loop` was left before its end")
def loop_left_by_break(A: Tensor, C: Tensor) -> None:
    for _ in loop(A.shape[1]):  # here
        sync()
        break


@faulty("E104", "`loop` was left before its end")
def loop_left_by_return(A: Tensor, C: Tensor) -> None:
    for _ in loop(A.shape[1]):  # here
        sync()
        return


@faulty("E104", "`when` was left before its end")
def branch_left_by_break(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        with when(k > 3):  # here
            sync()
            break
        sync()


@faulty("E104", "`when` was left before its end")
def branch_left_by_continue(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        with when(k > 3):  # here
            sync()
            continue
        sync()


@faulty("E104", "`when` was left before its end")
def branch_left_by_return(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 3):  # here
        sync()
        return
    sync()


@faulty("E104", "`when` was left before its end")
def branches_left_by_return(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 3):
        with when(A.shape[0] > 4):  # here
            return
        sync()


@faulty("E104", "`otherwise` was left before its end")
def other_branch_left(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 3):
        sync()
    with otherwise():  # here
        if A.dtype == C.dtype:
            sync()
        else:
            return
    sync()


@faulty("E104", "`priority` was left before its end")
def priority_left(A: Tensor, C: Tensor) -> None:
    for _ in range(3):
        with priority(1):  # here
            sync()
            continue
        sync()


@faulty("E104", "`loop` was left before its end")
def inner_loop_left(A: Tensor, C: Tensor) -> None:
    for _ in loop(A.shape[0]):
        for _ in loop(A.shape[1]):  # here
            break


@faulty("E103", "raised ZeroDivisionError while it was traced")
def raises(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        with when(k > 2):
            str(1 // len("x"[1:]))  # here


@faulty("E103", "RecursionError")
def recurses(A: Tensor, C: Tensor) -> None:
    recurses(A, C)  # here


@faulty("E106", "`otherwise` does not follow a `when`")
def otherwise_alone(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 3):
        sync()
    sync()
    with otherwise():  # here
        sync()


@faulty("E106", "`otherwise` does not follow a `when`")
def otherwise_twice(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 3):
        sync()
    with otherwise():
        sync()
    with otherwise():  # here
        sync()


@faulty("E106", "is not the loop of a `for` statement")
def enumerated(A: Tensor, C: Tensor) -> None:
    for _, _ in enumerate(loop(A.shape[1])):  # here
        sync()


@faulty("E106", "one or two bounds, found 3")
def three_bounds(A: Tensor, C: Tensor) -> None:
    for _ in loop(0, 4, 2):  # here
        sync()


@faulty("E106", "expected an integer, found 2.5")
def fractional_bound(A: Tensor, C: Tensor) -> None:
    for _ in loop(2.5):  # pyright: ignore[reportArgumentType]  # the fault under test  # here
        sync()


@faulty("E106", "expected a condition, found 3")
def number_as_condition(A: Tensor, C: Tensor) -> None:
    with when(3):  # pyright: ignore[reportArgumentType]  # the fault under test  # here
        sync()


@faulty("E106", "the grid is declared twice")
def two_grids(A: Tensor, C: Tensor) -> None:
    block_id((A.shape[0],))
    block_id((A.shape[1],))  # here


@faulty("E106", "a grid of 4 axes")
def grid_of_four(A: Tensor, C: Tensor) -> None:
    block_id((1, 2, 3, 4))  # here


@faulty("E212", "the step of a loop is zero")
def no_step(A: Tensor, C: Tensor) -> None:
    for _ in loop(0, 4, step=0):  # here
        sync()


@faulty("E201", "`k` is used outside the loop that defines it")
def loop_variable_after(A: Tensor, C: Tensor) -> None:
    into = registers(A.dtype, BY)
    for k in loop(A.shape[1]):
        sync()
    copy(A.tile((64, 32), (0, k)), into, edge=0)  # here


@faulty("E201", "`k` is used outside the loop that defines it")
def loop_variable_as_bound(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        sync()
    for _ in loop(k):  # here
        sync()


@faulty("E201", "`k` is used outside the loop that defines it")
def loop_variable_in_element(A: Tensor, C: Tensor) -> None:
    acc = zeros(f32, MM.C)
    for k in loop(A.shape[1]):
        sync()
    acc += k  # here


@faulty("E201", "`value` is used outside the body that declares it")
def value_of_the_body_after(A: Tensor, C: Tensor) -> None:
    for k in loop(A.shape[1]):
        value = load(A.tile((64, 32), (0, k)), BY, edge=0)
    copy(value, A.tile((64, 32), (0, 0)), edge=0)  # here


@faulty("E201", "`value` is used outside the body that declares it")
def value_of_a_branch_after(A: Tensor, C: Tensor) -> None:
    with when(A.shape[0] > 4):
        value = load(A.tile((64, 32), (0, 0)), BY, edge=0)
    copy(value, A.tile((64, 32), (0, 0)), edge=0)  # here


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    fault.check()


def test_temporaries_may_be_reused_and_registers_updated() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        acc = zeros(f32, MM.C)
        value = None
        for k in loop(A.shape[1]):
            value = load(A.tile((64, 32), (0, k)), BY, edge=0)
            copy(value, A.tile((64, 32), (0, k)), edge=0)
            acc *= 2.0
        for k in loop(A.shape[1]):
            value = load(A.tile((64, 32), (1, k)), BY, edge=0)
            copy(value, A.tile((64, 32), (0, k)), edge=0)
            acc += 1.0

    loops = [stmt for stmt in walk(trace(body).body) if isinstance(stmt, For)]
    assert [stmt.symbol.name for stmt in loops] == ["k", "k_2"]


def test_nested_loops_and_branches_keep_their_statements() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        with when(A.shape[0] > 3):
            for i in loop(A.shape[0]):
                for j in loop(2, A.shape[1], step=3, unroll=2):
                    with when(i < j):
                        sync()
                    with otherwise():
                        sync()
                        sync()

    (outer,) = trace(body).body
    assert isinstance(outer, If)
    (first,) = outer.then
    assert isinstance(first, For)
    (second,) = first.body
    assert isinstance(second, For)
    assert (second.symbol.low, second.step, second.unroll) == (2, 3, 2)
    (branch,) = second.body
    assert isinstance(branch, If)
    assert (len(branch.then), len(branch.otherwise)) == (1, 2)


def test_a_branch_may_end_where_its_function_ends() -> None:
    def helper(A: Tensor) -> None:
        with when(A.shape[0] > 3), priority(1):
            sync()

    def chosen(A: Tensor, *, early: bool) -> int:
        with when(A.shape[0] > 3):
            sync()
            if early:
                sync()
        return 3

    def body(A: Tensor, C: Tensor) -> None:
        for _ in loop(A.shape[1]):
            helper(A)
            with when(A.shape[0] > 5):
                sync()
        chosen(A, early=True)

    assert len(trace(body).body) == 2


def test_user_context_managers_may_wrap_branches() -> None:
    @contextmanager
    def large(size: Int) -> Generator[None]:
        with when(size > 3):
            yield

    def body(A: Tensor, C: Tensor) -> None:
        with large(A.shape[0]):
            sync()
        sync()

    assert [type(stmt).__name__ for stmt in trace(body).body] == ["If", "Sync"]


def test_bounds_of_a_loop_variable_are_known() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        for _ in loop(2, 7):
            sync()
        for _ in loop(6, -1, step=-2):
            sync()

    loops = [stmt.symbol for stmt in walk(trace(body).body) if isinstance(stmt, For)]
    assert [(symbol.low, symbol.high) for symbol in loops] == [(2, 6), (0, 6)]


def test_a_comprehension_is_a_loop() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        [sync() for _ in loop(A.shape[1])]

    (stmt,) = trace(body).body
    assert isinstance(stmt, For)
