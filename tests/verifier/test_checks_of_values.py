"""Checks of values are needed: with one switched off, a kernel that computes wrong values is proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.algebra import TRUE
from argus.core.dtype import DType
from argus.core.index import Cond, Index
from argus.core.proof.dataflow import invariant_candidates, lookup, loop_invariants
from argus.core.proof.dataflow.footprints import Writers
from argus.core.proof.outputs import claims, relations, writes
from argus.core.proof.values import alike_terms, contributions, elementwise, sums
from argus.core.proof.values.content import Data, Number, Value
from argus.core.proof.values.held import tables
from argus.core.proof.values.recognisers import folding, products, scales, softmax, statistics
from argus.core.proof.values.recognisers.products import Product
from argus.core.proof.values.recognisers.standing import Drop, Gap
from argus.core.query import Budget
from argus.core.verdict import Unknown
from argus.core.walk import show
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import (
    NOT_KNOWN,
    REFUTED,
    Case,
    Patch,
    always,
    assert_only_this_check_refutes,
    assert_proved,
    cases_test,
    empty_message,
    load,
    load_edited,
    never,
    no_obligations,
    true_condition,
    without_formulas,
    without_obligations,
)


def any_count_suffices(patch: pytest.MonkeyPatch) -> None:
    for module in (claims, writes):
        patch.setattr(module, "holds_once", true_condition)


def any_weight_may_be_rescaled(patch: pytest.MonkeyPatch) -> None:
    owing: Callable[..., Value] = vars(softmax.Rules)["_rescaled"]

    def rescaled(rules: softmax.Rules, weight: Data, factor: Data) -> Value:
        before = len(rules.owed)
        value = owing(rules, weight, factor)
        del rules.owed[before:]
        return value

    patch.setattr(softmax.Rules, "_rescaled", rescaled)


def every_tensor_has_one_element(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scales, "_is_single", always)


def sums_are_not_scaled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scales, "_products", no_obligations)


def coordinates_are_not_translated(patch: pytest.MonkeyPatch) -> None:
    def there(value: Value, _: object, __: object, taken: Writers) -> Value:
        return value.at(taken.writer) if isinstance(value, Data) else value

    patch.setattr(lookup, "_in_reader_coordinates", there)


def any_units_of_a_logarithm(patch: pytest.MonkeyPatch) -> None:
    def close(*_: object, **__: object) -> bool:
        return True

    patch.setattr(softmax, "isclose", close)


def references_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alike_terms, "depends_on_reference", never)


def all_masks_are_equal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(invariant_candidates, "equal_bounds", true_condition)


def distances_may_be_negated(patch: pytest.MonkeyPatch) -> None:
    computed: Callable[..., Value] = vars(softmax.Rules)["_with_number"]
    times: Callable[..., Value] = vars(softmax.Rules)["_scaled"].__func__

    def scaled(rules: softmax.Rules, name: str, left: Value, right: Value) -> Value:
        if isinstance(left, Data) and isinstance(left.standing, Gap | Drop) and isinstance(right, Number):
            return times(left, right.value, left.form)
        return computed(rules, name, left, right)

    patch.setattr(softmax.Rules, "_with_number", scaled)


def nothing_is_a_guard(patch: pytest.MonkeyPatch) -> None:
    for module in (softmax, folding):
        patch.setattr(module, "guards", never)


def every_sum_counts_as_scores(patch: pytest.MonkeyPatch) -> None:
    told: Callable[[object], Data] = vars(sums)["_content"]

    def of_scores(held: object) -> Data:
        return evolve(told(held), root="scores")

    patch.setattr(sums, "_content", of_scores)


def any_products_are_one_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "one_sum", empty_message)


def any_relation_decides(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scales, "_decides", always)


def everything_is_real(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elementwise, "_not_of_reals", empty_message)


def all_types_have_infinities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DType, "holds", always)


def sums_depend_on_no_name(patch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> frozenset[str]:
        return frozenset()

    patch.setattr(statistics, "sets_of", none)


def numbers_in_six_digits(patch: pytest.MonkeyPatch) -> None:
    def short(number: float) -> str:
        return f"{number:g}"

    patch.setattr(softmax, "in_digits", short)


def numbers_stay_what_they_are_called(patch: pytest.MonkeyPatch) -> None:
    def called(value: Index) -> Value:
        return Data({}, form=show(value), computed=True, root=show(value))

    patch.setattr(elementwise, "_number", called)


def one_reference_for_all(patch: pytest.MonkeyPatch) -> None:
    for module in (folding, products):
        patch.setattr(module, "one_along", always)


def all_padding_is_finite(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Data, "finite", property(always))


def any_reference_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(softmax, "equal_sets", true_condition)
    patch.setattr(softmax, "subset_count", true_condition)
    patch.setattr(invariant_candidates, "agreeing", true_condition)
    patch.setattr(folding.Folding, "alike_in_each", always)


def every_branch_is_taken(patch: pytest.MonkeyPatch) -> None:
    summed = loop_invariants.product_sum

    def always_added(product: Product, _: Cond) -> Data:
        return summed(product, TRUE)

    patch.setattr(loop_invariants, "product_sum", always_added)


def no_map_obligations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scales, "obligations", no_obligations)
    patch.setattr(elementwise, "map_obligations", no_obligations)


def elements_of_any_place_agree(patch: pytest.MonkeyPatch) -> None:
    no_map_obligations(patch)
    patch.setattr(writes, "_holds_record", no_obligations)


def any_indices_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contributions, "same_products", true_condition)
    patch.setattr(contributions, "equal_indices", true_condition)


def records_need_no_step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums.Accumulator, "_keeps_record", no_obligations)


def every_change_of_a_table_is_a_step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tables, "_is_step", always)


UNKNOWN: tuple[tuple[str, Patch], ...] = (
    ("guarded_sums_added", nothing_is_a_guard),
    ("attention_logarithm_in_other_units", any_units_of_a_logarithm),
    ("attention_logarithm_in_other_units", references_do_not_matter),
    ("softmax_by_the_maximum_of_half", references_do_not_matter),
    ("two_keys_of_one_maximum", every_sum_counts_as_scores),
    ("two_weights_in_one_sum", any_products_are_one_sum),
    ("scales_of_a_loose_relation", any_relation_decides),
    ("scaled_by_one_of_two_numbers", every_tensor_has_one_element),
    ("blocks_promoted_without_a_relation", sums_are_not_scaled),
    ("half_of_an_integer", everything_is_real),
    ("padding_without_infinity", all_types_have_infinities),
    ("means_of_rows_added", sums_depend_on_no_name),
    ("scores_of_unlike_numbers", numbers_in_six_digits),
    ("scores_by_places_in_chunks", numbers_stay_what_they_are_called),
)
"""Wrong kernels whose fault shows in no tag of a run: their verdict is unknown."""


@pytest.mark.share(32)
@pytest.mark.parametrize(("twin", "switch_off"), UNKNOWN, ids=[twin for twin, _ in UNKNOWN])
def test_what_is_not_known_slips_past_without_its_check(
    twin: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(twin, NOT_KNOWN)
    # That no run refutes it is a test of the corpus.
    assert isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Unknown)

    switch_off(monkeypatch)

    assert_proved(kernel)


CLEAR = ("minimum(i * 64 + offset + 1, T) // 32", "minimum(i * 64 + offset + 1, T) // 32 + 1")
MASKED = ("            if masked:\n                r, j", "            if True:\n                r, j")
GUARDED = ("where(now == -inf, 0.0, now) if masked else now", "where(now == -inf, 0.0, now)")
UNMASKED = ("return prob, owed", "return prob if masked else exp2(s * SCALE - guard * SCALE), owed")

LAST_KEYS: tuple[tuple[str, tuple[tuple[str, str], ...], Patch], ...] = (
    ("each query sees one key more", (("64 * i + r + offset)", "64 * i + r + offset + 1)"),), any_count_suffices),
    ("weights of a block on the diagonal are not masked", (CLEAR, MASKED, GUARDED, UNMASKED), all_masks_are_equal),
)
"""Faults in attention with masked blocks first; a counterexample takes too long to find for the corpus."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("edits", "switch_off"), [case[1:] for case in LAST_KEYS], ids=[name for name, *_ in LAST_KEYS]
)
def test_attention_from_the_last_keys_slips_past_without_its_check(
    edits: tuple[tuple[str, str], ...], switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load_edited("attention_from_the_last_keys", *edits)
    assert_only_this_check_refutes(kernel, "I25", switch_off, monkeypatch)


BY_FORMULA: tuple[tuple[str, str, Patch], ...] = (
    ("softmax_of_columns_by_maxima_of_rows", "I23", one_reference_for_all),
    ("softmax_sum_not_rescaled", "I23", any_reference_will_do),
    ("softmax_rescaled_too_late", "I23", any_reference_will_do),
    ("softmax_threads_not_rescaled", "I23", any_reference_will_do),
    ("attention_guarded_rescaled_too_early", "I23", any_reference_will_do),
)
"""Wrong kernels that a run refutes by their formula alone, and the invariant that keeps their tags from a proof."""


@pytest.mark.share(8)
@pytest.mark.parametrize(("twin", "code", "switch_off"), BY_FORMULA, ids=[twin for twin, *_ in BY_FORMULA])
def test_tags_without_a_formula_slip_past_without_their_check(
    twin: str, code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = without_formulas(load(twin).trace())
    assert (REFUTED / f"{twin}.py").read_text(encoding="utf-8").startswith(f"# verdict: refuted I39 {code}\n")
    assert isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=20)).verdict, Unknown)

    switch_off(monkeypatch)

    assert_proved(kernel)


