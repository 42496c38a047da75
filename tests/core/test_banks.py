"""Bank conflicts: the degrees of CDNA3 and Hopper accesses, the refusals, and the search for a swizzle."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.layout import TV, ComposedLayout, Layout, LayoutError, Swizzle, row_major
from argus.core.memory.banks import Conflict, bank_conflicts, find_swizzle, worst_conflict
from argus.core.memory.lane_accesses import Access, executions
from argus.core.phases import PHASES, Direction, runs
from argus.core.target import TARGETS, gfx942, sm_90a

FRAGMENT = Layout((16, 4), (64, 8))
"""16 rows of 128 bytes; lane 16c + r reads the 16 bytes of chunk c in row r."""
NARROW = Layout((16, 4), (32, 8))
PADDED = Layout((16, 4), (72, 8))
COALESCED = Layout((8, 8), (8, 64))
TRANSPOSED = Layout((8, 8), (64, 8))
ROW_OF_8 = Swizzle(3, 3, 3)


def swizzled(swizzle: Swizzle, layout: Layout) -> ComposedLayout:
    return ComposedLayout(swizzle, 0, layout)


def naive(access: Layout | ComposedLayout) -> int:
    """The degree if a phase were 8 consecutive lanes."""
    offsets = executions(Access(access, 8), gfx942)
    return worst_conflict(offsets * 2, runs(64, 8), 16, 32).degree


@pytest.mark.parametrize(
    ("access", "real", "consecutive"),
    [
        (FRAGMENT, 4, 8),
        (swizzled(ROW_OF_8, FRAGMENT), 1, 1),
        (swizzled(Swizzle(3, 3, 4), FRAGMENT), 2, None),
        (swizzled(Swizzle(3, 3, 5), FRAGMENT), 8, None),
        (swizzled(ROW_OF_8, Layout((32, 2), (64, 8))), 1, 1),
        (NARROW, 2, 4),
        (swizzled(Swizzle(2, 3, 3), NARROW), 1, 1),
        (swizzled(Swizzle(2, 3, 2), NARROW), 1, 2),
        (PADDED, 2, 1),
    ],
    ids=str,
)
def test_reads_of_16_bytes_on_cdna3(access: Layout | ComposedLayout, real: int, consecutive: int | None) -> None:
    assert bank_conflicts(access, target=gfx942, element_bits=16, vector=8).degree == real
    assert consecutive in {None, naive(access)}


def test_reads_of_8_bytes_on_cdna3() -> None:
    fragment = Layout((16, 4), (64, 4))
    row_of_16 = swizzled(Swizzle(4, 2, 4), fragment)
    assert bank_conflicts(fragment, target=gfx942, element_bits=16, vector=4).degree == 16
    assert bank_conflicts(row_of_16, target=gfx942, element_bits=16, vector=4).degree == 1


@pytest.mark.parametrize(
    ("access", "degree"),
    [
        (swizzled(ROW_OF_8, COALESCED), 1),
        (TRANSPOSED, 8),
        (swizzled(ROW_OF_8, TRANSPOSED), 1),
    ],
    ids=str,
)
def test_writes_of_16_bytes_on_cdna3(access: Layout | ComposedLayout, degree: int) -> None:
    assert bank_conflicts(access, target=gfx942, element_bits=16, vector=8, direction="write").degree == degree


@pytest.mark.parametrize("direction", ["ldmatrix", "stmatrix", "read", "write"])
@pytest.mark.parametrize(("pitch", "degree"), [(64, 8), (72, 1)])
def test_rows_of_8x8_matrices_on_hopper(direction: Direction, pitch: int, degree: int) -> None:
    rows = Layout((8, 4), (pitch, 8))
    found = bank_conflicts(rows, target=sm_90a, element_bits=16, vector=8, direction=direction)
    assert found.degree == degree
    if pitch == 64:
        bank_free = swizzled(ROW_OF_8, rows)
        assert bank_conflicts(bank_free, target=sm_90a, element_bits=16, vector=8, direction=direction).degree == 1


def test_accumulator_stores_on_hopper() -> None:
    """Warp w, lane l, pair (j, i): row 16w + 8i + l/4, columns 8j + 2(l%4) and the next; rows of 128 bytes."""
    threads, values = ((4, 8, 4), (2, 2, 8)), ((2, 64, 1024), (1, 512, 8))
    held = Layout(threads, values)
    linear = Access(held, 2, "write", threads=128)
    mended = Access(swizzled(ROW_OF_8, held), 2, "write", threads=128)
    assert bank_conflicts(linear, target=sm_90a, element_bits=16).degree == 8
    assert bank_conflicts(mended, target=sm_90a, element_bits=16).degree == 1


@pytest.mark.parametrize(("stride", "degree"), [(1, 1), (2, 2), (32, 32), (33, 1), (0, 1)])
def test_words_of_4_bytes_on_hopper(stride: int, degree: int) -> None:
    """A whole warp is served together; one word for all lanes is no conflict."""
    assert bank_conflicts(Layout(64, stride), target=sm_90a, element_bits=32).degree == degree


def test_a_conflict_names_lanes_words_and_execution() -> None:
    """The second wave's second vector conflicts: rows of 128 bytes lie under each other."""
    calm = 8 * np.arange(64)
    table = np.stack([calm, calm], axis=1).repeat(2, axis=0).reshape(2, 64, 2)
    table[1, :, 1] = FRAGMENT.table()
    found = worst_conflict(table.transpose(0, 2, 1) * 2, PHASES["gfx942", "read", 128], 16, 32)
    assert found == Conflict(4, 0, (0, 1, 2, 3), (0, 32, 64, 96), (1, 1))


