"""Compares planners on recorded tables: `python benchmarks/planner.py PART [TABLE ...]`.

TABLE is a file of times of all designs of a space on some shapes (`benchmarks/space.py`), some of which the gate
rejects; replayed searches read the results of gate and GPU from it. The bandit's priors are fitted to other shapes of
the table, never to the one that it searches. Results are merged into the files of `--out`. Parts:

replay: each planner searches each shape, once per seed. Prints the number of trials to come within 5 % of the best
known time (median and quartiles over the seeds), how many candidates were rejected before compilation, and the time
that this saves. Results: TARGET.json. `--teachers` selects the training shapes; by default all others.
rules: trials saved and result kept by each stopping rule on searches of the bandit: rules.json.
minutes: the bandit's result after ten minutes on two CPUs, by the recorded seconds of each candidate: minutes.json.
tell: prints stored results, also as the table of docs/decisions/0024-planners-are-functions.md.
learn: fits priors to all shapes and writes kb/experience/TARGET.json, used by `argus optimize`.
predict: writes a table of predicted times for a target without a GPU, from build/space/TARGET/table.json; shapes that
the table already has are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import predict
from argus.policy.experience import experience_text, fit_experience
from argus.policy.knowledge import kb_folder
from argus.policy.stopping import Rule, replay
from argus.search.problems.problem import Gemm
from benchmarks.recorded import (
    PLANNERS,
    TABLES,
    Job,
    Shape,
    Trial,
    initial_situation,
    replay_search,
    table,
    training_problem,
)
from benchmarks.searches import KEPT, TIMING, markdown_rows, rows, shape_name, store_rows, stored_rows, summary_lines

TEN_MINUTES = 600.0
RULES = (Rule(epsilon=0.25), Rule(epsilon=0.5), Rule(attempts=8), Rule(attempts=16), Rule(attempts=32))


def one(job: Job) -> tuple[Job, list[Trial]]:
    return job, replay_search(job)


def jobs(paths: Sequence[Path], chosen: argparse.Namespace) -> Iterator[Job]:
    for path in paths:
        for shape in table(path).times:
            for planner in chosen.planners:
                for seed in range(1 if planner == "exhaustive" else chosen.seeds):
                    teachers = tuple(chosen.teachers) if planner == "bandit" else ()
                    if not chosen.shapes or shape in chosen.shapes:
                        yield Job(path, shape, planner, seed, chosen.trials, teachers, chosen.part != "replay")


def run(paths: Sequence[Path], chosen: argparse.Namespace) -> list[tuple[Job, list[Trial]]]:
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        return list(pool.map(one, list(jobs(paths, chosen)), chunksize=4))


def run_replay(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    for path in paths:
        found = table(path)
        made = rows(run([path], chosen))
        store_rows(chosen.out / f"{found.target}.json", found.target, found.device, made)
        print("\n".join(summary_lines(found.target, made)), flush=True)


def tell(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    for path in paths:
        target = table(path).target
        kept = stored_rows(chosen.out / f"{target}.json")
        print("\n".join((*summary_lines(target, kept), *markdown_rows(kept))))


def rules(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    """Trials saved and result kept by each stopping rule on the bandit's searches."""
    chosen.planners = ("bandit",)
    runs = [
        (initial_situation(job.path, job.shape).bound, [took for _, took in trials], table(job.path).best(job.shape))
        for job, trials in run(paths, chosen)
    ]
    kept: list[dict[str, Any]] = []
    for rule in RULES:
        found = [replay(rule, times, bound) for bound, times, _ in runs]
        shares = [each.kept for each in found]
        kept.append(
            {"epsilon": rule.epsilon, "attempts": rule.attempts, "saved": statistics.mean(each.saved for each in found)}
            | {"kept": statistics.mean(shares), "least": min(shares)}
        )
        text = f"epsilon {rule.epsilon}" if rule.epsilon is not None else f"{rule.attempts} attempts without gain"
        print(
            f"{text}: saves {kept[-1]['saved']:.0%} of {chosen.trials} trials, keeps {kept[-1]['kept']:.1%} "
            f"of the result (least {kept[-1]['least']:.1%})"
        )
    write(chosen.out / "rules.json", {"trials": chosen.trials, "searches": len(runs), "rules": kept})


