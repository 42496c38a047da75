"""Generates docs/performance.md from measurements: `python benchmarks/performance.py [RESULTS] [--check]`.

RESULTS (default benchmarks/results) holds what `benchmarks/gemm_h200.py run --selected --out RESULTS` writes, one
FAMILY.json per family, and the tuning.json of `benchmarks/tuning.py run`. Output: the page, a roofline plot and a plot
of ratios by shape. With --check nothing is written; exit status 1 if a file is out of date.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import Any, cast

from attrs import frozen

from argus.cli.bench.figures import Point, Ratio, Roof, ratios, roofline
from argus.ops.choice import select

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, ROOFLINE, RATIOS = "docs/performance.md", "docs/performance/roofline.svg", "docs/performance/ratios.svg"
REGIMES = ("duty-cycled", "sustained")
"""As the rows of a file name them."""
RESULT = 2
"""Bytes of an element of C."""
ROOF = Roof(4.2, (("16-bit floats", 989.0), ("8-bit floats", 1979.0)))
"""Bandwidth of copies as measured on the GPU; tensor-core peaks from its data sheet [NVIDIA H200, 2024]."""
FLOOR = 0.95
CLOSE = 1.03
INTRODUCTION = """
Every kernel here is proved before it is compiled: `python benchmarks/gemm_h200.py build` leaves out what is not. `run`
compares each with float64 on random shapes with tails, then times it against the library: interleaved calls, random
data, operands that rotate through more memory than the cache holds. A ratio is the library's time over ours in the same
round; the tables show the median over rounds with its quartiles. Above 1, ours is faster.

There are two regimes, because the clock of one kernel differs between them by up to a fifth: *duty-cycled* launches
follow an idle gap and run at the highest clock; *sustained* launches run back to back at the power limit. Compare
figures within one column only.

`argus.matmul` and the other operators take the configuration that a cost model selects. *Selected* means that only this
configuration was timed. *Fastest of n* means that n were timed and each column shows its fastest: what a search finds,
and more than a call without a search gets. Two configuration names are those of the two columns."""
PLOTS = """
![roofline](performance/roofline.svg)

