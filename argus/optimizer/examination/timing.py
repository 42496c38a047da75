"""Times of calls whose inputs nobody has seen and whose outputs are looked at."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from statistics import median

from attrs import frozen

from argus.optimizer.examination.bench import Call, Candidate
from argus.optimizer.examination.inputs import Case
from argus.optimizer.examination.session import Placed, Session
from argus.optimizer.examination.verdict import Caught, Passed, Verdict
from argus.policy.bounds import TOLERANCE

_LEAST_PRODUCTS = 1 << 28
"""That a comparison of one timed call makes, at most, unless the plan has fewer."""


@frozen
class Burst:
    """Microseconds: by the device's events, by the host's clock until the device was idle, of the launches alone."""

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
        """What one more call takes, by the device's events."""
        return (self.twice.device - self.once.device) / self.once.calls

    @property
    def host(self) -> float:
        return (self.twice.host - self.once.host) / self.once.calls

    @property
    def launch(self) -> float:
        return self.twice.launches / self.twice.calls

    @property
    def fixed(self) -> float:
        """What a burst takes beside its calls."""
        return 2 * self.once.device - self.twice.device


@frozen
class Sets:
    """Operands in rotation, and the calls that are bound to them."""

    session: Session
    placed: Sequence[Placed]
    calls: Sequence[Call]
    first: Sequence[Case]

    def burst(self, count: int) -> Burst | Caught:
        """So many calls, by each clock on its own; after each time the outputs are looked at."""
        bench = self.session.bench
        cases, order = self._fresh(count)
        bench.hold(count)
        begin = bench.mark()
        for place in order:
            self.calls[place]()
        end = bench.mark()
        bench.settle(everything=True)
        device = bench.between(begin, end)
        if (caught := self._looked(cases, order)) is not None:
            return caught
        cases, order = self._fresh(count)
        start = bench.host()
        for place in order:
            self.calls[place]()
        launched = bench.host()
        bench.settle(everything=self.session.plan.has("whole device"))
        stop = bench.host()
        bench.settle(everything=True)
        if (caught := self._looked(cases, order)) is not None:
            return caught
        return Burst(count, device, stop - start, launched - start)

    def _fresh(self, count: int) -> tuple[Sequence[Case], list[int]]:
        """Contents that nobody has seen, and an order of calls that nobody knows."""
        session = self.session
        drawn: list[int] = session.draws.generator().permutation(len(self.placed)).tolist()
        order = (drawn * count)[:count]
        cases = self.first
        if session.plan.has("contents"):
            cases = [session.subject.normal(session.draws, each.sizes) for each in self.first]
            for place in order:
                session.pose(self.placed[place], cases[place])
        else:
            for place in order:
                session.poison(self.placed[place])
        session.bench.settle(everything=True)
        return cases, order

    def _looked(self, cases: Sequence[Case], order: Sequence[int]) -> Caught | None:
        """The last call, and one at random."""
        if not self.session.plan.has("timed"):
            return None
        most = min(self.session.plan.most_products, _LEAST_PRODUCTS)
        drawn = order[int(self.session.draws.generator().integers(0, len(order)))]
        for place in {order[-1], drawn}:
            if (caught := self.session.judge(self.placed[place], cases[place], "timed", most)) is not None:
                return caught
        return None


def timed(session: Session, candidate: Candidate) -> Generator[str, None, Verdict]:
    """Rounds of two bursts, and what the clocks say of each other."""
    plan, sizes = session.plan, session.subject.sizes
    placed = [session.place(sizes)]
    half = max(1, min(plan.most_calls, plan.most_bytes // max(1, placed[0].bytes)) // 2)
    if plan.has("addresses"):
        placed += [session.place(sizes) for _ in range(2 * half - 1)]
    first = [session.subject.normal(session.draws, sizes) for _ in placed]
    for each, case in zip(placed, first, strict=True):
        session.pose(each, case)
    sets = Sets(session, placed, [candidate(*each.operands) for each in placed], first)
    pairs: list[Pair] = []
    for number in range(plan.rounds + 1):
        yield f"round {number} of times"
        once = sets.burst(half)
        if isinstance(once, Caught):
            return once
        yield f"round {number} of times, twice the calls"
        twice = sets.burst(2 * half)
        if isinstance(twice, Caught):
            return twice
        if number:  # the first one warms up
            pairs.append(Pair(once, twice))
    return _agreed(session, pairs)


def _agreed(session: Session, pairs: Sequence[Pair]) -> Verdict:
    plan = session.plan
    device, host = median(each.device for each in pairs), median(each.host for each in pairs)
    mean = median(each.twice.device / each.twice.calls for each in pairs)
    fixed = median(each.fixed for each in pairs)
    calls = pairs[0].once.calls
    launch = min(plan.launch, median(each.launch for each in pairs))
    spread = median(abs(each.host - host) for each in pairs)
    if plan.has("linear") and fixed > plan.fixed + plan.agreement * calls * mean:
        why = f"{calls} more calls take {calls * device:.3g} us, the {calls} before them {fixed:.3g} us more"
        return Caught("linear", why)
    if plan.has("clocks") and host > (1 + plan.agreement) * device + launch + plan.fixed / calls + spread:
        return Caught(
            "clocks", f"a call takes {device:.3g} us by the device's events, {host:.3g} us by the host's clock"
        )
    least = session.bench.least(session.subject)
    if plan.has("physics") and device < least * (1 - TOLERANCE):
        return Caught("physics", f"a call takes {device:.3g} us, of which {least:.3g} us is the least that it can")
    return Passed(device)
