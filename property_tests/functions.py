"""Strategies for small layouts, swizzles and composed layouts, and brute-force oracles."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from argus.core.layout import ComposedLayout, IntTuple, Layout, LayoutLike, Swizzle
from argus.core.layout.witness import Collision, Missed, Outside

LARGEST_SIZE = 512


def trees(extents: SearchStrategy[int], strides: SearchStrategy[int]) -> SearchStrategy[tuple[IntTuple, IntTuple]]:
    leaves = st.tuples(extents, strides)

    def group(parts: list[tuple[IntTuple, IntTuple]]) -> tuple[IntTuple, IntTuple]:
        return tuple(shape for shape, _ in parts), tuple(stride for _, stride in parts)

    return st.recursive(leaves, lambda inner: st.lists(inner, min_size=1, max_size=3).map(group), max_leaves=4)


def built(tree: tuple[IntTuple, IntTuple]) -> Layout:
    return Layout(*tree)


def small(layout: Layout) -> bool:
    return layout.size() <= LARGEST_SIZE


powers = st.sampled_from([1, 2, 4, 8])
layouts = trees(st.integers(1, 8), st.integers(-12, 12)).map(built).filter(small)
upward = trees(st.integers(1, 5), st.integers(0, 12)).map(built).filter(small)
binary = trees(powers, st.sampled_from([0, 1, 2, 4, 8, 16, 32, 3, 5, 6, 12, 24, 48, 64])).map(built).filter(
    small
) | trees(powers, st.integers(-4, 12)).map(built).filter(small)


@st.composite
def compact(draw: DrawFn) -> Layout:
    """A compact layout in any order, sometimes with one stride changed."""
    extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    strides = [0] * len(extents)
    below = 1
    for place in draw(st.permutations(range(len(extents)))):
        strides[place] = below
        below *= extents[place]
    if draw(st.booleans()):
        strides[0] += draw(st.sampled_from([-1, 1, 2]))
    return Layout(tuple(extents), tuple(strides))


@st.composite
def swizzles(draw: DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 2))
    shift = draw(st.integers(bits, 3)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 2)), shift)


@st.composite
def composed(draw: DrawFn) -> ComposedLayout:
    outer = draw(swizzles() | layouts)
    inner = draw(binary | layouts | swizzles())
    offset = draw(st.sampled_from([0, 0, 1, 4, 8, -3]))
    return ComposedLayout(outer, offset, inner)


functions: SearchStrategy[LayoutLike] = layouts | compact() | binary | swizzles() | composed()


def images(f: LayoutLike) -> list[int]:
    return [f(i) for i in range(f.size())]


# -- brute force ---------------------------------------------------------------------------------------------


def collision(values: list[int]) -> Collision | None:
    for second, image in enumerate(values):
        if image in values[:second]:
            return Collision(values.index(image), second, image)
    return None


def not_onto(values: list[int], onto: int) -> Outside | Missed | None:
    for index, image in enumerate(values):
        if not 0 <= image < onto:
            return Outside(index, image)
    return next((Missed(value) for value in range(onto) if value not in values), None)


def hole(values: list[int]) -> Missed | None:
    return next((Missed(value) for value in range(min(values), max(values)) if value not in values), None)


def nonlinear(values: list[int]) -> int | None:
    """The smallest index whose image is negative or not the xor of the images of its bits; None if linear over F2."""
    for index, image in enumerate(values):
        wanted = 0
        for bit in range(index.bit_length()):
            if index >> bit & 1:
                wanted ^= values[1 << bit]
        if image < 0 or image != wanted:
            return index
    return None


def some_layout(values: list[int]) -> int:
    """The longest prefix that a layout of this size agrees with, over all ordered factorisations of the size."""
    best = 0
    for extents in factorisations(len(values)):
        strides = [values[int(np.prod(extents[:place]))] for place in range(len(extents))]
        layout = Layout(extents, tuple(strides))
        agree = [layout(i) == value for i, value in enumerate(values)]
        best = max(best, len(values) if all(agree) else agree.index(False))
    return best


def factorisations(n: int) -> list[tuple[int, ...]]:
    if n == 1:
        return [()]
    return [(first, *rest) for first in range(2, n + 1) if n % first == 0 for rest in factorisations(n // first)]
