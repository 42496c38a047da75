"""Formulas that are proved, their one-edit twins that are not, and the comparison that tells them apart."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.proof.outputs import equality_claims
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.interp.test_right_formulas import CASES, traced
from tests.verifier.switched_off_checks import always, load_edited

WITHOUT_RUNS = evolve(Budget(), runs=0)
RIGHT = sorted(path.stem for path in (CORPUS / "proved").glob("formula_*.py"))
EDITS: dict[str, tuple[str, str, str]] = {
    "the next block's scale": ("formula_dequantised", "S.T[k]", "S.T[B - 1 - k]"),
    "the scale twice": ("formula_dequantised", "copy(v * scale,", "copy(v * scale * scale,"),
    "a column more": ("formula_dequantised", "S[r, c // 64])", "S[r, (c + 1) // 64])"),
    "no bias": ("formula_gated", "(x + b)", "(x + x)"),
    "the gate's sign": ("formula_gated", "exp(-g)", "exp(g)"),
    "the other operand": ("formula_gated", "maximum(x, g)", "maximum(x, x)"),
    "the bias of the first columns": ("formula_gated", "B.tile((64,), (n,))", "B.tile((64,), (0,))"),
    "no activation": ("formula_gemm_relu", "copy(maximum(acc, 0.0).to(bf16)", "copy((acc + 0.0).to(bf16)"),
    "a k too few": ("formula_gemm_relu", "over=K), 0))", "over=K - 1), 0))"),
    "a square of A": ("formula_gemm_relu", "A[r, j] * B[c, j]", "A[r, j] * A[r, j]"),
    "the other size": ("formula_turned", "copy(v / M,", "copy(v / N,"),
    "a constant for a size": ("formula_turned", "copy(v / M,", "copy(v / 16,"),
}


ROUNDING = {
    *("formula_any_of_bytes", "formula_gated", "formula_gemm_relu", "formula_gemm_without_tags"),
    *("formula_integers_compared_in_f32", "formula_places_compared_in_f32", "formula_products_of_i8"),
}
"""Those that round: a value, or integers that are compared as numbers of f32."""


def edited(name: str) -> Kernel:
    path, old, new = EDITS[name]
    return load_edited(path, (old, new)).trace()


@pytest.mark.share(64, among="verifier: proved formulas")
@pytest.mark.parametrize("name", RIGHT)
def test_the_proof_says_what_it_proved(name: str) -> None:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    verdict = verify(template.trace(), budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Proved)
    stated = [line for line in verdict.results if line.startswith("assert_equals(")]
    assert stated
    assert all(("over the reals; the program rounds " in line) == (name in ROUNDING) for line in stated[:1])


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "rounded"),
    [
        ("attention_of_grouped_heads", "rounded on the way: exp2 to bf16"),
        ("formula_gemm_relu", "the program rounds max to bf16"),
    ],
)
def test_the_results_say_what_is_rounded(name: str, rounded: str) -> None:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    verdict = verify(template.trace(), budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Proved)
    assert any(line.endswith(rounded) for line in verdict.results), verdict.results


@pytest.mark.share(64, among="verifier: proved formulas")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_is_not_proved(name: str) -> None:
    verdict = verify(edited(name), budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Unknown), verdict
    assert "assert_equals" in verdict.reason


@pytest.mark.share(64, among="verifier: proved formulas")
@pytest.mark.parametrize("name", EDITS)
def test_only_the_comparison_keeps_a_twin_from_being_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Known, "equal", always)
    assert isinstance(verify(edited(name), budget=WITHOUT_RUNS).verdict, Proved)


def test_elements_that_are_not_stored_are_not_proved() -> None:
    kernel = load_edited("formula_turned", ("ceil_div(N, 64)))", "N // 64))")).trace()
    verdict = verify(kernel, budget=WITHOUT_RUNS).verdict
    assert not isinstance(verdict, Proved)


PROVED = (
    *("attention_of_one_wave", "attention_of_grouped_heads", "layer_norm_in_two_passes", "rows_less_their_mean"),
    *("batched", "scales_of_blocks", "gated_by_its_own_columns", "rows_scaled_to_e4m3"),
)
"""Of the kernels of `test_right_formulas`, those whose formula is proved."""


@pytest.mark.share(64, among="verifier: proved formulas")
@pytest.mark.parametrize("name", PROVED)
def test_kernels_of_the_corpus_have_their_formula(name: str) -> None:
    assert isinstance(verify(traced(name, CASES[name][1]), budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.share(64, among="verifier: proved formulas")
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_the_corpus_have_no_wrong_formula(name: str) -> None:
    _, formula, (old, new) = CASES[name]
    assert isinstance(verify(traced(name, formula.replace(old, new)), budget=WITHOUT_RUNS).verdict, Unknown)


@pytest.mark.share(3)
def test_constants_whose_rounding_is_amplified_stand_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "refuted" / "formula_amplified_constants.py")
    assert isinstance(verify(template.trace(), budget=WITHOUT_RUNS).verdict, Unknown)
    monkeypatch.setattr(equality_claims, "near", always)
    assert isinstance(verify(template.trace(), budget=WITHOUT_RUNS).verdict, Proved)
