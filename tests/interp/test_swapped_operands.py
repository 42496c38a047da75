"""Products that store single elements, most with swapped operands: values, and no violations, at sizes with tails."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.interp.run import run
from argus.interp.search.schedule import ROLES_DIRECTED, Schedule
from argus.kernels.gemm import Config, gemm
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split

CONFIGS: tuple[Config, ...] = (
    Split(bm=64, bn=16, splits=2, stages=3, swap_ab=True),
    Split(bm=128, bn=48, splits=3, stages=2, swap_ab=True),
    Skinny(bm=24, bn=128, bk=64, stages=2),
    Skinny(bm=32, bn=128, bk=64, stages=2, peers=2),
    Hopper(bm=64, bn=64, stages=3, pingpong=True, single=True),
    Hopper(bn=96, stages=3, cluster=(1, 2), single=True),
)


@pytest.mark.share(32)
@pytest.mark.parametrize("schedule", [ROLES_DIRECTED[0], Schedule("mixed", seed=3)], ids=str)
@pytest.mark.parametrize("sizes", [(5, 70, 136), (30, 136, 200), (60, 65, 8)], ids=str)
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_the_product_is_computed(config: Config, sizes: tuple[int, int, int], schedule: Schedule) -> None:
    m, n, k = sizes
    drawn = np.random.default_rng(0)
    a, b = (drawn.standard_normal((rows, k)).astype(bfloat16) for rows in (m, n))

    outcome = run(gemm.instance(config, "small"), {"M": m, "N": n, "K": k}, {"A": a, "B": b}, schedule)

    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert outcome.violations == ()
    assert np.allclose(outcome.arrays["C"].astype(np.float64), exact, rtol=2.0**-7, atol=2.0**-6 * k**0.5)
