"""The sections of docs/performance.md on random shapes, from what `benchmarks/dense_h200.py` has written."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argus.ops.choice import candidates

SELECTED, SEARCH, PEER = "dense_selected.json", "dense_search.json", "cuBLAS"
LOW, CLOSE, SHOWN = 0.90, 1.05, 20
Row = Mapping[str, Any]


def dense(folder: Path) -> Iterator[str]:
    for name, section in ((SELECTED, beside), (SEARCH, choices)):
        if (folder / name).is_file():
            yield from section(json.loads((folder / name).read_text(encoding="utf-8")))


def beside(data: Row) -> Iterator[str]:
    """What is selected beside cuBLAS: means, how many are low, and the lowest."""
    rows: Sequence[Row] = data["rows"]
    by = {(tuple(row["shape"]), row["regime"]): row for row in rows}
    shapes, regimes = list(dict.fromkeys(shape for shape, _ in by)), list(dict.fromkeys(str(each) for _, each in by))
    yield ""
    yield "## Random shapes vs. cuBLAS"
    yield ""
    yield f"bf16, NT, {data['device']}, torch {data['torch']}: {len(shapes)} shapes, log-uniform, M from 1 to 16384, N"
    yield "and K from 16 to 16384, of any remainder in a third of them, else multiples of 8. The kernels are those that"
    yield "`argus.matmul` launches (`benchmarks/dense_h200.py selected`); then the shapes with the lowest ratios."
    yield ""
    yield f"| | {' | '.join(regimes)} |"
    yield f"|---|{'---|' * len(regimes)}"
    ratios = {regime: [by[shape, regime]["ratio"] for shape in shapes] for regime in regimes}
    yield f"| geometric mean | {' | '.join(f'{statistics.geometric_mean(ratios[each]):.3f}' for each in regimes)} |"
    yield f"| below {LOW:.2f} | {' | '.join(str(sum(one < LOW for one in ratios[each])) for each in regimes)} |"
    yield f"| lowest | {' | '.join(f'{min(ratios[each]):.3f}' for each in regimes)} |"
    yield ""
    yield f"| M x N x K | configuration | {' | '.join(f'{each}, us (ratio)' for each in regimes)} |"
    yield f"|---|---|{'---|' * len(regimes)}"
    lowest = sorted(shapes, key=lambda shape: min(by[shape, regime]["ratio"] for regime in regimes))
    for shape in lowest[:SHOWN]:
        each = [by[shape, regime] for regime in regimes]
        said = " | ".join(f"{row['microseconds']:.1f} ({row['ratio']:.3f})" for row in each)
        yield f"| {_named(shape)} | `{each[0]['name']}` | {said} |"


def choices(data: Row) -> Iterator[str]:
    """The cost model's choices beside the fastest of a search."""
    rows: Sequence[Row] = data["rows"]
    regrets = [regret(row) for row in rows]
    known = [each for each in regrets if math.isfinite(each)]
    yield ""
    yield "## Cost model vs. search"
    yield ""
    most = max(len(row["took"]) for row in rows)
    yield f"{data['device']}: {len(rows)} other random shapes, to which the cost model was not fitted, and up to {most}"
    yield "configurations each (`benchmarks/dense_h200.py search`). The time of the choice relative to the fastest, in"
    yield "bursts and alone together, where it exceeds 1.02:"
    yield ""
    yield "| M x N x K | chosen | fastest | time |"
    yield "|---|---|---|---|"
    for over, row in sorted(zip(regrets, rows, strict=True), key=lambda pair: -pair[0]):
        if over > 1.02:
            yield f"| {_named(row['shape'])} | `{now(row)}` | `{fastest(row)}` | {over:.3f} |"
    yield ""
    near = sum(each <= CLOSE for each in known)
    yield f"Within 5 % of the fastest: {near} of {len(rows)}; geometric mean {statistics.geometric_mean(known):.3f}."


def regret(row: Row, name: str = "") -> float:
    """Time of what is chosen now, or of another, relative to the fastest; infinity if it was not timed."""
    took = {name: math.prod(times) ** 0.5 for name, times in row["took"].items() if name != PEER}
    return took.get(name or now(row), math.inf) / min(took.values())


def now(row: Row) -> str:
    m, n, k = row["shape"]
    return candidates("gemm_nt", (m, n, k), a_transposed=False, b_transposed=False, device="")[0]


def fastest(row: Row) -> str:
    took = {name: math.prod(times) for name, times in row["took"].items() if name != PEER}
    return min(took, key=took.__getitem__)


def _named(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))
