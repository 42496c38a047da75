"""Published times of products on AMD's GPUs, to hold predictions of static_performance.py against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from argus.kernels.schedules.cdna3 import Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.cdna3_staged import Cdna3Staged


@frozen
class Published:
    """TFLOP/s of a library at a cube in bf16. fitted: a constant was fitted to it. structure: the configuration that
    has the library's, empty if it is not known.
    """

    machine: str
    what: str
    cube: int
    low: float
    high: float
    fitted: bool = False
    structure: str = ""


PUBLISHED: tuple[Published, ...] = (
    *(
        Published("MI325X", "hipBLASLt", cube, low, high)
        for cube, low, high in ((2048, 325, 325), (4096, 753, 753), (8192, 785, 797), (16384, 750, 750))
    ),
    *(
        Published("MI325X", "HipKittens", cube, low, high, structure="cdna3_pingpong" if cube > 2048 else "")
        for cube, low, high in ((2048, 298, 298), (4096, 714, 714), (8192, 749, 764), (16384, 714, 714))
    ),
    *(
        Published("MI300X", "torch", cube, value, value, fitted=cube == 8192)
        for cube, value in ((2048, 330), (4096, 612), (8192, 635))
    ),
)
"""[HipKittens, cdna3 branch and its analysis files; facebookexperimental/triton#2891.]"""
_TILE = Cdna3Staged(bm=256, bn=256, bk=32, waves=(2, 4), mfma=16, run=8, vector=8, swizzle=True)
_SLICED = Cdna3PingPong(group=0, skew=False, priority=False)
LADDERS: Mapping[str, tuple[tuple[int, int, int], Sequence[tuple[str, object, float]]]] = {
    "steps": (
        (4096, 4096, 8192),
        (
            ("no overlap", _TILE, 614),
            ("buffer loads", evolve(_TILE, guarded=True), 608),
            ("global prefetch", evolve(_TILE, guarded=True, buffers=2), 836),
            ("unrolled", evolve(_TILE, guarded=True, buffers=2, unroll=4, pinned=True), 859),
            ("sliced", _SLICED, 913),
            ("ping-pong, priorities", evolve(_SLICED, skew=True, priority=True), 1005),
            ("XCD remap, super-tiles", evolve(_SLICED, skew=True, priority=True, group=4), 1026),
        ),
    ),
    "eight waves or four": (
        (8192, 8192, 8192),
        (
            ("eight, products of 16 rows", Cdna3PingPong(), 1580),
            ("eight, products of 32 rows", Cdna3PingPong(mfma=32), 1291),
            ("four", Cdna3Interleaved(), 1507),
        ),
    ),
    "rows of a super-tile": (
        (8192, 8192, 8192),
        tuple(
            (str(rows), Cdna3PingPong(group=rows), value)
            for rows, value in ((0, 1017), (2, 1083), (4, 1109), (8, 1114), (32, 875))
        ),
    ),
}
"""Ladders of schedules on an MI355X: the shape, and for each step its structure here and the published TFLOP/s.

`steps` [facebookexperimental/triton, tlx/tutorials/gfx9_gemm]: of its ten steps those that have a counterpart here;
loads of 16 bytes to LDS, padding and prefetch of fragments have none. Unrolled is with pinned loads: without, the
compiler moves the loads of the first half behind the products. The others are HipKittens' micro benchmarks, the last of
an unnamed shape and machine.
"""
