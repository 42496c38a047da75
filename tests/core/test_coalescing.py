"""Segments of global memory that an access moves."""

from __future__ import annotations

from fractions import Fraction

import pytest

from argus.core.layout import TV, ComposedLayout, Layout, LayoutError, row_major
from argus.core.memory.coalescing import coalescing
from argus.core.memory.lane_accesses import Access
from argus.core.target import gfx942, sm_90a


def test_a_warp_of_consecutive_words() -> None:
    found = coalescing(Layout(32), target=sm_90a, element_bits=32)
    assert found.counts == ((4,),)
    assert found.touched == (0, 1, 2, 3)
    assert found.lanes == (0, 8, 16, 24)
    assert (found.requested, found.useful, found.efficiency) == (128, 128, Fraction(1))


def test_a_wave_of_consecutive_words() -> None:
    found = coalescing(Layout(64), target=gfx942, element_bits=32)
    assert (found.segment_bytes, found.count, found.efficiency) == (128, 2, Fraction(1))


def test_a_stride_wastes_what_it_skips() -> None:
    found = coalescing(Layout(32, 64), target=sm_90a, element_bits=32)
    assert (found.count, found.efficiency) == (32, Fraction(1, 8))


def test_a_shift_costs_a_segment() -> None:
    moved = ComposedLayout(Layout(64), 1, Layout(32))
    found = coalescing(moved, target=sm_90a, element_bits=32)
    assert (found.count, found.efficiency) == (5, Fraction(4, 5))


def test_a_vector_may_straddle_segments() -> None:
    """32 vectors of 16 bytes, 48 bytes apart from byte 8 on: every other one lies in two sectors of 32 bytes."""
    straddling = ComposedLayout(Layout(1 << 10), 4, Layout(32, 24))
    found = coalescing(straddling, target=sm_90a, element_bits=16, vector=8)
    assert (found.count, found.requested, found.useful) == (48, 512, 512)
    assert found.efficiency == Fraction(512, 48 * 32)


def test_one_word_for_all_is_asked_for_often_and_moved_once() -> None:
    found = coalescing(Layout(32, 0), target=sm_90a, element_bits=32)
    assert (found.count, found.requested, found.useful, found.efficiency) == (1, 128, 4, Fraction(1, 8))


def test_the_worst_execution_is_named() -> None:
    """Rows of 256 words, 1024 words apart: wave 1 moves words 250 to 255 and 0 to 57 of the next row."""
    wrapped = ComposedLayout(Layout((256, 64), (1, 1024)), 0, Layout((64, 2), (1, 250)))
    found = coalescing(wrapped, target=gfx942, element_bits=32)
    assert (found.counts, found.execution) == (((2,), (3,)), (1, 0))
    assert found.touched == (7, 32, 33)
    assert found.lanes == (0, 6, 38)
    assert (found.efficiency, found.all_efficiency) == (Fraction(256, 384), Fraction(512, 640))


def test_of_equal_counts_the_less_useful_is_worse() -> None:
    """Wave 1 moves words 64 to 95 and 88 to 119: two segments too, eight words twice."""
    wrapped = ComposedLayout(Layout((96, 2), (1, 88)), 0, Layout((64, 2), (1, 64)))
    found = coalescing(wrapped, target=gfx942, element_bits=32)
    assert (found.counts, found.execution) == (((2,), (2,)), (1, 0))
    assert (found.requested, found.useful, found.all_useful) == (256, 224, 480)


def test_threads_and_values_of_a_tile() -> None:
    """A tile of 64 rows of 32 bf16: four lanes a row, each 8 elements as two vectors of 4."""
    by = TV(Layout((4, 64), (8 * 64, 1)), Layout(8, 64), (64, 32))
    found = coalescing(Access.of(by, row_major((64, 32)), 4), target=gfx942, element_bits=16)
    assert found.counts == ((8, 8),) * 4
    assert (found.efficiency, found.all_efficiency) == (Fraction(1, 2), Fraction(1, 2))
    whole = coalescing(Access.of(by, row_major((64, 32)), 8), target=gfx942, element_bits=16)
    assert (whole.counts, whole.efficiency) == (((8,),) * 4, Fraction(1))


def test_parts_of_bytes_are_refused() -> None:
    with pytest.raises(LayoutError, match="vectors of 1 elements of 4 bits at 64:1 are not whole bytes") as caught:
        coalescing(Layout(64), target=gfx942, element_bits=4)
    assert caught.value.code == "E807"
    with pytest.raises(LayoutError, match="not whole bytes"):
        coalescing(Layout(64, 3), target=gfx942, element_bits=4, vector=2)
    assert coalescing(Layout(64, 2), target=gfx942, element_bits=4, vector=2).count == 1


def test_an_incomplete_warp_is_refused() -> None:
    with pytest.raises(LayoutError, match="has 48 threads, sm_90a runs 32 together") as caught:
        coalescing(Layout(48), target=sm_90a, element_bits=32)
    assert caught.value.code == "E807"


def test_offsets_in_bits_beyond_64_bits_are_refused() -> None:
    with pytest.raises(LayoutError, match="reaches bit") as refused:
        coalescing(Layout(64, 2**56), target=gfx942, element_bits=32)
    assert refused.value.code == "E810"
    assert coalescing(Layout(64, 2**50), target=gfx942, element_bits=32).count == 64


@pytest.mark.parametrize(("element_bits", "vector"), [(0, 1), (-8, 1), (-8, -1), (8, 0)])
def test_elements_and_vectors_of_nothing_are_refused(element_bits: int, vector: int) -> None:
    with pytest.raises(LayoutError, match="a lane moves") as refused:
        coalescing(Layout(64, 1), target=gfx942, element_bits=element_bits, vector=vector)
    assert refused.value.code == "E807"
