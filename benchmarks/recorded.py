"""Replays searches on recorded tables instead of running gate and GPU.

A table has the times of all designs of a space on some shapes, and the seconds for proving and compiling each design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from attrs import frozen

from argus.policy.bandit import Bandit, WeightPrior
from argus.policy.baselines import Exhaustive, Random
from argus.policy.experience import RecordedProblem, fit_experience
from argus.policy.planner import Planner, Situation
from argus.policy.tpe import Tpe
from argus.search.designs.space import situation
from argus.search.designs.wave_quantisation import problem_size
from argus.search.evaluation.judgement import Judgement
from argus.search.loop import observation
from argus.search.problems.problem import Gemm
from argus.search.tuning.candidates import design_space

TABLES = Path(__file__).resolve().parent / "results" / "space"
NEAR = 1 / 0.95
Shape = tuple[int, int, int]
Shapes = tuple[Shape, ...]


@frozen
class Point:
    """The gate's result for a design. ready: it passed. proof, compiled: seconds, 0 if the stage was not reached."""

    ready: bool
    proof: float
    compiled: float

    @property
    def early(self) -> bool:
        """Whether it was rejected before compilation."""
        return not self.ready and self.compiled == 0


@frozen
class Table:
    """A recorded table. device: GPU, "none" for predicted times.

    points: by name, the designs of the space with a gate result. times: microseconds by shape and design; None if the
    gate or the GPU check rejected the design.
    """

    target: str
    device: str
    points: Mapping[str, Point]
    times: Mapping[Shape, Mapping[str, float | None]]

    def best(self, shape: Shape) -> float:
        return min(each for each in self.times[shape].values() if each is not None)


@cache
def table(path: Path) -> Table:
    data = json.loads(path.read_text(encoding="utf-8"))
    target, known = data["target"], {each["name"]: each for each in data["points"]}
    points = {
        name: Point(known[name]["state"] == "ready", known[name]["proof"], known[name]["compiled"])
        for name in design_space(target)
        if name in known
    }
    times: dict[Shape, dict[str, float | None]] = {}
    for row in data["rows"]:
        m, n, k = row["shape"]
        times.setdefault((m, n, k), dict.fromkeys(points))[row["name"]] = row["microseconds"]
    return Table(target, data["device"], points, times)


def gemm(path: Path, shape: Shape) -> Gemm:
    return Gemm(*shape, "bf16", table(path).target)


@cache
def initial_situation(path: Path, shape: Shape) -> Situation:
    return situation(gemm(path, shape), tuple(table(path).points))


@cache
def training_problem(path: Path, shape: Shape) -> RecordedProblem:
    """Training data of one shape: the designs with a time."""
    before, times = initial_situation(path, shape), table(path).times[shape]
    passed = [(each, took) for each in before.options if (took := times[each.name]) is not None]
    features = np.array([each.features for each, _ in passed])
    return RecordedProblem(
        problem_size(gemm(path, shape)), before.features, features, np.log([before.bound / took for _, took in passed])
    )


@cache
def priors_from_others(path: Path, shape: Shape, teachers: Shapes = ()) -> dict[str, WeightPrior]:
    """Priors for a shape, fitted to other shapes of the table. teachers: which; all others by default."""
    found = fit_experience([training_problem(path, other) for other in teachers or table(path).times if other != shape])
    return found.at(problem_size(gemm(path, shape)))


def planner(path: Path, shape: Shape, name: str, teachers: Shapes = ()) -> Planner:
    match name:
        case "bandit":
            return Bandit(priors_from_others(path, shape, teachers))
        case "bandit without knowledge":
            return Bandit({})
        case "random":
            return Random()
        case "tpe":
            return Tpe()
        case "exhaustive":
            return Exhaustive()
        case _:
            raise ValueError(name)


PLANNERS = ("bandit", "bandit without knowledge", "random", "tpe", "exhaustive")


@frozen
class Job:
    """One search. trials: their limit. whole: continue after the best known design is found."""

    path: Path
    shape: Shape
    planner: str
    seed: int
    trials: int
    teachers: Shapes = ()
    whole: bool = False


Trial = tuple[str, float | None]


def replay_search(job: Job) -> list[Trial]:
    """Replay a search: names and times in the order of the trials."""
    times, best = table(job.path).times[job.shape], table(job.path).best(job.shape)
    return list(_trials(job, times, best))


def _trials(job: Job, times: Mapping[str, float | None], best: float) -> Iterator[Trial]:
    chosen = planner(job.path, job.shape, job.planner, job.teachers)
    state = chosen.start(initial_situation(job.path, job.shape), job.seed)
    for _ in range(job.trials):
        ranked = chosen.propose(state)
        if not ranked:
            return
        choice = ranked[0].choice
        took = times[choice.name]
        yield choice.name, took
        if took == best and not job.whole:
            return
        outcome = "timed" if took is not None else "refuted"
        judgement = Judgement(choice.name, outcome, "timing", microseconds=took)
        state = chosen.learn(state, observation(choice, judgement))


def trials_to_near_best(times: Sequence[float | None], best: float) -> int | None:
    """Number of the first trial within 5 % of the best; None if there is none."""
    return next((number for number, each in enumerate(times, 1) if each is not None and each <= NEAR * best), None)
