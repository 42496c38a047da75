"""`argus bench kernelbench`: problems of KernelBench by `torch.compile(backend="argus")`, each in its own process."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.command_result import Outcome
from argus.runtime.processes.isolated import run_command

SCHEMA = "argus-kernelbench-1"
WORKER = (sys.executable, "-m", "argus.torch.kernelbench.worker")
_NUMBER = re.compile(r"(\d+)_(.+)\.py")


@click.command()
@click.argument("checkout", type=click.Path(path_type=Path))
@click.option("--level", type=click.IntRange(1, 4), required=True, help="The level of the benchmark.")
@click.option("--problem", "wanted", type=int, multiple=True, metavar="N", help="Only this problem; repeatable.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--seconds", type=float, default=300.0, show_default=True, help="The time limit of one problem.")
@click.option("--timed/--untimed", default=True, show_default=True, help="Measure times on a GPU.")
@json_option
def kernelbench(
    checkout: Path, level: int, wanted: tuple[int, ...], device: str, seconds: float, timed: bool, as_json: bool
) -> Outcome:
    """Problems of a checkout of KernelBench: proved or not, right or not, and their times beside torch's.

    On the CPU sizes are reduced, and the interpreter runs the kernels. A problem's code is the checkout's: it runs in a
    process of its own, which is stopped after the time limit. Exit code 1 if a problem is wrong.
    """
    screen = Screen()
    found: list[dict[str, Any]] = []
    for number, path in problems(checkout, level, wanted):
        row = {"problem": number, "name": path.stem.partition("_")[2]} | run(path, device, seconds, timed=timed)
        found.append(row)
        if not as_json:
            screen.lines([line(row)])
    counts = totals(found)
    if not as_json:
        screen.lines([", ".join(f"{count} {name}" for name, count in counts.items())])
    wrong = any(row.get("right") is False for row in found)
    return Outcome(int(wrong), {"schema": SCHEMA, "level": level, "device": device, "problems": found, **counts})


def problems(checkout: Path, level: int, wanted: Sequence[int]) -> list[tuple[int, Path]]:
    """The problems' files by number. Raises ArgusError (E001) where there are none."""
    folder = next(
        (each for each in (checkout / "KernelBench", checkout) if (each / f"level{level}").is_dir()), checkout
    )
    matched = ((_NUMBER.fullmatch(path.name), path) for path in sorted((folder / f"level{level}").glob("*.py")))
    found = sorted((int(match[1]), path) for match, path in matched if match)
    chosen = [(number, path) for number, path in found if not wanted or number in wanted]
    if not chosen:
        message = f"`{checkout}` has no such problem of level {level}"
        raise ArgusError(Diagnostic("E001", "error", message, help="name a checkout of KernelBench"))
    return chosen


def run(path: Path, device: str, seconds: float, *, timed: bool) -> dict[str, Any]:
    """What the worker found, or why it found nothing."""
    with tempfile.TemporaryDirectory(prefix="argus-kernelbench-") as folder:
        out = Path(folder) / "found.json"
        command = (*WORKER, str(path), str(out), device, "timed" if timed else "untimed")
        try:
            status, said = run_command(command, seconds)
            return dict(json.loads(out.read_text(encoding="utf-8")))
        except ArgusError as problem:
            return {"error": problem.diagnostic.message}
        except (OSError, ValueError):
            last = (said.strip().splitlines() or [""])[-1]  # pyright: ignore[reportPossiblyUnboundVariable]  # the process has ended
            return {"error": f"its process ended with status {status}: {last[:200]}"}  # pyright: ignore[reportPossiblyUnboundVariable]


def line(row: dict[str, Any]) -> str:
    """One problem in a line."""
    start = f"{row['problem']:>3} {row['name'][:44]:<44}"
    if row.get("error"):
        return f"{start} not run: {row['error']}"
    parts = ["proved" if row["proved"] else "in part", "right" if row["right"] else "WRONG"]
    parts += [f"error {max(row['errors']):.1e} (eager {max(row['eager_errors']):.1e})", f"{row['kernels']} kernels"]
    times: dict[str, float] = row.get("milliseconds", {})
    parts += [f"{name} {value:.3f} ms" for name, value in times.items()]
    if row["trivial"]:
        parts.append("a constant passes")
    if row["eager"]:
        parts.append("eager torch: " + "; ".join(f"{name} ({why})" for name, why in row["eager"].items()))
    return f"{start} {', '.join(parts)}"


def totals(found: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many problems are proved without fallback, right, both, and how many did not run."""
    ran = [row for row in found if not row.get("error")]
    return {
        "problems": len(found),
        "proved": sum(row["proved"] for row in ran),
        "right": sum(row["right"] for row in ran),
        "proved and right": sum(row["proved"] and row["right"] for row in ran),
        "not run": len(found) - len(ran),
    }
