"""Property: bank conflicts, segments and swizzles of random accesses agree with counting lane by lane."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.memory.banks import bank_conflicts, find_swizzle
from argus.core.memory.coalescing import coalescing
from argus.core.phases import Direction
from argus.core.target import Target, gfx942, sm_90a

CDNA3_PHASE_OF_QUAD = (0, 1, 2, 3, 1, 0, 3, 2)
"""The phase of a 16-byte read that serves lanes 4q to 4q+3 of half a wave."""


def phase_of(target: Target, direction: Direction, bits: int, lane: int) -> int:
    """The documented rule: 128 bytes per phase, consecutive lanes except for 16-byte reads on CDNA3."""
    if (target.name, direction, bits) == ("gfx942", "read", 128):
        return 4 * (lane // 32) + CDNA3_PHASE_OF_QUAD[lane % 32 // 4]
    return lane // (1024 // bits)


def counted(offsets: list[int], target: Target, direction: Direction, element_bits: int, vector: int) -> int:
    """The largest number of words of one bank in one phase of one wave. offsets: of each thread's first element."""
    held: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)
    bits = element_bits * vector
    for thread, offset in enumerate(offsets):
        wave, lane = divmod(thread, target.unit)
        for byte in range(offset * element_bits // 8, (offset * element_bits + bits) // 8):
            word = byte // 4
            held[wave, phase_of(target, direction, bits, lane), word % 32].add(word)
    return max(map(len, held.values()))


@frozen
class Case:
    target: Target
    direction: Direction
    element_bits: int
    vector: int
    offsets: Layout


@st.composite
def cases(draw: st.DrawFn, *, negative: bool = True) -> Case:
    """Aligned vectors of one to three waves, in up to three modes of any strides, including 0 and equal ones."""
    target = draw(st.sampled_from((gfx942, sm_90a)))
    bits = draw(st.sampled_from((32, 64, 128)))
    element_bits = draw(st.sampled_from((8, 16, 32)))
    vector = bits // element_bits
    below = draw(st.sampled_from((1, 2, 4, 8, 16)))
    middle = draw(st.sampled_from((1, 2)))
    shape = (below, middle, draw(st.integers(1, 3)) * target.unit // below // middle)
    steps = st.integers(-20 if negative else 0, 20) | st.sampled_from((32, 64, 96, 256))
    strides = tuple(vector * draw(steps) for _ in shape)
    return Case(target, draw(st.sampled_from(("read", "write"))), element_bits, vector, Layout(shape, strides))


def conflict_degree(case: Case, offsets: Layout | ComposedLayout) -> int:
    return bank_conflicts(
        offsets,
        target=case.target,
        element_bits=case.element_bits,
        vector=case.vector,
        direction=case.direction,
    ).degree


def swizzles(case: Case, *, past: int) -> SearchStrategy[Swizzle]:
    """Swizzles of whole vectors, with shifts of either sign, up to `past` bits above the lowest bit of the index."""
    base = case.vector.bit_length() - 1
    return st.integers(1, 4).flatmap(
        lambda bits: st.builds(
            Swizzle,
            st.just(bits),
            st.integers(base, base + past),
            st.integers(bits, bits + past) | st.integers(-bits - past, -bits),
        )
    )


@given(st.data())
def test_the_degree_is_what_counting_finds(data: st.DataObject) -> None:
    case = data.draw(cases())
    swizzle = data.draw(st.just(Swizzle(0, 0, 0)) | swizzles(case, past=4))
    access = ComposedLayout(swizzle, 0, case.offsets)
    expected = counted(access.table().tolist(), case.target, case.direction, case.element_bits, case.vector)
    assert conflict_degree(case, access) == expected


@given(cases())
def test_the_witness_of_a_conflict_is_one(case: Case) -> None:
    found = bank_conflicts(
        case.offsets,
        target=case.target,
        element_bits=case.element_bits,
        vector=case.vector,
        direction=case.direction,
    )
    wave, place = found.execution
    assert place == 0
    assert len(set(found.words)) == len(found.lanes) == found.degree
    bits = case.element_bits * case.vector
    assert len({phase_of(case.target, case.direction, bits, lane) for lane in found.lanes}) == 1
    for lane, word in zip(found.lanes, found.words, strict=True):
        first = case.offsets(wave * case.target.unit + lane) * case.element_bits // 8
        assert word % 32 == found.bank
        assert first <= 4 * word < first + bits // 8


def searched(case: Case, degree: int) -> Swizzle | None:
    """The swizzle that the search finds; None if it reports that there is none."""
    try:
        return find_swizzle(
            case.offsets,
            target=case.target,
            element_bits=case.element_bits,
            vector=case.vector,
            direction=case.direction,
            degree=degree,
        )
    except LayoutError as refused:
        if refused.code != "E812":
            raise
        return None


@pytest.mark.share(3)
@given(st.data())
def test_a_swizzle_that_is_found_holds_and_none_that_is_drawn_does_better(data: st.DataObject) -> None:
    case = data.draw(cases(negative=False))
    degree = data.draw(st.sampled_from((1, 2)))
    other = data.draw(swizzles(case, past=6))
    others = conflict_degree(case, ComposedLayout(other, 0, case.offsets))
    found = searched(case, degree)
    if found is None:
        assert others > degree
        return
    mended = ComposedLayout(found, 0, case.offsets).table().tolist()
    assert counted(mended, case.target, case.direction, case.element_bits, case.vector) <= degree
    assert 1 << found.base >= case.vector
    assert others > degree or found.bits <= other.bits


@given(cases(negative=False), st.integers(0, 40))
def test_segments_are_those_of_the_bytes(case: Case, start: int) -> None:
    moved = ComposedLayout(Layout(1), start, case.offsets)
    found = coalescing(moved, target=case.target, element_bits=case.element_bits, vector=case.vector)
    size = case.target.segment_bytes
    seen: defaultdict[int, set[int]] = defaultdict(set)
    for thread, offset in enumerate(moved.table().tolist()):
        first = offset * case.element_bits // 8
        seen[thread // case.target.unit] |= set(range(first, first + case.element_bits * case.vector // 8))
    segments = [{byte // size for byte in seen[wave]} for wave in sorted(seen)]
    assert found.counts == tuple((len(touched),) for touched in segments)
    assert set(found.touched) == segments[found.execution[0]]
    assert found.useful == len(seen[found.execution[0]])
    assert found.efficiency == Fraction(found.useful, size * max(map(len, segments)))
    assert found.all_useful == sum(map(len, seen.values()))
