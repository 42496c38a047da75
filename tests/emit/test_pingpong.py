"""The ping-pong GEMM for gfx942 as text: its results on the CPU, its resource usage, and its order of blocks."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve

from argus.core.algebra import sym
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Policy
from argus.emit.build import build
from argus.emit.hip.prelude import PRELUDE
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.hip.text import hip_text
from argus.emit.hip.tile_order import REMAP
from argus.emit.names import assign_names
from argus.kernels.gemm import gemm
from tests.emit import host

on_linux = pytest.mark.skipif(not host.available(), reason="runs emitted text on 64-bit Linux")

_CALL = """
extern "C" void order(int rows, int columns, int height, int* found) {
    for (long i = 0; i < (long)rows * columns; ++i) {
        const tile_of tile = remapped(i, rows, columns, height);
        found[2 * i] = tile.row; found[2 * i + 1] = tile.column;
    }
}
"""


def pingpong() -> Kernel:
    return gemm.trace("cdna3_pingpong")


@pytest.mark.share(8)
@on_linux
@pytest.mark.parametrize("sizes", [{"M": 300, "N": 270, "K": 200}, {"M": 1, "N": 3, "K": 8}], ids=str)
def test_it_multiplies(sizes: dict[str, int], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((sizes[s], sizes["K"])).astype(ml_dtypes.bfloat16) for s in "MN")
    c = np.full((sizes["M"], sizes["N"]), 7, ml_dtypes.bfloat16)
    made = pingpong()
    grid = -(-sizes["M"] // 256), -(-sizes["N"] // 256)
    symbol = assign_names(made).kernel
    host.run(hip_text(made), symbol, 512, grid, [a, b, c], [sizes[s.name] for s in made.sizes], tmp_path)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=2**-8, atol=2**-10)


@pytest.mark.share(2)
def test_it_fits_one_block_a_processor_without_spills(tmp_path: Path) -> None:
    made = build(pingpong(), "gfx942", tmp_path)
    report = made.report
    assert isinstance(report, ResourceReport)
    assert made.warnings == ()
    assert not report.spills
    assert report.lds_bytes == 1 << 16
    assert 208 <= report.registers <= 256
    assert report.occupancy == 2
    assert report.count("v_mfma_f32_16x16x16_bf16") == 8 * 16
    assert report.count("s_barrier") == 1 + 8 + 2
    assert report.count("scratch") == report.count("v_accvgpr") == 0


def test_row_groups_wait_at_their_own_barriers_in_a_scalar_branch() -> None:
    text = hip_text(pingpong())
    assert "if ((wave >> 2) == 1) {" in text
    assert "if ((wave >> 2) == 0) {" in text


@on_linux
def test_every_tile_has_one_block_in_any_grid(tmp_path: Path) -> None:
    library = host.compiled(PRELUDE + REMAP, _CALL, tmp_path)
    for rows in range(1, 23):
        for columns in range(1, 23):
            for height in (1, 3, 4):
                found = order(library, rows, columns, height)
                tiles = found[:, 0] * columns + found[:, 1]
                assert (found >= 0).all()
                assert (found < (rows, columns)).all()
                assert len(np.unique(tiles)) == rows * columns


@on_linux
def test_one_die_works_on_neighbours(tmp_path: Path) -> None:
    found = order(host.compiled(PRELUDE + REMAP, _CALL, tmp_path), 16, 16, 4)
    mine = found[3::8]
    assert [tuple(tile) for tile in mine[:5]] == [(4, 8), (5, 8), (6, 8), (7, 8), (4, 9)]
    assert set(mine[:, 0]) == {4, 5, 6, 7}


def order(library: ctypes.CDLL, rows: int, columns: int, height: int) -> host.Array:
    """The tiles of the blocks in the order in which they start, shape (blocks, 2)."""
    found = np.full((rows * columns, 2), -1, np.int32)
    library.order(rows, columns, height, found.ctypes.data_as(ctypes.c_void_p))
    return found


def test_advice_about_one_axis_is_refused() -> None:
    made = pingpong()
    lone = evolve(made, grid=(sym(made.sizes[0]),), blocks=made.blocks[:1])
    assert any(isinstance(stmt, Policy) and stmt.name == "remap_xcd" for stmt in made.body)
    with pytest.raises(ArgusError, match="of one axis"):
        hip_text(lone)
