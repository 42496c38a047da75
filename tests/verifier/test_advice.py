"""What a report of an unknown verdict says to write instead, where the construct and a way round it are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.dsl.kernel import Template
from argus.core.query import Budget
from argus.core.verdict import Unknown
from argus.verifier.kernel import verify
from property_tests.programs import templates
from tests.verifier.switched_off_checks import NOT_KNOWN, assert_proved, load, load_edited

NO_RUNS = evolve(Budget.about(0.5), runs=0)


def stores_in_two_branches() -> Template:
    """A tile that one branch stores as it is, the other doubled."""
    stored = "            copy(x, Y.tile((64, 32), (m, n)), edge=0)\n"
    other = "        with when(columns <= n):\n            copy(x + x, Y.tile((64, 32), (m, n)), edge=0)\n"
    edits = (
        (stored, stored + other),
        ("        with when(n < columns):\n            x =", "        x ="),
        (stored, "        with when(n < columns):\n" + stored),
    )
    return load_edited("columns_stored_under_a_condition", *edits)


def advice(kernel: Template) -> str:
    report = verify(kernel, solver="z3", budget=NO_RUNS)
    assert isinstance(report.verdict, Unknown), report.verdict
    assert report.diagnostics[0].help == report.verdict.attempt
    return report.verdict.attempt


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slots_stored_in_bulk", '`bulk.wait(0, of="reads")` before `box` is written again'),
        ("rows_of_a_table_without_an_edge", "with `edge=0`, of a plain gather"),
        ("tiles_to_and_fro", "`m, n = block_id((rows, columns))`"),
    ],
)
def test_what_to_write_instead(name: str, words: str) -> None:
    assert words in advice(load(name, NOT_KNOWN))


def test_stores_of_one_tensor_are_under_one_condition() -> None:
    assert "store under one condition on blocks and the loop variable" in advice(stores_in_two_branches())


MASKED = """
from argus.language import *

@kernel(target=sm_90a, threads=128)
def first_columns(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (block,) = block_id((ceil_div(X.shape[0], 128),))
    x = load(X.tile((128,), (block,)), spread((128,), threads=128, vector=1), edge=0)
    copy(where(block * 128 + x.index[0] < 64, where(x > 0.0, x, 0.0), x), Y.tile((128,), (block,)), edge=0)
"""
CLAIM = "    assert_equals(Y, lambda n: where(n < 64, where(X[n] > 0.0, X[n], 0.0), X[n]))\n"


def test_a_mask_of_no_sum_is_claimed_by_a_formula(tmp_path: Path) -> None:
    """The advice is of use: with such a claim the kernel is proved."""
    file = tmp_path / "masked.py"
    file.write_text(MASKED, encoding="utf-8")
    (bare,) = templates(file)
    file.write_text(MASKED + CLAIM, encoding="utf-8")
    (claimed,) = templates(file)

    assert "by `assert_equals(Y, lambda i, j: where(j < n" in advice(bare)
    assert_proved(claimed)
