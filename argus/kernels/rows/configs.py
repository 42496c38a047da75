"""The configurations of row kernels by element type, and the choice among them, as measured on one H200."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd, inf
from typing import Literal

from attrs import evolve

from argus.kernels.config_names import name_of
from argus.kernels.rows.configs_cdna3 import CONFIGS as CDNA3
from argus.kernels.schedules.rows import WARP, Rows
from argus.language import DType, Template, bf16, f16, f32, kernel

_PER_THREAD = 32
"""Elements of a row that a thread holds at most: more leave too few registers to keep the memory busy."""
_FEW = 8
"""Elements of a thread, below which more threads share a row."""
_BLOCK = 4 * WARP
SIZES = {"bf16": 2, "f16": 2, "f32": 4}
"""The bytes of an element of each type."""


Reads = Literal["twice", "squared", "thrice", "two", "once", "summed", "in order"]
"""How often a kernel reads the rows that registers do not hold ("squared": twice, first for squares), or rows of two
tensors; or what it reads them once for: a maximum and a sum ("once"), a sum, or cumulative sums.
"""
_STREAMS: dict[Reads, tuple[tuple[int, int, float], ...]] = {
    "twice": ((4 * _BLOCK, 16, 1 << 14), (4 * _BLOCK, _PER_THREAD, 1 << 15), (8 * _BLOCK, _PER_THREAD, inf)),
    "squared": ((4 * _BLOCK, 16, 1 << 14), (4 * _BLOCK, _PER_THREAD, 1 << 15), (8 * _BLOCK, _PER_THREAD, inf)),
    "thrice": ((4 * _BLOCK, 16, 1 << 15), (8 * _BLOCK, _PER_THREAD, inf)),
    "two": ((4 * _BLOCK, 16, 1 << 14), (8 * _BLOCK, _PER_THREAD, inf)),
    "once": ((2 * WARP, 16, 1 << 13), (_BLOCK, 16, 1 << 15), (2 * _BLOCK, 16, inf)),
    "summed": ((4 * _BLOCK, 16, inf),),
    "in order": ((2 * _BLOCK, _PER_THREAD, inf),),
}
"""Threads, elements of a thread at a time, and the longest rows that are read so."""


_FULL = Rows(2 * WARP, 2, 8, 8)
"""Rows of 1025 to 2048 elements, each by a warp, of what is read once."""
_STAGED = Rows(4 * _BLOCK, 1, 8, 4, staged=True, resident=4)
_STAGED_LONG = Rows(4 * _BLOCK, 1, 8, 8, staged=True, resident=3)
_STAGED_BY_4 = Rows(2 * _BLOCK, 1, 8, 8, staged=True, blocks=4, resident=6)
_STAGED_F32 = Rows(4 * _BLOCK, 1, 4, 8, staged=True, resident=3)
_STAGED_SUMS_F32 = Rows(4 * _BLOCK, 1, 4, 4, staged=True, resident=3)
_HELD_F32, _LONG_F32 = Rows(4 * _BLOCK, 1, 4, 8, whole=True), Rows(8 * _BLOCK, 1, 4, 8, whole=True)
_SHORT_CHUNKS, _CHUNKS, _LONG_CHUNKS = (
    Rows(threads, 1, 8, steps, held=False) for threads, steps in ((4 * _BLOCK, 2), (4 * _BLOCK, 4), (8 * _BLOCK, 4))
)
_LONG: dict[Reads, tuple[tuple[float, Rows], ...]] = {
    "twice": (
        (12280, _SHORT_CHUNKS),
        (14336, _STAGED),
        (1 << 14, _SHORT_CHUNKS),
        (1 << 15, _CHUNKS),
        (1 << 16, _STAGED_BY_4),
        (inf, _LONG_CHUNKS),
    ),
    "squared": (
        (12280, _SHORT_CHUNKS),
        (14336, _STAGED),
        (24576, _SHORT_CHUNKS),
        (50000, _CHUNKS),
        (1 << 16, evolve(_STAGED_LONG, blocks=2, ahead=1)),
        (inf, _LONG_CHUNKS),
    ),
    "thrice": (
        (12280, _SHORT_CHUNKS),
        (1 << 14, Rows(2 * _BLOCK, 1, 8, 8, staged=True, resident=6)),
        (1 << 15, _STAGED_LONG),
        (49144, _SHORT_CHUNKS),
        (1 << 16, _STAGED_BY_4),
        (inf, _LONG_CHUNKS),
    ),
    "two": (
        (12280, _SHORT_CHUNKS),
        (1 << 14, evolve(_STAGED, resident=3)),
        (1 << 15, evolve(_STAGED, blocks=2, resident=3)),
        (1 << 16, evolve(_STAGED, blocks=4, resident=3)),
        (inf, _LONG_CHUNKS),
    ),
}
"""Configurations, of elements of 16 bits, of rows that registers do not hold, with the longest rows of each."""
_CHUNKS_F32 = Rows(4 * _BLOCK, 1, 4, 4, held=False)
_ROWS_OF_F32: tuple[tuple[float, Rows], ...] = (
    (24576, _CHUNKS_F32),
    (1 << 15, evolve(_STAGED_F32, blocks=2)),
    (1 << 16, evolve(_STAGED_F32, blocks=4)),
    (inf, _CHUNKS_F32),
)
_LONG_OF_F32: dict[Reads, tuple[tuple[float, Rows], ...]] = {
    "twice": _ROWS_OF_F32,
    "squared": _ROWS_OF_F32,
    "thrice": _ROWS_OF_F32,
    "two": (*((blocks << 13, evolve(_STAGED_SUMS_F32, blocks=blocks)) for blocks in (2, 4, 8)), (inf, _CHUNKS_F32)),
}
"""The same of f32."""
_SHORT_WHOLE = (
    Rows(_BLOCK, 4, 8, 4, whole=True),
    Rows(_BLOCK, 1, 8, 2, whole=True, resident=12),
    Rows(_BLOCK, 1, 8, 4, whole=True, resident=8),
    Rows(2 * _BLOCK, 1, 8, 4, whole=True, resident=4),
)
_WHOLE: dict[Reads, tuple[Rows, ...]] = {
    "twice": (
        evolve(_STAGED, whole=True),
        evolve(_STAGED_LONG, whole=True),
        evolve(_STAGED_LONG, blocks=2, whole=True),
    ),
    "squared": (
        Rows(4 * _BLOCK, 1, 8, 4, whole=True),
        evolve(_STAGED_LONG, ahead=1, whole=True),
        evolve(_STAGED_LONG, blocks=2, ahead=2, whole=True),
    ),
    "thrice": (
        *_SHORT_WHOLE,
        evolve(_STAGED, whole=True),
        evolve(_STAGED_LONG, whole=True),
        evolve(_STAGED_BY_4, whole=True),
    ),
    "two": tuple(evolve(_STAGED, blocks=blocks, whole=True, resident=3) for blocks in (1, 2, 4)),
    "once": (evolve(_FULL, whole=True),),
    "summed": (evolve(_FULL, whole=True),),
    "in order": (Rows(4 * _BLOCK, 1, 8, 4, held=False, whole=True, resident=2),),
}
"""Configurations of whole rows, of elements of 16 bits and accesses of 16 bytes, where they are faster than others."""
_WHOLE_F32: dict[Reads, tuple[Rows, ...]] = {
    "twice": (_HELD_F32, _LONG_F32, evolve(_STAGED_F32, blocks=4, whole=True)),
    "squared": (_HELD_F32, _LONG_F32, evolve(_STAGED_F32, blocks=4, whole=True)),
    "thrice": (
        evolve(_STAGED_F32, whole=True),
        _LONG_F32,
        Rows(2 * _BLOCK, 1, 4, 8, staged=True, blocks=8, whole=True, resident=6),
    ),
    "two": (_HELD_F32, *(evolve(_STAGED_SUMS_F32, blocks=blocks, whole=True) for blocks in (4, 8))),
    "once": (),
    "summed": (),
    "in order": (),
}
"""The same of f32."""
WHOLE = {"bf16": _WHOLE, "f16": _WHOLE, "f32": _WHOLE_F32}
"""Configurations of whole rows by type, and by how rows are read."""


def _ladder(vector: int, reads: Reads, streams: tuple[tuple[int, int, float], ...]) -> list[tuple[float, Rows]]:
    """The configurations of a vector width with the longest row of each, in ascending order of these."""
    few = max(1, _FEW // vector)
    short = [Rows(_BLOCK, _BLOCK // lanes, vector, few) for lanes in (2, 4, 8, 16, WARP)]
    warps = [Rows(_BLOCK, _BLOCK // WARP, vector, elements // vector) for elements in (16, _PER_THREAD)]
    blocks = [(_BLOCK, 16), (_BLOCK, _PER_THREAD), (2 * _BLOCK, _PER_THREAD)]
    held = [Rows(threads, 1, vector, elements // vector) for threads, elements in blocks]
    if reads == "once":
        held = []
    of_any_length = [
        (longest, Rows(threads, 1, vector, max(1, elements // vector), held=False))
        for threads, elements, longest in streams
    ]
    return [*((each.width, each) for each in (*short, *warps, *held)), *of_any_length]


def _measured(kind: str, reads: Reads) -> list[tuple[float, Rows]]:
    """The same of accesses of 16 bytes, for which more was measured."""
    own, long = ("summed", _LONG_OF_F32) if kind == "f32" else (reads, _LONG)
    ladder = _ladder(16 // SIZES[kind], own, _STREAMS[own])
    held = [(longest, each) for longest, each in ladder if each.held]
    if own == "once":
        return [*held, (_FULL.longest, _FULL), *ladder[len(held) :]]
    return [*held, *long[reads]] if reads in long else ladder


def _vectors(size: int) -> tuple[int, ...]:
    """The elements of an access, of elements of so many bytes: 16 bytes, then the halves down to one element."""
    return tuple(16 // size >> halved for halved in range((16 // size).bit_length()))


def _ladders(kind: str, reads: Reads) -> dict[int, list[tuple[float, Rows]]]:
    size = SIZES[kind]
    own: Reads = "summed" if kind == "f32" else reads
    found = {vector: _ladder(vector, own, _STREAMS[own]) for vector in _vectors(size)}
    return found | {16 // size: _measured(kind, reads)}


LADDERS = {reads: {kind: _ladders(kind, reads) for kind in SIZES} for reads in _STREAMS}
"""The configurations by how rows are read, type, and elements of an access, with the longest row of each."""


def _own(kind: str, reads: Reads) -> dict[str, Rows]:
    ladders = LADDERS[reads][kind].values()
    return {name_of(each): each for each in (*(one for ladder in ladders for _, one in ladder), *WHOLE[kind][reads])}


_OWN = {kind: {reads: _own(kind, reads) for reads in _STREAMS} for kind in SIZES}
CONFIGS = {kind: {name: each for found in own.values() for name, each in found.items()} for kind, own in _OWN.items()}
"""The configurations by type and name."""
TYPES = (bf16, f16, f32)
"""The types of elements."""


def row_kernel(name: str, dtype: DType, reads: Reads) -> Callable[[Callable[..., None]], Template]:
    """The decorator of a kernel of rows of a type, which its name ends in.

    It has the configurations for how it reads, those for MI300X, and those for others but for rows in shared memory
    and whole chunks, which not every kernel can have, and for 1024 threads of cumulative sums: of the 64 registers of
    a thread, 32 sums of warps leave too few for a chunk.
    """
    kind = str(dtype)
    own = _OWN[kind][reads]
    most = 4 * _BLOCK if reads == "in order" else 8 * _BLOCK
    others = {name: each for name, each in CONFIGS[kind].items() if not each.staged and (each.held or not each.whole)}
    all_can = {name: each for name, each in others.items() if each.threads <= most}
    return kernel(configs=all_can | own | CDNA3[kind], name=f"{name}_{kind}")


@lru_cache(maxsize=1 << 10)
def choose(kind: str, length: int, whole: int | None = None, reads: Reads = "twice", rows: int | None = None) -> str:
    """The configuration for rows of a length, of elements of a type ("bf16", "f16" or "f32"): one of whole rows, if so
    many rows of that length are some; or else the widest access, then the first that holds a row, or is for rows of
    that length.

    whole: a number of elements that accesses divide; by default the length.
    """
    vector = gcd(length if whole is None else whole, 16 // SIZES[kind])
    if rows is not None and vector == 16 // SIZES[kind]:
        found = next((each for each in WHOLE[kind][reads] if each.are_whole(rows, length)), None)
        if found is not None:
            return name_of(found)
    return name_of(next(each for longest, each in LADDERS[reads][kind][vector] if length <= longest))
