"""Property: a printed layout parses to the same layout, and any text yields a value or a LayoutError."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from argus.core.layout import ComposedLayout, IntTuple, Layout, LayoutError, LayoutLike, Swizzle
from argus.core.layout.notation import parse
from argus.core.layout.values import of_tree


def tree(leaves: st.SearchStrategy[int]) -> st.SearchStrategy[IntTuple]:
    return st.recursive(leaves, lambda parts: st.lists(parts, max_size=3).map(tuple), max_leaves=6)


def layout(shape: IntTuple, steps: list[int]) -> Layout:
    return of_tree(shape, steps)


def swizzle(bits: int, base: int, more: int, sign: int) -> Swizzle:
    return Swizzle(bits, base, sign * (bits + more))


shapes = tree(st.integers(1, 1 << 40))
strides = st.lists(st.integers(-(1 << 70), 1 << 70), min_size=6, max_size=6)
layouts = st.builds(layout, shapes, strides)
swizzles = st.builds(swizzle, st.integers(0, 6), st.integers(0, 9), st.integers(0, 5), st.sampled_from((-1, 1)))
things: st.SearchStrategy[LayoutLike] = st.recursive(
    layouts | swizzles, lambda parts: st.builds(ComposedLayout, parts, st.integers(-99, 99), parts), max_leaves=4
)


@given(things)
def test_what_is_printed_is_read_back(thing: LayoutLike) -> None:
    assert parse(str(thing)) == thing


@given(st.text(alphabet="0123456789(),:[]oSw<>_- ", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(LayoutError):
        found = parse(text)
        assert parse(str(found)) == found
