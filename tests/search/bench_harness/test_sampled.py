"""Sampling of large outputs: the corners, and some elements of every tile."""

from __future__ import annotations

import numpy as np
import pytest

from argus.search.bench_harness.outputs import sample_indices, sample_rows_and_columns

MOST = 1 << 28


@pytest.mark.parametrize("seed", range(5))
def test_every_tile_of_a_large_product_is_looked_into(seed: int) -> None:
    size, tile = 8192, 128
    rows, columns = sample_rows_and_columns(size, size, size, np.random.default_rng(seed), MOST)

    assert len(rows) * len(columns) * size <= 1.1 * MOST
    for places in (rows, columns):
        assert set(places // tile) == set(range(size // tile))
        assert {0, size - 1} <= set(places)
        assert len(set(places)) == len(places)


@pytest.mark.parametrize(("rows", "columns"), [(1, 8192), (3, 65_536), (8192, 1), (16, 65_536), (64, 64), (1, 1)])
def test_of_few_rows_all_or_some_are_looked_at(rows: int, columns: int) -> None:
    found = sample_rows_and_columns(rows, columns, 65_536, np.random.default_rng(3), MOST)

    for places, extent in zip(found, (rows, columns), strict=True):
        assert 0 == places[0] <= places[-1] == extent - 1
        assert len(places) >= min(extent, 4)
    if rows * columns * 65_536 <= MOST:
        assert (len(found[0]), len(found[1])) == (rows, columns)


def test_all_indices_are_sampled_if_affordable() -> None:
    generator = np.random.default_rng(1)
    assert sample_indices(7, 7, generator).tolist() == list(range(7))
    assert sample_indices(3, 0, generator).tolist() == [0, 1, 2]
    assert len(sample_indices(100, 10, generator)) <= 10
