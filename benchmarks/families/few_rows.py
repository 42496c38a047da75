"""bf16 GEMM with few rows of A vs. cuBLAS: swap-AB, split-K, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families import gemm
from families.gemm import OUTPUT, PEER, Shape, exact, peers, sizes, tensors

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = (
    *((1, 4096, 14336), (8, 7168, 2048), (16, 8192, 8192), (33, 8192, 1024), (65, 4096, 4096), (64, 8192, 8192)),
    *((100, 10240, 5120), (128, 8192, 8192), (129, 11008, 4096), (200, 5120, 13824), (300, 7168, 7168)),
    *((4, 4096, 4096), (64, 1024, 32768), (48, 6144, 4096)),
)
_LARGE = ("narrow", "small", "cooperative", "super_tiled", "clustered", "clustered_bands", "columns_192")
"""Configurations that few rows cannot fill, or that were never the fastest for them."""


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.config_names import name_of  # noqa: PLC0415 reason: as above
    from argus.kernels.gemm import CONFIGS  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.gemm import gemm as family  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.skinny import Skinny  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.split import Split  # noqa: PLC0415 reason: as above

    def shares(bm: int, bn: int, splits: int, stages: int, bk: int = 64) -> Split:
        return Split(bm=bm, bn=bn, bk=bk, stages=stages, splits=splits, swap_ab=True)

    trial = (
        *(
            shares(64, 32, 4, 8),
            shares(64, 64, 4, 5),
            shares(64, 64, 8, 12),
            shares(128, 64, 2, 7),
            shares(128, 112, 2, 5),
        ),
        *(shares(128, 120, 3, 4), shares(128, 144, 3, 4), Skinny(bm=8, bk=256, stages=6)),
        *(Skinny(bm=200, bk=64, stages=5, bn=128), Split(bm=64, bn=128, splits=8, stages=8)),
    )
    shipped = {name: each for name, each in CONFIGS.items() if each.target.name == "sm_90a" and name not in _LARGE}
    configs = shipped | {name_of(each): each for each in trial}
    return {name: lambda c=config, n=name: family.instance(c, n) for name, config in configs.items()}


def checked(random: Random) -> list[Shape]:
    """Also shapes with empty parts of K, and with rows of C that are no multiple of 16 bytes."""
    return [*gemm.checked(random), (100, 72, 8), (64, 136, 72), (200, 264, 8200), (1, 4096, 1024), (33, 520, 136)]


def select(shape: Shape) -> str | None:
    return gemm.select(shape)