CASES: tuple[Case, ...] = (
    ("gated_by_the_other_columns", "I2", no_map_obligations),
    ("scaled_by_the_first_rows", "I35", elements_of_any_place_agree),
    ("scaled_as_the_first_matrix", "I35", elements_of_any_place_agree),
    ("padding_times_zero", "I4", all_padding_is_finite),
    ("k_counted_twice", "I3", any_count_suffices),
    ("attention_causal_one_block_clear", "I25", any_count_suffices),
    ("attention_causal_from_the_first_key", "I25", any_count_suffices),
    ("softmax_weights_of_no_reference", "I3", any_weight_may_be_rescaled),
    ("sums_of_other_rows_claimed", "I25", coordinates_are_not_translated),
    ("weights_that_grow", "I4", distances_may_be_negated),
    ("layer_norm_of_another_row", "I2", no_map_obligations),
    ("layer_norm_without_the_last_chunk", "I25", any_count_suffices),
    ("scan_carry_twice", "I3", any_count_suffices),
    ("scan_carry_of_this_chunk", "I3", any_count_suffices),
    ("scales_of_half_blocks", "I35", without_obligations(relations, "_of_elements")),
    ("scale_of_another_expert", "I35", no_map_obligations),
    ("block_scales_of_the_first_columns", "I35", without_obligations(relations, "_of_elements")),
    ("rows_move_with_k", "I2", records_need_no_step),
    ("sums_of_one_half_of_k", "I3", any_count_suffices),
    ("attention_product_from_the_third_block", "I25", every_branch_is_taken),
    ("product_a_block_behind_from_the_third", "I3", any_count_suffices),
    ("convolution_exchanges_its_axes", "I3", any_indices_will_do),
    ("convolution_transposed_without_gaps", "I3", any_indices_will_do),
    ("depthwise_exchanges_its_axes", "I3", any_indices_will_do),
    ("second_row_from_an_element_on", "I39", every_change_of_a_table_is_a_step),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)
