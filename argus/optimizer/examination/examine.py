"""The examination: right numbers where a candidate cannot know that it is looked at, then times that add up."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from argus.optimizer.examination.bench import Bench, Candidate
from argus.optimizer.examination.inputs import Case, Shape, adversarial
from argus.optimizer.examination.session import Placed, Session, session
from argus.optimizer.examination.timing import timed
from argus.optimizer.examination.verdict import Caught, Check, Passed, Plan, Verdict
from argus.optimizer.problem import Gemm

HOSTILE = (67, 72, 136)
"""Extents of adversarial inputs."""


def examine(candidate: Candidate, problem: Gemm, bench: Bench, plan: Plan) -> Verdict:
    """The verdict on a candidate. Raises ArgusError where the device fails."""
    going = examined(candidate, problem, bench, plan)
    while True:
        try:
            next(going)
        except StopIteration as done:
            return done.value


def examined(candidate: Candidate, problem: Gemm, bench: Bench, plan: Plan) -> Generator[str, None, Verdict]:
    """As `examine`, with a note ahead of each step."""
    with session(bench, plan) as opened:
        found = yield from correct(opened, candidate, problem)
        return found if found is not None else (yield from _timed(opened, candidate, problem))


def correct(opened: Session, candidate: Candidate, problem: Gemm) -> Generator[str, None, Caught | None]:
    """What is wrong with a candidate's results; the first thing that is."""
    before = opened.bench.instruments()
    for note, caught in _looks(opened, candidate, (problem.m, problem.n, problem.k)):
        yield note
        if caught is not None:
            return caught
    return changed(opened, before)


def _timed(opened: Session, candidate: Candidate, problem: Gemm) -> Generator[str, None, Verdict]:
    before = opened.bench.instruments()
    found = yield from timed(opened, candidate, problem)
    match found:
        case Caught():
            return found
        case Passed():
            return changed(opened, before) or found


def changed(opened: Session, before: tuple[object, ...]) -> Caught | None:
    """Whether what measures is not what it was."""
    now = opened.bench.instruments()
    if opened.plan.has("instruments") and any(a is not b for a, b in zip(before, now, strict=True)):
        return Caught("instruments", "a function that reads the device or a clock was replaced")
    return None


def _looks(opened: Session, candidate: Candidate, shape: Shape) -> Iterator[tuple[str, Caught | None]]:
    draws, plan = opened.draws, opened.plan
    case, placed = draws.normal(shape), opened.place(shape)
    yield "a first call", _called(opened, candidate, placed, case, "numbers")
    yield "the same call again", _called(opened, candidate, placed, case, "poison")
    if plan.has("contents"):
        yield "other contents", _called(opened, candidate, placed, draws.normal(shape), "contents")
    if plan.has("addresses"):
        yield "other addresses", _called(opened, candidate, opened.place(shape), draws.normal(shape), "addresses")
    if plan.has("shapes"):
        for odd in draws.odd_shapes(plan.seeds):
            told = _called(opened, candidate, opened.place(odd), draws.normal(odd), "shapes")
            yield f"the shape {odd}", told
    if plan.has("adversarial"):
        for name, hostile in adversarial(draws, HOSTILE if plan.has("shapes") else shape).items():
            told = _called(opened, candidate, opened.place(hostile.shape), hostile, "adversarial")
            yield name, _of(told, name)


def _of(caught: Caught | None, name: str) -> Caught | None:
    return caught and Caught(caught.check, f"of {name} {caught.why}")


def _called(opened: Session, candidate: Candidate, placed: Placed, case: Case, check: Check) -> Caught | None:
    opened.pose(placed, case)
    call = candidate(*placed.operands)
    opened.bench.settle(everything=True)
    call()
    opened.bench.settle(everything=True)
    return opened.look(placed, case, check)
