"""bf16 GEMM vs. cuBLAS, C = A @ B^T: the shipped configurations, and experimental ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

Shape = tuple[int, int, int]
SHAPES: tuple[Shape, ...] = (
    *((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (16384, 8192, 1024)),
    *((4096, 14336, 4096), (4096, 4096, 14336), (16, 8192, 8192), (128, 8192, 8192), (512, 7168, 2048)),
)
OUTPUT, PEER = "C", "cuBLAS"
_CHECKED = 12


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.gemm import CONFIGS, gemm  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.schedules.hopper import Hopper  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.skinny import Skinny  # noqa: PLC0415 reason: as above

    shipped = {name: config for name, config in CONFIGS.items() if config.target.name == "sm_90a"}
    trial = {
        "clustered_curve": Hopper(cluster=(2, 1), curve=16),
        "columns_192_curve": Hopper(bn=192, cluster=(2, 1), whole=True, curve=16),
        "columns_192_bands": Hopper(bn=192, cluster=(2, 1), whole=True, group=8),
        "columns_224_pairs": Hopper(bn=224, cluster=(2, 1)),
        "columns_64_deep": Hopper(bn=64, bk=128, stages=4),
        "skinny_m128": Skinny(bm=128, stages=4),
        "columns_64_pairs": Hopper(bn=64, stages=8, cluster=(1, 2)),
        "columns_128_rows": Hopper(bn=128, stages=6),
        "columns_256_wide": Hopper(cluster=(1, 2), group=8),
        "bands_16": Hopper(cluster=(2, 1), group=16),
        "bands_4": Hopper(cluster=(2, 1), group=4),
    }
    return {name: lambda c=config, n=name: gemm.instance(c, n) for name, config in (shipped | trial).items()}


def sizes(shape: Shape) -> dict[str, int]:
    return dict(zip("MNK", shape, strict=True))


def tensors(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    m, n, k = shape

    def normal(rows: int, columns: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(rows, columns, device="cuda").bfloat16()

    return {"A": normal(m, k), "B": normal(n, k), "C": torch.empty(m, n, device="cuda", dtype=torch.bfloat16)}


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The product in float64, and the scale of errors: the element's magnitude plus the square root of K."""
    del torch
    result = given["A"].double() @ given["B"].double().T
    return result, result.abs() + given["A"].shape[1] ** 0.5


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    a, b, c = (given[name] for name in "ABC")
    return {PEER: lambda: torch.mm(a, b.T, out=c)}


def checked(random: Random) -> list[Shape]:
    """Whole tiles, partial tiles in every dimension, single rows."""
    shapes = [(128, 256, 64), (64, 8, 8), (1, 8, 8), (200, 264, 136), (4096, 4096, 4096)]
    return shapes + [
        (random.randint(1, 1500), 8 * random.randint(1, 190), 8 * random.randint(1, 190)) for _ in range(_CHECKED)
    ]


def select(shape: Shape) -> str | None:
    from argus.ops.choice import select as chosen  # noqa: PLC0415 reason: as above

    return chosen(*shape)
