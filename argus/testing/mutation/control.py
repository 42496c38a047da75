"""Mutation operators on loops and branches: other bounds, other conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from attrs import evolve

from argus.core.algebra import add, le, lt, negate, sub, sym
from argus.core.index import Cmp, Cond, Node, Symbol
from argus.core.ir import For, If, Kernel
from argus.core.ir.surgery import substitute_symbols, with_inferred_range
from argus.core.walk import fold, rebuild, substitute, symbols, topological
from argus.testing.mutation.operator import Change, Operator, each, other


def _bounds(loop: For, what: str, **fields: object) -> Iterator[Change]:
    yield (with_inferred_range(evolve(loop, **fields)),), what


def _start_later(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "starts a step later", start=add(loop.start, loop.step))


def _start_earlier(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "starts a step earlier", start=add(loop.start, -loop.step))


def _stop_later(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "stops a step later", stop=add(loop.stop, loop.step))


def _stop_earlier(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "stops a step earlier", stop=add(loop.stop, -loop.step))


def _step(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "every second trip", step=2 * loop.step)


def _descending(_: Kernel, loop: For) -> Iterator[Change]:
    """Reverse the order of the variable's values, if its step is 1 or -1."""
    if loop.step in (1, -1):
        start, stop = sub(loop.stop, loop.step), sub(loop.start, loop.step)
        yield from _bounds(loop, "in the other direction", start=start, stop=stop, step=-loop.step)


def _off_inside(_: Kernel, loop: For) -> Iterator[Change]:
    """Let the body use the variable of the next iteration."""
    k = sym(loop.symbol)
    body = substitute_symbols(loop.body, {loop.symbol: add(k, loop.step)})
    yield (evolve(loop, body=body),), "sees the next trip's variable"


def _once(_: Kernel, loop: For) -> Iterator[Change]:
    yield from _bounds(loop, "one trip", stop=add(loop.start, loop.step))


def _unguarded(_: Kernel, stmt: If) -> Iterator[Change]:
    yield stmt.then, "without its guard"


def _never(_: Kernel, stmt: If) -> Iterator[Change]:
    yield stmt.otherwise, "the guarded statement is dropped"


def _negated(_: Kernel, stmt: If) -> Iterator[Change]:
    yield from other(stmt, "guard negated", cond=negate(stmt.cond))


def _branches(_: Kernel, stmt: If) -> Iterator[Change]:
    if stmt.otherwise:
        yield from other(stmt, "branches exchanged", then=stmt.otherwise, otherwise=stmt.then)


def _moving(kernel: Kernel, cond: Cond) -> list[Symbol]:
    found = symbols(cond) - ({kernel.thread} | set(kernel.blocks))
    return sorted(found, key=lambda symbol: symbol.name)


def _guard_by(kernel: Kernel, stmt: If, steps: tuple[int, ...]) -> Iterator[Change]:
    for symbol in _moving(kernel, stmt.cond):
        for by in steps:
            cond = substitute(stmt.cond, {symbol: add(sym(symbol), by)})
            yield from other(stmt, f"guard with {symbol.name} + {by}", cond=cond)


def _guard_ahead(kernel: Kernel, stmt: If) -> Iterator[Change]:
    return _guard_by(kernel, stmt, (1, 2))


def _guard_behind(kernel: Kernel, stmt: If) -> Iterator[Change]:
    return _guard_by(kernel, stmt, (-1, -2))


def _strictness(_: Kernel, stmt: If) -> Iterator[Change]:
    for cond, what in compared_otherwise(stmt.cond):
        yield from other(stmt, what, cond=cond)


def compared_otherwise(cond: Cond) -> Iterator[tuple[Cond, str]]:
    """The conditions with one comparison made strict, non-strict, or an inequality instead of an equality."""
    for node in topological([cond]):
        if not isinstance(node, Cmp):
            continue
        turned = le(node.left, node.right) if node.op == "==" else lt(node.left, node.right)
        yield _with(cond, node, turned), "a strict comparison" if node.op == "<=" else "at most for equal"
        looser = le(node.left, add(node.right, 1)) if node.op == "<=" else le(node.right, node.left)
        yield _with(cond, node, looser), "a looser comparison"


def _with(cond: Cond, old: Node, new: Node) -> Cond:
    return cast("Cond", fold(cond, lambda node, parts: new if node is old else rebuild(node, parts)))


OPERATORS: tuple[Operator, ...] = (
    Operator("start_later", "a loop skips its first iteration", each(For, _start_later)),
    Operator("start_earlier", "a loop makes an iteration before its first", each(For, _start_earlier)),
    Operator("stop_later", "a loop makes an iteration after its last", each(For, _stop_later)),
    Operator("stop_earlier", "a loop skips its last iteration", each(For, _stop_earlier)),
    Operator("double_step", "a loop makes every second iteration", each(For, _step)),
    Operator("descend", "a loop runs in the other direction", each(For, _descending)),
    Operator("variable_ahead", "a loop's body uses the next iteration's variable", each(For, _off_inside)),
    Operator("one_trip", "a loop makes one iteration", each(For, _once)),
    Operator("drop_guard", "a guarded statement is always executed", each(If, _unguarded)),
    Operator("drop_guarded", "a guarded statement is never executed", each(If, _never)),
    Operator("negate_guard", "a guard is negated", each(If, _negated)),
    Operator("exchange_branches", "a guard's branches are exchanged", each(If, _branches)),
    Operator("guard_ahead", "a guard tests a later iteration or a larger size", each(If, _guard_ahead)),
    Operator("guard_behind", "a guard tests an earlier iteration or a smaller size", each(If, _guard_behind)),
    Operator("guard_strictness", "a guard's comparison becomes strict, or non-strict", each(If, _strictness)),
)
