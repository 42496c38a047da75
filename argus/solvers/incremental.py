"""Checks of related queries on one stack of assertions: what a query shares with the one before it stays asserted.

Most queries of a proof differ from the one before in their goal and a few hypotheses. A definite answer is the same as
that of a solver without a stack; a model, and whether the solver gives up, may depend on the queries asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

from attrs import define, evolve, field, frozen

from argus.core.index import Cond, Symbol
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities, Solver
from argus.solvers.smtlib.build import Term, TermMaker, build_term
from argus.solvers.smtlib.shared import Asserted, SharedLowering
from argus.solvers.smtlib.writer import InexpressibleError

_SOON = STEPS_PER_SECOND // 10
"""The step limit of a check on a stack: what is not decided soon is asked of a solver without one."""
_SECONDS = 0.5
"""The same in wall-clock time: now and then Z3 loops on a stack in steps that it does not count."""
_MOST_STEPS = 20_000
"""Steps of the lowered form to keep, and so terms of the solver; beyond, it begins anew."""


@runtime_checkable
class Incremental(Protocol):
    """A solver that can keep assertions from one check to the next."""

    def opened(self) -> Solver | None:
        """A solver for one thread that decides the same queries, and may give up sooner; None if there is none.

        Models, and what it gives up on, may depend on its earlier checks.
        """
        ...


def opened(solver: Solver) -> Solver | None:
    """The solver with a stack of assertions, if it has one."""
    return solver.opened() if isinstance(solver, Incremental) else None


class Stack(Protocol):
    """A solver's terms and its stack of assertions."""

    @property
    def make(self) -> TermMaker: ...

    def push(self, terms: Sequence[Term]) -> None:
        """Assert these terms, one level above what is asserted."""
        ...

    def pop(self, levels: int) -> None: ...

    def check(self, budget: Budget) -> bool | None:
        """Whether all that is asserted is satisfiable; None if the solver gives up."""
        ...

    def number(self, term: Term) -> int:
        """What the model of the last check gives a term."""
        ...


@frozen(eq=False)
class _Level:
    """Conditions asserted at once, and the steps that this asserts first. None: what holds of elements together."""

    conditions: frozenset[Cond | None]
    steps: frozenset[int]


@define(eq=False)
class OnStack:
    """A solver on one stack. begin: a new, empty stack."""

    name: str
    capabilities: Capabilities
    _begin: Callable[[], Stack]
    _stack: Stack | None = field(default=None, init=False)
    _lowering: SharedLowering = field(factory=SharedLowering, init=False)
    _terms: list[Term] = field(factory=list[Term], init=False)
    _levels: list[_Level] = field(factory=list[_Level], init=False)

    def check(self, query: Query, budget: Budget) -> Answer:
        """As `Solver.check`, within few steps."""
        stack, self._stack = self._stack, None  # an interrupt leaves a stack that is not known: begin anew
        if stack is None or len(self._terms) > _MOST_STEPS:
            stack = self._begin()
            self._lowering, self._terms, self._levels = SharedLowering(), [], []
        try:
            parts = [self._lowering.of(each) for each in query.assertions]
        except InexpressibleError as error:
            self._stack = stack
            return GaveUp(self.name, str(error))
        elements = [each for part in parts for each in part.elements]
        together = tuple(self._lowering.agreements(elements))
        for step in self._lowering.steps[len(self._terms) :]:
            self._terms.append(build_term(step, self._terms, stack.make))
        self._assert(stack, query.assertions, parts, together)
        found = stack.check(evolve(budget, steps=min(_SOON, budget.steps), seconds=min(_SECONDS, budget.seconds)))
        answer = self._answer(stack, found, parts)
        self._stack = None if found is None else stack  # what it has learned may mislead it again
        return answer

    def _assert(
        self, stack: Stack, conditions: Sequence[Cond], parts: Sequence[Asserted], together: tuple[int, ...]
    ) -> None:
        """Asserts the conditions, and what holds of their elements together, and nothing else."""
        wanted: dict[Cond | None, tuple[int, ...]] = {
            each: part.steps for each, part in zip(conditions, parts, strict=True)
        }
        kept = 0
        while kept < len(self._levels) and self._levels[kept].conditions <= wanted.keys():
            kept += 1
        left = frozenset(chain.from_iterable(level.conditions for level in self._levels[kept:]))
        if kept < len(self._levels):
            stack.pop(len(self._levels) - kept)
            del self._levels[kept:]
        held = set(chain.from_iterable(level.steps for level in self._levels))
        known = frozenset(chain.from_iterable(level.conditions for level in self._levels))
        new = [each for each in wanted if each not in known]
        # A level costs as much as several assertions: one for what is asserted again, and may be next time, one for
        # what is new, and one for the goal, which comes last.
        again = [each for each in new[:-1] if each in left]
        groups = again, [each for each in new[:-1] if each not in left], new[-1:]
        if together:
            wanted[None], groups = together, (*groups, [None])
        for group in filter(None, groups):
            steps = dict.fromkeys(step for each in group for step in wanted[each] if step not in held)
            held.update(steps)
            self._levels.append(_Level(frozenset(group), frozenset(steps)))
            stack.push([self._terms[step] for step in steps])

    def _answer(self, stack: Stack, satisfiable: bool | None, parts: Sequence[Asserted]) -> Answer:
        if satisfiable is None:
            return GaveUp(self.name, f"{self.name} answers unknown: few steps", exhausted=True)
        if not satisfiable:
            return Unsat(self.name)

        def value(step: int) -> int:
            return stack.number(self._terms[step])

        symbols: dict[Symbol, int] = {symbol: step for part in parts for symbol, step in part.symbols}
        elements = {each: each for part in parts for each in part.elements if each.sort == "read"}
        return Sat(
            self.name,
            {symbol: value(step) for symbol, step in symbols.items()},
            {(each.array, tuple(map(value, each.at))): value(each.value) for each in elements},
        )
