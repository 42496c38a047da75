"""Whether tags say enough of a value: where it mixes sums that tags do not tell apart, a formula has to be claimed.

Tags name coordinates, not tensors nor numbers. So a sum of products of one pair of tensors is what its tags say; the
quotient of two sums, or a sum that takes every other term from another tensor, may be another value with equal tags.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.index import Coord
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import elements, nodes
from argus.core.walk import mentions


def not_said_by_tags(held: Expr) -> str:
    """Why tags do not say what a value is; empty if they do."""
    if any(isinstance(each, Whole) and mentions(each.index, (Coord,)) for each in nodes(held)):
        return "numbers that differ between elements: claim a formula with `assert_equals`"
    if any(isinstance(each, Fn) and each.name not in OPERATIONS for each in nodes(held)):
        return "a function that is none of the reals: claim a formula with `assert_equals`"
    reductions = [each for each in nodes(held) if isinstance(each, Reduce)]
    if len({each.op for each in reductions}) > 1:
        return "a value of sums and extrema: claim a formula with `assert_equals`"
    terms = [term for each in reductions for term in _terms(each.body)]
    if len({frozenset(each.tensor for each in elements(term)) for term in terms}) > 1:
        return "sums over elements of different tensors: claim a formula with `assert_equals`"
    if any(not _is_product(term) for term in terms):
        return "products of computed elements are summed: claim a formula with `assert_equals`"
    return ""


def _terms(body: Expr) -> Iterator[Expr]:
    """The terms of a sum that have elements, without nested reductions."""
    match body:
        case Fn(name="add" | "sub", args=args):
            for each in args:
                yield from _terms(each)
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            yield from _terms(then)
            yield from _terms(other)
        case Reduce(body=inner):
            yield from _terms(inner)
        case _:
            if elements(body):
                yield body


def _is_product(term: Expr) -> bool:
    """Whether a term is one function of one element, or a product of elements as they are loaded."""
    if len({each.tensor for each in elements(term)}) < 2:
        return True
    match term:
        case Element() | Number() | Infinity() | Whole():
            return True
        case Fn(name="mul", args=args):
            return all(map(_is_factor, args))
        case _:
            return False


def _is_factor(of: Expr) -> bool:
    match of:
        case Element() | Number():
            return True
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            return _is_factor(then) and _is_factor(other)
        case Fn(name="mul", args=args):
            return all(map(_is_factor, args))
        case Reduce(body=body):
            return all(map(_is_product, _terms(body)))
        case _:
            return False
