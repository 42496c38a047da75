"""docs/performance.md from measurements: `python benchmarks/performance.py [RESULTS] [--check]`.

RESULTS is the folder of what `benchmarks/gemm_h200.py run --selected --out RESULTS` leaves, one FAMILY.json each, and
of `benchmarks/tuning.py run`'s tuning.json; benchmarks/results by default. It writes the page, a roofline and a plot of
ratios by shape; with --check it only says whether they are what the files give.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from attrs import frozen

from argus.bench_figures import Point, Ratio, Roof, ratios, roofline

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, ROOFLINE, RATIOS = "docs/performance.md", "docs/performance/roofline.svg", "docs/performance/ratios.svg"
REGIMES = {"duty-cycled": "single calls after idle", "sustained": "bursts at the power limit"}
OPERAND = {"fp8": 1, "fp8_blocks": 1}
"""Bytes of an element of A and B, where they are not two."""
_RESULT = 2
ROOF = Roof(4.2, (("16-bit floats", 989.0), ("8-bit floats", 1979.0)))
"""Copies as measured on the card; the matrix unit as its data sheet says [NVIDIA H200, 2024]."""
FLOOR = 0.95
CLOSE = 1.03
INTRODUCTION = """
Every kernel here is proved before it is compiled: `python benchmarks/gemm_h200.py build` leaves out what is not. `run`
checks each against float64 on random shapes with tails, then times it beside the library in turn, on random data, over
operands that rotate through more than the cache holds. A ratio is the library's time over ours in the same round, the
median of the rounds with its quartiles: above 1 ours is faster. The same kernel differs by up to a fifth between single
calls after idle, at the highest clock, and bursts at the power limit: only figures of one column compare.

![roofline](performance/roofline.svg)

![ratios by shape](performance/ratios.svg)"""
Shape = tuple[int, int, int]
Row = Mapping[str, Any]


@frozen
class Measured:
    """A family's file. rows: of every kernel, shape and regime, as gemm_h200.py writes them."""

    family: str
    peer: str
    machine: str
    rows: Sequence[Row]

    @property
    def shapes(self) -> list[Shape]:
        return list(dict.fromkeys(shape_of(row) for row in self.rows))

    def at(self, shape: Shape, regime: str) -> list[Row]:
        return [row for row in self.rows if shape_of(row) == shape and row["regime"] == regime]

    def best(self, shape: Shape, regime: str) -> Row | None:
        """Our fastest kernel there; the one that was selected, where only that was timed."""
        ours = [row for row in self.at(shape, regime) if not row["theirs"]]
        return max(ours, key=lambda row: row["ratio"], default=None)

    def ours(self, regime: str) -> Iterator[tuple[Shape, Row]]:
        for shape in self.shapes:
            row = self.best(shape, regime)
            if row is not None:
                yield shape, row

    @property
    def searched(self) -> bool:
        """Whether any shape was timed with more than one kernel of ours, the fastest of which counts."""
        ours = [(shape_of(row), row["regime"]) for row in self.rows if not row["theirs"]]
        return len(ours) > len(set(ours))


def shape_of(row: Row) -> Shape:
    m, n, k = row["shape"]
    return m, n, k


def measured(folder: Path) -> list[Measured]:
    """Every family's file, by name."""
    found: list[Measured] = []
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if "family" in data:
            machine = f"{data['device']}, CUDA {data['cuda']}, torch {data['torch']}"
            found.append(Measured(data["family"], data["peer"], machine, data["rows"]))
    return found


def documents(folder: Path) -> dict[str, str]:
    """The page and its plots, by path within the project."""
    families = measured(folder)
    tuning = folder / "tuning.json"
    choices = json.loads(tuning.read_text(encoding="utf-8")) if tuning.is_file() else None
    return {
        PAGE: "\n".join([*page(families), *chosen(choices), ""]),
        ROOFLINE: roofline("What the card allows, and what was measured", points(families), ROOF),
        RATIOS: ratios("Time of the peer over ours, quartiles of the rounds", ratio_rows(families)),
    }


# -- the page ------------------------------------------------------------------------------------------------


def page(families: Sequence[Measured]) -> Iterator[str]:
    yield "# Performance"
    yield ""
    yield "Made by `python benchmarks/performance.py` from the files of benchmarks/results; do not edit it."
    yield ""
    if not families:
        yield "No measurements are kept in benchmarks/results."
        return
    yield from INTRODUCTION.strip().splitlines()
    for each in families:
        yield ""
        yield from section(each)


