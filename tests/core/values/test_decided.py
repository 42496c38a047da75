"""What facts decide in normal forms, what they leave open, and signs of sums over ranges."""

from __future__ import annotations

from itertools import product as every

from argus.core.algebra import le, lt, minimum, mul
from argus.core.index import Cond
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, ZERO, Poly
from argus.core.values.conditions import Apart, Condition, Integers, NotNegative, Positive, beyond, positive, settled
from argus.core.values.decided import open_tests, resolved
from argus.core.values.drawn import seeded
from argus.core.values.equality import Equal, Undecided, by_normal_forms
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, choose, expr, fn
from argus.core.values.normal import NormalForm, normal_form
from argus.core.values.truth import above
from argus.core.walk import evaluate, symbols
from tests.core.values.formulas import NONE, B, C, K, N, R, exp, log, product, total, v_c, x

Facts = tuple[Cond, ...]


def form(of: Expr) -> Poly:
    found = normal_form(of)
    assert isinstance(found, NormalForm)
    assert isinstance(found.value, Poly)
    return found.value


def left_open(of: Expr, *facts: Cond) -> set[Cond]:
    return set(open_tests(normal_form(of), facts))


WEIGHTS = total(K, N, lambda j: exp(x(j)))
ROOT = form(fn("pow", expr(2), expr(1) / 3))


def test_a_sum_over_a_range_of_what_is_above_0_is_above_0_if_the_range_has_an_element() -> None:
    scaled = polys.product([form(WEIGHTS), form(exp(v_c)), ROOT])

    assert positive(form(WEIGHTS)) == positive(scaled) == (lt(K, N),)
    (k,), (n,), rows = symbols(K), symbols(N), dict.fromkeys(symbols(R), 0)
    for low, high in every(range(1, 5), repeat=2):
        if low < high:
            assert Evaluation({k: low, n: high, **rows}, seeded(low)).value(WEIGHTS) > 0


def test_a_sum_over_a_range_is_not_0_whichever_prefix_comes_first() -> None:
    (k,), (n,) = symbols(K), symbols(N)
    for weights in (form(WEIGHTS), polys.scale(form(WEIGHTS), -1)):
        (needs,) = settled((Apart(weights),), ())
        assert isinstance(needs, Integers)
        for low, high in every(range(1, 5), repeat=2):
            assert bool(evaluate(needs.goal, {k: low, n: high})) is (low != high)
    longer, shorter = (form(total(0, mul(K, count), lambda j: exp(x(j)))) for count in (3, 2))
    for one, two in ((longer, shorter), (shorter, longer)):
        assert settled((Apart(polys.sub(one, two)),), (lt(0, K),)) == frozenset()


def test_a_value_is_not_divided_by_the_sum_over_a_range_without_an_element() -> None:
    """With the ends of the range in reverse, the difference of its prefixes is not 0, but the sum is."""
    held = v_c * WEIGHTS / WEIGHTS

    assert isinstance(by_normal_forms(held, v_c, (lt(K, N), le(K, N))), Equal)
    assert isinstance(by_normal_forms(held, v_c, (le(K, N),)), Undecided)
    assert le(K, N) in {each.goal for each in needed(held, v_c, lt(N, K)) if isinstance(each, Integers)}


def test_signs_of_other_differences_are_not_known() -> None:
    unlike = total(0, N, lambda j: exp(x(j))) - total(0, K, lambda j: exp(x(j) * 2))
    twice = 2 * total(0, N, lambda j: exp(x(j))) - total(0, K, lambda j: exp(x(j)))

    assert positive(polys.scale(form(WEIGHTS), -1)) == (lt(N, K),)
    assert positive(form(total(K, N, x))) is None
    assert positive(form(product(0, N, lambda j: exp(x(j))) - product(0, K, lambda j: exp(x(j))))) is None
    assert positive(form(unlike)) is None
    assert positive(form(twice)) is None
    assert positive(polys.mul(form(WEIGHTS), form(v_c))) is None


def test_a_condition_says_the_same_of_what_is_scaled_by_numbers_above_0_alone() -> None:
    sums = form(total(0, N, x))
    larger, unknown = polys.product([sums, form(exp(v_c)), ROOT]), polys.mul(sums, form(v_c))
    kinds: tuple[type[Apart | NotNegative | Positive], ...] = (Apart, Positive, NotNegative)
    for kind in kinds:
        assert not beyond((kind(larger),), (kind(sums),))
        assert beyond((kind(unknown),), (kind(sums),))
    assert beyond((Positive(polys.scale(sums, -1)),), (Positive(sums),))
    assert not beyond((Positive(sums),), (Positive(larger),))
    assert not beyond((Apart(polys.scale(sums, -1)),), (Apart(sums),))


def test_facts_decide_what_is_above_0() -> None:
    sums = form(WEIGHTS)

    assert resolved(above(sums), (lt(K, N),)) is ONE
    assert resolved(above(polys.scale(sums, -1)), (lt(K, N),)) is ZERO
    assert resolved(above(sums), (le(K, N),)) is above(sums)


def test_tests_and_orders_that_facts_leave_open() -> None:
    masked, clipped = choose(le(C, K), v_c, 0), total(0, minimum(N, mul(K, B)), x)

    assert left_open(masked) in ({le(C, K)}, {lt(K, C)})
    assert left_open(masked, le(C, K)) == left_open(masked, lt(K, C)) == set()
    assert le(N, mul(K, B)) in left_open(clipped)
    assert left_open(clipped, le(N, mul(K, B))) == set()
    halves = total(0, N, lambda j: choose(le(j, K), exp(x(j)), 0) / (1 + exp(x(j))))
    assert symbols(*left_open(halves)) == symbols(K, N)


def needed(held: Expr, formula: Expr, *facts: Cond) -> frozenset[Condition]:
    answer = by_normal_forms(held, formula, facts)
    assert isinstance(answer, Undecided)
    assert not answer.reason
    return answer.conditions


def test_what_shows_a_condition_is_not_needed_where_the_formula_says_the_condition() -> None:
    """Of the sum of weights from K to N, what is known by its shape is that K < N is enough."""
    masked = total(0, N, lambda j: exp(choose(le(K, j), x(j), NONE)))

    assert isinstance(by_normal_forms(log(masked), log(WEIGHTS), (le(K, N),)), Equal)
    (needs,) = needed(exp(log(masked)), masked)
    assert isinstance(needs, Integers)


def test_a_value_divided_by_0_where_facts_hold_leaves_nothing_open() -> None:
    of = v_c / choose(lt(K, N), WEIGHTS, expr(0))
    assert isinstance(normal_form(of), NormalForm)
    assert left_open(of)
    assert not left_open(of, le(N, K))
