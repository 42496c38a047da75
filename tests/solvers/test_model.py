from __future__ import annotations

from argus.core.algebra import add, floordiv, le, lt, pick, read, sym
from argus.core.index import Symbol
from argus.core.query import Query
from argus.solvers.model import describe, fault

n = sym(Symbol("n", "size", 1, 8))
k = sym(Symbol("k", "loop", 0, None))
d = sym(Symbol("d", "fresh"))


def test_satisfying_model_has_no_fault() -> None:
    assert fault(Query((lt(k, n), le(2, n))), {n.symbol: 5, k.symbol: 4}) is None


def test_faults_are_named() -> None:
    query = Query((lt(k, n),))

    assert fault(query, {n.symbol: 5}) == "k has no value"
    assert fault(query, {n.symbol: 9, k.symbol: 0}) == "n = 9 lies outside [1, 8]"
    assert fault(query, {n.symbol: 5, k.symbol: -1}) == "k = -1 lies outside [0, None]"
    assert fault(query, {n.symbol: 5, k.symbol: 5}) == "k < n does not hold"


def test_undefined_division_is_a_fault_even_in_a_branch_not_taken() -> None:
    query = Query((le(pick(le(d, 0), n, floordiv(n, d)), 8),))

    assert fault(query, {n.symbol: 5, d.symbol: 0}) == "d >= 1 does not hold"


def test_elements_are_free_but_symbols_are_not() -> None:
    query = Query((le(add(read("t", [n]), 1), k), lt(k, n)))

    assert fault(query, {n.symbol: 5, k.symbol: 1}) is None
    assert fault(query, {n.symbol: 5, k.symbol: 6}) == "k < n does not hold"
    assert (
        fault(Query((lt(add(read("t", [n]), k), read("t", [d])),)), {n.symbol: 5, d.symbol: 5, k.symbol: 0}) is not None
    )


def test_values_of_any_size_are_exact() -> None:
    huge = 1 << 100
    query = Query((lt(d, k), le(huge, d)))

    assert fault(query, {d.symbol: huge, k.symbol: huge + 1}) is None
    assert fault(query, {d.symbol: huge, k.symbol: huge}) == "d < k does not hold"


def test_description_shows_assertions_and_ranges() -> None:
    assert describe(Query((lt(k, n),))) == "k < n\nk in [0, None]\nn in [1, 8]"
