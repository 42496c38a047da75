"""Functions of the thread index that are linear in its bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.layout import IntArray


def linear_in_bits(values: IntArray, thread: Symbol) -> Index | None:
    """The values, one for each thread, as a linear function of the bits of the thread index; None if there is none."""
    first = int(values[0])
    steps = [int(values[1 << bit]) - first for bit in range((len(values) - 1).bit_length())]
    threads = np.arange(len(values))
    if not np.array_equal(first + sum((threads >> bit & 1) * step for bit, step in enumerate(steps)), values):
        return None
    parts = [_bit_field(algebra.sym(thread), low, high, steps[low]) for low, high in _bit_fields(steps)]
    return algebra.add(first, *parts)


def _bit_fields(steps: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges [low, high) of bits whose steps double from bit to bit; bits with step 0 belong to none."""
    low = 0
    while low < len(steps):
        high = low + 1
        while high < len(steps) and steps[high] == steps[low] << (high - low):
            high += 1
        if steps[low]:
            yield low, high
        low = high


def _bit_field(thread: Index, low: int, high: int, step: int) -> Index:
    """Bits [low, high) of an index, times a step."""
    return algebra.mul(algebra.mod(algebra.floordiv(thread, 1 << low), 1 << (high - low)), step)
