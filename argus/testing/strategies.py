"""Hypothesis strategies for layouts, for property tests of layout code.

    >>> from hypothesis import given
    >>> from argus.layout import composition
    >>> from argus.testing.strategies import composable_pairs
    >>> @given(composable_pairs())
    ... def test_composition_is_application(pair):
    ...     a, b = pair
    ...     r = composition(a, b)
    ...     assert [r(i) for i in range(b.size())] == [a(b(i)) for i in range(b.size())]
    >>> test_composition_is_application()

Everything shrinks to few modes, small extents and small strides; nothing is filtered out, so no health check fails.
Bounds are inclusive. A layout of `max_modes` modes has at most that many leaves, whatever its nesting.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from argus.layout import ComposedLayout, IntTuple, Layout, Swizzle, Tiler, coalesce

MAX_MODES = 3
MAX_EXTENT = 8
STRIDES = st.integers(0, 12)
"""Strides that overlap, repeat and leave gaps. Use `st.integers(-12, 12)` for negative ones."""


# -- trees ---------------------------------------------------------------------------------------------------


def int_tuples(leaves: SearchStrategy[int] | None = None, max_leaves: int = 5) -> SearchStrategy[IntTuple]:
    """An int, or nested tuples of 1 to `max_leaves` ints in all."""
    return nested(st.lists(st.integers(0, 12) if leaves is None else leaves, min_size=1, max_size=max_leaves))


def shapes(max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT) -> SearchStrategy[IntTuple]:
    """Int-tuples of positive extents."""
    return int_tuples(st.integers(1, max_extent), max_modes)


def nested(leaves: SearchStrategy[list[int]]) -> SearchStrategy[IntTuple]:
    """The drawn leaves in any nesting, simplest first: an int if there is one, then a flat tuple."""
    return leaves.flatmap(lambda drawn: profiles(len(drawn)).map(lambda profile: _filled(profile, drawn)))


@st.composite
def profiles(draw: DrawFn, leaves: int) -> IntTuple:
    """Trees with this many leaves, numbered 0, 1, ... from the left."""
    parts: list[IntTuple] = list(range(leaves))
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, len(parts) - 1))
        after = draw(st.integers(first + 1, len(parts)))
        parts[first:after] = [tuple(parts[first:after])]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _filled(profile: IntTuple, leaves: Sequence[int]) -> IntTuple:
    if isinstance(profile, tuple):
        return tuple(_filled(part, leaves) for part in profile)
    return leaves[profile]


# -- layouts -------------------------------------------------------------------------------------------------


@st.composite
def layouts(
    draw: DrawFn, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT, strides: SearchStrategy[int] = STRIDES
) -> Layout:
    """Layouts with any extents and strides, flat or nested."""
    leaf = st.tuples(st.integers(1, max_extent), strides)
    return draw(_arranged(draw(st.lists(leaf, min_size=1, max_size=max_modes))))


def flat_layouts(
    max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT, strides: SearchStrategy[int] = STRIDES
) -> SearchStrategy[Layout]:
    """Layouts whose shape is a flat tuple."""
    leaf = st.tuples(st.integers(1, max_extent), strides)
    return st.lists(leaf, min_size=1, max_size=max_modes).map(_flat)


@st.composite
def nested_layouts(
    draw: DrawFn, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT, strides: SearchStrategy[int] = STRIDES
) -> Layout:
    """Layouts with at least one tuple inside a tuple."""
    layout = draw(layouts(max_modes, max_extent, strides))
    place = draw(st.integers(0, len(layout) - 1))
    parts = [(each.shape, each.stride) for each in layout]
    shape, stride = parts[place]
    parts[place] = (shape, stride) if isinstance(shape, tuple) else ((shape,), (stride,))
    return Layout(tuple(s for s, _ in parts), tuple(d for _, d in parts))


@st.composite
def overlapping_layouts(draw: DrawFn, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT) -> Layout:
    """Layouts each of whose modes begins just where those before end, a little earlier or later, or in their middle.

    So images overlap, nest with gaps, adjoin, or interleave: where laws about disjointness, complements and inverses
    fail, if they fail.
    """
    modes: list[tuple[int, int]] = []
    step, reach = 1, 1
    for _ in range(draw(st.integers(1, max_modes))):
        extent = draw(st.integers(2, max_extent))
        ends = (reach, reach + 1, max(1, reach - 1), 2 * reach, step, 2 * step, max(1, reach // 2), 0)
        stride = draw(st.sampled_from(ends))
        modes.append((extent, stride))
        step, reach = max(step, stride), max(reach, reach if stride == 0 else stride * extent)
    return draw(_arranged(draw(st.permutations(modes))))


@st.composite
def compact_layouts(draw: DrawFn, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT) -> Layout:
    """Bijections of [0, size): column-major strides with the modes in any order."""
    extents = draw(st.lists(st.integers(1, max_extent), min_size=1, max_size=max_modes))
    below = 1
    modes = [(0, 0)] * len(extents)
    for place in draw(st.permutations(range(len(extents)))):
        modes[place] = (extents[place], below)
        below *= extents[place]
    return draw(_arranged(modes))


@st.composite
def power_of_two_layouts(draw: DrawFn, max_modes: int = MAX_MODES, max_log: int = 3, max_stride_log: int = 4) -> Layout:
    """Extents 2^0 .. 2^max_log, strides 0 or 2^0 .. 2^max_stride_log: linear over F2 if their bits are disjoint."""
    strides = st.just(0) | st.integers(0, max_stride_log).map(_power)
    leaf = st.tuples(st.integers(0, max_log).map(_power), strides)
    return draw(_arranged(draw(st.lists(leaf, min_size=1, max_size=max_modes))))


def _power(exponent: int) -> int:
    return 1 << exponent


def _flat(modes: Sequence[tuple[int, int]]) -> Layout:
    return Layout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))


def _arranged(modes: Sequence[tuple[int, int]]) -> SearchStrategy[Layout]:
    """The modes in any nesting."""
    return profiles(len(modes)).map(
        lambda profile: Layout(_filled(profile, [s for s, _ in modes]), _filled(profile, [d for _, d in modes]))
    )


# -- swizzles ------------------------------------------------------------------------------------------------


@st.composite
def swizzles(draw: DrawFn, max_bits: int = 3, max_base: int = 3, max_apart: int = 2) -> Swizzle:
    """Swizzles with shifts of either sign, at most `max_apart` bits between the bits read and written; also 0 bits."""
    bits = draw(st.integers(0, max_bits))
    shift = bits + draw(st.integers(0, max_apart))
    return Swizzle(bits, draw(st.integers(0, max_base)), draw(st.sampled_from((shift, -shift))))


@st.composite
def swizzled_layouts(draw: DrawFn, inner: SearchStrategy[Layout] | None = None) -> ComposedLayout:
    """A swizzle after a layout, power-of-two by default, offset by a multiple of the swizzle's period or by 0."""
    swizzle = draw(swizzles())
    offset = draw(st.integers(0, 2)) * swizzle.period
    return ComposedLayout(swizzle, offset, draw(power_of_two_layouts() if inner is None else inner))


