"""Compares policies on recorded tables, fairly: `python benchmarks/arms.py replay | tell | learn [--families ...]`.

A policy searches each recorded problem of a family, once per seed, and is told of the others at most, and of none that
is a twin of the one that it searches: whose designs have ranks with a correlation above 0.99. The arms:

random: no knowledge. no prior: the bandit from nothing. prior only: the order of the fitted priors, never changed.
nearest copied: the order of the nearest other problem's times, never changed. bandit: fitted priors and learning.
bandit beyond: the same, and what the others say of each design beyond its features. tpe: Optuna's, cold. tpe warm: the
same after the first ten trials of the last arm, of the same seed.

replay: writes the number of trials to come within 5 % of the best known time, by problem, arm and seed, to
benchmarks/results/planner/arms.FAMILY.json; of cold TPE on products those of `planner.py`. tell: prints the medians as
the tables of docs/decisions/0074-recorded-problems-beyond-features.md. learn: writes what a search is told of recorded
problems, kb/experience/FAMILY.recorded.json,
and FAMILY.json, the fitted priors.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import dist, log2
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.policy.bandit import CONFIDENT, Bandit
from argus.policy.baselines import Random
from argus.policy.experience import RecordedProblem, experience_text, fit_experience
from argus.policy.knowledge import kb_folder
from argus.policy.nearest import Beyond, beyond_features, recorded_text, residuals
from argus.policy.planner import Observation, Planner, RankedChoice, Situation, State, rank
from argus.policy.tpe import Tpe
from argus.search.bandit_prior import OCCUPANCY_PRIORS
from argus.search.designs.space import situation
from argus.search.designs.wave_quantisation import problem_size
from argus.search.problems.families.problem import family_problem
from argus.search.problems.problem import Gemm
from benchmarks.recorded import TABLES, table

KEPT = Path(__file__).resolve().parent / "results" / "planner"
FAMILY_TABLES = KEPT.parent / "families"
FAMILIES = ("sm_90a", "gfx942", "sm_90a.attention", "sm_90a.rows")
ARMS = ("random", "no prior", "prior only", "nearest copied", "bandit", "bandit beyond", "tpe", "tpe warm")
DEFAULT = "bandit beyond"
NEAR, TWIN, WARM = 1 / 0.95, 0.99, 10


@frozen(eq=False)
class Recorded:
    """A recorded problem. place: its coordinates. size: the covariate of fitted priors. times: microseconds by design;
    None of those that the gate rejects.
    """

    name: str
    place: tuple[float, ...]
    size: float
    before: Situation
    times: Mapping[str, float | None]

    @property
    def best(self) -> float:
        return min(each for each in self.times.values() if each is not None)

    @property
    def beyond(self) -> Beyond:
        passed = [each.name for each in self.before.options if self.times[each.name] is not None]
        refused = [each.name for each in self.before.options if self.times[each.name] is None]
        return residuals(self.place, self.lesson, passed, refused)

    @property
    def lesson(self) -> RecordedProblem:
        passed = [(each, took) for each in self.before.options if (took := self.times[each.name]) is not None]
        values = np.log([self.before.bound / took for _, took in passed])
        return RecordedProblem(self.size, self.before.features, np.array([each.features for each, _ in passed]), values)


@cache
def recorded(family: str) -> tuple[Recorded, ...]:
    return tuple(_products(family) if "." not in family else _of_family(family))


def _products(target: str) -> Iterator[Recorded]:
    path = TABLES / f"{target}.json"
    for shape, times in table(path).times.items():
        asked = Gemm(*shape, "bf16", target)
        before = situation(asked, tuple(table(path).points))
        known = {each.name: times[each.name] for each in before.options}
        yield Recorded("x".join(map(str, shape)), tuple(map(log2, shape)), problem_size(asked), before, known)


def _of_family(family: str) -> Iterator[Recorded]:
    data: Any = json.loads((FAMILY_TABLES / f"{family}.json").read_text(encoding="utf-8"))
    proved = {(each["kind"], each["name"]): each["proved"] for each in data["points"]}
    names = dict.fromkeys(row["problem"] for row in data["rows"])
    for name in names:
        asked = family_problem(name, data["target"])
        rows = [row for row in data["rows"] if row["problem"] == name and row["name"] != "torch"]
        kinds = {row["name"]: row["kind"] for row in data["points"]}
        times: dict[str, float | None] = {
            row["name"]: row["microseconds"] if proved.get((kinds[row["name"]], row["name"]), True) else None
            for row in rows
        }
        before = situation(asked, tuple(times))
        known = {each.name: times[each.name] for each in before.options}
        # The arms are to find a fast design, not to be told one.
        yield Recorded(name, asked.space.place, asked.space.size, evolve(before, first=""), known)


def are_twins(one: Recorded, other: Recorded) -> bool:
    """Whether two problems rank designs alike."""
    both = [(a, b) for name, a in one.times.items() if a is not None and (b := other.times.get(name)) is not None]
    if len(both) <= 2:
        return False
    one_rank, other_rank = (np.argsort(np.argsort(each)).astype(np.float64) for each in np.array(both).T)
    one_rank, other_rank = one_rank - one_rank.mean(), other_rank - other_rank.mean()
    return float(one_rank @ other_rank) > TWIN * float(one_rank @ one_rank)


def teachers(family: str, asked: Recorded) -> list[Recorded]:
    """The other problems of the family that are no twins."""
    return [each for each in recorded(family) if each is not asked and not are_twins(asked, each)]


# -- arms ----------------------------------------------------------------------------------------------------


@frozen
class Fixed:
    """Proposes choices by known values, whatever it observes; those without one last, in the order of the space."""

    values: Mapping[str, float] = field(eq=False)
    name: str = "fixed"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return Random().start(situation, seed)

    def propose(self, state: State[None]) -> tuple[RankedChoice, ...]:
        options = state.open()
        return rank(options, np.array([self.values.get(each.name, -np.inf) for each in options]))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return Random().learn(state, observation)


@cache
def planner(family: str, number: int, arm: str) -> Planner:
    asked = recorded(family)[number]
    others = teachers(family, asked)
    if arm == "random":
        return Random()
    if arm == "no prior":
        return Bandit({})
    if arm in ("tpe", "tpe warm"):
        return Tpe()
    if arm == "nearest copied":
        nearest = min(others, key=lambda each: dist(each.place, asked.place))
        return Fixed({name: -took for name, took in nearest.times.items() if took is not None})
    priors = fit_experience([each.lesson for each in others]).at(asked.size)
    if arm == "prior only":
        means = np.array([priors[name].mean if name in priors else 0.0 for name in asked.before.features])
        return Fixed({each.name: float(np.dot(each.features, means)) for each in asked.before.options})
    weights = {**OCCUPANCY_PRIORS, **priors} if "." in family else priors
    if arm == "bandit":
        return Bandit(weights)
    return Bandit(weights, recorded=beyond_features([each.beyond for each in others], asked.place), trust=CONFIDENT)


@frozen
class Job:
    family: str
    number: int
    arm: str
    seed: int
    trials: int


def searched(job: Job) -> int | None:
    """The number of the first trial within 5 % of the best known time; None if there is none within the limit."""
    asked = recorded(job.family)[job.number]
    policies = [(planner(job.family, job.number, job.arm), job.trials)]
    if job.arm == "tpe warm":
        policies.insert(0, (planner(job.family, job.number, DEFAULT), WARM))
    tried: list[Observation] = []
    for policy, limit in policies:
        state = policy.start(asked.before, job.seed)
        for each in tried:
            state = policy.learn(state, each)
        while len(tried) < limit:
            ranked = policy.propose(state)
            if not ranked:
                return None
            choice = ranked[0].choice
            took = asked.times[choice.name]
            if took is not None and took <= NEAR * asked.best:
                return len(tried) + 1
            tried.append(Observation(choice, "refuted" if took is None else "timed", took))
            state = policy.learn(state, tried[-1])
    return None


def replay(chosen: argparse.Namespace) -> None:
    for family in chosen.families:
        jobs = [
            Job(family, number, arm, seed, chosen.trials if "tpe" not in arm else min(60, chosen.trials))
            for arm in chosen.arms
            for number in range(len(recorded(family)))
            for seed in range(1 if arm in ("prior only", "nearest copied") else chosen.seeds)
        ]
        with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
            found = list(pool.map(searched, jobs, chunksize=8))
        place = KEPT / f"arms.{family}.json"
        rows = {(row["problem"], row["arm"]): row for row in stored(place)}
        for arm in chosen.arms:
            for number, asked in enumerate(recorded(family)):
                near = [
                    trials for job, trials in zip(jobs, found, strict=True) if (job.number, job.arm) == (number, arm)
                ]
                limit = next(job.trials for job in jobs if job.arm == arm)
                rows[asked.name, arm] = {"problem": asked.name, "arm": arm, "trials": limit, "near": near}
        for row in cold_tpe(family):
            rows[row["problem"], row["arm"]] = row
        about = "trials to come within 5 % of the best known time, by seed; python benchmarks/arms.py replay"
        head = {"about": about, "family": family, "designs": len(recorded(family)[0].before.options)}
        text = json.dumps({**head, "rows": list(rows.values())})
        place.write_text(text.replace("}, {", "},\n{") + "\n", encoding="utf-8")
        print("\n".join(lines_of(family)), flush=True)


def cold_tpe(family: str) -> list[dict[str, Any]]:
    """Searches of cold TPE that `benchmarks/planner.py replay` has recorded on the same table and seeds."""
    found = stored(KEPT / f"{family}.json") if "." not in family else []
    return [
        {"problem": "x".join(map(str, row["shape"])), "arm": "tpe", "trials": row["trials"], "near": row["near"]}
        for row in found
        if row["planner"] == "tpe"
    ]


def stored(place: Path) -> list[dict[str, Any]]:
    return json.loads(place.read_text(encoding="utf-8"))["rows"] if place.is_file() else []


def median(row: Mapping[str, Any]) -> float:
    """Median of trials; above the limit if half of the searches did not come near."""
    return statistics.median([row["trials"] + 1 if each is None else each for each in row["near"]])


def geometric_means(family: str) -> dict[str, float]:
    """Of the medians of each arm that has searched all problems of the family."""
    rows = stored(KEPT / f"arms.{family}.json")
    names = {row["problem"] for row in rows}
    found = {arm: [median(row) for row in rows if row["arm"] == arm] for arm in ARMS}
    return {arm: statistics.geometric_mean(each) for arm, each in found.items() if len(each) == len(names)}


def lines_of(family: str) -> Iterator[str]:
    """The medians as a Markdown table, and the geometric mean of each arm over the problems."""
    rows = stored(KEPT / f"arms.{family}.json")
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in rows)]
    yield f"| {family} | {' | '.join(arms)} |"
    yield "|---" * (1 + len(arms)) + "|"
    medians: dict[str, list[float]] = {arm: [] for arm in arms}
    for name in dict.fromkeys(row["problem"] for row in rows):
        cells: list[str] = []
        for arm in arms:
            row = next((row for row in rows if (row["problem"], row["arm"]) == (name, arm)), None)
            if row is None:
                cells.append("")
                continue
            found = median(row)
            medians[arm].append(found)
            cells.append(f"more than {row['trials']}" if found > row["trials"] else f"{found:g}")
        yield f"| {name} | {' | '.join(cells)} |"
    means = [f"{statistics.geometric_mean(medians[arm]):.1f}" if medians[arm] else "" for arm in arms]
    yield f"| geometric mean | {' | '.join(means)} |"


def tell(chosen: argparse.Namespace) -> None:
    for family in chosen.families:
        print("\n".join(lines_of(family)), "\n")


def learn(chosen: argparse.Namespace) -> None:
    for family in chosen.families:
        found = recorded(family)
        names = [f"{family}.json: {', '.join(each.name for each in found)}"]
        place = kb_folder() / "experience"
        text = recorded_text([each.beyond for each in found], names)
        (place / f"{family}.recorded.json").write_text(text, encoding="utf-8")
        text = experience_text(fit_experience([each.lesson for each in found]), names)
        (place / f"{family}.json").write_text(text, encoding="utf-8")
        print(f"{family}: {len(found)} problems")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("replay", "tell", "learn"))
    parser.add_argument("--families", nargs="*", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--arms", nargs="*", default=ARMS, choices=ARMS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200, help="most trials of a search")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    {"replay": replay, "tell": tell, "learn": learn}[chosen.part](chosen)


if __name__ == "__main__":
    main()