![ratios by shape](performance/ratios.svg)"""
Shape = tuple[int, int, int]
Row = Mapping[str, Any]


def batch_of(shape: Shape) -> int:
    """The number of GEMMs per call, as in families/batched.py."""
    return max(8, min(512, (1 << 27) // (shape[0] * shape[1])))


@frozen
class About:
    """A family of measurements.

    what: the operation, in words. operand: bytes per element of A and B. products: GEMMs per call for a shape, for rows
    that do not say. second: whether a second B multiplies the same A. residual: whether a matrix is added. note: a
    remark on the figures.
    """

    what: str
    operand: int = 2
    products: Callable[[Shape], int] = lambda _: 1
    second: bool = False
    residual: bool = False
    note: str = ""

    def bytes(self, shape: Shape) -> int:
        """Compulsory traffic: operands and result, each moved once."""
        m, n, k = shape
        columns = 2 * n if self.second else n
        return self.operand * (m + columns) * k + RESULT * m * n * (2 if self.residual else 1)

    def operations(self, shape: Shape) -> int:
        return 2 * prod(shape) * (2 if self.second else 1)


FAMILIES: Mapping[str, About] = {
    "gemm": About("bf16, A row-major, B column-major"),
    "layouts_nn": About("bf16, both row-major"),
    "layouts_tn": About("bf16, A column-major, B row-major"),
    "layouts_tt": About("bf16, both column-major"),
    "layouts_f16": About("f16, A row-major, B column-major"),
    "batched": About("bf16, batched", products=batch_of),
    "few_rows": About("bf16, M from 1 to 300"),
    "splitk": About("bf16, few tiles: split-K"),
    "streamk": About(
        "bf16, few tiles: stream-K with a workspace",
        note="Stream-K and split-K with a workspace, and three kernels without one for comparison. `argus.matmul` "
        "takes such a program only for shapes where it was faster than the configurations of gemm.",
    ),
    "fp8": About("e4m3, one scale per matrix", operand=1),
    "fp8_blocks": About("e4m3, one scale per 1 x 128 and 128 x 128", operand=1),
    "fused": About("bf16, bias and GELU"),
    "epilogues_bias": About("bf16, bias"),
    "epilogues_silu": About("bf16, bias and SiLU"),
    "epilogues_scaled": About("bf16, a scale in device memory"),
    "epilogues_residual": About("bf16, residual added", residual=True),
    "epilogues_gated": About("bf16, SiLU(A W^T) * (A V^T)", products=lambda _: 2, second=True),
}
"""In the order of the page; other families follow."""


@frozen
class Measured:
    """A family's file. rows: one per kernel, shape and regime, as gemm_h200.py writes them, each with a ratio. note:
    tells the runs apart in a file with several.
    """

    family: str
    peer: str
    machine: str
    rows: Sequence[Row]
    note: str = ""

    @property
    def about(self) -> About:
        return FAMILIES.get(self.family, About("bf16"))

    def rate(self, row: Row) -> float:
        """TFLOP/s of a call. In older files, whose rows do not say `products`, the rate is that of one product."""
        return row["rate"] if "products" in row else row["rate"] * self.about.products(shape_of(row))

    @property
    def others(self) -> list[str]:
        """The peers other than the one that the ratios refer to."""
        return [name for name in dict.fromkeys(row["name"] for row in self.rows if row["theirs"]) if name != self.peer]

    @property
    def shapes(self) -> list[Shape]:
        return list(dict.fromkeys(shape_of(row) for row in self.rows))

    def at(self, shape: Shape, regime: str) -> list[Row]:
        return [row for row in self.rows if shape_of(row) == shape and row["regime"] == regime]

    def best(self, shape: Shape, regime: str) -> Row | None:
        """Our fastest kernel for a shape; where only the selected one was timed, that one."""
        ours = [row for row in self.at(shape, regime) if not row["theirs"]]
        return max(ours, key=lambda row: row["ratio"], default=None)

    def ours(self, regime: str) -> Iterator[tuple[Shape, Row]]:
        for shape in self.shapes:
            row = self.best(shape, regime)
            if row is not None:
                yield shape, row

    @property
    def timed(self) -> int:
        """The largest number of our kernels timed for one shape."""
        ours = Counter((shape_of(row), row["regime"]) for row in self.rows if not row["theirs"])
        return max(ours.values())

    @property
    def chosen(self) -> str:
        return "selected" if self.timed == 1 else f"fastest of {self.timed}"


def shape_of(row: Row) -> Shape:
    m, n, k = row["shape"]
    return m, n, k


def measured(folder: Path) -> list[Measured]:
    """The family files with a timed kernel of ours, in the order of the page; other files are skipped."""
    found: list[Measured] = []
    for path in sorted(folder.glob("*.json")):
        read: object = json.loads(path.read_text(encoding="utf-8"))
        data = cast("Mapping[str, Any]", read if isinstance(read, dict) else {})
        if not data.keys() >= {"family", "peer", "rows"}:
            continue
        machine = f"{data['device']}, CUDA {data['cuda']}, torch {data['torch']}"
        rows = [row for row in data["rows"] if row["ratios"] and isfinite(row["ratio"])]
        if any(not row["theirs"] for row in rows):
            found.append(Measured(data["family"], data["peer"], machine, rows, data.get("note", "")))
    order = list(FAMILIES)
    return sorted(found, key=lambda each: order.index(each.family) if each.family in order else len(order))


def documents(folder: Path) -> dict[str, str]:
    """The page and its plots, by path relative to the project."""
    families = measured(folder)
    tuning = folder / "tuning.json"
    choices = json.loads(tuning.read_text(encoding="utf-8")) if tuning.is_file() else None
    return {
        PAGE: "\n".join([*page(families), *chosen(choices), ""]),
        ROOFLINE: roofline("Roofline and measured kernels", points(families), ROOF),
        RATIOS: ratios("Time of the peer over ours, median and quartiles", ratio_rows(families)),
    }


# -- the page ------------------------------------------------------------------------------------------------


def page(families: Sequence[Measured]) -> Iterator[str]:
    yield "# Performance"
    yield ""
    yield "Generated by `python benchmarks/performance.py` from the files of benchmarks/results; do not edit."
    yield ""
    if not families:
        yield "No measurements in benchmarks/results."
        return
    yield from INTRODUCTION.strip().splitlines()
    yield ""
    yield from summary(families)
    yield ""
    yield from PLOTS.strip().splitlines()
    for each in families:
        yield ""
        yield from section(each)


def summary(families: Sequence[Measured]) -> Iterator[str]:
    """One row per family: geometric means, and the shape with the smallest ratio."""
    yield "## Summary"
    yield ""
    yield "Geometric mean of the ratios over each family's shapes, and the minimum of both columns with its shape."
    yield ""
    yield f"| family | operation | configuration | vs. | {' | '.join(REGIMES)} | minimum |"
    yield f"|---|---|---|---|{'---|' * len(REGIMES)}---|"
    for each in families:
        means = " | ".join(mean(each, regime) for regime in REGIMES)
        ratio, shape = min((row["ratio"], shape) for regime in REGIMES for shape, row in each.ours(regime))
        least = f"{ratio:.3f} ({named(shape)})"
        link = f"[{each.family}](#{each.family}-vs-{anchor(each.peer)})"
        yield f"| {link} | {each.about.what} | {each.chosen} | {each.peer} | {means} | {least} |"


def named(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def anchor(words: str) -> str:
    """A part of a heading as its anchor spells it."""
    return "".join(each for each in words.lower().replace(" ", "-") if each.isalnum() or each in "-_")


def section(each: Measured) -> Iterator[str]:
    yield f"## {each.family} vs. {each.peer}"
    yield ""
    yield f"{each.about.what}. {each.machine}. Configurations: {each.chosen}. TFLOP/s (ratio, quartiles)."
    for note in filter(None, (each.about.note, each.note)):
        yield ""
        yield note
    yield ""
    yield f"| M x N x K | configuration | {' | '.join(REGIMES)} |"
    yield f"|---|---|{'---|' * len(REGIMES)}"
    for shape in each.shapes:
        rows = [each.best(shape, regime) for regime in REGIMES]
        if all(row is None for row in rows):
            continue
        names = dict.fromkeys(f"`{row['name']}`" for row in rows if row is not None)
        cells = " | ".join(cell(each, row) for row in rows)
        yield f"| {counted(each, shape, rows)} | {', '.join(names)} | {cells} |"
    yield f"| geometric mean | | {' | '.join(mean(each, regime) for regime in REGIMES)} |"
    for name in each.others:
        yield f"| vs. {name} | | {' | '.join(mean_beside(each, name, regime) for regime in REGIMES)} |"
    yield ""
    for regime in REGIMES:
        below = [f"{named(shape)} ({row['ratio']:.3f})" for shape, row in each.ours(regime) if row["ratio"] < FLOOR]
        yield f"* Below {FLOOR}, {regime}: {', '.join(below) or 'none'}."


def counted(each: Measured, shape: Shape, rows: Sequence[Row | None]) -> str:
    """A shape, preceded by the number of GEMMs per call if there are several."""
    counts = {int(row["products"]) for row in rows if row is not None and "products" in row}
    count = max(counts, default=each.about.products(shape))
    return named(shape) if count == 1 else f"{count} of {named(shape)}"


def mean_beside(each: Measured, peer: str, regime: str) -> str:
    """The geometric mean of this peer's median times over ours, over the shapes with its times."""
    found: list[float] = []
    for shape, row in each.ours(regime):
        theirs = [one["milliseconds"] for one in each.at(shape, regime) if one["name"] == peer]
        found += [one / row["milliseconds"] for one in theirs]
    return f"{statistics.geometric_mean(found):.3f}" if found else "not timed"


