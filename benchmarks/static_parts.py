"""Split-K and stream-K on an MI300X, predicted beside undivided products: `parts` of static_performance.py.

`python -m benchmarks.static_parts [FAMILY ...]` does so for some families alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any

from argus.core.cost.dies import DIE_MACHINES
from argus.core.ir import Kernel
from argus.kernels.fp8_cdna3 import gemm_fp8_fnuz
from argus.kernels.schedules.stream_cdna3 import CDNA3, Cdna3Stream
from argus.kernels.streamk_cdna3 import FAMILIES, configuration
from argus.kernels.streamk_scaled_cdna3 import gemm_fp8_fnuz_streams
from argus.ops.choice import select
from argus.ops.choice_gfx942 import candidates, scaled, select_parts
from argus.ops.matmul import FAMILIES as UNDIVIDED
from argus.runtime.machine.launch import MachineCode
from argus.runtime.machine.performance import built, of_code

MACHINE = "MI300X"
SHAPES: tuple[tuple[int, int, int], ...] = (
    (512, 512, 16384), (1024, 1024, 8192), (128, 4096, 8192), (2560, 2560, 16384), (4096, 4096, 4096),
)  # fmt: skip
"""M, N and K of products of few tiles, and of one that fills the GPU."""
_FNUZ = "gemm_fp8_fnuz"
KERNELS, PROGRAMS = UNDIVIDED | {_FNUZ: gemm_fp8_fnuz}, FAMILIES | {_FNUZ: gemm_fp8_fnuz_streams}
OTHERS: Mapping[str, Sequence[tuple[int, ...]]] = {
    "gemm_nt": (*SHAPES, (500, 514, 16384), (512, 512, 16382), (511, 511, 16381)),
    **dict.fromkeys(("gemm_nn", "gemm_tn", "gemm_tt"), SHAPES),
    **dict.fromkeys(("bmm_nt", "bmm_nn", "bmm_tn", "bmm_tt"), ((4, 512, 512, 8192), (16, 512, 512, 8192))),
    _FNUZ: ((512, 512, 32768), (1024, 1024, 16384), (512, 514, 16384), (4096, 4096, 4096)),
}
"""Sizes by family, of batches with the number of products ahead; rows of some are no whole vectors."""


def parts(families: Sequence[str] = tuple(OTHERS)) -> dict[str, Any]:
    """The time of each product undivided, and those of all divisions of K, both launches added up."""
    rows: list[dict[str, Any]] = []
    for family in families:
        for sizes in OTHERS[family]:
            chosen, name = _choice(family, sizes)
            whole = _time(_undivided(family, name), dict(zip("ZMNK"[-len(sizes) :], sizes, strict=True)))
            every = _divisions(family, chosen)
            times = {n: round(_in_parts(family, n, each, sizes), 1) for n, each in every.items()}
            best = min(times, key=lambda each: times[each])
            rows.append({"family": family, "sizes": sizes, "undivided": [name, round(whole, 1)],
                         "parts": times, "chosen": chosen})  # fmt: skip
            shown = ", ".join(f"{each} {time:.0f}" for each, time in times.items())
            least = f"least {best}, chosen {chosen or name}"
            print(f"{family} {sizes}: {name} {whole:.0f} us; {shown}; {least}", flush=True)
    return {"rows": rows}


def _choice(family: str, sizes: tuple[int, ...]) -> tuple[str | None, str]:
    """The division of K that the operator chooses, if any, and the configuration without one."""
    if family == _FNUZ:
        m, n, k = sizes
        found = scaled(m, n, k, scales="whole")
        return found if found in PROGRAMS[_FNUZ].configs else None, select(m, n, k, "e4m3fnuz", "gfx942")
    turned = {"a_transposed": "_t" in family, "b_transposed": family.endswith("n")}
    return select_parts(family, *sizes, **turned), candidates(family, sizes, **turned, device="")[-1]


def _divisions(family: str, chosen: str | None) -> dict[str, Cdna3Stream]:
    """The divisions to predict: all for whole vectors, or the chosen one for other rows."""
    known: Mapping[str, Cdna3Stream] = PROGRAMS[family].configs
    if chosen is None or chosen in CDNA3:
        return {name: each for name, each in known.items() if name in CDNA3}
    found = known.get(chosen) or configuration(chosen)
    assert found is not None
    return {chosen: found}


Launches = tuple[tuple[Kernel, MachineCode], ...]


@cache
def _undivided(family: str, name: str) -> Launches:
    kernel = KERNELS[family].trace(name)
    return ((kernel, built(kernel)),)


@cache
def _launches(family: str, name: str, config: Cdna3Stream) -> Launches:
    return tuple((each.kernel, built(each.kernel)) for each in PROGRAMS[family].instance(config, name).launches)


def _in_parts(family: str, name: str, config: Cdna3Stream, sizes: tuple[int, ...]) -> float:
    """Microseconds of both launches of a configuration, one after the other."""
    runs, (*batch, m, n, k) = config.runs, sizes
    count = ceil(ceil(m / runs.rows) * ceil(n / runs.columns) * runs.chunks / runs.run)
    named = {"M": m, "N": n, "K": k, "P": count, "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    return _time(_launches(family, name, config), named | dict(zip("Z", batch, strict=False)))


def _time(launches: Launches, sizes: Mapping[str, int]) -> float:
    found = (of_code(kernel, made, sizes, DIE_MACHINES[MACHINE]) for kernel, made in launches)
    return sum(each.predicted.microseconds for each in found)


if __name__ == "__main__":
    parts(sys.argv[1:] or tuple(OTHERS))
