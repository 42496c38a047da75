"""LDS cycles of instructions, beside degrees that were worked out from the documented phases."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from argus.core.cost.dies import MI300X_DIES, MI355X_DIES
from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.table import ROWS
from argus.interp.gfx942.timing.accesses import global_access, lines_of, local_access, local_cycles, scratch_lines
from tests.interp.gfx942.executed import group_of_one

LANE = np.arange(64)
ROW, PART = LANE % 16, LANE // 16
TABLE = {row.name: row for row in ROWS}


def cycles(name: str, places: object, second: int = 0, active: int = (1 << 64) - 1, wide: bool = False) -> int:
    group = group_of_one()
    (wave,) = group.waves
    wave.v[0, 0] = np.asarray(places, np.uint32)
    wave.write_scalar(126, np.uint32(active & 0xFFFFFFFF))
    wave.write_scalar(127, np.uint32(active >> 32))
    access = local_access(name)
    assert access is not None
    made = Instruction(TABLE[name], 0, 8, sources=(Vector(0),), second=second)
    return int(local_cycles(wave, made, access, MI355X_DIES if wide else MI300X_DIES)[0])


@pytest.mark.parametrize(
    ("name", "places", "degree", "phases"),
    [
        ("ds_read_b128", ROW * 128 + PART * 16, 4, 8),
        ("ds_read_b128", ROW * 128 + (PART ^ ROW % 8) * 16, 1, 8),
        ("ds_read_b128", ROW * 128 + (PART ^ ROW // 2 % 8) * 16, 2, 8),
        ("ds_read_b128", ROW * 64 + PART * 16, 2, 8),
        ("ds_read_b128", ROW * 64 + (PART ^ ROW % 4) * 16, 1, 8),
        ("ds_read_b128", ROW * 144 + PART * 16, 2, 8),
        ("ds_read_b64", ROW * 128 + PART * 8, 16, 4),
        ("ds_write_b128", LANE // 8 * 128 + (LANE % 8 ^ LANE // 8) * 16, 1, 8),
        ("ds_write_b128", LANE * 128, 8, 8),
        ("ds_read_b32", LANE * 4, 1, 2),
        ("ds_read_b32", LANE * 0, 1, 2),
        ("ds_write_b16", LANE * 2, 1, 2),
    ],
)
def test_cycles_are_phases_times_the_documented_degree(name: str, places: object, degree: int, phases: int) -> None:
    # [Composable Kernel documentation, LDS bank conflicts; Triton, AMD backend.]
    assert cycles(name, places) == degree * phases


def test_a_paired_read_takes_two_accesses() -> None:
    assert cycles("ds_read2_b64", LANE * 8, second=64) == 2 * cycles("ds_read_b64", LANE * 8)


def test_lanes_that_are_not_active_conflict_with_none() -> None:
    # Of the 16 rows, those that share banks: lanes 0 and 20 of the first phase.
    assert cycles("ds_read_b128", ROW * 128 + PART * 16, active=0b1111) == 4 + 7
    assert cycles("ds_read_b128", ROW * 128 + PART * 16, active=0b1) == 8


def test_wide_reads_of_64_banks_take_half_the_phases() -> None:
    assert cycles("ds_read_b128", LANE * 16, wide=True) == 4
    assert cycles("ds_read_b64", LANE * 8, wide=True) == 4


def test_cache_lines_are_counted_once_and_active_lanes_alone() -> None:
    group = group_of_one()
    (wave,) = group.waves
    wave.v[0, 0], wave.v[1, 0] = (LANE * 16).astype(np.uint32), 0x7F00
    access = global_access("global_load_dwordx4")
    assert access is not None
    assert (access.stores, access.size) == (False, 16)
    made = Instruction(TABLE["global_load_dwordx4"], 0, 8, sources=(Vector(0, 2),))
    (lines,) = lines_of(group, wave, made, access)
    wave.write_scalar(127, np.uint32(0))
    (half,) = lines_of(group, wave, made, access)

    assert (len(lines), len(half)) == (8, 4)
    assert global_access("buffer_store_short") is not None
    assert global_access("buffer_inv") is None


def test_scratch_memory_takes_two_lines_a_dword_and_no_two_waves_share_one() -> None:
    (wave,) = group_of_one().waves
    access = global_access("scratch_load_dwordx2")
    assert access is not None
    assert (access.stores, access.size) == (False, 8)
    made = Instruction(TABLE["scratch_load_dwordx2"], 0, 8, immediate=16)
    found = [
        next(scratch_lines(wave, made, access, np.array([row]))) for row in ((0, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))
    ]
    stored = next(scratch_lines(wave, evolve(made, immediate=20), access, np.array([(0, 0, 0, 0)])))

    assert [len(set(lines.tolist())) for lines in found] == [4, 4, 4]
    assert len(set(np.concatenate(found).tolist())) == 12
    assert len(set(found[0].tolist()) & set(stored.tolist())) == 2