def cell(each: Measured, row: Row | None) -> str:
    if row is None:
        return "not timed"
    low, high = quartiles(row["ratios"])
    return f"{each.rate(row):.0f} ({row['ratio']:.3f}, {low:.3f} to {high:.3f})"


def mean(each: Measured, regime: str) -> str:
    found = [row["ratio"] for _, row in each.ours(regime)]
    return f"{statistics.geometric_mean(found):.3f}" if found else "not timed"


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def chosen(tuning: Mapping[str, Any] | None) -> Iterator[str]:
    """The selected configuration against the best of a search, from benchmarks/tuning.py."""
    if tuning is None:
        return
    results = tuning["results"]
    yield ""
    yield "## Selected configuration vs. the best of a search"
    yield ""
    yield f"{tuning['device']}; {len(results)} shapes, {max(each['tried'] for each in results)} proved configurations"
    yield "each. The regime columns show the time of the configuration that the cost model selected before this search,"
    yield "as a multiple of the fastest. The last two columns show what it selects since it was fitted to this search,"
    yield "and its time as a multiple of the fastest over both regimes (in parentheses: from short rounds only)."
    yield ""
    yield f"| M x N x K | selected | fastest | {' | '.join(REGIMES)} | selected now | both |"
    yield f"|---|---|---|{'---|' * len(REGIMES)}---|---|"
    both: list[tuple[float, float]] = []
    for each in results:
        medians: dict[str, dict[str, float]] = each["timed"]["medians"]
        said = [f"{over(medians[regime], each['chosen']):.3f}" if regime in medians else "-" for regime in REGIMES]
        fastest = dict.fromkeys(f"`{min(times, key=lambda name: times[name])}`" for times in medians.values())
        now = select(*each["shape"])
        both.append((together(each, each["chosen"]), together(each, now)))
        said += [f"`{now}`", f"{both[-1][1]:.3f}" if now in next(iter(medians.values())) else f"({both[-1][1]:.3f})"]
        cells = [" x ".join(map(str, each["shape"])), f"`{each['chosen']}`", ", ".join(fastest), *said]
        yield f"| {' | '.join(cells)} |"
    yield ""
    near, nearer = (sum(each <= CLOSE for each in times) for times in zip(*both, strict=True))
    yield f"Within 3 % of the fastest, both regimes together: {near} of {len(results)} as selected before this search;"
    yield f"{nearer} of {len(results)} since configurations and constants were chosen by it, which is no test."


