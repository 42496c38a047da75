"""Whether terms of two numbers may cancel, judged by the tensors that the factors of each term are elements of."""

from __future__ import annotations

from functools import lru_cache

from argus.core.values.expr import Choose, Element, Expr, Fn, Infinity, Number, Reduce, Whole
from argus.core.values.rewriting import nodes

Term = tuple[str, ...]
"""The tensors of its factors, in order, one as often as it occurs."""
_INTEGER = "#"
"""What stands for the factors that are integers; no tensor has this name."""
_MOST = 64
"""The most terms of a number; with more, any may cancel."""


def may_cancel(one: Expr, two: Expr) -> bool:
    """Whether a term of one number may be, up to a factor, one of the other: unless both are sums of other products.

    x and w * x have no term in common, whatever w is; x and (x + z) have, and x and exp(log(x)) may have.
    """
    mine, other = _terms(one), _terms(two)
    if mine is None or other is None or mine & other:
        return True
    return bool(_within_functions(one) & _tensors(two) or _within_functions(two) & _tensors(one))


@lru_cache(maxsize=1 << 12)
def _terms(of: Expr) -> frozenset[Term] | None:
    """The terms of a sum of products; a function of elements has no factors, and counts as one number."""
    match of:
        case Fn(name="add" | "sub", args=(one, two)):
            mine, other = _terms(one), _terms(two)
            return None if mine is None or other is None else _bounded(mine | other)
        case Fn(name="mul", args=(one, two)):
            mine, other = _terms(one), _terms(two)
            if mine is None or other is None:
                return None
            return _bounded(frozenset(tuple(sorted(a + b)) for a in mine for b in other))
        case Fn(name="neg", args=(one,)) | Reduce(op="sum", body=one):
            return _terms(one)
        case Element(tensor=tensor):
            return frozenset(((tensor,),))
        case Number():
            return frozenset(((),))
        case Whole():
            return frozenset(((_INTEGER,),))
        case Fn() | Reduce() | Choose():
            return frozenset((tuple(sorted(_tensors(of))),))
        case Infinity():
            return None


def _bounded(terms: frozenset[Term]) -> frozenset[Term] | None:
    return terms if len(terms) <= _MOST else None


@lru_cache(maxsize=1 << 12)
def _within_functions(of: Expr) -> frozenset[str]:
    """The tensors of which a number contains functions that are no sums of products."""
    match of:
        case Fn(name="add" | "sub" | "mul", args=(one, two)):
            return _within_functions(one) | _within_functions(two)
        case Fn(name="neg", args=(one,)) | Reduce(op="sum", body=one):
            return _within_functions(one)
        case Fn() | Reduce() | Choose():
            return _tensors(of)
        case Element() | Number() | Whole() | Infinity():
            return frozenset()


def _tensors(of: Expr) -> frozenset[str]:
    """The tensors of a number's elements, those in tests too, and a mark of integers."""
    found = frozenset(each.tensor for each in nodes(of) if isinstance(each, Element))
    return found | {_INTEGER} if any(isinstance(each, Whole) for each in nodes(of)) else found
