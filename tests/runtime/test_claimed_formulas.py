"""`argus run` and `argus validate` compare an output with the formula that the kernel claims of it."""

# ruff: noqa: UP037
# Reason: the quotes in `Tensor["32", f32]` hold a shape.

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from argus.cli.main import main
from argus.core.dtype import bf16
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Tensor,
    add,
    assert_equals,
    block_id,
    copy,
    elements,
    f32,
    kernel,
    load,
    program,
    sm_90a,
    spread,
    tanh,
    tanh_accurate,
    total,
    zeros,
)
from argus.runtime.cpu.differences import first_difference
from argus.runtime.run import run
from argus.verifier import claimed_formulas
from argus.verifier.claimed_formulas import Array, ClaimedOutput, claimed_outputs
from property_tests.programs import CORPUS, templates

Captured = pytest.CaptureFixture[str]
RIGHT, WRONG = CORPUS / "formulas", CORPUS / "refuted"
SIZES = {
    "formula_dequantised": {"M": 20, "K": 192, "B": 3},
    "formula_gated": {"M": 20, "N": 80},
    "formula_in_cases_of_remainders": {"M": 41, "N": 20},
    "formula_gemm_relu": {"M": 70, "N": 20, "K": 100},
    "formula_lower_triangle": {"N": 40},
    "formula_turned": {"M": 20, "N": 80},
    "formula_gemm_without_tags": {"M": 70, "N": 20, "K": 100},
    "formula_leaky_relu": {"M": 20, "N": 80},
    "formula_doubled": {"R": 300},
    "formula_gelu": {"N": 1540},
    "formula_power": {"N": 1540},
    "formula_dropout": {"N": 1540, "T": 96},
    "formula_sums_from_the_end": {"R": 3, "N": 150},
    "formula_masks_and_places": {"N": 1537},
    "formula_exp_in_base_2": {"R": 300},
    "formula_sum_from_the_end": {"R": 3, "N": 300},
    "formula_sum_in_two_loops": {"S": 72, "T": 100},
    "formula_any_and_all": {"M": 20, "N": 30},
    "formula_arg_max_in_two_passes": {"M": 20, "N": 30},
    "formula_arg_max_running": {"M": 20, "N": 30},
    "formula_arg_max_of_a_row": {"R": 5, "N": 300},
    "formula_arg_max_in_integers": {"R": 5, "N": 300},
    "formula_arg_max_in_64_bits": {"M": 20, "N": 30},
    "formula_any_of_bytes": {"M": 20, "N": 3},
    "formula_arg_max_running_with_nan": {"M": 20, "N": 30},
    "formula_bias_in_place": {"M": 20, "N": 30},
    "formula_carried_decay": {"M": 20, "N": 30},
    "formula_cross_entropy_smoothed": {"M": 20, "N": 30},
    "formula_next_greatest": {"M": 20, "N": 30},
    "formula_cumulative_sums": {"R": 3, "N": 300},
    "formula_weights_of_channels": {"R": 6, "N": 30, "G": 3, "K": 5, "S": 6},
    "formula_prefix_sums": {"M": 20, "N": 30},
    "formula_row_least": {"M": 20, "N": 30},
    "formula_row_product": {"M": 20, "N": 30},
    "formula_squared_distance": {"M": 20, "N": 30},
    "formula_sum_above_a_threshold": {"M": 20, "N": 30},
    "formula_welford": {"M": 20, "N": 30},
    "formula_arg_max_after_the_first": {"M": 20, "N": 30},
    "formula_integers_clamped": {"M": 20, "N": 30},
    "formula_integers_compared_in_f32": {"M": 100},
    "formula_integers_of_64_bits": {"M": 100},
    "formula_integers_on_mi300x": {"M": 100},
    "formula_integers_widened": {"M": 100},
    "formula_greatest_of_windows": {"M": 100},
    "formula_places_compared_in_f32": {"M": 100},
    "formula_window_with_weights": {"H": 5, "W": 64, "P": 3, "Q": 3},
    "formula_sums_of_spelled_taps": {"P": 2, "Q": 20, "R": 3, "N": 128},
    "formula_long_loop": {"R": 480, "M": 64},
    "formula_products_of_i8": {"M": 20, "N": 30, "K": 40},
    "formula_prefix_sums_of_a_warp": {"R": 3},
    "formula_unrolled_by_two": {"M": 20, "N": 30},
    "formula_rotary_embedding": {"M": 20},
    "formula_attention_sink": {"M": 20, "N": 30},
    "formula_decay_by_two": {"M": 20, "N": 30},
    "formula_mean_of_at_least_one": {"M": 20, "N": 30},
    "formula_reference_of_a_threshold": {"M": 20, "N": 30},
    "formula_rescaled_rarely": {"M": 20, "N": 30},
    "formula_groups_from_a_first_block": {"H": 4, "S": 20, "T": 100, "G": 2},
    "formula_row_sum_stored_by_one_thread": {"R": 3, "N": 300},
    "formula_logarithm_of_a_guarded_sum": {"M": 20, "N": 30},
    "formula_column_nearest_to_an_integer": {"R": 20, "N": 30},
    "formula_layer_norm_of_a_held_row": {"R": 20, "N": 32},
    "formula_of_rows_without_elements": {"M": 20, "N": 30},
    "formula_guarded_sum_of_empty_rows": {"R": 3, "N": 100},
    "mean_of_earlier": {"R": 20},
    "formula_log_softmax": {"R": 3, "N": 100},
    "formula_row_mean": {"R": 3, "N": 300},
    "formula_row_range": {"R": 3, "N": 100},
    "formula_checked_choice": {"R": 9, "N": 3},
    "formula_scaled_by_sequence": {"T": 100, "B": 3, "S": 4, "most": 100},
    "formula_scaled_by_expert": {"T": 60, "E": 3, "S": 4, "Q": 4, "P": 3},
    "formula_softmax": {"R": 3, "N": 300},
    "formula_shares_of_exchanged_sums": {"R": 3, "N": 100},
    "formula_shares_of_one_length": {"R": 3, "N": 64},
    "formula_column_after_the_first_eighth": {"R": 40, "N": 20},
    "formula_sums_of_sequences_without_rows": {"T": 20, "N": 40, "S": 15, "B": 14},
    "formula_tests_in_which_numbers_cancel": {"M": 300},
}
TWINS = {
    "formula_of_the_other_remainder": {"M": 41, "N": 20},
    "formula_power_of_another_exponent": {"N": 1540},
    "formula_half_truths": {"M": 20, "N": 30},
    "formula_sums_from_the_end_stored_from_the_start": {"R": 3, "N": 30},
    "formula_dropout_of_one_word": {"N": 1540, "T": 96},
    "formula_masks_and_places_of_a_block": {"N": 1537},
    "formula_integers_of_64_bits_mixed_up": {"M": 100},
    "formula_arg_max_in_integers_from_0": {"R": 5, "N": 300},
    "formula_nan_of_a_logarithm": {"N": 1540},
    "formula_gelu_by_tanh": {"N": 1540},
    "formula_second_column_of_short_rows": {"R": 40, "N": 5},
    "formula_sum_beyond_the_shorter_row": {"R": 3, "N": 100, "K": 70},
    "formula_sum_in_two_loops_too_few_masked": SIZES["formula_sum_in_two_loops"],
    "formula_scaled_by_expert_from_the_last": {"T": 60, "E": 4, "S": 5, "Q": 4, "P": 3},
    "formula_scaled_by_the_sequence_before": {"T": 100, "B": 3, "S": 4, "most": 100},
    "formula_weights_of_channels_by_sample": {"R": 6, "N": 30, "G": 3, "K": 5, "S": 6},
    "formula_weights_of_channels_in_turn": {"R": 6, "N": 30, "G": 3, "K": 5, "S": 6},
    "formula_cumulative_sums_exclusive": {"R": 3, "N": 300},
    "formula_cumulative_sums_of_own_warp_twice": {"R": 3, "N": 300},
    "formula_cumulative_sums_of_the_row_before": {"R": 4, "N": 300},
    "formula_cumulative_sums_without_the_carry": {"R": 3, "N": 300},
    "formula_layer_norm_of_what_follows_the_row": {"R": 20, "N": 32},
    "formula_logarithm_without_the_scale": {"M": 20, "N": 30},
    "formula_of_rows_without_elements_is_one": {"M": 20, "N": 30},
    "formula_row_sum_of_the_first_warp": {"R": 3, "N": 300},
    "formula_groups_without_the_diagonal": {"H": 4, "S": 20, "T": 100, "G": 2},
    "formula_exp_in_another_base": {"R": 300},
    "formula_mean_of_one_more": {"M": 20, "N": 30},
    "formula_any_of_the_last": {"M": 20, "N": 30},
    "formula_decay_of_the_newest": {"M": 20, "N": 30},
    "formula_turned_the_other_way": {"M": 20},
    "formula_mean_of_none": {"R": 20},
    "formula_amplified_constants": {"N": 300},
    "formula_attention_sink_twice": {"M": 20, "N": 30},
    "formula_decay_by_two_of_the_first": {"M": 20, "N": 30},
    "formula_mean_of_at_least_two": {"M": 20, "N": 1},
    "formula_reference_raised_without_its_sum": {"M": 20, "N": 30},
    "formula_elements_of_the_first_columns": SIZES["formula_leaky_relu"],
    "formula_mean_by_a_constant": SIZES["formula_row_mean"],
    "formula_mean_of_whole_chunks": SIZES["formula_row_mean"],
    "formula_scale_of_the_first_block": SIZES["formula_dequantised"],
    "formula_softmax_not_rescaled": SIZES["formula_softmax"],
    "formula_shares_of_one_half": {"R": 3, "N": 100},
    "formula_shares_of_the_other_cluster": {"R": 3, "N": 100},
    "formula_shares_of_the_own_sum": {"R": 3, "N": 100},
    "formula_sum_for_the_greatest": SIZES["formula_row_range"],
    "formula_sums_of_sequences_of_few_rows": SIZES["formula_sums_of_sequences_without_rows"],
    "formula_sums_of_sequences_by_rows_of_others": SIZES["formula_sums_of_sequences_without_rows"],
}
ADDS_TO_ITS_OUTPUT = {"formula_rows_added_to", "formula_parts_added_in_a_loop"}
"""Of what an output held before, `argus run` knows nothing: they are not compared."""
COMPARED = {
    "formula_lower_triangle": 40 * 41 // 2,
    "formula_layer_norm_of_a_held_row": 19 * 32,  # a row's root is of a number below 0
    "formula_checked_choice": 3,  # of nine rows; infinite elements are not
    "formula_of_rows_without_elements": 20 + 17,  # three rows' logarithm is of 0
}
"""The elements that are compared, where those are not all."""
NOT_AT_RANDOM = {
    *("formula_elements_at_the_threshold_left_out", "formula_arg_max_of_the_last", "formula_arg_max_of_a_row_last"),
    "formula_any_of_bytes_but_the_last",
    *("formula_column_after_the_last", "formula_checked_choice_but_for_the_last"),
}
"""Twins that differ only where elements of a row are equal, an integer is large, or the formula infinite; random ones
are not, and infinite ones are not compared.
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))


def traced(folder: Path, name: str) -> Kernel:
    path = folder / f"{name}.py"
    (template,) = templates(path if path.exists() else CORPUS / "proved" / f"{name}.py")
    return template.trace()


def filled(value: float, *shape: int) -> Array:
    return np.full(shape, value, bf16.numpy)


@pytest.mark.share(40)
@pytest.mark.parametrize("name", SIZES)
def test_a_right_kernel_is_right_in_its_own_types(name: str) -> None:
    ran = run(traced(RIGHT, name), SIZES[name], on="interpreter", seed=3)
    assert ran.comparison is not None
    assert ran.comparison.with_what == "the claimed formula in float64"
    assert (ran.comparison.right, ran.uncompared) == (True, ())
    every = sum(array.size for array in ran.arrays.values())
    assert ran.comparison.elements == COMPARED.get(name, every)


@pytest.mark.share(40)
@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_wrong(name: str) -> None:
    ran = run(traced(WRONG, name), TWINS[name], on="interpreter", seed=3)
    assert ran.comparison is not None
    assert not ran.comparison.right


def test_every_kernel_and_twin_is_run() -> None:
    proved = {path.stem for path in (CORPUS / "proved").glob("formula_*.py")} - ADDS_TO_ITS_OUTPUT
    assert {path.stem for path in RIGHT.glob("*.py")} | proved == SIZES.keys()
    assert {path.stem for path in WRONG.glob("formula_*.py")} == TWINS.keys() | NOT_AT_RANDOM


def test_a_large_output_is_compared_in_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimed_formulas, "MOST_TERMS", 10 * 300 * 300)
    ran = run(traced(RIGHT, "formula_softmax"), {"R": 20, "N": 300}, on="interpreter")
    assert ran.comparison is not None
    assert ran.comparison.with_what == "the claimed formula in float64, some of the rows"
    assert (ran.comparison.elements, ran.comparison.right) == (10 * 300, True)


def test_the_bound_is_of_the_types_that_are_rounded_to() -> None:
    """The product of bf16 matrices is in f32 until it is stored; leaky ReLU multiplies in bf16."""
    product = traced(RIGHT, "formula_gemm_without_tags")
    arrays = {"A": filled(1, 64, 64), "B": filled(1, 16, 64), "C": filled(0, 64, 16)}
    (of_product,) = claimed_outputs(product, arrays, {"M": 64, "N": 16, "K": 64}, 0)
    assert of_product.expected.tolist() == [[64.0] * 16] * 64
    assert of_product.bound.max() < 64 * 2.0**-7
    leaky = traced(RIGHT, "formula_leaky_relu")
    (of_leaky,) = claimed_outputs(leaky, {"X": filled(-1, 64, 64), "Y": filled(0, 64, 64)}, {"M": 64, "N": 64}, 0)
    assert of_leaky.expected[0, 0] == -0.125
    assert of_leaky.bound.max() > 0.125 * 2.0**-6


def test_a_function_that_is_an_instruction_may_be_further_off() -> None:
    """`tanh` of sm_90a is off by 2^-11, `tanh_accurate` by few roundings; the claim is one."""

    def bound(function: Callable[[Fragment], Fragment]) -> float:
        @kernel(target=sm_90a, threads=32)
        def made(X: Tensor["1 128", f32], Y: Tensor["1 128", f32]) -> None:
            copy(function(load(X, spread((1, 128), threads=32, vector=4))), Y)
            assert_equals(Y, lambda m, n: tanh(elements(X)(m, n)))

        arrays = {name: np.full((1, 128), 0.5, np.float32) for name in "XY"}
        (found,) = claimed_outputs(made.trace(), arrays, {}, 0)
        return float(found.bound.max())

    assert bound(tanh) > 2.0**-12
    assert bound(tanh_accurate) < 2.0**-18


def test_what_overflows_the_type_of_the_output_is_infinite() -> None:
    product = traced(RIGHT, "formula_gemm_without_tags")
    arrays = {"A": filled(1e30, 64, 64), "B": filled(1e30, 16, 64), "C": filled(0, 64, 16)}
    (found,) = claimed_outputs(product, arrays, {"M": 64, "N": 16, "K": 64}, 0)
    assert np.isinf(found.expected).all()


def test_emitted_text_that_does_something_else_differs_from_the_claim() -> None:
    made = traced(RIGHT, "formula_row_range")
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    arrays = {"X": x, "High": np.zeros(2, np.float32), "Low": np.zeros(2, np.float32)}
    right = {"High": x.max(1), "Low": x.min(1)}
    claims = tuple(claimed_outputs(made, arrays, {"R": 2, "N": 4}, 0))
    assert first_difference(right, right, claims, exact=True) is None
    wrong = {**right, "Low": x.max(1)}
    found = first_difference(wrong, right, claims, exact=True)
    assert found is not None
    assert (found.tensor, found.index, found.found, found.count) == ("Low", (0,), "3.0", 2)
    assert found.expected == "0.0, as claimed"
    by_interpreter = first_difference(right, wrong, claims, exact=True)
    assert by_interpreter is not None
    assert by_interpreter.found == "3.0 (found by the interpreter)"


def test_a_sum_that_cancels_differs_by_the_rounding_of_its_terms() -> None:
    """The interpreter's order of the terms is another; each of the two is within the formula's bound."""
    expected = np.array([1e-6], np.float32)
    claim = ClaimedOutput("S", np.array([0]), np.array([1e-6]), np.array([1e-7]))

    def agree(found: float, *claims: ClaimedOutput) -> bool:
        outputs = {"S": np.array([found], np.float32)}
        return first_difference(outputs, {"S": expected}, claims, exact=False) is None

    assert not agree(1.00001e-6)
    assert agree(1.00001e-6, claim)
    assert not agree(1.2e-6, claim)


def test_a_sum_of_parts_that_overflow_is_an_infinity_or_nan_by_its_order() -> None:
    overflown = ClaimedOutput("S", np.array([0]), np.array([1e39]), np.array([math.inf]))

    def agree(found: float, expected: float, *claims: ClaimedOutput) -> bool:
        ours, theirs = ({"S": np.array([each], np.float32)} for each in (found, expected))
        return first_difference(ours, theirs, claims, exact=False) is None

    assert agree(math.nan, -math.inf, overflown)
    assert agree(math.inf, -math.inf, overflown)
    assert not agree(math.nan, -math.inf)
    assert not agree(1.0, -math.inf, overflown)
    assert not agree(math.nan, 1.0, overflown)


BY = spread((32,), threads=32, vector=1)


@kernel(target=sm_90a, threads=32)
def zero(S: Tensor["32", f32]) -> None:
    block_id((1,))
    copy(zeros(f32, BY), S)


@kernel(target=sm_90a, threads=32)
def add_rows(X: Tensor["M 32", f32], S: Tensor["32", f32]) -> None:
    (m,) = block_id((X.shape[0],))
    copy(load(X[m], BY), S, combine=add)


@program(configs={"right": 1.0, "twice": 2.0})
def added(X: Tensor["M 32", f32], S: Tensor["32", f32], *, cfg: float) -> None:
    zero(S)
    add_rows(X, S)
    x = elements(X)
    assert_equals(S, lambda n: cfg * total(lambda m: x(m, n), over=X.shape[0]))


@pytest.mark.parametrize(("config", "right"), [("right", True), ("twice", False)])
def test_sums_in_memory_are_compared_with_a_claim_that_does_not_name_what_was_there(config: str, right: bool) -> None:
    ran = run(added.trace(config), {"M": 5}, on="interpreter")

    assert ran.comparison is not None
    assert (ran.comparison.right, ran.comparison.elements, ran.uncompared) == (right, 32, ())


@pytest.mark.share(3)
def test_the_commands_say_so(capsys: Captured) -> None:
    file = str(WRONG / "formula_sum_for_the_greatest.py")
    assert main(["run", file, "--on", "interpreter", "--sizes", "R=2,N=8", "--json"]) == 1
    ran = json.loads(capsys.readouterr().out)
    assert ran["run"]["comparison"]["with"] == "the claimed formula in float64"
    assert [each["code"] for each in ran["diagnostics"]] == ["E412", "I39"]
    assert main(["validate", file, "--sizes", "R=2,N=8", "--seeds", "1"]) == 1
    assert "as claimed" in capsys.readouterr().out
