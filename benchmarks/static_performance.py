"""Predict gfx942 kernels from their machine code, beside published figures (no AMD GPU is needed, and none was used).

    python benchmarks/static_performance.py products [--store]
    python benchmarks/static_performance.py grouped [--store]
    python benchmarks/static_performance.py attention [--store]
    python benchmarks/static_performance.py ladders [--store]
    python benchmarks/static_performance.py selection [--store]
    python benchmarks/static_performance.py models [--store]
    python benchmarks/static_performance.py stagger [--store]
    python benchmarks/static_performance.py rescaling [--store]
    python benchmarks/static_performance.py parts [--store]
    python benchmarks/static_performance.py resources [--store]

`products` predicts the shipped GEMM configurations on an MI325X and on an MI300X, each with its own rates, and prints
the fastest beside what libraries reach (beside HipKittens the ping-pong, which has its structure); `grouped` predicts
grouped products of equally many rows an expert on an MI300X, for which no figure is published; `attention` does so for
attention on an MI300X. `ladders` predicts schedules of one structure after the other with the rates of an MI355X, and
prints the rank correlation with the published speed of such schedules. `selection` compares what `argus.matmul`
chooses with the fastest prediction. `models` compares predictions for designs of the search space with recorded ones
of the model of the program. `stagger` predicts loops whose super-tiles begin at eight tiles of K, beside those that
all begin at the first. `rescaling` predicts attention whose waves rescale sums only where a maximum has moved, beside
the same that always does; data are followed as zeros, so that none moves after the first block. `parts` predicts
split-K and stream-K beside the undivided product that would be chosen, and names what `argus.matmul` takes.
`resources` prints registers, LDS and scratch of every shipped gfx942 configuration, and its predicted time at the
largest sizes that its tests choose. One constant was fitted to a published figure (`DieMachine.power_share` of the
MI300X, to the one marked `fitted`, with the ping-pong); all other figures are held out. --store writes that part of
results/static_performance.json. `products` and `ladders` run in several processes with --processes, stop at --seconds,
say what they did not reach, and go on later with --journal.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.cost.dies import DIE_MACHINES
from argus.core.ir import Kernel
from argus.kernels.attention import CDNA3
from argus.kernels.cost_gfx942 import cheapest
from argus.kernels.gemm import gemm
from argus.kernels.grouped import grouped_nt
from argus.kernels.grouped_fp8_cdna3 import grouped_fp8_fnuz_blocks
from argus.kernels.schedules.attention_cdna3 import AttentionCdna3
from argus.ops.attention import FAMILIES
from argus.runtime.cpu.validate import chosen_sizes
from argus.runtime.machine.launch import MachineCode
from argus.runtime.machine.performance import Performance, built, of_code
from argus.search.problems.problem import Gemm
from benchmarks.cases import (
    Answer,
    Limits,
    add_limits,
    digest_of,
    kernels_of,
    limits_of,
    over_cases,
    shipped_configurations,
)
from benchmarks.grouped_inputs import integers_of, sizes_of
from benchmarks.shipped import families
from benchmarks.static_model import spearman
from benchmarks.static_parts import parts
from benchmarks.static_published import LADDERS, PUBLISHED

RESULTS = Path(__file__).resolve().parent / "results" / "static_performance.json"
Row = dict[str, Any]


@cache
def code_of(config: object) -> tuple[Kernel, MachineCode]:
    kernel = gemm.instance(config, "step")
    return kernel, built(kernel)


def predicted(config: object, machine: str, m: int, n: int, k: int) -> Performance:
    kernel, made = code_of(config)
    return of_code(kernel, made, {"M": m, "N": n, "K": k}, DIE_MACHINES[machine])


def products(limits: Limits) -> Row:
    rows: list[Row] = []
    machines = sorted({(each.machine, each.cube) for each in PUBLISHED})
    configs = [name for name, each in gemm.configs.items() if each.target.name == "gfx942"]
    done = over_cases(_product, [f"{m} {cube} {name}" for name in configs for m, cube in machines], limits)
    every: dict[tuple[str, int, str], Row] = {(row["machine"], row["cube"], row["name"]): row for row in done.rows}
    for machine, cube in machines:
        found = [every[machine, cube, name] for name in configs if (machine, cube, name) in every]
        print(f"{machine} {cube}: " + ", ".join(f"{row['name']} {row['speed']:.0f}" for row in found))
        if len(found) == len(configs):
            every[machine, cube, ""] = max(found, key=lambda row: row["speed"])
    for each in PUBLISHED:
        if (each.machine, each.cube, each.structure) not in every:
            continue
        value, name, limit = (every[each.machine, each.cube, each.structure][key] for key in ("speed", "name", "limit"))
        middle = (each.low + each.high) / 2
        rows.append({
            "machine": each.machine, "library": each.what, "cube": each.cube, "published": [each.low, each.high],
            "predicted": round(value), "configuration": name, "limit": limit,
            "error": round(value / middle - 1, 3), "fitted": each.fitted,
        })  # fmt: skip
        note = ", fitted" if each.fitted else ""
        print(
            f"{each.machine} {each.cube} {each.what} {each.low:.0f} to {each.high:.0f}: {value:.0f} ({name}), "
            f"{value / middle - 1:+.1%}, limited by {limit}{note}"
        )
    held = [row["error"] for row in rows if not row["fitted"]]
    error = math.sqrt(sum(math.log(1 + each) ** 2 for each in held) / max(1, len(held)))
    print(f"error of {len(held)} figures that nothing was fitted to: {error:.1%}")
    return {"rows": rows, "held out": len(held), "error": round(error, 3)} | done.counts()


def _product(case: str, known: str) -> Answer | None:
    machine, size, name = case.split()
    config, cube = gemm.configs[name], int(size)
    digest = digest_of([gemm.instance(config, "step")], *PREDICTED_BY)
    if digest == known:
        return None
    found = predicted(config, machine, cube, cube, cube).predicted
    speed = 2 * cube**3 / found.microseconds / 1e6
    return digest, [{"machine": machine, "cube": cube, "name": name, "speed": speed, "limit": found.limit}]


ATTENTION: tuple[tuple[int, int, int, float, float], ...] = (
    (2, 24, 8192, 435, 535),
    (2, 24, 16384, 449, 565),
    (1, 32, 16384, 487, 549),
)
"""Batches, heads, tokens; TFLOP/s of AITER's assembly and of moonmath's kernel on an MI300X, bf16 rounded to nearest
even, 128 elements a head, without mask [moonmath-ai/amd-kernels]."""


def attention() -> Row:
    kernel = FAMILIES["torch.bfloat16"][128].trace("cdna3")
    made, rows = built(kernel), list[Row]()
    for b, h, s, assembly, moonmath in ATTENTION:
        found = of_code(kernel, made, {"B": b, "H": h, "S": s, "T": s, "G": 1}, DIE_MACHINES["MI300X"])
        value = 4 * b * h * s * s * 128 / found.predicted.microseconds / 1e6
        lines = [f"{line.place.rsplit('/', 1)[-1]} {line.share:.0%}" for line in found.lines]
        rows.append({
            "batches": b, "heads": h, "tokens": s, "AITER": assembly, "moonmath": moonmath, "predicted": round(value),
            "limit": found.predicted.limit, "path": {k: round(v, 3) for k, v in found.predicted.path.items()},
        })  # fmt: skip
        print(
            f"{b} x {h} x {s}: {value:.0f}, AITER {assembly}, moonmath {moonmath}; {found.predicted.limit} at {lines}"
        )
    return {"rows": rows}


def ladders(limits: Limits) -> Row:
    result: Row = {}
    done = over_cases(_step, [f"{t}: {name}" for t, (_, steps) in LADDERS.items() for name, *_ in steps], limits)
    for title, (_, steps) in LADDERS.items():
        rows = [
            {name: value for name, value in row.items() if name != "ladder"}
            for row in done.rows
            if row["ladder"] == title
        ]
        for row in rows:
            shown = f"{row['published']} published, {row['predicted']} predicted, limited by {row['limit']}"
            print(f"{title}: {row['step']}: {shown}")
        if len(rows) == len(steps):
            rank = spearman([row["published"] for row in rows], [row["predicted"] for row in rows])
            print(f"{title}: rank correlation {rank:.2f}")
            result[title] = {"rank correlation": round(rank, 3), "rows": rows}
    return result | done.counts()


def _step(case: str, known: str) -> Answer | None:
    title, _, name = case.partition(": ")
    (m, n, k), steps = LADDERS[title]
    config, published = next((config, value) for step, config, value in steps if step == name)
    digest = digest_of([gemm.instance(config, "step")], *PREDICTED_BY)
    if digest == known:
        return None
    found = predicted(config, "MI355X", m, n, k).predicted
    value = round(2 * m * n * k / found.microseconds / 1e6)
    row = {"ladder": title, "step": name, "published": published, "predicted": value, "limit": found.limit}
    return digest, [row]


SELECTED: tuple[tuple[int, int, int], ...] = (
    (1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072), (4096, 4096, 4096), (8192, 8192, 8192),
    (512, 4096, 4096), (8192, 1024, 4096), (4096, 14336, 4096), (5120, 5120, 5120),
)  # fmt: skip
"""M, N and K at which the choice of `argus.matmul` is compared with the best prediction."""


def selection() -> Row:
    configs = {name: each for name, each in gemm.configs.items() if each.target.name == "gfx942"}
    rows: list[Row] = []
    for m, n, k in SELECTED:
        times = {name: predicted(each, "MI300X", m, n, k).predicted.microseconds for name, each in configs.items()}
        chosen, best = cheapest(configs, m, n, k), min(times, key=lambda each: times[each])
        over = times[chosen] / times[best]
        rows.append({"shape": [m, n, k], "chosen": chosen, "best": best, "time over best": round(over, 3)})
        shown = ", ".join(f"{name} {value:.0f}" for name, value in times.items())
        print(f"{m} x {n} x {k}: {chosen} chosen, {best} predicted to be the fastest, {over:.2f} ({shown} us)")
    return {"rows": rows, "worst": max(row["time over best"] for row in rows)}


GROUPED = ((8, 8192, 14336, 4096), (8, 32768, 14336, 4096), (64, 16384, 2816, 2048))
"""Experts, rows, N and K of grouped products; each expert has the same number of rows."""


def grouped() -> Row:
    """Tiles without rows, of which there are as many as experts, are taken for full ones and not counted as work."""
    rows: list[Row] = []
    for template in (grouped_nt, grouped_fp8_fnuz_blocks):
        for name, config in template.configs.items():
            if config.target.name != "gfx942":
                continue
            kernel = template.trace(name)
            made = built(kernel)
            for experts, count, n, k in GROUPED:
                every = sizes_of(count, experts, n, k, config.bm)
                sizes = {each.name: every[each.name] for each in kernel.sizes}
                integers = integers_of([count // experts] * experts, config.bm)
                found = of_code(kernel, made, sizes, DIE_MACHINES["MI300X"], integers).predicted
                tflops = round(2.0 * count * n * k / found.microseconds / 1e6)
                rows.append({"kernel": kernel.name, "shape": [experts, count, n, k], "tflops": tflops,
                             "microseconds": round(found.microseconds, 1), "limit": found.limit})  # fmt: skip
                print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    return {"rows": rows}


SPACE = Path(__file__).resolve().parent / "results" / "space" / "gfx942.json"
_SAMPLED = 20


def models() -> Row:
    """Compare times of a sample of the space, recorded from the model of the program, with those from machine code."""
    recorded: dict[str, dict[tuple[int, int, int], float]] = {}
    for row in json.loads(SPACE.read_text("utf-8"))["rows"]:
        m, n, k = row["shape"]
        recorded.setdefault(row["name"], {})[m, n, k] = row["microseconds"]
    names = sorted(recorded)[:: len(recorded) // _SAMPLED][:_SAMPLED]
    found: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    for name in names:
        kernel = Gemm(4096, 4096, 4096, "bf16", "gfx942").kernel(name)
        made = built(kernel)
        for cube in (1024, 4096, 8192):
            shape = (cube, cube, cube)
            sizes = {"M": cube, "N": cube, "K": cube}
            time = of_code(kernel, made, sizes, DIE_MACHINES["MI300X"]).predicted.microseconds
            found.setdefault(shape, []).append((recorded[name][shape], time))
    rows: list[Row] = []
    for shape, times in found.items():
        rank = spearman([old for old, _ in times], [new for _, new in times])
        ratios = sorted(new / old for old, new in times)
        rows.append({"shape": shape, "rank correlation": round(rank, 3), "ratio": [round(r, 2) for r in ratios]})
        middle = ratios[len(ratios) // 2]
        print(
            f"{shape}: rank correlation {rank:.2f} over {len(times)} designs, machine code over program "
            f"{ratios[0]:.2f} to {ratios[-1]:.2f}, in the middle {middle:.2f}"
        )
    return {"rows": rows}


STARTS = 8


def stagger() -> Row:
    rows: list[Row] = []
    for name in ("interleaved", "interleaved_128", "cdna3_pingpong", "cdna3"):
        config = gemm.configs[name]
        for cube in (2048, 4096, 8192):
            plain, apart = (
                predicted(each, "MI300X", cube, cube, cube) for each in (config, evolve(config, stagger=STARTS))
            )
            times = [round(each.predicted.microseconds, 1) for each in (plain, apart)]
            rows.append({"configuration": name, "cube": cube, "microseconds": times,
                         "scratch": apart.descriptor.scratch_bytes})  # fmt: skip
            print(f"{name} {cube}: {times[0]} us, staggered {times[1]} us, {times[1] / times[0]:.3f}")
    return {"starts": STARTS, "rows": rows}


def rescaling() -> Row:
    rows: list[Row] = []
    for width, configs in CDNA3.items():
        sizes = {"B": 2, "H": 24 if width < 256 else 12, "S": 8192, "T": 8192, "G": 1}
        for name, config in configs.items():
            each = [_attention_us(width, evolve(config, branch=branch), sizes) for branch in (False, True)]
            rows.append({"width": width, "configuration": name, **sizes, "microseconds": each, "branch": config.branch})
            chosen = ", chosen" if config.branch else ""
            print(f"{width} {name}: {each[0]} us, by branch {each[1]} us, {each[1] / each[0]:.3f}{chosen}", flush=True)
    return {"rows": rows}


def _attention_us(width: int, config: AttentionCdna3, sizes: Mapping[str, int]) -> float:
    kernel = evolve(FAMILIES["torch.bfloat16"][width], configs={"trial": config}).trace("trial")
    found = of_code(kernel, built(kernel), sizes, DIE_MACHINES["MI300X"])
    return round(found.predicted.microseconds, 1)


def resources() -> Row:
    known, rows = dict(families()), list[Row]()
    for family, config in shipped_configurations():
        for kernel in kernels_of(known[family].trace(config)):
            rows.append(_resources(f"{family}-{config}", kernel))
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    spilled = sum(row["scratch"] > 0 for row in rows)
    print(f"{len(rows)} kernels, {spilled} with registers in scratch memory")
    return {"kernels": len(rows), "spilled": spilled, "largest": {key: max(r[key] for r in rows) for key in _LARGEST}}


_LARGEST = ("vgprs", "agprs", "lds", "scratch")


def _resources(stem: str, kernel: Kernel) -> Row:
    sizes = dict(chosen_sizes(kernel)[-1])
    found = of_code(kernel, built(kernel), sizes, DIE_MACHINES["MI300X"])
    described, made = found.descriptor, found.predicted
    return {
        "stem": stem, "kernel": kernel.name, "vgprs": described.vgprs, "agprs": described.agprs,
        "lds": described.lds_bytes, "scratch": described.scratch_bytes, "workgroups": made.resident,
        "occupancy limit": made.occupancy_limit, "sizes": sizes, "microseconds": round(made.microseconds, 1),
        "limit": made.limit,
    }  # fmt: skip


COMMANDS: Mapping[str, Callable[[], Row]] = {
    "grouped": grouped,
    "attention": attention,
    "selection": selection,
    "models": models,
    "stagger": stagger,
    "rescaling": rescaling,
    "parts": parts,
    "resources": resources,
}
LIMITED: Mapping[str, Callable[[Limits], Row]] = {"products": products, "ladders": ladders}
PREDICTED_BY = ("interp/gfx942", "core/cost", "emit/hip")
"""Folders of `argus` that predictions depend on."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=(*COMMANDS, *LIMITED))
    parser.add_argument("--store", action="store_true", help="write this part of the result file")
    add_limits(parser)
    given = parser.parse_args()
    limited = LIMITED.get(given.command)
    found = COMMANDS[given.command]() if limited is None else limited(limits_of(given))
    if given.store:
        whole: Row = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**whole, given.command: found}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
