"""Generates docs/performance.md from measurements: `python benchmarks/performance.py [RESULTS] [--check]`.

RESULTS, by default benchmarks/results, is the output folder of `benchmarks/gemm_h200.py run --selected --out RESULTS`,
one FAMILY.json each, and of `benchmarks/dense_h200.py` (`dense_page`). Writes the page, a roofline plot and a plot of
ratios by shape; with --check it only tests whether they are up to date.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import Any, cast

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.cli.bench.figures import Point, Ratio, Roof, ratios, roofline
from benchmarks.dense_page import dense

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, ROOFLINE, RATIOS = "docs/performance.md", "docs/performance/roofline.svg", "docs/performance/ratios.svg"
REGIMES = {"duty-cycled": "duty-cycled", "sustained": "sustained"}
RESULT = 2
"""Bytes of an element of C."""
ROOF = Roof(4.2, (("16-bit floats", 989.0), ("8-bit floats", 1979.0)))
"""Memory bandwidth as measured by copies; matrix units by the data sheet [NVIDIA H200, 2024]."""
FLOOR = 0.95
CLOSE = 1.03
INTRODUCTION = """
Every kernel here is proved before it is compiled: `python benchmarks/gemm_h200.py build` skips a kernel that is not
proved. `run` checks each kernel against float64 on random shapes with partial tiles, then times it, interleaved with
the library, on random data, with operands that rotate through more memory than L2 holds. A ratio is the library's time
over ours in the same round, the median of the rounds with its quartiles: above 1 ours is faster. *Duty-cycled* times
are single calls with idle time in between, at the highest clock; *sustained* times are back-to-back calls at the power
limit. The same kernel differs by up to a fifth between the two: compare figures of one column only.

`argus.matmul` and its relatives use the configuration that a cost model selects. *selected*: only the configuration
selected at the time was timed. *fastest of n*: n configurations were timed, and each column shows its fastest, which a
search would find and a call without one may not get. Two names of configurations belong to the two columns."""
PLOTS = """
![roofline](performance/roofline.svg)

![ratios by shape](performance/ratios.svg)"""
Shape = tuple[int, int, int]
Row = Mapping[str, Any]


def batch_of(shape: Shape) -> int:
    """Number of products per call in families/batched.py."""
    return max(8, min(512, (1 << 27) // (shape[0] * shape[1])))


@frozen
class About:
    """What a family computes. operand: bytes of an element of A and B. products: per call, by shape, for rows that do
    not record it. second: whether there is a second B. residual: whether a matrix is added. note: a remark on figures.
    """

    what: str
    operand: int = 2
    products: Callable[[Shape], int] = lambda _: 1
    second: bool = False
    residual: bool = False
    note: str = ""

    def bytes(self, shape: Shape) -> int:
        """Bytes of the operands and the result, each moved once."""
        m, n, k = shape
        columns = 2 * n if self.second else n
        return self.operand * (m + columns) * k + RESULT * m * n * (2 if self.residual else 1)

    def operations(self, shape: Shape) -> int:
        return 2 * prod(shape) * (2 if self.second else 1)


FAMILIES: Mapping[str, About] = {
    "gemm": About("bf16, NT: A row-major, B column-major"),
    "layouts_nn": About("bf16, NN: both row-major"),
    "layouts_tn": About("bf16, TN: A column-major, B row-major"),
    "layouts_tt": About("bf16, TT: both column-major"),
    "layouts_f16": About("f16, NT: A row-major, B column-major"),
    "batched": About("bf16, batched", products=batch_of),
    "few_rows": About("bf16, few rows of A"),
    "splitk": About("bf16, few tiles: split-K in a cluster"),
    "streamk": About(
        "bf16, few tiles: stream-K with a workspace",
        note="Stream-K and split-K with a workspace, and three kernels without a workspace for comparison. "
        "`argus.matmul` uses such a program only for shapes where it was faster than the configurations of gemm.",
    ),
    "fp8": About("e4m3, one scale per matrix", operand=1),
    "fp8_blocks": About("e4m3, scales of 1 x 128 and 128 x 128", operand=1),
    "fused": About("bf16, bias and GELU"),
    "epilogues_bias": About("bf16, bias"),
    "epilogues_silu": About("bf16, bias and SiLU"),
    "epilogues_scaled": About("bf16, a scale in device memory"),
    "epilogues_residual": About("bf16, a matrix added", residual=True),
    "epilogues_gated": About("bf16, SiLU of a product times another", products=lambda _: 2, second=True),
}
"""In the order of the page; other families follow."""


@frozen
class Measured:
    """A family's file. rows: one per kernel, shape and regime, as gemm_h200.py writes them. note: explains the runs of
    a file that has several.
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
        """TFLOP/s of all products of a call; rows without `products` record the rate of one product."""
        return row["rate"] if "products" in row else row["rate"] * self.about.products(shape_of(row))

    @property
    def others(self) -> list[str]:
        """The peers other than the one of the ratios."""
        return [name for name in dict.fromkeys(row["name"] for row in self.rows if row["theirs"]) if name != self.peer]

    @property
    def shapes(self) -> list[Shape]:
        return list(dict.fromkeys(shape_of(row) for row in self.rows))

    def at(self, shape: Shape, regime: str) -> list[Row]:
        return [row for row in self.rows if shape_of(row) == shape and row["regime"] == regime]

    def best(self, shape: Shape, regime: str) -> Row | None:
        """Our fastest timed kernel for a shape and regime."""
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
    """The families' files with a timed kernel of ours, in the order of the page. Other files are ignored."""
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
    """The page and its plots, by path within the project."""
    families = measured(folder)
    return {
        PAGE: "\n".join([*page(families), *dense(folder), ""]),
        ROOFLINE: roofline("Roofline: hardware limits and measurements", points(families), ROOF),
        RATIOS: ratios("Time of the peer over ours, median and quartiles of the rounds", ratio_rows(families)),
    }


