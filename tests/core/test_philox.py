"""Philox4x32-10 gives the known answers of its authors, and its words are in the order of their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.core.philox import greatest_below, philox
from argus.language import Tensor, f32, kernel, load, sm_90a, spread
from argus.language import philox as philox_of_tiles

ZERO = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
"""The known answer of the authors for a counter and a key of zeros."""


def signed(word: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([word], np.uint32).view(np.int32)


def test_a_known_answer() -> None:
    none = signed(0)
    found = [int(philox(none, none, none, signed(word), none, none)[0]) for word in range(4)]
    assert [each + (1 << 31) for each in found] == list(ZERO)


def test_floats_are_refused() -> None:
    @kernel(target=sm_90a, threads=32)
    def random(X: Tensor["8 16", f32]) -> None:
        philox_of_tiles(load(X, spread((8, 16), threads=32, vector=1)), 0, 0, 0, 0, 0)

    with pytest.raises(ArgusError, match="E106: `philox` of f32, which is defined on integers of 32 bits"):
        random.trace()


def test_a_counter_of_64_bits_carries() -> None:
    key, thread = signed(7), signed(3)
    over = philox(signed(0xFFFFFFFF), signed(1), thread, signed(0), key, key)
    assert over != philox(signed(0), signed(0), thread, signed(0), key, key)
    assert over == philox(signed(1), signed(0xFFFFFFFF), thread, signed(0), key, key)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.8, 0.999])
def test_words_below_a_probability_are_those_up_to_one(probability: float) -> None:
    last = greatest_below(probability) + (1 << 31)

    def number(word: int) -> np.float32:
        return np.float32(word) * np.float32(2.0**-32) + np.float32(2.0**-33)

    assert number(last) < np.float32(probability) <= number(last + 1)
    assert last / 2**32 == pytest.approx(probability, abs=1e-7)


def test_no_word_is_below_0() -> None:
    assert greatest_below(0.0) == -(1 << 31) - 1
