"""Composite backends: a portfolio that takes the first definite answer, and a cross-check of all backends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, evolve, field, frozen

from argus.core.diagnostic import InternalError
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities, Solver, identity
from argus.solvers.enumeration import Enumerate
from argus.solvers.incremental import opened
from argus.solvers.model import describe
from argus.solvers.registry import Deferred

_SMALL = 4096


def _union(backends: Iterable[Solver]) -> Capabilities:
    each = [backend.capabilities for backend in backends]
    return Capabilities(
        unbounded=any(c.unbounded for c in each),
        nonlinear=any(c.nonlinear for c in each),
        bitwise=any(c.bitwise for c in each),
        reads=any(c.reads for c in each),
    )


def _versions(backends: Iterable[Solver]) -> str:
    """The identities of all backends; empty if one of them is unknown."""
    each = [identity(backend) for backend in backends]
    return f"({', '.join(each)})" if all(each) else ""


@frozen
class Portfolio:
    """Enumerates small queries; otherwise asks the backends in order, then enumerates up to the budget.

    The first definite answer is returned, under the name of the backend that gave it. Each backend gets an equal
    share of the steps and the time, so that a slow one leaves some for the others.
    """

    backends: tuple[Solver, ...] = field(converter=tuple[Solver, ...])
    name: str = "portfolio"

    @property
    def capabilities(self) -> Capabilities:
        return _union((Enumerate(), *self.backends))

    @property
    def version(self) -> str:
        return _versions((Enumerate(), *self.backends))

    def check(self, query: Query, budget: Budget) -> Answer:
        small = evolve(budget, points=min(budget.points, _SMALL))
        answer = Enumerate().check(query, small)
        if not isinstance(answer, GaveUp):
            return answer
        of = len(self.backends) + 1
        share = evolve(budget, steps=max(1, budget.steps // of), seconds=budget.seconds / of)
        reasons: list[GaveUp] = []
        for backend in (*self.backends, Enumerate()):
            answer = backend.check(query, share)
            if not isinstance(answer, GaveUp):
                return answer
            reasons.append(answer)
        return GaveUp(self.name, _join(reasons), any(each.exhausted for each in reasons))

    def opened(self) -> Solver:
        """The same for small queries; then the first backend that has a stack of assertions."""
        return _OpenedPortfolio(self)


@define(eq=False)
class _OpenedPortfolio:
    of: Portfolio
    _first: list[Solver] | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def capabilities(self) -> Capabilities:
        return self.of.capabilities

    def check(self, query: Query, budget: Budget) -> Answer:
        answer = Enumerate().check(query, evolve(budget, points=min(budget.points, _SMALL)))
        if not isinstance(answer, GaveUp):
            return answer
        if self._first is None:  # which imports the backend
            self._first = [each for each in map(opened, self.of.backends) if each is not None][:1]
        return self._first[0].check(query, budget) if self._first else answer


@frozen
class Everyone:
    """Asks every backend, each with the whole budget, and compares their answers.

    Returns the first definite answer. Raises InternalError, with both answers and the query, when one backend
    answers sat and another unsat: a bug in one of the backends or in their common lowering.
    """

    backends: tuple[Solver, ...] = field(converter=tuple[Solver, ...])
    name: str = "all"

    @property
    def capabilities(self) -> Capabilities:
        return _union(self.backends)

    @property
    def version(self) -> str:
        return _versions(self.backends)

    def check(self, query: Query, budget: Budget) -> Answer:
        answers = [backend.check(query, budget) for backend in self.backends]
        models = [answer for answer in answers if isinstance(answer, Sat)]
        refusals = [answer for answer in answers if isinstance(answer, Unsat)]
        if models and refusals:
            raise InternalError(_disagreement(query, models[0], refusals[0]))
        definite = [answer for answer in answers if not isinstance(answer, GaveUp)]
        if definite:
            return definite[0]
        reasons = [answer for answer in answers if isinstance(answer, GaveUp)]
        return GaveUp(self.name, _join(reasons), any(each.exhausted for each in reasons))


def _join(reasons: Sequence[GaveUp]) -> str:
    return "; ".join(f"{each.solver}: {each.reason}" for each in reasons)


def _disagreement(query: Query, model: Sat, refusal: Unsat) -> str:
    values = ", ".join(f"{s.name}={v}" for s, v in sorted(model.model.items(), key=lambda item: item[0].name))
    return (
        f"solvers disagree: {model.solver} finds a model ({values or 'no symbols'}), "
        f"{refusal.solver} proves that there is none, for\n{describe(query)}"
    )


def portfolio() -> Portfolio:
    """Z3, then cvc5, each imported on first use; enumeration before and after."""
    return Portfolio(_deferred())


def everyone() -> Everyone:
    """Z3, cvc5 and enumeration, checked against each other."""
    return Everyone((*_deferred(), Enumerate()))


def _deferred() -> tuple[Solver, ...]:
    return Deferred("z3", "z3-solver"), Deferred("cvc5", "cvc5")


def believes_stored(solver: Solver) -> bool:
    """Whether a solver takes answers from disk, which may be another's: the portfolio, which asks any of its backends.

    A solver that a user names, and `all`, which compares answers, answer each query themselves.
    """
    return isinstance(solver, Portfolio)
