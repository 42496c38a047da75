"""Traversals of expressions."""

from __future__ import annotations

from argus.core.algebra import coord
from argus.core.values.equality import Equal, equal
from argus.core.values.expr import element, expr, fn
from argus.core.values.rewriting import free_symbols


def test_shared_parts_are_read_once() -> None:
    doubled = of = element("X", coord(0))
    for _ in range(60):
        doubled = fn("add", doubled, doubled)
    assert free_symbols(doubled) == frozenset()
    assert isinstance(equal(doubled, fn("mul", of, expr(2**60))), Equal)
