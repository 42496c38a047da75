"""Facts about products with a common factor: the conditions imply them, and they decide the intended queries."""

from __future__ import annotations

from itertools import product

import pytest

from argus.core.algebra import add, all_of, floordiv, le, lt, maximum, mul, sub, sym
from argus.core.index import Cond, Symbol
from argus.core.query import Budget, Query, Sat, Unsat
from argus.core.walk import evaluate, symbols
from argus.solvers.registry import get
from argus.solvers.session.product_facts import has_product_facts, product_facts
from argus.solvers.session.slicing import abstract_products

d, p, q, t = (sym(Symbol(name, "size", 0, 6)) for name in "dpqt")
share = floordiv(mul(p, 7), 3)
ORDERED = (le(p, q), lt(mul(q, d), mul(p, d)))
ROUNDED = (lt(mul(mul(p, 7), d), mul(mul(share, d), 3)), le(1, mul(t, d)))
GREATER = (le(p, t), lt(mul(t, d), mul(maximum(sub(p, q), t), d)), le(sub(p, q), t))
NEGATIVE = (le(p, q), lt(mul(q, sub(d, 3)), mul(p, sub(d, 3))))
CASES = {"ordered": ORDERED, "rounded": ROUNDED, "greater": GREATER}


def general(conditions: tuple[Cond, ...]) -> Query:
    return Query(tuple(map(abstract_products, conditions)))


@pytest.mark.parametrize("conditions", [*CASES.values(), NEGATIVE], ids=[*CASES, "negative"])
def test_facts_hold_wherever_the_conditions_do(conditions: tuple[Cond, ...]) -> None:
    """Of each condition alone, and of all together."""
    for given in (*((each,) for each in conditions), conditions, (le(0, mul(share, d)), le(mul(p, d), mul(q, d)))):
        facts = product_facts(given)
        assert has_product_facts(given) == bool(facts)
        names = sorted(symbols(*given, *facts), key=str)
        for numbers in product(range(7), repeat=len(names)):
            model = dict(zip(names, numbers, strict=True))
            if evaluate(all_of(given), model):
                assert evaluate(all_of(facts), model), (given, model)


@pytest.mark.parametrize("conditions", CASES.values(), ids=CASES.keys())
def test_facts_make_contradictory_products_linear(conditions: tuple[Cond, ...]) -> None:
    solver, budget = get("z3"), Budget()
    assert isinstance(solver.check(general(conditions), budget), Sat)
    assert isinstance(solver.check(general((*conditions, *product_facts(conditions))), budget), Unsat)


def test_a_factor_that_may_be_negative_yields_no_facts() -> None:
    below = sym(Symbol("b", "fresh", -3, 3))
    facts = product_facts((le(p, q), lt(mul(q, below), mul(p, below))))
    assert le(mul(p, below), mul(q, below)) not in facts


def test_products_without_a_common_factor_yield_no_facts() -> None:
    assert product_facts((le(mul(p, d), mul(q, t)),)) == ()
    assert product_facts((le(add(p, q), t),)) == ()
    assert not has_product_facts((le(mul(p, d), mul(q, t)), le(add(p, q), t)))


QUOTIENTS = (lt(t, mul(mul(p, q), d)), le(p, floordiv(floordiv(t, d), q)), le(1, d), le(1, q))


def test_facts_about_quotients_hold_and_decide_that_a_coordinate_is_below_its_extent() -> None:
    """(t // d) // q < p where t < p q d: the first coordinate of an element of a flattened tensor."""
    place, shape = floordiv(floordiv(t, d), q), mul(mul(p, q), d)
    for given in ((lt(t, shape), le(0, place)), (le(shape, t), le(0, place)), (le(place, shape),)):
        facts = product_facts(given)
        assert facts
        for numbers in product(range(14), range(1, 4), range(1, 4), range(1, 4)):
            model = dict(zip((each.symbol for each in (t, p, q, d)), numbers, strict=True))
            model[t.symbol] -= 4  # a quotient rounds down, of negative numbers too
            if evaluate(all_of(given), model):
                assert evaluate(all_of(facts), model), model
    solver, budget = get("cvc5"), Budget()
    assert isinstance(solver.check(general(QUOTIENTS), budget), Sat)
    assert isinstance(solver.check(general((*QUOTIENTS, *product_facts(QUOTIENTS))), budget), Unsat)
