"""Cone-of-influence slicing: the hypotheses connected with a goal through shared symbols and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from argus.core.algebra import sym
from argus.core.index import Bin, Cond, Const, Held, Node, Read, Sym, Symbol
from argus.core.walk import fold, rebuild, within

Anchor = Symbol | tuple[str, str]


_ANCHORS: WeakKeyDictionary[Cond, frozenset[Anchor]] = WeakKeyDictionary()
"""Anchors by condition; conditions are interned, so a result never goes stale."""


def anchors(condition: Cond) -> frozenset[Anchor]:
    """The symbols a condition mentions, and its arrays and fragments as (sort, name)."""
    known = _ANCHORS.get(condition)
    if known is None:
        known = _ANCHORS[condition] = _anchors_of(condition)
    return known


def _anchors_of(condition: Cond) -> frozenset[Anchor]:
    found: set[Anchor] = set()
    for node in within(condition):
        match node:
            case Sym(symbol=symbol):
                found.add(symbol)
            case Read(array=name):
                found.add(("read", name))
            case Held(fragment=name):
                found.add(("held", name))
            case _:
                pass
    return frozenset(found)


def cone(hypotheses: Sequence[Cond], goal: Cond) -> tuple[tuple[Cond, ...], tuple[Cond, ...]]:
    """`(connected, others)`: the two share no anchor, and the goal shares none with the others.

    So a model of the goal with the connected hypotheses, joined with a model of the others, is a model of all.
    """
    waiting = {hypothesis: anchors(hypothesis) for hypothesis in hypotheses}
    holders = _holders(waiting.items())
    frontier = list(anchors(goal))
    reached = set(frontier)
    connected: set[Cond] = set()
    while frontier:
        for hypothesis in holders.get(frontier.pop(), ()):
            connected.add(hypothesis)
            new = waiting[hypothesis] - reached
            reached |= new
            frontier.extend(new)
    return tuple(h for h in waiting if h in connected), tuple(h for h in waiting if h not in connected)


def multiplies(condition: Cond) -> bool:
    """Whether a condition is nonlinear: it has a product of non-constants, or divides by a non-constant."""
    return any(_is_product(node) for node in within(condition))


def products_in(conditions: Iterable[Cond]) -> Iterator[Node]:
    """Every product and every division by a non-constant, once for each condition that mentions it."""
    return (node for condition in conditions for node in within(condition) if _is_product(node))


def _is_product(node: Node) -> bool:
    return isinstance(node, Bin) and node.op in ("*", "//", "%") and not isinstance(node.right, Const)


def abstract_products(condition: Cond) -> Cond:
    """The condition with a fresh symbol, of the same range, for each product and each division by a non-constant.

    An over-approximation: if the result is unsatisfiable, so is the condition; the converse need not hold.
    """

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if not _is_product(node):
            return rebuild(node, parts)
        low, high = cast(Bin, node).range
        return sym(Symbol(f"term_{node.digest.hex()}", "fresh", low, high))

    return cast(Cond, fold(condition, visit))


def _holders(pairs: Iterable[tuple[Cond, frozenset[Anchor]]]) -> dict[Anchor, list[Cond]]:
    holders: dict[Anchor, list[Cond]] = {}
    for condition, its_anchors in pairs:
        for anchor in its_anchors:
            holders.setdefault(anchor, []).append(condition)
    return holders
