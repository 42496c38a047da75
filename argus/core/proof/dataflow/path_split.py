"""Splits a kernel at block-uniform branches into control paths, one statement list per path.

A branch on block numbers, sizes and read-only integers has one outcome for all threads of a block throughout its
execution. So each block of `if c: one else: two` executes either `one` or `two`; each path is analysed separately
with c, or its negation, as a fact. Branches inside loops stay guards of single statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Coord, Held
from argus.core.ir import Copy, For, If, Kernel, Stmt, trips, walk
from argus.core.walk import mentions, symbols

_MAX_PATHS = 8


@frozen(eq=False)
class ControlPath:
    """One control path: the statements of the blocks that take it, and its path condition as a conjunction.

    A decided branch leaves an `If` without statements behind, because its condition is still evaluated.
    """

    kernel: Kernel
    path_condition: tuple[Cond, ...]


def control_paths(kernel: Kernel) -> tuple[ControlPath, ...]:
    """The control paths of a kernel without roles; one path without a condition if there are too many."""
    found: list[ControlPath] = []
    for conditions, body in _paths(kernel.body, ()):
        if len(found) >= _MAX_PATHS:
            return (ControlPath(kernel, ()),)
        found.append(
            ControlPath(evolve(kernel, prologue=body, roles=None, epilogue=()) if conditions else kernel, conditions)
        )
    return tuple(found)


def _paths(body: tuple[Stmt, ...], conditions: tuple[Cond, ...]) -> Iterator[tuple[tuple[Cond, ...], tuple[Stmt, ...]]]:
    for place, stmt in enumerate(body):
        if not isinstance(stmt, If) or not _splits_path(stmt):
            continue
        left = (*body[:place], evolve(stmt, then=(), otherwise=()))
        for cond, branch in ((stmt.cond, stmt.then), (algebra.negate(stmt.cond), stmt.otherwise)):
            if algebra.negate(cond) in conditions:
                continue
            known = conditions if cond in conditions else (*conditions, cond)
            for decided, rest in _paths((*branch, *body[place + 1 :]), known):
                yield decided, (*left, *rest)
        return
    yield conditions, body


def _splits_path(stmt: If) -> bool:
    """Whether a branch is block-uniform and contains a loop or store that must not be guarded."""
    of_blocks = all(symbol.kind in ("size", "block") for symbol in symbols(stmt.cond))
    if not of_blocks or mentions(stmt.cond, (Held, Coord)):
        return False
    return any(_is_symbolic_loop(inner) or _stores_to_global(inner) for inner in walk((*stmt.then, *stmt.otherwise)))


def _is_symbolic_loop(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and not isinstance(trips(stmt), Const)


def _stores_to_global(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "global"
