from __future__ import annotations

from argus.core.ir import Staged
from argus.core.layout import Layout, Swizzle
from argus.core.proof.limits.distinct_addresses import address_conflict


def test_rows_one_after_the_other_are_apart() -> None:
    assert address_conflict(Staged(Layout((4, 8), (8, 1)))) == ""


def test_padded_rows_are_apart() -> None:
    assert address_conflict(Staged(Layout((4, 8), (10, 1)))) == ""


def test_rows_that_overlap_are_told_with_the_two_elements() -> None:
    assert address_conflict(Staged(Layout((4, 8), (4, 1)))) == "(4,8):(4,1) puts elements 1 and 16 both at offset 4"


def test_offsets_before_the_buffer_are_told() -> None:
    assert "negative" in address_conflict(Staged(Layout((4, 8), (-8, 1))))


def test_a_swizzle_that_reaches_beyond_the_buffer_is_told() -> None:
    assert "do not divide 24" in address_conflict(Staged(Layout((3, 8), (8, 1)), Swizzle(1, 0, 3)))
    assert address_conflict(Staged(Layout((4, 8), (8, 1)), Swizzle(1, 0, 3))) == ""
