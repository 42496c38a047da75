"""Checks that a model satisfies its query; every Sat answer passes this check before anyone sees it."""

from __future__ import annotations

from collections.abc import Mapping

from argus.core.algebra import FALSE, const
from argus.core.index import Cond, Coord, Held, Read, Symbol
from argus.core.index_text import show
from argus.core.query import Query
from argus.core.walk import evaluate, mentions, substitute
from argus.solvers.base import definedness


def fault(query: Query, model: Mapping[Symbol, int]) -> str | None:
    """Why the model is wrong, or None if it satisfies the query.

    A model has no values for array elements, so an assertion that still depends on one after the symbols are
    substituted counts as satisfied.
    """
    for symbol in query.symbols:
        if symbol not in model:
            return f"{symbol.name} has no value"
        if not _in_range(symbol, model[symbol]):
            return f"{symbol.name} = {model[symbol]} lies outside [{symbol.low}, {symbol.high}]"
    for condition in (*definedness(query.assertions), *query.assertions):
        if not _may_hold(condition, model):
            return f"{show(condition)} does not hold"
    return None


def _in_range(symbol: Symbol, value: int) -> bool:
    return (symbol.low is None or symbol.low <= value) and (symbol.high is None or value <= symbol.high)


def _may_hold(condition: Cond, model: Mapping[Symbol, int]) -> bool:
    if not mentions(condition, (Read, Held, Coord)):
        return bool(evaluate(condition, model))
    values = {symbol: const(value) for symbol, value in model.items()}
    return substitute(condition, values) is not FALSE


def describe(query: Query) -> str:
    """The query as text for an error message: its assertions, then the ranges of its symbols."""
    lines = [show(assertion) for assertion in query.assertions]
    lines += [f"{symbol.name} in [{symbol.low}, {symbol.high}]" for symbol in query.symbols]
    return "\n".join(lines)