def test_a_wave_after_the_first_may_conflict() -> None:
    """Words 0 to 63, then 80 to 95, 112 to 127 and on: the first phase of wave 1 meets banks 16 to 31 twice."""
    wrapped = ComposedLayout(Layout((96, 8), (1, 112)), 0, Layout((64, 2), (1, 80)))
    found = bank_conflicts(wrapped, target=gfx942, element_bits=32)
    assert found == Conflict(2, 16, (0, 16), (80, 112), (1, 0))


def test_values_of_a_thread_layout_are_moved_vector_by_vector() -> None:
    """A tile of 16 rows of 32: thread t holds 8 elements of row t%16 as two vectors of 8 bytes."""
    by = TV(Layout((16, 4), (1, 128)), Layout(8, 16), (16, 32))
    rows = row_major((16, 32))
    access = Access.of(by, rows, 4)
    assert executions(access, gfx942).shape == (1, 2, 64)
    # Rows of 64 bytes: of 16 lanes that are served together, those in rows of one parity meet in a bank.
    assert bank_conflicts(access, target=gfx942, element_bits=16).degree == 8
    assert bank_conflicts(access.offsets, target=gfx942, element_bits=16, vector=4, threads=64).degree == 8


def test_a_memory_of_another_size_is_refused() -> None:
    by = TV(Layout(64, 8), Layout(8, 1), (512,))
    with pytest.raises(LayoutError, match="256:1 has 256 elements, the tile") as caught:
        Access.of(by, Layout(256), 8)
    assert caught.value.code == "E803"


def test_a_vector_that_is_not_contiguous_is_refused_with_its_index() -> None:
    """A swizzle of single elements tears vectors of 4 apart: the first is value 0 to 3 of thread 1."""
    held = Layout((64, 8), (8, 1))
    torn = ComposedLayout(Swizzle(1, 0, 3), 0, held)
    with pytest.raises(LayoutError, match="value 1 of thread 1 is element 8, expected 10") as caught:
        bank_conflicts(torn, target=gfx942, element_bits=16, vector=4, threads=64)
    assert (caught.value.code, caught.value.index) == ("E803", 64 + 1)
    assert (caught.value.expected, caught.value.found) == (10, 8)
    assert torn(64 + 1) == 8
    assert torn(1) == 9


@pytest.mark.parametrize("threads", [32, 96, 100])
def test_an_incomplete_wave_is_refused(threads: int) -> None:
    with pytest.raises(LayoutError, match=f"has {threads} threads, gfx942 runs 64 together") as caught:
        bank_conflicts(Layout(threads, 8), target=gfx942, element_bits=16, vector=8)
    assert caught.value.code == "E807"


@pytest.mark.parametrize(("vector", "threads"), [(3, 64), (0, 64), (8, 65)])
def test_values_that_are_no_whole_vectors_are_refused(vector: int, threads: int) -> None:
    with pytest.raises(LayoutError, match="has 512 elements: not") as caught:
        executions(Access(Layout((64, 8), (8, 1)), vector, threads=threads), gfx942)
    assert caught.value.code == "E807"


def test_an_unaligned_vector_is_refused_with_its_index() -> None:
    with pytest.raises(LayoutError, match="thread 1 has a vector at element 12, not a multiple of 8") as caught:
        bank_conflicts(Layout(64, 12), target=gfx942, element_bits=16, vector=8)
    assert (caught.value.code, caught.value.index, caught.value.found) == ("E807", 1, 12)
    held = Layout((64, (4, 2)), (16, (1, 6)))
    with pytest.raises(LayoutError, match="thread 0 has a vector at element 6") as caught:
        bank_conflicts(held, target=gfx942, element_bits=16, vector=4, threads=64)
    assert caught.value.index == 4 * 64
    assert held(4 * 64) == 6


@pytest.mark.parametrize(("direction", "advice"), [("read", "32 or 64 or 128 bits"), ("ldmatrix", "read or write")])
def test_a_width_without_phases_is_refused(direction: Direction, advice: str) -> None:
    with pytest.raises(LayoutError, match=f"a {direction} of 16 bits a lane has no phases in the table of gfx942") as e:
        bank_conflicts(Layout(64), target=gfx942, element_bits=16, direction=direction)
    assert e.value.code == "E803"
    assert advice in str(e.value.diagnostic.help)


