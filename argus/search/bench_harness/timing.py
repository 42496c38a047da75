"""Measures the time of calls on unseen inputs with checked outputs, by two independent clocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from statistics import median
from typing import TypeVar

from attrs import frozen

from argus.policy.bounds import TOLERANCE
from argus.search.bench_harness.bench import Call, Candidate
from argus.search.bench_harness.inputs import Case
from argus.search.bench_harness.session import After, Placed, Session
from argus.search.bench_harness.verdict import Caught, Check, Passed, Plan, Verdict

T = TypeVar("T")
_DISTURBED: tuple[Check, ...] = ("clocks", "linear", "physics")
"""Checks that a disturbance of the machine may fail: one that lengthens the shorter burst shortens a call's time."""
TIMED_PRODUCTS = 1 << 28
"""Most multiply-adds of the output check of one timed call, unless the plan has fewer."""


@frozen
class Burst:
    """Times of a burst of calls in microseconds: by device events, by host clock, and of the launches alone."""

    calls: int
    device: float
    host: float
    launches: float


@frozen
class Pair:
    """A burst and one of twice as many calls."""

    once: Burst
    twice: Burst

    @property
    def device(self) -> float:
        """Marginal time of a call by device events."""
        return (self.twice.device - self.once.device) / self.once.calls

    @property
    def launch(self) -> float:
        """Launch time of a call on the host."""
        return self.twice.launches / self.twice.calls

    @property
    def fixed(self) -> float:
        """Fixed time of a burst, extrapolated to zero calls."""
        return 2 * self.once.device - self.twice.device


@frozen
class OperandSets:
    """Rotating operand sets and the calls bound to them."""

    session: Session
    placed: Sequence[Placed]
    calls: Sequence[Call]
    first: Sequence[Case]

    def burst(self, count: int) -> Generator[str, None, Burst | Caught]:
        """Time `count` calls by each clock separately, and check outputs after each measurement."""
        device = yield from self._clocked(count, self._by_events)
        if isinstance(device, Caught):
            return device
        host = yield from self._clocked(count, self._by_host)
        if isinstance(host, Caught):
            return host
        return Burst(count, device, *host)

    def _by_events(self, order: Sequence[int]) -> float:
        bench = self.session.bench
        bench.keep_busy(len(order))
        begin = bench.record_event()
        for place in order:
            self.calls[place]()
        end = bench.record_event()
        bench.synchronise(everything=True)
        return bench.elapsed(begin, end)

    def _by_host(self, order: Sequence[int]) -> tuple[float, float]:
        """Host time until the device is idle, and of the launches alone."""
        bench = self.session.bench
        start = bench.host_time()
        for place in order:
            self.calls[place]()
        launched = bench.host_time()
        bench.synchronise(everything=self.session.plan.has("whole device"))
        stop = bench.host_time()
        bench.synchronise(everything=True)
        return stop - start, launched - start

    def _clocked(self, count: int, clock: Callable[[Sequence[int]], T]) -> Generator[str, None, T | Caught]:
        """Time calls on unseen contents in random order, then check outputs."""
        session = self.session
        drawn: list[int] = session.draws.generator().permutation(len(self.placed)).tolist()
        order = (drawn * count)[:count]
        cases = {place: self.first[place] for place in order}
        if session.plan.has("contents"):
            cases = {place: session.subject.normal(session.draws, each.sizes) for place, each in cases.items()}

        def step() -> tuple[T, Mapping[int, After]]:
            for place in order:
                if session.plan.has("contents"):
                    session.prepare(self.placed[place], cases[place])
                else:
                    session.poison(self.placed[place])
            session.bench.synchronise(everything=True)
            reading = clock(order)
            return reading, {place: session.after(self.placed[place], outputs=True) for place in self._seen(order)}

        reading, left = yield from session.exclusively(step)
        return self._wrong(left, cases) or reading

    def _seen(self, order: Sequence[int]) -> set[int]:
        """Calls whose outputs are checked: the last one and a random one."""
        if not self.session.plan.has("timed"):
            return set()
        return {order[-1], order[int(self.session.draws.generator().integers(0, len(order)))]}

    def _wrong(self, left: Mapping[int, After], cases: Mapping[int, Case]) -> Caught | None:
        most = min(self.session.plan.most_products, TIMED_PRODUCTS)
        for place, after in left.items():
            if (
                caught := self.session.check_outputs(after, self.placed[place], cases[place], "timed", most)
            ) is not None:
                return caught
        return None


