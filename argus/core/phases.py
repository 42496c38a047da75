"""Phases of shared-memory accesses: groups of lanes whose accesses are served together, per target and access width.

Lanes of different phases never cause a bank conflict. A width without an entry is not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Phases = tuple[tuple[int, ...], ...]
"""Groups of lane numbers that partition the wave or warp."""
Direction = Literal["read", "write", "ldmatrix", "stmatrix"]
"""Kind of access. For ldmatrix and stmatrix (four matrices) a lane's vector is the matrix row that it addresses."""


def runs(lanes: int, length: int) -> Phases:
    """Groups of `length` consecutive lanes."""
    return tuple(tuple(range(first, first + length)) for first in range(0, lanes, length))


_CDNA3_READ_B128: Phases = tuple(
    tuple(half + lane for lane in lanes)
    for half in (0, 32)
    for lanes in (
        (*range(4), *range(20, 24)),
        (*range(4, 8), *range(16, 20)),
        (*range(8, 12), *range(28, 32)),
        (*range(12, 16), *range(24, 28)),
    )
)

PHASES: Mapping[tuple[str, Direction, int], Phases] = {
    # 128 bytes per clock [AMD CDNA3 ISA, data share]: 32 lanes of 4 bytes.
    ("gfx942", "read", 32): runs(64, 32),
    ("gfx942", "write", 32): runs(64, 32),
    # Groups that cover the 32 banks once [Triton, AMD backend, remarks on LDS banks].
    ("gfx942", "read", 64): runs(64, 16),
    ("gfx942", "write", 64): runs(64, 16),
    # [Composable Kernel documentation, LDS bank conflicts].
    ("gfx942", "read", 128): _CDNA3_READ_B128,
    ("gfx942", "write", 128): runs(64, 8),
    # Whole warp, half-warps and quarter-warps: 128 bytes each [NVIDIA developer forum, thread 77228].
    ("sm_90a", "read", 32): runs(32, 32),
    ("sm_90a", "write", 32): runs(32, 32),
    ("sm_90a", "read", 64): runs(32, 16),
    ("sm_90a", "write", 64): runs(32, 16),
    ("sm_90a", "read", 128): runs(32, 8),
    ("sm_90a", "write", 128): runs(32, 8),
    # Lanes 8j to 8j+7 address the rows of 8x8 matrix j [NVIDIA PTX ISA, ldmatrix and stmatrix].
    ("sm_90a", "ldmatrix", 128): runs(32, 8),
    ("sm_90a", "stmatrix", 128): runs(32, 8),
}
"""By target, kind of access and width of a lane's vector in bits."""
