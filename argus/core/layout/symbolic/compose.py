"""Composition of symbolic layouts: `argus.core.layout.compose` with side conditions in place of numeric checks.

With below_k the product of the extents before mode k of A, A(n) = slope * n + sum of jump_k * floor(n / below_k). A
leaf n:d of B relates to each boundary below_k in one of three ways: it stays within the boundary, (n - 1) * d <
below_k; its stride is a multiple of the boundary; or it crosses the boundary and must split there into below_k / d
elements and the rest. A is linear along each part; A of a sum of parts is the sum of A if, for each boundary, the parts
within it stay within it together.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Union, cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.layout.faults import misplaced
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.layout.symbolic.sizes import SizeLike
from argus.core.layout.symbolic.values import Mode, SymbolicLayout, Tree, is_one, layout_of_modes, to_symbolic
from argus.core.layout.values import Layout

SymbolicTiler = Union[SymbolicLayout, Layout, SizeLike, None, tuple["SymbolicTiler", ...]]
"""A tuple applies mode by mode, a size `n` is `n:1`, None leaves the mode unchanged."""
_ADDS_UP = "parts together stay within the extents before them"


@frozen(eq=False)
class _Part:
    """A part along which the left layout is linear. place: how many boundaries divide the stride."""

    extent: Index
    step: Index
    place: int


def coalesce_modes(context: Context, modes: tuple[Mode, ...], *, endless: bool = False) -> list[Mode]:
    """Merge modes that provably continue each other. endless: the function stays equal beyond the last extent too."""
    merged: list[Mode] = []
    for place, (extent, stride) in enumerate(modes):
        if context.is_one(extent) and not (endless and place == len(modes) - 1):
            continue
        if merged and context.same(algebra.mul(*merged[-1]), stride):
            merged[-1] = (algebra.mul(merged[-1][0], extent), merged[-1][1])
        else:
            merged.append((extent, stride))
    return merged


def by_mode(
    operation: Callable[[Context, SymbolicLayout, SymbolicTiler], SymbolicLayout],
    context: Context,
    layout: SymbolicLayout,
    tiler: tuple[SymbolicTiler, ...],
) -> SymbolicLayout:
    """Apply the operation to each mode with its tiler; later modes are unchanged. Raises LayoutError (E803)."""
    modes = list(layout)
    if len(modes) < len(tiler):
        raise misplaced(f"a tiler of {len(tiler)} modes for {layout}", f"give at most {len(modes)} modes")
    done = [operation(context, *pair) for pair in zip(modes, tiler, strict=False)]
    return layout_of_modes([*done, *modes[len(tiler) :]])


def composition(context: Context, a: SymbolicLayout, b: SymbolicTiler) -> SymbolicLayout:
    """i -> a(b(i)), with a shape that refines that of b; mode by mode for a tuple."""
    if b is None:
        return a
    if isinstance(b, tuple):
        return by_mode(composition, context, a, b)
    return compose_layouts(context, a, to_symbolic(b))


def compose_layouts(context: Context, a: SymbolicLayout, b: SymbolicLayout) -> SymbolicLayout:
    modes = coalesce_modes(context, a.flat_modes, endless=True)
    bounds = list(accumulate([extent for extent, _ in modes[:-1]], algebra.mul))
    parts: list[_Part] = []
    split = _LeafSplitter(context, modes, bounds, parts)
    shape, stride = _map_leaves(split.leaf, b.shape, b.stride)
    _require_no_carry(context, bounds, parts)
    return SymbolicLayout(shape, stride)


def _map_leaves(leaf: Callable[[Index, Index], tuple[Tree, Tree]], shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    if not isinstance(shape, tuple):
        return leaf(shape, cast(Index, stride))
    pairs = [_map_leaves(leaf, *pair) for pair in zip(shape, cast(tuple[Tree, ...], stride), strict=True)]
    return tuple(extent for extent, _ in pairs), tuple(step for _, step in pairs)


@frozen(eq=False)
class _LeafSplitter:
    """Splits leaves of the right layout into parts along which the left layout is linear."""

    context: Context
    modes: list[Mode]
    bounds: list[Index]
    parts: list[_Part]

    def leaf(self, extent: Index, step: Index) -> tuple[Tree, Tree]:
        if not self.bounds:
            return extent, algebra.mul(self.modes[0][1] if self.modes else algebra.const(0), step)
        self.context.require(algebra.le(0, step), "strides of the right layout are not negative")
        found: list[Mode] = []
        place = 0
        while place < len(self.bounds):
            below = self.bounds[place]
            relation = _boundary_case(self.context, extent, step, below)
            if relation == "within":
                break
            if relation == "crosses":
                run = self.context.exact(below, step)
                self._add(found, run, step, place)
                extent, step = self.context.exact(extent, run), below
            place += 1
        if not found or not is_one(extent):
            self._add(found, extent, step, place)
        if len(found) == 1:
            return found[0]
        return tuple(extent for extent, _ in found), tuple(stride for _, stride in found)

    def _add(self, found: list[Mode], extent: Index, step: Index, place: int) -> None:
        self.parts.append(_Part(extent, step, place))
        unit = self.bounds[place - 1] if place else algebra.const(1)
        found.append((extent, algebra.mul(self.modes[place][1], self.context.exact(step, unit))))


def _boundary_case(context: Context, extent: Index, step: Index, below: Index) -> str:
    """The relation of the leaf to the boundary; adds the conditions that it needs.

    Raises LayoutError (E811) if none is proved and more than one is possible.
    """
    within = algebra.lt(algebra.mul(algebra.sub(extent, 1), step), below)
    if context.holds(within):
        relation = "within"
    elif context.divides(below, step):
        relation = "multiple"
    elif context.divides(step, below) and context.divides(context.exact(below, step), extent):
        relation = "crosses"
    else:
        relation = _only_possible_case(context, extent, step, below)
    if relation == "within":
        context.require(within, "elements stay within the extents before a mode")
    elif relation == "multiple":
        context.quotient(step, below, "the stride is a multiple of the extents before a mode")
    else:
        run = context.quotient(below, step, "the stride divides the extents before a mode")
        context.quotient(extent, run, "the elements up to the end of a mode divide the extent")
    return relation


def _only_possible_case(context: Context, extent: Index, step: Index, below: Index) -> str:
    within = algebra.lt(algebra.mul(algebra.sub(extent, 1), step), below)
    multiple = algebra.eq(algebra.mod(step, below), 0)
    left: dict[str, Cond] = {}
    if not context.fails(within):
        left["within"] = within
    if not context.fails(multiple):
        left["multiple"] = multiple
    if not _cannot_cross(context, step, below):
        left["crosses"] = _split_condition(context, extent, step, below)
    if len(left) > 1:
        raise context.undecided_error(list(left.values()))
    return next(iter(left), "within")


def _split_condition(context: Context, extent: Index, step: Index, below: Index) -> Cond:
    """The condition for a split, in terms that the user can assume."""
    run = context.facts.quotient(below, step)
    needed = [algebra.eq(algebra.mod(below, step), 0)] if run is None else []
    if run is not None and not isinstance(run, Const):
        needed.append(algebra.eq(algebra.mod(extent, run), 0))
    return algebra.all_of(needed)


def _cannot_cross(context: Context, step: Index, below: Index) -> bool:
    """Whether no split at the boundary is possible: the stride exceeds it or is not positive, or never divides it."""
    if context.holds(algebra.lt(below, step)) or context.holds(algebra.le(step, 0)):
        return True
    return context.holds(algebra.le(1, step)) and context.fails(algebra.eq(algebra.mod(below, step), 0))


def _require_no_carry(context: Context, bounds: list[Index], parts: list[_Part]) -> None:
    for place, below in enumerate(bounds):
        inside = [part for part in parts if part.place <= place and not is_one(part.extent)]
        if len(inside) > 1:
            reached = [algebra.mul(algebra.sub(part.extent, 1), part.step) for part in inside]
            context.require(algebra.lt(algebra.add(*reached), below), _ADDS_UP)
