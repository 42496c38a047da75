"""Fragments of matrix instructions against the closed formulas of the AMD matrix instruction calculator."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from argus.core.atom import Atom
from argus.core.atoms.gfx942 import (
    ATOMS,
    mfma_f32_16x16x16_bf16,
    mfma_f32_16x16x16_f16,
    mfma_f32_32x32x8_bf16,
    mfma_f32_32x32x8_f16,
)
from argus.core.atoms.sm_90a.warp import mma_m16n8k16_bf16, mma_m16n8k16_f16
from argus.core.layout import TV
from argus.core.tiling import TiledMma, operands, smallest_k, spread
from argus.core.walk import IntArray

LANE, REGISTER = np.indices((64, 4), dtype=np.int64)


def layout_of(atom: Atom, role: str) -> tuple[IntArray, ...]:
    tv = atom.operands[role].tv
    assert tv is not None
    return tv.coordinates()


@pytest.mark.parametrize("atom", [mfma_f32_32x32x8_bf16, mfma_f32_32x32x8_f16], ids=str)
@pytest.mark.parametrize("role", ["a", "b"])
def test_operands_of_32x32x8(atom: Atom, role: str) -> None:
    row, k = layout_of(atom, role)
    assert np.array_equal(row, LANE % 32)
    assert np.array_equal(k, 4 * (LANE // 32) + REGISTER)


@pytest.mark.parametrize("atom", [mfma_f32_32x32x8_bf16, mfma_f32_32x32x8_f16], ids=str)
def test_accumulator_of_32x32x8(atom: Atom) -> None:
    lane, register = np.indices((64, 16), dtype=np.int64)
    row, column = layout_of(atom, "c")
    assert np.array_equal(row, 8 * (register // 4) + 4 * (lane // 32) + register % 4)
    assert np.array_equal(column, lane % 32)


@pytest.mark.parametrize("atom", [mfma_f32_16x16x16_bf16, mfma_f32_16x16x16_f16], ids=str)
@pytest.mark.parametrize("role", ["a", "b"])
def test_operands_of_16x16x16(atom: Atom, role: str) -> None:
    row, k = layout_of(atom, role)
    assert np.array_equal(row, LANE % 16)
    assert np.array_equal(k, 4 * (LANE // 16) + REGISTER)


@pytest.mark.parametrize("atom", [mfma_f32_16x16x16_bf16, mfma_f32_16x16x16_f16], ids=str)
def test_accumulator_of_16x16x16(atom: Atom) -> None:
    row, column = layout_of(atom, "c")
    assert np.array_equal(row, 4 * (LANE // 16) + REGISTER)
    assert np.array_equal(column, LANE % 16)


@pytest.mark.parametrize("atom", [atom for atom in ATOMS if atom.mnk], ids=str)
@pytest.mark.parametrize("role", ["a", "b", "c"])
def test_an_operand_is_held_once(atom: Atom, role: str) -> None:
    tv = atom.operands[role].tv
    assert tv is not None
    assert sorted(tv.elements().ravel().tolist()) == list(range(prod(tv.tile)))


TILED = [
    TiledMma(mfma_f32_32x32x8_bf16, (2, 2), (128, 128), 8, 32),
    TiledMma(mfma_f32_32x32x8_bf16, (1, 4), (32, 256), 4, 16),
    TiledMma(mfma_f32_32x32x8_bf16, (4, 1), (128, 64), 4, 8),
    TiledMma(mfma_f32_16x16x16_bf16, (2, 4), (128, 256), 8, 64),
    TiledMma(mfma_f32_16x16x16_bf16, (1, 1), (16, 32), 4, 16),
    TiledMma(mma_m16n8k16_bf16, (1, 1), (16, 8), 8, 16),
    TiledMma(mma_m16n8k16_f16, (2, 2), (64, 32), 8, 64),
    TiledMma(mma_m16n8k16_bf16, (1, 4), (32, 96), 8, 32),
]


def held(tv: TV, thread: IntArray, register: IntArray) -> tuple[IntArray, IntArray]:
    rows, columns = tv.coordinates()
    return rows[thread, register], columns[thread, register]


@pytest.mark.parametrize("mm", TILED, ids=str)
def test_fragments_hold_what_the_instruction_multiplies(mm: TiledMma) -> None:
    """In every execution the rows and the k of the operands' registers are those of the accumulator's registers."""
    a, b, c = (operands(mm.atom, mm.tiling, role) for role in "abc")
    a_row, a_k = held(mm.A, a.thread, a.value)
    b_row, b_k = held(mm.B, b.thread, b.value)
    c_row, c_column = held(mm.C, c.thread, c.value)
    # (wave, repeat m, repeat n, repeat k, m, n, k)
    assert (a_row[:, :, None, :, :, None, :] == c_row[:, :, :, None, :, :, None]).all()
    assert (b_row[:, None, :, :, None, :, :] == c_column[:, :, :, None, :, :, None]).all()
    assert (a_k[:, :, None, :, :, None, :] == b_k[:, None, :, :, None, :, :]).all()


@pytest.mark.parametrize("mm", TILED, ids=str)
def test_each_product_is_made_once(mm: TiledMma) -> None:
    a, c = operands(mm.atom, mm.tiling, "a"), operands(mm.atom, mm.tiling, "c")
    _, k = held(mm.A, a.thread, a.value)
    per_row = np.moveaxis(k, 2, -1).reshape(-1, mm.k)
    assert np.array_equal(np.sort(per_row, axis=1), np.broadcast_to(np.arange(mm.k), per_row.shape))
    row, column = held(mm.C, c.thread, c.value)
    numbers = (row + mm.tile[0] * column).ravel()
    assert np.array_equal(np.sort(numbers), np.arange(prod(mm.tile)))


@pytest.mark.parametrize("mm", TILED, ids=str)
def test_registers_of_a_fragment_are_all_used(mm: TiledMma) -> None:
    for role, tv in (("a", mm.A), ("b", mm.B), ("c", mm.C)):
        assert set(operands(mm.atom, mm.tiling, role).value.ravel().tolist()) == set(range(tv.values.size()))


def test_tiles_must_divide() -> None:
    with pytest.raises(ValueError, match="not a multiple of 32 x 2 waves"):
        TiledMma(mfma_f32_32x32x8_bf16, (2, 2), (96, 128), 8, 32)
    with pytest.raises(ValueError, match="do not divide into whole executions"):
        TiledMma(mfma_f32_32x32x8_bf16, (2, 2), (128, 128), 8, 24)
    with pytest.raises(ValueError, match="a lane holds several rows, so k_run 16 would permute them too"):
        TiledMma(mma_m16n8k16_bf16, (1, 1), (16, 8), 16, 32)
    with pytest.raises(ValueError, match="is not a matrix instruction"):
        TiledMma(ATOMS[-1], (2, 2), (128, 128), 8, 32)


def test_spread_covers_a_tile_in_row_order() -> None:
    tv = spread((64, 32), 256, 8)
    row, column = tv.coordinates()
    assert np.array_equal(row[:, 0], np.arange(256) // 4)
    assert np.array_equal(column, 8 * (np.arange(256)[:, None] % 4) + np.arange(8))
    for wrong in ((64, 12, 8), (64, 32, 3), (7, 32, 8)):
        with pytest.raises(ValueError, match="divide"):
            spread(wrong[:2], 256, wrong[2])


@pytest.mark.parametrize("waves", [(1, 8), (2, 2), (4, 1)])
@pytest.mark.parametrize("k_run", [4, 8])
def test_a_fragment_repeated_along_k_is_the_one_of_all_k(waves: tuple[int, int], k_run: int) -> None:
    """`mm.B.tiled(k=64)` of an instruction over its own k has the registers of one made for 64."""
    for atom in (atom for atom in ATOMS if atom.mnk is not None):
        held = atom.operands["a"].tv
        if held is None or k_run % held.values.size():
            continue  # lanes hold more of k than a run
        tile = (128, 32 * waves[1] * 3)
        own = TiledMma(atom, waves, tile, k_run, smallest_k(atom, k_run))
        whole = TiledMma(atom, waves, tile, k_run, 64)
        for repeated, wanted in ((own.A.tiled(k=64), whole.A), (own.B.tiled(k=64), whole.B)):
            assert np.array_equal(repeated.elements(), wanted.elements())
    with pytest.raises(ValueError, match="does not repeat along k"):
        spread((64, 32), 256, 8).tiled(k=33)


def test_the_table_has_one_entry_an_instruction() -> None:
    assert len({atom.name for atom in ATOMS}) == len(ATOMS)
    for atom in ATOMS:
        assert atom.targets == {"gfx942"}
        assert atom.unit == 64
        assert set(atom.spelling) == atom.targets
        assert atom.issue_cycles > 0


@pytest.mark.parametrize("atom", [atom for atom in ATOMS if atom.mnk is None], ids=str)
def test_a_copy_is_consistent(atom: Atom) -> None:
    source, target = atom.operands["source"], atom.operands["target"]
    assert source.vector_bits == target.vector_bits == atom.vector_bits
    memory = target if source.space == "register" else source
    assert {source.space, target.space} - {"register"} == ({memory.space, "shared"} if atom.direct else {memory.space})
    assert memory.align == atom.vector_bits // 8
    assert atom.name.endswith(f"_b{atom.vector_bits}")
    assert atom.completion.queue == ("lds" if memory.space == "shared" else "vmem")
    served = [lane for phase in atom.phases for lane in phase]
    in_shared = "shared" in (source.space, target.space)
    assert sorted(served) == (list(range(64)) if in_shared else [])
    for phase in atom.phases:
        assert len(phase) * atom.vector_bits <= 32 * 32
