"""What the events of a run amount to, for people to read: also of a run that has not ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from typing import assert_never

from attrs import evolve, frozen

from argus.core.diagnostic import InternalError
from argus.search.evaluation.judgement import STAGES, Judgement, Stage
from argus.search.events import Asked, Ended, Event, Judged, Proposed, Resumed, Started
from argus.search.problems.kernel_file import KernelFile, display_name
from argus.search.problems.problem import Problem, problem_of


@frozen
class Candidate:
    """number: from 1, in the order of proposals. judgement: None where none was recorded. best: of all until then."""

    number: int
    name: str
    techniques: tuple[str, ...] = ()
    planner: str = ""
    why: str = ""
    judgement: Judgement | None = None
    best: float | None = None

    @property
    def microseconds(self) -> float | None:
        return None if self.judgement is None else self.judgement.microseconds


@frozen
class Story:
    """ended: why; empty where the run goes on or was cut off. asked: calls of a model, and their tokens and dollars."""

    run: str
    started: Started
    problem: Problem
    candidates: tuple[Candidate, ...]
    ended: str = ""
    resumed: int = 0
    asked: tuple[int, int, float] = (0, 0, 0.0)

    @property
    def name(self) -> str:
        """Of the problem, without a folder of the machine that it was searched on."""
        return display_name(str(self.problem))

    @property
    def counted(self) -> str:
        """What the speed of light of a kernel file rests on."""
        return self.problem.counted.description if isinstance(self.problem, KernelFile) else ""

    @property
    def passed(self) -> tuple[Candidate, ...]:
        return tuple(each for each in self.candidates if each.microseconds is not None)

    @property
    def best(self) -> Candidate | None:
        """The fastest; of equals the first."""
        return min(self.passed, key=lambda each: each.microseconds or 0.0, default=None)


def told(run: str, events: Sequence[Event]) -> Story:
    """Raises ArgusError (E903) for a problem that this version does not know."""
    first = events[0]
    if not isinstance(first, Started):
        raise InternalError("a journal's run begins with something else than its start")
    story = Story(run, first, problem_of(first.problem, first.target), ())
    for event in events:
        story = _after(story, event)
    return story


def _after(story: Story, event: Event) -> Story:
    match event:
        case Started():
            return story
        case Proposed(name, techniques, _, planner, why):
            made = Candidate(len(story.candidates) + 1, name, techniques, planner, why)
            return evolve(story, candidates=(*story.candidates, made), ended="")
        case Judged(judgement):
            return evolve(story, candidates=_judged(story.candidates, judgement))
        case Asked(_, _, tokens, cost):
            calls, all_tokens, dollars = story.asked
            return evolve(story, asked=(calls + 1, all_tokens + tokens, dollars + cost))
        case Resumed():
            return evolve(story, resumed=story.resumed + 1, ended="")
        case Ended(reason):
            return evolve(story, ended=reason)
        case _:
            assert_never(event)


def _judged(candidates: tuple[Candidate, ...], judgement: Judgement) -> tuple[Candidate, ...]:
    """With the answer to the first that waits for one under this name."""
    before = [each.microseconds for each in candidates if each.microseconds is not None]
    times = [*before, *([] if judgement.microseconds is None else [judgement.microseconds])]
    best = min(times, default=None)
    for place, each in enumerate(candidates):
        if each.name == judgement.name and each.judgement is None:
            return (*candidates[:place], evolve(each, judgement=judgement, best=best), *candidates[place + 1 :])
    return (*candidates, Candidate(len(candidates) + 1, judgement.name, judgement=judgement, best=best))


# -- techniques ------------------------------------------------------------------------------------------------


@frozen
class Use:
    """A technique among the designs that passed. effect: mean time of those with it over those without, None where
    either are none; geometric means, and such designs differ in more than this.
    """

    technique: str
    count: int
    share: float
    effect: float | None


def technique_of(step: str) -> str:
    """The name of a step such as `more-stages (stages 3 -> 4)`."""
    return step.partition(" (")[0]


def uses(story: Story) -> tuple[Use, ...]:
    """The most common first."""
    times = [(each.microseconds or 0.0, {technique_of(step) for step in each.techniques}) for each in story.passed]
    names = dict.fromkeys(name for _, has in times for name in sorted(has))
    found = [_use(name, times) for name in names]
    return tuple(sorted(found, key=lambda use: (-use.count, use.technique)))


def _use(name: str, times: Sequence[tuple[float, set[str]]]) -> Use:
    having = [time for time, has in times if name in has]
    lacking = [time for time, has in times if name not in has]
    effect = _mean(having) / _mean(lacking) if lacking else None
    return Use(name, len(having), len(having) / len(times), effect)


def _mean(times: Sequence[float]) -> float:
    return exp(sum(map(log, times)) / len(times))


# -- the tree of candidates ------------------------------------------------------------------------------------


@frozen
class Node:
    """A row of the tree: the step that leads there from the row above it of one level less, and who is there."""

    depth: int
    step: str
    candidates: tuple[Candidate, ...]


def tree(story: Story) -> Iterator[Node]:
    """From the first design, which has no technique, each row before those below it."""
    at: dict[tuple[str, ...], list[Candidate]] = {(): []}
    for each in story.candidates:
        for cut in range(len(each.techniques) + 1):
            at.setdefault(each.techniques[:cut], [])
        at[each.techniques].append(each)
    for path in sorted(at):
        yield Node(len(path), path[-1] if path else "the first design", tuple(at[path]))


# -- stages ----------------------------------------------------------------------------------------------------


@frozen
class StageUse:
    """entered, stopped: candidates. seconds: of all that entered."""

    stage: Stage
    entered: int
    stopped: int
    seconds: float


def stages(story: Story) -> tuple[StageUse, ...]:
    judged = [each.judgement for each in story.candidates if each.judgement is not None]
    return tuple(
        StageUse(
            stage,
            sum(stage in each.seconds for each in judged),
            sum(each.stage == stage and each.microseconds is None for each in judged),
            sum(each.seconds.get(stage, 0.0) for each in judged),
        )
        for stage in STAGES
    )


@frozen
class Saved:
    """early: candidates stopped before a compiler was started. seconds: that compiling, running and timing them would
    have taken, if as long as of those that passed on average; None where none passed.
    """

    judged: int
    early: int
    seconds: float | None


_LATE: tuple[Stage, ...] = ("compile", "device", "timing")


def saved(story: Story) -> Saved:
    judged = [each.judgement for each in story.candidates if each.judgement is not None]
    early = sum(not each.compiled and each.microseconds is None for each in judged)
    through = [_late(each.seconds) for each in judged if each.microseconds is not None]
    return Saved(len(judged), early, early * sum(through) / len(through) if through else None)


def _late(seconds: Mapping[str, float]) -> float:
    return sum(seconds.get(stage, 0.0) for stage in _LATE)
