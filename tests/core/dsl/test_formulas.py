"""Formulas of claims: what the language makes of them, and their text, which can be pasted."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import cast

import pytest

from argus import language
from argus.core.algebra import all_of, coord, eq, le, lt, sub, sym
from argus.core.index import Symbol
from argus.core.ir import Assert, Equals, Kernel, walk
from argus.core.ir.pretty import claim_text, pretty
from argus.core.serde import read, write
from argus.core.target import LARGEST_SIZE
from argus.core.values.expr import Choose, Expr, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.rewriting import bound_variables
from argus.language import Tensor, assert_equals, f32, i32, kernel, sm_90a

FORMULAS = {
    "arithmetic": "-(X[r, n] * 2 + 0.1) / (3 - X[r, n]) - (X[r, n] - 1) ** 2",
    "fractions": "X[r, n] * Fraction(1, 3) + abs(X[r, n])",
    "functions": "fma(exp(X[r, n]), sqrt(N), reciprocal(N)) + maximum(X[r, n], -1)",
    "softmax": (
        "exp(X[r, n] - greatest(lambda j: X[r, j], over=N))"
        " / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N)"
    ),
    "ranges": (
        "total(lambda j: X[r, j], over=(r, n + 1))"
        " + least(lambda j: X[r, j], over=N, where=lambda j: eq(j % 2, 0) | ~(j < n))"
    ),
    "places": "argmax(lambda j: X[r, j] * 2, over=N) - argmin(lambda j: X[r, j], over=(1, n), where=lambda j: j < r)",
    "more functions": "erf(X[r, n]) + sin(X[r, n]) * cos(N) - floor(ceil(X[r, n])) * round_even(sign(X[r, n]))",
    "two variables": "product(lambda i, j: X[i, j] + i, over=(r, (n, N)))",
    "tests": "where((n <= r) & (X[r, n] > 0) | (X[r, n] == 1), X[r, n], -inf)",
    "integers of memory": "X[r, scalar(W[0, n])] * scalar(W[0, n])",
    "views": "X.T[n, r] + X.reshape(-1)[r * N + n]",
    "beyond the end": "X.gather((N,), lambda i: (0, i - 1), outside=0.0)[n]",
    "a choice of integers": "X[r, where(n < 2, n, 0)] + maximum(n, 3) + N // 2",
    "nested alike": "total(lambda j: X[r, j] * total(lambda j: X[r, j], over=N), over=N)",
}
READ = element("X", coord(0), coord(1))
ROWS, LENGTH = (Symbol(name, "size", 0, LARGEST_SIZE) for name in "RN")


def traced(formula: str) -> Kernel:
    """A kernel that claims only that Y equals the formula, the text of a function of two coordinates."""

    @kernel(target=sm_90a, threads=32)
    def claiming(X: Tensor["R N", f32], W: Tensor["R N", i32], Y: Tensor["R N", f32]) -> None:
        known = {name: getattr(language, name) for name in language.__all__}
        known |= {"X": X, "W": W, "R": X.shape[0], "N": X.shape[1], "inf": inf, "Fraction": Fraction}
        assert_equals(Y, cast(Callable[[object, object], float], eval(formula, known)))  # noqa: S307 reason: a test's text

    return claiming.trace()


def claim_of(formula: str) -> Equals:
    (claim,) = (stmt.claim for stmt in walk(traced(formula).body) if isinstance(stmt, Assert))
    assert isinstance(claim, Equals)
    return claim


def formula_of(body: str) -> Expr:
    return claim_of(f"lambda r, n: {body}").formula


def test_operators_and_functions_are_operations() -> None:
    n = sym(LENGTH)
    made = fn("add", fn("fma", fn("exp", READ), fn("sqrt", n), fn("reciprocal", n)), fn("max", READ, -1))
    assert formula_of(FORMULAS["functions"]) is made
    assert formula_of("X[r, n] * 0.1") is fn("mul", READ, Fraction(0.1))


def test_elements_are_those_of_the_tensor() -> None:
    assert formula_of("elements(X)(r, n) * 2") is formula_of("X[r, n] * 2")


def test_a_reduction_binds_its_variable() -> None:
    made = formula_of("total(lambda j: X[r, j] + X[r, n], over=(1, n))")
    (j,) = bound_variables(made)
    body = fn("add", element("X", coord(0), sym(j)), READ)
    assert j == Symbol("j", "fresh")
    assert made is reduce_("sum", j, 1, coord(1), body)


PLACES = "least(lambda j: where(X[r, j] == greatest(lambda j_: X[{row}, j_], over=N), j, inf), over=N)"


def test_a_place_is_the_least_of_those_that_have_the_extremum() -> None:
    place = "argmax(lambda j: X[r, j], over=N)"
    assert formula_of(place) is formula_of(PLACES.format(row="r"))
    assert "argmax(lambda j: X[i0, j], over=N)" in claim_text(claim_of(f"lambda r, n: {place}"))
    assert "argmax" not in claim_text(claim_of(f"lambda r, n: {PLACES.format(row='n')}"))


def test_what_differs_by_rounding_or_nan_alone_is_one_function() -> None:
    assert formula_of("log1p(X[r, n])") is formula_of("log(1 + X[r, n])")
    assert formula_of("expm1(X[r, n])") is formula_of("exp(X[r, n]) - 1")
    assert formula_of("tanh_accurate(X[r, n])") is formula_of("tanh(X[r, n])")
    assert formula_of("maximum_nan(X[r, n], 0)") is formula_of("maximum(X[r, n], 0)")


def test_equal_reductions_side_by_side_are_one() -> None:
    made = formula_of("total(lambda j: X[r, j], over=N) / total(lambda j: X[r, j], over=N)")
    assert len(bound_variables(made)) == 1
    assert len(bound_variables(formula_of(FORMULAS["nested alike"]))) == 2


def test_tests_are_choices() -> None:
    other = choose(compare("==", READ, 1), READ, infinity(-1))
    below = choose(le(coord(1), coord(0)), READ, other)
    assert formula_of(FORMULAS["tests"]) is choose(compare("<", 0, READ), below, other)
    assert formula_of("where(eq(r, n), 1.0, X[r, n])") is choose(eq(coord(0), coord(1)), 1, READ)


def test_a_view_reads_its_fill_beyond_its_tensor() -> None:
    made = formula_of(FORMULAS["beyond the end"])
    before = sub(coord(1), 1)
    assert isinstance(made, Choose)
    assert (made.then, made.other) == (element("X", 0, before), expr(0))
    assert made.test is all_of((le(0, before), lt(before, sym(LENGTH)), lt(0, sym(ROWS))))


@pytest.mark.parametrize("name", FORMULAS)
def test_the_text_of_a_claim_can_be_pasted(name: str) -> None:
    claim = claim_of(f"lambda r, n: {FORMULAS[name]}")
    text = claim_text(claim)
    assert text.startswith("assert_equals(Y, lambda i0, i1: ")
    pasted = claim_of(text.removeprefix("assert_equals(Y, ").removesuffix(")"))
    assert pasted.formula is claim.formula


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_read_as_written(name: str) -> None:
    made = traced(f"lambda r, n: {FORMULAS[name]}")
    (found,) = read(write([made]))
    assert isinstance(found, Kernel)
    assert pretty(found) == pretty(made)
    claims = [stmt.claim for each in (made, found) for stmt in walk(each.body) if isinstance(stmt, Assert)]
    one, two = (claim for claim in claims if isinstance(claim, Equals))
    assert one.formula is two.formula
