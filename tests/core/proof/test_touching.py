"""What tables of cells say of threads, against each pair of elements in turn."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus.core.proof.dataflow.footprints import CellTables
from argus.core.walk import IntArray
from property_tests.depth import examples

UNIT = 2


def tables(threads: int, values: int) -> st.SearchStrategy[IntArray]:
    return arrays(np.int64, (threads, values), elements=st.integers(0, 15))


def apart(threads: int, values: int) -> st.SearchStrategy[IntArray]:
    numbers = st.permutations(range(threads * values + 3))
    return numbers.map(lambda each: np.array(each[: threads * values], np.int64).reshape(threads, values))


@settings(max_examples=examples(100), deadline=None)
@given(tables(4, 3), tables(6, 2))
def test_what_threads_and_waves_share_is_what_pairs_of_elements_say(first: IntArray, second: IntArray) -> None:
    cells = CellTables((), first, second)
    pairs = [
        (mine, theirs)
        for (mine, _), cell in np.ndenumerate(first)
        for (theirs, _), other in np.ndenumerate(second)
        if cell == other
    ]
    assert cells.shared == bool(pairs)
    assert cells.of_two_threads == any(mine != theirs for mine, theirs in pairs)
    for sets, table in zip(cells.waves(UNIT), (first, second), strict=True):
        assert sets.size == cells.count
        for cell in range(cells.count):
            wanted = {int(thread) // UNIT for thread in np.nonzero((table == cell).any(axis=1))[0]}
            assert {wave for wave in range(8) if sets[cell] >> wave & 1} == wanted


@settings(max_examples=examples(100), deadline=None)
@given(tables(4, 3), apart(3, 4))
def test_each_element_has_the_writer_of_its_cell(read: IntArray, write: IntArray) -> None:
    writers = CellTables((), read, write).writers
    assert not writers.same
    for at, cell in np.ndenumerate(read):
        assert writers.covered[at] == (cell in write)
        thread, value = (int(table[at]) for table in writers.writer)
        assert write[thread, value] == cell if writers.covered[at] else (thread, value) == (0, 0)


@settings(max_examples=examples(50), deadline=None)
@given(apart(4, 3))
def test_what_each_thread_wrote_itself_is_the_same(cells: IntArray) -> None:
    assert CellTables((), cells, cells.copy()).writers.same
    assert not CellTables((), cells, cells[::-1].copy()).writers.same
    assert not CellTables((), cells[:3], cells).writers.same


def test_one_thread_is_never_two() -> None:
    cells = np.zeros((1, 4), np.int64)
    assert CellTables((), cells, cells).shared
    assert not CellTables((), cells, cells).of_two_threads
