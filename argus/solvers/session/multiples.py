"""Products that have a factor in common, related as their other factors are: a <= b gives a d <= b d, where d >= 0.

With these facts beside them, what solvers see as unrelated products is linear arithmetic over the products.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeGuard

from argus.core import algebra
from argus.core.index import Bin, Cmp, Cond, Const, Index, Sum
from argus.core.walk import within

_FACTORS = 3
_MOST = 96
"""Facts to add at most."""


def multiples(conditions: Sequence[Cond]) -> tuple[Cond, ...]:
    """Facts that follow from conditions which hold together, about their products: none if no two share a factor."""
    return tuple(islice(dict.fromkeys(_facts(conditions)), _MOST))


def has_multiples(conditions: Sequence[Cond]) -> bool:
    """Whether there are any such facts: finding the first is less work than finding all."""
    return any(True for _ in _facts(conditions))


def _facts(conditions: Sequence[Cond]) -> Iterator[Cond]:
    found_products = (node for c in conditions for node in within(c) if _is_product(node))
    products: dict[Index, tuple[Index, ...]] = {node: tuple(_factors(node)) for node in found_products}
    shared = Counter(factor for factors in products.values() for factor in dict.fromkeys(factors))
    for factor, times in shared.most_common(_FACTORS):
        if times > 1 and factor.range[0] is not None and factor.range[0] >= 0:
            known = set(products)
            yield from _by(factor, known, tuple(_positive(conditions)))
            yield from _of_greatest(factor, known)


def _is_product(node: object) -> TypeGuard[Bin]:
    return isinstance(node, Bin) and node.op == "*"


def _factors(node: Index) -> Iterator[Index]:
    if isinstance(node, Bin) and node.op == "*":
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _positive(conditions: Sequence[Cond]) -> Iterator[Index]:
    """Integers that are not negative: what conditions compare, and what quotients leave."""
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


def _by(factor: Index, products: set[Index], positive: Sequence[Index]) -> Iterator[Cond]:
    """Those integers times the factor, as far as they speak of products that there are, and of one other at most."""
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


def _of_greatest(factor: Index, products: set[Index]) -> Iterator[Cond]:
    """A maximum or minimum times the factor is that of its two numbers which it is."""
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
