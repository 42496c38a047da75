"""Answers to queries from memory, then disk, then the solver; every model is checked."""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import Literal, get_args

from attrs import define, evolve, field, frozen

from argus.core.diagnostic import InternalError
from argus.core.index import Cond
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Solver, identity
from argus.solvers.cache import Cache
from argus.solvers.incremental import opened
from argus.solvers.model import describe, fault
from argus.solvers.portfolio import believes_stored
from argus.solvers.session.witnesses import Witness, Witnesses

_ENUMERATION = "enumerate"


@frozen
class Stats:
    """Counts of a session's answers by their source.

    asked: calls of `prove`, `follows` and `check`, goals of `prove_each`, and steps of `minimise`; each may take
    several queries. by_normal_form: calls that needed no query. memory_hits, disk_hits: queries answered from a cache,
    or by an earlier model. enumerated, reached_smt: queries that a backend decided by enumeration, and all other
    queries sent to a backend. gave_up: queries without a definite answer. seconds: wall-clock time inside the solver.
    """

    asked: int = 0
    by_normal_form: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    enumerated: int = 0
    reached_smt: int = 0
    gave_up: int = 0
    seconds: float = 0.0


class OutOfTime(Exception):  # noqa: N818 reason: it ends one verification, as a result
    """The processor's time for a whole proof (`Budget.total`) is spent."""


Count = Literal["asked", "by_normal_form", "memory_hits", "disk_hits", "enumerated", "reached_smt", "gave_up"]
_COUNTS: tuple[Count, ...] = get_args(Count)


@define(eq=False)
class Answers:
    """One solver's answers to one session's queries.

    identity: of the solver, for the cache. stored: the cache, if the solver believes what is on disk. witnesses: models
    of earlier queries, which may satisfy later ones too.
    """

    solver: Solver
    budget: Budget
    cache: Cache | None
    identity: str = field(init=False)
    stored: Cache | None = field(init=False)
    witnesses: Witnesses = field(factory=Witnesses, init=False)
    _tally: dict[Count, int] = field(factory=lambda: dict.fromkeys(_COUNTS, 0), init=False)
    _seconds: float = field(default=0.0, init=False)
    _begun: float = field(factory=thread_time, init=False)
    _memory: dict[frozenset[Cond], Answer] = field(factory=dict["frozenset[Cond]", Answer], init=False)
    _any_model: dict[frozenset[Cond], Answer] = field(factory=dict["frozenset[Cond]", Answer], init=False)
    """Answers whose model depends on the queries asked before."""
    _opened: Solver | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.identity = identity(self.solver)
        self.stored = self.cache if self.identity and believes_stored(self.solver) else None
        self._opened = opened(self.solver)

    @property
    def stats(self) -> Stats:
        return Stats(**self._tally, seconds=self._seconds)

    def asked(self) -> None:
        """Count a question. Raises OutOfTime where the proof has no time left."""
        if thread_time() - self._begun > self.budget.total:
            raise OutOfTime
        self.count("asked")

    def count(self, what: Count) -> None:
        self._tally[what] += 1

    def answer(
        self, query: Query, *, steps: int | None = None, store: Witnesses | None = None, any_model: bool = False
    ) -> Answer:
        """The answer within the budget.

        steps: a lower step limit. store: records the model, not `witnesses`. any_model: the model may depend on the
        queries asked before.
        """
        key = frozenset(query.assertions)
        cached = self._memory.get(key) or (self._any_model.get(key) if any_model else None)
        if cached is not None:
            self.count("memory_hits")
            return cached
        budget = self.budget if steps is None else evolve(self.budget, steps=min(steps, self.budget.steps))
        answer = self._from_disk(query, any_model=any_model) or self._solve(query, budget, any_model=any_model)
        if budget == self.budget or not isinstance(answer, GaveUp):
            (self._any_model if any_model and isinstance(answer, Sat) else self._memory)[key] = answer
        if isinstance(answer, Sat):
            (self.witnesses if store is None else store).add(Witness(dict(answer.model), answer.elements))
        return answer

    def checked(self, query: Query, answer: Sat) -> Sat:
        """Returns the answer; raises InternalError where its model does not satisfy the query."""
        wrong = fault(query, answer.model)
        if wrong is not None:
            raise InternalError(f"the model from {answer.solver} is wrong: {wrong}, for\n{describe(query)}")
        return answer

    def _from_disk(self, query: Query, *, any_model: bool) -> Answer | None:
        names = (self.identity, self._for_any_model) if any_model else (self.identity,)
        found = (self.stored.get(query, name) for name in names) if self.stored is not None else ()
        stored = next((each for each in found if each is not None), None)
        if stored is None or (isinstance(stored, Sat) and fault(query, stored.model) is not None):
            return None
        self.count("disk_hits")
        return stored

    @property
    def _for_any_model(self) -> str:
        """The identity under which models are stored that depend on the queries asked before."""
        return f"{self.identity} any model"

    def _solve(self, query: Query, budget: Budget, *, any_model: bool) -> Answer:
        start = perf_counter()
        answer = None if self._opened is None else self._opened.check(query, budget)
        alone = answer is None or isinstance(answer, GaveUp) or (isinstance(answer, Sat) and not any_model)
        if answer is None or alone:
            answer = self.solver.check(query, budget)
        enumerated = answer.solver == _ENUMERATION and not isinstance(answer, GaveUp)
        self._seconds += perf_counter() - start
        self.count("enumerated" if enumerated else "reached_smt")
        if isinstance(answer, GaveUp):
            self.count("gave_up")
        answer = self.checked(query, answer) if isinstance(answer, Sat) else answer
        if self.stored is not None:
            canonical = alone or isinstance(answer, Unsat)
            self.stored.put(query, answer, self.identity if canonical else self._for_any_model)
        return answer
