"""Which extents of a GEMM a configuration needs to be multiples of 16 bytes, known without tracing its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from argus.kernels.gemm import Config
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged

_BYTES, _ELEMENTS = 2, 8
"""Of an element, and elements in 16 bytes."""


def admits_rows(config: Config, sizes: Mapping[str, int]) -> bool:
    """Whether rows of these lengths (M, N, K by name) have the alignment that the configuration's kernel assumes.

    The kernel may assume more of the extents, such as that a matrix has fewer than 2^31 elements.
    """
    of_k = config.align // _BYTES if isinstance(config, Cdna3Interleaved) else _ELEMENTS
    return all(sizes[name] % (of_k if name == "K" else _ELEMENTS) == 0 for name in _aligned(config))


def _aligned(config: Config) -> tuple[str, ...]:
    """The extents along rows: K of the operands, and N of C where vectors or tensor maps store it."""
    match config:
        case Cdna3Staged():
            return () if config.of_any_rows else ("K",)
        case Cdna3() | Cdna3PingPong() | Skinny():
            return ("K",)
        case Cdna3Interleaved():
            return ("K", "N") if config.wide else ("K",)
        case Staged():
            return () if config.of_any_rows else ("K", "N")
        case Split():
            return ("K",) if config.swap_ab else ("K", "N")
        case Hopper():
            return ("K",) if config.single else ("K", "N")
        case Narrow():
            return ()
        case _:
            assert_never(config)
