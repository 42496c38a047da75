"""Epochs: how many barriers a wave has met, where some waves have met more than others at the same line.

The n-th barriers pair, wherever they stand. Barriers that all waves meet count alike for all; those under a condition
on the wave's number set groups of waves apart by a constant, the group's lead: in a loop of C barriers the epoch of
line j in iteration k is C k + j + lead. So an operation of group g that is over in its epoch e comes before one of
group h if the barriers that h meets between the two lines, plus what h leads by there, are at least one.
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
ALONE: tuple[Pair, ...] = ((0, 0),)


def of_wave(guard: Cond, kernel: Kernel, wave: int) -> Cond:
    """A condition as one wave sees it."""
    return substitute(guard, {kernel.thread: algebra.const(wave * kernel.target.unit)})


def checked(line: Timeline) -> Timeline:
    """The timeline, with what this analysis has no meaning for: waves apart in anything but barriers."""
    found = tuple(NotModelled(step.stmt, why) for step in line.steps if (why := _unusual(line.kernel, step)))
    loops = tuple(
        NotModelled(segment.loop.stmt, "a loop whose bounds differ between waves is not built yet in the verifier")
        for segment in line.segments
        if segment.loop is not None and line.kernel.thread in symbols(segment.loop.trips)
    )
    return line if not found and not loops else evolve(line, unmodelled=(*line.unmodelled, *found, *loops))


def _unusual(kernel: Kernel, step: Step) -> str:
    if kernel.thread not in symbols(step.guard):
        return ""
    if not only_as_quotient(step.guard, kernel.thread, kernel.target.unit):
        return "a branch that threads of one wave take differently"
    if isinstance(step.stmt, Policy):
        return ""
    if not isinstance(step.stmt, Sync):
        return "a statement that only some waves execute is not built yet in the verifier; barriers are"
    if (step.stmt.barrier, step.stmt.how, step.stmt.threads) != ("cta", "meet", None):
        return "only barriers of the whole block, met by all waves, are modelled"
    if any(of_wave(step.guard, kernel, wave) not in (algebra.TRUE, algebra.FALSE) for wave in _waves(kernel)):
        return "a barrier under a condition on waves and on other things at once"
    return ""


def _waves(kernel: Kernel) -> range:
    return range(-(-kernel.threads // kernel.target.unit))


@frozen(eq=False)
class Epochs:
    """Which waves run together, and how many barriers each group leads by.

    groups: for each group its waves, as bits, that of wave 0 first; one group where no barrier tells waves apart.
    leads: before each step, the barriers of its own that each group has met; None where that differs from iteration
    to iteration.
    """

    timeline: Timeline
    groups: tuple[int, ...]
    leads: Mapping[Step, tuple[int, ...] | None]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All groups against all."""
        numbers = range(len(self.groups))
        return tuple((g, h) for g in numbers for h in numbers)

    def lead(self, step: Step, pair: Pair) -> int | None:
        """By how many barriers the second group is ahead of the first when both stand before this step."""
        counts = self.leads[step]
        return None if counts is None else counts[pair[1]] - counts[pair[0]]

    def guard(self, step: Step, group: int) -> Cond:
        """Under which condition the group executes a step."""
        if len(self.groups) == 1:
            return step.guard
        return of_wave(step.guard, self.timeline.kernel, first_wave(self.groups[group]))


def epochs_of(line: Timeline) -> Epochs:
    groups = _groups(line)
    return Epochs(line, groups, dict(_leads(line, groups)))


def first_wave(group: int) -> int:
    return (group & -group).bit_length() - 1


def _apart(line: Timeline) -> list[Step]:
    """The barriers that only some waves meet."""
    return [s for s in line.steps if isinstance(s.stmt, Sync) and line.kernel.thread in symbols(s.guard)]


def _groups(line: Timeline) -> tuple[int, ...]:
    apart = _apart(line)
    found: dict[tuple[bool, ...], int] = {}
    for wave in _waves(line.kernel):
        seen = tuple(of_wave(step.guard, line.kernel, wave) is algebra.TRUE for step in apart)
        found[seen] = found.get(seen, 0) | 1 << wave
    return tuple(found.values())


def _leads(line: Timeline, groups: Sequence[int]) -> Iterator[tuple[Step, tuple[int, ...] | None]]:
    """The count of barriers of its own for each group before each step, in the order of the line."""
    counts: tuple[int, ...] | None = (0,) * len(groups)
    for segment in line.segments:
        start = counts
        if segment.loop is not None and not _even(added(line, segment.steps, groups)):
            counts = None
        for step in segment.steps:
            yield step, counts
            if counts is not None:
                counts = _sum(counts, added(line, [step], groups))
        if segment.loop is not None and counts is not None:
            counts = start


def added(line: Timeline, steps: Sequence[Step], groups: Sequence[int]) -> tuple[int, ...]:
    """How many barriers of its own each group meets in these steps."""
    own = [s for s in steps if isinstance(s.stmt, Sync) and line.kernel.thread in symbols(s.guard)]
    return tuple(sum(of_wave(s.guard, line.kernel, first_wave(g)) is algebra.TRUE for s in own) for g in groups)


def _even(counts: Sequence[int]) -> bool:
    return len(set(counts)) == 1


def _sum(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, two, strict=True))


# -- every wave as often as every other -----------------------------------------------------------------------


def obligations(line: Timeline) -> Iterator[Obligation]:
    """I32, for barriers that only some waves meet: in the end all have met as many, whatever the trip counts."""
    groups, apart = _groups(line), _apart(line)
    for number, group in enumerate(groups[1:], start=1):
        met = [_met(line, groups, which) for which in (0, number)]
        names = _named(group), _named(groups[0])
        yield Obligation(
            "I32",
            f"the barriers of {names[0]} are as many as those of {names[1]}",
            apart[-1].stmt,
            algebra.eq(*met),
            minimise=tuple(algebra.sym(size) for size in line.kernel.sizes),
            help="waves that met a barrier of their own owe the others one: "
            "end with `with when(eq(row, 0)): sync()` what `with when(eq(row, 1)): sync()` began",
        )


def _met(line: Timeline, groups: Sequence[int], group: int) -> Index:
    """Barriers of its own that a group meets from start to end."""
    total: Index = algebra.const(0)
    for segment in line.segments:
        times = algebra.const(1) if segment.loop is None else segment.loop.trips
        total = algebra.add(total, algebra.mul(times, added(line, segment.steps, groups)[group]))
    return total


def _named(group: int) -> str:
    """Waves as a reader would list them: "waves 0 to 3", "waves 1, 3", "wave 2"."""
    waves = [wave for wave in range(group.bit_length()) if group >> wave & 1]
    run = len(waves) > 2 and waves == list(range(waves[0], waves[-1] + 1))
    listed = f"{waves[0]} to {waves[-1]}" if run else ", ".join(map(str, waves))
    return f"wave{'s' if len(waves) > 1 else ''} {listed}"
