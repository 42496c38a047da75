"""Planners beside each other: `python benchmarks/planner.py PART [TABLE ...]`.

TABLE is a file of times of all designs of a space on some shapes (`benchmarks/space.py`), some of which the gate stops;
what the gate and the GPU would say of a candidate is read from there. What the bandit believes before a search is
fitted to the other shapes of the table, never to the shape that it searches. Parts:

replay: each planner searches each shape, once with each seed. It prints how many trials the planners take to come
within 5 % of the best known time (median and quartiles over the seeds), and how many candidates never saw a compiler.
Results go to planner.json in `--out`.
rules: searches of the bandit of so many trials, what each stop rule would have saved of them, and kept.
minutes: what the bandit has found after ten minutes on two processors, by the seconds that each candidate took.
learn: the same fit to all shapes, into kb/experience/TARGET.json, which `argus optimize` begins with.
predict: a table of a target without a card, by the static model, from build/space/TARGET/table.json.
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
TIMING, TEN_MINUTES = 1.0, 600.0
"""Seconds: of one candidate on the GPU, generously; and of a whole search."""
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


def searched(
    path: Path, shape: Shape, planner: str, seed: int, trials: int, *, whole: bool = False
) -> list[tuple[str, float | None]]:
    """Names and times in the order of the trials, so many, or fewer where the best known one is reached before.

    whole: whether a search goes on behind that.
    """
    times, chosen = table(path).times[shape], planners(path, shape)[planner]
    best = min(each for each in times.values() if each is not None)
    state = chosen.start(seen(path, shape), seed)
    found: list[tuple[str, float | None]] = []
    while len(found) < trials and (whole or not found or found[-1][1] != best):
        ranked = chosen.propose(state)
        if not ranked:
            break
        choice = ranked[0].choice
        took = times[choice.name]
        outcome = "timed" if took is not None else "refuted"
        judgement = Judgement(choice.name, outcome, "timing", microseconds=took)
        state = chosen.learn(state, observation(choice, judgement))
        found.append((choice.name, took))
    return found


def near(times: Sequence[float | None], best: float) -> int | None:
    """The trial that first came within 5 % of the best."""
    return next((number for number, each in enumerate(times, 1) if each is not None and each <= NEAR * best), None)


Job = tuple[Path, Shape, str, int, int]


def one(job: Job) -> tuple[Job, list[float | None]]:
    return job, [took for _, took in searched(*job)]


def through(job: Job) -> tuple[Job, list[tuple[str, float | None]]]:
    return job, searched(*job, whole=True)


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
    parser.add_argument("part", choices=("replay", "rules", "minutes", "learn", "predict"))
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200, help="after which a search is given up")
    parser.add_argument("--planners", nargs="*", default=())
    parser.add_argument("--shape", default="", help="MxNxK, of minutes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    paths = chosen.tables or sorted(RESULTS.glob("*.json"))
    if chosen.part == "predict":
        predicted(chosen.tables[0], chosen.out)
        return 0
    if chosen.part == "rules":
        rules(paths, chosen)
        return 0
    if chosen.part == "minutes":
        minutes(paths[0], chosen)
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
    print("\n".join(stopped(rows)))
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
        said = Compiled(
            point["registers"], point["spills"], point["shared"], point["serialised"], point.get("beside", 0.0)
        )
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


def stopped(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many of the candidates that a planner chose never saw a compiler."""
    for planner in dict.fromkeys(row["planner"] for row in rows):
        times = [each for row in rows if row["planner"] == planner for each in row["times"]]
        share = sum(each is None for each in times) / len(times)
        yield f"{planner}: {share:.1%} of {len(times):,} candidates were stopped"


def rules(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    """What each stop rule would have saved of the bandit's searches, and kept of their results."""
    wanted = [
        (path, shape, "bandit", seed, chosen.trials)
        for path in paths
        for shape in table(path).times
        for seed in range(chosen.seeds)
    ]
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        runs = [(seen(job[0], job[1]).bound, [took for _, took in times]) for job, times in pool.map(through, wanted)]
    for rule in RULES:
        found = [replay(rule, times, bound) for bound, times in runs]
        saved, kept = statistics.mean(each.saved for each in found), statistics.mean(each.kept for each in found)
        least = min(each.kept for each in found)
        text = f"epsilon {rule.epsilon}" if rule.epsilon is not None else f"{rule.attempts} attempts without gain"
        print(
            f"{text}: saves {saved:.0%} of {chosen.trials} trials, keeps {kept:.1%} of the result (least {least:.1%})"
        )


def minutes(path: Path, chosen: argparse.Namespace) -> None:
    """The bandit's best after ten minutes of two processors, beside the best known."""
    data = json.loads(path.read_text(encoding="utf-8"))
    seconds = {point["name"]: point["proof"] + point["compiled"] for point in data["points"]}
    named = {"x".join(map(str, each)): each for each in table(path).times}
    shape = named.get(chosen.shape) or next(iter(named.values()))
    times = table(path).times[shape]
    best = min(each for each in times.values() if each is not None)
    shares: list[float] = []
    counts: list[int] = []
    for seed in range(chosen.seeds):
        spent, tried, reached = 0.0, 0, float("inf")
        for name, took in searched(path, shape, "bandit", seed, chosen.trials, whole=True):
            spent += seconds.get(name, 0.0) / 2 + (0.0 if took is None else TIMING)
            if spent > TEN_MINUTES:
                break
            tried, reached = tried + 1, min(reached, took or float("inf"))
        shares.append(best / reached)
        counts.append(tried)
    print(f"{shape}: after ten minutes {statistics.median(counts):.0f} candidates (at most {chosen.trials} are tried),")
    print(f"the best has {statistics.median(shares):.1%} of the best known speed (least {min(shares):.1%})")


if __name__ == "__main__":
    sys.exit(main())
