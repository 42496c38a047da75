"""Grouped products whose tiles have 64 or 128 rows by the rows that there are: right for all counts, no twin is proved.

That every configuration is proved, and its text right, is shown with those of other grouped products.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.grouped import grouped_nt
from argus.kernels.schedules import grouped_heights as schedule
from argus.kernels.schedules import hopper
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from tests.kernels.test_grouped import tiles_of
from tests.kernels.twins import Edit, twin

NO_RUNS = evolve(Budget(), runs=0)


@pytest.mark.share(84, among="tiles by their rows")
def test_tiles_of_both_heights_are_proved() -> None:
    verdict = verify(grouped_nt, config="heights", solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict
    assert "starts[b]" in verdict.results[-1]


@pytest.mark.share(84, among="tiles by their rows")
@pytest.mark.parametrize("counts", [[5, 0, 145], [0, 129, 64, 1], [65, 63, 192]], ids=str)
def test_each_row_meets_its_own_expert(counts: list[int]) -> None:
    random, rows, columns, depth = np.random.default_rng(0), sum(counts), 264, 136
    a = random.integers(-3, 4, (rows, depth)).astype(bfloat16)
    b = random.integers(-3, 4, (len(counts), columns, depth)).astype(bfloat16)
    c = np.full((rows, columns), np.nan).astype(bfloat16)
    found = interpret(grouped_nt.trace("heights"), a, b, *tiles_of(counts, 128).values(), c, tags=False)["C"]

    experts = np.repeat(np.arange(len(counts)), counts)
    wanted = np.einsum("rk,rnk->rn", a.astype(np.float64), b.astype(np.float64)[experts])
    assert (found == wanted.astype(bfloat16)).all()


UPPER, LOWER = "slot.a.tile((_ROWS, bk), (0, 0))", "slot.a.tile((_ROWS, bk), (1, 0))"
EDITS: dict[str, tuple[ModuleType, Edit]] = {
    "low tiles of more rows than they multiply": (schedule, ("end - first > _ROWS", "end - first > 65")),
    "tiles of 128 rows alone are high": (schedule, ("end - first > _ROWS", "end - first >= 128")),
    "high by the rows of the tile after": (
        schedule,
        ("ends_of(problem.tile_starts, t)", "ends_of(problem.tile_starts, t - t % 2)"),
    ),
    "as if each stage had two products": (hopper, ("pending=1 if cfg.flight", "pending=2 if cfg.flight")),
    "the first rows twice": (schedule, (LOWER, UPPER)),
    "the last rows first": (schedule, (UPPER, LOWER)),
    "both warpgroups have the first columns": (schedule, ("(bn // 2, bk), (wg, 0)", "(bn // 2, bk), (0 * wg, 0)")),
    "columns exchanged": (schedule, ("(bn // 2, bk), (wg, 0)", "(bn // 2, bk), (1 - wg, 0)")),
    "high tiles store their first rows twice": (schedule, ("_store((upper, lower)", "_store((upper, upper)")),
    "low tiles store what they did not multiply": (
        schedule,
        ("_store((upper, upper)", "_store((lower, upper)"),
    ),
    "rows exchanged": (schedule, ("_store((upper, lower)", "_store((lower, upper)")),
    "sums of the tile before": (
        schedule,
        (f"mma(mm, lower, {LOWER}, columns, init=eq(k, 0))", f"mma(mm, lower, {LOWER}, columns)"),
    ),
    "every second stage of the last rows": (
        schedule,
        (
            "with when(high):\n                        mma",
            "with when(high & eq(k % 2, 0)):\n                        mma",
        ),
    ),
    "columns of the tile after": (schedule, ("(n, k)), slot.b", "(n + 1, k)), slot.b")),
    "the last part of K is left out": (schedule, ("depth = ceil_div(A.shape[1], bk)", "depth = A.shape[1] // bk")),
    "stored to the columns beside": (
        schedule,
        (
            "_store((upper, lower), problem.result(t), 2 * n + wg",
            "_store((upper, lower), problem.result(t), 2 * n + 1 - wg",
        ),
    ),
    "released before the last product ends": (
        schedule,
        ("                release_last(cfg, ring)\n", "                ring.release()\n"),
    ),
}


@pytest.mark.share(84, among="tiles by their rows")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(grouped_nt, "heights", *EDITS[name])
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved), name
