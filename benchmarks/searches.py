"""Stores and prints the results of replayed searches: benchmarks/results/planner/TARGET.json."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from benchmarks.recorded import Job, Shape, Shapes, Table, Trial, table, trials_to_near_best

KEPT = Path(__file__).resolve().parent / "results" / "planner"
TIMING = 1.0
"""Seconds per candidate on the GPU. The largest shapes take more, due to host-device transfers."""


@frozen
class Rejections:
    """Candidates rejected before compilation, and seconds.

    early: number rejected. spent: seconds of all candidates for proof, compilation and one second on the GPU. saved:
    compilation and GPU time of the rejected ones, estimated by the mean of the compiled ones.
    """

    candidates: int
    early: int
    spent: float
    saved: float

    @property
    def share(self) -> float:
        return self.early / self.candidates

    @property
    def shorter(self) -> float:
        """The fraction of time saved, relative to compiling all candidates."""
        return self.saved / (self.spent + self.saved)


@frozen
class Row:
    """Searches of one shape by one planner. near: for each seed, the first trial within 5 % of the best known; None if
    none of `trials` was. teachers: training shapes of the bandit; empty for all others of the table.
    """

    shape: Shape
    planner: str
    trials: int
    near: tuple[int | None, ...]
    stopped: Rejections
    teachers: Shapes = ()

    @property
    def key(self) -> tuple[Shape, str, Shapes]:
        return self.shape, self.planner, self.teachers

    @property
    def median(self) -> float:
        """Median of `reached`; above `trials` if half of the searches did not come near."""
        return statistics.median(self.reached)

    @property
    def reached(self) -> list[int]:
        """`near`, with trials + 1 for searches that did not come near."""
        return [self.trials + 1 if each is None else each for each in self.near]


def count_rejections(trials: Iterable[Trial], found: Table) -> Rejections:
    compiled = [each.compiled for each in found.points.values() if each.compiled]
    timing = TIMING if found.device != "none" else 0.0
    seen = [found.points[name] for name, _ in trials]
    early = sum(each.early for each in seen)
    spent = sum(each.proof + each.compiled + timing * each.ready for each in seen)
    return Rejections(len(seen), early, round(spent, 1), round(early * (statistics.mean(compiled) + timing), 1))


def rows(runs: Sequence[tuple[Job, list[Trial]]]) -> list[Row]:
    """Group searches by shape and planner, in the order of their seeds."""
    groups: dict[tuple[Path, Shape, str], list[tuple[Job, list[Trial]]]] = {}
    for job, trials in runs:
        groups.setdefault((job.path, job.shape, job.planner), []).append((job, trials))
    return [_row(group) for group in groups.values()]


def _row(group: Sequence[tuple[Job, list[Trial]]]) -> Row:
    job = group[0][0]
    found = table(job.path)
    best = found.best(job.shape)
    reached = tuple(trials_to_near_best([took for _, took in trials], best) for _, trials in group)
    names = count_rejections((each for _, trials in group for each in trials), found)
    return Row(job.shape, job.planner, job.trials, reached, names, job.teachers)


def stored_rows(path: Path) -> list[Row]:
    """Stored rows; empty if there is no file."""
    data: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []
    return [_parsed(each) for each in data]


def _parsed(data: Mapping[str, Any]) -> Row:
    shape: Shape = tuple(data["shape"])
    teachers: Shapes = tuple(tuple(each) for each in data["teachers"])
    return Row(shape, data["planner"], data["trials"], tuple(data["near"]), Rejections(**data["stopped"]), teachers)


def store_rows(path: Path, target: str, device: str, made: Sequence[Row]) -> None:
    """Store rows; keeps those of other shapes, planners and teachers."""
    found = {each.key: each for each in (*stored_rows(path), *made)}
    about = "trials to come within 5 % of the best known, by seed; python benchmarks/planner.py replay"
    lines = ",\n".join(json.dumps(asdict(each)) for each in found.values())
    head = json.dumps({"about": about, "target": target, "device": device})[:-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def summary_lines(target: str, found: Sequence[Row]) -> Iterator[str]:
    """Lines: trials to come near the best, by shape and planner; then early rejections, by planner."""
    for row in found:
        low, _, high = statistics.quantiles(row.reached, n=4) if len(row.near) > 1 else (row.reached[0],) * 3
        missed = sum(each is None for each in row.near)
        lost = f", {missed} of {len(row.near)} never" if missed else ""
        by = f", taught by {' '.join(map(shape_name, row.teachers))}" if row.teachers else ""
        took = f"{row.median:6.1f} trials ({low:.1f} to {high:.1f})"
        yield f"{target} {shape_name(row.shape):18} {row.planner:26} {took}{lost}{by}"
    for planner in dict.fromkeys(row.planner for row in found):
        each = total(row.stopped for row in found if row.planner == planner)
        yield (
            f"{target} {planner}: {each.share:.1%} of {each.candidates:,} candidates were rejected before compilation, "
            f"which makes the searches {each.shorter:.0%} shorter"
        )


COLUMNS = ("bandit", "tpe", "random", "exhaustive")


def markdown_rows(found: Sequence[Row]) -> Iterator[str]:
    """Rows of a Markdown table: a shape, then the trials of each of `COLUMNS`, trained on all other shapes."""
    cells = {(row.shape, row.planner): cell(row) for row in found if not row.teachers}
    for shape in dict.fromkeys(row.shape for row in found):
        yield f"| {' x '.join(map(str, shape))} | {' | '.join(cells.get((shape, name), '') for name in COLUMNS)} |"


def cell(row: Row) -> str:
    """The median as text."""
    return f"{row.median:g}" if row.median <= row.trials else f"more than {row.trials}"


def total(parts: Iterable[Rejections]) -> Rejections:
    found = list(parts)
    return Rejections(
        sum(each.candidates for each in found),
        sum(each.early for each in found),
        sum(each.spent for each in found),
        sum(each.saved for each in found),
    )


def shape_name(shape: Shape) -> str:
    return "x".join(map(str, shape))
