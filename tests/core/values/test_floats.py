"""Values over arrays of points are those of one point at a time, in exact arithmetic."""

from __future__ import annotations

from math import inf, isnan

import pytest

from argus.core import algebra
from argus.core.algebra import add, eq, le, lt, mod, sym
from argus.core.index import Symbol
from argus.core.values import floats
from argus.core.values.drawn import seeded
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, reduce_

N, ROW = Symbol("N", "size", 0), Symbol("row", "block", 0)
A, B = Symbol("~i", "fresh", 0), Symbol("~j", "fresh", 0)
HERE, INNER, OUTER = sym(ROW), sym(B), sym(A)
X, Y, Z = element("X", OUTER, INNER), element("Y", INNER), element("Z", OUTER)
TRIANGLE = reduce_("sum", A, 0, sym(N), reduce_("sum", B, OUTER, sym(N), X * Y, eq(mod(add(INNER, OUTER), 3), 0)))
EXPRESSIONS: dict[str, Expr] = {
    "a sum of sums over ranges of unlike lengths": TRIANGLE,
    "a product": reduce_("product", B, 1, sym(N), Y),
    "maxima": reduce_("sum", A, 0, sym(N), reduce_("max", B, 0, add(OUTER, 2), X, le(INNER, 3))),
    "a minimum of sums": reduce_("min", A, 0, sym(N), reduce_("sum", B, 0, OUTER, X)),
    "a test of values": reduce_("sum", B, 0, sym(N), choose(compare("<", Y, element("Y", HERE)), Y, TRIANGLE)),
    "a part that does not vary": reduce_("sum", B, 0, sym(N), Y * reduce_("max", A, 0, add(sym(N), 1), Z)),
    "integers of arrays": reduce_("sum", B, 0, sym(N), element("X", algebra.read("table", (INNER,)), HERE)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_floats_are_the_exact_values(name: str) -> None:
    for size in (0, 1, 2, 5):
        for seed in range(3):
            at, exact = (Evaluation({N: size, ROW: 1}, seeded(seed), each, seed) for each in (False, True))

            assert at.value(EXPRESSIONS[name]) == float(exact.value(EXPRESSIONS[name]))


def test_many_points_are_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Evaluation({N: 7}, seeded(0)).value(TRIANGLE)
    monkeypatch.setattr(floats, "_MOST", 4)

    assert Evaluation({N: 7}, seeded(0)).value(TRIANGLE) == pytest.approx(float(whole))


def test_branches_are_evaluated_only_where_they_are_taken() -> None:
    divided = element("X", algebra.floordiv(6, OUTER), 0)
    masked = reduce_("sum", A, 0, sym(N), choose(lt(0, OUTER), divided, 0))
    empty = reduce_("sum", A, 0, sym(N), element("X", algebra.floordiv(6, sym(N)), OUTER))
    at = Evaluation({N: 3}, seeded(1))

    assert at.value(masked) == sum(float(at.value(element("X", 6 // i, 0))) for i in (1, 2))
    assert Evaluation({N: 0}, seeded(1)).value(empty) == 0


def test_what_has_no_value_at_one_point_has_none_in_the_sum() -> None:
    close = choose(compare("<", fn("exp", 0), 1), 1, 0)  # rounding may decide it
    at = Evaluation({N: 4}, seeded(0))

    assert isnan(float(at.value(reduce_("sum", A, 0, sym(N), choose(le(OUTER, 2), 1, close)))))
    assert at.value(reduce_("sum", A, 0, sym(N), choose(le(OUTER, 3), 1, close))) == 4
    assert at.value(fn("max", reduce_("max", A, 2, 2, expr(3)), 0)) == 0
    assert at.value(reduce_("max", A, 2, 2, expr(3))) == -inf
