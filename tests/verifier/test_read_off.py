"""Tags and sets read off the expressions of what tiles hold: what each check is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.proof.analysis import analyse
from argus.core.proof.dataflow import reads
from argus.core.proof.outputs import claims
from argus.core.proof.values import bound_parts, contents, made_of, ties
from argus.core.proof.values.content import Data
from argus.core.proof.values.held import facts
from argus.core.proof.values.named_parts import Closed
from argus.core.verdict import Proved, Unknown
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates
from tests.verifier.switched_off_checks import load_edited
from tests.verifier.without_runs import nothing, verdict

pytestmark = pytest.mark.share(3, among="verifier: read off, each alone")

EDITS: dict[str, tuple[str, str, str]] = {
    "even steps twice": ("two_sums", "with when(eq(k % 2, 1)):", "with when(eq(k % 2 + 0, 0)):"),
    "a step left out": ("two_sums", "with when(eq(k % 2, 1)):", "with when(eq(k % 4, 1)):"),
    "the next k of B": ("two_sums", "copy(B.tile((64, 32), (n, k))", "copy(B.tile((64, 32), (n, k + 1))"),
    "other rows": ("two_sums", "C.tile((64, 64), (m, n))", "C.tile((64, 64), (n, m))"),
    "padding of 0 in a product": ("row_product", "vector=1), edge=1)", "vector=1), edge=0)"),
    "a shift too few": ("scan_by_shifts", "16", "8"),
    "a lane left out of a scan": ("scan_of_rows", "lane.shift(0, 1, fill=0.0)", "lane.shift(0, 2, fill=0.0)"),
    "a scan with its own warp twice": ("scan_of_rows", "heads.index[0] < wave", "heads.index[0] < wave + 1"),
    "a carry of some warps": (
        "scan_of_rows",
        "carry += heads.sum(0)",
        "carry += heads.sum(0, where=heads.index[0] < wave)",
    ),
    "a carry that is replaced": ("scan_of_rows", "carry += heads.sum(0)", "carry[:] = heads.sum(0) + 0.0"),
    "another group's part of another k": (
        "groups_fetch_apart",
        "        bring(1)",
        "        with when(1 < depth): copy(A.tile((64, 128), (m, 0)), lds_a[1], via=buffer_load_lds, by=by, edge=0)",
    ),
    "a half of every other block twice": (
        "row_maxima_of_halves_fetched_apart",
        "X.tile((32, 256), (m, k))",
        "X.tile((32, 256), (m, k - k % 2 * wave))",
    ),
    "keys of a row before it is turned": (
        "attention_causal_turned_in_memory",
        "assert_covers(turned.tag.t, 0, minimum(T, 16 * i + turned.index[0] + offset + 1))",
        "assert_covers(turned.tag.t, 0, minimum(T, 16 * i + turned.index[1] + offset + 1))",
    ),
    "the first keys in place of the last": ("attention_a_block_behind", "    keys(last)\n", "    keys(0)\n"),
    "values of another block": ("attention_a_block_behind", "values(n + 1)", "values(n)"),
    "values of another block of the last keys": (
        "attention_from_the_last_keys",
        "V.tile((32, 16), (n, 0))",
        "V.tile((32, 16), (maximum(n - 1, 0), 0))",
    ),
    "weights of all but the masked keys twice": (
        "attention_from_the_last_keys",
        "p[:] = prob.to(bf16)\n                o[:]",
        "p[:] = (prob if masked else prob * 2.0).to(bf16)\n                o[:]",
    ),
    "weights of one block of two by its own maximum": ("softmax_by_the_maximum_of_one_block", "N <= 32", "N <= 33"),
    "weights of more than one block by the first's": ("softmax_by_the_maximum_of_one_block", "N <= 32", "N > 32"),
    "a tile that is not turned": ("attention_causal_turned_in_memory", "load(box.T, mm.C)", "load(box, mm.C)"),
}


@pytest.mark.share(20, among="verifier: read off")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_is_not_proved(name: str) -> None:
    path, old, new = EDITS[name]
    kernel = load_edited(path, (old, new)).trace()
    assert not isinstance(verdict(kernel), Proved)


def test_a_read_has_one_value_where_its_cases_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "refuted" / "row_maxima_of_a_half_twice.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(facts, "agrees", always)
    assert isinstance(verdict(template.trace()), Proved)


def always(*_: object) -> bool:
    return True


@pytest.mark.share(20, among="verifier: read off")
@pytest.mark.parametrize(
    "name",
    [
        "means_of_rows_added",
        "scores_by_places_in_chunks",
        "scores_of_unlike_numbers",
        "two_keys_of_one_maximum",
        "two_weights_in_one_sum",
        "softmax_by_the_maximum_of_half",
        "weights_of_truncated_scores",
        "weights_of_unlike_multiples",
        "weights_of_unlike_sizes",
    ],
)
def test_tags_do_not_tell_tensors_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / f"{name}.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(contents, "not_said_by_tags", nothing)
    assert isinstance(verdict(template.trace()), Proved)


def test_a_set_that_an_iteration_adds_needs_that_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "sum_in_the_first_of_no_iterations.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(bound_parts, "_somewhere", no_condition)
    assert isinstance(verdict(template.trace()), Proved)


def no_condition(*_: object) -> tuple[Cond, ...]:
    return ()


def test_a_relation_is_asked_of_what_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "scales_before_the_product_of_another_tile.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(ties, "_goal", all_numbers_meet_it)
    assert isinstance(verdict(template.trace()), Proved)


def all_numbers_meet_it(*_: object) -> Cond:
    return algebra.TRUE


def test_padding_of_a_sum_is_neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "padding_of_ones.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(made_of, "operated", every_padding_is_0)
    monkeypatch.setattr(made_of, "outside", every_padding_is_0)
    assert isinstance(verdict(template.trace()), Proved)


def every_padding_is_0(*_: object) -> dict[object, float]:
    return {}


def test_factors_without_a_common_name_have_no_known_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "factors_from_opposite_ends.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(made_of, "_alone", none_alone)
    assert isinstance(verdict(template.trace()), Proved)


def test_a_claim_is_asked_of_all_sets_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "quotient_of_unlike_sums.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(claims, "_counted", first_set)
    assert isinstance(verdict(template.trace()), Proved)


def test_a_claim_is_asked_of_the_sets_of_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "sums_of_unlike_rows.py")
    assert isinstance(verdict(template.trace()), Unknown)
    monkeypatch.setattr(contents, "complete_sets", first_case)
    assert isinstance(verdict(template.trace()), Proved)


def first_case(of: Sequence[Closed], numbers: Callable[[Closed], Index | None]) -> tuple[tuple[str, Index | None], ...]:
    return tuple((each.name, numbers(each)) for each in of[:1])


def first_set(value: Data, name: str) -> tuple[Index | None, ...]:
    return tuple(each for other, each in value.counts if other == name)[:1]


def none_alone(*_: object) -> list[str]:
    return []


UNWRITTEN = ["unwritten_registers_beside_two_sums", "unwritten_registers_beside_a_formula"]


@pytest.mark.parametrize("name", UNWRITTEN)
def test_registers_are_written_also_where_no_output_depends_on_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    assert not isinstance(verdict(template.trace()), Proved)
    monkeypatch.setattr(reads, "_is_read", never)
    assert isinstance(verdict(template.trace()), Proved)


def never(*_: object) -> Cond:
    return algebra.FALSE


@pytest.mark.parametrize(
    ("folder", "name", "reason"),
    [("proved", "direct_from_global", ""), ("refuted", "rows_move_with_k", "the stored value is a sum over `m`")],
)
def test_what_is_combined_in_an_element_has_one_row(folder: str, name: str, reason: str) -> None:
    (template,) = templates(CORPUS / folder / f"{name}.py")
    asked = [each for each in analyse(template.trace(), Session(Z3())).obligations if each.invariant == "I2"]
    assert asked
    assert {(each.goal is algebra.TRUE, each.unknown) for each in asked} == {(not reason, reason)}
