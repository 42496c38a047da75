"""Philox4x32-10, a counter-based generator of random bits, as CUDA's library and torch on a GPU have it.

Source: Salmon and others, Parallel random numbers: as easy as 1, 2, 3 (2011). torch's element-wise kernels on a GPU
give the thread with number t of all the counters (offset / 4 + i, 0, t, 0) for i = 0, 1, ...; each has four words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[Any]
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MIDDLE = 1 << 31


def philox(first: Words, step: Words, thread: Words, word: Words, key_low: Words, key_high: Words) -> Words:
    """A word of the block of random bits of the counter first + step and a thread, less 2^31: an integer of 32 bits.

    Operands and result are integers of 32 bits in two's complement; the word is numbered from 0 to 3. In this order of
    signed integers, words are in that of the numbers from 0 to 1 that they stand for.
    """
    given = first, step, thread, key_low, key_high
    shape = np.broadcast_shapes(np.shape(word), *map(np.shape, given))
    start, more, x2, k0, k1 = (np.asarray(each).astype(np.int64).view(np.uint64) & _LOW for each in given)
    x0, x1, x3 = (start + more) & _LOW, (start + more) >> _HALF, np.zeros(shape, np.uint64)
    for count in range(ROUNDS):
        one, two = np.uint64(MULTIPLIERS[0]) * x0, np.uint64(MULTIPLIERS[1]) * x2
        own = [(key + np.uint64(count * step)) & _LOW for key, step in zip((k0, k1), WEYL, strict=True)]
        x0, x2 = (two >> _HALF) ^ x1 ^ own[0], (one >> _HALF) ^ x3 ^ own[1]
        x1, x3 = two & _LOW, one & _LOW
    blocks = np.stack([np.broadcast_to(each, shape) for each in (x0, x1, x2, x3)])
    place = np.broadcast_to(np.asarray(word).astype(np.int64) & 3, shape)
    found = np.take_along_axis(blocks, place[None], 0)[0]
    return (found.astype(np.int64) - _MIDDLE).astype(np.int32)


def greatest_below(probability: float) -> int:
    """The greatest word, less 2^31, whose number is below a probability in f32; less than all words if none is.

    The number of a word u is u 2^-32 + 2^-33, rounded to f32 as torch's generator does: above 0, and at most 1.
    """
    low, high = -1, (1 << 32) - 1  # the number of low is below, that of a word above high is not
    while low < high:
        middle = (low + high + 1) // 2
        number = np.float32(np.float32(middle) * np.float32(2.0**-32)) + np.float32(2.0**-33)
        low, high = (middle, high) if number < np.float32(probability) else (low, middle - 1)
    return low - _MIDDLE
