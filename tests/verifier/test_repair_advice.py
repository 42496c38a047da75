"""What a refutation advises is true: repairs hold at multiples of the tiles, and advice names what the kernel has."""

from __future__ import annotations

import pytest

from argus.core.ir import Kernel
from argus.core.proof.limits import memory
from argus.core.query import Budget
from argus.core.verdict import Refuted, Unknown
from argus.interp.search import advice
from argus.interp.search.search import whole_tiles
from argus.verifier import refute
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import always, load, never

pytestmark = pytest.mark.share(3, among="verifier: advice")

LAST_ROWS, ROWS_OF_BOXES = "last_rows_not_copied", "rows_of_boxes_of_any_length"


def advised(name: str) -> str:
    return verify(load(name), solver="z3").diagnostics[0].help


def no_sizes(_: Kernel) -> list[dict[str, int]]:
    return []


def test_a_repair_that_fails_at_whole_tiles_is_none() -> None:
    assert {"M": 16, "N": 16} in whole_tiles(load(LAST_ROWS).trace())
    assert "no fault is left" not in advised(LAST_ROWS)


def test_without_whole_tiles_that_repair_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refute, "whole_tiles", no_sizes)

    assert "stop at `(M // 16) + 1`, not at `M // 16`; no fault is left then at (M, N) = (1, 1)" in advised(LAST_ROWS)


def test_a_repair_names_the_sizes_that_were_tried() -> None:
    assert "; no fault is left then at (M, K, N) = (" in advised("k_counted_twice")


@pytest.mark.share(6)
@pytest.mark.parametrize("name", ["softmax_box_not_met", "one_cell_from_two_threads"])
def test_the_advice_without_phases_is_a_barrier_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert advised(name).startswith("put a `sync()` between the writes and the reads that follow")

    monkeypatch.setattr(advice, "_WITHOUT_PHASES", {})
    assert advised(name).startswith("wait for the phase of `full`")


def test_products_without_phases_are_waited_for_before_a_barrier() -> None:
    assert advised("slot_filled_under_its_product").startswith("put `wgmma.wait(...)`, then `sync()`")


def test_an_index_of_a_head_is_not_repaired_by_zeros() -> None:
    assert advised("key_head_of_the_query_head") == "index axis 0 of `K`, which is `block_0` here, by a number below G"


def test_without_a_look_at_the_tile_zeros_would_hide_the_wrong_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "mentions", always)

    assert advised("key_head_of_the_query_head").startswith("give the copy `edge=0`")


def test_rows_of_boxes_are_refuted_at_their_least_size() -> None:
    verdict = verify(load(ROWS_OF_BOXES), solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == "I19"
    assert dict(verdict.counterexample.sizes) == {"M": 1, "N": 1}


def test_without_the_static_check_rows_of_boxes_stay_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argus.verifier.kernel.is_static", never)
    monkeypatch.setattr(refute, "is_static", never)

    assert isinstance(verify(load(ROWS_OF_BOXES), solver="z3", budget=Budget.about(0.2)).verdict, Unknown)