# -- related operands ----------------------------------------------------------------------------------------


@st.composite
def inner_layouts(draw: DrawFn, outer: Layout, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT) -> Layout:
    """Layouts whose images lie in the domain of `outer`: cosize <= size(outer)."""
    room = outer.size() - 1
    modes: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, max_modes))):
        extent = draw(st.integers(1, max_extent))
        stride = draw(st.integers(0, room // (extent - 1) if extent > 1 else room))
        room -= (extent - 1) * stride
        modes.append((extent, stride))
    return draw(_arranged(modes))


@st.composite
def carrying_layouts(draw: DrawFn, outer: Layout, max_modes: int = MAX_MODES, max_extent: int = MAX_EXTENT) -> Layout:
    """Layouts in the domain of `outer` whose steps are about those at which it changes modes: its index carries.

    A step is a product of the first extents of `outer` or their parts, one more, or one less; so sums of images run
    over the end of a mode of `outer`.
    """
    places = [1]
    for extent, _ in outer.flat_modes:
        places += [places[-1] * part for part in range(2, extent + 1) if extent % part == 0]
    room = outer.size() - 1
    modes: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, max_modes))):
        near = draw(st.sampled_from(sorted(set(places)))) + draw(st.sampled_from((0, 0, 1, -1)))
        stride = min(max(near, 1), max(room, 1))
        extent = draw(st.integers(1, min(max_extent, room // stride + 1)))
        room -= (extent - 1) * stride
        modes.append((extent, stride))
    return draw(_arranged(modes))


@st.composite
def in_domain_pairs(draw: DrawFn, outer: SearchStrategy[Layout] | None = None) -> tuple[Layout, Layout]:
    """(A, B) with cosize(B) <= size(A): the composition is defined on the domain of A, but may be no layout."""
    a = draw(layouts() if outer is None else outer)
    return a, draw(inner_layouts(a))


@st.composite
def composable_pairs(draw: DrawFn, outer: SearchStrategy[Layout] | None = None) -> tuple[Layout, Layout]:
    """(A, B) for which the layout A o B exists: B takes digits of A's index, each at most once, in any order."""
    a = draw(layouts() if outer is None else outer)
    digits: list[tuple[int, int]] = []
    below = 1
    for extent, _ in coalesce(a).flat_modes:
        rest = extent
        while rest > 1:
            part = draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0]))
            digits.append((part, below))
            rest, below = rest // part, below * part
    taken = draw(st.lists(st.sampled_from(digits), unique=True, max_size=len(digits))) if digits else []
    return a, draw(_arranged(taken or [(1, 0)]))


