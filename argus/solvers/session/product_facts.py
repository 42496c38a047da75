"""Facts that relate products with a common factor: a <= b implies a d <= b d, where d >= 0; and quotients to products:
x // d < r exactly where x < d r, where d >= 1.

Given these facts, a solver can treat the products as unknowns of linear arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import TypeGuard

from argus.core import algebra
from argus.core.index import Bin, Cmp, Cond, Const, Index, Sum
from argus.core.walk import within

_FACTORS = 3
_NESTED = 2
"""Quotients of quotients, as the coordinates of an element of a flattened tensor are."""
_MOST = 96
"""Facts to add at most."""


def product_facts(conditions: Sequence[Cond]) -> tuple[Cond, ...]:
    """Facts about products that the conjunction of the conditions implies; none if no two share a factor or divisor."""
    return tuple(islice(dict.fromkeys(_facts(conditions)), _MOST))


def has_product_facts(conditions: Sequence[Cond]) -> bool:
    """Whether `product_facts` is not empty; it stops at the first fact."""
    return any(True for _ in _facts(conditions))


def _facts(conditions: Sequence[Cond]) -> Iterator[Cond]:
    yield from _quotient_facts(conditions)
    found_products = (node for c in conditions for node in within(c) if _is_product(node))
    products: dict[Index, tuple[Index, ...]] = {node: tuple(_factors(node)) for node in found_products}
    shared = Counter(factor for factors in products.values() for factor in dict.fromkeys(factors))
    for factor, times in shared.most_common(_FACTORS):
        if times > 1 and factor.range[0] is not None and factor.range[0] >= 0:
            known = set(products)
            yield from _products_with(factor, known, tuple(_positive(conditions)))
            yield from _extremum_facts(factor, known)


def _quotient_facts(conditions: Sequence[Cond]) -> Iterator[Cond]:
    """How a quotient compares with the rest of each product that has its divisor as a factor."""
    nodes = dict.fromkeys(node for each in conditions for node in within(each))
    quotients = [each for each in nodes if isinstance(each, Bin) and each.op == "//"]
    products: dict[Index, None] = dict.fromkeys(each for each in nodes if _is_product(each))
    for _ in range(_NESTED):
        for quotient, product in [(q, p) for q in quotients for p in products]:
            factors, divisor = list(_factors(product)), quotient.right
            if divisor not in factors or quotient in factors:
                continue
            factors.remove(divisor)
            rest = reduce(algebra.mul, factors)
            positive = algebra.le(1, divisor)
            below, above = algebra.lt(quotient.left, product), algebra.le(product, quotient.left)
            yield algebra.implies(algebra.all_of((positive, below)), algebra.lt(quotient, rest))
            yield algebra.implies(algebra.all_of((positive, above)), algebra.le(rest, quotient))
            if _is_product(rest):
                products[rest] = None


def _is_product(node: object) -> TypeGuard[Bin]:
    return isinstance(node, Bin) and node.op == "*"


def _factors(node: Index) -> Iterator[Index]:
    if isinstance(node, Bin) and node.op == "*":
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _positive(conditions: Sequence[Cond]) -> Iterator[Index]:
    """Non-negative integers: differences of the sides of comparisons, and remainders of divisions."""
    for each in conditions:
        if isinstance(each, Cmp):
            yield algebra.sub(each.right, each.left)
            if each.op == "==":
                yield algebra.sub(each.left, each.right)
    for node in dict.fromkeys(node for each in conditions for node in within(each)):
        if isinstance(node, Bin) and node.op == "//" and isinstance(node.right, Const) and node.right.value > 0:
            rest = algebra.sub(node.left, algebra.mul(node, node.right))
            yield rest
            yield algebra.sub(node.right.value - 1, rest)


def _products_with(factor: Index, products: set[Index], positive: Sequence[Index]) -> Iterator[Cond]:
    """`positive * factor >= 0`, where it mentions known products and at most one new product."""
    left = list(positive)
    while left:
        taken: list[Index] = []
        for each in left:
            times = [algebra.mul(atom, factor) for atom, _ in _terms(each)]
            if sum(made not in products for made in times) <= (1 if any(made in products for made in times) else 0):
                products |= set(times)
                taken.append(each)
                yield algebra.le(0, algebra.mul(each, factor))
        if not taken:
            return
        left = [each for each in left if each not in taken]


def _extremum_facts(factor: Index, products: set[Index]) -> Iterator[Cond]:
    """A maximum or minimum times the factor equals the chosen operand times the factor."""
    for product in products:
        for each in _factors(product):
            if isinstance(each, Bin) and each.op in ("max", "min") and algebra.mul(each, factor) is product:
                for one, other in ((each.left, each.right), (each.right, each.left)):
                    first = algebra.le(other, one) if each.op == "max" else algebra.le(one, other)
                    yield algebra.implies(first, algebra.eq(product, algebra.mul(one, factor)))


def _terms(expression: Index) -> Sequence[tuple[Index, int]]:
    if isinstance(expression, Const):
        return ()
    return expression.terms if isinstance(expression, Sum) else ((expression, 1),)
