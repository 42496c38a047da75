"""Configurations made for the extents of a product: they fit them, run at a time, and are proved."""

from __future__ import annotations

from math import ceil, prod

import pytest

from argus.core.index import Const
from argus.core.verdict import Proved
from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.gemm import CONFIGS, configuration, gemm
from argus.kernels.schedules.hopper import RESIDENT, Hopper
from argus.kernels.streamk import Stream, gemm_streams
from argus.kernels.streamk import configuration as stream_of
from argus.ops.choice import candidates, select_fitted
from argus.ops.choice_fitted import few_candidates, stream_candidates
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program

SHAPES = [(129, 11008, 4096), (53, 4192, 232), (414, 2936, 12112), (1, 64, 65536), (300, 7168, 7168)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiles_fit_the_rows_of_a(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    found = few_candidates(m, n, k)
    assert found
    for name, each in found.items():
        assert configuration(name) == each
        tiles = ceil(m / each.bm)
        assert tiles * each.bm - m < 8 * each.peers * tiles
        assert each.peers < 4 or tiles * ceil(ceil(n / each.bn) / 4) <= RESIDENT[4]
    assert {each.peers for each in found.values()} >= {1, 2}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_parts_of_k_run_at_a_time(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for name, each in stream_candidates(m, n, k).items():
        assert stream_of(name) == each
        rows, columns = each.tile
        assert ceil(m / rows) * ceil(n / columns) * each.peers * each.chunks <= PROCESSORS
        assert k >= 256 * each.chunks
        assert each.stages >= 3


def test_products_of_rows_that_tma_cannot_read_have_none() -> None:
    assert not few_candidates(64, 4096, 4100)
    assert not stream_candidates(64, 4096, 4100)
    assert select_fitted(64, 4096, 4100) is None


def test_a_shipped_configuration_follows_in_case_it_is_refused() -> None:
    found = candidates("gemm_nt", (200, 5120, 13824), a_transposed=False, b_transposed=False, device="")
    assert found[0] == select_fitted(200, 5120, 13824)
    assert found[-1] in CONFIGS


@pytest.mark.share(16)
@pytest.mark.parametrize("shape", [(200, 5120, 13824), (160, 480, 9512), (129, 11008, 4096), (20, 4096, 520)], ids=str)
def test_the_chosen_ones_are_proved(shape: tuple[int, int, int]) -> None:
    for name in (*few_candidates(*shape), *stream_candidates(*shape))[:: 1 + len(stream_candidates(*shape))]:
        stream, single = stream_of(name), configuration(name)
        if isinstance(stream, Stream):
            verdict = verify_program(gemm_streams.instance(stream, name), solver="z3").verdict
        else:
            assert single is not None
            verdict = verify(gemm.instance(single, name), solver="z3").verdict
        assert isinstance(verdict, Proved), name


@pytest.mark.parametrize("name", ["clustered", "columns_64_fours", "tall_160_fours"])
def test_clusters_of_persistent_kernels_all_run_at_a_time(name: str) -> None:
    config = CONFIGS[name]
    assert isinstance(config, Hopper)
    size, extents = prod(config.cluster), gemm.trace(name).grid
    grid = prod(each.value for each in extents if isinstance(each, Const))
    assert grid == size * RESIDENT.get(size, PROCESSORS // size)
