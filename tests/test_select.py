"""The cost model of the GEMM family: what it must say whatever its constants are, and what it says of known shapes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from argus.kernels.gemm import CONFIGS, select
from argus.kernels.hopper import Hopper
from argus.kernels.narrow import Narrow
from argus.kernels.select import H200, Known, cheapest, is_fitted, microseconds
from argus.kernels.skinny import Skinny

FITTED = {name: config for name, config in CONFIGS.items() if isinstance(config, Known) and is_fitted(config, H200)}


@pytest.mark.parametrize("name", FITTED)
def test_more_work_never_takes_less_time(name: str) -> None:
    config = FITTED[name]
    assert isinstance(config, Known)
    sizes = (1, 64, 100, 1000, 4096, 10_000)
    for small, large in pairwise(sizes):
        assert microseconds(config, 512, 512, small) <= microseconds(config, 512, 512, large)
        assert microseconds(config, small, small, 512) <= microseconds(config, large, large, 512)


@pytest.mark.parametrize("name", FITTED)
def test_nothing_is_faster_than_memory_and_products_allow(name: str) -> None:
    config = FITTED[name]
    assert isinstance(config, Known)
    for m, n, k in ((16, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 64), (1, 1, 1)):
        took = microseconds(config, m, n, k)
        assert took >= H200.launch
        assert took >= 2e-9 * m * n * k
        if 2 * (m + n) * k > H200.held:
            assert took >= 2 * (m + n) * k / H200.memory


def test_a_tile_more_than_the_processors_have_is_another_wave() -> None:
    config = Hopper()
    full, more = (microseconds(config, 128 * rows, 256 * 12, 4096) for rows in (11, 12))
    assert more - H200.launch > 1.8 * (full - H200.launch)


def test_shapes_that_were_measured_get_what_was_best_there() -> None:
    """`benchmarks/gemm_h200.py`, single calls after idle, within 3 percent."""
    assert select(16, 8192, 8192) == "skinny"
    assert select(128, 8192, 8192) == select(1024, 1024, 1024) == "columns_64"
    assert select(512, 7168, 2048) == "columns_224"
    assert select(4096, 4096, 4096) == select(4096, 14336, 4096) == "clustered_bands"


def test_rows_that_the_copy_engine_does_not_move_get_schedules_without_it() -> None:
    assert select(4096, 4096, 4097) == "narrow"
    assert isinstance(CONFIGS[select(4096, 4099, 4096)], Skinny)


def test_what_the_model_does_not_know_is_not_chosen() -> None:
    assert (
        cheapest({"narrow": Narrow(), "two slots": Hopper(stages=2), "three": Hopper(stages=3)}, 64, 64, 64) == "three"
    )
