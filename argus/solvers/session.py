"""Where questions are asked: fast paths, memory, disk, then the solver, with every model checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Literal, get_args

from attrs import define, field, frozen

from argus.core.algebra import FALSE, TRUE, all_of, negate
from argus.core.diagnostic import InternalError
from argus.core.index import And, Cond, Index, Or, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import below
from argus.solvers.base import Solver
from argus.solvers.cache import Asked, Cache
from argus.solvers.instances import instance
from argus.solvers.minimal import minimal
from argus.solvers.model import describe, fault
from argus.solvers.pinned import contradictory
from argus.solvers.slicing import cone, generalised, multiplies
from argus.solvers.witnesses import Witness, Witnesses

_NORMAL_FORM = "normal form"
_ENUMERATION = "enumerate"
_WITNESS = "an earlier model"
_TRIED = 3
_MANY = 4


@frozen
class Stats:
    """Where answers came from.

    asked: calls of `prove` and `check`, and the steps of `minimise`; one may take more than one query.
    by_normal_form: calls that needed no query. memory_hits, disk_hits: queries answered before.
    enumerated, reached_smt: queries that a backend decided by enumeration, and all others it was asked.
    gave_up: queries without a definite answer. seconds: wall clock inside the solver.
    """

    asked: int = 0
    by_normal_form: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    enumerated: int = 0
    reached_smt: int = 0
    gave_up: int = 0
    seconds: float = 0.0


_Count = Literal["asked", "by_normal_form", "memory_hits", "disk_hits", "enumerated", "reached_smt", "gave_up"]
_COUNTS: tuple[_Count, ...] = get_args(_Count)


@define
class Session:
    """A solver with a budget a query, a memory and, if given, a disk cache. Not to be shared by threads.

    Raises InternalError when a solver's model does not satisfy its query.
    """

    solver: Solver
    budget: Budget = field(factory=Budget)
    cache: Cache | None = None
    _tally: dict[_Count, int] = field(factory=lambda: dict.fromkeys(_COUNTS, 0), init=False, repr=False)
    _seconds: float = field(default=0.0, init=False, repr=False)
    _memory: dict[str, Answer] = field(factory=dict[str, Answer], init=False, repr=False)
    _put: dict[Asked, Answer] = field(factory=dict["Asked", Answer], init=False, repr=False)
    _shown: dict[Asked, Answer] = field(factory=dict["Asked", Answer], init=False, repr=False)
    _witnesses: Witnesses = field(factory=Witnesses, init=False, repr=False)
    _general: Witnesses = field(factory=Witnesses, init=False, repr=False)

    @property
    def stats(self) -> Stats:
        """Where the answers given so far came from."""
        return Stats(**self._tally, seconds=self._seconds)

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal holds whenever the hypotheses do; Sat is a counterexample to that.

        The counterexample assigns the symbols of the goal and of all hypotheses, and is the same whatever else was
        asked.
        """
        return self._recalled(hypotheses, goal, any_model=False)

    def follows(self, hypotheses: Sequence[Cond], goal: Cond) -> bool:
        """Whether `prove` proves it, for those who need no counterexample: one found for another question will do."""
        return isinstance(self._recalled(hypotheses, goal, any_model=True), Unsat)

    def _recalled(self, hypotheses: Sequence[Cond], goal: Cond, *, any_model: bool) -> Answer:
        self._tally["asked"] += 1
        if goal is TRUE:
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        asked = (tuple(hypotheses), goal)
        known = self._put.get(asked) or (self._shown.get(asked) if any_model else None)
        if known is None and self.cache is not None:
            known = self.cache.recall(asked, any_model=any_model)
        if known is not None:
            self._tally["memory_hits"] += 1
            return known
        answer = self._proved(hypotheses, goal, any_model=any_model)
        exact = not any_model or isinstance(answer, Unsat)
        (self._put if exact else self._shown)[asked] = answer
        if self.cache is not None:
            self.cache.remember(asked, answer, any_model=not exact)
        return answer

    def _proved(self, hypotheses: Sequence[Cond], goal: Cond, *, any_model: bool) -> Answer:
        pieces = _pieces(hypotheses)
        denied = negate(goal)
        if _evident(pieces, goal, denied):
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        connected, others = cone(pieces, denied)
        shown = self._witnesses.of((denied, *connected)) if any_model else None
        if shown is not None:
            self._tally["memory_hits"] += 1
        answer = self._relaxed(connected, denied) if shown is None else None
        if answer is not None:
            return answer
        if any_model:
            shown = shown or self._instantiated(connected, denied) or self._of_one_part(connected, denied)
        answer = self._answer(Query((*connected, denied))) if shown is None else Sat(_WITNESS, shown.model)
        if not isinstance(answer, Sat) or not others:
            return answer
        if any_model and self._witnesses.of(others) is not None:
            return answer
        rest = self._answer(Query(others))
        if not isinstance(rest, Sat) or any_model:
            return answer if isinstance(rest, Sat) else rest
        return self._checked(Query((*pieces, denied)), Sat(answer.solver, {**rest.model, **answer.model}))

    def _instantiated(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """An assignment that meets these, with sizes that met others: without products it is easily found."""
        if not any(map(multiplies, (*connected, denied))):
            return None
        for witness in self._witnesses.latest(_TRIED):
            made = instance((denied, *connected), witness.model)
            found = None if made is None else self._met(made[0], made[1], (denied, *connected))
            if found is not None:
                return found
        return None

    def _of_one_part(self, connected: tuple[Cond, ...], denied: Cond) -> Witness | None:
        """An assignment that meets these and the shortest part of what any part of denies."""
        if not isinstance(denied, Or) or len(denied.parts) < _MANY:
            return None
        part = min(denied.parts, key=lambda each: len(below(each)))
        return self._met((*connected, part), {}, (denied, *connected))

    def _met(
        self, narrower: tuple[Cond, ...], numbers: dict[Symbol, int], assertions: tuple[Cond, ...]
    ) -> Witness | None:
        """An assignment, with these numbers, that meets the narrower conditions; None if it meets not all of these."""
        answer = self._answer(Query(narrower))
        if not isinstance(answer, Sat):
            return None
        found = Witness({**answer.model, **numbers})
        if not found.satisfies(assertions):
            return None
        self._witnesses.add(found.model)
        return found

    def _relaxed(self, connected: tuple[Cond, ...], denied: Cond) -> Unsat | None:
        """A proof that needs no solver that multiplies."""
        linear = tuple(piece for piece in connected if not multiplies(piece))
        if not multiplies(denied):
            # Products of symbols are what solvers give up on, and a linear goal seldom needs them.
            if len(linear) < len(connected) and self._witnesses.of((denied, *linear)) is None:
                answer = self._answer(Query((*linear, denied)))
                if isinstance(answer, Unsat):
                    return answer
        else:
            # A product that plays no part but its own number needs no solver that multiplies.
            general = tuple(map(generalised, (*connected, denied)))
            if self._general.of(general) is None:
                answer = self._answer(Query(general), self._general)
                if isinstance(answer, Unsat):
                    return answer
        return None

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Whether all assertions can hold at once."""
        self._tally["asked"] += 1
        pieces = _pieces(assertions)
        if all_of(pieces) is FALSE:
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        return self._answer(Query(pieces))

    def minimise(self, assertions: Sequence[Cond], order: Sequence[Index]) -> Answer:
        """A model that makes the first expression least, then the second among those, and so on (`minimal`)."""
        return minimal(self.check, assertions, order)

    def _answer(self, query: Query, kept: Witnesses | None = None) -> Answer:
        remembered = self._memory.get(query.key)
        if remembered is not None:
            self._tally["memory_hits"] += 1
            return remembered
        answer = self._from_disk(query) or self._solve(query)
        self._memory[query.key] = answer
        if isinstance(answer, Sat):
            (self._witnesses if kept is None else kept).add(answer.model)
        return answer

    def _from_disk(self, query: Query) -> Answer | None:
        kept = self.cache.get(query) if self.cache is not None else None
        if kept is None or (isinstance(kept, Sat) and fault(query, kept.model) is not None):
            return None
        self._tally["disk_hits"] += 1
        return kept

    def _solve(self, query: Query) -> Answer:
        start = perf_counter()
        answer = self.solver.check(query, self.budget)
        enumerated = answer.solver == _ENUMERATION and not isinstance(answer, GaveUp)
        self._seconds += perf_counter() - start
        self._tally["enumerated" if enumerated else "reached_smt"] += 1
        self._tally["gave_up"] += isinstance(answer, GaveUp)
        answer = self._checked(query, answer) if isinstance(answer, Sat) else answer
        if self.cache is not None:
            self.cache.put(query, answer)
        return answer

    def _checked(self, query: Query, answer: Sat) -> Sat:
        wrong = fault(query, answer.model)
        if wrong is not None:
            raise InternalError(f"the model from {answer.solver} is wrong: {wrong}, for\n{describe(query)}")
        return answer


def _pieces(conditions: Sequence[Cond]) -> tuple[Cond, ...]:
    """The conjuncts, each once, in the order given."""
    return tuple(dict.fromkeys(piece for condition in conditions for piece in _conjuncts(condition)))


def _conjuncts(condition: Cond) -> Iterator[Cond]:
    if isinstance(condition, And):
        yield from condition.parts
    else:
        yield condition


def _evident(pieces: tuple[Cond, ...], goal: Cond, denied: Cond) -> bool:
    """Whether normal forms alone show that the goal follows."""
    if goal is TRUE or all(part in pieces for part in _conjuncts(goal)):
        return True
    return all_of((*pieces, denied)) is FALSE or contradictory(pieces, denied)
