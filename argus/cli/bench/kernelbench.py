"""`argus bench kernelbench`: problems of KernelBench by `torch.compile(backend="argus")`, in processes of their own."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any

import click

from argus.cli.bench.kernelbench_runs import ahead, run
from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.command_result import Outcome
from argus.report.kernelbench import Asked, Problem, Row, merged
from argus.runtime.source_tree import source_tree

SCHEMA = "argus-kernelbench-3"
_NUMBER = re.compile(r"(\d+)_(.+)\.py")
_WANTED = re.compile(r"(?:(\d+)\.)?(\d+)")
_OF_CONVOLUTIONS, _OF_OTHERS = 40.0, 4.0
"""Seconds that a problem with convolutions, and one without, are expected to take ahead, where nothing is known."""


@click.command()
@click.argument("checkout", type=click.Path(path_type=Path))
@click.option("--level", "levels", type=click.IntRange(1, 4), multiple=True, help="A level; repeatable. Default: 1, 2.")
@click.option("--problem", "wanted", multiple=True, metavar="N", help="Only N or LEVEL.N; repeatable, in order.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--seconds", type=float, default=300.0, show_default=True, help="The time limit of one problem.")
@click.option("--budget", type=float, default=0.0, help="End after so many seconds. Default: no limit.")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Of weights and inputs.")
@click.option("--shapes", type=click.IntRange(0), default=2, show_default=True, help="Other sizes.")
@click.option("--rounds", type=click.IntRange(0), default=30, show_default=True, help="Measured calls on a GPU.")
@click.option("--beside", type=click.Choice(["eager", "compile", "all"]), default="all", show_default=True,
              help="Measure beside eager torch alone, torch.compile, or its max-autotune mode, too.")  # fmt: skip
@click.option(
    "--gpus",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="GPUs that share the problems; 0: only prepare them.",
)
@click.option(
    "--prepared", type=click.Path(path_type=Path), help="A folder of what is prepared and begun, for later runs."
)
@click.option("--jobs", type=click.IntRange(0), default=0, help="Processes that prove and build kernels ahead.")
@click.option("--ahead-seconds", type=float, default=300.0, show_default=True, help="Their limit of one problem.")
@click.option("--cold", is_flag=True, help="They begin each problem with empty caches, and its row says the time.")
@click.option("--costs", type=click.Path(path_type=Path), help="Rows of an earlier run: what takes long begins early.")
@click.option("--solver", default="portfolio", show_default=True, help="The solver of the proofs.")
@click.option("--into", type=click.Path(path_type=Path), help="Add each problem's row to this file, as JSON in a line.")
@json_option
def kernelbench(
    checkout: Path,
    levels: tuple[int, ...],
    wanted: tuple[str, ...],
    budget: float,
    beside: str,
    into: Path | None,
    costs: Path | None,
    prepared: Path | None,
    as_json: bool,
    **how: Any,  # noqa: ANN401 reason: options of a run, by name
) -> Outcome:
    """Problems of a checkout of KernelBench: proved or not, right or not, and their times beside torch's.

    On the CPU sizes are reduced, and the interpreter runs the kernels. Problems' code is the checkout's: it runs in a
    process of its own, which is stopped by a problem that takes too long; the next ones have a new process. What was
    found of a problem until then is in its row. Problems whose kernels are prepared (--jobs) run first. Max-autotune
    is measured when all problems have had their turn, in rows of its own. With --prepared, runs at once or in turn
    share what is prepared, and each problem is begun by one of them. Exit code 1 if a problem is wrong.
    """
    screen = Screen()
    peers = {"eager": (), "compile": ("compile",), "all": ("compile", "max-autotune")}[beside]
    until = time() + budget if budget else 0.0
    found: dict[tuple[int, int], Row] = {}
    with tempfile.TemporaryDirectory(prefix="argus-kernelbench-") as own:
        folder = str(prepared or own)
        Path(folder).mkdir(parents=True, exist_ok=True)
        chosen = tuple(problems(checkout, levels or (1, 2), wanted))
        asked = Asked(chosen, until=until, beside=peers, folder=folder, **how)
        place = Path(own) / "asked.json"
        asked.write(place)
        tree: Row = {"tree": source_tree()}
        with ahead(asked, place, begun_early(chosen, asked.jobs, _costs(costs))):
            for row in (each | tree for each in run(asked, place)):
                key = row["level"], row["problem"]
                found[key] = merged(found[key], row) if key in found else row
                if into is not None:
                    with into.open("a", encoding="utf-8") as rows:
                        rows.write(json.dumps(row) + "\n")
                if not as_json:
                    screen.lines([line(row)])
    rows = [*found.values()]
    counts = {"asked": len(asked.problems), **totals(rows)}
    if not as_json:
        screen.lines([", ".join(f"{count} {name}" for name, count in counts.items())])
    wrong = any(row.get("right") is False for row in rows)
    return Outcome(int(wrong), {"schema": SCHEMA, "device": asked.device, "problems": rows, **counts})


def problems(checkout: Path, levels: Sequence[int], wanted: Sequence[str]) -> list[Problem]:
    """The problems, by level and number or in the order wanted. Raises ArgusError (E001) where there are none."""
    known = {(each.level, each.number): each for level in levels for each in _of_level(checkout, level)}
    chosen = list(known)
    if wanted:
        parts = [_WANTED.fullmatch(each) for each in wanted]
        named = [([int(part[1])] if part[1] else list(levels), int(part[2])) for part in parts if part]
        chosen = [(level, number) for among, number in named for level in among if (level, number) in known]
        parsed = len(named) == len(wanted)
        chosen = chosen if parsed else []
    if not chosen:
        which = " and ".join(map(str, levels))
        message = f"`{checkout}` has no such problem of level {which}"
        raise ArgusError(Diagnostic("E001", "error", message, help="name a checkout of KernelBench"))
    return [known[each] for each in dict.fromkeys(chosen)]


def _of_level(checkout: Path, level: int) -> list[Problem]:
    folder = next(
        (each for each in (checkout / "KernelBench", checkout) if (each / f"level{level}").is_dir()), checkout
    )
    matched = ((_NUMBER.fullmatch(path.name), path) for path in (folder / f"level{level}").glob("*.py"))
    found = [Problem(level, int(match[1]), str(path)) for match, path in matched if match]
    return sorted(found, key=lambda each: each.number)


def _costs(place: Path | None) -> Mapping[str, float]:
    """Seconds that problems took ahead, by the rows of an earlier run."""
    lines = place.read_text(encoding="utf-8").splitlines() if place is not None else []
    rows: list[Row] = [json.loads(each) for each in lines]
    return {
        f"{row['level']}.{row['problem']}": row["ahead"]["seconds"]
        for row in rows
        if "seconds" in (row.get("ahead") or {})
    }


def begun_early(chosen: Sequence[Problem], jobs: int, costs: Mapping[str, float]) -> list[Problem]:
    """The order in which problems are prepared: two thirds of the processes begin with those that take longest.

    The others prepare the rest, the shortest first, so that there is always one to run. costs: seconds, as known.
    """

    def cost(problem: Problem) -> float:
        if problem.key in costs:
            return costs[problem.key]
        text = Path(problem.path).read_text(encoding="utf-8")
        return _OF_CONVOLUTIONS if "nn.Conv" in text else _OF_OTHERS

    longest = sorted(chosen, key=cost, reverse=True)
    first = longest[: 2 * jobs // 3]
    rest = longest[len(first) :]
    short = [each for each in reversed(rest) if cost(each) < _OF_CONVOLUTIONS / 2]
    return [*first, *short, *(each for each in rest if each not in short)]


# -- what is said --------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    """One problem in a line."""
    start = f"{row['level']}.{row['problem']:<3} {row['name'][:44]:<44}"
    if row.get("error"):
        return f"{start} not run: {row['error']}"
    parts = ["proved" if row["proved"] else "in part", "right" if row["right"] else "WRONG"]
    parts += [f"error {max(row['errors']):.1e} (eager {max(row['eager_errors']):.1e})", f"{row['kernels']} kernels"]
    if row["against"] != ["float64"]:
        parts.append(f"against {' and '.join(row['against'])}")
    times: dict[str, float] = row.get("milliseconds", {})
    parts += [f"{name} {value:.3f} ms" for name, value in times.items()]
    if row["trivial"]:
        parts.append("a constant passes")
    if row["shapes_dropped"]:
        parts.append(f"{len(row['shapes'])} other shapes, not at {', '.join(row['shapes_dropped'])}")
    if row.get("cut"):
        parts.append(f"{len(row['errors'])} comparisons of {row['wanted']}: {row['cut']}")
    if row.get("breaks"):
        parts.append("Python's code between its graphs")
    if row["eager"]:
        parts.append("eager torch: " + "; ".join(f"{name} ({why})" for name, why in row["eager"].items()))
    return f"{start} {', '.join(parts)}"


def totals(found: Sequence[Row]) -> dict[str, int]:
    """How many problems are proved without fallback, right, both, and how many did not run."""
    ran = [row for row in found if not row.get("error")]
    return {
        "problems": len(found),
        "proved": sum(row["proved"] for row in ran),
        "right": sum(row["right"] for row in ran),
        "proved and right": sum(row["proved"] and row["right"] for row in ran),
        "not run": len(found) - len(ran),
    }
