"""Between which waits and barriers of the program each statement stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from argus.core.ir import Copy, For, If, Kernel, Mma, Stmt, Sync, Wait, bodies

Boundary = Wait | Sync
"""What divides a program into intervals."""
Ends = frozenset[Boundary | None]
"""Boundaries that stand next on some path; None is the begin or the end of the kernel."""
_OUTSIDE: Ends = frozenset({None})


@frozen
class Interval:
    """The boundaries that stand next before a statement and next after it, on any path."""

    before: Ends
    after: Ends


def intervals(kernel: Kernel) -> dict[Stmt, Interval]:
    """The interval of each copy, matrix product, wait and barrier."""
    ahead, behind = _Walk(backward=False), _Walk(backward=True)
    ahead.body(kernel.body, _OUTSIDE)
    behind.body(kernel.body, _OUTSIDE)
    return {stmt: Interval(ends, behind.found[stmt]) for stmt, ends in ahead.found.items()}


def products_around(found: Mapping[Stmt, Interval]) -> dict[Boundary, tuple[tuple[Mma, ...], tuple[Mma, ...]]]:
    """For each boundary the products that stand next to it: those before, and those after."""
    products = [(stmt, around) for stmt, around in found.items() if isinstance(stmt, Mma)]
    return {
        stmt: (
            tuple(each for each, around in products if stmt in around.after),
            tuple(each for each, around in products if stmt in around.before),
        )
        for stmt in found
        if isinstance(stmt, Boundary)
    }


@define
class _Walk:
    """Boundaries that reach each statement, along the program or against it."""

    backward: bool
    found: dict[Stmt, Ends] = field(factory=dict[Stmt, Ends])

    def body(self, body: Sequence[Stmt], ends: Ends) -> Ends:
        for stmt in reversed(body) if self.backward else body:
            ends = self._stmt(stmt, ends)
        return ends

    def _stmt(self, stmt: Stmt, ends: Ends) -> Ends:
        match stmt:
            case Wait() | Sync():
                self._reached(stmt, ends)
                return frozenset({stmt})
            case Copy() | Mma():
                self._reached(stmt, ends)
                return ends
            case For(body=body):
                return self._loop(body, ends)
            case If(then=then, otherwise=otherwise):
                return self.body(then, ends) | self.body(otherwise, ends)
            case _:
                return ends.union(*(self.body(part, ends) for part in bodies(stmt)))

    def _loop(self, body: Sequence[Stmt], ends: Ends) -> Ends:
        while True:
            after = ends | self.body(body, ends)
            if after == ends:
                return ends
            ends = after

    def _reached(self, stmt: Stmt, ends: Ends) -> None:
        self.found[stmt] = self.found.get(stmt, frozenset()) | ends
