"""Conversions from and to the 8-bit floats of gfx942, FNUZ e4m3 (fp8) and e5m2 (bf8) [MI300 ISA, "Instructions"].

Values too large become NaN (MODE.FP16_OVFL is 0). Conversions that round by random bits are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.operands import reader
from argus.interp.gfx942.row import Row, act, row
from argus.interp.gfx942.state import Array, Group, Wave

U8, U32, F32 = np.uint8, np.uint32, np.float32
E4M3, E5M2 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz


def _wider(kind: npt.DTypeLike, shift: int = 0) -> Callable[[Array], Array]:
    return lambda a: (a >> U32(shift)).astype(U8).view(kind).astype(F32)


def _both(kind: npt.DTypeLike) -> Callable[[Array], Array]:
    low, high = _wider(kind), _wider(kind, 8)
    return lambda a: np.stack([low(a), high(a)])


def _pack(kind: npt.DTypeLike) -> Callable[[Group, Wave, Instruction], None]:
    """Two floats as the half of a register that bit 3 of op_sel chooses; the other half stays."""

    def run(_group: Group, wave: Wave, instruction: Instruction) -> None:
        (target,) = instruction.results
        assert isinstance(target, Vector)
        low, high = (
            reader(instruction, "f32", number, source)(wave).astype(kind).view(U8).astype(U32)
            for number, source in enumerate(instruction.sources)
        )
        both, old = low | high << U32(8), wave.v[target.first]
        upper = instruction.select >> 3 & 1
        wave.write(target.first, both << U32(16) | old & U32(0xFFFF) if upper else both | old & U32(0xFFFF0000))

    return run


ROWS: tuple[Row, ...] = (
    row("v_cvt_f32_fp8", "VOP1", 84, "f32 = u32", _wider(E4M3)),
    row("v_cvt_f32_bf8", "VOP1", 85, "f32 = u32", _wider(E5M2)),
    row("v_cvt_pk_f32_fp8", "VOP1", 86, "v2f32 = u32", _both(E4M3)),
    row("v_cvt_pk_f32_bf8", "VOP1", 87, "v2f32 = u32", _both(E5M2)),
    act("v_cvt_pk_fp8_f32", "VOP3", 674, "b32 = f32 f32 old", _pack(E4M3)),
    act("v_cvt_pk_bf8_f32", "VOP3", 675, "b32 = f32 f32 old", _pack(E5M2)),
)
