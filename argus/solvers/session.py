"""Where questions are asked: fast paths, memory, disk, then the solver, with every model checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Literal, cast, get_args

from attrs import define, field, frozen

from argus.core.algebra import FALSE, TRUE, all_of, eq, le, negate
from argus.core.diagnostic import InternalError
from argus.core.index import And, Cond, Coord, Held, Index, Read
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import evaluate, mentions, symbols
from argus.solvers.base import Solver, definedness
from argus.solvers.cache import Asked, Cache
from argus.solvers.model import describe, fault
from argus.solvers.slicing import cone, generalised, multiplies

_NORMAL_FORM = "normal form"
_ENUMERATION = "enumerate"


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

    @property
    def stats(self) -> Stats:
        """Where the answers given so far came from."""
        return Stats(**self._tally, seconds=self._seconds)

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal holds whenever the hypotheses do; Sat is a counterexample to that.

        The counterexample assigns the symbols of the goal and of all hypotheses.
        """
        self._tally["asked"] += 1
        if goal is TRUE:
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        asked = (tuple(hypotheses), goal)
        known = self._put.get(asked) or (self.cache.recall(asked) if self.cache is not None else None)
        if known is not None:
            self._tally["memory_hits"] += 1
            return known
        answer = self._proved(hypotheses, goal)
        self._put[asked] = answer
        if self.cache is not None:
            self.cache.remember(asked, answer)
        return answer

    def _proved(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        pieces = _pieces(hypotheses)
        denied = negate(goal)
        if _evident(pieces, goal, denied):
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        connected, others = cone(pieces, denied)
        linear = tuple(piece for piece in connected if not multiplies(piece))
        if len(linear) < len(connected) and not multiplies(denied):
            # Products of symbols are what solvers give up on, and a linear goal seldom needs them.
            answer = self._answer(Query((*linear, denied)))
            if isinstance(answer, Unsat):
                return answer
        if multiplies(denied):
            # A product that plays no part but its own number needs no solver that multiplies.
            answer = self._answer(Query(tuple(map(generalised, (*connected, denied)))))
            if isinstance(answer, Unsat):
                return answer
        answer = self._answer(Query((*connected, denied)))
        if not isinstance(answer, Sat) or not others:
            return answer
        rest = self._answer(Query(others))
        if not isinstance(rest, Sat):
            return rest
        return self._checked(Query((*pieces, denied)), Sat(answer.solver, {**rest.model, **answer.model}))

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Whether all assertions can hold at once."""
        self._tally["asked"] += 1
        pieces = _pieces(assertions)
        if all_of(pieces) is FALSE:
            self._tally["by_normal_form"] += 1
            return Unsat(_NORMAL_FORM)
        return self._answer(Query(pieces))

    def minimise(self, assertions: Sequence[Cond], order: Sequence[Index]) -> Answer:
        """A model that makes the first expression least, then the second among those, and so on.

        An expression without a known lower bound is not pushed below zero; one that mentions a symbol which
        the assertions do not, or an array element, is passed over. Where the solver gives up on a step, the
        value found so far stands. The expressions must be defined: Unsat and GaveUp are those of the assertions
        together with that.
        """
        known = symbols(*assertions)
        usable = [each for each in order if symbols(each) <= known and not mentions(each, (Read, Held, Coord))]
        fixed = [*assertions, *definedness(usable)]
        best = self.check(fixed)
        if not isinstance(best, Sat):
            return best
        for expression in usable:
            best = self._least(fixed, expression, best)
            fixed.append(eq(expression, _value(expression, best)))
        return best

    def _least(self, fixed: Sequence[Cond], expression: Index, best: Sat) -> Sat:
        """Gallop up from the lower bound, then bisect: the cost grows with the least value, not the first."""
        low = expression.range[0]
        low = min(0, _value(expression, best)) if low is None else low
        step = 0
        while low < (found := _value(expression, best)):
            answer = self.check([*fixed, le(expression, min(low + step, found - 1))])
            match answer:
                case Sat():
                    best, step = answer, (_value(expression, answer) - low) // 2
                case Unsat():
                    low, step = min(low + step, found - 1) + 1, 2 * step + 1
                case GaveUp():
                    return best
        return best

    def _answer(self, query: Query) -> Answer:
        remembered = self._memory.get(query.key)
        if remembered is not None:
            self._tally["memory_hits"] += 1
            return remembered
        answer = self._from_disk(query) or self._solve(query)
        self._memory[query.key] = answer
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
    return goal is TRUE or all(part in pieces for part in _conjuncts(goal)) or all_of((*pieces, denied)) is FALSE


def _value(expression: Index, answer: Sat) -> int:
    return cast(int, evaluate(expression, answer.model))
