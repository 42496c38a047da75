"""Numbers that a type may not have are rounded: an unknown function where something is decided by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from argus.core.dtype import DType
from argus.core.index import Cond
from argus.core.proof.values.held import elements
from argus.core.proof.values.held.rounded_integers import operation
from argus.core.query import Budget
from argus.core.values.expr import Expr
from argus.core.verdict import Unknown
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import assert_proved, load_edited

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


@pytest.mark.share(64, among="verifier: checks of values")
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
