"""Which infinities a value may be: checked beside the numbers of all small expressions, and of what masks make."""

from __future__ import annotations

from itertools import product
from math import isinf, nan

import numpy as np
import pytest

from argus.core import algebra
from argus.core.algebra import const, le, lt, sym
from argus.core.elementwise import ELEMENT_OPS, evaluate_op
from argus.core.index import Cond, Symbol
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.infinities import infinities

N, V = Symbol("N", "size", 0), Symbol("v", "fresh", 0)
X = element("X", sym(V))
NOTHING = infinity(-1)
BOUNDED = {
    "reciprocal",
    "rsqrt",
    "tanh",
    "tanh_accurate",
    "erf",
    "sin",
    "cos",
    "sign",
}  # but for 0, where they have no value
NUMBERS = (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
LEAVES = (infinity(1), NOTHING, element("X"), expr(-1), expr(0), expr(2))


def nothing(cond: Cond) -> bool:
    return cond is algebra.TRUE


def numbers(of: Expr) -> tuple[float, ...]:
    """What a leaf may be."""
    known = {infinity(1): (float("inf"),), NOTHING: (float("-inf"),), expr(-1): (-1.0,), expr(0): (0.0,)}
    return NUMBERS if of is element("X") else known.get(of, (2.0,))


def undefined(name: str, args: tuple[float, ...]) -> bool:
    """Whether the real operation has no value there, for which hardware may have an infinity."""
    if name == "pow":
        return args[0] == 0 and args[1] < 0
    return (name == "div" and args[1] == 0) or (name in ("reciprocal", "rsqrt") and args[0] == 0)


@pytest.mark.share(6)
@pytest.mark.parametrize(
    "name", [*sorted(set(ELEMENT_OPS) - {"fma", "clamp", "philox"}), pytest.param("clamp", marks=pytest.mark.share(8))]
)
def test_no_operation_on_operations_has_an_infinity_that_is_not_expected(name: str) -> None:
    inner = [(leaf, each) for leaf in LEAVES for each in numbers(leaf)]
    inner += [
        (fn(op, leaf), nan if undefined(op, (each,)) else evaluate_op(op, each))
        for op in ("neg", "exp2", "log", "reciprocal")
        for leaf in LEAVES
        for each in numbers(leaf)
    ]
    met = 0
    for parts in product(inner, repeat=ELEMENT_OPS[name].arity):
        args = tuple(each for _, each in parts)
        if any(np.isnan(args)) or undefined(name, args):
            continue
        found = evaluate_op(name, *args)
        if isinf(found):
            met += 1
            assert int(np.sign(found)) in infinities(fn(name, *(of for of, _ in parts)), nothing), (name, args)
    assert bool(met) == (name not in BOUNDED)


def weight(guard: Expr, score: Expr) -> Expr:
    return fn("exp2", fn("sub", score, guard))


SEEN = choose(lt(sym(V), sym(N)), X, NOTHING)
HIGH = reduce_("max", V, 0, sym(N), X)


MASKED: list[tuple[Expr, set[int]]] = [
    (SEEN, {-1}),
    (HIGH, {-1}),
    (reduce_("max", V, 0, 4, X), set()),
    (reduce_("max", V, 0, 4, SEEN), {-1}),
    (weight(HIGH, SEEN), {1}),
    (weight(choose(compare("==", HIGH, NOTHING), 0, HIGH), SEEN), set()),
    (weight(choose(compare("==", SEEN, NOTHING), 0, HIGH), SEEN), {1}),
    (weight(fn("max", HIGH, X), SEEN), set()),
    (weight(fn("min", HIGH, X), SEEN), {1}),
    (fn("mul", SEEN, fn("max", X, 1)), {-1}),
    (fn("mul", SEEN, X), {-1, 1}),
    (fn("log", fn("exp2", X)), set()),
    (fn("log", X), {-1}),
    (fn("tanh", SEEN), set()),
    (reduce_("sum", V, 0, sym(N), SEEN), {-1}),
    (reduce_("min", V, 0, sym(N), X), {1}),
]


@pytest.mark.parametrize(("of", "wanted"), MASKED)
def test_masks_leave_the_infinities_that_they_make(of: Expr, wanted: set[int]) -> None:
    assert infinities(of, nothing) == wanted


def test_the_maximum_of_what_has_an_element_is_a_number() -> None:
    there = {lt(const(0), sym(N)), le(const(1), sym(N))}
    assert infinities(HIGH, lambda cond: cond in there or cond is algebra.TRUE) == set()
    assert infinities(HIGH, nothing) == {-1}
