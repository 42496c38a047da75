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


STEPS_PER_SECOND = 5_000_000
"""Resource units (`rlimit`) that Z3 spends in about one second of an idle core."""
RUNS_PER_SECOND = 50
"""Runs of the interpreter that a search makes in about one second of an idle core."""
NOMINAL_SECONDS = 10.0
"""What the default budget comes to on an idle core, for a query and for a search."""
_NET = 12
"""How much longer than on an idle core a query or a search may take."""


@frozen
class Budget:
    """How much one query may cost, and the search for one counterexample.

    Resources are counted, not timed, so that a verdict is the same on a busy machine. The clock is a safety net.

    steps: resource units of Z3 (`rlimit`) that a query may use; a backend with other units scales them.
    runs: runs of the interpreter that may look for a counterexample.
    points: assignments that the enumerating backend may try.
    seconds: wall clock after which a query or a search is given up, whatever it has counted.
    seed: the seed of every randomised heuristic.
    """

    steps: int = round(NOMINAL_SECONDS * STEPS_PER_SECOND)
    runs: int = round(NOMINAL_SECONDS * RUNS_PER_SECOND)
    points: int = 1 << 20
    seconds: float = _NET * NOMINAL_SECONDS
    seed: int = 0

    @classmethod
    def about(cls, seconds: float) -> Budget:
        """What an idle core uses up in about so many seconds a query, and in about as many for a counterexample."""
        counts = (max(1, round(seconds * each)) for each in (STEPS_PER_SECOND, RUNS_PER_SECOND))
        return cls(*counts, seconds=_NET * max(seconds, NOMINAL_SECONDS))


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
    """Neither: out of budget (`exhausted`), or a construct the backend has no meaning for."""

    solver: str
    reason: str
    exhausted: bool = False


Answer = Unsat | Sat | GaveUp
