"""Windows: each thread reduces the windows of its elements, whose extents are literal: pooling, depthwise convolution.

A tile is of the last two axes of the output. Elements that windows share are read once for the rows of a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from attrs import frozen

from argus.kernels.nests.bodies import FOLDS, Place, TileBody
from argus.kernels.nests.fragments import TYPES
from argus.kernels.nests.tiles import WARP, Tile, TileAxis, blocks, may_be_in_order
from argus.language import IntLike, Tensor, assume, ceil_div, copy, sm_90a, unflatten
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import Nest, Read, Reduce
from argus.nests.rewrite import reads, reductions
from argus.nests.terms import literal, names_in

_MOST = 512
"""Elements of a window."""
_LARGEST = 1 << 40
"""Elements of a tensor, so that offsets in bytes fit 64 bits."""
_LONGEST = 1 << 24
"""Of an extent of the output, so that strides times coordinates fit 32 bits."""
_MOST_BLOCKS = 1 << 30
_THREADS = 128
_HELD = 72
"""Elements that a thread holds at most, if it has several rows."""
_GRID = 3
"""Axes of a grid."""


@frozen
class Windows:
    """A block of `threads` has `rows` rows of the output of `columns` elements, and so the rest of the threads' rows.

    rows: of each thread. columns: threads along the last axis. in_order: blocks that start one after the other are
    neighbours along the last axis; else along the first ones.
    """

    threads: int = 128
    columns: int = 128
    rows: int = 1
    in_order: bool = True
    target = sm_90a

    @property
    def tile(self) -> Tile:
        return Tile((TileAxis(self.threads // self.columns, self.rows), TileAxis(self.columns)))


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Windows | None:
    """The configuration for reductions over windows of literal extents; None for other nests."""
    found = reductions(*(nest.body for nest in form.nests))
    extents = [[literal(axis.extent) for axis in each.axes] for each in found]
    small = all(None not in each and prod(extent or 0 for extent in each) <= _MOST for each in extents)
    if len(form.nests) != 1 or not found or not small or not {each.op for each in found} <= set(FOLDS):
        return None
    if not any(_has_windows(each, form.nests[0], found) for each in reads(form.nests[0].body)):
        return None  # windows of one place: rows or columns
    types = {each.dtype for each in reads(form.nests[0].body)}
    if not types or not types <= set(TYPES):
        return None
    shape = [int(computed(axis.extent, sizes)) for axis in form.nests[0].domain]
    width = shape[-1]
    columns = min((4 * WARP, 2 * WARP, WARP), key=lambda n: (10 * n * -(-width // n) > 11 * width, -n))
    elements = max(prod(extent or 0 for extent in each) for each in extents)
    rows = next((n for n in (4, 2) if n * elements <= _HELD), 1)
    counts = [prod(shape[:-2]), *shape[-2:]]
    return Windows(_THREADS, columns, rows, may_be_in_order(counts))


def _has_windows(read: Read, nest: Nest, found: Sequence[Reduce]) -> bool:
    """Whether windows overlap or have gaps along a coordinate, or tile several."""
    windows = [axis.index for each in found for axis in each.axes if len(each.axes) > 1]
    tiled = len(read.index) > 1 and read.index[-1] in windows and read.index[-2] is nest.domain[-1].index
    return tiled or any(_meet(index, nest, found) for index in read.index)


def _meet(index: Any, nest: Nest, found: Sequence[Reduce]) -> bool:  # noqa: ANN401 reason: an index expression
    """Whether a coordinate depends on one of the output and on one of a window."""
    names, own = names_in(index), {axis.name for each in found for axis in each.axes}
    return not names.isdisjoint(own) and any(axis.name in names for axis in nest.domain)


def windows(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Windows) -> None:
    """Store each element of the output, computed by one thread."""
    (nest,) = form.nests
    for tensor in tensors.values():
        assume(prod(tensor.shape, start=1) <= _LARGEST)
    extents = [computed(axis.extent, sizes) for axis in nest.domain]
    assume(*(extent <= _LONGEST for extent in extents))
    tile = cfg.tile if len(extents) > 1 else Tile((TileAxis(cfg.threads, cfg.rows),))
    rank = len(tile.axes)
    outer, inner = extents[:-rank], extents[-rank:]
    grid = (*outer, *(ceil_div(extent, axis.extent) for extent, axis in zip(inner, tile.axes, strict=True)))
    joined = grid[: max(1, len(grid) - _GRID + 1)]
    assume(prod(joined, start=1) <= _MOST_BLOCKS)
    first, *rest = blocks((prod(joined, start=1), *grid[len(joined) :]), in_order=cfg.in_order)
    _store(nest, tensors, sizes, tile, (*unflatten(first, joined), *rest))


def _store(
    nest: Nest, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], tile: Tile, at: Sequence[IntLike]
) -> None:
    """Store a tile. at: the coordinates of the axes that it does not have, and its numbers along the others."""
    rank, Y = len(tile.axes), tensors[nest.output]
    places = {axis.name: Place(number) for axis, number in zip(nest.domain, at, strict=True)}
    for axis, number, own in zip(range(rank), at[-rank:], nest.domain[-rank:], strict=True):
        places[own.name] = Place(number * tile.axes[axis].extent, axis)
    value = TileBody(tensors, sizes, tile, places).value(nest.body)
    copy(value.to(Y.dtype), (Y[tuple(at[:-rank])] if at[:-rank] else Y).tile(tile.shape, tuple(at[-rank:])), edge=0)
