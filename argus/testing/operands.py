"""A Hypothesis strategy for the operands of a law of the layout algebra (`argus.testing.laws`)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from argus.layout import Layout
from argus.testing.laws import Kind, Law, Operand
from argus.testing.strategies import (
    compact_layouts,
    composable_with,
    cotargets,
    inner_layouts,
    layouts,
    power_of_two_layouts,
    shapes,
    swizzles,
    tilers,
)


@st.composite
def operands(draw: DrawFn, law: Law) -> tuple[Operand, ...]:
    """Operands of the kinds that a law quantifies over; the kind "layout" includes negative strides."""
    drawn: list[Operand] = []
    for kind in law.operands:
        drawn.append(draw(_of_kind(kind, drawn)))
    return tuple(drawn)


def _of_kind(kind: Kind, before: Sequence[Operand]) -> SearchStrategy[Operand]:
    last = before[-1] if before else None
    match kind:
        case "layout":
            negative = layouts(strides=st.integers(-12, 12))
            return layouts() | compact_layouts() | power_of_two_layouts() | negative
        case "inner":
            assert isinstance(last, Layout)
            return inner_layouts(last) | composable_with(last)
        case "tiler":
            assert isinstance(last, Layout)
            return tilers(last)
        case "cotarget":
            return cotargets(last if isinstance(last, Layout) else None)
        case "count":
            return st.integers(1, 8)
        case "shape":
            return shapes()
        case "swizzle":
            return swizzles()
