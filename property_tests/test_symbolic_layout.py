"""Property: a symbolic result, evaluated, equals the concrete operation wherever its conditions hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product as every
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from argus import layout as concrete
from argus.core.index import Cond
from argus.core.layout import Layout, LayoutError
from argus.core.layout.symbolic import Claim, Conditional, Operations, Size, SymbolicLayout
from argus.core.query import Budget
from argus.core.walk import evaluate, symbols
from argus.layout.symbolic import symbols as make_symbols
from argus.layout.symbolic import under
from property_tests.depth import examples

M, K, N = make_symbols("M K N")
D = make_symbols("D", low=-2)[0]
NAMES = ("M", "K", "N", "D")
GRID: list[dict[str, int]] = [
    dict(zip(NAMES, values, strict=True))
    for values in every((1, 2, 3, 4, 6, 8, 12), (1, 2, 3, 4), (1, 2, 4), (-1, 0, 1, 2, 8))
]
BY_MODE = ("logical_divide", "zipped_divide", "logical_product", "blocked_product")
SPLITS = ("composition", *(f"{kind}_divide" for kind in ("logical", "zipped", "tiled", "flat")), "logical_product")

extents = st.sampled_from([1, 2, 3, 4, M, K, N, 2 * M, M * K, 4 * N])
strides = st.sampled_from([0, 1, 1, 2, 4, M, K, 2 * K, M * K, D, 2 * M * N])


@st.composite
def symbolic_layouts(draw: DrawFn, most: int = 3) -> SymbolicLayout:
    """Symbolic layouts: compact in any order, with gaps, and with any strides."""
    shape = draw(st.lists(extents, min_size=1, max_size=most))
    if draw(st.integers(0, 3)) == 0:
        return SymbolicLayout(tuple(shape), tuple(draw(strides) for _ in shape))
    steps: list[Size | int] = [0] * len(shape)
    below: Size | int = draw(st.sampled_from([1, 1, 1, 2, N]))
    for place in draw(st.permutations(range(len(shape)))):
        steps[place] = below
        below = below * shape[place] * draw(st.sampled_from([1, 1, 1, 1, 2, K]))
    if len(shape) == 1 and draw(st.booleans()):
        return SymbolicLayout(shape[0], steps[0])
    return SymbolicLayout(tuple(shape), tuple(steps))


@st.composite
def tilers(draw: DrawFn, layout: SymbolicLayout) -> Any:  # noqa: ANN401 reason: any tiler
    tile = st.one_of(st.sampled_from([1, 2, 3, 4, N, 2 * K]), symbolic_layouts(most=2))
    if draw(st.booleans()):
        return draw(tile)
    return tuple(draw(st.none() | tile) for _ in range(draw(st.integers(1, len(layout)))))


facts = st.lists(
    st.sampled_from(
        [
            *(M % 2 == 0, M % 4 == 0, M % N == 0, K % 2 == 0, M >= 4, M >= 2, K >= 2, N <= M, M == 2 * N),
            *(K <= 2, D >= 1, D >= 0, D == M, D % K == 0, (M * K) % 4 == 0, N % 2 == 0, N >= 2, D >= M * K),
        ]
    ),
    max_size=4,
)


@st.composite
def calls(draw: DrawFn) -> tuple[str, tuple[Any, ...]]:
    """An operation and its operands."""
    layout = draw(symbolic_layouts())
    name = draw(
        st.sampled_from(
            [
                *SPLITS,
                *SPLITS,
                "coalesce",
                "complement",
                "right_inverse",
                "left_inverse",
                "blocked_product",
                "tile_to_shape",
            ]
        )
    )
    if name in SPLITS:
        return name, (layout, draw(tilers(layout)))
    if name == "complement":
        return name, (layout, draw(st.sampled_from([1, 8, 24, N, 4 * M * K, 2 * M * K * N])))
    if name == "blocked_product":
        return name, (layout, draw(symbolic_layouts(most=2)))
    if name == "tile_to_shape":
        target = tuple(draw(extents) for _ in range(draw(st.integers(len(layout), 3))))
        return name, (layout, target, draw(st.none() | st.permutations(range(len(target))).map(tuple)))
    return name, (layout,)


def at(operand: object, values: dict[str, int]) -> Any:  # noqa: ANN401 reason: any operand
    if isinstance(operand, SymbolicLayout):
        return operand.substitute(values)
    if isinstance(operand, tuple):
        return tuple(at(part, values) for part in cast(tuple[object, ...], operand))
    return number(operand.node, values) if isinstance(operand, Size) else operand


def number(node: Any, values: dict[str, int]) -> int:  # noqa: ANN401 reason: any node
    return int(cast(int, evaluate(node, {symbol: values[symbol.name] for symbol in symbols(node)})))


def satisfied(condition: Cond, values: dict[str, int]) -> bool:
    try:
        return bool(number(condition, values))
    except ZeroDivisionError:
        return False


def allowed(conditions: tuple[Cond, ...]) -> Iterator[dict[str, int]]:
    return (values for values in GRID if all(satisfied(condition, values) for condition in conditions))


def same(a: Layout, b: Layout) -> bool:
    if a.size() > 5000:
        return concrete.coalesce(a) == concrete.coalesce(b)
    return a.size() == b.size() and bool(np.array_equal(a.table(), b.table()))


def assert_exact(name: str, operands: tuple[Any, ...], made: SymbolicLayout, conditions: tuple[Cond, ...]) -> None:
    """Compare at up to 12 valuations, spread over the allowed ones."""
    good = [values for values in allowed(conditions) if small(operands, values)]
    for values in good[:: 1 + len(good) // 12]:
        wanted = getattr(concrete, name)(*at(operands, values))
        found = made.substitute(values)
        assert same(found, wanted), (name, [str(each) for each in operands], values, str(found), str(wanted))
        if name in BY_MODE:
            modes = zip(found, wanted, strict=True)
            assert all(same(mode, other) for mode, other in modes), (values, str(found), str(wanted))


def small(operands: tuple[Any, ...], values: dict[str, int]) -> bool:
    sizes = [each.size() for each in flattened(at(operands, values)) if isinstance(each, Layout)]
    return max(sizes, default=1) <= 2000


def flattened(operand: object) -> Iterator[object]:
    if isinstance(operand, tuple):
        for part in cast(tuple[object, ...], operand):
            yield from flattened(part)
    else:
        yield operand


def performed(call: Callable[[], Conditional]) -> Conditional | None:
    try:
        return call()
    except LayoutError as refused:
        if refused.code not in {"E811", "E803"}:
            raise
        return None


@pytest.mark.share(4)
@settings(max_examples=examples(400))
@given(calls(), facts)
def test_exact_by_forms_alone(call: tuple[str, tuple[Any, ...]], given_facts: list[Claim]) -> None:
    name, operands = call
    assumptions = tuple(fact.node for fact in given_facts)
    result = performed(lambda: getattr(Operations(assumptions), name)(*operands))
    if result is not None:
        formulas = tuple(condition.formula for condition in result.conditions)
        assert_exact(name, operands, result.layout, (*assumptions, *formulas))


@pytest.mark.share(3)
@settings(max_examples=examples(60))
@given(calls(), facts)
def test_exact_and_honest_with_a_solver(call: tuple[str, tuple[Any, ...]], given_facts: list[Claim]) -> None:
    name, operands = call
    assumptions = under(*given_facts, solver="z3", budget=Budget.about(0.5))
    try:
        result = getattr(assumptions, name)(*operands)
    except LayoutError as refused:
        if refused.code not in {"E811", "E803"}:
            raise
        return
    listed = tuple(condition.formula for condition in result.listed)
    assert_exact(name, operands, result.layout, (*assumptions.facts, *listed))
    known = assumptions.facts
    for condition in result.conditions:
        values = condition.counterexample
        if condition.standing == "proved":
            assert all(satisfied(condition.formula, each) for each in allowed(known))
        elif values is not None:
            whole = {"D": 1, **dict.fromkeys(NAMES, 1), **values}
            assert all(satisfied(fact, whole) for fact in known)
            assert not satisfied(condition.formula, whole)
            assert refused_or_differs(name, operands, result.layout, whole)
        known = (*known, condition.formula)


def refused_or_differs(name: str, operands: tuple[Any, ...], made: SymbolicLayout, values: dict[str, int]) -> bool:
    try:
        return not same(getattr(concrete, name)(*at(operands, values)), made.substitute(values))
    except LayoutError:
        return True


@settings(max_examples=examples(200))
@given(symbolic_layouts(), st.sampled_from(GRID), st.integers(0, 60))
def test_calls_sizes_and_cosizes_are_those_at_the_values(
    layout: SymbolicLayout, values: dict[str, int], index: int
) -> None:
    there = layout.substitute(values)
    assert number(layout(index).node, values) == there(index)
    assert number(layout(N + 3).node, values) == there(values["N"] + 3)
    assert number(layout.size().node, values) == there.size()
    assert number(layout.cosize().node, values) == there.cosize()
