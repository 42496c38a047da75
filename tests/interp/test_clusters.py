"""The GEMM of a cluster of two blocks against float64 under many schedules, and its faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.dtype import bf16
from argus.interp.interpret import interpret
from argus.interp.run import run
from argus.interp.search.schedule import ROLES_DIRECTED, Schedule
from property_tests.programs import CORPUS, templates
from tests.verifier.switched_off_checks import load_edited

FIXED = ("cluster_laps_of_two_lengths", "cluster_over_an_even_count")
PAIRS = sorted(path for path in (CORPUS / "proved").glob("*cluster*.py") if path.stem not in FIXED)
"""Of any extents: `FIXED` assume some."""
MIXED = tuple(Schedule("mixed", seed) for seed in range(4))


@pytest.mark.share(48)
@pytest.mark.parametrize("path", PAIRS, ids=[path.stem for path in PAIRS])
@pytest.mark.parametrize(("rows", "columns", "depth"), [(300, 40, 72), (128, 16, 16), (1, 8, 8)])
def test_a_pair_multiplies(path: Path, rows: int, columns: int, depth: int) -> None:
    (template,) = templates(path)
    made = template.trace()
    random = np.random.default_rng(rows)
    a, b = (random.integers(-4, 5, shape).astype(bf16.numpy) for shape in ((rows, depth), (columns, depth)))
    found = interpret(made, a, b, np.zeros((rows, columns), bf16.numpy))["C"]
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.array_equal(found, exact.astype(np.float32).astype(bf16.numpy))
    for schedule in (*ROLES_DIRECTED[::5], *MIXED):
        outcome = run(made, dict(M=rows, N=columns, K=depth), schedule=schedule, values=False)
        assert outcome.violations == ()


def test_a_block_meets_between_its_arrival_at_the_cluster_and_its_wait() -> None:
    """Two blocks add half a row each; a barrier of a block between leaves the arrival as it is."""
    met = load_edited(
        "formula_shares_of_exchanged_sums",
        ("    cluster.wait()\n", "    sync()\n    cluster.wait()\n"),
        ("sm_90a, spread, total", "sm_90a, spread, sync, total"),
    ).trace()
    x = np.arange(1, 1 + 3 * 100, dtype=np.float32).reshape(3, 100)

    found = interpret(met, x, np.zeros_like(x))["Y"]

    assert np.allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)
    for schedule in (*ROLES_DIRECTED[::5], *MIXED):
        assert run(met, dict(R=2, N=100), schedule=schedule, values=False).violations == ()
