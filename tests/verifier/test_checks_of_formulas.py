"""Rules of formulas (remainders, extrema, stores from the end): each proves a kernel, and its check refuses another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from argus.core.ir import Equals
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.outputs import equality_claims, writes
from argus.core.proof.values.held import elements, places_of_extrema, residues
from argus.core.query import Budget
from argus.core.values import wrapping
from argus.core.values.expr import Expr
from argus.core.verdict import Proved
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import Patch, always, assert_proved, load_edited

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


def patched(module: object, name: str, by: Callable[..., object]) -> Patch:
    return lambda patch: patch.setattr(module, name, by)


RULES: dict[str, tuple[str, Patch, Edit, Patch]] = {
    "cases of remainders": (
        "formula_in_cases_of_remainders",
        patched(equality_claims, "equal_by_residues", unequal),
        ("(y % 2 + 2 * e,)", "(1 - y % 2 + 2 * e,)"),
        patched(residues, "_equal", equal),
    ),
    "places of extrema": (
        "formula_arg_max_in_64_bits",
        patched(equality_claims, "as_integers", nothing),
        ("    assume(N <= 1 << 24)\n", ""),
        patched(places_of_extrema, "_is_whole", always),
    ),
    "integers modulo 2^64": (
        "formula_integers_of_64_bits",
        patched(wrapping, "_unwrapped", unchanged),
        ("wrapped(x_at(r) - x_at(r) * z_at(r) - z_at(r), i64)", "x_at(r) - x_at(r) * z_at(r) - z_at(r)"),
        patched(elements, "_wrapped", unchanged),
    ),
    "integers that are narrowed": (
        "formula_integers_on_mi300x",
        patched(wrapping, "_unwrapped", unchanged),
        ("wrapped(elements(X)(r) * elements(Z)(r) - 3, i32)", "elements(X)(r) * elements(Z)(r) - 3"),
        patched(elements, "_wrapped", unchanged),
    ),
    "stores from the end": (
        "formula_sums_from_the_end",
        patched(writes, "from_the_start", as_they_are),
        ("total(lambda j: X[r, j], over=(n, N))", "total(lambda j: X[r, N - 1 - j], over=n + 1)"),
        patched(equality_claims, "claim_from_the_end", as_it_is),
    ),
}
"""A kernel of the corpus, what switches the rule off, an edit that makes the kernel wrong, and what drops the check."""


@pytest.mark.share(64, among="verifier: checks of values")
@pytest.mark.parametrize("name", RULES)
def test_a_kernel_is_proved_by_the_rule_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, switch_off, _, _ = RULES[name]
    assert_proved(load_edited(kernel))

    switch_off(monkeypatch)

    assert not isinstance(verify(load_edited(kernel), solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(64, among="verifier: checks of values")
@pytest.mark.parametrize("name", RULES)
def test_a_wrong_kernel_slips_past_without_the_check_of_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _, edit, without = RULES[name]
    assert not isinstance(verify(load_edited(kernel, edit), solver="z3", budget=NO_RUNS).verdict, Proved)

    without(monkeypatch)

    assert_proved(load_edited(kernel, edit))


@pytest.mark.share(64, among="verifier: checks of values")
def test_a_sum_of_32_bits_is_none_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, edit = "formula_integers_widened", ("wrapped(x_at(r) + 1, i32) * 2", "(x_at(r) + 1) * 2")
    assert_proved(load_edited(kernel))
    assert not isinstance(verify(load_edited(kernel, edit), solver="z3", budget=NO_RUNS).verdict, Proved)

    monkeypatch.setattr(wrapping, "_bits", in_64_bits)

    assert_proved(load_edited(kernel, edit))