def minutes(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    """The bandit's best after ten minutes on two CPUs, relative to the best known."""
    chosen.planners = ("bandit",)
    groups: dict[tuple[Path, Shape], list[list[Trial]]] = {}
    for job, trials in run(paths, chosen):
        groups.setdefault((job.path, job.shape), []).append(trials)
    kept: list[dict[str, Any]] = []
    for (path, shape), searches in groups.items():
        within = [within_ten_minutes(path, trials) for trials in searches]
        best = table(path).best(shape)
        shares = [best / min((took for _, took in each if took is not None), default=float("inf")) for each in within]
        tried = statistics.median(map(len, within))
        kept.append({"target": table(path).target, "shape": shape, "candidates": tried, "shares": shares})
        print(
            f"{table(path).target} {shape_name(shape)}: {tried:.0f} candidates after ten minutes (of at most "
            f"{chosen.trials}), the best has {statistics.median(shares):.1%} of the best known speed "
            f"(least {min(shares):.1%})"
        )
    write(chosen.out / "minutes.json", {"trials": chosen.trials, "rows": kept})


def within_ten_minutes(path: Path, trials: Sequence[Trial]) -> list[Trial]:
    """The trials completed within ten minutes."""
    found, spent = list[Trial](), 0.0
    timing = TIMING if table(path).device != "none" else 0.0
    for name, took in trials:
        point = table(path).points[name]
        spent += (point.proof + point.compiled) / 2 + timing * point.ready
        if spent > TEN_MINUTES:
            break
        found.append((name, took))
    return found


def learn(paths: Sequence[Path], _chosen: argparse.Namespace) -> None:
    for path in paths:
        shapes, target = tuple(table(path).times), table(path).target
        found = fit_experience([training_problem(path, shape) for shape in shapes])
        place = kb_folder() / "experience" / f"{target}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(
            experience_text(found, [f"{path.name}: {', '.join(map(shape_name, shapes))}"]), encoding="utf-8"
        )
        print(f"{place.name}: {len(found.trends)} weights from {len(shapes)} shapes")


def write_predictions(paths: Sequence[Path], chosen: argparse.Namespace) -> None:
    """Write tables of predicted times. paths: table.json of `benchmarks/space.py prepare`, one per target."""
    for path in paths:
        data = json.loads(path.read_text(encoding="utf-8"))
        target, out = data["target"], TABLES / f"{data['target']}.json"
        known: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))["rows"] if out.is_file() else []
        there = {tuple(row["shape"]) for row in known}
        found = [*known, *predicted_rows(data, [shape for shape in chosen.shapes if shape not in there])]
        points = [{name: point[name] for name in POINT} for point in data["rows"]]
        about = "microseconds, predicted by the static model from the compiler's reports"
        head = {"device": "none", "target": target, "about": about}
        text = json.dumps({**head, "rows": found, "points": points}, separators=(",", ":"))
        out.write_text(text.replace("},{", "},\n{") + "\n", encoding="utf-8")
        print(f"{len(found)} times of {target}")


POINT = ("name", "state", "verdict", "code", "proof", "compiled", "registers", "spills", "shared")


def predicted_rows(data: dict[str, Any], shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    """Rows with predicted times of the ready designs."""
    for point in (each for each in data["rows"] if shapes and each["state"] == "ready"):
        kernel = Gemm(*shapes[0], "bf16", data["target"]).kernel(point["name"])
        counted = (point["registers"], point["spills"], point["shared"], point["serialised"])
        said = Compiled(*counted, point.get("beside", 0.0))
        for m, n, k in shapes:
            took = predict(kernel, {"M": m, "N": n, "K": k}, said).microseconds
            yield {"shape": [m, n, k], "name": point["name"], "microseconds": round(took, 3)}


def write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"about": f"python benchmarks/planner.py {path.stem}", **data}, indent=1) + "\n", "utf-8"
    )


PARTS: dict[str, Callable[[Sequence[Path], argparse.Namespace], None]] = {
    "replay": run_replay,
    "rules": rules,
    "minutes": minutes,
    "tell": tell,
    "learn": learn,
    "predict": write_predictions,
}


def extents(text: str) -> Shape:
    m, n, k = map(int, text.split("x"))
    return m, n, k


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200, help="most trials of a search")
    parser.add_argument("--planners", nargs="*", choices=PLANNERS, default=PLANNERS)
    parser.add_argument("--shapes", nargs="*", type=extents, default=(), metavar="MxNxK", help="all by default")
    parser.add_argument("--teachers", nargs="*", type=extents, default=(), metavar="MxNxK")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=KEPT)
    chosen = parser.parse_args()
    PARTS[chosen.part](chosen.tables or sorted(TABLES.glob("*.json")), chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
