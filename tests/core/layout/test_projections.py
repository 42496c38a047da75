"""Rows, columns and partial results of fragments: who holds what, against sets counted one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from argus.core import algebra
from argus.core.layout import TV, Layout
from argus.core.layout.thread_value.facets import Facet, coordinates_from_finer
from argus.core.tiling import spread
from argus.core.walk import evaluate
from argus.language import bf16, mfma, mfma_f32_16x16x16_bf16, mfma_f32_32x32x8_bf16, wgmma

FRAGMENTS = {
    "wgmma": wgmma(bf16, n=64).C,
    "mfma_16": mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 2), tile=(32, 64), k=16).C,
    "mfma_32": mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=8).C,
    "operand": mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8).A,
    "rows": spread((64, 32), 64, 8),
    "one_axis": TV(Layout(64, 4), Layout((4, 2), (1, 256)), (512,)),
    "transposed": wgmma(bf16, n=64).C.T,
    "over_axes": TV(Layout(128, 1), Layout(4, 128), (16, 32)),
}
each = pytest.mark.parametrize("name", FRAGMENTS)
Places = list[set[tuple[int, ...]]]


def held(tv: TV) -> Places:
    """Per thread, the coordinates that it holds."""
    axes = tv.coordinates()
    threads, values = tv.threads.size(), tv.values.size()
    return [{tuple(int(axis[t, v]) for axis in axes) for v in range(values)} for t in range(threads)]


@each
def test_an_axis_is_what_the_thread_has_elements_of(name: str) -> None:
    tv = FRAGMENTS[name]
    for axis in range(len(tv.tile)):
        wanted = [{(place[axis],) for place in own} for own in held(tv)]
        row = tv.axis(axis)
        assert row.tile == (tv.tile[axis],)
        assert held(row) == wanted
        assert row.values.size() == len(wanted[0])


@each
def test_no_axis_is_one_number_that_everyone_holds(name: str) -> None:
    tv = FRAGMENTS[name].axis()
    assert (tv.tile, tv.threads.size(), tv.values.size()) == ((), FRAGMENTS[name].threads.size(), 1)
    assert held(tv) == [{()}] * tv.threads.size()


@each
@pytest.mark.parametrize("within", [1, 32, 64])
def test_a_partial_result_numbers_the_groups_that_hold_different_parts(name: str, within: int) -> None:
    tv = FRAGMENTS[name]
    for axis in range(len(tv.tile)):
        parts = grouped(tv, axis, within)
        partial = tv.partial(axis, within)
        numbered: dict[tuple[int, ...], set[frozenset[int]]] = defaultdict(set)
        for thread, own in enumerate(held(partial)):
            rows = {row for row, _ in parts[thread // within].items()}
            dropped = len(partial.tile) < len(tv.tile)
            assert {place if dropped else (*place[:axis], *place[axis + 1 :]) for place in own} <= rows
            for place in own:
                row = place if dropped else (*place[:axis], *place[axis + 1 :])
                numbered[place].add(parts[thread // within][row])
                if dropped:
                    assert parts[thread // within][row] == frozenset(range(tv.tile[axis]))
        assert all(len(sets) == 1 for sets in numbered.values())
        assert len({(place, *sets) for place, sets in numbered.items()}) == len(numbered)


def grouped(tv: TV, axis: int, within: int) -> list[dict[tuple[int, ...], frozenset[int]]]:
    """Per group of threads and row, the coordinates along the axis that it holds."""
    places = held(tv)
    found: list[dict[tuple[int, ...], frozenset[int]]] = []
    for first in range(0, len(places), within):
        rows: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for place in set[tuple[int, ...]]().union(*places[first : first + within]):
            rows[(*place[:axis], *place[axis + 1 :])].add(place[axis])
        found.append({row: frozenset(coordinates) for row, coordinates in rows.items()})
    return found


@each
def test_a_transposed_fragment_holds_the_same_under_reversed_coordinates(name: str) -> None:
    tv = FRAGMENTS[name]
    assert held(tv.T) == [{place[::-1] for place in own} for own in held(tv)]
    assert held(tv.T.T) == held(tv)
    assert tv.T.T.facets == tv.facets


@each
def test_an_element_coordinate_determines_the_partial_one(name: str) -> None:
    """`matched` gives, for each element that a thread holds, the number of the partial result that it is part of."""
    tv = FRAGMENTS[name]
    for axis in range(len(tv.tile)):
        for coarser in (tv.axis(axis), tv.partial(axis), tv.partial(axis, 32), tv.axis()):
            at = coordinates_from_finer(tv.facets, coarser.facets)
            assert at is not None
            own = held(coarser)
            axes = tv.coordinates()
            shape = (tv.threads.size(), tv.values.size())
            places = [np.broadcast_to(np.asarray(evaluate(node, {}, axes)), shape) for node in at]
            for thread in range(shape[0]):
                for value in range(shape[1]):
                    assert tuple(int(place[thread, value]) for place in places) in own[thread]


def test_a_column_tells_no_row() -> None:
    tv = FRAGMENTS["wgmma"]
    assert coordinates_from_finer(tv.axis(0).facets, tv.axis(1).facets) is None
    assert coordinates_from_finer(tv.axis(0).facets, tv.facets) is None
    assert coordinates_from_finer(tv.partial(1).facets, tv.facets) is None


def test_axes_of_other_extents_are_other_axes() -> None:
    narrow, wide = wgmma(bf16, n=64).C, wgmma(bf16, n=128).C
    assert coordinates_from_finer(wide.facets, narrow.facets) is None
    assert coordinates_from_finer(wide.facets, narrow.axis(1).facets) is None
    assert coordinates_from_finer(wide.facets, narrow.axis(0).facets) == (algebra.coord(0),)


def test_whole_tiles_agree_axis_by_axis_and_projections_by_where_they_stem_from() -> None:
    tv = spread((32, 32), 64, 4)
    assert coordinates_from_finer(tv.facets, tv.T.facets) == (algebra.coord(0), algebra.coord(1))
    assert coordinates_from_finer(tv.T.facets, tv.axis(0).facets) == (algebra.coord(1),)


def test_equality_ignores_the_projection() -> None:
    tv = spread((32, 32), 64, 4)
    assert TV(tv.axis(0).threads, tv.axis(0).values, (32,)) == tv.axis(0)
    assert tv.facets == (Facet(0, 32, ((1, 32),)), Facet(1, 32, ((1, 32),)))


@pytest.mark.parametrize(("axes", "words"), [((2,), "no axes"), ((1, 0), "no axes"), ((0, 0), "no axes")])
def test_axes_that_are_none_are_refused(axes: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        spread((32, 32), 64, 4).axis(*axes)


def test_groups_that_cut_threads_unevenly_are_refused() -> None:
    tv = TV(Layout(96, 1), Layout(1, 0), (96,))
    with pytest.raises(ValueError, match="unevenly"):
        tv.partial(0, 64)
    with pytest.raises(ValueError, match="no axis 1"):
        tv.partial(1)


def test_a_mode_that_does_not_end_with_an_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="does not move along the axes"):
        TV(Layout(5, 4), Layout(1, 0), (6, 4)).axis(0)
