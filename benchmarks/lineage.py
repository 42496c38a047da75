"""Computes effect and lineage of the files of kb/: `python benchmarks/lineage.py [NAME]... [--check]`.

Looks up pairs of designs that differ in one technique only, by its `undo`, in the tables of times under
benchmarks/results (gemm.json, odd/gemm.json, space/*.json). For a technique and target without a measured pair, uses
times predicted by the static model for derivations of the shipped designs and their neighbours; if these show no
difference, for pairs of the gfx942 search space with compiler reports, leaving out designs that spill. Rewrites effect
and lineage of each file; with --check, only lists the files that are out of date. No figure is entered by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from attrs import evolve

from argus.core.cost import Compiled
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.emit.build import compile_resources
from argus.policy.authoring import technique_text
from argus.policy.knowledge import kb_folder, load_techniques
from argus.policy.technique import Lineage, Technique
from argus.search.designs import designs
from argus.search.designs.ablation import Table, ablation_pairs, estimate_effect, representative_rows
from argus.search.designs.time_tables import table_rows
from argus.search.techniques import TRANSFORMATIONS
from argus.search.transformation import Design, Transformation
from argus.search.tuning.candidates import design_space

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MODEL = "python benchmarks/lineage.py"
COMMANDS = {
    "gemm.json": "python benchmarks/gemm_h200.py run --selected",
    "odd/gemm.json": "python benchmarks/gemm_h200.py run --odd",
}
SPACE = "python benchmarks/space.py run"
SHAPES = ((8192, 8192, 8192), (2048, 2048, 2048), (16, 8192, 8192))
"""Shapes for the static model."""


def measured_tables(results: Path) -> Iterator[Table]:
    """The recorded times of bf16 GEMM designs, all on an H200."""
    files = {
        **COMMANDS,
        **{path.relative_to(results).as_posix(): SPACE for path in sorted(results.glob("space/*.json"))},
    }
    for name, command in files.items():
        if not (results / name).is_file():
            continue
        times: dict[str, dict[str, float]] = {}
        for shape, design, time in table_rows(results / name):
            times.setdefault(shape, {})[design] = time
        yield from (Table(command, "sm_90a", shape, "time", by_name) for shape, by_name in times.items())


@cache
def predicted_tables(target: str) -> tuple[Table, ...]:
    """Predicted times of the shipped designs' derivations and their neighbours."""
    found: dict[Design, None] = {}
    for expert in designs.shipped_designs(target):
        for _, design in designs.derivation(expert):
            found[design] = None
            for transformation in TRANSFORMATIONS.values():
                made = transformation.apply(design)
                found.update(dict.fromkeys(each for each in made if transformation.undo(each) == design))
    kernels: dict[str, Kernel] = {}
    for design in found:
        try:
            kernels[designs.name(design)] = designs.kernel_of(design)
        except ArgusError:  # a design that cannot be built has no time
            continue
    tables: list[Table] = []
    for m, n, k in SHAPES:
        sizes = {"M": m, "N": n, "K": k}
        times = {name: predict(kernel, sizes).microseconds for name, kernel in kernels.items()}
        tables.append(Table(MODEL, target, f"{m}x{n}x{k}", "static model", times))
    return tuple(tables)


_PAIRS = 24
"""Most pairs per technique to compile, sampled evenly from the space."""


def compiled_pairs(transformation: Transformation) -> tuple[Table, ...]:
    """Predicted times of pairs of gfx942 designs, with compiler reports."""
    found = [(design, transformation.undo(design)) for design in design_space("gfx942").values()]
    known = [(design, without) for design, without in found if without is not None]
    chosen = known[:: max(1, -(-len(known) // _PAIRS))]
    kernels = {designs.name(design): _compiled(design) for pair in chosen for design in pair}
    tables: list[Table] = []
    for m, n, k in SHAPES:
        sizes = {"M": m, "N": n, "K": k}
        times = {name: predict(each[0], sizes, each[1]).microseconds for name, each in kernels.items() if each}
        tables.append(Table(MODEL, "gfx942", f"{m}x{n}x{k}", "static model", times))
    return tuple(tables)


def _compiled(design: Design) -> tuple[Kernel, Compiled] | None:
    """Kernel and compiler report; None if it cannot be built or spills."""
    try:
        kernel = designs.kernel_of(design)
        said = compile_resources(kernel)
    except ArgusError:
        return None
    return None if said.spilled else (kernel, said)


def experiments(technique: Technique, times: Sequence[Table]) -> list[Lineage]:
    """Measured pairs of each target; for a target without any, predicted ones, with compiler reports if needed."""
    transformation = TRANSFORMATIONS[technique.transformation]
    found: list[Lineage] = []
    for target in technique.targets:
        seen = list(ablation_pairs(transformation, [table for table in times if table.target == target]))
        seen = seen or list(ablation_pairs(transformation, predicted_tables(target)))
        if not seen and target == "gfx942":
            seen = list(ablation_pairs(transformation, compiled_pairs(transformation)))
        found += seen
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="techniques; all by default")
    asked = parser.parse_args()
    check: bool = asked.check
    times = list(measured_tables(RESULTS))
    stale = 0
    for technique in load_techniques(kb_folder()):
        if asked.names and technique.name not in asked.names:
            continue
        seen = experiments(technique, times)
        rows = representative_rows(seen)
        renewed = technique_text(evolve(technique, effect=estimate_effect(seen), lineage=rows, conjecture=not rows))
        path = kb_folder() / f"{technique.name}.md"
        differs = renewed != path.read_text(encoding="utf-8")
        stale += differs
        print(
            f"{technique.name:26} {len(seen):5} pairs, {estimate_effect(seen)}{', stale' if check and differs else ''}"
        )
        if differs and not check:
            path.write_text(renewed, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
