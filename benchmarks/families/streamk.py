"""bf16 GEMM with few tiles and a deep K vs. cuBLAS: stream-K programs with a workspace of partial sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families import gemm
from families.gemm import OUTPUT, PEER, Shape, exact, peers, sizes, tensors

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = (
    *((512, 512, 16384), (384, 384, 65536), (300, 7168, 7168), (65, 4096, 4096), (1000, 1000, 8192)),
    *((700, 1288, 24576), (512, 7168, 2048), (128, 8192, 8192)),
)


def variants() -> Mapping[str, Callable[[], Any]]:
    """The programs, and for comparison the single-kernel configurations selected for these shapes."""
    from argus.kernels.gemm import CONFIGS  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.gemm import gemm as family  # noqa: PLC0415 reason: as above
    from argus.kernels.streamk import gemm_streams  # noqa: PLC0415 reason: as above

    single = {name: CONFIGS[name] for name in ("columns_64", "columns_128", "split_8")}
    kernels = {name: lambda c=config, n=name: family.instance(c, n) for name, config in single.items()}
    programs = {name: lambda n=name: gemm_streams.trace(n) for name in gemm_streams.configs}
    return {**kernels, **programs}


def checked(random: Random) -> list[Shape]:
    """Also shapes with empty parts of K."""
    return [*gemm.checked(random), (100, 72, 8), (64, 136, 72), (200, 264, 8200)]


def select(shape: Shape) -> str | None:
    del shape
    return None
