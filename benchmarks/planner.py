"""Planners beside each other: `python benchmarks/planner.py replay [--seeds N] [TABLE ...]`, or `learn`.

TABLE is a file of times of all designs of a space on some shapes (`benchmarks/space.py`), some of which the gate stops.
replay: each planner searches each shape of each table, once with each seed; what the gate and the GPU would say is read
from the table. It prints how many trials the planners take to come within 5 % of the best known time (median and
quartiles over the seeds), what stop rules would save, and how many candidates the gate stops before a compiler is
started. What the bandit believes before a search is fitted to the other shapes of the table, never to the shape that it
searches. Results go to planner.json in `--out`. learn: the same fit to all shapes of each table, into
kb/experience/TARGET.json, which `argus optimize` begins with. predict: a table of a target without a card, by the
static model, from build/space/TARGET/table.json.
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

import numpy as np
from attrs import frozen

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import predict
from argus.optimizer.judgement import Judgement
from argus.optimizer.problem import Gemm
from argus.optimizer.search import observation
from argus.optimizer.space import situation
from argus.policy.bandit import Bandit, Weight
from argus.policy.baselines import Exhaustive, Random
from argus.policy.experience import Lesson, fitted, written
from argus.policy.knowledge import home
from argus.policy.planner import Planner, Situation
from argus.policy.stopping import Rule, replay
from argus.policy.tpe import Tpe
from argus.tuning.candidates import space

RESULTS = Path(__file__).resolve().parent / "results" / "space"
NEAR = 1 / 0.95
RULES = (Rule(epsilon=0.25), Rule(epsilon=0.5), Rule(attempts=8), Rule(attempts=16), Rule(attempts=32))
SHAPES = (
    *((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024)),
    *((16384, 8192, 1024), (512, 7168, 2048)),
)
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


def lesson(path: Path, shape: Shape) -> Lesson:
    """What the table shows of one shape: the designs that have a time."""
    situation, times = seen(path, shape), table(path).times[shape]
    passed = [(each, took) for each in situation.options if (took := times[each.name]) is not None]
    features = np.array([each.features for each, _ in passed])
    return Lesson(situation.features, features, np.log([situation.bound / took for _, took in passed]))


@cache
def lessons(path: Path) -> Mapping[Shape, Lesson]:
    return {shape: lesson(path, shape) for shape in table(path).times}


def taught(path: Path, shape: Shape) -> dict[str, Weight]:
    """What the other shapes of the table teach of this one."""
    return fitted([each for other, each in lessons(path).items() if other != shape])


@cache
def seen(path: Path, shape: Shape) -> Situation:
    found = table(path)
    names = tuple(name for name in space(found.target) if name in found.times[shape])
    return situation(Gemm(*shape, "bf16", found.target), names)


@cache
def planners(path: Path, shape: Shape) -> dict[str, Planner]:
    return {
        "bandit": Bandit(taught(path, shape)),
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
    parser.add_argument("part", choices=("replay", "learn", "predict"))
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200, help="after which a search is given up")
    parser.add_argument("--planners", nargs="*", default=())
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    paths = chosen.tables or sorted(RESULTS.glob("*.json"))
    if chosen.part == "predict":
        predicted(chosen.tables[0], chosen.out)
        return 0
    if chosen.part == "learn":
        learn(paths)
        return 0
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


def predicted(points: Path, out: Path) -> None:
    """A table whose times are the static model's. points: what `benchmarks/space.py prepare` left of a target."""
    data = json.loads(points.read_text(encoding="utf-8"))
    target, rows = data["target"], list[dict[str, Any]]()
    for point in data["rows"]:
        if point["state"] != "ready":
            continue
        kernel = Gemm(*SHAPES[0], "bf16", target).kernel(point["name"])
        said = Compiled(point["registers"], point["spills"], point["shared"], point["serialised"])
        for m, n, k in SHAPES:
            found = predict(kernel, {"M": m, "N": n, "K": k}, said).microseconds
            rows.append({"shape": [m, n, k], "name": point["name"], "microseconds": round(found, 3)})
    about = "microseconds, predicted by the static model from the compiler's reports"
    text = json.dumps({"device": "none", "target": target, "about": about, "rows": rows}, separators=(",", ":"))
    (out / f"{target}.json").write_text(text.replace('},{"shape"', '},\n{"shape"') + "\n", encoding="utf-8")
    print(f"{len(rows)} times of {target}")


def learn(paths: Sequence[Path]) -> None:
    for path in paths:
        found, target = fitted(list(lessons(path).values())), table(path).target
        shapes = ", ".join("x".join(map(str, shape)) for shape in table(path).times)
        place = home() / "experience" / f"{target}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(written(found, [f"{path.name}: {shapes}"]), encoding="utf-8")
        print(f"{place.name}: {len(found)} weights from {len(table(path).times)} shapes")


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