def measure_time(session: Session, candidate: Candidate) -> Generator[str, None, Verdict]:
    """Measure rounds of two bursts and check that both clocks and burst lengths are consistent.

    Times that are inconsistent, or that differ between rounds, are measured again, up to `plan.tries` times in all:
    what else the machine does may lengthen a time, whereas a cheat shows in each try.
    """
    plan, sizes = session.plan, session.subject.sizes
    placed = [session.place(sizes)]
    half = max(1, min(plan.most_calls, plan.most_bytes // max(1, placed[0].bytes)) // 2)
    if plan.has("addresses"):
        placed += [session.place(sizes) for _ in range(2 * half - 1)]
    first = [session.subject.normal(session.draws, sizes) for _ in placed]

    def step() -> None:
        for each, case in zip(placed, first, strict=True):
            session.prepare(each, case)

    yield from session.exclusively(step)
    sets = OperandSets(session, placed, [candidate(*each.operands) for each in placed], first)
    seen: list[Pair] = []
    for attempt in range(1, plan.tries + 1):
        pairs = yield from _measured_pairs(sets, half, f" of try {attempt}" if attempt > 1 else "")
        if isinstance(pairs, Caught):
            return pairs
        seen += pairs
        verdict = _check_consistency(session, pairs, seen)
        again = verdict.check in _DISTURBED if isinstance(verdict, Caught) else not _steady(plan, pairs)
        if not again or attempt == plan.tries:
            return verdict
    raise AssertionError("a plan has at least one try")


def _steady(plan: Plan, pairs: Sequence[Pair]) -> bool:
    """Whether the rounds agree about the time of a call."""
    times = [each.device for each in pairs]
    return max(times) - min(times) <= plan.agreement * median(times)


def _measured_pairs(sets: OperandSets, half: int, which: str) -> Generator[str, None, list[Pair] | Caught]:
    """The plan's rounds of a burst of `half` calls and one of twice as many. which: of the tries, for the notes."""
    pairs: list[Pair] = []
    for number in range(sets.session.plan.rounds + 1):
        yield f"round {number} of times{which}"
        once = yield from sets.burst(half)
        if isinstance(once, Caught):
            return once
        yield f"round {number} of times{which}, twice the calls"
        twice = yield from sets.burst(2 * half)
        if isinstance(twice, Caught):
            return twice
        if number:  # the first one warms up
            pairs.append(Pair(once, twice))
    return pairs


def _check_consistency(session: Session, pairs: Sequence[Pair], seen: Sequence[Pair]) -> Verdict:
    """pairs: of this try, which alone give the time by device events. seen: of all tries, for the least host times."""
    plan = session.plan
    device = median(each.device for each in pairs)
    mean = median(each.twice.device / each.twice.calls for each in pairs)
    fixed = median(each.fixed for each in pairs)
    calls = pairs[0].once.calls
    # Other processes only lengthen host times, and the outputs of the shortest burst are checked like those of all.
    undisturbed = min(seen, key=lambda each: each.twice.host)
    host = (undisturbed.twice.host - min(each.once.host for each in seen)) / calls
    launch = min(plan.launch, undisturbed.launch)
    if plan.has("linear") and fixed > plan.fixed + plan.agreement * calls * mean:
        why = f"{calls} more calls take {calls * device:.3g} us, the first {calls} take {fixed:.3g} us more"
        return Caught("linear", why)
    if plan.has("clocks") and host > (1 + plan.agreement) * device + launch + plan.fixed / calls:
        return Caught("clocks", f"a call takes {device:.3g} us by device events, but {host:.3g} us by the host clock")
    least = session.bench.least(session.subject)
    if plan.has("physics") and device < least * (1 - TOLERANCE):
        return Caught("physics", f"a call takes {device:.3g} us, below the lower bound of {least:.3g} us")
    return Passed(device)
