"""Ranges that wrap around: reduced over what is left of them, with the same numbers; what is no rotation stays."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.proof.values.held.rotated import unrotated
from argus.core.proof.values.held.terms import replaced
from argus.core.values.drawn import seeded
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, ReduceOp, choose, element, expr, fn, infinity, reduce_

V, J, D, S = (Symbol(name, "fresh", 0) for name in "vjds")
v, j, d, s = (algebra.sym(each) for each in (V, J, D, S))
OPS: tuple[ReduceOp, ...] = ("sum", "product", "max", "min")


def turned(by: Index | int, around: Index = d) -> Index:
    return algebra.mod(algebra.add(v, by), around)


def tile(at: Index) -> Expr:
    place = algebra.add(algebra.mul(at, 4), j)
    one = choose(algebra.lt(place, algebra.mul(d, 3)), element("X", place), expr(0))
    return reduce_("sum", J, 0, 4, one)


def number(op: ReduceOp, body: Expr, depth: int, start: int) -> float:
    names = {D: algebra.const(depth), S: algebra.const(start)}
    return float(Evaluation({}, seeded(0), seed=0).value(replaced(reduce_(op, V, 0, d, body), names)))


ROTATED: dict[str, tuple[Expr, Expr]] = {
    "elements": (element("X", turned(s)), element("X", v)),
    "a number less": (element("X", turned(-3)), element("X", v)),
    "tiles with an edge": (tile(turned(algebra.mod(s, 8))), tile(v)),
    "two factors": (
        fn("mul", element("X", turned(s)), element("Y", turned(s))),
        fn("mul", element("X", v), element("Y", v)),
    ),
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", ROTATED)
def test_a_range_that_wraps_around_has_each_number_once(op: ReduceOp, name: str) -> None:
    body, straight = ROTATED[name]

    assert unrotated(V, d, body) is straight
    for depth, start in ((1, 0), (1, 5), (3, 2), (5, 7)):
        assert number(op, body, depth, start) == pytest.approx(number(op, straight, depth, start))


OTHERS: dict[str, Expr] = {
    "another modulus": element("X", turned(s, algebra.add(d, 1))),
    "a modulus below": element("X", turned(s, algebra.sub(d, 1))),
    "two offsets": fn("mul", element("X", turned(s)), element("Y", turned(algebra.add(s, 1)))),
    "one factor in order": fn("mul", element("X", turned(s)), element("Y", v)),
    "a guard in order": choose(algebra.le(v, s), element("X", turned(s)), infinity(-1)),
    "every other one": element("X", algebra.mod(algebra.mul(v, 2), d)),
    "an offset that is summed over too": reduce_("sum", J, 0, 4, element("X", turned(j))),
    "an offset of the variable": element("X", turned(algebra.floordiv(v, 2))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_rotation_stays(name: str) -> None:
    assert unrotated(V, d, OTHERS[name]) is OTHERS[name]


def test_an_inner_variable_of_the_same_name_is_not_replaced() -> None:
    body = fn("mul", element("X", turned(s)), reduce_("sum", V, 0, 4, element("Y", turned(s))))

    assert unrotated(V, d, body) is body
