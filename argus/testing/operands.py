"""Operands for a law of the layout algebra (`argus.testing.laws`): a Hypothesis strategy, and a search for a breach."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import DrawFn, SearchStrategy

from argus.layout import Layout
from argus.testing.laws import ARGUS, Breach, Implementation, Kind, Law, Operand
from argus.testing.strategies import (
    carrying_layouts,
    compact_layouts,
    composable_with,
    cotargets,
    inner_layouts,
    layouts,
    overlapping_layouts,
    permuted,
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


def search(
    law: Law, implementation: Implementation = ARGUS, *, examples: int = 1000, seed: int = 0, shrink: bool = True
) -> Breach | None:
    """A breach of the law by the implementation, the smallest that Hypothesis finds; None if all examples pass.

    examples: how many operands are tried. seed: the same seed tries the same operands. Raises LayoutError (E814) if the
    implementation lacks a function that the law needs.
    """
    for name in law.needs:
        _ = implementation[name]
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    unchecked = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    chosen = settings(
        max_examples=examples, database=None, deadline=None, phases=phases, suppress_health_check=unchecked
    )
    try:
        found = find(
            operands(law),
            lambda drawn: law.check(implementation, *drawn) is not None,
            settings=chosen,
            random=Random(seed),  # noqa: S311 reason: a test's draws, not a secret
        )
    except NoSuchExample:
        return None
    return law.check(implementation, *found)


def _of_kind(kind: Kind, before: Sequence[Operand]) -> SearchStrategy[Operand]:
    last = before[-1] if before else None
    match kind:
        case "layout":
            negative = layouts(strides=st.integers(-12, 12))
            free = layouts() | compact_layouts() | power_of_two_layouts() | negative | overlapping_layouts()
            return free | permuted(last) if isinstance(last, Layout) else free
        case "inner":
            assert isinstance(last, Layout)
            return inner_layouts(last) | composable_with(last) | carrying_layouts(last)
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
