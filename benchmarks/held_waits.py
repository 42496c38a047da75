"""Waits and barriers in the code of every shipped gfx942 kernel (no AMD GPU is needed, and none was used).

    python benchmarks/held_waits.py code [--products] [--store] [--families NAME ...]
    python benchmarks/held_waits.py predicted [--store] [--families NAME ...]

`code` builds every kernel, compares waits and barriers in its assembly with the program, and counts what the compiler
moves in the text that does not hold them. `predicted` predicts both texts on an MI300X, for kernels with matrix
instructions; with --products, so does `code`. --store writes that part of results/held_waits.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
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
from argus.emit.hip.text import compiled_texts, hip_statements
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled
from argus.runtime.machine.performance import of_code
from benchmarks.machine_code import shipped_kernels

RESULTS = Path(__file__).resolve().parent / "results" / "held_waits.json"
SIZES = {"Z": 4, "B": 2, "H": 16, "G": 1}
SIZE = 4096
"""Of all sizes that `SIZES` does not name: M, N, K, and the tokens of attention."""
UNHELD: Mapping[str, str] = {
    "gemm_fp8_fnuz-interleaved": "all 512 registers of a lane are taken; held, two of them spill (12 bytes of scratch)",
}
"""Shipped kernels of which a build takes the text that holds nothing, and why."""
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
    found = None
    for text in compiled_texts(kernel):
        made = (text, *read(kernel, text))
        if found is None or made[1].scratch_bytes < found[1].scratch_bytes:
            found = made
        if not made[1].spills:
            break
    assert found is not None
    return found


def moved(found: CodeIntervals) -> int:
    return sum(each.count for each in found.moved)


def code(families: Sequence[str], *, products: bool) -> Row:
    rows: list[Row] = []
    for stem, kernel in kernels(families, products=products):
        text, report, found = chosen(kernel)
        _, loose = read(kernel, loosened(text))
        rows.append({
            "stem": stem, "kernel": kernel.name, "held": text != loosened(text), "scratch": report.scratch_bytes,
            "vgprs": report.vgprs, "agprs": report.agprs, "boundaries": found.boundaries, "placed": found.placed,
            "unplaced": found.unplaced, "moved": moved(found), "moved unless held": moved(loose),
        })  # fmt: skip
        if not rows[-1]["held"] or moved(found) or found.unplaced or report.spills:
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    every = {key: sum(row[key] for row in rows) for key in ("placed", "unplaced", "moved", "moved unless held")}
    unheld = [row["stem"] for row in rows if not row["held"]]
    spilled = sum(row["scratch"] > 0 for row in rows)
    affected = sum(row["moved unless held"] > 0 for row in rows)
    print(f"{len(rows)} kernels, {len(unheld)} of a text that does not hold, {spilled} with scratch memory")
    print(", ".join(f"{key} {value:,}" for key, value in every.items()), f"in {affected} kernels")
    return {"kernels": len(rows), **every, "kernels moved unless held": affected, "unheld": unheld, "rows": rows}


def predicted(families: Sequence[str]) -> Row:
    rows: list[Row] = []
    for stem, kernel in kernels(families, products=True):
        text = next(iter(compiled_texts(kernel)))
        sizes = {symbol.name: SIZES.get(symbol.name, SIZE) for symbol in kernel.sizes}
        info = emitted(kernel).info
        held, loose = (
            of_code(kernel, compiled(kernel, each, info), sizes, DIE_MACHINES["MI300X"]).predicted
            for each in (text, loosened(text))
        )
        rows.append({
            "stem": stem, "held": round(held.microseconds, 1), "not held": round(loose.microseconds, 1),
            "ratio": round(held.microseconds / loose.microseconds, 3), "limit": held.limit,
        })  # fmt: skip
        print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    means = {}
    for kind in dict.fromkeys(kind_of(row["stem"]) for row in rows):
        ratios = sorted(row["ratio"] for row in rows if kind_of(row["stem"]) == kind)
        means[kind] = round(exp(sum(map(log, ratios)) / len(ratios)), 3)
        print(f"{kind}: held over not held {means[kind]} in {len(ratios)} kernels, {ratios[0]} to {ratios[-1]}")
    return {"sizes": {**SIZES, "else": SIZE}, "means": means, "rows": rows}


def kernels(families: Sequence[str], *, products: bool) -> Iterator[tuple[str, Kernel]]:
    for stem, kernel in shipped_kernels():
        wanted = not families or stem.partition("-")[0] in families
        if wanted and (not products or any(isinstance(stmt, Mma) for stmt in walk(kernel.body))):
            yield stem, kernel


def kind_of(stem: str) -> str:
    family, _, config = stem.partition("-")
    return family.split("_")[0] if family.startswith("attention") else config


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("code", "predicted"))
    parser.add_argument("--families", nargs="*", default=(), help="all by default")
    parser.add_argument("--products", action="store_true", help="kernels with matrix instructions alone")
    parser.add_argument("--store", action="store_true", help="write this part of the result file")
    given = parser.parse_args()
    found = code(given.families, products=given.products) if given.command == "code" else predicted(given.families)
    if given.store:
        whole: Row = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**whole, given.command: found}, indent=1) + "\n", "utf-8")
    return int(bool(found.get("moved")) or not UNHELD.keys() >= set(found.get("unheld", ())))


if __name__ == "__main__":
    sys.exit(main())
