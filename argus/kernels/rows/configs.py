"""The configurations of row kernels by element size, and the choice among them, as measured on one H200."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd

from argus.kernels.config_names import name_of
from argus.kernels.schedules.rows import WARP, Rows
from argus.language import DType, Template, bf16, f16, f32, kernel

_PER_THREAD = 32
"""Elements of a row that a thread holds at most: more leave too few registers to keep the memory busy."""
_FEW = 8
"""Elements of a thread, below which more threads share a row."""
_BLOCK = 4 * WARP


def _ladder(vector: int) -> list[Rows]:
    """The configurations of a vector width, in ascending order of the longest row."""
    few = max(1, _FEW // vector)
    short = [Rows(_BLOCK, _BLOCK // lanes, vector, few) for lanes in (2, 4, 8, 16, WARP)]
    warps = [Rows(_BLOCK, _BLOCK // WARP, vector, elements // vector) for elements in (16, _PER_THREAD)]
    blocks = [(_BLOCK, 16), (_BLOCK, _PER_THREAD), (2 * _BLOCK, _PER_THREAD)]
    held = [Rows(threads, 1, vector, elements // vector) for threads, elements in blocks]
    return [*short, *warps, *held, Rows(4 * _BLOCK, 1, vector, max(1, 16 // vector), held=False)]


def _vectors(size: int) -> tuple[int, ...]:
    """The elements of an access, of elements of so many bytes: 16 bytes, then the halves down to one element."""
    return tuple(16 // size >> halved for halved in range((16 // size).bit_length()))


LADDERS = {size: {vector: _ladder(vector) for vector in _vectors(size)} for size in (2, 4)}
CONFIGS = {
    size: {name_of(each): each for ladder in ladders.values() for each in ladder} for size, ladders in LADDERS.items()
}
"""The configurations by name, for elements of 2 and of 4 bytes."""
TYPES = (bf16, f16, f32)
"""The types of elements."""


def row_kernel(name: str, dtype: DType) -> Callable[[Callable[..., None]], Template]:
    """The decorator of a kernel of rows of a type: with the configurations of its size, and the type in its name."""
    return kernel(configs=CONFIGS[dtype.bits // 8], name=f"{name}_{dtype}")


@lru_cache(maxsize=1 << 10)
def choose(size: int, length: int, whole: int | None = None) -> str:
    """The configuration for rows of a length, of elements of `size` bytes: the widest access, then the first that holds
    a row; very long rows are read again for each pass.

    whole: a number of elements that accesses divide; by default the length.
    """
    ladder = LADDERS[size][gcd(length if whole is None else whole, 16 // size)]
    return name_of(next(each for each in ladder if not each.held or length <= each.width))
