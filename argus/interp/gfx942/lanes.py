"""Moves between lanes and scalar registers."""

from __future__ import annotations

import numpy as np

from argus.interp.gfx942.instruction import Constant, Instruction, Operand, Scalar, Vector
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import LANES, Array, Group, Wave


def _first_active(wave: Wave) -> Array:
    """The lowest active lane of each workgroup's wave; lane 0 if none is."""
    return np.argmax(wave.active, axis=1)


def _selected(wave: Wave, operand: Operand) -> Array:
    if isinstance(operand, Constant):
        return np.full(len(wave.active), operand.integer % LANES, np.int64)
    assert isinstance(operand, Scalar)
    return (wave.s[operand.first] & np.uint32(63)).astype(np.int64)


def _read_to(wave: Wave, instruction: Instruction, lanes: Array) -> None:
    source, (target,) = instruction.sources[0], instruction.results
    assert isinstance(target, Scalar)
    if isinstance(source, Vector):
        found = wave.v[source.first][np.arange(len(lanes)), lanes]
    else:
        assert isinstance(source, Scalar)
        found = wave.s[source.first]
    wave.write_scalar(target.first, found)


def _read_first(_group: Group, wave: Wave, instruction: Instruction) -> None:
    _read_to(wave, instruction, _first_active(wave))


def _read_lane(_group: Group, wave: Wave, instruction: Instruction) -> None:
    _read_to(wave, instruction, _selected(wave, instruction.sources[1]))


def _write_lane(_group: Group, wave: Wave, instruction: Instruction) -> None:
    """One lane, whether it is active or not; the others keep what they hold."""
    value, lane = instruction.sources
    (target,) = instruction.results
    assert isinstance(target, Vector)
    lanes, rows = _selected(wave, lane), np.arange(len(wave.active))
    held = wave.v[target.first]
    held[rows, lanes] = wave.s[value.first] if isinstance(value, Scalar) else _constant(value)
    holes = wave.undefined_bits(target.first).copy()
    holes[rows, lanes] = 0
    wave.stamp(target.first)
    wave.holes[target.first] = holes
    wave.whole[target.first] = not holes.any()


def _constant(operand: Operand) -> np.uint32:
    assert isinstance(operand, Constant)
    return np.uint32(operand.word)


ROWS: tuple[Row, ...] = (
    act("v_readfirstlane_b32", "VOP1", 2, "b32 = b32", _read_first),
    act("v_readlane_b32", "VOP3", 649, "b32 = b32 b32", _read_lane),
    act("v_writelane_b32", "VOP3", 650, "b32 = b32 b32", _write_lane),
)
