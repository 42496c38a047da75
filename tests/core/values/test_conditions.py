from __future__ import annotations

from fractions import Fraction
from math import isnan

from argus.core.algebra import le, lt, minimum, mul
from argus.core.index import Index
from argus.core.query import Budget, Sat, Unsat
from argus.core.values.conditions import Apart, Certain, Integers
from argus.core.values.drawn import seeded
from argus.core.values.equality import Different, Equal, Undecided, equal
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, infinity
from argus.core.walk import symbols
from argus.solvers.z3_backend import Z3
from tests.core.values.formulas import NONE, B, C, K, N, R, exp, greatest, log, product, size, total, v_c, x

S = element("scale", R)


def test_a_divisor_that_may_be_0_is_left() -> None:
    answer = equal(v_c / v_c, expr(1))

    assert isinstance(answer, Undecided)
    assert not answer.reason
    assert [type(each) for each in answer.conditions] == [Apart]


def test_what_the_formula_divides_by_is_the_formula_s_own_condition() -> None:
    answer = equal(v_c * fn("reciprocal", S), v_c / S)

    assert isinstance(answer, Equal)
    assert [type(each) for each in answer.conditions] == [Apart]


def test_conditions_are_compared_where_the_facts_decide_their_minima() -> None:
    def root(length: Index) -> Expr:
        return fn("sqrt", S + total(0, length, lambda j: (x(j) + v_c) * (x(j) + v_c)))

    clipped, held = minimum(N, K), (le(N, K),)

    assert isinstance(equal(root(clipped), root(N), held), Equal)
    assert not isinstance(equal(root(clipped), root(N)), Equal)
    assert not isinstance(equal(root(clipped), root(K), held), Equal)


def test_a_split_needs_its_order_which_a_solver_answers() -> None:
    held = total(0, mul(K, B), x) + total(mul(K, B), N, x)

    open_answer = equal(held, total(0, N, x))
    settled = equal(held, total(0, N, x), (le(mul(K, B), N),))

    assert isinstance(open_answer, Undecided)
    (condition,) = open_answer.conditions
    assert isinstance(condition, Integers)
    assert isinstance(Z3().check(condition.query, Budget.about(1.0)), Sat)
    assert isinstance(settled, Equal)


def test_a_condition_is_asked_under_the_ranges_around_it() -> None:
    triangle = total(0, N, lambda i: total(i, N, lambda j: element("Z", i, j)))

    answer = equal(triangle + 0, triangle)
    alone = equal(triangle, expr(0))

    assert isinstance(answer, Equal)
    goals = [each for each in answer.conditions if isinstance(each, Integers)]
    assert goals
    assert all(isinstance(Z3().check(each.query, Budget.about(1.0)), Unsat) for each in goals)
    assert isinstance(alone, Different)


def test_the_root_of_a_square_is_no_identity() -> None:
    assert isinstance(equal(fn("sqrt", v_c * v_c), v_c), Different)
    assert not isinstance(equal(fn("sqrt", v_c * v_c), fn("abs", v_c)), Different)


def test_a_maximum_is_scaled_by_what_is_above_0_only() -> None:
    assert isinstance(equal(greatest(0, N, lambda j: x(j) * 3), 3 * greatest(0, N, x)), Equal)
    assert isinstance(equal(greatest(0, N, lambda j: x(j) * -3), -3 * greatest(0, N, x)), Different)
    assert isinstance(equal(greatest(0, N, lambda j: x(j) * S), S * greatest(0, N, x)), Different)


def test_a_logarithm_of_a_product_is_not_split_for_unknown_signs() -> None:
    assert not isinstance(equal(log(v_c * S), log(v_c) + log(S)), Equal)
    assert isinstance(equal(log(exp(v_c) * exp(S)), v_c + S), Equal)


def test_a_set_that_may_be_empty_is_left() -> None:
    n = size("n", 0)
    held = exp(v_c - greatest(0, n, x)) * exp(greatest(0, n, x))

    answer = equal(held, exp(v_c))
    known = equal(held, exp(v_c), (lt(0, n),))

    assert isinstance(answer, Undecided)
    assert all(isinstance(each, Integers | Certain) for each in answer.conditions)
    assert isinstance(known, Equal)


def test_a_formula_without_a_value_is_equal_to_nothing() -> None:
    assert not isinstance(equal(log(expr(-1)), log(expr(-1))), Equal)
    assert not isinstance(equal(expr(1), infinity(1) - infinity(1)), Equal)


def test_an_unknown_function_of_minus_infinity_is_not_decided() -> None:
    held = fn("mystery", choose(le(C, K), v_c, NONE))

    answer = equal(held, held)

    assert isinstance(answer, Undecided)
    assert answer.reason == "an argument of `mystery` may be infinite"


def test_a_product_from_an_end_where_its_body_is_0_is_not_decided() -> None:
    held = product(0, 2, expr) * product(2, N, expr)

    assert not isinstance(equal(held, product(2, N, expr)), Equal)


def test_cases_of_signs_that_contradict_each_other_are_left_out() -> None:
    low_first = fn("max", fn("min", v_c, 1), -1)
    nested = choose(compare("<", v_c, -1), -1, choose(compare("<", 1, v_c), 1, v_c))

    assert isinstance(equal(low_first, nested), Equal)
    assert isinstance(equal(low_first, choose(compare("<", v_c, -1), -1, v_c)), Different)


def test_rounding_at_a_jump_is_no_witness() -> None:
    near_one = exp(v_c - S) * exp(S) * exp(-v_c)
    jump = fn("round", near_one * Fraction(1, 2) + 1)

    sizes = dict.fromkeys(symbols(C, R), 1)
    for seed in range(20):
        assert isnan(float(Evaluation(sizes, seeded(seed)).value(jump)))
        assert isnan(float(Evaluation(sizes, seeded(seed)).value(choose(compare("==", near_one, 1), 1, 0))))


def test_a_sum_of_exponentials_may_be_0_where_their_arguments_are_minus_infinity() -> None:
    few = size("few", 0)
    masked = total(0, N, lambda j: exp(choose(lt(j, few), element("x", j), NONE)))

    answer = equal(masked / masked, expr(1))

    assert isinstance(answer, Undecided)
    assert not answer.reason
    assert all(isinstance(each, Integers) for each in answer.conditions)
    solver = Z3()
    goals = [each.query for each in answer.conditions if isinstance(each, Integers)]
    assert any(isinstance(solver.check(each, Budget.about(1.0)), Sat) for each in goals)
