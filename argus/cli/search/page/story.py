"""Summarises the events of a search run, finished or not, for the HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from typing import assert_never

from attrs import evolve, field, frozen

from argus.cli.search.page.rounds import Round, rounds, written
from argus.core.diagnostic import InternalError
from argus.policy.llm.reply import Kernel
from argus.search.evaluation.judgement import STAGES, Judgement, Stage
from argus.search.events import (
    Asked,
    Ended,
    Event,
    Judged,
    LastRound,
    Proposed,
    Resumed,
    Started,
    best_of,
    settled_times,
)
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Problem, display_name, problem_of


@frozen
class Candidate:
    """A candidate of a run.

    number: from 1, in the order of proposals. judgement: None if none was recorded. best: lowest time so far, in
    microseconds.
    """

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
    """A run.

    ended: the reason; empty while the run continues, or if it was cut off. asked: calls of a language model, with
    their tokens and dollars. best: of the last round, else the fastest candidate. settled: whether its time is the
    median of a last round. rounds, written: of a language model, and the kernels that it wrote, by name.
    """

    run: str
    started: Started
    problem: Problem
    candidates: tuple[Candidate, ...]
    ended: str = ""
    resumed: int = 0
    asked: tuple[int, int, float] = (0, 0, 0.0)
    best: Candidate | None = None
    settled: bool = False
    rounds: tuple[Round, ...] = ()
    written: Mapping[str, Kernel] = field(factory=dict[str, Kernel])

    @property
    def name(self) -> str:
        """The problem's name, without the folder of its file."""
        return display_name(str(self.problem))

    @property
    def counted(self) -> str:
        """What the speed of light of a kernel file counts."""
        return self.problem.counted.description if isinstance(self.problem, KernelFile) else ""

    @property
    def passed(self) -> tuple[Candidate, ...]:
        return tuple(each for each in self.candidates if each.microseconds is not None)


def story_of(run: str, events: Sequence[Event]) -> Story:
    """The summary of a run's events. Raises ArgusError (E903) for a problem that this version does not know."""
    first = events[0]
    if not isinstance(first, Started):
        raise InternalError("the first event of a journal's run is not `Started`")
    problem = problem_of(first.problem, first.target)
    story = Story(run, first, problem, (), rounds=rounds(events), written=written(events))
    for event in events:
        story = _after(story, event)
    best, settled = best_of(events), settled_times(events)
    found = next((each for each in story.passed if best and each.name == best.name), None)
    if found is None:
        return story
    return evolve(story, best=evolve(found, judgement=best), settled=found.name in settled)


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
        case LastRound():
            return story
        case Ended(reason):
            return evolve(story, ended=reason)
        case _:
            assert_never(event)


def _judged(candidates: tuple[Candidate, ...], judgement: Judgement) -> tuple[Candidate, ...]:
    """Record a judgement on the first candidate of its name that has none."""
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
    """A technique among the designs that passed.

    share: fraction of the designs that use it. effect: geometric mean time of designs with it over that of designs
    without it; None if all use it. The two groups differ in other techniques too.
    """

    technique: str
    count: int
    share: float
    effect: float | None


def technique_of(step: str) -> str:
    """The name of the technique in a step such as `more-stages (stages 3 -> 4)`."""
    return step.partition(" (")[0]


def uses(story: Story) -> tuple[Use, ...]:
    """Use of each technique, the most common first."""
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
    """A row of the tree: its depth, the step that leads to it from its parent, and the candidates at it."""

    depth: int
    step: str
    candidates: tuple[Candidate, ...]


def tree(story: Story) -> Iterator[Node]:
    """The tree's rows in preorder, from the first design, which has no techniques."""
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
    """A stage of the gate. entered, stopped: numbers of candidates. seconds: total time spent in the stage."""

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
    """Time saved by rejecting candidates before compilation.

    early: candidates rejected before a compiler was started. seconds: estimated time to compile, run and time them,
    from the average of the candidates that passed; None if none passed.
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