def section(each: Measured) -> Iterator[str]:
    yield f"## {each.family} beside {each.peer}"
    yield ""
    chosen = "the configuration that was then selected without a search"
    what = "the fastest of the configurations timed" if each.searched else chosen
    yield f"{each.machine}; {what}. TFLOP/s, ratio and its quartiles."
    yield ""
    yield f"| M x N x K | configuration | {' | '.join(REGIMES.values())} |"
    yield f"|---|---|{'---|' * len(REGIMES)}"
    for shape in each.shapes:
        rows = [each.best(shape, regime) for regime in REGIMES]
        names = dict.fromkeys(f"`{row['name']}`" for row in rows if row is not None)
        yield f"| {' x '.join(map(str, shape))} | {', '.join(names)} | {' | '.join(map(cell, rows))} |"
    yield f"| geometric mean | | {' | '.join(mean(each, regime) for regime in REGIMES)} |"
    slow = [(shape, regime, row["ratio"]) for regime in REGIMES for shape, row in each.ours(regime)]
    below = [f"{' x '.join(map(str, shape))} ({ratio:.3f}, {regime})" for shape, regime, ratio in slow if ratio < FLOOR]
    yield ""
    yield f"Below {FLOOR}: {', '.join(below) or 'none'}."


def cell(row: Row | None) -> str:
    if row is None:
        return "not timed"
    low, high = quartiles(row["ratios"])
    return f"{row['rate']:.0f} ({row['ratio']:.3f}, {low:.3f} to {high:.3f})"


def mean(each: Measured, regime: str) -> str:
    found = [row["ratio"] for _, row in each.ours(regime)]
    return f"{statistics.geometric_mean(found):.3f}" if found else "not timed"


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def chosen(tuning: Mapping[str, Any] | None) -> Iterator[str]:
    """What is chosen without a search beside the best of one, of benchmarks/tuning.py."""
    if tuning is None:
        return
    results = tuning["results"]
    yield ""
    yield "## The choice without a search beside the best of one"
    yield ""
    yield f"{tuning['device']}; {len(results)} shapes, {max(each['tried'] for each in results)} proved configurations"
    yield "each. What the model of costs chooses takes so many times what the fastest takes:"
    yield ""
    yield f"| M x N x K | chosen | fastest | {' | '.join(REGIMES.values())} |"
    yield f"|---|---|---|{'---|' * len(REGIMES)}"
    together: list[float] = []
    for each in results:
        medians: dict[str, dict[str, float]] = each["timed"]["medians"]
        said = [f"{over(medians[regime], each['chosen']):.3f}" if regime in medians else "-" for regime in REGIMES]
        fastest = dict.fromkeys(f"`{min(times, key=lambda name: times[name])}`" for times in medians.values())
        cells = [" x ".join(map(str, each["shape"])), f"`{each['chosen']}`", ", ".join(fastest), *said]
        yield f"| {' | '.join(cells)} |"
        first = next(iter(medians.values()))
        overall = {name: statistics.geometric_mean(times[name] for times in medians.values()) for name in first}
        together.append(over(overall, each["chosen"]))
    yield ""
    near = sum(each <= CLOSE for each in together)
    yield f"Within 3 % of the fastest, both regimes together: {near} of {len(results)}."


def over(times: Mapping[str, float], name: str) -> float:
    """How many times the fastest this one takes; infinity if it was not timed."""
    return times.get(name, float("inf")) / min(times.values())


# -- the plots -----------------------------------------------------------------------------------------------


def points(families: Sequence[Measured]) -> list[Point]:
    """Single calls, whose clock is the one that the peaks are at; of the peer's, the one that ratios are to."""
    found: list[Point] = []
    for each in families:
        for shape in each.shapes:
            intensity = 2 * prod(shape) / bytes_of(each.family, shape)
            ours = each.best(shape, "duty-cycled")
            theirs = next((row for row in each.at(shape, "duty-cycled") if row["name"] == each.peer), None)
            for row, filled in ((ours, True), (theirs, False)):
                if row is not None:
                    found.append(Point(each.family, intensity, row["rate"], filled))
    return found


def bytes_of(family: str, shape: Shape) -> int:
    """Of A, B and C, each moved once."""
    m, n, k = shape
    return OPERAND.get(family, 2) * (m + n) * k + _RESULT * m * n


def ratio_rows(families: Sequence[Measured]) -> list[Ratio]:
    rows: list[Ratio] = []
    for each in families:
        for shape in each.shapes:
            found = [(regime, each.best(shape, regime)) for regime in REGIMES]
            values = [(regime, *three(row)) for regime, row in found if row is not None]
            rows.append(Ratio(f"{each.family} {'x'.join(map(str, shape))}", values))
    return rows


def three(row: Row) -> tuple[float, float, float]:
    low, high = quartiles(row["ratios"])
    return low, row["ratio"], high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not what it should be")
    given = parser.parse_args()
    stale: list[str] = []
    for name, content in documents(given.results).items():
        path = ROOT / name
        if given.check:
            stale += [] if path.is_file() and path.read_text(encoding="utf-8") == content else [name]
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"wrote {name}")
    for name in stale:
        print(f"{name} is not what the measurements give")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
