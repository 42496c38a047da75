"""Configurations made for the extents of a product on sm_90a: tiles as high or as wide as the short extent needs.

Each is a kernel of its own, proved and compiled at its first use. The cost model chooses among them and the shipped
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import ceil

from argus.kernels.config_names import name_of
from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.schedules.hopper import RESIDENT
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.streamk import Stream

_ROOM = 224 << 10
"""Bytes of shared memory for stages."""
_SLICE = 128
"""Bytes of a row in a stage."""
_MOST_STAGES, _FEWEST_STAGES = 16, 3
_WIDEST = 256
"""Columns of wgmma."""
_MOST_TILES, _LEAST = 8, 24
"""Along the short extent, and the least extent of one of several."""
_PEERS = (1, 2, 4)
_STREAM_PEERS = (1, 2, 3, 4)
_NARROWER = 224
"""Columns of wgmma of one warpgroup alone."""
_ROWS = {64: _WIDEST, 128: _WIDEST, 192: 200}
"""Rows of tiles of split-K in a workspace, and the most columns that the registers allow."""
_COLUMNS = (64, 96, 128, 160, 192, 224, 256)
_PARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
"""Into how many parts the K of a tile is split."""
_DEEPEST = 3
"""Of those that fit, the most that are considered."""
_SHORTEST = 256
"""K of a part."""


def _stages(rows: int) -> int:
    return min(_MOST_STAGES, _ROOM // (_SLICE * rows))


def _fitting(extent: int, multiple: int) -> Iterator[int]:
    """Extents of tiles, multiples of this, of which a few cover the extent with little beyond it."""
    for tiles in range(1, _MOST_TILES + 1):
        found = ceil(extent / tiles / multiple) * multiple
        if found <= _WIDEST and (tiles == 1 or found >= _LEAST):
            yield found


@lru_cache(maxsize=4096)
def few_candidates(m: int, n: int, k: int) -> dict[str, Skinny]:
    """For few rows of A: one tile or a few along them; by name. In clusters of four where all of them run at a time."""
    if k % 8:
        return {}
    made = (
        Skinny(bm=bm, bk=64, stages=_stages(bm + bn), bn=bn, peers=peers)
        for peers in _PEERS
        for bm in _fitting(m, 8 * peers)
        for bn in (64, 128)
        if (bn > 64 or bm <= _NARROWER) and (peers == 1 or _fill(ceil(m / bm), ceil(n / bn), peers))
    )
    return {name_of(each): each for each in made}


def _fill(high: int, wide: int, peers: int) -> bool:
    """Whether clusters have tiles for most of their CTAs, and those of four all run at a time."""
    return 2 * wide >= peers and high * ceil(wide / peers) <= RESIDENT.get(peers, PROCESSORS * wide * high)


@lru_cache(maxsize=4096)
def stream_candidates(m: int, n: int, k: int) -> dict[str, Stream]:
    """Split-K in a workspace by name: all parts run at a time, each with at least 256 of K."""
    if n % 8 or k % 8 or k < 2 * _SHORTEST:
        return {}
    return {name_of(each): each for each in (*_streams(m, n, k), *_swapped(m, n, k))}


def _streams(m: int, n: int, k: int) -> Iterator[Stream]:
    for rows, widest in _ROWS.items():
        for columns in _COLUMNS if rows != 192 else ():
            for peers in _STREAM_PEERS:
                if columns <= widest and columns % (8 * peers) == 0:
                    tiles = ceil(m / (rows * peers)) * peers * ceil(n / columns)
                    yield from (_stream(rows, columns, parts, peers) for parts in _parts(tiles, k))


def _swapped(m: int, n: int, k: int) -> Iterator[Stream]:
    for rows, widest in _ROWS.items():
        for peers in _STREAM_PEERS:
            for columns in _fitting(m, 8 * peers):
                if columns <= widest:
                    tiles = ceil(n / (rows * peers)) * peers * ceil(m / columns)
                    made = (_stream(rows, columns, parts, peers, swap_ab=True) for parts in _parts(tiles, k))
                    yield from (each for each in made if each.stages >= _FEWEST_STAGES)


def _parts(tiles: int, k: int) -> tuple[int, ...]:
    """The largest numbers of parts with which all run at a time."""
    return tuple(each for each in _PARTS if tiles * each <= PROCESSORS and k >= _SHORTEST * each)[-_DEEPEST:]


def _stream(rows: int, columns: int, parts: int, peers: int, *, swap_ab: bool = False) -> Stream:
    stages = _ROOM // (_SLICE * (rows + columns))
    return Stream(rows, columns, stages=stages, chunks=parts, run=1, peers=peers, swap_ab=swap_ab)