# -- the page ------------------------------------------------------------------------------------------------


def page(families: Sequence[Measured]) -> Iterator[str]:
    yield "# Performance"
    yield ""
    yield "Generated by `python benchmarks/performance.py` from benchmarks/results; do not edit."
    yield ""
    if not families:
        yield "There are no measurements in benchmarks/results."
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
    """One line per family: geometric mean of its ratios, and the lowest one."""
    yield "## Summary"
    yield ""
    yield "Geometric means of the ratios over each family's shapes, and the lowest ratio with its shape."
    yield ""
    yield f"| family | what | configuration | vs. | {' | '.join(REGIMES.values())} | lowest |"
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
    """A part of a heading in the form of link anchors."""
    return "".join(each for each in words.lower().replace(" ", "-") if each.isalnum() or each in "-_")


def section(each: Measured) -> Iterator[str]:
    yield f"## {each.family} vs. {each.peer}"
    yield ""
    yield f"{each.about.what}. {each.machine}. Configurations: {each.chosen}. TFLOP/s (ratio, its quartiles)."
    for note in filter(None, (each.about.note, each.note)):
        yield ""
        yield note
    yield ""
    yield f"| M x N x K | configuration | {' | '.join(REGIMES.values())} |"
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
        yield f"| vs. {name} | | {' | '.join(mean_vs(each, name, regime) for regime in REGIMES)} |"
    yield ""
    for regime, name in REGIMES.items():
        below = [f"{named(shape)} ({row['ratio']:.3f})" for shape, row in each.ours(regime) if row["ratio"] < FLOOR]
        yield f"* Below {FLOOR}, {name}: {', '.join(below) or 'none'}."


def counted(each: Measured, shape: Shape, rows: Sequence[Row | None]) -> str:
    """A shape, with the number of products per call if there are several."""
    recorded = {int(row["products"]) for row in rows if row is not None and "products" in row}
    count = max(recorded, default=each.about.products(shape))
    return named(shape) if count == 1 else f"{count} of {named(shape)}"


def mean_vs(each: Measured, peer: str, regime: str) -> str:
    """The geometric mean of this peer's median times over ours, over the shapes that it was timed on."""
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


# -- the plots -----------------------------------------------------------------------------------------------


def points(families: Sequence[Measured]) -> list[Point]:
    """Duty-cycled times, whose clock is that of the peak rates; of peers, only the one of the ratios."""
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
            found = [(name, each.best(shape, regime)) for regime, name in REGIMES.items()]
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
