"""Times several candidates of one problem interleaved on the bench, in each power regime."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import cycle
from statistics import median

from attrs import frozen

from argus.policy.bounds import TOLERANCE
from argus.policy.last_round import BATCH, Batch
from argus.runtime.gpu.timing import REGIMES, time_interleaved
from argus.search.bench_harness.bench import Bench, Call, Candidate
from argus.search.bench_harness.examine import check_instruments
from argus.search.bench_harness.inputs import Case
from argus.search.bench_harness.session import After, Placed, Session
from argus.search.bench_harness.timing import TIMED_PRODUCTS
from argus.search.bench_harness.verdict import Caught


@frozen
class BenchWatch:
    """Times back-to-back calls by the bench's events."""

    bench: Bench

    def milliseconds(self, call: Call, calls: int = 1) -> float:
        """The mean time of a call, without launch overhead."""
        self.bench.keep_busy(calls)
        begin = self.bench.record_event()
        for _ in range(calls):
            call()
        end = self.bench.record_event()
        self.bench.synchronise(everything=True)
        return 1e-3 * self.bench.elapsed(begin, end) / calls


@frozen
class Finalists:
    """Candidates bound to the same rotating operand sets.

    case: contents of all sets. instruments: the bench's measuring functions before the first call.
    """

    session: Session
    placed: tuple[Placed, ...]
    case: Case
    calls: Mapping[str, tuple[Call, ...]]
    instruments: tuple[object, ...]

    def batch(self, names: tuple[str, ...], sleep: Callable[[float], object]) -> Generator[str, None, Batch]:
        """Check the named candidates as they are when timed, then time the right ones. sleep: takes seconds."""
        wrong: dict[str, str] = {}
        for name in names:
            yield name
            if (why := (yield from self._wrong(name))) is not None:
                wrong[name] = why
            elif (caught := check_instruments(self.session, self.instruments)) is not None:
                return Batch({}, wrong | {name: str(caught)})
        right = {name: self._rotating(name) for name in names if name not in wrong}
        found: dict[str, dict[str, list[float]]] = {}
        for regime in REGIMES if right else ():
            yield f"{regime.name}: {', '.join(right)}"

            def step() -> dict[str, list[float]]:
                times = time_interleaved(BenchWatch(self.session.bench), right, regime, BATCH, sleep)  # noqa: B023 reason: called at once
                return {name: [1e3 * each for each in times.rounds[name]] for name in right}

            found[regime.name] = yield from self.session.exclusively(step)
        replaced = check_instruments(self.session, self.instruments) is not None
        return Batch({} if replaced else found, wrong | self._impossible(found))

    def _impossible(self, times: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, str]:
        """Candidates whose median time in a regime is below the machine's lower bound, and why. times: microseconds."""
        least = self.session.bench.least(self.session.subject)
        found: dict[str, str] = {}
        for regime, by_name in times.items():
            for name, each in by_name.items():
                if median(each) < least * (1 - TOLERANCE):
                    why = f"a call takes {median(each):.3g} us {regime}, below the lower bound of {least:.3g} us"
                    found[name] = str(Caught("physics", why))
        return found

    def _rotating(self, name: str) -> Call:
        following = cycle(self.calls[name])
        return lambda: next(following)()  # noqa: PLW0108 reason: another call each time

    def _wrong(self, name: str) -> Generator[str, None, str | None]:
        """Why the last outputs of a burst of calls are wrong."""
        session, count = self.session, len(self.placed)

        def step() -> After:
            session.prepare(self.placed[-1], self.case)
            BenchWatch(session.bench).milliseconds(self._rotating(name), count)
            return session.after(self.placed[-1], outputs=True)

        after = yield from session.exclusively(step)
        most = min(session.plan.most_products, TIMED_PRODUCTS)
        caught = session.check_outputs(after, self.placed[-1], self.case, "timed", most)
        return None if caught is None else str(caught)


def bind_finalists(opened: Session, candidates: Mapping[str, Candidate]) -> Generator[str, None, Finalists]:
    """Allocate operand sets, as many as a burst of the harness has, and bind the candidates to them."""
    plan, subject = opened.plan, opened.subject
    placed = [opened.place(subject.sizes)]
    sets = max(1, min(plan.most_calls, plan.most_bytes // max(1, placed[0].bytes)))
    if plan.has("addresses"):
        placed += [opened.place(subject.sizes) for _ in range(sets - 1)]
    case = subject.normal(opened.draws, subject.sizes)

    def step() -> None:
        for each in placed:
            opened.prepare(each, case)

    yield from opened.exclusively(step)
    calls = {name: tuple(each(*one.operands) for one in placed) for name, each in candidates.items()}
    return Finalists(opened, tuple(placed), case, calls, opened.bench.instruments())
