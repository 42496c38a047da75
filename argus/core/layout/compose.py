"""Exact composition of layouts [Cecka 2026, CuTe layout representation and algebra, section 3.3].

`composition(A, B)` of layouts is admissible as R if the shape of R refines that of B leaf by leaf and
R(i) = A(B(i)) for all i below size(B); beyond its size, A extends its last mode as in a call. Such an R exists if and
only if each leaf of B splits into parts along which A is linear, and A of a sum of parts is the sum of A of each part.
The parts are unique: each extends as far as A stays linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union, overload

from argus.core.layout.coalesce import by_mode
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.images.steps import Jumps, evaluate, first_deviation, steps
from argus.core.layout.inttuple import IntTuple, text
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout, layout_of, of_tree, unchecked_layout

Tiler = Union[Layout, int, None, tuple["Tiler", ...]]
"""Right operand of composition, divide, product: a tuple applies mode by mode, `n` is `n:1`, None changes no mode."""


@overload
def composition(a: Layout, b: Tiler) -> Layout: ...
@overload
def composition(a: LayoutLike, b: LayoutLike | Tiler) -> LayoutLike: ...
def composition(a: LayoutLike, b: LayoutLike | Tiler) -> LayoutLike:
    """The function i -> a(b(i)) for i below size(b), as a layout whose shape refines that of b.

    b: a layout; a tuple is composed mode by mode, an int n is `n:1`, None leaves the mode unchanged. If either operand
    is a swizzle or a composed layout, the result is a composed layout, which always exists. Raises LayoutError: E804
    with the smallest index at which no layout agrees, E803 for a tiler of too many modes.
    """
    if isinstance(b, Layout) and isinstance(a, Layout):
        return compose_layouts(a, b)
    if not isinstance(a, Layout | Swizzle | ComposedLayout):  # pyright: ignore[reportUnnecessaryIsInstance] reason: a user may pass anything
        a = layout_of(a)
    if b is None:
        return a
    if isinstance(b, tuple):
        return _compose_by_mode(a, b)
    if not isinstance(b, Layout | Swizzle | ComposedLayout):
        b = layout_of(b)
    return compose_layouts(a, b) if isinstance(a, Layout) and isinstance(b, Layout) else _compose_any(a, b)


def compose_layouts(a: Layout, b: Layout) -> Layout:
    """`composition` of two layouts."""
    slope, jumps = steps(a.flat_modes)
    shape = b.shape
    if not jumps:
        return of_tree(shape, [slope * stride for _, stride in b.flat_modes])
    parts: list[tuple[int, int]] = []
    leaves = [_split_leaf(slope, jumps, a, b, mode, parts) for mode in b.flat_modes]
    for below, _ in jumps:
        load = 0
        for extent, stride in parts:
            load += (extent - 1) * (stride % below)
        if load >= below:
            _check_linear(slope, jumps, a, b, parts)
            break
    if not isinstance(shape, tuple):
        return unchecked_layout(*leaves[0])
    if len(leaves) == len(shape) and not any(isinstance(part, tuple) for part in shape):
        return unchecked_layout(tuple([extent for extent, _ in leaves]), tuple([stride for _, stride in leaves]))
    return unchecked_layout(*_nest_leaves(shape, iter(leaves)))


def _nest_leaves(shape: IntTuple, leaves: Iterator[tuple[IntTuple, IntTuple]]) -> tuple[IntTuple, IntTuple]:
    if not isinstance(shape, tuple):
        return next(leaves)
    pairs = [_nest_leaves(part, leaves) for part in shape]
    return tuple([extent for extent, _ in pairs]), tuple([stride for _, stride in pairs])


def _split_leaf(
    slope: int, jumps: Jumps, a: Layout, b: Layout, mode: tuple[int, int], parts: list[tuple[int, int]]
) -> tuple[IntTuple, IntTuple]:
    """The modes of one leaf of B along which A is linear; appends them to `parts` with B's strides."""
    left, step = mode
    extents: list[int] = []
    strides: list[int] = []
    while True:
        value, run = slope * step, left
        for below, jump in jumps:
            rest = step % below
            value += jump * (step // below)
            if rest * (run - 1) >= below:
                run = -(-below // rest)
        if run < left:
            if len(jumps) > 1:
                run = first_deviation(jumps, [(left, step)]) or left
            if left % run:
                _check_linear(slope, jumps, a, b, [*parts, (run + 1, step)])
        parts.append((run, step))
        extents.append(run)
        strides.append(value)
        if run == left:
            break
        left //= run
        step *= run
    if len(extents) == 1:
        return extents[0], strides[0]
    return tuple(extents), tuple(strides)


def _check_linear(slope: int, jumps: Jumps, a: Layout, b: Layout, parts: list[tuple[int, int]]) -> None:
    """Raise LayoutError (E804) unless A of a sum of the parts is the sum of A of each."""
    index = first_deviation(jumps, parts)
    if index is None:
        return
    found, rest = 0, index
    for extent, stride in parts:
        rest, digit = divmod(rest, extent)
        found += digit * evaluate(slope, jumps, stride)
    expected = a(b(index))
    raise LayoutError(
        "E804",
        f"({a}) o ({b}) is no layout whose shape refines {text(b.shape)}: at index {index} it is {expected}, "
        f"and such a layout that agrees at all smaller indices is {found} there",
        help="compose with a layout whose extents and strides divide the left one's, or keep a `ComposedLayout`",
        index=index,
        expected=expected,
        found=found,
    )


# -- with swizzles -------------------------------------------------------------------------------------------


def _compose_by_mode(a: LayoutLike, tiler: tuple[Tiler, ...]) -> LayoutLike:
    if isinstance(a, Layout):
        return by_mode(_compose_mode, a, tiler)
    if isinstance(a, Swizzle):
        raise misplaced(f"{a} has no modes for a tiler of {len(tiler)}", "compose it with a layout first")
    return ComposedLayout(a.outer, a.offset, _compose_by_mode(a.inner, tiler))


def _compose_mode(mode: Layout, tiler: Tiler) -> Layout:
    return composition(mode, tiler)


def _compose_any(a: LayoutLike, b: LayoutLike) -> LayoutLike:
    """Composition with swizzles; merges adjacent inner layouts where that is exact."""
    if isinstance(a, ComposedLayout) and not isinstance(a.inner, Swizzle):
        joined = _compose_if_exact(a.inner, b)
        return ComposedLayout(a, 0, b) if joined is None else ComposedLayout(a.outer, a.offset, joined)
    return ComposedLayout(a, 0, b)


def _compose_if_exact(a: LayoutLike, b: LayoutLike) -> LayoutLike | None:
    try:
        return composition(a, b)
    except LayoutError:
        return None
