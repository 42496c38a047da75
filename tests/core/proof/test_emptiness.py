"""Numbers for which a pattern is a value are found, also where a condition alone tells one of them."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.proof.values.held.emptiness import matched
from argus.core.values.expr import Expr, choose, element, infinity

PAGE, SLOT, KEYS = (Symbol(name, "fresh", 0) for name in ("page", "slot", "keys"))
N, M = (Symbol(name, "fresh", 0) for name in ("n", "m"))


def score(page: Index, slot: Index, key: Index) -> Expr:
    """A score of a key, whose page a table names, where there is such a key."""
    seen = algebra.lt(key, algebra.sym(KEYS))
    return choose(seen, element("K", algebra.read("table", (algebra.minimum(page, 7),)), slot), infinity(-1))


def key(page: Index, slot: Index) -> Index:
    return algebra.add(algebra.mul(page, 16), slot)


def test_a_page_is_known_by_the_condition_on_its_keys() -> None:
    n, m = algebra.sym(N), algebra.sym(M)
    page, slot = algebra.add(algebra.sym(PAGE), 1), algebra.add(algebra.mul(algebra.sym(SLOT), 2), 1)

    found = list(matched(score(n, m, key(n, m)), score(page, slot, key(page, slot)), [N, M]))

    assert found
    assert all(each == {N: page, M: slot} for each in found)


def test_a_value_of_another_page_than_its_condition_is_no_instance() -> None:
    n, m = algebra.sym(N), algebra.sym(M)
    page, slot = algebra.sym(PAGE), algebra.sym(SLOT)
    other = algebra.add(page, 1)

    assert not list(matched(score(n, m, key(n, m)), score(other, slot, key(page, slot)), [N, M]))
