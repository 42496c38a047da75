"""The repair of a data-flow fault is reported for each kind of mistake, and none where no single edit repairs it."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import const
from argus.core.ir import For, walk
from argus.core.verdict import Refuted
from argus.interp.search.dataflow_repairs import loop_bounds, replace
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

REPAIRS = {
    "swapped_k_order": "line 31: start the tile at",
    "prefetch_too_far": "line 30: start the tile at `32*k + 32`, not `32*k + 64`, along axis 1 of `A`",
    "wrong_swizzle": "line 35: write `lds_a` with the coordinates of the other side",
    "stale_buffer": "line 45: read stage `k % 2` of `lds_a`, not `(k + 1) % 2`",
    "one_trip_too_few": "line 42: let the loop over `k` stop at `(K + 31) // 32`",
    "one_trip_too_many": "line 42: let the loop over `k` stop at `(K + 31) // 32`",
    "always_initialised": "line 48: reset the accumulator in the first iteration only",
    "first_tile_skipped": "line 48: remove the condition `k >= 1`",
    "k_counted_twice": "line 49: remove this product into `acc`",
    "output_stored_twice": "line 52: remove this store to `C`",
}
GENERAL = {"neighbour_in_one_operand": "the two operands must bring the same", "missing_barrier_raw": "put a `sync()`"}


@pytest.mark.share(48)
@pytest.mark.parametrize(("name", "repair"), (REPAIRS | GENERAL).items())
def test_the_repair_is_reported(name: str, repair: str) -> None:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    report = verify(template, solver="z3")

    assert isinstance(report.verdict, Refuted)
    found = report.verdict.counterexample
    assert found.repair.startswith(repair), found.repair
    assert ("no fault is left then" in found.repair) is (name in REPAIRS)
    assert report.diagnostics[0].help == found.repair


@pytest.mark.share(3)
def test_the_only_product_of_a_sum_is_not_removed_to_silence_its_claim() -> None:
    (template,) = templates(CORPUS / "refuted" / "attention_last_product_missing.py")
    verdict = verify(template, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert "remove this product" not in verdict.counterexample.repair


@pytest.mark.parametrize(("start", "falls"), [(0, True), (1, False), (4, False)])
def test_no_repair_lets_a_loop_start_below_zero(start: int, falls: bool) -> None:
    (template,) = templates(CORPUS / "refuted" / "one_trip_too_few.py")
    kernel = template.trace()
    (loop,) = [stmt for stmt in walk(kernel.body) if isinstance(stmt, For)]
    moved = evolve(loop, start=const(start))
    repairs = [change.help for change in loop_bounds(replace(kernel, {loop: moved}))]
    assert any("start at `-1`" in each for each in repairs) is False
    assert any("start at" in each for each in repairs) is not falls
