"""Values that are sums of products of loaded elements.

    sums    = sums + sums | sums * elements | sums where a condition holds, else 0 | sum of sums | elements
    elements = element | elements * elements | elements where a condition holds, else 0

All terms multiply elements of the same tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from argus.core.proof.values.padding import NEUTRAL, number
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Reduce, ReduceOp, fn

_COLLECTING: dict[str, ReduceOp] = {"add": "sum", "max": "max", "min": "min"}


def is_sum_of_elements(held: Expr) -> bool:
    """Whether a value is a sum of products of loaded elements, up to rounding."""
    match held:
        case Fn(name=name, args=(arg,)) if name.startswith("to "):
            return is_sum_of_elements(arg)
        case _:
            return _terms(held, "sum") is not None


Tensors = frozenset[tuple[str, int]]
"""How often a term multiplies elements of each tensor."""


def _terms(held: Expr, op: ReduceOp) -> frozenset[Tensors] | None:
    """The tensors of the terms that are collected; None if there is anything else."""
    found: dict[Expr, frozenset[Tensors] | None] = {}
    factors: dict[Expr, Tensors | None] = {}

    def terms(node: Expr) -> frozenset[Tensors] | None:
        if node not in found:
            found[node] = visit(node)
        return found[node]

    def visit(node: Expr) -> frozenset[Tensors] | None:
        match node:
            case Fn(name=name, args=(one, two)) if _COLLECTING.get(name) == op:
                return _all([terms(one), terms(two)])
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
                return _all([terms(each) for each in (then, other) if number(each) != NEUTRAL[op]])
            case Reduce(op=own, body=body) if own == op:
                return terms(body)
            case _ if op == "sum" and (elements := _elements(node, factors)) is not None:
                return frozenset({elements})
            case Fn(name="mul", args=args) if op == "sum":
                return scaled(args[0], args[1]) or scaled(args[1], args[0])
            case Fn(name="fma", args=(one, two, three)) if op == "sum":
                return terms(fn("add", fn("mul", one, two), three))
            case Element():
                return frozenset({frozenset({(node.tensor, 1)})})
            case _:
                return None

    def scaled(sums: Expr, scale: Expr) -> frozenset[Tensors] | None:
        """The terms of a sum, each multiplied by the same elements."""
        by, summed = _elements(scale, factors), terms(sums)
        return None if by is None or summed is None else frozenset(_both(each, by) for each in summed)

    return terms(held)


def _all(found: Sequence[frozenset[Tensors] | None]) -> frozenset[Tensors] | None:
    known = [each for each in found if each is not None]
    return frozenset[Tensors]().union(*known) if len(known) == len(found) else None


def _both(one: Tensors, two: Tensors) -> Tensors:
    return frozenset((Counter(dict(one)) + Counter(dict(two))).items())


def _elements(held: Expr, known: dict[Expr, Tensors | None]) -> Tensors | None:
    """The tensors of which elements are multiplied, with 0 in place of padding; None if there is anything else."""
    if held not in known:
        known[held] = _multiplied(held, known)
    return known[held]


def _multiplied(held: Expr, known: dict[Expr, Tensors | None]) -> Tensors | None:
    match held:
        case Element(tensor=tensor):
            return frozenset({(tensor, 1)})
        case Fn(name="mul", args=(one, two)):
            left, right = _elements(one, known), _elements(two, known)
            return None if left is None or right is None else _both(left, right)
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            found = [_elements(each, known) for each in (then, other) if number(each) != 0]
            return found[0] if found and all(each == found[0] for each in found) else None
        case _:
            return None
