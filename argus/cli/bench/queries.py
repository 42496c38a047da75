"""Collects the verifier's solver queries, from kernels or SMT-LIB scripts, and narrows them for every backend."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from argus.core.algebra import sym
from argus.core.diagnostic import ArgusError
from argus.core.index import Symbol
from argus.core.ir import Kernel
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import substitute
from argus.solvers.base import Capabilities, Solver
from argus.solvers.smtlib.reader import read_script
from argus.solvers.smtlib.script import Status
from argus.verifier.kernel import verify
from argus.verifier.loader import load

POINTS = 1 << 14
"""Most assignments of a narrowed query: few enough to enumerate."""

_NO_KERNEL = "E004"
_WITHOUT_BOUND = 1 << 62


# -- the queries -----------------------------------------------------------------------------------------


@frozen
class Question:
    """A query with its origin and its known answer.

    asked_by: kernels whose verification asks it, or its script. times: how often it is asked. status: the answer that
    its script states, or that the solver gave during verification. near: values of its symbols that satisfy most
    assertions; empty if none are known.
    """

    query: Query
    asked_by: tuple[str, ...]
    times: int = 1
    status: Status = "unknown"
    near: Mapping[Symbol, int] = field(factory=dict[Symbol, int], eq=False)


@frozen
class Corpus:
    """Distinct queries in the order of their first occurrence. skipped: kernels that could not be analysed, and why."""

    questions: tuple[Question, ...]
    kernels: int
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def asked(self) -> int:
        return sum(question.times for question in self.questions)


def shipped() -> tuple[str, ...]:
    """The modules of the shipped kernels."""
    spec = importlib.util.find_spec("argus.kernels")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return tuple(f"argus.kernels.{module.name}" for module in pkgutil.iter_modules(folders))


def checkout() -> tuple[str, ...]:
    """The folders of the test corpus, if the package runs from a source checkout."""
    corpus = Path(__file__).resolve().parents[3] / "tests" / "corpus"
    return tuple(str(corpus / kind) for kind in ("proved", "refuted", "unknown", "traced") if (corpus / kind).is_dir())


def collect(sources: Iterable[str], solver: Solver, budget: Budget) -> Corpus:
    """The verifier's queries for each kernel of the given files, modules and folders.

    A file without kernels has no queries; a kernel that cannot be traced or analysed is skipped with the reason.
    """
    recorded: list[tuple[str, Query, Answer]] = []
    skipped: list[tuple[str, str]] = []
    kernels = 0
    for source in sources:
        for name in _files(source):
            try:
                for exported in load(name):
                    asked = record(exported.trace(), solver, budget)
                    recorded += ((f"{name}:{exported.name}", query, answer) for query, answer in asked)
                    kernels += 1
            except ArgusError as problem:
                if problem.diagnostic.code != _NO_KERNEL:
                    skipped.append((name, str(problem)))
    return Corpus(_distinct(recorded), kernels, tuple(skipped))


def record(kernel: Kernel, solver: Solver, budget: Budget) -> Sequence[tuple[Query, Answer]]:
    """Every solver query of a kernel's verification, with its answer.

    Counterexamples are not replayed: verification asks all its queries before it runs the interpreter.
    """
    recorder = _Recorder(solver, budget)
    verify(kernel, solver=recorder, budget=Budget(runs=0))
    return recorder.asked


@define
class _Recorder:
    solver: Solver
    budget: Budget
    asked: list[tuple[Query, Answer]] = field(factory=list[tuple[Query, Answer]])

    @property
    def name(self) -> str:
        return self.solver.name

    @property
    def capabilities(self) -> Capabilities:
        return self.solver.capabilities

    def check(self, query: Query, budget: Budget) -> Answer:  # noqa: ARG002 reason: the verifier's budget has no time limit
        answer = self.solver.check(query, self.budget)
        self.asked.append((query, answer))
        return answer


def _files(source: str) -> Sequence[str]:
    path = Path(source)
    return [str(each) for each in sorted(path.glob("*.py"))] if path.is_dir() else [source]


def _distinct(recorded: Iterable[tuple[str, Query, Answer]]) -> tuple[Question, ...]:
    found: dict[str, Question] = {}
    for name, query, answer in recorded:
        known = found.get(query.key)
        if known is None:
            near: Mapping[Symbol, int] = answer.model if isinstance(answer, Sat) else {}
            found[query.key] = Question(query, (name,), 1, status_of(answer), near)
        else:
            names = tuple(dict.fromkeys((*known.asked_by, name)))
            found[query.key] = evolve(known, asked_by=names, times=known.times + 1)
    return tuple(found.values())


def status_of(answer: Answer) -> Status:
    match answer:
        case Unsat():
            return "unsat"
        case Sat():
            return "sat"
        case GaveUp():
            return "unknown"


def scripts(folder: Path) -> Corpus:
    """The queries of a folder of SMT-LIB scripts. Raises ArgusError (E603) for a script that is no query; OSError."""
    questions: list[Question] = []
    for path in sorted(folder.glob("*.smt2")):
        script = read_script(path.read_text(encoding="utf-8"), str(path))
        questions.append(Question(script.query, (str(path),), 1, script.status))
    return Corpus(tuple(questions), 0)


# -- narrowed queries ------------------------------------------------------------------------------------


def narrowed(question: Question, solver: Solver, budget: Budget, points: int = POINTS) -> Question:
    """The query with each symbol restricted to a few values, at most `points` assignments in all.

    The values lie around a model of the query, or else around a model of all assertions but the last, which is the
    negated goal, so that the hypotheses are satisfiable.
    """
    query = question.query
    near: Mapping[Symbol, int] = question.near
    if not near and query.assertions:
        almost = solver.check(Query(query.assertions[:-1]), budget)
        near = almost.model if isinstance(almost, Sat) else {}
    left = points
    ranges: dict[Symbol, Symbol] = {}
    by_size = sorted(query.symbols, key=lambda symbol: (_size(symbol), symbol.name, symbol.kind))
    for place, symbol in enumerate(by_size):
        width = max(1, min(_size(symbol), int(left ** (1 / (len(by_size) - place)) + 1e-9)))
        ranges[symbol] = _window(symbol, near.get(symbol, 0), width)
        left //= width
    replaced = {symbol: sym(narrow) for symbol, narrow in ranges.items()}
    small = Query(tuple(substitute(assertion, replaced) for assertion in query.assertions))
    return Question(small, question.asked_by, question.times, "unsat" if question.status == "unsat" else "unknown")


def _size(symbol: Symbol) -> int:
    if symbol.low is None or symbol.high is None:
        return _WITHOUT_BOUND
    return symbol.high - symbol.low + 1


def _window(symbol: Symbol, middle: int, width: int) -> Symbol:
    low = middle - width // 2
    if symbol.high is not None:
        low = min(low, symbol.high - width + 1)
    if symbol.low is not None:
        low = max(low, symbol.low)
    high = low + width - 1
    return evolve(symbol, low=low, high=high if symbol.high is None else min(high, symbol.high))
