"""Epochs: the number of barriers that a wave has passed, in ping-pong schedules where waves run a barrier apart.

The n-th barriers of all waves synchronise with each other, whatever lines they are at. Barriers that all waves pass
count equally for all; barriers under a condition on the wave number skew groups of waves by a constant, the group's
lead: in a loop with C barriers, the epoch of line j in iteration k is C k + j + lead. So an operation of group g that
completes in its epoch happens before one of group h if the number of barriers that h passes between the two lines, plus
the lead of h over g there, is at least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Kernel, Policy, Sync
from argus.core.proof.dataflow.timeline import NotModelled, Step, Timeline
from argus.core.proof.obligation import Obligation
from argus.core.walk import only_as_quotient, substitute, symbols

Pair = tuple[int, int]
"""The group of the earlier operation and the group of the later one."""
SINGLE_GROUP: tuple[Pair, ...] = ((0, 0),)


def wave_guard(guard: Cond, kernel: Kernel, wave: int) -> Cond:
    """A condition with the thread index of one wave."""
    return substitute(guard, {kernel.thread: algebra.const(wave * kernel.target.unit)})


def check_divergence(line: Timeline) -> Timeline:
    """The timeline, where divergence of waves in anything but barriers is listed as not modelled."""
    found = tuple(NotModelled(step.stmt, why) for step in line.steps if (why := _divergence_error(line.kernel, step)))
    loops = tuple(
        NotModelled(segment.loop.stmt, "a loop whose bounds differ between waves is not supported by the verifier yet")
        for segment in line.segments
        if segment.loop is not None and line.kernel.thread in symbols(segment.loop.trips)
    )
    return line if not found and not loops else evolve(line, unmodelled=(*line.unmodelled, *found, *loops))


def _divergence_error(kernel: Kernel, step: Step) -> str:
    if kernel.thread not in symbols(step.guard):
        return ""
    if not only_as_quotient(step.guard, kernel.thread, kernel.target.unit):
        return "a branch that diverges within a wave"
    if isinstance(step.stmt, Policy):
        return ""
    if not isinstance(step.stmt, Sync):
        return "a statement, other than a barrier, that only some waves execute is not supported by the verifier yet"
    if (step.stmt.barrier, step.stmt.how, step.stmt.threads) != ("cta", "meet", None):
        return "only barriers of the whole block, at which all waves arrive, are modelled"
    if any(wave_guard(step.guard, kernel, wave) not in (algebra.TRUE, algebra.FALSE) for wave in _waves(kernel)):
        return "a barrier under a condition that depends on more than the wave"
    return ""


def _waves(kernel: Kernel) -> range:
    return range(-(-kernel.threads // kernel.target.unit))


@frozen(eq=False)
class Epochs:
    """The groups of waves that run in step, and the lead of each group in barriers.

    groups: the waves of each group, as bits, that of wave 0 first; one group if every barrier is for all waves.
    leads: for each step, the number of partial barriers that each group has passed before it; None if that varies
    between iterations.
    """

    timeline: Timeline
    groups: tuple[int, ...]
    leads: Mapping[Step, tuple[int, ...] | None]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of groups."""
        numbers = range(len(self.groups))
        return tuple((g, h) for g in numbers for h in numbers)

    def lead(self, step: Step, pair: Pair) -> int | None:
        """By how many barriers the second group leads the first when both are before this step."""
        counts = self.leads[step]
        return None if counts is None else counts[pair[1]] - counts[pair[0]]

    def guard(self, step: Step, group: int) -> Cond:
        """The condition under which the group executes a step."""
        if len(self.groups) == 1:
            return step.guard
        return wave_guard(step.guard, self.timeline.kernel, first_wave(self.groups[group]))


def epochs_of(line: Timeline) -> Epochs:
    groups = _groups(line)
    return Epochs(line, groups, dict(_leads(line, groups)))


def first_wave(group: int) -> int:
    return (group & -group).bit_length() - 1


def _partial_barriers(line: Timeline) -> list[Step]:
    """The barriers that only some waves pass."""
    return [s for s in line.steps if isinstance(s.stmt, Sync) and line.kernel.thread in symbols(s.guard)]


def _groups(line: Timeline) -> tuple[int, ...]:
    partial = _partial_barriers(line)
    found: dict[tuple[bool, ...], int] = {}
    for wave in _waves(line.kernel):
        seen = tuple(wave_guard(step.guard, line.kernel, wave) is algebra.TRUE for step in partial)
        found[seen] = found.get(seen, 0) | 1 << wave
    return tuple(found.values())


def _leads(line: Timeline, groups: Sequence[int]) -> Iterator[tuple[Step, tuple[int, ...] | None]]:
    """The number of partial barriers that each group has passed before each step, in the order of the timeline."""
    counts: tuple[int, ...] | None = (0,) * len(groups)
    for segment in line.segments:
        start = counts
        if segment.loop is not None and not _all_equal(barrier_counts(line, segment.steps, groups)):
            counts = None
        for step in segment.steps:
            yield step, counts
            if counts is not None:
                counts = _sum(counts, barrier_counts(line, [step], groups))
        if segment.loop is not None and counts is not None:
            counts = start


def barrier_counts(line: Timeline, steps: Sequence[Step], groups: Sequence[int]) -> tuple[int, ...]:
    """How many partial barriers each group passes in these steps."""
    own = [s for s in steps if isinstance(s.stmt, Sync) and line.kernel.thread in symbols(s.guard)]
    return tuple(sum(wave_guard(s.guard, line.kernel, first_wave(g)) is algebra.TRUE for s in own) for g in groups)


def _all_equal(counts: Sequence[int]) -> bool:
    return len(set(counts)) == 1


def _sum(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, two, strict=True))


# -- balance of partial barriers -----------------------------------------------------------------------


def barrier_balance_obligations(line: Timeline) -> Iterator[Obligation]:
    """I32 for barriers that only some waves pass: at the end all have passed equally many, for every trip count."""
    groups, partial = _groups(line), _partial_barriers(line)
    for number, group in enumerate(groups[1:], start=1):
        totals = [_total_barriers(line, groups, which) for which in (0, number)]
        names = _describe_waves(group), _describe_waves(groups[0])
        yield Obligation(
            "I32",
            f"{names[0]} and {names[1]} pass equally many barriers",
            partial[-1].stmt,
            algebra.eq(*totals),
            minimise=tuple(algebra.sym(size) for size in line.kernel.sizes),
            help="balance a barrier that only some waves pass: end the skew that `with when(eq(row, 1)): sync()` began "
            "with `with when(eq(row, 0)): sync()`",
        )


def _total_barriers(line: Timeline, groups: Sequence[int], group: int) -> Index:
    """The number of partial barriers that a group passes in the whole kernel."""
    total: Index = algebra.const(0)
    for segment in line.segments:
        times = algebra.const(1) if segment.loop is None else segment.loop.trips
        total = algebra.add(total, algebra.mul(times, barrier_counts(line, segment.steps, groups)[group]))
    return total


def _describe_waves(group: int) -> str:
    """The waves as text: "waves 0 to 3", "waves 1, 3", "wave 2"."""
    waves = [wave for wave in range(group.bit_length()) if group >> wave & 1]
    run = len(waves) > 2 and waves == list(range(waves[0], waves[-1] + 1))
    listed = f"{waves[0]} to {waves[-1]}" if run else ", ".join(map(str, waves))
    return f"wave{'s' if len(waves) > 1 else ''} {listed}"
