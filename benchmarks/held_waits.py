"""Waits and barriers in the code of every shipped gfx942 kernel (no AMD GPU is needed, and none was used).

    python benchmarks/held_waits.py code [--products] [--store] [--families NAME ...] [limits]
    python benchmarks/held_waits.py predicted [--store] [--families NAME ...] [limits]

`code` builds every kernel, compares waits and barriers in its assembly with the program, and counts what the compiler
moves in the text that does not hold them. `predicted` predicts both texts on an MI300X, for kernels with matrix
instructions; with --products, so does `code`. --store writes that part of results/held_waits.json. Limits: as of
machine_code.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, exp, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.cost.dies import DIE_MACHINES
from argus.core.ir import Kernel, Mma, walk
from argus.emit.build import COMPILE_SECONDS
from argus.emit.hip.code_intervals import CodeIntervals, code_intervals, numbers_of_lines
from argus.emit.hip.prelude import loosened
from argus.emit.hip.resource_report import ResourceReport, parse_report
from argus.emit.hip.taken import taken
from argus.emit.hip.text import compiled_texts, hip_statements, hip_texts, is_free
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names
from argus.kernels.schedules.stream_cdna3 import Cdna3Stream
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled
from argus.runtime.machine.performance import of_code
from benchmarks.cases import (
    Answer,
    Limits,
    add_limits,
    digest_of,
    kernels_of_case,
    limits_of,
    over_cases,
    shipped_cases,
)
from benchmarks.grouped_inputs import integers_of, sizes_of
from benchmarks.shipped import families as traced

RESULTS = Path(__file__).resolve().parent / "results" / "held_waits.json"
SIZES = {"Z": 4, "B": 2, "H": 16, "G": 1, "KB": 32, "NB": 32}
SIZE = 4096
"""Of all sizes that `SIZES` does not name: M, N, K, and the tokens of attention."""
GROUPED = (8192, 8, 4096, 4096)
"""Rows, experts of equally many rows, N and K of grouped products."""
STREAMS = {"M": 1024, "N": 1024, "K": 8192}
"""Of products of which several workgroups share a tile."""
Row = dict[str, Any]


def read(kernel: Kernel, text: str) -> tuple[ResourceReport, CodeIntervals]:
    statements = hip_statements(kernel, text)
    with TemporaryDirectory() as folder:
        numbers = numbers_of_lines(statements)
        made = compile_hip(text, "made", Path(folder), COMPILE_SECONDS, lines=True, numbers=numbers)
    symbol = assign_names(kernel).kernel
    return parse_report(made.remarks, made.assembly_text), code_intervals(
        kernel, made.assembly_text, symbol, statements
    )


def chosen(kernel: Kernel) -> tuple[str, ResourceReport, CodeIntervals]:
    """The text that a build takes."""
    texts = compiled_texts(kernel)
    text, made = taken(kernel, texts, partial(read, kernel), lambda each: each[0].scratch_bytes, COMPILE_SECONDS)
    return text, *made


def moved(found: CodeIntervals) -> int:
    return sum(each.count for each in found.moved)


def code(families: Sequence[str], limits: Limits, *, products: bool) -> Row:
    done = over_cases(partial(_code, products=products), cases(families), limits)
    rows = done.rows
    every = {key: sum(row[key] for row in rows) for key in ("placed", "unplaced", "moved", "moved unless held")}
    free = [row["stem"] for row in rows if row["free"] and not row["held"]]
    unheld = [row["stem"] for row in rows if not row["held"] and not row["free"]]
    spilled = sum(row["scratch"] > 0 for row in rows)
    affected = sum(row["moved unless held"] > 0 for row in rows)
    print(f"{len(rows)} kernels, {spilled} with scratch memory")
    print(f"{len(free)} of a text that does not hold because they ask for it, {len(unheld)} because others spill")
    print(", ".join(f"{key} {value:,}" for key, value in every.items()), f"in {affected} kernels")
    return {
        "kernels": len(rows),
        **every,
        "kernels moved unless held": affected,
        "free": free,
        "unheld": unheld,
        "rows": rows,
    } | done.counts()


def _code(case: str, known: str, *, products: bool) -> Answer | None:
    kernels = kernels_of(case, products=products)
    digest = digest_of(kernels, "emit/hip")
    return None if digest == known else (digest, [_compared(case, kernel) for kernel in kernels])


def _compared(case: str, kernel: Kernel) -> Row:
    text, report, found = chosen(kernel)
    _, loose = read(kernel, loosened(text))
    row = {
        "stem": case, "kernel": kernel.name, "held": text != loosened(text),
        "free": is_free(kernel), "scratch": report.scratch_bytes,
        "vgprs": report.vgprs, "agprs": report.agprs, "boundaries": found.boundaries, "placed": found.placed,
        "unplaced": found.unplaced, "moved": moved(found), "moved unless held": moved(loose),
    }  # fmt: skip
    if not (row["held"] or row["free"]) or moved(found) or found.unplaced or report.spills:
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def predicted(families: Sequence[str], limits: Limits) -> Row:
    done = over_cases(_predicted, cases(families), limits)
    rows = done.rows
    means = {}
    for kind in dict.fromkeys(kind_of(row["stem"]) for row in rows):
        ratios = sorted(row["ratio"] for row in rows if kind_of(row["stem"]) == kind)
        means[kind] = round(exp(sum(map(log, ratios)) / len(ratios)), 3)
        print(f"{kind}: held over not held {means[kind]} in {len(ratios)} kernels, {ratios[0]} to {ratios[-1]}")
    return {
        "sizes": {**SIZES, "else": SIZE},
        "grouped": GROUPED,
        "streams": STREAMS,
        "means": means,
        "rows": rows,
    } | done.counts()


def _predicted(case: str, known: str) -> Answer | None:
    kernels = kernels_of(case, products=True)
    digest = digest_of(kernels, "interp/gfx942", "core/cost", "emit/hip")
    return None if digest == known else (digest, [_both(case, kernel) for kernel in kernels])


def _both(case: str, kernel: Kernel) -> Row:
    text = next(text for text in hip_texts(kernel) if text != loosened(text))
    sizes, integers = launch_of(case, kernel)
    info = emitted(kernel).info
    held, loose = (
        of_code(kernel, compiled(kernel, each, info), sizes, DIE_MACHINES["MI300X"], integers).predicted
        for each in (text, loosened(text))
    )
    row = {
        "stem": case, "held": round(held.microseconds, 1), "not held": round(loose.microseconds, 1),
        "ratio": round(held.microseconds / loose.microseconds, 3), "limit": held.limit,
    }  # fmt: skip
    print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def launch_of(case: str, kernel: Kernel) -> tuple[dict[str, int], Mapping[str, Any]]:
    """Sizes, and the contents of tensors of integers."""
    family, _, name = case.partition("-")
    config = dict(traced())[family].configs[name]
    every, integers = dict.fromkeys((symbol.name for symbol in kernel.sizes), SIZE) | SIZES, dict[str, Any]()
    if family.startswith("grouped"):
        rows, experts, columns, depth = GROUPED
        every |= sizes_of(rows, experts, columns, depth, config.bm)
        integers = integers_of([rows // experts] * experts, config.bm)
    elif isinstance(config, Cdna3Stream):
        runs = config.runs
        tiles = ceil(STREAMS["M"] / runs.rows) * ceil(STREAMS["N"] / runs.columns)
        count = ceil(tiles * runs.chunks / runs.run)
        every |= STREAMS | {"P": count, "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    return {symbol.name: every[symbol.name] for symbol in kernel.sizes}, integers


def cases(families: Sequence[str]) -> list[str]:
    return [each for each in shipped_cases() if not families or each.partition("-")[0] in families]


def kernels_of(case: str, *, products: bool) -> list[Kernel]:
    every = kernels_of_case(case)
    return [each for each in every if not products or any(isinstance(stmt, Mma) for stmt in walk(each.body))]


def kind_of(stem: str) -> str:
    family, _, config = stem.partition("-")
    return family.split("_")[0] if family.startswith("attention") else config


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("code", "predicted"))
    parser.add_argument("--families", nargs="*", default=(), help="all by default")
    parser.add_argument("--products", action="store_true", help="kernels with matrix instructions alone")
    parser.add_argument("--store", action="store_true", help="write this part of the result file")
    add_limits(parser)
    given = parser.parse_args()
    limits = limits_of(given)
    found = (
        code(given.families, limits, products=given.products)
        if given.command == "code"
        else predicted(given.families, limits)
    )
    if given.store:
        whole: Row = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**whole, given.command: found}, indent=1) + "\n", "utf-8")
    return int(any(map(found.get, ("moved", "failed", "not reached", "unheld"))))


if __name__ == "__main__":
    sys.exit(main())
