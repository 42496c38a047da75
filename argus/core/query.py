"""Satisfiability queries over integer symbols, their budgets and their answers; independent of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from attrs import field, frozen

from argus.core.index import Cond, Symbol, digest_of
from argus.core.walk import symbols


@frozen
class Query:
    """A satisfiability query: is there an assignment of the symbols, within their ranges, satisfying all assertions?"""

    assertions: tuple[Cond, ...]

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols to assign, sorted by name."""
        return tuple(sorted(symbols(*self.assertions), key=lambda s: (s.name, s.kind)))

    @property
    def key(self) -> str:
        """A hash of the query's structure, independent of the process and of the order of assertions."""
        return digest_of("query", *sorted(a.digest for a in self.assertions)).hex()


STEPS_PER_SECOND = 5_000_000
"""Resource units (`rlimit`) that Z3 spends in about one second on an idle core."""
RUNS_PER_SECOND = 50
"""Runs of the interpreter that a search makes in about one second on an idle core."""
TERMS_PER_SECOND = 500_000
"""Terms of polynomials and their factors that normal forms may go through for each nominal second of a budget.

They go through 100,000 to 500,000 in a second: the more there is in tests, the fewer. Attention in a window whose
scores have a cap is proved with 3,900,000 in all, in 11 seconds.
"""
NOMINAL_SECONDS = 10.0
"""Duration of the default budget on an idle core, of a query and of a search."""
_TIMEOUT_FACTOR = 12
"""The timeout of a query or a search, as a multiple of its nominal duration on an idle core."""


@frozen
class Budget:
    """Limits of one query and of the search for one counterexample.

    Resources are counted, not timed, so that a verdict does not depend on the load of the machine. The timeout is
    only a safety net.

    steps: resource units of Z3 (`rlimit`) per query; a backend with other units scales them.
    runs: runs of the interpreter per search for a counterexample.
    points: assignments that the enumerating backend may try.
    terms: terms of polynomials, and their factors, that normal forms of values may go through in one proof.
    seconds: timeout (wall clock) of a query or a search, whatever it has counted.
    total: seconds of the processor, in the proving thread, for the proof of a kernel or a program; without a limit
    unless something waits for it. A machine that does other work, too, finds the same verdict later.
    seed: the seed of every randomised heuristic.
    """

    steps: int = round(NOMINAL_SECONDS * STEPS_PER_SECOND)
    runs: int = round(NOMINAL_SECONDS * RUNS_PER_SECOND)
    points: int = 1 << 20
    terms: int = round(NOMINAL_SECONDS * TERMS_PER_SECOND)
    seconds: float = _TIMEOUT_FACTOR * NOMINAL_SECONDS
    total: float = inf
    seed: int = 0

    def within(self, other: Budget) -> bool:
        """Whether another budget has at least as much of everything, so that what fails with it fails with this one."""
        mine, more = (
            (each.steps, each.runs, each.points, each.terms, each.seconds, each.total) for each in (self, other)
        )
        return self.seed == other.seed and all(one <= two for one, two in zip(mine, more, strict=True))

    @classmethod
    def about(cls, seconds: float) -> Budget:
        """The budget that an idle core uses up in about `seconds` per query and per search for a counterexample."""
        steps, runs, terms = (
            max(1, round(seconds * each)) for each in (STEPS_PER_SECOND, RUNS_PER_SECOND, TERMS_PER_SECOND)
        )
        return cls(steps, runs, terms=terms, seconds=_TIMEOUT_FACTOR * max(seconds, NOMINAL_SECONDS))


@frozen
class Unsat:
    """No assignment exists, so the negated goal is impossible."""

    solver: str


Elements = Mapping[tuple[str, tuple[int, ...]], int]
"""Integers by the name of an array and the index."""


def _copied(model: Mapping[Symbol, int]) -> Mapping[Symbol, int]:
    return dict(model)


@frozen
class Sat:
    """A model: one integer for every symbol of the query.

    elements: what array elements are, by name and index; not all solvers say.
    """

    solver: str
    model: Mapping[Symbol, int] = field(converter=_copied)
    elements: Elements = field(factory=dict[tuple[str, tuple[int, ...]], int], eq=False)


@frozen
class GaveUp:
    """Undecided: the budget is spent (`exhausted`), or the backend does not support a construct."""

    solver: str
    reason: str
    exhausted: bool = False


Answer = Unsat | Sat | GaveUp
