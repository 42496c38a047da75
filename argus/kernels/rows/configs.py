"""The configurations of row kernels by element size, and the choice among them, as measured on one H200."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd, inf
from typing import Literal

from attrs import evolve

from argus.kernels.config_names import name_of
from argus.kernels.schedules.rows import WARP, Rows
from argus.language import DType, Template, bf16, f16, f32, kernel

_PER_THREAD = 32
"""Elements of a row that a thread holds at most: more leave too few registers to keep the memory busy."""
_FEW = 8
"""Elements of a thread, below which more threads share a row."""
_BLOCK = 4 * WARP
_MEASURED, _WIDEST = 2, 8
"""The size of elements in bytes, and the elements of an access, for which most was measured."""


Reads = Literal["twice", "thrice", "two", "once", "summed", "in order"]
"""How often a kernel reads the rows that registers do not hold, or rows of two tensors; or what it reads them once for:
a maximum and a sum ("once"), a sum, or cumulative sums.
"""
_STREAMS: dict[Reads, tuple[tuple[int, int, float], ...]] = {
    "twice": ((4 * _BLOCK, 16, 1 << 14), (4 * _BLOCK, _PER_THREAD, 1 << 15), (8 * _BLOCK, _PER_THREAD, inf)),
    "thrice": ((4 * _BLOCK, 16, 1 << 15), (8 * _BLOCK, _PER_THREAD, inf)),
    "two": ((4 * _BLOCK, 16, 1 << 14), (8 * _BLOCK, _PER_THREAD, inf)),
    "once": ((2 * WARP, 16, 1 << 13), (_BLOCK, 16, 1 << 15), (2 * _BLOCK, 16, inf)),
    "summed": ((4 * _BLOCK, 16, inf),),
    "in order": ((2 * _BLOCK, _PER_THREAD, inf),),
}
"""Threads, elements of a thread at a time, and the longest rows that are read so."""


_FULL = Rows(2 * WARP, 2, 8, 8)
"""Rows of 1025 to 2048 elements, each by a warp, of what is read once."""
WHOLE: dict[Reads, tuple[Rows, ...]] = {
    "twice": (Rows(4 * _BLOCK, 1, 8, 4, whole=True),),
    "thrice": (
        Rows(_BLOCK, 4, 8, 4, whole=True),
        Rows(_BLOCK, 1, 8, 2, whole=True, resident=12),
        Rows(_BLOCK, 1, 8, 4, whole=True, resident=8),
        Rows(2 * _BLOCK, 1, 8, 4, whole=True, resident=4),
        Rows(4 * _BLOCK, 1, 8, 4, whole=True, resident=2),
    ),
    "two": (),
    "once": (evolve(_FULL, whole=True),),
    "summed": (),
    "in order": (),
}
"""Configurations of whole rows, of the elements and accesses that were measured, where they are faster than others."""


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


def _measured(reads: Reads) -> list[tuple[float, Rows]]:
    """The same of the elements and accesses that were measured."""
    ladder = _ladder(_WIDEST, reads, _STREAMS[reads])
    if reads != "once":
        return ladder
    held = [(longest, each) for longest, each in ladder if each.held]
    return [*held, (_FULL.longest, _FULL), *ladder[len(held) :]]


def _vectors(size: int) -> tuple[int, ...]:
    """The elements of an access, of elements of so many bytes: 16 bytes, then the halves down to one element."""
    return tuple(16 // size >> halved for halved in range((16 // size).bit_length()))


def _ladders(size: int, reads: Reads) -> dict[int, list[tuple[float, Rows]]]:
    own: Reads = reads if size == _MEASURED else "summed"
    found = {vector: _ladder(vector, own, _STREAMS[own]) for vector in _vectors(size)}
    return found | {_WIDEST: _measured(reads)} if size == _MEASURED else found


LADDERS = {reads: {size: _ladders(size, reads) for size in (2, 4)} for reads in _STREAMS}
_CHOSEN = {
    size: [each for kind in LADDERS.values() for ladder in kind[size].values() for _, each in ladder] for size in (2, 4)
}
_CHOSEN[_MEASURED] += [each for kind in WHOLE.values() for each in kind]
CONFIGS = {size: {name_of(each): each for each in found} for size, found in _CHOSEN.items()}
"""The configurations by name, for elements of 2 and of 4 bytes."""
TYPES = (bf16, f16, f32)
"""The types of elements."""


def row_kernel(name: str, dtype: DType) -> Callable[[Callable[..., None]], Template]:
    """The decorator of a kernel of rows of a type: with the configurations of its size, and the type in its name."""
    return kernel(configs=CONFIGS[dtype.bits // 8], name=f"{name}_{dtype}")


@lru_cache(maxsize=1 << 10)
def choose(size: int, length: int, whole: int | None = None, reads: Reads = "twice", rows: int | None = None) -> str:
    """The configuration for rows of a length, of elements of `size` bytes: one of whole rows, if so many rows of that
    length are some; or else the widest access, then the first that holds a row, or is for rows of that length.

    whole: a number of elements that accesses divide; by default the length.
    """
    vector = gcd(length if whole is None else whole, 16 // size)
    if rows is not None and (size, vector) == (_MEASURED, _WIDEST):
        found = next((each for each in WHOLE[reads] if each.are_whole(rows, length)), None)
        if found is not None:
            return name_of(found)
    return name_of(next(each for longest, each in LADDERS[reads][size][vector] if length <= longest))
