"""Complement of a symbolic layout: strides must have a known order and nest; the gaps between them become modes."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.layout.symbolic.values import Mode, SymbolicLayout, flat_layout, is_one

_POSITIVE = "strides that are inverted are positive"
_NESTS = "each stride is a multiple of stride times extent of the one below it"
_FILLS = "tiles fill the extent without a rest"
_ONES = "a last mode of extent 1 leaves no gap below it"

GappedMode = tuple[Index, Index, Index]
"""(gap before the mode, its extent, its stride)."""


def ascending(context: Context, modes: list[Mode]) -> list[int]:
    """Positions of the modes by ascending stride. Raises LayoutError (E811) if the order is undecided."""
    order: list[int] = []
    for place, (_, stride) in enumerate(modes):
        at = len(order)
        while at and not _comes_first(context, modes[order[at - 1]][1], stride):
            at -= 1
        order.insert(at, place)
    return order


def _comes_first(context: Context, a: Index, b: Index) -> bool:
    """Whether a comes first. The order of equal strides is arbitrary: they nest only if an extent is 1."""
    if context.holds(algebra.le(a, b)):
        return True
    if context.holds(algebra.le(b, a)):
        return False
    raise context.undecided_error([algebra.le(a, b)])


def nested_modes(context: Context, modes: list[Mode]) -> tuple[list[GappedMode], list[int], Index]:
    """The modes by ascending stride with the gap before each, their positions, and the length that both fill."""
    for _, stride in modes:
        context.require(algebra.le(1, stride), _POSITIVE)
    order = ascending(context, modes)
    gapped: list[GappedMode] = []
    filled: Index = algebra.const(1)
    for place in order:
        extent, stride = modes[place]
        gapped.append((context.quotient(stride, filled, _NESTS), extent, stride))
        filled = algebra.mul(stride, extent)
    return gapped, order, filled


def require_last_gap(context: Context, gapped: list[GappedMode], target: Index | None = None) -> None:
    """Require that a mode above the last gap has an extent of at least 2, or that its stride divides the target.

    If all those extents are 1, the modes have no effect, and the gap below them ends at the target instead.
    """
    places = [place for place, (gap, _, _) in enumerate(gapped) if not context.is_one(gap)]
    if not places:
        return
    above = gapped[places[-1] :]
    several = algebra.any_of(algebra.le(2, extent) for _, extent, _ in above)
    if target is not None and not context.holds(several):
        several = algebra.any_of((several, algebra.eq(algebra.mod(target, above[0][2]), 0)))
    context.require(several, _ONES)


def nontrivial_modes(context: Context, layout: SymbolicLayout) -> list[Mode]:
    """The modes without those of extent 1 or stride 0."""
    return [
        mode
        for mode in layout.flat_modes
        if not context.is_one(mode[0]) and not context.facts.decide(algebra.eq(mode[1], 0))
    ]


def complement(context: Context, layout: SymbolicLayout, target: Index, *, exact: bool = False) -> SymbolicLayout:
    """The complement of `layout` in [0, target), rounded up like `argus.layout.complement`.

    exact: require instead that the target needs no rounding.
    """
    context.require(algebra.le(1, target), "the target is positive")
    gapped, _, filled = nested_modes(context, nontrivial_modes(context, layout))
    gaps = gap_modes(gapped)
    left = _copies_to_target(context, gapped, target, filled, exact=exact)
    if not context.is_one(left):
        gaps.append((left, filled))
    return flat_layout(gaps)


def gap_modes(gapped: list[GappedMode]) -> list[Mode]:
    """The gaps as (extent, stride) modes."""
    found: list[Mode] = []
    below: Index = algebra.const(1)
    for gap, extent, stride in gapped:
        if not is_one(gap):
            found.append((gap, below))
        below = algebra.mul(stride, extent)
    return found


def _copies_to_target(
    context: Context, gapped: list[GappedMode], target: Index, filled: Index, *, exact: bool
) -> Index:
    numbers = isinstance(target, Const) and isinstance(filled, Const)
    whole = context.divides(filled, target)
    covers = not whole and context.holds(algebra.le(target, filled))
    if whole or (exact and not covers and not numbers):
        return context.quotient(target, filled, _FILLS)

    require_last_gap(context, gapped, target)
    return algebra.const(1) if covers else algebra.ceil_div(target, filled)
