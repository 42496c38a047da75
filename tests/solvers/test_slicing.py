from __future__ import annotations

from argus.core.algebra import add, eq, held, le, lt, read, sym
from argus.core.index import Symbol
from argus.solvers.session.slicing import anchors, cone

a, b, c, d, e = (sym(Symbol(name, "fresh")) for name in "abcde")


def test_cone_is_transitive_and_keeps_the_order() -> None:
    far, near, other = lt(b, c), lt(a, b), lt(d, e)

    assert cone([far, other, near], eq(a, 0)) == ((far, near), (other,))


def test_arrays_connect_across_symbols() -> None:
    same, unlike = le(read("t", [b]), 3), le(held("t", [c]), 3)

    assert cone([same, unlike], lt(read("t", [a]), 0)) == ((same,), (unlike,))


def test_goal_without_anchors_connects_nothing() -> None:
    assert cone([lt(a, b)], lt(read("t", [1]), 0)) == ((), (lt(a, b),))


def test_anchors_are_symbols_and_arrays() -> None:
    assert anchors(le(add(a, read("t", [b])), held("f", [0]))) == {a.symbol, b.symbol, ("read", "t"), ("held", "f")}
