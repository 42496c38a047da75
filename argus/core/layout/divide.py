"""Divides and products: split a layout into tiles, or repeat a block over a layout of tiles.

A divide composes the layout with a tile and its complement; a product places copies of a block by the block's
complement [Cecka 2026, CuTe layout representation and algebra, sections 3.6 and 3.7]. `logical_` preserves the modes of
the first layout; `zipped_`, `tiled_` and `flat_` gather the tiles of all modes first, with decreasing nesting. Each
function raises LayoutError: E803 for a tiler of too many modes, E804 or E805 if the underlying composition or
complement does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Union, cast

from argus.core.layout.coalesce import append, by_mode
from argus.core.layout.complement import complement
from argus.core.layout.compose import Tiler, compose_layouts
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.inttuple import IntTuple, checked, product_each, text
from argus.core.layout.values import Layout, layout_of, make_layout, make_ordered_layout, of_tree, unchecked_layout

Splitter = Callable[[Layout, Tiler], Layout]
"""A divide or a product: splits or repeats one layout, with a result of two modes."""
Order = Union[IntTuple, None]


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """`(tile, rest)`: the layout composed with `(tiler, complement(tiler, size))`, mode by mode for a tuple.

    The result at (t, r) is layout(tiler(t) + complement(r)). A tiler of None leaves a mode undivided.
    """
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode(logical_divide, layout, tiler)
    if tiler.__class__ is int and layout.shape.__class__ is int:
        return _split_extent(cast(int, layout.shape), cast(int, layout.stride), cast(int, tiler))
    tile = layout_of(tiler)
    return compose_layouts(layout, pair(tile, complement(tile, layout.size())))


def _split_extent(extent: int, stride: int, count: int) -> Layout:
    """A mode of depth 0 divided by `count` contiguous elements: both parts are linear."""
    if count < 1:
        return layout_of(count)  # raises
    rest = -(-extent // count)
    return unchecked_layout((count, rest), (stride, count * stride if rest > 1 else 0))


def logical_product(block: Layout, tiler: Tiler) -> Layout:
    """`(block, copies)`: the copies are placed by `complement(block)` composed with the tiler.

    Copies at different images of the tiler never overlap; a tiler that repeats images repeats copies. A tiler of one
    element needs no complement. Raises LayoutError (E805) for a tiler with negative images.
    """
    return product_by(complement_for, block, tiler)


def complement_for(block: Layout, tile: Layout) -> Layout:
    """The complement of a block with a place for each image of a tile."""
    return complement(block, block.size() * tile.cosize())


def product_by(rest_for: Callable[[Layout, Layout], Layout], block: Layout, tiler: Tiler) -> Layout:
    """`logical_product` with the complement of the block that `rest_for(block, tile)` returns."""
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        return by_mode(partial(product_by, rest_for), block, tiler)
    tile = layout_of(tiler)
    if tile.size() == 1:
        return pair(block, of_tree(tile.shape, [0] * len(tile.flat_modes)))
    _check_not_negative(block, tile)
    return pair(block, compose_layouts(rest_for(block, tile), tile))


def _check_not_negative(block: Layout, tile: Layout) -> None:
    """Raise LayoutError (E805) if a tiler has negative images: a complement begins at 0."""
    if any(stride < 0 < extent - 1 for extent, stride in tile.flat_modes):
        raise LayoutError(
            "E805",
            f"the tiler {tile} has images below 0, and the complement of {block} begins at 0",
            help="reverse the mode: use strides that are not negative",
        )


def pair(a: Layout, b: Layout) -> Layout:
    """The layout of these two modes."""
    return unchecked_layout((a.shape, b.shape), (a.stride, b.stride))


# -- tiles and rests gathered
# ------------------------------------------------------------------------------------------------


def hier_unzip(split: Splitter, layout: Layout, tiler: Tiler) -> Layout:
    """`((tiles), (rests))` after `split` of each mode by the tiler's, in the tiler's nesting [CuTe's `hier_unzip`].

    split: maps a layout and a tiler to a layout of two modes, such as `logical_divide`. A tiler of None has the tile
    `1:0`. Raises LayoutError (E803) for a tiler of too many modes, and what `split` raises.
    """
    if tiler is None:
        return pair(unchecked_layout(1, 0), layout)
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    if len(layout) < len(tiler):
        raise misplaced(f"a tiler of {len(tiler)} modes for {layout}", f"give at most {len(layout)} modes")
    modes = list(layout)
    pairs = [hier_unzip(split, *each) for each in zip(modes, tiler, strict=False)]
    rests = [each[1] for each in pairs] + modes[len(tiler) :]
    return pair(make_layout([each[0] for each in pairs]), make_layout(rests))


def splice_rests(zipped: Layout) -> Layout:
    """The layout with the second mode's modes spliced in at the top level."""
    return make_layout([zipped[0], *zipped[1]])


def splice_both(zipped: Layout) -> Layout:
    """The layout with the modes of both modes at the top level."""
    return make_layout([*zipped[0], *zipped[1]])


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """`((tile, tile, ...), (rest, rest, ...))`."""
    return hier_unzip(logical_divide, layout, tiler)


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """`((tile, tile, ...), rest, rest, ...)`."""
    return splice_rests(zipped_divide(layout, tiler))


def flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    """`(tile, tile, ..., rest, rest, ...)`."""
    return splice_both(zipped_divide(layout, tiler))


def zipped_product(block: Layout, tiler: Tiler) -> Layout:
    """`((block, block, ...), (copies, copies, ...))`."""
    return hier_unzip(logical_product, block, tiler)


def tiled_product(block: Layout, tiler: Tiler) -> Layout:
    """`((block, block, ...), copies, copies, ...)`."""
    return splice_rests(zipped_product(block, tiler))


def flat_product(block: Layout, tiler: Tiler) -> Layout:
    """`(block, block, ..., copies, copies, ...)`."""
    return splice_both(zipped_product(block, tiler))


# -- mode by mode --------------------------------------------------------------------------------------------


def interleave(split: Splitter, block: Layout, tiler: Layout, *, raked: bool) -> Layout:
    """The product `split` of both layouts, padded to one rank, with the block's and the tiler's modes in pairs."""
    tiler = layout_of(tiler)
    rank = max(len(block), len(tiler))
    blocks, copies = split(append(block, up_to_rank=rank), append(tiler, up_to_rank=rank))
    both = (copies, blocks) if raked else (blocks, copies)
    return make_layout([pair(*each) for each in zip(*both, strict=True)])


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """Each mode is `(block, copies)`: blocks stay contiguous and repeat along the tiler's modes."""
    return interleave(logical_product, block, tiler, raked=False)


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Each mode is `(copies, block)`: the copies are interleaved element by element."""
    return interleave(logical_product, block, tiler, raked=True)


def tile_to_shape(block: Layout, target: IntTuple, order: Order = None) -> Layout:
    """Repeat a block to fill a shape, mode by mode in ascending `order` (by default the first mode first).

    The result's modes are `(block, copies)`. Raises LayoutError: E803 if the block has more modes than the shape, E807
    if it does not divide it.
    """
    return interleave(logical_product, *copies_to_fill(block, target, order), raked=False)


def copies_to_fill(block: Layout, target: IntTuple, order: Order) -> tuple[Layout, Layout]:
    """The block padded to the rank of a shape, and the layout of its copies that fill the shape; as `tile_to_shape`."""
    shape = checked(target, "shape")
    modes = product_each(shape)
    if len(block) > len(modes):
        raise misplaced(f"{block} has more modes than the shape {text(target)}", f"give a shape of {len(block)} modes")
    padded = append(block, up_to_rank=len(modes))
    counts: list[int] = []
    for mode, extent in zip(padded, modes, strict=True):
        count, rest = divmod(extent, mode.size())
        if rest:
            raise LayoutError(
                "E807",
                f"a block of {mode.size()} does not divide the extent {extent} of {text(target)}",
                help=f"use a multiple of {mode.size()}",
                expected=0,
                found=rest,
            )
        counts.append(count)
    ranks = (order,) if isinstance(order, int) else order
    return padded, make_ordered_layout(tuple(counts), ranks)
