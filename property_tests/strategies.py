"""Hypothesis strategies that the property tests share."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from argus.core.algebra import (
    add,
    all_of,
    any_of,
    bit_and,
    bit_or,
    bit_xor,
    const,
    eq,
    floordiv,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    negate,
    pick,
    shift_left,
    shift_right,
    sub,
    sym,
)
from argus.core.index import Cond, Index, Symbol
from argus.core.query import Query

SMALL_SYMBOLS: tuple[Symbol, ...] = (
    Symbol("p", "fresh", -5, 4),
    Symbol("q", "fresh", 0, 7),
    Symbol("r", "fresh", 1, 6),
    Symbol("s", "fresh", -2, 3),
)


def small_numbers() -> SearchStrategy[int]:
    return st.integers(-9, 9)


def atoms(symbols: Sequence[Symbol] = SMALL_SYMBOLS) -> SearchStrategy[Index]:
    """A symbol or a small number."""
    return st.sampled_from(symbols).map(sym) | small_numbers().map(const)


def index_expressions(
    symbols: Sequence[Symbol] = SMALL_SYMBOLS, *, symbolic_divisors: bool = True, bitwise: bool = True
) -> SearchStrategy[Index]:
    """Expressions of every operator over the symbols, with positive constants or expressions as divisors."""

    def extend(inner: SearchStrategy[Index]) -> SearchStrategy[Index]:
        positive = st.integers(1, 9).map(const)
        divisors = positive | st.sampled_from(symbols).map(sym) if symbolic_divisors else positive
        options = [
            st.builds(add, inner, inner),
            st.builds(sub, inner, inner),
            st.builds(mul, inner, small_numbers()),
            st.builds(mul, inner, st.sampled_from(symbols).map(sym)),
            st.builds(floordiv, inner, divisors),
            st.builds(mod, inner, divisors),
            st.builds(minimum, inner, inner),
            st.builds(maximum, inner, inner),
            st.builds(pick, comparisons(inner), inner, inner),
        ]
        if bitwise:
            amounts = st.sampled_from(symbols).map(sym) | st.integers(0, 4).map(const)
            options += [st.builds(operator, inner, inner) for operator in (bit_and, bit_or, bit_xor)]
            options += [st.builds(operator, inner, amounts) for operator in (shift_left, shift_right)]
        return st.one_of(options)

    return st.recursive(atoms(symbols), extend, max_leaves=6)


def comparisons(expressions: SearchStrategy[Index]) -> SearchStrategy[Cond]:
    return st.one_of([st.builds(relation, expressions, expressions) for relation in (le, lt, eq)])


def conditions(expressions: SearchStrategy[Index] | None = None) -> SearchStrategy[Cond]:
    """Comparisons of expressions under conjunction, disjunction and negation."""
    leaves = comparisons(index_expressions() if expressions is None else expressions)

    def extend(inner: SearchStrategy[Cond]) -> SearchStrategy[Cond]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(several.map(all_of), several.map(any_of), inner.map(negate))

    return st.recursive(leaves, extend, max_leaves=4)


def queries(expressions: SearchStrategy[Index] | None = None) -> SearchStrategy[Query]:
    """One to three assertions."""
    return st.lists(conditions(expressions), min_size=1, max_size=3).map(lambda assertions: Query(tuple(assertions)))
