"""Compares policies on recorded tables, fairly: `python benchmarks/arms.py replay | tell | learn [--families ...]`.

A policy searches each recorded problem of a family, once per seed, and is told of the others at most, and of none that
is a twin of the one that it searches: whose designs have ranks with a correlation above 0.99. The arms:

random: no knowledge. no prior: the bandit from nothing. prior only: the order of the fitted priors, never changed.
nearest copied: the order of the nearest other problem's times, never changed. bandit: fitted priors and learning.
bandit beyond: the same, and what the others say of each design beyond its features. mean first: the same, but its first
two trials take the best mean instead of a sample; the default. mean only: so do all trials. nearest first: up to four
trials by the nearest other problem's times, as many as the three nearest agree, then the default. conditions: the
default, whose priors of techniques are moved by conditions learnt from the other products. leave one out: of the four
arms before that one, that which is best on the other problems. tpe: Optuna's, cold. tpe warm: the same after the first
ten trials of the default, of the same seed.

Each search has the designs in another order, so that none is found for its place. replay: writes the number of trials
to come within 5 % of the best known time, by problem, arm and seed, to benchmarks/results/planner/arms.FAMILY.json; of
cold TPE on products those of `planner.py`. tell: prints the medians as the tables of
docs/decisions/0086-the-best-mean-first.md. learn: writes what a search is told of recorded problems,
kb/experience/FAMILY.recorded.json, and FAMILY.json, the fitted priors.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.policy.experience import experience_text, fit_experience
from argus.policy.knowledge import kb_folder
from argus.policy.nearest import recorded_text
from benchmarks.arm_policies import DEFAULT, WARM, planner, trials_of
from benchmarks.recorded_problems import recorded

KEPT = Path(__file__).resolve().parent / "results" / "planner"
FAMILIES = ("sm_90a", "gfx942", "sm_90a.attention", "sm_90a.rows")
ARMS = (
    "random",
    "no prior",
    "prior only",
    "nearest copied",
    "bandit",
    "bandit beyond",
    "mean first",
    "mean only",
    "nearest first",
    "conditions",
    "leave one out",
    "tpe",
    "tpe warm",
)


@frozen
class Job:
    family: str
    number: int
    arm: str
    seed: int
    trials: int


def searched(job: Job) -> int | None:
    """The number of the first trial within 5 % of the best known time; None if there is none within the limit."""
    policies = [(planner(job.family, job.number, job.arm), job.trials)]
    if job.arm == "tpe warm":
        policies.insert(0, (planner(job.family, job.number, DEFAULT), WARM))
    return trials_of(recorded(job.family)[job.number], policies, job.seed)


def replay(chosen: argparse.Namespace) -> None:
    for family in chosen.families:
        jobs = [
            Job(family, number, arm, seed, chosen.trials if "tpe" not in arm else min(60, chosen.trials))
            for arm in chosen.arms
            for number in range(len(recorded(family)))
            for seed in range(chosen.seeds)
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
