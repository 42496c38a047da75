"""The narrow-load GEMM in the interpreter: arbitrary sizes; its steps need their order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Fence, For, Kernel, Stmt, Sync, Wait, with_bodies
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Schedule
from argus.kernels.gemm import gemm

SCHEDULES = (*DIRECTED, *(Schedule("mixed", seed) for seed in range(3)))
ODD = [(1, 1, 1), (3, 5, 129), (65, 131, 67), (64, 128, 64), (127, 1, 191), (2, 257, 63)]


def violations(kernel: Kernel, sizes: Mapping[str, int], schedule: Schedule) -> set[str]:
    """The invariants that a run violates; the outputs must be the product if there are none."""
    random = np.random.default_rng(0)
    a = random.integers(-2, 3, (sizes["M"], sizes["K"])).astype(np.float32)
    b = random.integers(-2, 3, (sizes["N"], sizes["K"])).astype(np.float32)
    outcome = run(kernel, sizes, {"A": a, "B": b}, schedule)
    if not outcome.violations:
        exact = (a @ b.T).astype(outcome.arrays["C"].dtype).astype(np.float32)
        assert np.array_equal(outcome.arrays["C"].astype(np.float32), exact)
    return {violation.code for violation in outcome.violations}


@pytest.mark.share(12, among="interp: hopper narrow")
@pytest.mark.parametrize("shape", ODD, ids=str)
def test_any_shape_is_multiplied(shape: tuple[int, int, int]) -> None:
    sizes = dict(zip("MNK", shape, strict=True))

    assert [violations(gemm.trace("narrow"), sizes, order) for order in SCHEDULES] == [set[str]()] * len(SCHEDULES)


def without(kernel: Kernel, kind: type[Stmt], number: int) -> Kernel:
    """The kernel whose loop lacks the statement of this kind and number."""
    *before, loop = [stmt for stmt in kernel.prologue if isinstance(stmt, For)]
    assert not before
    gone = [stmt for stmt in loop.body if isinstance(stmt, kind)][number]
    shorter = with_bodies(loop, (tuple(stmt for stmt in loop.body if stmt is not gone),))
    return evolve(kernel, prologue=tuple(shorter if stmt is loop else stmt for stmt in kernel.prologue))


@pytest.mark.share(12, among="interp: hopper narrow")
@pytest.mark.parametrize(
    ("kind", "number", "code"),
    [(Fence, 0, "I12"), (Sync, 0, "I12"), (Wait, 0, "I10")],
    ids=["fence of the writers", "meeting before the product", "wait for the product"],
)
def test_a_loop_without_one_of_its_steps_is_caught(kind: type[Stmt], number: int, code: str) -> None:
    kernel = without(gemm.trace("narrow"), kind, number)
    sizes = {"M": 64, "N": 128, "K": 192}

    assert code in set[str]().union(*(violations(kernel, sizes, order) for order in SCHEDULES))
