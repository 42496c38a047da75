"""bf16 GEMM with few tiles vs. cuBLAS: split-K, and clusters that share operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families import gemm
from families.gemm import OUTPUT, PEER, Shape, exact, peers, sizes, tensors

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = (
    *((1024, 1024, 1024), (2048, 2048, 2048), (512, 7168, 2048), (128, 8192, 8192), (16, 8192, 8192)),
    *((256, 4096, 16384), (64, 1024, 32768), (384, 384, 65536), (64, 8192, 8192), (512, 512, 16384)),
)


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.gemm import CONFIGS  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.gemm import gemm as family  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.hopper import Hopper  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.skinny import Skinny  # noqa: PLC0415 reason: as above
    from argus.kernels.schedules.split import Split  # noqa: PLC0415 reason: as above

    shipped = {name: CONFIGS[name] for name in ("columns_64", "columns_128", "columns_224", "skinny", "skinny_64")}
    trial = {
        "skinny_128": Skinny(bm=16, bk=128, stages=10),
        "skinny_64_deep": Skinny(bm=64, bk=128, stages=6),
        "columns_64_pairs": Hopper(bn=64, stages=8, cluster=(1, 2)),
        "columns_64_rows": Hopper(bn=64, stages=8, cluster=(2, 1)),
        "columns_224_pairs": Hopper(bn=224, cluster=(2, 1)),
        "split_2": Split(splits=2),
        "split_4": Split(splits=4),
        "split_8": Split(splits=8),
        "split_2_of_64": Split(bn=64, splits=2, stages=8),
        "split_8_of_64": Split(bn=64, splits=8, stages=8),
        "split_4_of_256": Split(bn=256, splits=4, stages=2),
        "split_4_of_256_32": Split(bn=256, bk=32, splits=4, stages=4),
        "split_2_of_256_32": Split(bn=256, bk=32, splits=2, stages=4),
        "split_3_of_192": Split(bn=192, splits=3, stages=3),
        "split_8_64_64": Split(bm=64, bn=64, splits=8, stages=12),
        "split_8_64_128": Split(bm=64, bn=128, splits=8, stages=8),
    }
    return {name: lambda c=config, n=name: family.instance(c, n) for name, config in (shipped | trial).items()}


def checked(random: Random) -> list[Shape]:
    """Also shapes with empty parts of K."""
    return [*gemm.checked(random), (100, 72, 8), (64, 136, 72), (200, 264, 8200)]


def select(shape: Shape) -> str | None:
    return gemm.select(shape)
