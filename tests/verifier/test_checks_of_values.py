"""Checks of values are needed: with one switched off, a kernel that computes wrong values is proved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.dtype import DType
from argus.core.index import Cond, Index
from argus.core.proof import tile_claims
from argus.core.proof.outputs import claims, product_formulas, relations, writes
from argus.core.proof.values import alike_terms, contents, in_cases, made_of, part_counts, ties
from argus.core.proof.values.held import rescaling, tables
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.values import extended, limits, numbers
from argus.core.values.expr import Expr
from argus.core.verdict import Unknown
from argus.core.walk import symbols
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


def tags_say_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contents, "not_said_by_tags", empty_message)


def references_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alike_terms, "depends_on_reference", never)


def any_case_is_one_block(patch: pytest.MonkeyPatch) -> None:
    """References are compared as if their test said that there is one block, whatever it says."""
    patch.setattr(in_cases, "_cases", cases_of_one_block)


def cases_of_one_block(of: Expr, test: Cond, known: Known) -> Iterator[tuple[Expr, Known]]:
    (size,) = (algebra.sym(each) for each in symbols(test))
    here = known.within(algebra.le(size, 32))
    yield here.simplified(of), here


def terms_need_no_mask(patch: pytest.MonkeyPatch) -> None:
    """Unmasked terms are no rescaled sum, as they are not 0 before the first element, and are one too many."""
    any_count_suffices(patch)
    patch.setattr(rescaling.Rescaling, "_is_defined", always)


def all_types_have_infinities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DType, "holds", always)


def any_number_lies_between(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "is_between", always)


def any_factors_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tile_claims, "factor_obligations", no_obligations)


def elements_of_any_place_agree(patch: pytest.MonkeyPatch) -> None:
    any_factors_will_do(patch)
    patch.setattr(writes, "_holds_record", no_obligations)


def relations_need_not_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relations, "_of_elements", no_obligations)
    patch.setattr(ties, "_goal", true_condition)


def any_relation_decides(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ties, "_decides", always)


def scales_belong_to_any_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contents.Contents, "unrelated", empty_message)


def any_products_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(product_formulas, "difference", empty_message)


def any_operand_is_the_least(patch: pytest.MonkeyPatch) -> None:
    def reduced(count: Index, _: object) -> Index:
        return part_counts.without_decided_extrema(count, always)

    patch.setattr(contents, "without_decided_extrema", reduced)


def every_change_of_a_table_is_a_step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tables, "_is_step", always)


def one(_: object) -> int:
    return 1


def any_number_is_above_0(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers, "_is_scale", numbers.is_number)
    patch.setattr(extended, "_sign", one)


def every_type_has_every_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DType, "holds", always)


def scales_have_no_padding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made_of.Reading, "_is_unpadded", always)


UNKNOWN: tuple[tuple[str, Patch], ...] = (
    ("weights_of_padding_twice", scales_have_no_padding),
    ("weights_scaled_above_zero_in_f16", every_type_has_every_number),
    ("guarded_sums_added", tags_say_all),
    ("two_keys_of_one_maximum", tags_say_all),
    ("two_weights_in_one_sum", tags_say_all),
    ("means_of_rows_added", tags_say_all),
    ("scores_of_unlike_numbers", tags_say_all),
    ("scores_by_places_in_chunks", tags_say_all),
    ("attention_logarithm_in_other_units", references_do_not_matter),
    ("softmax_by_the_maximum_of_half", references_do_not_matter),
    ("softmax_by_the_maximum_of_one_block_of_two", any_case_is_one_block),
    ("scales_of_a_loose_relation", any_relation_decides),
    ("scales_without_a_relation", scales_belong_to_any_sum),
    ("scaled_by_one_of_two_numbers", scales_belong_to_any_sum),
    ("half_of_an_integer", all_types_have_infinities),
    ("padding_without_infinity", all_types_have_infinities),
    ("numbers_said_to_be_kept", any_number_lies_between),
)
"""Wrong kernels whose fault shows in no tag of a run: their verdict is unknown."""


@pytest.mark.share(128, among="verifier: checks of values")
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
    ("weights of a block on the diagonal are not masked", (CLEAR, MASKED, GUARDED, UNMASKED), terms_need_no_mask),
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
    ("layer_norm_threads_weigh_one_more", "I25", tags_say_all),
    ("softmax_threads_not_rescaled", "I23", tags_say_all),
)
"""Wrong kernels that a run refutes by their formula alone, and the invariant that is broken: tags do not say all."""


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize(("twin", "code", "switch_off"), BY_FORMULA, ids=[twin for twin, *_ in BY_FORMULA])
def test_tags_without_a_formula_slip_past_without_their_check(
    twin: str, code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (REFUTED / f"{twin}.py").read_text(encoding="utf-8").startswith(f"# verdict: refuted I39 {code}\n")
    kernel = without_formulas(load(twin).trace())
    assert isinstance(verify(kernel, solver="z3", budget=evolve(Budget(), runs=20)).verdict, Unknown)

    switch_off(monkeypatch)

    assert_proved(kernel)


CASES: tuple[Case, ...] = (
    ("gated_by_the_other_columns", "I2", elements_of_any_place_agree),
    ("scaled_by_the_first_rows", "I35", elements_of_any_place_agree),
    ("scaled_as_the_first_matrix", "I35", elements_of_any_place_agree),
    ("scale_of_another_expert", "I35", elements_of_any_place_agree),
    ("scales_of_half_blocks", "I35", relations_need_not_hold),
    ("block_scales_of_the_first_columns", "I35", relations_need_not_hold),
    ("k_counted_twice", "I3", any_count_suffices),
    ("products_of_i8_beyond_32_bits", "I28", without_obligations(tile_claims, "integer_sum_obligations")),
    ("products_of_i8_scaled_by_the_next_row", "I35", elements_of_any_place_agree),
    ("attention_causal_one_block_clear", "I25", any_count_suffices),
    ("attention_causal_from_the_first_key", "I25", any_count_suffices),
    ("attention_product_from_the_third_block", "I25", any_count_suffices),
    ("sums_of_other_rows_claimed", "I25", any_count_suffices),
    ("layer_norm_without_the_last_chunk", "I25", any_count_suffices),
    ("scan_carry_twice", "I3", any_count_suffices),
    ("scan_carry_of_this_chunk", "I3", any_count_suffices),
    ("sums_of_one_half_of_k", "I3", any_count_suffices),
    ("product_a_block_behind_from_the_third", "I3", any_count_suffices),
    ("convolution_exchanges_its_axes", "I3", any_products_will_do),
    ("convolution_transposed_without_gaps", "I3", any_products_will_do),
    ("depthwise_exchanges_its_axes", "I3", any_products_will_do),
    ("second_row_from_an_element_on", "I39", every_change_of_a_table_is_a_step),
    ("k_up_to_the_lesser_of_two_sizes", "I3", any_operand_is_the_least),
    ("weights_scaled_by_either_sign", "I39", any_number_is_above_0),
)


test_a_twin_slips_past_without_its_check = cases_test(CASES)
