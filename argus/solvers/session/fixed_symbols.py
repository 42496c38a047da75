"""Constant propagation for symbols with a single possible value, as a loop counter in its first iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from argus.core.algebra import const, contradict
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Sym, Symbol
from argus.core.walk import substitute, symbols

_ROUNDS = 3
"""Fixing one symbol may fix others. Stopping early is sound: it only leaves the query to the solver."""
Bounds = tuple[int | None, int | None]


def contradicts_by_bounds(pieces: Sequence[Cond], denied: Cond) -> bool:
    """Whether bounds of single symbols and normal forms alone show that the conditions are unsatisfiable together."""
    for _ in range(_ROUNDS):
        bounds = _bounds(pieces)
        if any(low is not None and high is not None and low > high for low, high in bounds.values()):
            return True
        numbers: dict[Symbol, Index] = {
            symbol: const(low) for symbol, (low, high) in bounds.items() if low is not None and low == high
        }
        if all(symbols(each).isdisjoint(numbers) for each in (denied, *pieces)):
            return False
        try:
            pieces = tuple(dict.fromkeys(substitute(piece, numbers) for piece in pieces))
            denied = substitute(denied, numbers)
        except ZeroDivisionError:  # only defined assignments count, so this decides nothing: leave it to the solver
            return False
        if contradict((*pieces, denied)):
            return True
    return False


def _bounds(pieces: Sequence[Cond]) -> dict[Symbol, Bounds]:
    """For each symbol that a condition compares with a number: its range, narrowed by those comparisons."""
    found: dict[Symbol, Bounds] = {}
    for piece in pieces:
        bound = _bound(piece) if isinstance(piece, Cmp) else None
        if bound is not None:
            symbol, low, high = bound
            known = found.get(symbol, (symbol.low, symbol.high))
            found[symbol] = (_tighter(max, known[0], low), _tighter(min, known[1], high))
    return found


@lru_cache(maxsize=1 << 14)
def _bound(piece: Cmp) -> tuple[Symbol, int | None, int | None] | None:
    """The symbol and its bounds, from a comparison of one symbol with a number; None for any other comparison."""
    terms, constant = linear_terms(piece.left)
    others, offset = linear_terms(piece.right)
    if len(terms) + len(others) != 1:
        return None
    ((atom, factor),) = terms or others
    if not isinstance(atom, Sym) or factor != 1:
        return None
    number = offset - constant if terms else constant - offset
    if piece.op == "==":
        return atom.symbol, number, number
    return (atom.symbol, None, number) if terms else (atom.symbol, number, None)


def _tighter(choose: Callable[[int, int], int], one: int | None, two: int | None) -> int | None:
    if one is None or two is None:
        return two if one is None else one
    return choose(one, two)
