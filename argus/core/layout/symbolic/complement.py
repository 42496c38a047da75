"""Complement over symbols: strides must be known in order and nest, gaps between them become modes."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.layout.symbolic.values import Mode, SymbolicLayout, flat, is_one

_POSITIVE = "strides that are undone are positive"
_NESTS = "each stride is a multiple of stride times extent of the one below it"
_FILLS = "tiles fill the extent without a rest"
_ONES = "a last mode of extent 1 leaves no gap below it"

GappedMode = tuple[Index, Index, Index]
"""(gap before the mode, its extent, its stride)."""


def ascending(context: Context, modes: list[Mode]) -> list[int]:
    """The places of the modes by stride. Raises LayoutError (E811) if the order is not decided."""
    order: list[int] = []
    for place, (_, stride) in enumerate(modes):
        at = len(order)
        while at and not _before(context, modes[order[at - 1]][1], stride):
            at -= 1
        order.insert(at, place)
    return order


def _before(context: Context, a: Index, b: Index) -> bool:
    """Whether a comes first. Equal strides may stand either way: they nest only where an extent is 1."""
    if context.holds(algebra.le(a, b)):
        return True
    if context.holds(algebra.le(b, a)):
        return False
    raise context.undecided([algebra.le(a, b)])


def nested_modes(context: Context, modes: list[Mode]) -> tuple[list[GappedMode], list[int], Index]:
    """The modes by ascending stride with the gaps between them, their places, and the length that they fill."""
    for _, stride in modes:
        context.require(algebra.le(1, stride), _POSITIVE)
    order = ascending(context, modes)
    rungs: list[GappedMode] = []
    filled: Index = algebra.const(1)
    for place in order:
        extent, stride = modes[place]
        rungs.append((context.quotient(stride, filled, _NESTS), extent, stride))
        filled = algebra.mul(stride, extent)
    return rungs, order, filled


def require_last_gap(context: Context, rungs: list[GappedMode], target: Index | None = None) -> None:
    """Presume that a mode above the last gap has an extent of 2 at least, or that the gap ends before the target.

    Where all those extents are 1 the modes are as if absent, and the gap below them ends where the target does.
    """
    places = [place for place, (gap, _, _) in enumerate(rungs) if not context.is_one(gap)]
    if not places:
        return
    above = rungs[places[-1] :]
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
    """The layout of what `layout` lacks to fill the interval up to `target`, rounded up as `complement` does.

    exact: presume instead that there is nothing to round.
    """
    context.require(algebra.le(1, target), "the target is positive")
    rungs, _, filled = nested_modes(context, nontrivial_modes(context, layout))
    gaps = gap_modes(rungs)
    left = _rest(context, rungs, target, filled, exact=exact)
    if not context.is_one(left):
        gaps.append((left, filled))
    return flat(gaps)


def gap_modes(rungs: list[GappedMode]) -> list[Mode]:
    """The gaps as modes."""
    found: list[Mode] = []
    below: Index = algebra.const(1)
    for gap, extent, stride in rungs:
        if not is_one(gap):
            found.append((gap, below))
        below = algebra.mul(stride, extent)
    return found


def _rest(context: Context, rungs: list[GappedMode], target: Index, filled: Index, *, exact: bool) -> Index:
    numbers = isinstance(target, Const) and isinstance(filled, Const)
    whole = context.divides(filled, target)
    covers = not whole and context.holds(algebra.le(target, filled))
    if whole or (exact and not covers and not numbers):
        return context.quotient(target, filled, _FILLS)

    require_last_gap(context, rungs, target)
    return algebra.const(1) if covers else algebra.ceil_div(target, filled)
