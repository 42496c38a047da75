"""What replayed searches are kept as: benchmarks/results/planner/TARGET.json, and what is told of it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from benchmarks.recorded import Job, Shape, Shapes, Table, Trial, near, table

KEPT = Path(__file__).resolve().parent / "results" / "planner"
TIMING = 1.0
"""Seconds of one candidate on the GPU. The largest products take more, as their operands go there and back."""


@frozen
class Stopped:
    """Of `candidates`, how many never saw a compiler; and seconds.

    early: those of them. spent: on all, proof and code and a second on the GPU. saved: what code and the GPU would
    have taken of those stopped, each as long as it took on average of those that were compiled.
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
        """The share of the time that there would be without a gate before the compiler."""
        return self.saved / (self.spent + self.saved)


@frozen
class Row:
    """Searches of one shape by one planner. near: of each seed the trial that came within 5 % of the best known, None
    if none of `trials` did. teachers: shapes that taught the bandit; empty for all others of the table.
    """

    shape: Shape
    planner: str
    trials: int
    near: tuple[int | None, ...]
    stopped: Stopped
    teachers: Shapes = ()

    @property
    def key(self) -> tuple[Shape, str, Shapes]:
        return self.shape, self.planner, self.teachers

    @property
    def median(self) -> float:
        """More than `trials` where half of the searches did not come near."""
        return statistics.median(self.reached)

    @property
    def reached(self) -> list[int]:
        return [self.trials + 1 if each is None else each for each in self.near]


def stopped(trials: Iterable[Trial], found: Table) -> Stopped:
    compiled = [each.compiled for each in found.points.values() if each.compiled]
    timing = TIMING if found.device != "none" else 0.0
    seen = [found.points[name] for name, _ in trials]
    early = sum(each.early for each in seen)
    spent = sum(each.proof + each.compiled + timing * each.ready for each in seen)
    return Stopped(len(seen), early, round(spent, 1), round(early * (statistics.mean(compiled) + timing), 1))


def rows(runs: Sequence[tuple[Job, list[Trial]]]) -> list[Row]:
    """Searches of one shape by one planner together, in the order of their seeds."""
    groups: dict[tuple[Path, Shape, str], list[tuple[Job, list[Trial]]]] = {}
    for job, trials in runs:
        groups.setdefault((job.path, job.shape, job.planner), []).append((job, trials))
    return [_row(group) for group in groups.values()]


def _row(group: Sequence[tuple[Job, list[Trial]]]) -> Row:
    job = group[0][0]
    found = table(job.path)
    best = found.best(job.shape)
    reached = tuple(near([took for _, took in trials], best) for _, trials in group)
    names = stopped((each for _, trials in group for each in trials), found)
    return Row(job.shape, job.planner, job.trials, reached, names, job.teachers)


def read(path: Path) -> list[Row]:
    """Rows that are kept; none where there is no file."""
    data: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []
    return [_parsed(each) for each in data]


def _parsed(data: Mapping[str, Any]) -> Row:
    shape: Shape = tuple(data["shape"])
    teachers: Shapes = tuple(tuple(each) for each in data["teachers"])
    return Row(shape, data["planner"], data["trials"], tuple(data["near"]), Stopped(**data["stopped"]), teachers)


def keep(path: Path, target: str, device: str, made: Sequence[Row]) -> None:
    """Beside what is kept already of other shapes, planners and teachers."""
    found = {each.key: each for each in (*read(path), *made)}
    about = "trials to come within 5 % of the best known, by seed; python benchmarks/planner.py replay"
    lines = ",\n".join(json.dumps(asdict(each)) for each in found.values())
    head = json.dumps({"about": about, "target": target, "device": device})[:-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def told(target: str, found: Sequence[Row]) -> Iterator[str]:
    """Trials to come near the best, by shape and planner; then what was stopped, by planner."""
    for row in found:
        low, _, high = statistics.quantiles(row.reached, n=4) if len(row.near) > 1 else (row.reached[0],) * 3
        missed = sum(each is None for each in row.near)
        lost = f", {missed} of {len(row.near)} never" if missed else ""
        by = f", taught by {' '.join(map(named, row.teachers))}" if row.teachers else ""
        took = f"{row.median:6.1f} trials ({low:.1f} to {high:.1f})"
        yield f"{target} {named(row.shape):18} {row.planner:26} {took}{lost}{by}"
    for planner in dict.fromkeys(row.planner for row in found):
        each = together(row.stopped for row in found if row.planner == planner)
        yield (
            f"{target} {planner}: {each.share:.1%} of {each.candidates:,} candidates were stopped before a compiler, "
            f"which makes the searches {each.shorter:.0%} shorter"
        )


COLUMNS = ("bandit", "tpe", "random", "exhaustive")


def page(found: Sequence[Row]) -> Iterator[str]:
    """Lines of a table in Markdown: a shape, then what each of `COLUMNS` took, taught by all other shapes."""
    cells = {(row.shape, row.planner): cell(row) for row in found if not row.teachers}
    for shape in dict.fromkeys(row.shape for row in found):
        yield f"| {' x '.join(map(str, shape))} | {' | '.join(cells.get((shape, name), '') for name in COLUMNS)} |"


def cell(row: Row) -> str:
    """The median."""
    return f"{row.median:g}" if row.median <= row.trials else f"more than {row.trials}"


def together(parts: Iterable[Stopped]) -> Stopped:
    found = list(parts)
    return Stopped(
        sum(each.candidates for each in found),
        sum(each.early for each in found),
        sum(each.spent for each in found),
        sum(each.saved for each in found),
    )


def named(shape: Shape) -> str:
    return "x".join(map(str, shape))
