"""Terms of a sum that are added and subtracted, such as what an addition lost to rounding: over the real numbers, 0.

A term is left out only where it is a number. An infinity, a value that is not known, or one that may be either, less
itself has no value.
"""

from __future__ import annotations

from collections.abc import Callable

from argus.core.proof.values.held.terms import heads, plus, reasons
from argus.core.values.expr import Element, Expr, Fn, Infinity, Reduce, expr, fn
from argus.core.values.rewriting import nodes

_NUMBERS = {"add", "sub", "mul", "neg", "round_bf16"}
"""Operations on numbers that have a number."""
Carried = Callable[[Element], tuple[Expr, ...]]
"""Of a tile at the head of a loop: what it was before the loop, and what an iteration makes of it."""


def cancelled(of: Expr, carried: Carried) -> Expr:
    """The sum without terms that it adds as often as it subtracts; the sum itself if one of them may be no number."""
    found = dict[Expr, int]()
    _collect(of, 1, found)
    gone = [term for term, times in found.items() if not times]
    if not gone or not _numbers(gone, carried):
        return of
    left = expr(0)
    for term, times in found.items():
        if times:
            left = plus(left, term if times == 1 else fn("mul", times, term))
    return left


def _collect(of: Expr, times: int, found: dict[Expr, int]) -> None:
    match of:
        case Fn(name="add", args=(a, b)):
            _collect(a, times, found)
            _collect(b, times, found)
        case Fn(name="sub", args=(a, b)):
            _collect(a, times, found)
            _collect(b, -times, found)
        case Fn(name="neg", args=(a,)):
            _collect(a, -times, found)
        case _:
            found[of] = found.get(of, 0) + times


def _numbers(terms: list[Expr], carried: Carried) -> bool:
    """Whether each is a number, and each tile in it is one before the loop and after an iteration from numbers."""
    seen, open_ = set[Element](), list(terms)
    while open_:
        term = open_.pop()
        if reasons(term) or not all(map(_may_be_number, nodes(term))):
            return False
        for each in set(heads(term)) - seen:
            seen.add(each)
            open_.extend(carried(each))
    return True


def _may_be_number(node: Expr) -> bool:
    if isinstance(node, Fn):
        return node.name in _NUMBERS
    return not isinstance(node, Infinity) and not (isinstance(node, Reduce) and node.op != "sum")
