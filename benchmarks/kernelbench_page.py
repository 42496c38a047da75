"""Generates docs/kernelbench.md from rows of `argus bench kernelbench --into`: `python benchmarks/kernelbench_page.py`.

Rows are those of benchmarks/results/kernelbench_h200.jsonl, or of the files named. Of several rows of a problem the one
with most comparisons counts, with the times of the one that has most peers. With --check the page is only compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "benchmarks" / "results" / "kernelbench_h200.jsonl"
PAGE = ROOT / "docs" / "kernelbench.md"
COUNT = ["aten.add.Tensor"]
LEVELS = {1: 100, 2: 100}
"""Problems of each level."""
BANDWIDTH = 4.8e12
"""Bytes a second, by the data sheet [NVIDIA H200, 2024]."""
PRODUCTS = 989e12 / 6
"""Operations a second of products of f32: six bf16 products each, at the data sheet's rate."""
HEADS = (
    *("problem", "proved", "right", "comparisons", "error", "eager's error", "argus", "eager", "ratio", "compile"),
    *("bound", ""),
)
Row = Mapping[str, Any]
ABOUT = """\
# KernelBench on an H200

What `argus bench kernelbench` found of the problems of levels 1 and 2 at their own sizes
([torch-compile.md](torch-compile.md#kernelbench) says what is compared and how times are taken). This page is generated
by `benchmarks/kernelbench_page.py` from the rows of the run.

*Proved*: each operation is a kernel proved to compute what the graph says, none runs in eager torch. *Right*: within
1e-4 of float64, or within twice the error of eager torch without TF32, in all comparisons of the row. *Stock* is the
benchmark's own comparison with eager torch (1e-4), without TF32 and with it, as torch is set by default; eager torch
is timed as it is set by default. *Bound* is the least time, of memory that is read and written once at 4.8 TB/s, or of
products at 165 TFLOP/s (six bf16 products for one of f32), as a share of the time measured.

The run had two minutes of an H200, torch 2.11: every other problem in an order that begins with those without
convolutions, with two seeds, no other shapes, a comparison after the times and medians of 12 rounds; `torch.compile`
was not measured. Meanwhile ten processes proved and built kernels on 16 cores that other work shared: a convolution
that has no proof by the time limit gets slower kernels, or none that fit in memory."""


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows, one a problem, in order."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            key = row["level"], row["problem"]
            found[key] = merged(found[key], row) if key in found else row
    return [found[key] for key in sorted(found)]


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The row that says more, with the times that say more."""
    if one.get("error") or other.get("error"):
        return other if one.get("error") else one
    more, less = sorted((one, other), key=lambda row: -len(row["errors"]))
    timed = max((more, less), key=lambda row: len(row.get("milliseconds", {})))
    return more | {name: timed[name] for name in ("milliseconds", "rounds", "bytes", "flops") if name in timed}


def page(rows: Sequence[Row]) -> Iterator[str]:
    yield ABOUT
    for level, count in LEVELS.items():
        own = [row for row in rows if row["level"] == level]
        yield from summary(level, count, own)
    yield from table(rows)
    yield from failures(rows)


def summary(level: int, count: int, rows: Sequence[Row]) -> Iterator[str]:
    ran = [row for row in rows if not row.get("error")]
    both = [row for row in ran if row["proved"] and row["right"]]
    yield f"\n## Level {level}\n"
    yield f"Of {count} problems {len(rows)} were begun, and {len(ran)} ran to their end:\n"
    yield "| | problems |\n|---|---|"
    counts: dict[str, Callable[[Row], bool]] = {
        "proved, nothing in eager torch": lambda row: row["proved"],
        "eager torch adds to a count of batches, in 64 bits, and that is all": lambda row: list(row["eager"]) == COUNT,
        "right": lambda row: row["right"],
        "right against eager torch instead of float64": lambda row: row["against"] != ["float64"],
        "stock comparison, without TF32": lambda row: row["stock"],
        "stock comparison, with TF32": lambda row: row["stock_tf32"],
        "a constant passes": lambda row: row["trivial"],
    }
    yield f"| proved and right | {len(both)} |"
    for name, holds in counts.items():
        yield f"| {name} | {sum(map(holds, ran))} |"
    yield "\nEager torch's time over ours, and `torch.compile`'s:\n"
    yield "| | problems | geometric mean over eager | faster than eager | geometric mean over compile |"
    yield "|---|---|---|---|---|"
    sound = [row for row in both if not row["trivial"]]
    for name, chosen in (("all that ran", ran), ("proved and right", both), ("of those, no constant passes", sound)):
        timed = [row["milliseconds"] for row in chosen if "milliseconds" in row]
        over = [each["eager"] / each["argus"] for each in timed]
        beside = [each["compile"] / each["argus"] for each in timed if "compile" in each]
        faster = f"{sum(one > 1 for one in over)} of {len(over)}" if over else ""
        yield f"| {name} | {len(chosen)} | {mean(over)} | {faster} | {mean(beside)} |"


def mean(ratios: Sequence[float]) -> str:
    """The geometric mean, and of how many."""
    return f"{statistics.geometric_mean(ratios):.2f} ({len(ratios)})" if ratios else "not measured"


def table(rows: Sequence[Row]) -> Iterator[str]:
    yield "\n## Problems\n"
    yield "Times in milliseconds; an error is the greatest of all comparisons, relative to 1 + the value.\n"
    yield f"|{'|'.join(f' {each} ' for each in HEADS)}|"
    yield "|---" * len(HEADS) + "|"
    for row in rows:
        if not row.get("error"):
            yield "| " + " | ".join(cells(row)) + " |"


def cells(row: Row) -> Iterator[str]:
    yield named(row)
    yield "yes" if row["proved"] else "in part"
    yield "yes" if row["right"] else "**no**"
    yield str(len(row["errors"]))
    yield f"{max(row['errors']):.1e}"
    yield f"{max(row['eager_errors']):.1e}"
    times = row.get("milliseconds", {})
    yield f"{times['argus']:.3f}" if times else ""
    yield f"{times['eager']:.3f}" if times else ""
    yield f"{times['eager'] / times['argus']:.2f}" if times else ""
    yield f"{times['compile']:.3f}" if "compile" in times else ""
    yield f"{100 * bound(row) / times['argus']:.0f} %" if times else ""
    yield "; ".join(notes(row))


def bound(row: Row) -> float:
    """The least time in milliseconds."""
    return 1e3 * max(row["bytes"] / BANDWIDTH, row["flops"] / PRODUCTS)


def notes(row: Row) -> Iterator[str]:
    for operation, why in row["eager"].items():
        yield f"`{operation.removesuffix('.default')}` in eager torch: {why or 'not covered'}"
    if row["trivial"]:
        yield "a constant passes"
    if row["against"] != ["float64"]:
        yield "against eager torch"
    if row["shapes_dropped"]:
        yield f"{len(row['shapes'])} other shapes, not at {', '.join(row['shapes_dropped'])}"


def failures(rows: Sequence[Row]) -> Iterator[str]:
    lost = [row for row in rows if row.get("error")]
    if lost:
        yield "\n## Not run to the end\n"
        yield from (f"* {named(row)}: {'. '.join(' '.join(row['error'].split()).split('. ')[:2])}" for row in lost)


def named(row: Row) -> str:
    return f"{row['level']}.{row['problem']} {row['name'].rstrip('_').replace('_', ' ')}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=Path, default=[ROWS])
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    asked = parser.parse_args()
    text = "\n".join(page(read(asked.rows))) + "\n"
    if asked.check:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
