"""Mutation operators on statements: drop, repeat, or move one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import evolve

from argus.core.algebra import eq, lt, mod, sym
from argus.core.check import expressions
from argus.core.index import Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assume,
    Await,
    Commit,
    Copy,
    Fence,
    Fold,
    For,
    If,
    Kernel,
    Let,
    Map,
    Mma,
    One,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
    walk,
)
from argus.core.ir.surgery import fresh_copies, with_stmts
from argus.core.walk import symbols
from argus.testing.mutation.operator import Change, Made, Make, Operator, each, lists, loops_around

_FIXED = Alloc | Tag | Assume | Let | Roles


def _drop(_: Kernel, stmt: Stmt) -> Iterator[Change]:
    yield (), f"{type(stmt).__name__} dropped"


def _twice(_: Kernel, stmt: Stmt) -> Iterator[Change]:
    yield (stmt, *fresh_copies((stmt,))), f"{type(stmt).__name__} twice"


def _in_lists(change: Callable[[tuple[Stmt, ...]], Iterable[tuple[tuple[Stmt, ...], str, Stmt]]]) -> Make:
    """Change every list of statements, one at a time. change: yields the new list, a description, the statement."""

    def make(kernel: Kernel) -> Iterator[Made]:
        for body in lists(kernel):
            for made, what, stmt in change(body):
                yield Made(_with_list(kernel, body, made), what, stmt.span)

    return make


def _with_list(kernel: Kernel, old: tuple[Stmt, ...], new: tuple[Stmt, ...]) -> Kernel:
    if old is kernel.prologue:
        return evolve(kernel, prologue=new)
    if old is kernel.epilogue:
        return evolve(kernel, epilogue=new)
    first, *others = old
    taken = kernel
    for stmt in others:
        taken = with_stmts(taken, stmt, ())
    return with_stmts(taken, first, new)


def _carried(body: tuple[Stmt, ...], by: int) -> Iterator[tuple[tuple[Stmt, ...], str, Stmt]]:
    """Move each statement `by` places later."""
    for at, stmt in enumerate(body):
        if at + by >= len(body) or any(isinstance(s, _FIXED) for s in body[at : at + by + 1]):
            continue
        moved = (*body[:at], *body[at + 1 : at + by + 1], stmt, *body[at + by + 1 :])
        yield moved, f"{type(stmt).__name__} {by} later", stmt


def _exchange(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Stmt, ...], str, Stmt]]:
    return _carried(body, 1)


def _two_later(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Stmt, ...], str, Stmt]]:
    return _carried(body, 2)


def _to_the_end(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Stmt, ...], str, Stmt]]:
    for at, stmt in enumerate(body[:-3]):
        if not any(isinstance(s, _FIXED) for s in body[at:]):
            yield (*body[:at], *body[at + 1 :], stmt), f"{type(stmt).__name__} at the end of its body", stmt


def _leave(kernel: Kernel) -> Iterator[Made]:
    """Move the first statement of a loop before it, or the last one after it."""
    for loop in walk(kernel.body):
        if not isinstance(loop, For) or len(loop.body) < 2:
            continue
        first, last = loop.body[0], loop.body[-1]
        without_first = evolve(loop, body=loop.body[1:])
        without_last = evolve(loop, body=loop.body[:-1])
        own = {loop.symbol}
        if not isinstance(first, _FIXED) and not own & _mentioned(first):
            yield Made(with_stmts(kernel, loop, (first, without_first)), "first statement before its loop", first.span)
        if not isinstance(last, _FIXED) and not own & _mentioned(last):
            yield Made(with_stmts(kernel, loop, (without_last, last)), "last statement after its loop", last.span)


def _mentioned(stmt: Stmt) -> set[Symbol]:
    return {symbol for inner in walk((stmt,)) for symbol in symbols(*expressions(inner))}


def _enter(kernel: Kernel) -> Iterator[Made]:
    """Move the statement before a loop to its start, or the one after it to its end."""
    for body in lists(kernel):
        for at, loop in enumerate(body):
            if not isinstance(loop, For):
                continue
            if at > 0 and not isinstance(body[at - 1], _FIXED | For):
                before = body[at - 1]
                inside = evolve(loop, body=(before, *loop.body))
                taken = with_stmts(kernel, before, ())
                yield Made(with_stmts(taken, loop, (inside,)), "into the loop that follows", before.span)
            if at + 1 < len(body) and not isinstance(body[at + 1], _FIXED | For):
                after = body[at + 1]
                inside = evolve(loop, body=(*loop.body, after))
                taken = with_stmts(kernel, after, ())
                yield Made(with_stmts(taken, loop, (inside,)), "into the loop before", after.span)


def _not_in_the_first_trip(kernel: Kernel, stmt: Stmt) -> Iterator[Change]:
    for symbol in loops_around(kernel, stmt)[-1:]:
        yield (If(lt(0, sym(symbol)), (stmt,), span=stmt.span),), f"only where {symbol.name} > 0"


def _in_every_second_trip(kernel: Kernel, stmt: Stmt) -> Iterator[Change]:
    for symbol in loops_around(kernel, stmt)[-1:]:
        yield (If(eq(mod(sym(symbol), 2), 0), (stmt,), span=stmt.span),), f"only where {symbol.name} is even"


def _by_one_thread(_: Kernel, stmt: Stmt) -> Iterator[Change]:
    yield (One((stmt,), span=stmt.span),), f"{type(stmt).__name__} by one thread"


def _by_all(_: Kernel, stmt: One) -> Iterator[Change]:
    yield stmt.body, "by all threads of the agent"


_MOVING = (Copy, Mma, Map, Fold, Arrive, Await, Wait, Commit, Fence, Advance, Sync)

OPERATORS: tuple[Operator, ...] = (
    Operator("drop_copy", "a copy is left out", each(Copy, _drop)),
    Operator("drop_product", "a product is left out", each(Mma, _drop)),
    Operator("drop_map", "an assignment of elements is left out", each(Map, _drop)),
    Operator("drop_fold", "a fold is left out", each(Fold, _drop)),
    Operator("drop_reset", "a reset is left out", each(Reset, _drop)),
    Operator("repeat_copy", "a copy is made twice", each(Copy, _twice)),
    Operator("repeat_product", "a product is added twice", each(Mma, _twice)),
    Operator("repeat_map", "an assignment of elements is made twice", each(Map, _twice)),
    Operator("repeat_fold", "a fold is made twice", each(Fold, _twice)),
    Operator("exchange_neighbours", "a statement is exchanged with the next", _in_lists(_exchange)),
    Operator("carry_on", "a statement is moved two places later", _in_lists(_two_later)),
    Operator("carry_to_the_end", "a statement is moved to the end of its body", _in_lists(_to_the_end)),
    Operator("leave_loop", "the first or last statement of a loop is moved out", _leave),
    Operator("enter_loop", "a statement next to a loop is moved in", _enter),
    Operator("skip_first_trip", "a statement is skipped in the first iteration", each(_MOVING, _not_in_the_first_trip)),
    Operator(
        "skip_odd_trips", "a statement is skipped in every second iteration", each(_MOVING, _in_every_second_trip)
    ),
    Operator(
        "one_thread_alone", "a statement is executed by one thread", each((Copy, Fence, Wait, Await), _by_one_thread)
    ),
    Operator("all_threads", "a statement of one thread is executed by all", each(One, _by_all)),
)
