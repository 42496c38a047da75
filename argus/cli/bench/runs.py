"""Runs every backend on the same queries, measures the time, and compares the answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Literal

from attrs import frozen

from argus.cli.bench.queries import Question
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers import registry
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.model import fault

Outcome = Literal["unsat", "sat", "gave up", "timed out", "wrong model", "raised"]
OUTCOMES: tuple[Outcome, ...] = ("unsat", "sat", "gave up", "timed out", "wrong model", "raised")
DEFINITE: tuple[Outcome, ...] = ("unsat", "sat")
FAULTS: tuple[Outcome, ...] = ("wrong model", "raised")
STATED = "stated"


@frozen
class Measured:
    """The result of one backend on one query. seconds: wall-clock time. reason: why there is no answer."""

    key: str
    backend: str
    outcome: Outcome
    seconds: float
    reason: str = ""


@frozen
class Tally:
    """The results of one backend on all queries. hits: cache hits on a second pass, which took `cached_seconds`."""

    backend: str
    results: tuple[Measured, ...]
    hits: int
    cached_seconds: float

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome == outcome for result in self.results)

    def times(self) -> Sequence[float]:
        """Seconds of each answered query, in ascending order."""
        return sorted(result.seconds for result in self.results if result.outcome in DEFINITE)


@frozen
class Disagreement:
    """A query with contradictory answers, by backend; STATED is the answer known in advance."""

    question: Question
    answers: tuple[tuple[str, str], ...]


def measure(questions: Sequence[Question], name: str, budget: Budget) -> Tally:
    """Run the named backend on every query, then look its answers up in a fresh cache on disk.

    Raises ArgusError: E601, E602.
    """
    solver = registry.get(name)
    results: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        for question in questions:
            measured, answer = ask(question.query, name, solver, budget)
            results.append(measured)
            if measured.outcome in DEFINITE and answer is not None:
                cache.put(question.query, answer, name)
        start = perf_counter()
        hits = sum(_found(cache, question.query, name) for question in questions)
        cached = perf_counter() - start
        cache.close()
    return Tally(name, tuple(results), hits, cached)


def ask(query: Query, name: str, solver: Solver, budget: Budget) -> tuple[Measured, Answer | None]:
    """Run a backend on one query, tolerating wrong models, time-outs and exceptions."""
    start = perf_counter()
    try:
        answer = solver.check(query, budget)
    except Exception as error:  # noqa: BLE001 reason: foreign code may raise anything
        took = perf_counter() - start
        return Measured(query.key, name, "raised", took, f"{type(error).__name__}: {error}"), None
    took = perf_counter() - start
    match answer:
        case Unsat():
            return Measured(query.key, name, "unsat", took), answer
        case Sat(model=model):
            wrong = fault(query, model)
            return Measured(query.key, name, "wrong model" if wrong else "sat", took, wrong or ""), answer
        case GaveUp(reason=reason, exhausted=exhausted):
            return Measured(query.key, name, "timed out" if exhausted else "gave up", took, reason), answer


def _found(cache: Cache, query: Query, name: str) -> bool:
    """Whether the cache has a valid answer, by a session's rule: a model must satisfy the query."""
    cached = cache.get(query, name)
    return cached is not None and (not isinstance(cached, Sat) or fault(query, cached.model) is None)


def disagreements(questions: Sequence[Question], tallies: Sequence[Tally]) -> Iterator[Disagreement]:
    """The queries for which one backend answers unsat and another sat, or where an answer contradicts the script."""
    answers = answers_by_key(tallies)
    for question in questions:
        given = [*answers.get(question.query.key, ())]
        if question.status != "unknown":
            given.append((STATED, question.status))
        if len({outcome for _, outcome in given}) > 1:
            yield Disagreement(question, tuple(given))


def answers_by_key(tallies: Sequence[Tally]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """All definite answers as (backend, answer), by query key."""
    definite = [result for tally in tallies for result in tally.results if result.outcome in DEFINITE]
    ordered = sorted(definite, key=lambda result: result.key)
    return {
        key: [(each.backend, each.outcome) for each in group]
        for key, group in groupby(ordered, key=lambda result: result.key)
    }
