"""The planners' search space of GEMM on sm_90a, from a naive kernel to the shipped schedules.

Each axis is a technique. The space includes points that cannot be built (tiles that do not fit, copies without an
instruction); planners have to learn to avoid them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from attrs import evolve

from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.staged import Staged

_TILES = ((64, 64), (64, 128), (64, 256), (128, 64), (128, 128), (128, 256))
_DEPTHS = (32, 64)
_BAND = 8
_COLUMNS = (64, 96, 128, 160, 192, 224, 256)
_CLUSTERS = ((1,), (2, 1), (1, 2))
_AWAY = ("flight", "realloc", "persistent", "box", "pdl")
"""Fields of `Hopper` that can be switched off, in reverse order of addition."""


def staged() -> Iterator[Staged]:
    """Points of the schedule `Staged`."""
    yield from _through_registers()
    yield from _past_the_registers()
    yield from _by_the_copy_engine()


def _tiles() -> Iterator[Staged]:
    for (bm, bn), bk in product(_TILES, _DEPTHS):
        yield Staged(bm=bm, bn=bn, bk=bk)


def _through_registers() -> Iterator[Staged]:
    for tile, vector, swizzled, stages in product(_tiles(), (1, 2, 4, 8), (False, True), (1, 2)):
        made = evolve(tile, vector=vector, swizzle=_rows(tile) * swizzled, stages=stages)
        yield made
        if vector == 8 and swizzled:
            yield evolve(made, group=_BAND)
            yield evolve(made, box=True)
            yield evolve(made, group=_BAND, box=True)


def _past_the_registers() -> Iterator[Staged]:
    for tile, stages in product(_tiles(), (1, 2, 3, 4)):
        best = evolve(tile, vector=8, swizzle=_rows(tile), stages=stages, asynchronous=True)
        yield best
        yield evolve(best, vector=2)
        yield evolve(best, vector=4)
        yield evolve(best, swizzle=0)
        yield evolve(best, group=_BAND)
        yield evolve(best, group=_BAND, box=True)
    yield Staged(vector=1, asynchronous=True)
    yield Staged(vector=8, swizzle=128, asynchronous=True)


def _by_the_copy_engine() -> Iterator[Staged]:
    for tile, stages in product(_tiles(), (1, 2, 3, 4, 6)):
        made = evolve(tile, swizzle=_rows(tile), stages=stages, tma=True)
        yield made
        yield evolve(made, group=_BAND)
        yield evolve(made, box=True)
        yield evolve(made, group=_BAND, box=True)
    yield from (Staged(bn=128, bk=16, stages=stages, tma=True) for stages in (1, 2, 4))


def _rows(tile: Staged) -> int:
    """Bytes of a tile's row, and so of the widest swizzle."""
    return 2 * tile.bk


def hopper() -> Iterator[Hopper]:
    """Points of the schedule `Hopper`."""
    for bn, cluster, group, stages in product(_COLUMNS, _CLUSTERS, (0, _BAND), (2, 3, 4, 5, 6)):
        if stages <= 4 or bn <= 160:
            yield Hopper(bn=bn, cluster=cluster, group=group, stages=stages)
    yield from _without()
    yield from _of_other_depths()
    yield from _in_turns()


def _without() -> Iterator[Hopper]:
    """Each technique removed alone, and cumulatively."""
    for bn, stages in ((128, 6), (192, 5), (256, 4)):
        for cluster, group in product(((1,), (2, 1)), (0, _BAND)):
            full = left = Hopper(bn=bn, stages=stages, cluster=cluster, group=group)
            for each in _AWAY:
                left = evolve(left, **{each: False})
                yield evolve(full, **{each: False})
                yield left


def _of_other_depths() -> Iterator[Hopper]:
    for (bn, bk, stages), cluster in product(
        ((256, 32, 8), (128, 32, 8), (192, 32, 8), (256, 128, 2), (192, 128, 2), (128, 128, 3), (64, 128, 4)), _CLUSTERS
    ):
        yield Hopper(bn=bn, bk=bk, stages=stages, cluster=cluster)
    for bn, turns in product((128, 192, 256), (1, 2, 3, 4)):
        yield Hopper(bn=bn, stages=3, turns=turns, cluster=(2, 1), group=_BAND)
    yield from (Hopper(bn=bn, stages=1, flight=False) for bn in (64, 128, 256))
    yield Hopper(bn=128, stages=1)


def _in_turns() -> Iterator[Hopper]:
    """Points of the ping-pong schedule."""
    for (bn, stages), group in product(
        ((64, 8), (128, 4), (128, 8), (192, 4), (192, 6), (256, 3), (256, 4)), (0, 8, 16)
    ):
        yield Hopper(bm=64, bn=bn, stages=stages, pingpong=True, group=group)
    full = left = Hopper(bm=64, pingpong=True, group=16)
    for each in ("flight", "realloc", "box", "pdl"):
        left = evolve(left, **{each: False})
        yield evolve(full, **{each: False})
        yield left
