"""Split-K and stream-K on an MI300X, predicted beside undivided products: `parts` of static_performance.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

from argus.core.cost.dies import DIE_MACHINES
from argus.core.ir import Kernel
from argus.kernels.cost_gfx942 import cheapest
from argus.kernels.gemm import gemm
from argus.kernels.schedules.stream_cdna3 import CDNA3
from argus.kernels.streamk import gemm_streams
from argus.ops.choice_gfx942 import select_parts
from argus.runtime.machine.launch import MachineCode
from argus.runtime.machine.performance import Performance, built, of_code

MACHINE = "MI300X"
SHAPES: tuple[tuple[int, int, int], ...] = (
    (512, 512, 16384), (1024, 1024, 8192), (128, 4096, 8192), (2560, 2560, 16384), (4096, 4096, 4096),
)  # fmt: skip
"""M, N and K of products of few tiles, and of one that fills the GPU."""


def parts(undivided: Callable[[object, str, int, int, int], Performance]) -> dict[str, Any]:
    """Of each shape, the times of all divisions of K, both launches added up. undivided: predicts a configuration."""
    single = {name: each for name, each in gemm.configs.items() if each.target.name == "gfx942"}
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        name, chosen = cheapest(single, *shape), select_parts(*shape)
        whole = undivided(single[name], MACHINE, *shape).predicted.microseconds
        times = {each: round(_in_parts(each, *shape), 1) for each in CDNA3}
        best = min(times, key=lambda each: times[each])
        rows.append({"shape": shape, "undivided": [name, round(whole, 1)], "parts": times, "chosen": chosen})
        shown = ", ".join(f"{each} {time:.0f}" for each, time in times.items())
        print(f"{shape}: {name} {whole:.0f} us; {shown}; least {best}, chosen {chosen or name}", flush=True)
    return {"rows": rows}


@cache
def _launches(name: str) -> tuple[tuple[Kernel, MachineCode], ...]:
    return tuple((each.kernel, built(each.kernel)) for each in gemm_streams.trace(name).launches)


def _in_parts(name: str, m: int, n: int, k: int) -> float:
    """Microseconds of both launches of a configuration, one after the other."""
    runs = CDNA3[name].runs
    count = ceil(ceil(m / runs.rows) * ceil(n / runs.columns) * runs.chunks / runs.run)
    sizes = {"M": m, "N": n, "K": k, "P": count, "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    found = (of_code(kernel, made, sizes, DIE_MACHINES[MACHINE]) for kernel, made in _launches(name))
    return sum(each.predicted.microseconds for each in found)
