"""FP8 GEMM with one scale per matrix vs. torch's scaled_mm: C = scale_a * scale_b * (A @ B^T), e4m3 to bf16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families.gemm import Shape, sizes

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = (
    *((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (4096, 14336, 4096), (4096, 4096, 14336)),
    (16384, 8192, 2048),
)
OUTPUT, PEER = "C", "scaled_mm"
_CHECKED = 12


def variants() -> Mapping[str, Callable[[], Any]]:
    """The shipped configurations, and experimental ones."""
    from argus.kernels.fp8 import CONFIGS, gemm_fp8  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.schedules.hopper import Hopper  # noqa: PLC0415 reason: as above

    trial = {
        "bands_4": Hopper(bk=128, cluster=(2, 1), group=4),
        "bands_16": Hopper(bk=128, cluster=(2, 1), group=16),
        "whole_bands_4": Hopper(bk=128, stages=3, whole=True, cluster=(2, 1), group=4),
        "whole_bands_16": Hopper(bk=128, stages=3, whole=True, cluster=(2, 1), group=16),
        "whole_wide": Hopper(bk=128, stages=3, whole=True, cluster=(1, 2)),
        "columns_192_bands": Hopper(bn=192, bk=128, cluster=(2, 1), whole=True, group=8),
    }
    return {name: lambda c=config, n=name: gemm_fp8.instance(c, n) for name, config in (CONFIGS | trial).items()}


def tensors(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    m, n, k = shape

    def quantised(rows: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn)

    def scale() -> Any:  # noqa: ANN401 reason: untyped
        return torch.rand(1, device="cuda") + 0.5

    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return {"A": quantised(m), "B": quantised(n), "scale_a": scale(), "scale_b": scale(), "C": out}


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The tensor core accumulates with about 14 fraction bits, so errors scale with the absolute products."""
    del torch
    a, b = given["A"].double(), given["B"].double()
    scale = given["scale_a"].double() * given["scale_b"].double()
    result = (a @ b.T) * scale
    return result, result.abs() + (a.abs() @ b.abs().T) * (scale / 16)


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    a, b, scales = given["A"], given["B"].T, (given["scale_a"], given["scale_b"])
    return {PEER: lambda: torch._scaled_mm(a, b, *scales, out_dtype=torch.bfloat16, use_fast_accum=True)}


def checked(random: Random) -> list[Shape]:
    """Whole tiles, partial tiles in every dimension, single rows."""
    shapes = [(128, 256, 128), (64, 8, 16), (1, 8, 16), (200, 264, 144), (4096, 4096, 4096)]
    return shapes + [
        (random.randint(1, 1500), 8 * random.randint(1, 190), 16 * random.randint(1, 120)) for _ in range(_CHECKED)
    ]


def select(shape: Shape) -> str | None:
    from argus.ops.choice import select_fp8 as chosen  # noqa: PLC0415 reason: as above

    return chosen(*shape)
