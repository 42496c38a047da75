"""Planners beside each other: `python benchmarks/planner.py replay [--seeds N] [TABLE ...]`.

TABLE is a file of `benchmarks/space.py`: times of all designs of a space on some shapes, and which have none. replay:
each planner searches each shape of each table again and again, with a seed for each search; what the gate and the GPU
would say is read from the table. It prints how many trials the planners take to come within 5 % of the best known time
(median and quartiles over the seeds), what stop rules would save, and how many candidates the gate stops before a
compiler is started. The bandit's beliefs of a technique are what the other shapes of the table show, never the shape
that it searches. Results go to planner.json in `--out`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import frozen

from argus.optimizer.designs import name as name_of
from argus.optimizer.judgement import Judgement
from argus.optimizer.problem import Gemm
from argus.optimizer.run import FIT
from argus.optimizer.search import observation
from argus.optimizer.space import situation, technique
from argus.optimizer.techniques import TRANSFORMATIONS
from argus.policy.bandit import Bandit, Weight
from argus.policy.baselines import Exhaustive, Random
from argus.policy.planner import Planner, Situation
from argus.policy.stopping import Rule, replay
from argus.policy.technique import pooled
from argus.policy.tpe import Tpe
from argus.tuning.candidates import space

RESULTS = Path(__file__).resolve().parent / "results" / "space"
NEAR = 1 / 0.95
RULES = (Rule(epsilon=0.25), Rule(epsilon=0.5), Rule(attempts=8), Rule(attempts=16), Rule(attempts=32))
Shape = tuple[int, int, int]


@frozen
class Table:
    """target: of the machine. times: microseconds by shape and design, None where the gate or the GPU stopped it."""

    target: str
    times: Mapping[Shape, Mapping[str, float | None]]


@cache
def table(path: Path) -> Table:
    data = json.loads(path.read_text(encoding="utf-8"))
    times: dict[Shape, dict[str, float | None]] = {}
    for row in data["rows"]:
        m, n, k = row["shape"]
        times.setdefault((m, n, k), {})[row["name"]] = row["microseconds"]
    refused = [name for name in space(data["target"]) if all(name not in each for each in times.values())]
    return Table(data["target"], {shape: {**each, **dict.fromkeys(refused)} for shape, each in times.items()})


def priors(found: Table, shape: Shape) -> dict[str, Weight]:
    """What techniques are worth on the other shapes: pairs of designs that differ in one technique."""
    ratios: dict[str, list[float]] = {}
    configs = space(found.target)
    for name, config in configs.items():
        for called, each in TRANSFORMATIONS.items():
            without = each.undo(config)
            if without is None:
                continue
            other = name_of(without)
            for where, times in found.times.items():
                with_it, without_it = times.get(name), times.get(other)
                if where != shape and with_it is not None and without_it is not None:
                    ratios.setdefault(called, []).append(without_it / with_it)
    effects = {called: pooled(tuple(each), "time") for called, each in ratios.items()}
    return {technique(called): Weight(each.log_mean, each.log_deviation) for called, each in effects.items()}


@cache
def seen(path: Path, shape: Shape) -> Situation:
    found = table(path)
    names = tuple(name for name in space(found.target) if name in found.times[shape])
    return situation(Gemm(*shape, "bf16", found.target), names)


def planners(path: Path, shape: Shape) -> dict[str, Planner]:
    learnt = priors(table(path), shape)
    return {
        "bandit": Bandit({**FIT, **learnt}),
        "bandit without knowledge": Bandit({}),
        "random": Random(),
        "tpe": Tpe(),
        "exhaustive": Exhaustive(),
    }


def searched(path: Path, shape: Shape, planner: str, seed: int, trials: int) -> list[float | None]:
    """Times in the order of the trials, until the best known one is reached, or so many trials."""
    times, chosen = table(path).times[shape], planners(path, shape)[planner]
    best = min(each for each in times.values() if each is not None)
    state = chosen.start(seen(path, shape), seed)
    found: list[float | None] = []
    while len(found) < trials and (not found or found[-1] != best):
        ranked = chosen.propose(state)
        if not ranked:
            break
        choice = ranked[0].choice
        took = times[choice.name]
        outcome = "timed" if took is not None else "refuted"
        judgement = Judgement(choice.name, outcome, "timing", microseconds=took)
        state = chosen.learn(state, observation(choice, judgement))
        found.append(took)
    return found


def near(times: Sequence[float | None], best: float) -> int | None:
    """The trial that first came within 5 % of the best."""
    return next((number for number, each in enumerate(times, 1) if each is not None and each <= NEAR * best), None)


def one(job: tuple[Path, Shape, str, int, int]) -> tuple[tuple[Path, Shape, str, int, int], list[float | None]]:
    return job, searched(*job)


def jobs(paths: Sequence[Path], chosen: argparse.Namespace) -> Iterator[tuple[Path, Shape, str, int, int]]:
    for path in paths:
        for shape in table(path).times:
            for planner in chosen.planners or planners(path, shape):
                for seed in range(1 if planner == "exhaustive" else chosen.seeds):
                    yield path, shape, planner, seed, chosen.trials


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return low, middle, high


def told(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Trials to come near the best, by table, shape and planner."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["target"], "x".join(map(str, row["shape"])), row["planner"]), []).append(row)
    for (target, shape, planner), each in groups.items():
        took = [row["near"] if row["near"] is not None else row["trials"] + 1 for row in each]
        low, middle, high = quartiles(took)
        missed = sum(row["near"] is None for row in each)
        lost = f", {missed} of {len(each)} never" if missed else ""
        yield f"{target} {shape:18} {planner:26} {middle:6.1f} trials ({low:.1f} to {high:.1f}){lost}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("replay",))
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200, help="after which a search is given up")
    parser.add_argument("--planners", nargs="*", default=())
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    paths = chosen.tables or sorted(RESULTS.glob("*.json"))
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        for (path, shape, planner, seed, trials), times in pool.map(one, list(jobs(paths, chosen)), chunksize=4):
            known = [each for each in table(path).times[shape].values() if each is not None]
            found = {"target": table(path).target, "shape": shape, "planner": planner, "seed": seed, "trials": trials}
            rows.append({**found, "near": near(times, min(known)), "times": times})
    print("\n".join(told(rows)))
    print("\n".join(rules(rows)))
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "planner.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    return 0


def rules(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What each stop rule saves of a bandit's searches, and keeps of their results."""
    bandit = [row for row in rows if row["planner"] == "bandit"]
    for rule in RULES if bandit else ():
        found = [replay(rule, row["times"], row["bound"]) for row in bandit if "bound" in row]
        if found:
            saved = statistics.mean(each.saved for each in found)
            kept = statistics.mean(each.kept for each in found)
            yield f"{rule}: saves {saved:.0%} of the trials, keeps {kept:.1%} of the result"


if __name__ == "__main__":
    sys.exit(main())
