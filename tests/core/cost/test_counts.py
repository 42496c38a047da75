"""Counts of small kernels by hand: how often each statement runs, and what it asks of the machine."""

from __future__ import annotations

import pytest

from argus.core.cost import MACHINES, Counts, counts
from argus.core.ir import Kernel
from argus.core.layout import Swizzle
from argus.kernels.gemm import gemm
from tests.core.cost import kernels


def of(kernel: Kernel, **sizes: int) -> Counts:
    return counts(kernel, sizes, MACHINES[kernel.target.name])


def test_a_copy_moves_each_byte_once() -> None:
    found = of(kernels.copied.trace(), M=64)
    assert (found.total.loaded, found.total.stored) == (64 * 32 * 4, 64 * 32 * 4)
    assert found.total.lines == 2 * 64 * 32 * 4 / 128  # a warp reaches four lines of 128 bytes with each vector
    assert found.total.vector == 16
    assert found.coalesced == 1.0


def test_rows_outside_the_tensor_move_nothing() -> None:
    found = of(kernels.copied.trace(), M=24)
    assert (found.total.loaded, found.total.stored) == (24 * 32 * 4, 24 * 32 * 4)


def test_neighbouring_lanes_in_other_rows_reach_a_line_each() -> None:
    found = of(kernels.by_columns.trace(), M=4096)
    assert found.total.lines == 64 * 32 + 64  # a load each element, 64 stores of a warp
    assert found.total.vector == 2


def test_trips_of_a_triangle_and_a_branch_in_it() -> None:
    found = of(kernels.triangle.trace(), M=64 * 5)
    stores = sum((i + 2) // 2 for i in range(5))  # even j of 0 .. i
    assert found.total.stored == stores * 64 * 32 * 4


def test_products_of_a_ring() -> None:
    found = of(kernels.product(3), M=64, N=128, K=256)
    steps = 256 // 64
    assert found.total.products == steps * 64 // 16
    assert found.total.tensor == steps * 4 * 128 / 2  # cycles of m64n128k16
    assert found.total.loaded == steps * (64 + 128) * 64 * 2
    read, written = steps * 4 * (64 + 128) * 16 * 2, steps * (64 + 128) * 64 * 2
    assert found.total.staged == read + written
    assert found.total.shared == (read + written) / 128
    assert found.steps == steps
    assert found.waits == 4 + 4 + steps + 1  # of each role for its slots, for products, and for the last of them
    assert found.syncs == 1


def test_boxes_reach_the_lines_that_their_rows_lie_across() -> None:
    whole, across = (of(kernels.product(3), M=64, N=128, K=k) for k in (1024, 1032))
    steps = -(-1032 // 64)
    inside = (64 + 128) * (16 * 2 + 1)  # two lines for 128 bytes that begin between lines; the last 16 bytes lie in one
    assert whole.total.loaded == (64 + 128) * 1024 * 2
    assert across.total.loaded >= 1.7 * whole.total.loaded
    assert across.total.loaded <= inside * 128 * steps / 16


def test_boxes_outside_a_tensor_are_filled_in() -> None:
    found = of(kernels.product(3), M=1, N=128, K=256)
    assert found.total.filled == 63 * 256 * 2
    assert found.total.useful == (1 + 128) * 256 * 2


def test_a_tile_that_blocks_share_is_asked_for_once_and_lands_in_each() -> None:
    found = of(gemm.trace("clustered"), M=256, N=256, K=128)
    assert found.total.loaded == 2 * (128 + 128) * 64 * 2  # a step: its rows of A, half of the columns of B
    assert found.total.landed == 2 * (128 + 256) * 64 * 2


def test_a_persistent_block_takes_its_share_of_tiles() -> None:
    one, four = (of(gemm.trace("cooperative"), M=128 * 132 * tiles, N=256, K=64).total for tiles in (1, 4))
    assert (one.products, four.products) == (2 * 4, 4 * 2 * 4)
    assert four.stored == 4 * one.stored == 4 * 128 * 256 * 2


def test_conflicts_are_those_of_the_bank_model() -> None:
    plain = of(kernels.staged(None), M=64, N=64, K=64)
    swizzled = of(kernels.staged(Swizzle(2, 3, 3)), M=64, N=64, K=64)
    moved = 2 * 2 * 64 * 32 * 2 / 128  # two steps, two operands, cycles of 128 bytes
    assert swizzled.total.shared == 2 * moved  # written and read
    assert swizzled.conflicts == 1.0
    assert plain.total.shared == 2 * moved + 3 * moved  # rows of 64 bytes: writes and reads meet in banks
    assert plain.conflicts == 2.5


def test_matrix_units_of_a_compute_unit() -> None:
    found = of(kernels.staged(None), M=64, N=64, K=64)
    assert found.total.products == 2 * (2 * 2 * 4)  # two steps of 2 x 2 tiles of 32, 8 of K each
    assert found.total.tensor == found.total.products * 32  # one wave, one matrix unit
    four = of(gemm.trace("cdna3"), M=128, N=128, K=32).total
    assert four.products == 4 * 2 * 2 * 4
    assert four.tensor == four.products * 32 / 4


def test_guarded_loads_run_as_often_as_their_guard_holds() -> None:
    found = of(gemm.trace("cdna3"), M=128, N=128, K=32 * 10)
    assert found.total.useful == 10 * (128 + 128) * 32 * 2 + 128 * 128 * 2


def test_the_epilogue_is_what_follows_products() -> None:
    found = of(gemm.trace("cooperative"), M=128, N=256, K=512)
    assert found.after.stored == found.total.stored == 128 * 256 * 2
    assert found.after.staged == 2 * 128 * 256 * 2  # into the boxes, and out of them
    assert found.after.loaded == 0


def test_data_dependence_is_noted() -> None:
    kernel = kernels.counted.trace()
    found = of(kernel, M=64, R=1)
    assert any("run time" in note for note in found.notes)


def test_a_missing_size() -> None:
    with pytest.raises(KeyError):
        of(kernels.product(2), M=64, N=128)
