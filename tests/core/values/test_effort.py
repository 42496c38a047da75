"""Normal forms that grow end with a reason within the budget's terms, and count alike whatever was computed before."""

# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false
# Reason: names of sizes in annotations.
from itertools import count
from sys import setprofile

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Assert, Equals, walk
from argus.core.ir.pretty import claim_in_brief, claim_text
from argus.core.query import Budget
from argus.core.values.atoms import ONE, cell, of_atom, opaque_atom
from argus.core.values.effort import TOO_LONG, Effort, size, size_of_product, size_within, unlimited
from argus.core.values.equality import Equal, Undecided, by_normal_forms
from argus.core.values.expr import Expr, Fn, choose, compare, element, fn
from argus.core.values.polynomial import add, mul
from argus.core.values.polynomial import exp as exp_of
from argus.core.verdict import Proved, Unknown
from argus.language import (
    Int,
    Tensor,
    Value,
    assert_equals,
    block_id,
    ceil_div,
    copy,
    elements,
    exp,
    f32,
    kernel,
    load,
    log,
    sm_90a,
    spread,
    tanh,
    where,
)
from argus.verifier.kernel import verify

X, Z = element("X", 0), element("Z", 0)
TERMS = 20_000
CALLS_A_TERM = 60
"""Functions called for each term that is counted, at most: 120 and more if terms counted without their factors."""


def mish(value: Expr, *, strict: bool) -> Expr:
    soft = fn("log", fn("add", 1, fn("exp", value)))
    return value * fn("tanh", choose(compare("<" if strict else "<=", 20, value), value, soft))


def thrice(*, strict: bool) -> Expr:
    return mish(mish(mish(X, strict=strict), strict=strict), strict=strict)


def test_forms_that_grow_are_given_up_with_a_reason() -> None:
    effort = Effort(TERMS)
    answer = by_normal_forms(thrice(strict=True), thrice(strict=False), effort=effort)
    assert answer == Undecided(frozenset(), TOO_LONG)
    assert effort.is_spent


def product(factors: int, one: Expr, two: Expr) -> Fn:
    found = one + two
    for number in range(1, factors):
        found = found * (one + number * two)
    return found


def test_the_same_comparison_counts_alike_whatever_was_computed_before() -> None:
    counts = list[int]()
    for _ in range(2):
        effort = unlimited()
        before = effort.left
        assert by_normal_forms(product(9, X, Z), product(9, X, Z * 1), effort=effort) == Equal(frozenset())
        counts.append(before - effort.left)
    assert counts[0] == counts[1] > 0


def test_a_longer_comparison_counts_more() -> None:
    def counted(factors: int) -> int:
        effort = unlimited()
        before = effort.left
        by_normal_forms(product(factors, X, Z), product(factors, Z, X), effort=effort)
        return before - effort.left

    assert counted(4) < counted(8) < counted(12)


def test_a_term_counts_with_its_factors() -> None:
    x, y = (of_atom(cell(name, (algebra.const(0),))) for name in ("X", "Y"))
    assert size(ONE) == 1 + 1
    assert size(add(mul(x, y), ONE)) == 1 + (1 + 2) + 1
    assert size(exp_of(mul(x, y))) == 1 + (1 + 1 + 2)
    assert size_of_product(add(x, y), x) == 5 * 2 + 3 * 3


def test_what_is_within_a_function_counts_once() -> None:
    x, y = (of_atom(cell(name, (algebra.const(0),))) for name in ("X", "Y"))
    shared = add(x, y)
    one, two = (of_atom(opaque_atom(name, (shared,))) for name in ("f", "g"))
    assert size_within(shared) == size(shared) == 5
    assert size_within(one) == size(one) + size(shared)
    assert size_within(add(one, two)) == size(add(one, two)) + size(shared)


def by_tests(times: int, *, strict: bool) -> Expr:
    """Products of choices whose tests are of such products."""
    found: Expr = X
    for _ in range(times):
        test = compare("<" if strict else "<=", 1, found)
        found = found * choose(test, fn("exp", found), fn("add", found, 1))
    return found


def in_tests(times: int, *, strict: bool) -> Expr:
    """Choices whose tests are of exponentials of such choices."""
    found: Expr = X
    for _ in range(times):
        grown = fn("exp", found)
        found = choose(compare("<" if strict else "<=", 1, grown), grown * found, fn("add", found, X))
    return found


def _calls_and_terms(one: Expr, two: Expr, effort: Effort) -> tuple[int, int, Equal | Undecided]:
    """The functions called and the terms counted where two expressions are compared, and the answer."""
    calls, before = count(), effort.left
    setprofile(lambda _frame, event, _argument: next(calls) if event in ("call", "c_call") else None)
    try:
        answer = by_normal_forms(one, two, effort=effort)
    finally:
        setprofile(None)
    return next(calls), before - effort.left, answer


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param(thrice(strict=True), thrice(strict=False), id="functions of functions"),
        pytest.param(by_tests(7, strict=True), by_tests(7, strict=False), id="tests of products"),
        pytest.param(in_tests(6, strict=True), in_tests(6, strict=False), id="tests of exponentials"),
    ],
)
def test_what_is_counted_bounds_the_work(one: Expr, two: Expr) -> None:
    calls, terms, answer = _calls_and_terms(one, two, Effort(TERMS))
    assert terms > TERMS
    assert answer == Undecided(frozenset(), TOO_LONG)
    assert calls < CALLS_A_TERM * terms


@kernel(target=sm_90a, threads=64)
def three_times(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    x = load(X.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0)
    for _ in range(3):
        x = x * tanh(where(x > 20.0, x, log(1.0 + exp(x))))
    copy(x, Y.tile((64,), (m,)), edge=0)

    def formula(m: Int) -> Value:
        found = elements(X)(m)
        for _ in range(3):
            found = found * tanh(where(found >= 20, found, log(1 + exp(found))))
        return found

    assert_equals(Y, formula)


@kernel(target=sm_90a, threads=64)
def once(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    x = load(X.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0)
    copy(x * (x + 1.0) * (x + 2.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda m: (elements(X)(m) + 2) * (elements(X)(m) + 1) * elements(X)(m))


@pytest.mark.share(3)
def test_a_kernel_is_unknown_for_that_reason_within_the_budget() -> None:
    budget = evolve(Budget(), runs=0, terms=TERMS)
    verdict = verify(three_times, solver="z3", budget=budget).verdict
    assert isinstance(verdict, Unknown)
    assert verdict.reason.endswith(TOO_LONG)
    assert "`--seconds`" in verdict.attempt
    assert isinstance(verify(once, solver="z3", budget=budget).verdict, Proved)
    few = verify(once, solver="z3", budget=evolve(budget, terms=10)).verdict
    assert isinstance(few, Unknown)
    assert few.reason.endswith(TOO_LONG)


@pytest.mark.parametrize(("times", "written"), [(2, True), (9, False)])
def test_messages_leave_out_a_formula_whose_text_is_long(times: int, written: bool) -> None:
    value = X
    for _ in range(times):
        value = mish(value, strict=True)
    (claim,) = (each.claim for each in walk(once.trace().body) if isinstance(each, Assert))
    assert isinstance(claim, Equals)
    claim = evolve(claim, formula=value)
    brief = claim_in_brief(claim)
    assert (brief == claim_text(claim)) if written else (brief == "assert_equals(Y, ...)")
