"""The place of an extremum is read as such only where the extremum is of all places, and the same for each."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Sym, Symbol
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.formula_text import extremum_whose_place


def _variable(name: str) -> Sym:
    found = algebra.sym(Symbol(name, "fresh", 0))
    assert isinstance(found, Sym)
    return found


J, K = (_variable(name) for name in "jk")


def place_of(value: Expr, of_all: Expr) -> Expr:
    top = reduce_("max", K.symbol, 0, 4, of_all)
    return reduce_("min", J.symbol, 0, 4, choose(compare("==", value, top), expr(J), infinity(1)))


@pytest.mark.parametrize(("factor", "is_place"), [(K, True), (J, False)])
def test_an_extremum_that_differs_from_place_to_place_has_no_place(factor: Sym, is_place: bool) -> None:
    """X[j] Z[j] may equal the greatest of X[k] Z[j] over k for no j, as with X = 1, 2 and Z = 1, -1."""
    at_own = fn("mul", element("X", J), element("Z", J))

    found = extremum_whose_place(place_of(at_own, fn("mul", element("X", K), element("Z", factor))))

    assert (found is reduce_("max", J.symbol, 0, 4, at_own)) is is_place
    assert (found is None) is not is_place
