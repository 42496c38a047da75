"""Inverses of symbolic layouts whose strides provably chain or nest, and functional equality."""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.layout.symbolic.complement import nested_modes, require_last_gap
from argus.core.layout.symbolic.compose import coalesce_modes
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.layout.symbolic.values import Mode, SymbolicLayout, flat_layout


@frozen(eq=False)
class _IndexedMode:
    """A mode with the index at which its coordinate is 1."""

    extent: Index
    stride: Index
    index: Index


def _indexed_modes(context: Context, layout: SymbolicLayout) -> list[_IndexedMode]:
    found: list[_IndexedMode] = []
    below: Index = algebra.const(1)
    for extent, stride in layout.flat_modes:
        if not context.is_one(extent):
            found.append(_IndexedMode(extent, stride, below))
        below = algebra.mul(below, extent)
    return found


def right_inverse(context: Context, layout: SymbolicLayout) -> SymbolicLayout:
    """The longest chain of modes from stride 1, each beginning where the previous one ends.

    Raises LayoutError (E811) unless every other mode provably continues no prefix of the chain.
    """
    unused = _indexed_modes(context, layout)
    filled: list[Index] = [algebra.const(1)]
    chain: list[Mode] = []
    while True:
        found = next((part for part in unused if context.same(part.stride, filled[-1])), None)
        if found is None:
            break
        unused.remove(found)
        chain.append((found.extent, found.index))
        filled.append(algebra.mul(filled[-1], found.extent))
    for part in unused:
        for length in filled:
            continues = algebra.eq(part.stride, length)
            if not context.holds(algebra.any_of((algebra.negate(continues), algebra.le(part.extent, 1)))):
                raise context.undecided_error([continues])
    return flat_layout(coalesce_modes(context, tuple(chain)))


def left_inverse(context: Context, layout: SymbolicLayout) -> SymbolicLayout:
    """The bijection that inverts modes whose strides nest and fills the gaps between them."""
    parts = _indexed_modes(context, layout)
    gapped, order, _ = nested_modes(context, [(part.extent, part.stride) for part in parts])
    require_last_gap(context, gapped)
    size = layout.size().node
    modes: list[Mode] = []
    for (gap, extent, _), place in zip(gapped, order, strict=True):
        if not context.is_one(gap):
            modes.append((gap, size))
            size = algebra.mul(size, gap)
        modes.append((extent, parts[place].index))
    return flat_layout(coalesce_modes(context, tuple(modes)))


def equal_functions(context: Context, a: SymbolicLayout, b: SymbolicLayout) -> Cond:
    """A condition under which the sizes and all images are equal. Raises LayoutError (E811) if none is found.

    It is the weakest such condition if both sides have the fewest modes, as after coalescing.
    """
    left, right = coalesce_modes(context, a.flat_modes), coalesce_modes(context, b.flat_modes)
    needed: list[Cond] = []
    while left and right:
        (n, d), (m, e) = left.pop(0), right.pop(0)
        if not context.same(n, m):
            if context.divides(n, m):
                right.insert(0, (context.exact(m, n), algebra.mul(e, n)))
            elif context.divides(m, n):
                left.insert(0, (context.exact(n, m), algebra.mul(d, m)))
                n = m
            elif left or right:
                raise context.undecided_error([algebra.eq(n, m)])
            else:
                needed.append(algebra.eq(n, m))
        needed.append(algebra.any_of((algebra.eq(d, e), algebra.le(n, 1))))
    needed += [algebra.eq(extent, 1) for extent, _ in left + right]
    return algebra.all_of(needed)
