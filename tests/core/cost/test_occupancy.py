"""Blocks of a processor, and rounds of blocks."""

from __future__ import annotations

from argus.core.cost import MACHINES, Compiled, occupancy, rounds
from argus.kernels.gemm import gemm
from tests.core.cost import kernels

H200, MI300X = MACHINES["sm_90a"], MACHINES["gfx942"]


def test_shared_memory_is_the_limit() -> None:
    found = occupancy(kernels.product(3), H200, Compiled(registers=64))
    assert found.shared == 3 * (64 + 128) * 64 * 2 + 2 * 3 * 8 + 1024
    assert (found.blocks, found.limit, found.waves) == (3, "shared memory", 24)  # of 228 KiB, with 1 KiB each


def test_registers_are_the_limit() -> None:
    found = occupancy(gemm.trace("narrow"), H200, Compiled(registers=168))
    assert (found.blocks, found.limit) == (3, "registers")  # 16384 // (168 * 32) waves of a scheduler, four each
    assert occupancy(gemm.trace("narrow_32"), H200, Compiled(registers=128)).blocks == 4


def test_registers_are_allocated_in_whole_grains() -> None:
    odd, even = (occupancy(gemm.trace("narrow"), H200, Compiled(registers=count)) for count in (161, 168))
    assert odd.blocks == even.blocks == 3


def test_waves_of_a_compute_unit() -> None:
    cdna3 = gemm.trace("cdna3")
    two = occupancy(cdna3, MI300X, Compiled(registers=128, shared=32_768))
    assert (two.blocks, two.limit) == (2, "shared memory")
    one = occupancy(cdna3, MI300X, Compiled(registers=320, shared=32_768))
    assert (one.blocks, one.limit) == (1, "registers")


def test_an_estimate_is_marked() -> None:
    assert occupancy(gemm.trace("narrow"), H200, None).estimated
    assert not occupancy(gemm.trace("narrow"), H200, Compiled(64)).estimated


def test_blocks_in_rounds() -> None:
    kernel = gemm.trace("narrow")
    held = occupancy(kernel, H200, Compiled(registers=168))
    found = rounds(kernel, {"M": 64 * 100, "N": 128 * 10, "K": 64}, H200, held)
    assert (found.blocks, found.full) == (1000, 2)  # 132 x 3 at a time
    assert found.rest == 2  # 208 blocks on 132 processors
    assert found.count == 3


def test_blocks_of_a_cluster_leave_processors_idle() -> None:
    kernel = gemm.trace("split_8")
    held = occupancy(kernel, H200, None)
    assert H200.usable(8) == 8 * 15  # a part of 14 processors has room for one
    assert (H200.usable(1), H200.usable(2)) == (132, 132)
    found = rounds(kernel, {"M": 128 * 16, "N": 128, "K": 64}, H200, held)
    assert (found.blocks, found.processors, found.full, found.rest) == (128, 120, 1, 1)