def together(result: Mapping[str, Any], name: str) -> float:
    """Time as a multiple of the fastest, geometric mean of the regimes; from the short rounds if there is no other."""
    medians: Mapping[str, Mapping[str, float]] = result["timed"]["medians"]
    first = next(iter(medians.values()))
    if name not in first:
        return over(result["first"], name)
    return over({each: statistics.geometric_mean(times[each] for times in medians.values()) for each in first}, name)


def over(times: Mapping[str, float], name: str) -> float:
    """Time as a multiple of the fastest; infinity if it was not timed."""
    return times.get(name, float("inf")) / min(times.values())


# -- the plots -----------------------------------------------------------------------------------------------


def points(families: Sequence[Measured]) -> list[Point]:
    """Duty-cycled times, whose clock is that of the peaks; of the peers, the one that the ratios refer to."""
    found: list[Point] = []
    for each in families:
        for shape in each.shapes:
            intensity = each.about.operations(shape) / each.about.bytes(shape)
            ours = each.best(shape, "duty-cycled")
            theirs = next((row for row in each.at(shape, "duty-cycled") if row["name"] == each.peer), None)
            for row, filled in ((ours, True), (theirs, False)):
                if row is not None:
                    found.append(Point(each.family, intensity, each.rate(row), filled))
    return found


def ratio_rows(families: Sequence[Measured]) -> list[Ratio]:
    rows: list[Ratio] = []
    for each in families:
        for shape in each.shapes:
            found = [(regime, each.best(shape, regime)) for regime in REGIMES]
            values = [(name, *three(row)) for name, row in found if row is not None]
            if values:
                rows.append(Ratio(f"{each.family} {'x'.join(map(str, shape))}", values))
    return rows


def three(row: Row) -> tuple[float, float, float]:
    low, high = quartiles(row["ratios"])
    return low, row["ratio"], high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
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
        print(f"{name} is out of date")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
