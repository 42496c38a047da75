"""Rules of formulas (remainders, sums, loops, choices): each proves a kernel, and its check refuses another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import Equals, For, trips
from argus.core.proof.dataflow import timeline
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.outputs import equality_claims, tile_index, writes
from argus.core.proof.values.held import elements, folds, places_of_extrema, residues, rounded_integers
from argus.core.query import Budget
from argus.core.values import nests, wrapping
from argus.core.values.expr import Expr, Reduce
from argus.core.verdict import Proved
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import Patch, always, assert_proved, load, load_edited

NO_RUNS = evolve(Budget(), runs=0)
Edit = tuple[str, str]


def unequal(*_: object, **__: object) -> bool:
    return False


def equal(*_: object, **__: object) -> bool:
    return True


def nothing(*_: object) -> None:
    return None


def as_they_are(_: Access, places: tuple[Separable, ...]) -> tuple[Separable, ...]:
    return places


def as_it_is(claim: Equals, _: Sequence[int], __: frozenset[int]) -> Equals:
    return claim


def unchanged(of: Expr, *_: object) -> Expr:
    return of


def in_64_bits(_: str) -> int:
    return 64


def without_the_last(of: Reduce) -> int | None:
    """The terms of a sum over few literal numbers, without the last one."""
    count = TERMS(of)
    return count and count - 1


def without_the_end(parts: Sequence[Expr], number: Symbol) -> Expr | None:
    """What each part is at its number, where all but the last of them are that."""
    return IN_STEP(parts[:-1] if len(parts) > 2 else parts, number)


def spelled_out(_: object, of: For, *__: object) -> int:
    """How many iterations a loop of a literal length has: however many, none stays a loop."""
    count = trips(of)
    assert isinstance(count, Const)
    return count.value


def sixty(_: object) -> Index:
    """The iterations of a loop that has another number of them."""
    return algebra.const(60)


def anywhere(_: Cond, then: Cond) -> Cond:
    return then


def where_it_does_not_hold(test: Cond, then: Cond) -> Cond:
    return algebra.any_of((algebra.negate(test), then))


TERMS: Callable[[Reduce], int | None] = vars(residues)["_extent"]
IN_STEP: Callable[[Sequence[Expr], Symbol], Expr | None] = vars(folds)["_in_step"]


def nothing_known(variables: list[Symbol], _: Expr) -> dict[Symbol, int]:
    return dict.fromkeys(variables, 0)


def nothing_differs(*_: object) -> str:
    return ""


def patched(module: object, name: str, by: object) -> Patch:
    return lambda patch: patch.setattr(module, name, by)


def one_remainder(*bounds: int) -> range:
    """`range`, from 0 of one number alone."""
    return range(*bounds) if len(bounds) > 1 else range(1)


RULES: dict[str, tuple[str, Patch, tuple[Edit, ...], Patch]] = {
    "cases of remainders": (
        "formula_in_cases_of_remainders",
        patched(equality_claims, "equal_by_residues", unequal),
        (("(y % 2 + 2 * e,)", "(1 - y % 2 + 2 * e,)"),),
        patched(residues, "_equal", equal),
    ),
    "each of the remainders": (
        "formula_in_cases_of_remainders",
        patched(equality_claims, "equal_by_residues", unequal),
        (("(y % 2 + 2 * e,)", "(2 * e,)"),),
        lambda patch: patch.setattr(residues, "range", one_remainder, raising=False),
    ),
    "places of extrema": (
        "formula_arg_max_in_64_bits",
        patched(equality_claims, "as_integers", nothing),
        (("    assume(N <= 1 << 24)\n", ""),),
        patched(places_of_extrema, "_is_whole", always),
    ),
    "integers modulo 2^64": (
        "formula_integers_of_64_bits",
        patched(wrapping, "_unwrapped", unchanged),
        (("wrapped(x_at(r) - x_at(r) * z_at(r) - z_at(r), i64)", "x_at(r) - x_at(r) * z_at(r) - z_at(r)"),),
        patched(elements, "_wrapped", unchanged),
    ),
    "integers that are narrowed": (
        "formula_integers_on_mi300x",
        patched(wrapping, "_unwrapped", unchanged),
        (("wrapped(elements(X)(r) * elements(Z)(r) - 3, i32)", "elements(X)(r) * elements(Z)(r) - 3"),),
        patched(elements, "_wrapped", unchanged),
    ),
    "maxima over several axes": (
        "formula_greatest_of_windows",
        patched(nests, "_first_places", nothing_known),
        (("X[r, a, b, c]", "X[r, a, b, b]"),),
        patched(equality_claims, "_difference", nothing_differs),
    ),
    "stores from the end": (
        "formula_sums_from_the_end",
        patched(writes, "from_the_start", as_they_are),
        (("total(lambda j: X[r, j], over=(n, N))", "total(lambda j: X[r, N - 1 - j], over=n + 1)"),),
        patched(equality_claims, "claim_from_the_end", as_it_is),
    ),
    "sums term by term": (
        "formula_window_with_weights",
        patched(equality_claims, "equal_by_terms", unequal),
        (("for p in range(3)", "for p in range(2)"), ("for q in range(3)", "for q in range(2)")),
        patched(residues, "_extent", without_the_last),
    ),
    "terms of nested ranges": (
        "formula_sums_of_spelled_taps",
        patched(folds, "_in_steps", nothing),
        (("for q in range(20)]", "for q in (*range(19), 18 + (p < 1))]"),),
        patched(folds, "_in_step", without_the_end),
    ),
    "long loops": (
        "formula_long_loop",
        patched(timeline, "_unrolled", spelled_out),
        (("loop(60)", "loop(59)"),),
        patched(timeline.Loop, "trips", property(sixty)),
    ),
    "bounds of choices": (
        "formula_places_compared_in_f32",
        patched(rounded_integers, "_or", anywhere),
        (("place < 1 << 24", "place >= 1 << 24"), ("lambda r: where(r <", "lambda r: where(r >=")),
        patched(rounded_integers, "_or", where_it_does_not_hold),
    ),
}
"""A kernel of the corpus, what switches the rule off, edits that make the kernel wrong, and what drops the check."""


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("name", RULES)
def test_a_kernel_is_proved_by_the_rule_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, switch_off, _, _ = RULES[name]
    assert_proved(load_edited(kernel))

    switch_off(monkeypatch)

    assert not isinstance(verify(load_edited(kernel), solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("name", RULES)
def test_a_wrong_kernel_slips_past_without_the_check_of_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _, edits, without = RULES[name]
    assert not isinstance(verify(load_edited(kernel, *edits), solver="z3", budget=NO_RUNS).verdict, Proved)

    without(monkeypatch)

    assert_proved(load_edited(kernel, *edits))


@pytest.mark.share(128, among="verifier: checks of values")
def test_a_sum_of_32_bits_is_none_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, edit = "formula_integers_widened", ("wrapped(x_at(r) + 1, i32) * 2", "(x_at(r) + 1) * 2")
    assert_proved(load_edited(kernel))
    assert not isinstance(verify(load_edited(kernel, edit), solver="z3", budget=NO_RUNS).verdict, Proved)

    monkeypatch.setattr(wrapping, "_bits", in_64_bits)

    assert_proved(load_edited(kernel, edit))


@pytest.mark.share(128, among="verifier: checks of values")
def test_quotients_by_several_numbers_are_nested_where_one_divides_all(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, wrong = "tiles_by_quotients_of_quotients", load("tiles_by_quotient_and_another_remainder")
    assert_proved(load_edited(kernel))
    assert not isinstance(verify(wrong, solver="z3", budget=NO_RUNS).verdict, Proved)

    with monkeypatch.context() as patch:
        patch.setattr(tile_index, "_divides", always)
        assert_proved(wrong)
    monkeypatch.setattr(tile_index, "_divides", unequal)

    assert not isinstance(verify(load_edited(kernel), solver="z3", budget=NO_RUNS).verdict, Proved)
