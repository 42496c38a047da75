"""The tiles of convolutions: of several rows where images are small, and with few columns that are no outputs."""

from __future__ import annotations

from itertools import product

import pytest

from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.nests.convolution import Convolution, Taps

WINDOWS = Convolution((Taps(3, pad=1),) * 2)


def test_a_tile_has_several_rows_of_a_small_image() -> None:
    small = shifted_for(WINDOWS, 256, 256, 32, (14, 14), 1)
    assert (small.rows, small.across, small.laid) == (7, 16, 16)
    wide = shifted_for(WINDOWS, 256, 256, 32, (256, 256), 1)
    assert (wide.rows, wide.across, wide.laid) == (1, 256, 256)


def test_multiprocessors_without_a_tile_are_no_gain() -> None:
    """One tile for each, where fewer and larger ones have fewer columns to spare."""
    one = Convolution((Taps(1),))
    assert shifted_for(one, 1024, 256, 32, (196,), 1).pixels == 128
    assert shifted_for(one, 1024, 256, 320, (196,), 1).pixels == 256


@pytest.mark.parametrize("products", [1, 6])
def test_tiles_are_of_whole_rows_that_instructions_have(products: int) -> None:
    for outputs, (down, across) in product((48, 512), product((5, 7, 12, 14, 28, 56, 90), repeat=2)):
        cfg = shifted_for(WINDOWS, 64, outputs, 8, (down, across), products)
        assert cfg.stages >= 2
        if cfg.rows > 1:
            assert down % cfg.rows == 0
            assert cfg.width % cfg.across == cfg.across % 8 == 0
            assert cfg.laid >= across + 2


def test_classes_and_a_single_axis_have_rows_of_their_own() -> None:
    transposed = Convolution((Taps(3, 2, 1, 1, transposed=True),) * 2)
    assert shifted_for(transposed, 64, 64, 8, (14, 14), 1).rows == 1
    assert shifted_for(Convolution((Taps(3),)), 64, 64, 8, (14,), 1).rows == 1
