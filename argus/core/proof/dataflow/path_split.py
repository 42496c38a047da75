"""A kernel whose blocks differ in what they do at all: one line of statements for each way that branches go.

A branch on the block's number, on sizes and on integers that nobody writes goes one way for all threads of a block and
all of its time. So a kernel `if c: one else: two` is, block by block, the one or the other: each is analysed alone
with c, or its opposite, as a fact. Branches within loops stay conditions of single statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Coord, Held
from argus.core.ir import Copy, For, If, Kernel, Stmt, trips, walk
from argus.core.walk import mentions, symbols

_MOST = 8


@frozen(eq=False)
class ControlPath:
    """One way through a kernel: what decides it, in order, and the statements of the blocks for which it holds.

    Where a branch was decided its condition is left behind, in a branch without statements: it is computed.
    """

    kernel: Kernel
    given: tuple[Cond, ...]


def control_paths(kernel: Kernel) -> tuple[ControlPath, ...]:
    """The ways through a kernel without roles; the kernel as it is where there are too many."""
    found: list[ControlPath] = []
    for given, body in _ways(kernel.body, ()):
        if len(found) >= _MOST:
            return (ControlPath(kernel, ()),)
        found.append(ControlPath(evolve(kernel, prologue=body, roles=None, epilogue=()) if given else kernel, given))
    return tuple(found)


def _ways(body: tuple[Stmt, ...], given: tuple[Cond, ...]) -> Iterator[tuple[tuple[Cond, ...], tuple[Stmt, ...]]]:
    for place, stmt in enumerate(body):
        if not isinstance(stmt, If) or not _decides(stmt):
            continue
        left = (*body[:place], evolve(stmt, then=(), otherwise=()))
        for cond, branch in ((stmt.cond, stmt.then), (algebra.negate(stmt.cond), stmt.otherwise)):
            if algebra.negate(cond) in given:
                continue
            known = given if cond in given else (*given, cond)
            for decided, rest in _ways((*branch, *body[place + 1 :]), known):
                yield decided, (*left, *rest)
        return
    yield given, body


def _decides(stmt: If) -> bool:
    """Whether a branch is one of whole blocks, and holds what has no meaning under a condition."""
    of_blocks = all(symbol.kind in ("size", "block") for symbol in symbols(stmt.cond))
    if not of_blocks or mentions(stmt.cond, (Held, Coord)):
        return False
    return any(_long(inner) or _stores(inner) for inner in walk((*stmt.then, *stmt.otherwise)))


def _long(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and not isinstance(trips(stmt), Const)


def _stores(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "global"
