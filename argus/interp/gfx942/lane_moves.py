"""Data parallel primitives (DPP) and `ds_swizzle`: from which lane each lane reads [MI300 ISA, "DPP"]."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.instruction import Dpp
from argus.interp.gfx942.state import LANES, Array, Mask, Wave

_LANE = np.arange(LANES)
_ROW = 16


@cache
def dpp_source(control: int) -> npt.NDArray[np.int64] | None:
    """The source lane of each lane, -1 where there is none; None for a control that gfx942 does not have."""
    at, row = _LANE % _ROW, _LANE // _ROW * _ROW
    if control < 0x100:
        return _LANE // 4 * 4 + (control >> 2 * (_LANE % 4) & 3)
    amount = control & 15
    if 0x101 <= control <= 0x10F:
        return np.where(at + amount < _ROW, _LANE + amount, -1)
    if 0x111 <= control <= 0x11F:
        return np.where(at - amount >= 0, _LANE - amount, -1)
    if 0x121 <= control <= 0x12F:
        return row + (at - amount) % _ROW
    if 0x150 <= control <= 0x15F:
        return row + amount
    whole = {
        0x130: np.where(_LANE + 1 < LANES, _LANE + 1, -1),
        0x134: (_LANE + 1) % LANES,
        0x138: _LANE - 1,
        0x13C: (_LANE - 1) % LANES,
        0x140: row + _ROW - 1 - at,
        0x141: _LANE // 8 * 8 + 7 - _LANE % 8,
        0x142: np.where(_LANE >= _ROW, row - 1, -1),
        0x143: np.where(_LANE >= 32, 31, -1),
    }
    return whole.get(control)


def moved(wave: Wave, values: Array, dpp: Dpp) -> Array:
    """The source of each lane; 0 where its source lane does not exist or is inactive."""
    source = dpp_source(dpp.control)
    assert source is not None
    there = np.where(source >= 0, source, 0)
    return np.where((source >= 0) & wave.active[:, there], values[:, there], values.dtype.type(0))


def written_lanes(wave: Wave, dpp: Dpp) -> Mask:
    """The lanes that an instruction with DPP writes: active ones of row_mask and bank_mask that have an active source
    lane, or may read 0 for want of one (bound_ctrl).
    """
    source = dpp_source(dpp.control)
    assert source is not None
    enabled = (dpp.rows >> _LANE // _ROW & 1) & (dpp.banks >> _LANE % _ROW // 4 & 1) != 0
    valid = (source >= 0) & wave.active[:, np.where(source >= 0, source, 0)]
    return enabled & (valid | dpp.bound) & wave.active


def swizzled(pattern: int) -> npt.NDArray[np.int64] | None:
    """The source lane of `ds_swizzle_b32`; None for the patterns of the fast Fourier transform and rotation."""
    if pattern >= 0xC000:
        return None
    if pattern >> 15:
        return _LANE // 4 * 4 + (pattern >> 2 * (_LANE % 4) & 3)
    within = ((_LANE & 31 & pattern) | pattern >> 5 & 31) ^ pattern >> 10 & 31
    return _LANE // 32 * 32 + within
