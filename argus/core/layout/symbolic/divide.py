"""Divides and products of symbolic layouts. A symbolic extent must be a multiple of its tile: no rounding up."""

from __future__ import annotations

from collections.abc import Callable

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import malformed, misplaced
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.inttuple import flatten as flat_numbers
from argus.core.layout.symbolic.complement import complement, gap_modes, nested_modes, nontrivial_modes
from argus.core.layout.symbolic.compose import SymbolicTiler, by_mode, compose_layouts
from argus.core.layout.symbolic.side_conditions import Context
from argus.core.layout.symbolic.values import (
    SymbolicLayout,
    Tree,
    flat_layout,
    layout_of_modes,
    text,
    to_symbolic,
    volume,
)

_Splitter = Callable[[Context, SymbolicLayout, SymbolicTiler], SymbolicLayout]


def logical_divide(context: Context, layout: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`(tile, rest)`: the layout composed with `(tiler, complement(tiler, size))`, mode by mode for a tuple."""
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode(logical_divide, context, layout, tiler)
    tile = to_symbolic(tiler)
    rest = complement(context, tile, volume(layout.shape), exact=True)
    return compose_layouts(context, layout, layout_of_modes([tile, rest]))


def logical_product(context: Context, block: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`(block, copies)`: the copies are placed by the complement of the block, composed with the tiler."""
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        return by_mode(logical_product, context, block, tiler)
    tile = to_symbolic(tiler)
    for _, stride in tile.flat_modes:
        context.require(algebra.le(0, stride), "strides of the layout of copies are not negative")
    gapped, _, filled = nested_modes(context, nontrivial_modes(context, block))
    # The copies lie below the target of the complement, so the extent of its last mode does not matter.
    room = flat_layout([*gap_modes(gapped), (tile.cosize().node, filled)])
    return layout_of_modes([block, compose_layouts(context, room, tile)])


# -- tiles and rests gathered
# ------------------------------------------------------------------------------------------------


def _zip_modes(split: _Splitter, context: Context, layout: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`((tiles), (rests))` after splitting each mode; a tiler of None has the tile `1:0`."""
    if tiler is None:
        return layout_of_modes([SymbolicLayout(1, 0), layout])
    if not isinstance(tiler, tuple):
        return split(context, layout, tiler)
    modes = list(layout)
    if len(modes) < len(tiler):
        raise misplaced(f"a tiler of {len(tiler)} modes for {layout}", f"give at most {len(modes)} modes")
    pairs = [_zip_modes(split, context, *pair) for pair in zip(modes, tiler, strict=False)]
    rests = [pair[1] for pair in pairs] + modes[len(tiler) :]
    return layout_of_modes([layout_of_modes([pair[0] for pair in pairs]), layout_of_modes(rests)])


def _splice_rests(both: SymbolicLayout) -> SymbolicLayout:
    return layout_of_modes([both[0], *both[1]])


def _splice_both(both: SymbolicLayout) -> SymbolicLayout:
    return layout_of_modes([*both[0], *both[1]])


def zipped_divide(context: Context, layout: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`((tile, tile, ...), (rest, rest, ...))`."""
    return _zip_modes(logical_divide, context, layout, tiler)


def tiled_divide(context: Context, layout: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`((tile, tile, ...), rest, rest, ...)`."""
    return _splice_rests(zipped_divide(context, layout, tiler))


def flat_divide(context: Context, layout: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`(tile, tile, ..., rest, rest, ...)`."""
    return _splice_both(zipped_divide(context, layout, tiler))


def zipped_product(context: Context, block: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`((block, block, ...), (copies, copies, ...))`."""
    return _zip_modes(logical_product, context, block, tiler)


def tiled_product(context: Context, block: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`((block, block, ...), copies, copies, ...)`."""
    return _splice_rests(zipped_product(context, block, tiler))


def flat_product(context: Context, block: SymbolicLayout, tiler: SymbolicTiler) -> SymbolicLayout:
    """`(block, block, ..., copies, copies, ...)`."""
    return _splice_both(zipped_product(context, block, tiler))


# -- mode by mode --------------------------------------------------------------------------------------------


def blocked_product(context: Context, block: SymbolicLayout, tiler: SymbolicLayout) -> SymbolicLayout:
    """Each mode is `(block, copies)`."""
    return layout_of_modes([layout_of_modes(list(pair)) for pair in _modes_of_product(context, block, tiler)])


def raked_product(context: Context, block: SymbolicLayout, tiler: SymbolicLayout) -> SymbolicLayout:
    """Each mode is `(copies, block)`."""
    return layout_of_modes(
        [layout_of_modes([copies, each]) for each, copies in _modes_of_product(context, block, tiler)]
    )


def _modes_of_product(
    context: Context, block: SymbolicLayout, tiler: SymbolicLayout
) -> list[tuple[SymbolicLayout, SymbolicLayout]]:
    rank = max(len(block), len(tiler))
    both = logical_product(context, pad_to_rank(block, rank), pad_to_rank(tiler, rank))
    return list(zip(both[0], both[1], strict=True))


def pad_to_rank(layout: SymbolicLayout, rank: int) -> SymbolicLayout:
    """The layout with modes `1:0` appended up to the rank."""
    return layout_of_modes(list(layout) + [SymbolicLayout(1, 0)] * (rank - len(layout)))


def tile_to_shape(context: Context, block: SymbolicLayout, target: Tree, order: IntTuple | None) -> SymbolicLayout:
    """Repeat a block to fill a shape, mode by mode in ascending `order`; by default the first mode first."""
    extents = [volume(mode) for mode in target] if isinstance(target, tuple) else [volume(target)]
    if len(block) > len(extents):
        raise misplaced(f"{block} has more modes than the shape {text(target)}", f"give a shape of {len(block)} modes")
    whole = pad_to_rank(block, len(extents))
    counts: list[Index] = []
    for mode, extent in zip(whole, extents, strict=True):
        context.require(algebra.le(1, extent), "extents are positive")
        counts.append(context.quotient(extent, volume(mode.shape), "blocks fill the extent without a rest"))
    return blocked_product(context, whole, _ordered_layout(counts, order))


def _ordered_layout(counts: list[Index], order: IntTuple | None) -> SymbolicLayout:
    if order is None:
        return SymbolicLayout(tuple(counts))
    ranks = flat_numbers(order)
    if len(ranks) != len(counts) or not isinstance(order, tuple) or len(order) != len(counts):
        raise malformed(f"order {order} for {len(counts)} modes", "give one number a mode")
    strides: list[Index] = [algebra.const(1)] * len(counts)
    below: Index = algebra.const(1)
    for place in sorted(range(len(counts)), key=ranks.__getitem__):
        strides[place] = below
        below = algebra.mul(below, counts[place])
    return SymbolicLayout(tuple(counts), tuple(strides))
