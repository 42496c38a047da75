"""Each rule's guard: an expression that would be taken for another without it."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.algebra import add, le, lt, minimum, sym
from argus.core.index import Symbol
from argus.core.values import binding
from argus.core.values import polynomial as polys
from argus.core.values.atoms import cell, of_atom
from argus.core.values.conditions import Positive
from argus.core.values.equality import Different, Equal, Undecided, equal
from argus.core.values.expr import Expr, choose, compare, expr, fn
from argus.core.values.truth import holds
from tests.core.values.formulas import ALL, BOTH, NEXT, NONE, B, C, J, K, N, Q, exp, greatest, log, product, v_c, x

_LATER = (N, add(N, B))


def test_negated_maxima_do_not_join() -> None:
    held = fn("max", -greatest(0, N, x), -greatest(*_LATER, x))

    assert isinstance(equal(held, -greatest(0, _LATER[1], x)), Different)


def test_a_maximum_under_a_condition_of_its_own_does_not_join() -> None:
    guarded = greatest(0, N, x, lambda _: le(C, K))

    assert isinstance(equal(fn("max", guarded, greatest(*_LATER, x)), greatest(0, _LATER[1], x)), Different)


def test_ranges_within_different_limits_do_not_meet() -> None:
    causal = greatest(*J, lambda j: choose(le(j, Q), x(j), NONE))

    assert isinstance(equal(fn("max", causal, greatest(*NEXT, x)), greatest(*BOTH, x)), Different)


def test_a_maximum_with_plus_infinity_in_it_is_not_that_of_the_rest() -> None:
    held = greatest(0, add(N, K), lambda j: choose(le(j, K), ALL, x(j)))

    assert not isinstance(equal(held, greatest(add(K, 1), add(N, K), x)), Equal)


def test_the_prefix_of_a_negative_bound_is_not_0() -> None:
    bound, here = sym(Symbol("d", "size")), Symbol("j", "fresh")
    prefix = binding.prefix(here, bound, of_atom(cell("X", (sym(here),))), product=False)
    natural = binding.prefix(here, N, of_atom(cell("X", (sym(here),))), product=False)

    assert polys.mul(holds(lt(0, bound)), prefix) is not prefix
    assert polys.mul(holds(lt(0, K)), natural) is not natural


def test_a_product_of_tests_from_a_later_end_is_not_decided() -> None:
    held = product(1, N, lambda j: choose(compare("<", 0, x(j)), 1, 0))

    answer = equal(held, held)

    assert isinstance(answer, Undecided)
    assert answer.reason == "a product from a lower end at which its body may be 0"


def test_a_sign_decides_that_of_a_shifted_value_on_one_side_only() -> None:
    assert isinstance(equal(choose(compare("<", v_c, 0), 0, v_c + 1), fn("max", v_c + 1, 0)), Different)
    assert isinstance(equal(choose(compare("<", 0, v_c), fn("max", v_c + 1, 0), 0), fn("max", v_c + 1, 0)), Different)
    assert isinstance(
        equal(choose(compare("<", v_c, 0), 0, v_c + 1), choose(compare("<", v_c, 0), 0, fn("max", v_c + 1, 0))), Equal
    )


def test_below_a_minimum_and_a_minimum_below() -> None:
    either = choose(le(minimum(K, B), C), v_c, 0)
    both = choose(le(C, minimum(K, B)), v_c, 0)

    assert isinstance(equal(either, choose(le(K, C), v_c, choose(le(B, C), v_c, 0))), Equal)
    assert isinstance(equal(either, choose(algebra.all_of((le(K, C), le(B, C))), v_c, 0)), Different)
    assert isinstance(equal(both, choose(algebra.all_of((le(C, K), le(C, B))), v_c, 0)), Equal)


@pytest.mark.parametrize("argument", [exp(v_c) - 1, exp(v_c) + expr(-2), exp(v_c) - exp(x(K))])
def test_a_difference_is_not_taken_for_positive(argument: Expr) -> None:
    answer = equal(exp(log(argument)), argument)

    assert isinstance(answer, Undecided)
    assert [type(each) for each in answer.conditions] == [Positive]
