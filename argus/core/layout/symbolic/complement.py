"""Complement over symbols: strides must be known in order and nest, gaps between them become modes."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.layout.symbolic.side_conditions import Ledger
from argus.core.layout.symbolic.values import Mode, SymbolicLayout, flat, is_one

_POSITIVE = "strides that are undone are positive"
_NESTS = "each stride is a multiple of stride times extent of the one below it"
_FILLS = "tiles fill the extent without a rest"
_ONES = "a last mode of extent 1 leaves no gap below it"

Rung = tuple[Index, Index, Index]
"""(gap before the mode, its extent, its stride)."""


def ascending(ledger: Ledger, modes: list[Mode]) -> list[int]:
    """The places of the modes by stride. Raises LayoutError (E811) if the order is not decided."""
    order: list[int] = []
    for place, (_, stride) in enumerate(modes):
        at = len(order)
        while at and not _before(ledger, modes[order[at - 1]][1], stride):
            at -= 1
        order.insert(at, place)
    return order


def _before(ledger: Ledger, a: Index, b: Index) -> bool:
    """Whether a comes first. Equal strides may stand either way: they nest only where an extent is 1."""
    if ledger.holds(algebra.le(a, b)):
        return True
    if ledger.holds(algebra.le(b, a)):
        return False
    raise ledger.undecided([algebra.le(a, b)])


def ladder(ledger: Ledger, modes: list[Mode]) -> tuple[list[Rung], list[int], Index]:
    """The modes by ascending stride with the gaps between them, their places, and the length that they fill."""
    for _, stride in modes:
        ledger.need(algebra.le(1, stride), _POSITIVE)
    order = ascending(ledger, modes)
    rungs: list[Rung] = []
    filled: Index = algebra.const(1)
    for place in order:
        extent, stride = modes[place]
        rungs.append((ledger.quotient(stride, filled, _NESTS), extent, stride))
        filled = algebra.mul(stride, extent)
    return rungs, order, filled


def last_gap_counts(ledger: Ledger, rungs: list[Rung], target: Index | None = None) -> None:
    """Presume that a mode above the last gap has an extent of 2 at least, or that the gap ends before the target.

    Where all those extents are 1 the modes are as if absent, and the gap below them ends where the target does.
    """
    places = [place for place, (gap, _, _) in enumerate(rungs) if not ledger.is_one(gap)]
    if not places:
        return
    above = rungs[places[-1] :]
    several = algebra.any_of(algebra.le(2, extent) for _, extent, _ in above)
    if target is not None and not ledger.holds(several):
        several = algebra.any_of((several, algebra.eq(algebra.mod(target, above[0][2]), 0)))
    ledger.need(several, _ONES)


def relevant(ledger: Ledger, layout: SymbolicLayout) -> list[Mode]:
    """The modes without those of extent 1 or stride 0."""
    return [
        mode
        for mode in layout.flat_modes
        if not ledger.is_one(mode[0]) and not ledger.facts.decide(algebra.eq(mode[1], 0))
    ]


def complement(ledger: Ledger, layout: SymbolicLayout, target: Index, *, exact: bool = False) -> SymbolicLayout:
    """The layout of what `layout` lacks to fill the interval up to `target`, rounded up as `complement` does.

    exact: presume instead that there is nothing to round.
    """
    ledger.need(algebra.le(1, target), "the target is positive")
    rungs, _, filled = ladder(ledger, relevant(ledger, layout))
    gaps = open_modes(rungs)
    left = _rest(ledger, rungs, target, filled, exact=exact)
    if not ledger.is_one(left):
        gaps.append((left, filled))
    return flat(gaps)


def open_modes(rungs: list[Rung]) -> list[Mode]:
    """The gaps as modes."""
    found: list[Mode] = []
    below: Index = algebra.const(1)
    for gap, extent, stride in rungs:
        if not is_one(gap):
            found.append((gap, below))
        below = algebra.mul(stride, extent)
    return found


def _rest(ledger: Ledger, rungs: list[Rung], target: Index, filled: Index, *, exact: bool) -> Index:
    numbers = isinstance(target, Const) and isinstance(filled, Const)
    whole = ledger.divides(filled, target)
    covers = not whole and ledger.holds(algebra.le(target, filled))
    if whole or (exact and not covers and not numbers):
        return ledger.quotient(target, filled, _FILLS)

    last_gap_counts(ledger, rungs, target)
    return algebra.const(1) if covers else algebra.ceil_div(target, filled)
