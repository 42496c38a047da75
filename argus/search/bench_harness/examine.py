"""Tests a candidate adversarially: checks its results on unpredictable inputs, then measures consistent times."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeVar

from argus.core.diagnostic import ArgusError
from argus.search.bench_harness.bench import Bench, Candidate
from argus.search.bench_harness.inputs import Case
from argus.search.bench_harness.session import After, Placed, Session, session
from argus.search.bench_harness.subject import Subject
from argus.search.bench_harness.timing import measure_time
from argus.search.bench_harness.verdict import Caught, Check, Passed, Plan, Verdict

T = TypeVar("T")
CheckSteps = Generator[str, None, Caught | None]
"""A check in steps: yields a note while it waits for the device, returns what is wrong or None."""


def examine(candidate: Candidate, subject: Subject, bench: Bench, plan: Plan) -> Verdict:
    """Check and time a candidate. Raises ArgusError if the device fails."""
    return run_to_end(examine_stepwise(candidate, subject, bench, plan))


def run_to_end(going: Generator[str, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(going)
        except StopIteration as done:
            return done.value


def examine_stepwise(candidate: Candidate, subject: Subject, bench: Bench, plan: Plan) -> Generator[str, None, Verdict]:
    """As `examine`; yields a note before each step."""
    with session(bench, plan, subject) as opened:
        found = yield from check_results(opened, candidate)
        return found if found is not None else (yield from measure(opened, candidate))


def check_results(opened: Session, candidate: Candidate) -> Generator[str, None, Caught | None]:
    """Check a candidate's results; returns the first failure or None."""
    before = opened.bench.instruments()
    for note, look in _checks(opened, candidate):
        yield note
        caught = yield from look
        if caught is not None:
            return caught
    return check_instruments(opened, before)


def measure(opened: Session, candidate: Candidate) -> Generator[str, None, Verdict]:
    """Measure a candidate's time, or return why the measurement is rejected."""
    before = opened.bench.instruments()
    found = yield from measure_time(opened, candidate)
    match found:
        case Caught():
            return found
        case Passed():
            return check_instruments(opened, before) or found


def check_instruments(opened: Session, before: tuple[object, ...]) -> Caught | None:
    """Check that no measuring function has been replaced."""
    now = opened.bench.instruments()
    if opened.plan.has("instruments") and any(a is not b for a, b in zip(before, now, strict=True)):
        return Caught("instruments", "a function that reads the device or a clock was replaced")
    return None


def _checks(opened: Session, candidate: Candidate) -> Iterator[tuple[str, CheckSteps]]:
    """All result checks with their notes."""
    draws, plan, subject = opened.draws, opened.plan, opened.subject
    sizes = subject.sizes
    case, placed = subject.normal(draws, sizes), opened.place(sizes)
    yield "a first call", _check_call(opened, candidate, placed, case, "numbers")
    yield "the same call again", _check_call(opened, candidate, placed, case, "poison")
    if plan.has("contents"):
        yield "other contents", _check_call(opened, candidate, placed, subject.normal(draws, sizes), "contents")
    if plan.has("addresses"):
        elsewhere = opened.place(sizes)
        yield "other addresses", _check_call(opened, candidate, elsewhere, subject.normal(draws, sizes), "addresses")
    if plan.has("shapes"):
        for unseen in subject.unseen(draws, plan.seeds):
            other = subject.normal(draws, unseen)
            yield f"the sizes {other.at}", _unless_declined(opened, candidate, other, "shapes")
    if plan.has("adversarial"):
        for name, hostile in subject.adversarial(draws, None if plan.has("shapes") else sizes).items():
            yield name, _prefixed(_at_own_sizes(opened, candidate, hostile, name), name)


def _prefixed(look: CheckSteps, name: str) -> CheckSteps:
    caught = yield from look
    return caught and Caught(caught.check, f"of {name} {caught.why}")


def _unless_declined(opened: Session, candidate: Candidate, case: Case, check: Check) -> CheckSteps:
    """As `_check_call`; passes if the candidate refuses the shape (E405)."""
    try:
        return (yield from _check_call(opened, candidate, opened.place(case.sizes), case, check))
    except ArgusError as problem:
        if problem.diagnostic.code != "E405":
            raise
        return None


def _at_own_sizes(opened: Session, candidate: Candidate, case: Case, name: str) -> CheckSteps:
    """As `_check_call` of adversarial contents; at the problem's own sizes if the candidate refuses others (E405)."""
    try:
        return (yield from _check_call(opened, candidate, opened.place(case.sizes), case, "adversarial"))
    except ArgusError as problem:
        if problem.diagnostic.code != "E405" or case.sizes == opened.subject.sizes:
            raise
    own = opened.subject.adversarial(opened.draws, opened.subject.sizes)[name]
    return (yield from _check_call(opened, candidate, opened.place(own.sizes), own, "adversarial"))


def _check_call(opened: Session, candidate: Candidate, placed: Placed, case: Case, check: Check) -> CheckSteps:
    def step() -> After:
        opened.prepare(placed, case)
        call = candidate(*placed.operands)
        opened.bench.synchronise(everything=True)
        call()
        opened.bench.synchronise(everything=True)
        return opened.after(placed, outputs=False)

    after = yield from opened.exclusively(step)
    return opened.check_call(after, placed, case, check)
