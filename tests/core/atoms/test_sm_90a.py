"""Hopper instructions against the closed formulas of the PTX ISA: layouts, completion, spelling and limits."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.atom import Atom
from argus.core.atoms.sm_90a import ATOMS, tma, warp, wgmma
from argus.core.dtype import DType, bf16, e4m3, f16, f32
from argus.core.layout import TV, ComposedLayout, IntArray, Layout, Swizzle
from argus.core.memory.banks import bank_conflicts
from argus.core.memory.lane_accesses import Access
from argus.core.phases import PHASES
from argus.core.target import sm_90a
from argus.core.tiling import WarpgroupMma, subtile


def held(atom: Atom, operand: str) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Warp, lane and register of each value, then its two coordinates."""
    tv = atom.operands[operand].tv
    assert tv is not None
    thread, register = np.indices((atom.unit, tv.values.size()), dtype=np.int64)
    first, second = tv.coordinates()
    return thread // 32, thread % 32, register, first, second


def find(dtype: DType, n: int, a: wgmma.A_SOURCE) -> Atom:
    atom = wgmma.find(dtype, n, a)
    assert atom is not None
    return atom


@pytest.mark.parametrize("n", wgmma.COLUMNS)
def test_accumulator_of_a_warpgroup(n: int) -> None:
    w, lane, register, row, column = held(find(bf16, n, "shared"), "c")
    e, i, j = register % 2, register // 2 % 2, register // 4
    assert np.array_equal(row, 16 * w + 8 * i + lane // 4)
    assert np.array_equal(column, 8 * j + 2 * (lane % 4) + e)


@pytest.mark.parametrize("dtype", [bf16, f16, e4m3], ids=str)
def test_a_in_registers_of_a_warpgroup(dtype: DType) -> None:
    """PTX ISA, register fragments of wgmma: m64nNk16 for 16 bits, m64nNk32 for 8 bits."""
    w, lane, register, row, k = held(find(dtype, 64, "registers"), "a")
    run = 32 // dtype.bits
    e, i, j = register % run, register // run % 2, register // (2 * run)
    assert np.array_equal(row, 16 * w + 8 * i + lane // 4)
    assert np.array_equal(k, 4 * run * j + run * (lane % 4) + e)


def test_a_matrix_instruction_of_a_warp() -> None:
    atom = warp.mma_m16n8k16_bf16
    _, lane, r, row, k = held(atom, "a")
    assert np.array_equal(row, lane // 4 + 8 * (r // 2 % 2))
    assert np.array_equal(k, 2 * (lane % 4) + r % 2 + 8 * (r // 4))
    _, lane, r, column, k = held(atom, "b")
    assert np.array_equal(column, lane // 4)
    assert np.array_equal(k, 2 * (lane % 4) + r % 2 + 8 * (r // 2))
    _, lane, r, row, column = held(atom, "c")
    assert np.array_equal(row, lane // 4 + 8 * (r // 2))
    assert np.array_equal(column, 2 * (lane % 4) + r % 2)


def memory_rows(atom: Atom) -> int:
    return 8 * int(atom.name.split("_x")[1][0])


@pytest.mark.parametrize("atom", warp.MATRICES, ids=str)
def test_matrices(atom: Atom) -> None:
    """Lane 8 j + r addresses row r of matrix j; lane l holds elements 2 (l % 4) + {0, 1} of row (or column) l // 4."""
    memory, fragment = ("source", "target") if atom.name.startswith("ld") else ("target", "source")
    _, lane, value, column, row = held(atom, memory)
    assert np.array_equal(row, lane % memory_rows(atom))
    assert np.array_equal(column, value)
    _, lane, value, column, row = held(atom, fragment)
    pair, across = 2 * (lane % 4) + value % 2, lane // 4
    own_column, own_row = (across, pair) if atom.name.endswith("trans") else (pair, across)
    assert np.array_equal(column, own_column)
    assert np.array_equal(row, 8 * (value // 2) + own_row)
    served = PHASES["sm_90a", "ldmatrix" if atom.name.startswith("ld") else "stmatrix", 128]
    assert atom.phases == served[: memory_rows(atom) // 8]


def test_sixteen_columns_of_a_sum_are_a_fragment_of_a() -> None:
    """Register for register: probabilities become an operand without a move."""
    sums, factors = WarpgroupMma(find(bf16, 128, "registers"), "k", 64).C, find(bf16, 128, "registers").operands["a"].tv
    assert subtile(sums, (64, 16)) == factors


def test_every_warpgroup_instruction_there_is() -> None:
    shapes = {(atom.operands["b"].dtype, atom.mnk, atom.operands["a"].space) for atom in wgmma.ATOMS}
    wanted = {
        (dtype, (64, n, 256 // dtype.bits), space)
        for dtype in (bf16, f16, e4m3)
        for n in range(8, 257, 8)
        for space in ("shared", "register")
    }
    assert shapes == wanted
    assert len(wgmma.ATOMS) == len(wanted)
    assert find(bf16, 256, "shared").name == "wgmma_m64n256k16_f32_bf16_ss"
    assert find(e4m3, 8, "registers").name == "wgmma_m64n8k32_f32_e4m3_rs"
    assert wgmma.find(f32, 64, "shared") is None
    assert wgmma.find(bf16, 12, "shared") is None


def test_operands_and_moments_of_a_warpgroup() -> None:
    for atom in wgmma.ATOMS:
        assert (atom.unit, atom.proxy, atom.completion.queue, atom.completion.tracked) == (128, "async", "wgmma", False)
        majors = {each.major for each in atom.operands["b"].canonical}
        assert majors == ({"k"} if atom.operands["b"].dtype == e4m3 else {"k", "mn"})
        assert {each.swizzle for each in atom.operands["b"].canonical} == {16, 32, 64, 128}
    assert find(bf16, 256, "shared").issue_cycles == 128
    assert find(e4m3, 256, "shared").issue_cycles == 128
    assert find(bf16, 64, "shared").issue_cycles == 32


def test_instructions_spell_what_they_are() -> None:
    names = {"a", "b", "c", "accumulate", "a_transposed", "b_transposed", "source", "target", "signal", "bytes"}
    for atom in ATOMS:
        text = atom.spelling["sm_90a"].format(**dict.fromkeys(names, "%"))
        assert text.endswith(";"), atom
        assert atom.targets == {"sm_90a"}
    assert "m64n256k16.f32.bf16.bf16" in find(bf16, 256, "shared").spelling["sm_90a"]
    assert "cp.async.cg" in warp.cp_async[2].spelling["sm_90a"]
    assert "cp.async.ca" in warp.cp_async[0].spelling["sm_90a"]


def test_copies_of_one_thread() -> None:
    for load, store in zip(tma.tma_load, tma.tma_store, strict=True):
        assert load.box is not None
        assert load.box == store.box
        assert (load.box.axes, load.box.extent, load.box.multiple) == (2, 256, 16)
        assert (load.completion.signal, load.completion.queue) == (True, None)
        assert (store.completion.signal, store.completion.queue, store.completion.group) == (False, "bulk", "commit")
        assert load.operands["target"].align == store.operands["source"].align
        assert {load.unit, store.unit} == {1}
    aligned = [load.operands["target"].align for load in tma.tma_load]
    assert aligned == [128, 256, 512, 1024]
    assert [load.box.span for load in tma.tma_load if load.box] == [0, 32, 64, 128]
    assert {copy.proxy for copy in warp.cp_async} == {"generic"}
    assert {copy.completion.group for copy in warp.cp_async} == {"commit"}


def test_a_swizzled_box_is_read_and_written_without_conflicts() -> None:
    """A box of 64 x 64 bf16 in rows of 128 bytes: 8-fold conflicts as it is, none with the swizzle of the TMA."""
    linear = Layout((8, 4), (64, 8))
    permuted = ComposedLayout(Swizzle(3, 3, 3), 0, linear)
    degrees = [
        bank_conflicts(Access(rows, 8, "stmatrix"), target=sm_90a, element_bits=16).degree
        for rows in (linear, permuted)
    ]
    assert degrees == [8, 1]


@pytest.mark.parametrize("shape", [(64, 8), (64, 64), (64, 128)])
def test_parts_of_a_sum_are_held_by_their_holders(shape: tuple[int, int]) -> None:
    whole = WarpgroupMma(find(bf16, 256, "shared"), "k", 16).C
    part = subtile(whole, shape)
    rows, columns = part.coordinates()
    everything = whole.elements()
    for number in range(256 // shape[1]):
        wanted = rows + 64 * (columns + shape[1] * number)
        assert all(set(mine) <= set(own) for mine, own in zip(wanted.tolist(), everything.tolist(), strict=True))


@pytest.mark.parametrize("shape", [(32, 64), (64, 4), (64, 96), (64,)])
def test_parts_that_not_all_threads_hold_are_refused(shape: tuple[int, ...]) -> None:
    whole = WarpgroupMma(find(bf16, 256, "shared"), "k", 16).C
    with pytest.raises(ValueError, match=r"fragment|held|divide|tiles"):
        subtile(whole, shape)


def test_a_fragment_along_k_is_fed_execution_by_execution() -> None:
    mm = WarpgroupMma(find(bf16, 64, "registers"), "k", 64)
    assert mm.A.tile == (64, 64)
    one = mm.atom.operands["a"].tv
    assert one is not None
    first = mm.tiling(64).a.table()
    for execution, register in enumerate(first.tolist()):
        rows, k = (axis[:, register : register + 8] for axis in mm.A.coordinates())
        assert np.array_equal(rows, one.coordinates()[0])
        assert np.array_equal(k, one.coordinates()[1] + 16 * execution)
    assert isinstance(mm.C, TV)
    with pytest.raises(ValueError, match="multiple of 16"):
        mm.tiling(24)
    with pytest.raises(ValueError, match="shared memory"):
        assert WarpgroupMma(find(bf16, 64, "shared"), "k", 64).A