@pytest.mark.parametrize("key", PHASES, ids=str)
def test_phases_serve_each_lane_once_and_no_more_than_a_row_of_banks(key: tuple[str, Direction, int]) -> None:
    target = next(target for target in TARGETS if target.name == key[0])
    assert sorted(lane for phase in PHASES[key] for lane in phase) == list(range(target.unit))
    assert {len(phase) * key[2] for phase in PHASES[key]} == {target.banks * 32}


def test_a_swizzle_is_the_smallest() -> None:
    """No swizzle of fewer bits, nor of as many with a smaller shift or base, will do."""
    found = find_swizzle(TRANSPOSED, target=gfx942, element_bits=16, vector=8, direction="write")
    assert found == Swizzle(3, 3, 3)
    smaller = [Swizzle(bits, base, shift) for bits in (1, 2) for base in (3, 4, 5) for shift in range(bits, 8)]
    degrees = [
        bank_conflicts(swizzled(swizzle, TRANSPOSED), target=gfx942, element_bits=16, vector=8, direction="write")
        for swizzle in smaller
    ]
    assert min(found.degree for found in degrees) == 2


def test_an_access_without_conflicts_needs_no_swizzle() -> None:
    assert find_swizzle(COALESCED, target=gfx942, element_bits=16, vector=8).bits == 0
    assert find_swizzle(COALESCED, target=gfx942, element_bits=16, vector=8, size=500).bits == 0


def test_one_swizzle_for_the_write_and_the_read() -> None:
    """A buffer of 16 rows of 128 bytes, written row by row and read by fragments, is without conflicts in both."""
    write = Access(Layout((8, 16), (8, 64)), 8, "write")
    read = Access(FRAGMENT, 8)
    found = find_swizzle(write, read, target=gfx942, element_bits=16, size=1024)
    assert found.base >= 3
    for access in (write, read):
        assert isinstance(access.offsets, Layout)
        mended = Access(swizzled(found, access.offsets), access.vector, access.direction)
        assert bank_conflicts(mended, target=gfx942, element_bits=16).degree == 1


def test_rows_far_apart_need_a_wide_shift() -> None:
    assert find_swizzle(Layout(64, 4096), target=gfx942, element_bits=16, vector=8) == Swizzle(3, 3, 9)


def test_a_degree_may_be_allowed() -> None:
    found = find_swizzle(TRANSPOSED, target=gfx942, element_bits=16, vector=8, direction="write", degree=4)
    assert found.bits == 1


def test_no_swizzle_mends_rows_padded_by_a_vector() -> None:
    with pytest.raises(LayoutError, match=r"\(16,4\):\(72,8\) to degree 1 on gfx942; the best is 2, with Sw<0,") as e:
        find_swizzle(PADDED, target=gfx942, element_bits=16, vector=8)
    assert e.value.code == "E812"
    assert "allow degree 2" in str(e.value.diagnostic.help)


def test_the_period_must_fit_the_buffer() -> None:
    """Rows of 4096 elements need a period of 2^15; in a smaller buffer nothing helps."""
    with pytest.raises(LayoutError, match=r"within 4096 elements brings .* is 8, with Sw<0,3,0>") as caught:
        find_swizzle(Layout(64, 4096), target=gfx942, element_bits=16, vector=8, size=4096)
    assert caught.value.code == "E812"


def test_offsets_before_the_buffer_are_refused() -> None:
    with pytest.raises(LayoutError, match="reaches element -504, before the buffer") as caught:
        find_swizzle(Layout(64, -8), target=gfx942, element_bits=16, vector=8)
    assert caught.value.code == "E803"


@pytest.mark.parametrize("stride", [2**56, 2**59 // 63, -(2**56)])
def test_offsets_in_bits_beyond_64_bits_are_refused(stride: int) -> None:
    far = Layout(64, stride)
    for ask in (
        lambda: bank_conflicts(far, target=gfx942, element_bits=32),
        lambda: find_swizzle(Layout(64), far, target=gfx942, element_bits=32),
    ):
        with pytest.raises(LayoutError, match="reaches bit") as refused:
            ask()
        assert refused.value.code == "E810"


def test_large_offsets_have_the_degree_of_small_ones() -> None:
    assert bank_conflicts(Layout(64, 2**50), target=gfx942, element_bits=32).degree == 32
    assert bank_conflicts(Layout(64, 2**8), target=gfx942, element_bits=32).degree == 32


@pytest.mark.parametrize(("element_bits", "vector"), [(0, 1), (-8, 1), (32, 0), (32, -1)])
def test_elements_and_vectors_of_nothing_are_refused(element_bits: int, vector: int) -> None:
    for access in (Layout(64), Access(Layout(64), vector)):
        for ask in (bank_conflicts, find_swizzle):
            with pytest.raises(LayoutError, match="a lane moves") as refused:
                ask(access, target=gfx942, element_bits=element_bits, vector=vector)
            assert refused.value.code == "E807"