def tilers(layout: Layout) -> SearchStrategy[Tiler]:
    """Tilers that divide a layout as a whole or by mode: extents and strided tiles that divide it, None, tuples."""
    modes = list(layout)
    whole = _tiles(layout.size())
    by_mode = st.integers(1, len(modes)).flatmap(lambda n: st.tuples(*[_mode_tilers(mode) for mode in modes[:n]]))
    return st.none() | whole | by_mode


def _mode_tilers(mode: Layout) -> SearchStrategy[Tiler]:
    tile = st.none() | _tiles(mode.size())
    if len(mode) < 2:
        return tile
    return tile | st.tuples(*[_tiles(part.size()) for part in mode])


def _tiles(size: int) -> SearchStrategy[Tiler]:
    divisors = st.sampled_from([n for n in range(1, size + 1) if size % n == 0])
    strided = divisors.flatmap(
        lambda n: st.sampled_from([d for d in range(1, size // n + 1) if size % (n * d) == 0]).map(
            lambda d: Layout(n, d)
        )
    )
    return divisors | strided


def cotargets(layout: Layout | None = None, largest: int = 64) -> SearchStrategy[int]:
    """Cotargets for `complement`; with a layout, also its size and cosize."""
    some = st.integers(1, largest)
    return some if layout is None else some | st.sampled_from((max(1, layout.cosize()), layout.size()))


def composable_with(outer: Layout) -> SearchStrategy[Layout]:
    """Layouts B for which outer o B exists."""
    return composable_pairs(st.just(outer)).map(lambda pair: pair[1])


def permuted(layout: Layout) -> SearchStrategy[Layout]:
    """The same modes in any order and nesting: a layout with the same set of images."""
    return st.permutations(layout.flat_modes).flatmap(_arranged)


def regrouped(layout: Layout) -> SearchStrategy[Layout]:
    """The same modes in another nesting, which is the same function."""
    return _arranged(layout.flat_modes)
