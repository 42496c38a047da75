"""What a solver is asked and what it answers: conditions over symbols, nothing of GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from argus.core.index import Cond, Symbol, digest_of
from argus.core.walk import symbols


@frozen
class Query:
    """Is there an assignment of the symbols, within their ranges, under which all assertions hold?"""

    assertions: tuple[Cond, ...]

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols to assign, by name."""
        return tuple(sorted(symbols(*self.assertions), key=lambda s: (s.name, s.kind)))

    @property
    def key(self) -> str:
        """A name for the question, equal in every process: its structure, not the order it was built in."""
        return digest_of("query", *sorted(a.digest for a in self.assertions)).hex()


@frozen
class Budget:
    """How much one query may cost.

    seconds: wall clock after which a backend must give up.
    points: how many assignments the enumerating backend may try.
    seed: the seed of every randomised heuristic.
    """

    seconds: float = 10.0
    points: int = 1 << 20
    seed: int = 0


@frozen
class Unsat:
    """No assignment exists: the negated goal is impossible."""

    solver: str


def _copied(model: Mapping[Symbol, int]) -> Mapping[Symbol, int]:
    return dict(model)


@frozen
class Sat:
    """An assignment, one integer for every symbol of the query."""

    solver: str
    model: Mapping[Symbol, int] = field(converter=_copied)


@frozen
class GaveUp:
    """Neither: out of budget, or a construct the backend has no meaning for."""

    solver: str
    reason: str


Answer = Unsat | Sat | GaveUp
