"""The Hopper GEMM in the interpreter: exact sums of small integers, tails in every extent, no violations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from argus.core.ir import Kernel
from argus.interp.run import run
from argus.interp.search.schedule import ROLES_DIRECTED, Schedule
from argus.kernels.gemm import gemm
from argus.kernels.schedules import hopper
from argus.language import Int, persistent

SCHEDULES = (ROLES_DIRECTED[0], Schedule("mixed", seed=3))
SIZES = {"M": 72, "N": 136, "K": 136}
TILES = {"M": 200, "N": 264, "K": 200}


def violations(kernel: Kernel, sizes: dict[str, int], schedule: Schedule) -> set[str]:
    """The invariants that a run violates; the outputs must be the product if there are none."""
    random = np.random.default_rng(0)
    a = random.integers(-2, 3, (sizes["M"], sizes["K"])).astype(np.float32)
    b = random.integers(-2, 3, (sizes["N"], sizes["K"])).astype(np.float32)
    outcome = run(kernel, sizes, {"A": a, "B": b}, schedule)
    if not outcome.violations:
        exact = (a @ b.T).astype(outcome.arrays["C"].dtype).astype(np.float32)
        assert np.array_equal(outcome.arrays["C"].astype(np.float32), exact)
    return {violation.code for violation in outcome.violations}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("config", ["small", "pingpong"])
def test_the_schedules_compute_the_product(config: str, schedule: Schedule) -> None:
    assert violations(gemm.trace(config), SIZES, schedule) == set()


def _on_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tiles on one block, so that rings and turns go on from tile to tile."""
    monkeypatch.setattr(hopper, "persistent", partial(persistent, blocks=1))


@pytest.mark.share(8)
@pytest.mark.parametrize("config", ["small", "pingpong"])
def test_one_block_may_have_all_tiles(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _on_one_block(monkeypatch)
    kernel = gemm.trace(config)

    assert [violations(kernel, TILES, order) for order in ROLES_DIRECTED[::6]] == [set[str]()] * 4


def _no_turns(_agents: int) -> Callable[[Int], nullcontext[None]]:
    return lambda _agent: nullcontext()


@pytest.mark.nightly
def test_without_agent_order_a_wait_mistakes_the_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second warpgroup's first wait passes at once on a fresh barrier."""
    _on_one_block(monkeypatch)
    monkeypatch.setattr(hopper, "Turns", _no_turns)
    kernel = gemm.trace("pingpong")

    assert "I6" in set[str]().union(*(violations(kernel, TILES, order) for order in ROLES_DIRECTED))
