"""Stores and claims of ragged sequences: what each rule about them is needed for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import store_coverage, writes
from argus.core.proof.values.held import single_terms
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

pytestmark = pytest.mark.share(3, among="verifier: sequences")

TILES, SCALED, BY_EXPERT = "tiles_of_sequences", "formula_scaled_by_sequence", "formula_scaled_by_expert"


def is_proved(name: str, edit: tuple[str, str], folder: Path) -> bool:
    text = (CORPUS / "proved" / f"{name}.py").read_text("utf-8")
    assert text.count(edit[0]) == 1
    (folder / f"{name}.py").write_text(text.replace(*edit), "utf-8")
    (template,) = templates(folder / f"{name}.py")
    return isinstance(verify(template, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


def _always(*_: object) -> bool:
    return True


def test_a_sum_of_two_terms_is_not_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first row of a sequence also satisfies the condition of the one before: its terms are two."""
    edit = ("(t < scalar(starts[s + 1]))", "(t <= scalar(starts[s + 1]))")
    assert not is_proved(SCALED, edit, tmp_path)
    monkeypatch.setattr(single_terms, "_only", _always)
    assert is_proved(SCALED, edit, tmp_path)


def test_a_tile_is_of_the_expert_that_the_promise_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The expert of another tile is a term of the sum, but not the one that counts."""
    edit = ("scalar(owner[p])\n", "scalar(owner[p - p % 2])\n")
    assert not is_proved(BY_EXPERT, edit, tmp_path)
    monkeypatch.setattr(single_terms, "_only", _always)
    assert is_proved(BY_EXPERT, edit, tmp_path)


def test_tiles_of_two_branches_end_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of either branch are apart, but not one of each: the program writes half of a tile twice."""
    (template,) = templates(CORPUS / "unknown" / "rows_of_unlike_ends.py")
    assert isinstance(verify(template, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Unknown)
    monkeypatch.setattr(writes, "_same_ends", _always)
    assert isinstance(verify(template, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


def test_rows_after_the_last_sequence_are_in_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    edit = (
        "promise(starts, ascending=True, first=0, last=T",
        "promise(starts, lambda e: e <= T, ascending=True, first=0",
    )
    assert not is_proved(TILES, edit, tmp_path)
    asked: Callable[..., Obligation] = vars(store_coverage)["_segment_obligation"]

    def not_asked(*given: object) -> Obligation:
        return evolve(asked(*given), goal=algebra.TRUE)

    monkeypatch.setattr(store_coverage, "_segment_obligation", not_asked)
    assert is_proved(TILES, edit, tmp_path)


def test_what_a_tile_that_ends_has_stored_is_not_read(tmp_path: Path) -> None:
    text = (CORPUS / "proved" / f"{TILES}.py").read_text("utf-8")
    end = "    assert_written_once("
    again = "    load(Y.rows(first).tile((64, 64), (i, 0)), by, edge=0)\n"
    (tmp_path / "read.py").write_text(text.replace(end, again + end), "utf-8")
    (template,) = templates(tmp_path / "read.py")
    verdict = verify(template, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert isinstance(verdict, Unknown)
    assert verdict.reason.startswith("`Y` is not read by the kernel that writes it: ")
