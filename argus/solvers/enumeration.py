"""The enumeration backend: evaluates every assignment of a finite query with NumPy, faster than SMT on small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from time import monotonic
from typing import assert_never

import numpy as np
from attrs import frozen

from argus.core.algebra import all_of
from argus.core.index import And, Bin, Cmp, Cond, Const, Coord, Held, Node, Not, Or, Pick, Read, Sum, Sym, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import IntArray, children, evaluate, topological
from argus.solvers.base import Capabilities, definedness

_CHUNK = 1 << 16
_MAGNITUDE_LIMIT = 1 << 62


_CAPABILITIES = Capabilities(unbounded=False, nonlinear=True, bitwise=True, reads=False)


@frozen
class Enumerate:
    """Tries every assignment, the last symbol by name varying fastest; the model is the first that satisfies."""

    name: str = "enumerate"
    version: str = "1"
    capabilities: Capabilities = _CAPABILITIES

    def check(self, query: Query, budget: Budget) -> Answer:
        symbols = query.symbols
        sizes = [_size(symbol) for symbol in symbols]
        unbounded = next((s.name for s, size in zip(symbols, sizes, strict=True) if size is None), None)
        if unbounded is not None:
            return GaveUp(self.name, f"{unbounded} has no finite range")
        points = prod(size for size in sizes if size is not None)
        if points > budget.points:
            return GaveUp(self.name, f"{points} assignments exceed the budget of {budget.points}", exhausted=True)
        obstacle = _obstacle(query.assertions)
        if points > 0 and obstacle is not None:
            return GaveUp(self.name, obstacle)
        return self._search(query, points, budget.seconds)

    def _search(self, query: Query, points: int, seconds: float) -> Answer:
        filters = (*definedness(query.assertions), all_of(query.assertions))
        deadline = monotonic() + seconds
        for start in range(0, points, _CHUNK):
            found = _first(query.symbols, filters, np.arange(start, min(start + _CHUNK, points), dtype=np.int64))
            if found is not None:
                return Sat(self.name, found)
            if monotonic() > deadline and start + _CHUNK < points:
                return GaveUp(self.name, f"out of time after {start + _CHUNK} of {points} assignments", exhausted=True)
        return Unsat(self.name)


def _size(symbol: Symbol) -> int | None:
    if symbol.low is None or symbol.high is None:
        return None
    return max(0, symbol.high - symbol.low + 1)


def _first(symbols: tuple[Symbol, ...], filters: Iterable[Cond], ordinals: IntArray) -> Mapping[Symbol, int] | None:
    """The first of the numbered assignments to pass all filters; each is evaluated only where all before it hold."""
    values = _assignments(symbols, ordinals)
    count = len(ordinals)
    for condition in filters:
        passes = np.broadcast_to(np.asarray(evaluate(condition, values), dtype=np.bool_), (count,))
        if not passes.all():
            values = {symbol: column[passes] for symbol, column in values.items()}
            count = int(np.count_nonzero(passes))
        if count == 0:
            return None
    return {symbol: int(column[0]) for symbol, column in values.items()}


def _assignments(symbols: tuple[Symbol, ...], ordinals: IntArray) -> dict[Symbol, IntArray]:
    """Ordinals decoded as mixed-radix numbers with one digit per symbol."""
    values: dict[Symbol, IntArray] = {}
    rest = ordinals
    for symbol in reversed(symbols):
        size, low = _size(symbol), symbol.low
        if size is None or low is None:
            raise ValueError(f"{symbol.name} has no finite range")
        values[symbol] = rest % size + low
        rest = rest // size
    return values


def _obstacle(assertions: Iterable[Cond]) -> str | None:
    """Why 64-bit arithmetic cannot evaluate the assertions, or None if it can."""
    magnitudes: dict[Node, int] = {}
    for node in topological(assertions):
        if isinstance(node, Read | Held):
            return "an array element has no known value"
        if isinstance(node, Coord):
            return f"coordinate i{node.axis} is not a symbol"
        magnitudes[node] = _magnitude(node, [magnitudes[child] for child in children(node)])
        if magnitudes[node] > _MAGNITUDE_LIMIT:
            return "a value may exceed 64 bits"
    return None


def _magnitude(node: Node, parts: list[int]) -> int:
    """A bound on the absolute value, and on every intermediate value, wherever the node is defined."""
    match node:
        case Const(value=value):
            return abs(value)
        case Sym(symbol=symbol):
            return max(abs(symbol.low or 0), abs(symbol.high or 0))
        case Sum(terms=terms, constant=constant):
            return abs(constant) + sum(abs(f) * part for part, (_, f) in zip(parts, terms, strict=True))
        case Bin(op="<<", right=amount):
            bits = amount.range[1]
            return parts[0] << bits if bits is not None and bits < 64 else _MAGNITUDE_LIMIT + 1
        case Bin(op=op):
            return _GROWTH[op](parts[0], parts[1])
        case Pick():
            return max(parts[1], parts[2])
        case Read() | Held() | Coord():
            return _MAGNITUDE_LIMIT + 1
        case Cmp() | And() | Or() | Not():
            return 1
        case _:
            assert_never(node)


def _bits(a: int, b: int) -> int:
    return 1 << max(a, b).bit_length()


_GROWTH: Mapping[str, Callable[[int, int], int]] = {
    "*": lambda a, b: a * b,
    "//": max,
    "%": max,
    "min": max,
    "max": max,
    "&": _bits,
    "|": _bits,
    "^": _bits,
    ">>": max,
}
