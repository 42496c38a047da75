"""Numbers that a type may not have are rounded: an unknown function where something is decided by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from argus.core.dtype import DType
from argus.core.index import Cond
from argus.core.proof.outputs import equality_claims
from argus.core.proof.values.held import elements, rounded_integers
from argus.core.proof.values.held.rounded_integers import operation
from argus.core.query import Budget
from argus.core.values.expr import Expr
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import NOT_KNOWN, PROVED, REFUTED, assert_proved, load, load_edited

NO_RUNS = evolve(Budget(), runs=0)
PROMISE = "    promise(Z, lambda z: (z >= 0) & (z < 1 << 24))\n"
EDITS = {
    "integers of any size": ((PROMISE, ""),),
    "one that f32 rounds to the next": (("< 1 << 24))", "<= 1 << 24))"),),
    "a sum that f32 rounds": (("(x == z,", "(x == z + 1.0,"), ("elements(Z)(r), 1", "elements(Z)(r) + 1, 1")),
    "one rounded once more": (
        ("(x == z,", "(x == x.to(bf16).to(f32),"),
        ("(r) == elements(Z)(r), 1, 0", "(r) == elements(X)(r), 1, 0"),
        ("assert_equals, ", "assert_equals, bf16, "),
    ),
    "a number of f32 rounded to bf16": (
        ('X: Tensor["M", i32]', 'X: Tensor["M", f32]'),
        ("(x == z,", "(x == x.to(bf16).to(f32),"),
        ("(r) == elements(Z)(r), 1, 0", "(r) == elements(X)(r), 1, 0"),
        ("assert_equals, ", "assert_equals, bf16, "),
    ),
    "in bf16": (
        ("edge=0).to(f32)", "edge=0).to(f32).to(bf16)"),
        ("0.0), Y", "0.0).to(f32), Y"),
        ("assert_equals, ", "assert_equals, bf16, "),
    ),
}
"""Edits after which a number is compared that the type rounds."""


def unchanged(_: object, found: Expr, __: DType) -> Expr:
    return found


def unrounded(_: object, found: Expr, __: DType | None, ___: DType) -> Expr:
    return found


def of_reals(name: str, args: Sequence[Expr], _: DType, holds: Callable[[Cond], bool]) -> Expr:
    return operation(name, args, holds)


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_rounded_numbers_slip_past_if_conversions_are_taken_for_exact(
    edits: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load_edited("formula_integers_compared_in_f32", *edits)
    verdict = verify(kernel, solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Unknown), verdict

    monkeypatch.setattr(elements.Elements, "_in_type", unchanged)
    monkeypatch.setattr(elements.Elements, "_rounded", unrounded)
    monkeypatch.setattr(elements, "computed", of_reals)

    assert_proved(kernel)


def rounded_to_bf16(test: str, claimed: str) -> tuple[tuple[str, str], ...]:
    """Edits after which integers below 2^24 are compared as numbers of bf16."""
    return (
        ("(x == z,", f"({test},"),
        ("elements(X)(r) == elements(Z)(r)", claimed),
        ("assert_equals, ", "assert_equals, bf16, "),
    )


NARROW = {
    "an integer that bf16 does not have": rounded_to_bf16("z.to(bf16).to(f32) > 300.0", "elements(Z)(r) > 300"),
    "the first whose next one bf16 does not have": rounded_to_bf16(
        "z.to(bf16).to(f32) > 256.0", "elements(Z)(r) > 256"
    ),
    "itself": rounded_to_bf16("z.to(bf16).to(f32) == z", "elements(Z)(r) == elements(Z)(r)"),
}


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("edits", NARROW.values(), ids=NARROW)
def test_integers_in_bf16_slip_past_if_it_is_taken_to_have_those_of_f32(
    edits: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load_edited("formula_integers_compared_in_f32", *edits)
    assert isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Unknown)

    monkeypatch.setattr(rounded_integers, "_FINITE", dict.fromkeys(vars(rounded_integers)["_FINITE"], 1 << 24))

    assert_proved(kernel)


@pytest.mark.share(128, among="verifier: checks of values")
def test_an_integer_that_bf16_has_decides_there() -> None:
    edits = rounded_to_bf16("z.to(bf16).to(f32) > 255.0", "elements(Z)(r) > 255")
    assert_proved(load_edited("formula_integers_compared_in_f32", *edits))


LEFT = "(x - round_bf16(x))"
LEFT_TWICE = f"({LEFT} - round_bf16({LEFT}))"


def is_of_bf16(value: str) -> tuple[tuple[str, str], ...]:
    """Edits after which it is claimed that bf16 has what is computed of a number of f32."""
    return (
        ('X: Tensor["M", i32]', 'X: Tensor["M", f32]'),
        ("(x == z,", f"({value}.to(bf16).to(f32) == {value},"),
        ("elements(X)(r) == elements(Z)(r)", "elements(X)(r) == elements(X)(r)"),
        ("assert_equals, ", "assert_equals, bf16, round_bf16, "),
    )


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("value", ["round_bf16(x)", "where(x > 1.0, round_bf16(x), 2.0)", LEFT_TWICE])
def test_what_bf16_has_is_not_rounded(value: str) -> None:
    assert_proved(load_edited("formula_integers_compared_in_f32", *is_of_bf16(value)))


def anything(_: DType, __: Expr) -> bool:
    return True


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("value", [LEFT, f"({LEFT} - round_bf16(x))", "where(x > 1.0, round_bf16(x), 257.0)"])
def test_what_bf16_may_not_have_slips_past_if_it_is_taken_to_have_it(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load_edited("formula_integers_compared_in_f32", *is_of_bf16(value))
    assert isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Unknown)

    monkeypatch.setattr(rounded_integers, "_has", anything)

    assert_proved(kernel)


CANCELLING = {
    "one_more_taken_for_greater": REFUTED,
    "sums_in_another_order_taken_for_equal": REFUTED,
    "next_integer_taken_for_greater": REFUTED,
    "clamped_logarithm_taken_for_exact": REFUTED,
    "reciprocal_taken_for_exact": REFUTED,
    "thirds_taken_for_exact": NOT_KNOWN,
    "sum_of_differences_taken_for_exact": NOT_KNOWN,
    "clamped_numbers_taken_for_exact": NOT_KNOWN,
}


def as_over_the_reals(of: Expr, _: bool = False) -> Expr:
    return of


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("name", CANCELLING)
def test_a_test_in_which_numbers_cancel_slips_past_if_it_is_one_over_the_reals(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(name, CANCELLING[name])
    assert isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Unknown)

    monkeypatch.setattr(equality_claims, "with_tests_in_floats", as_over_the_reals)

    assert_proved(kernel)


@pytest.mark.share(128, among="verifier: checks of values")
def test_a_sum_in_bf16_slips_past_if_it_is_taken_for_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load("sum_in_bf16_taken_for_exact")
    assert isinstance(verify(kernel, solver="z3", budget=NO_RUNS).verdict, Unknown)

    monkeypatch.setattr(elements, "computed", of_reals)
    monkeypatch.setattr(equality_claims, "with_tests_in_floats", as_over_the_reals)

    assert_proved(kernel)


@pytest.mark.share(128, among="verifier: checks of values")
def test_the_verdict_lists_where_rounding_may_decide() -> None:
    listed = dict[str, list[str]]()
    for name in ("formula_tests_in_which_numbers_cancel", "formula_leaky_relu", "formula_softmax"):
        verdict = verify(load(name, PROVED), solver="z3", budget=NO_RUNS).verdict
        assert isinstance(verdict, Proved)
        listed[name] = [each for each in verdict.assumptions if "(reals)" in each]
    (line,) = listed["formula_tests_in_which_numbers_cancel"]
    assert line.endswith("formula_tests_in_which_numbers_cancel.py:14")
    assert not listed["formula_leaky_relu"]  # elements are compared as they are loaded
    assert not listed["formula_softmax"]  # a maximum is compared with -inf alone
