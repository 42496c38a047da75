"""The planners' search space of GEMM on gfx942, from a naive kernel to the 8-wave ping-pong schedule.

Each axis is a technique. The space includes points that cannot be built and points that spill registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from attrs import evolve

from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged

_TILES: tuple[tuple[int, int, tuple[int, int]], ...] = (
    *((64, 64, (2, 2)), (128, 64, (2, 2)), (128, 128, (2, 2)), (256, 128, (2, 2))),
    *((256, 256, (2, 2)), (256, 256, (2, 4)), (256, 128, (4, 2))),
)
_BAND = 4
_STARTS = 8
Changes = dict[str, Any]
_STEPS: tuple[Changes, ...] = (
    {"vector": 8},
    {"run": 8},
    {"swizzle": True},
    {"guarded": True},
    {"buffers": 2},
    {"group": _BAND},
    {"priority": True, "pinned": True},
    {"stagger": _STARTS},
    {"unroll": 2},
)
"""Techniques in a natural order of addition."""


def staged() -> Iterator[Cdna3Staged]:
    """Points of the schedule `Cdna3Staged`."""
    for (bm, bn, waves), bk, mfma in product(_TILES, (32, 64), (16, 32)):
        tile = Cdna3Staged(bm=bm, bn=bn, waves=waves, bk=bk, mfma=mfma)
        yield from _climbed(tile)
    for bk, mfma in product((32, 64), (16, 32)):
        yield from _around(Cdna3Staged(bm=128, bn=128, bk=bk, mfma=mfma, run=8, vector=8, swizzle=True, guarded=True))
    yield from _of_few_elements()
    yield from (Cdna3Staged(bm=256, bn=256, bk=16, vector=each, run=4) for each in (2, 4, 8))
    yield from (Cdna3Staged(bm=192, bn=128), Cdna3Staged(bm=96, bn=128, vector=8), Cdna3Staged(bm=32, bn=32))


def _climbed(tile: Cdna3Staged) -> Iterator[Cdna3Staged]:
    """Add one technique after the other; finally asynchronous copies that bypass registers."""
    yield tile
    for changes in _STEPS:
        tile = evolve(tile, **changes)
        yield tile
    yield evolve(tile, direct=True, unroll=1, stagger=0)


def _around(best: Cdna3Staged) -> Iterator[Cdna3Staged]:
    """All combinations of the interdependent fields around a good point, and some single changes."""
    for buffers, group, direct, stagger, unroll in product((1, 2), (0, _BAND), (False, True), (0, _STARTS), (1, 2, 4)):
        yield evolve(best, buffers=buffers, group=group, direct=direct, stagger=stagger, unroll=unroll)
    for away in ({"swizzle": False}, {"guarded": False}, {"vector": 4}, {"vector": 2}, {"run": 4}, {"group": 8}):
        yield evolve(best, buffers=2, **away)
    for added in ({"priority": True}, {"pinned": True}, {"priority": True, "pinned": True}, {"stagger": 32}):
        yield evolve(best, buffers=2, **added)


def _of_few_elements() -> Iterator[Cdna3Staged]:
    for vector, guarded, swizzle, run in product((1, 2, 4, 8), (False, True), (False, True), (4, 8)):
        yield Cdna3Staged(vector=vector, guarded=guarded, swizzle=swizzle, run=run)


def shipped_kinds() -> Iterator[Cdna3 | Cdna3PingPong]:
    """Neighbours of the shipped schedules `Cdna3` and `Cdna3PingPong`."""
    for bm, bn, bk in product((64, 128, 256), (64, 128, 256), (32, 64)):
        yield Cdna3(bm=bm, bn=bn, bk=bk)
    for bm, bn in ((256, 256), (128, 256), (256, 128), (256, 512)):
        for group, mfma in product((0, 4, 8), (16, 32)):
            yield Cdna3PingPong(bm=bm, bn=bn, group=group, mfma=mfma)
    full = left = Cdna3PingPong()
    for each in ("guarded", "priority", "skew"):
        left = evolve(left, **{each: False})
        yield evolve(full, **{each: False})
        yield left
    yield Cdna3PingPong(bk=32)
    yield Cdna3PingPong(bk=128)


def in_accumulation_registers() -> Iterator[Cdna3 | Cdna3PingPong | Cdna3Staged]:
    """Accumulators in AGPRs: all steps to the tile that fills them, and the final points of other tiles."""
    for bk, mfma in product((32, 64), (16, 32)):
        yield from _climbed(Cdna3Staged(bm=256, bn=256, bk=bk, mfma=mfma, agprs=True))
        for bm, bn, waves in ((128, 128, (2, 2)), (256, 128, (2, 2)), (256, 256, (2, 4))):
            tile = Cdna3Staged(bm=bm, bn=bn, waves=waves, bk=bk, mfma=mfma, run=8, vector=8, swizzle=True, agprs=True)
            for buffers in (1, 2):
                yield evolve(tile, guarded=True, buffers=buffers)
    for edge in (128, 256):
        yield Cdna3(bm=edge, bn=edge, agprs=True)
    for mfma in (16, 32):
        yield Cdna3PingPong(mfma=mfma, agprs=True)
