"""docs/performance.md from measurements: `python benchmarks/performance.py [RESULTS] [--check]`.

RESULTS is the folder of what `benchmarks/gemm_h200.py run --selected --out RESULTS` leaves, one FAMILY.json each, and
of `benchmarks/tuning.py run`'s tuning.json; benchmarks/results by default. It writes the page, a roofline and a plot of
ratios by shape; with --check it only says whether they are what the files give.
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
REGIMES = {"duty-cycled": "single calls after idle", "sustained": "bursts at the power limit"}
IN_PLOTS = {"duty-cycled": "after idle", "sustained": "bursts"}
RESULT = 2
"""Bytes of an element of C."""
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

`argus.matmul` and its like take the configuration that a cost model selects. Where it says *selected*, the one that was
selected at the time is the only one timed. Where it says *fastest of n*, n were, and each column has the one that was
the fastest there: what a search would find, and more than a call without one gets. Two names of configurations are
those of the two columns."""
PLOTS = """
![roofline](performance/roofline.svg)

![ratios by shape](performance/ratios.svg)"""
Shape = tuple[int, int, int]
Row = Mapping[str, Any]


def batch_of(shape: Shape) -> int:
    """As many products as families/batched.py makes in a call."""
    return max(8, min(512, (1 << 27) // (shape[0] * shape[1])))


@frozen
class About:
    """What a family multiplies, in words. operand: bytes of an element of A and B. products: in a call, of a shape, if
    a row does not tell. second: whether there is another B. residual: whether a matrix is added. note: what a
    reader should know of its figures.
    """

    what: str
    operand: int = 2
    products: Callable[[Shape], int] = lambda _: 1
    second: bool = False
    residual: bool = False
    note: str = ""

    def bytes(self, shape: Shape) -> int:
        """Of the operands and the result of one product, or of two of one A, each moved once."""
        m, n, k = shape
        columns = 2 * n if self.second else n
        return self.operand * (m + columns) * k + RESULT * m * n * (2 if self.residual else 1)

    def operations(self, shape: Shape) -> int:
        return 2 * prod(shape) * (2 if self.second else 1)


FAMILIES: Mapping[str, About] = {
    "gemm": About("bf16, A by rows and B by columns"),
    "layouts_nn": About("bf16, both by rows"),
    "layouts_tn": About("bf16, A by columns and B by rows"),
    "layouts_tt": About("bf16, both by columns"),
    "layouts_f16": About("f16, A by rows and B by columns"),
    "batched": About("bf16, many products in a launch", products=batch_of),
    "few_rows": About("bf16, few rows of A"),
    "splitk": About("bf16, few tiles: K shared by blocks"),
    "streamk": About(
        "bf16, few tiles: K in runs by way of a workspace",
        note="What stream-K and split-K by a workspace can do, with three kernels without a workspace beside them. "
        "`argus.matmul` takes such a program only for shapes where it was faster than the configurations of gemm.",
    ),
    "fp8": About("e4m3, one scale a matrix", operand=1),
    "fp8_blocks": About("e4m3, scales of 1 x 128 and 128 x 128", operand=1),
    "fused": About("bf16, bias and GELU"),
    "epilogues_bias": About("bf16, bias"),
    "epilogues_silu": About("bf16, bias and SiLU"),
    "epilogues_scaled": About("bf16, a scale on the device"),
    "epilogues_residual": About("bf16, a matrix added", residual=True),
    "epilogues_gated": About("bf16, SiLU of a product times another", products=lambda _: 2, second=True),
}
"""In the order of the page; families that are not here follow."""


@frozen
class Measured:
    """A family's file. rows: of every kernel, shape and regime, as gemm_h200.py writes them, with a ratio each. note:
    of a file that holds several runs, which is which.
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
        """TFLOP/s of all products of a call; files from before rows told how many there are have the rate of one."""
        return row["rate"] if "products" in row else row["rate"] * self.about.products(shape_of(row))

    @property
    def others(self) -> list[str]:
        """Peers beside the one that ratios are to."""
        return [name for name in dict.fromkeys(row["name"] for row in self.rows if row["theirs"]) if name != self.peer]

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
    def timed(self) -> int:
        """Kernels of ours that one shape was timed with, at most; of several the fastest counts."""
        ours = Counter((shape_of(row), row["regime"]) for row in self.rows if not row["theirs"])
        return max(ours.values())

    @property
    def chosen(self) -> str:
        return "selected" if self.timed == 1 else f"fastest of {self.timed}"


def shape_of(row: Row) -> Shape:
    m, n, k = row["shape"]
    return m, n, k


def measured(folder: Path) -> list[Measured]:
    """Every family's file that holds a timed kernel of ours, in the order of the page. Other files are no families'."""
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
    yield ""
    yield from summary(families)
    yield ""
    yield from PLOTS.strip().splitlines()
    for each in families:
        yield ""
        yield from section(each)


def summary(families: Sequence[Measured]) -> Iterator[str]:
    """One line a family: what its kernels are on the whole, and where they are worst."""
    yield "## Summary"
    yield ""
    yield "Geometric means of the ratios of each family's shapes, and the least ratio of both columns with its shape."
    yield ""
    yield f"| family | what | configuration | beside | {' | '.join(REGIMES.values())} | least |"
    yield f"|---|---|---|---|{'---|' * len(REGIMES)}---|"
    for each in families:
        means = " | ".join(mean(each, regime) for regime in REGIMES)
        ratio, shape = min((row["ratio"], shape) for regime in REGIMES for shape, row in each.ours(regime))
        least = f"{ratio:.3f} ({named(shape)})"
        link = f"[{each.family}](#{each.family}-beside-{anchor(each.peer)})"
        yield f"| {link} | {each.about.what} | {each.chosen} | {each.peer} | {means} | {least} |"


def named(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def anchor(words: str) -> str:
    """A part of a heading as a link has it."""
    return "".join(each for each in words.lower().replace(" ", "-") if each.isalnum() or each in "-_")


def section(each: Measured) -> Iterator[str]:
    yield f"## {each.family} beside {each.peer}"
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
        yield f"| beside {name} | | {' | '.join(mean_beside(each, name, regime) for regime in REGIMES)} |"
    yield ""
    for regime, name in REGIMES.items():
        below = [f"{named(shape)} ({row['ratio']:.3f})" for shape, row in each.ours(regime) if row["ratio"] < FLOOR]
        yield f"* Below {FLOOR}, {name}: {', '.join(below) or 'none'}."


def counted(each: Measured, shape: Shape, rows: Sequence[Row | None]) -> str:
    """A shape, and how many products of it a call makes if these are many."""
    told = {int(row["products"]) for row in rows if row is not None and "products" in row}
    count = max(told, default=each.about.products(shape))
    return named(shape) if count == 1 else f"{count} of {named(shape)}"


def mean_beside(each: Measured, peer: str, regime: str) -> str:
    """The geometric mean of this peer's median times over ours, where it was timed."""
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
    """What is chosen without a search beside the best of one, of benchmarks/tuning.py."""
    if tuning is None:
        return
    results = tuning["results"]
    yield ""
    yield "## The choice without a search beside the best of one"
    yield ""
    yield f"{tuning['device']}; {len(results)} shapes, {max(each['tried'] for each in results)} proved configurations"
    yield "each. What the model of costs chose takes so many times what the fastest takes; last, what it chooses since"
    yield "it was fitted to this search, and what both regimes together say of that (in brackets: brief rounds alone):"
    yield ""
    yield f"| M x N x K | chosen | fastest | {' | '.join(REGIMES.values())} | chosen now | both |"
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
    yield f"Within 3 % of the fastest, both regimes together: {near} of {len(results)} as chosen before this search;"
    yield f"{nearer} of {len(results)} since configurations were shipped and constants set by it: a fit, and no test."


def together(result: Mapping[str, Any], name: str) -> float:
    """How many times the fastest it takes, the mean of the regimes; of the brief rounds where it has no other time."""
    medians: Mapping[str, Mapping[str, float]] = result["timed"]["medians"]
    first = next(iter(medians.values()))
    if name not in first:
        return over(result["first"], name)
    return over({each: statistics.geometric_mean(times[each] for times in medians.values()) for each in first}, name)


def over(times: Mapping[str, float], name: str) -> float:
    """How many times the fastest this one takes; infinity if it was not timed."""
    return times.get(name, float("inf")) / min(times.values())


# -- the plots -----------------------------------------------------------------------------------------------


def points(families: Sequence[Measured]) -> list[Point]:
    """Single calls, whose clock is the one that the peaks are at; of the peer's, the one that ratios are to."""
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
            found = [(name, each.best(shape, regime)) for regime, name in IN_PLOTS.items()]
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
