"""Layouts of shared matrices with rows wider than the span of their swizzle: adjacent swizzle tiles, one span wide
each.

TMA boxes and wgmma matrix descriptors have rows of one span. A matrix with longer rows is therefore laid out as
`(rows, (width, tiles)) : (width, (1, rows * width))`: each TMA box fills one swizzle tile, and a descriptor steps from
tile to tile along the columns. Without a swizzle a tile is one 16-byte chunk wide, and 8 of its rows are the core
matrix of wgmma.
"""

from __future__ import annotations

from argus.core.dtype import DType
from argus.core.index import Const
from argus.core.ir import Buffer, Staged
from argus.core.layout import Layout, Swizzle, row_major

CHUNK = 16
"""Bytes of the chunk that TMA swizzles permute as a unit."""


def span_of(swizzle: Swizzle | None, dtype: DType) -> int | None:
    """Span in bytes of a TMA swizzle of 16-byte chunks; 0 without a swizzle, None if it is not a TMA swizzle mode."""
    if swizzle is None or swizzle.bits == 0:
        return 0
    elements = (128 // dtype.bits).bit_length() - 1
    return 16 << swizzle.bits if (swizzle.base, swizzle.shift) == (elements, 3) and swizzle.bits <= 3 else None


def swizzle_tiled(shape: tuple[int, ...], width: int) -> Layout:
    """Swizzle tiles of `width` columns, row-major within each. Raises ValueError unless `width` divides the columns."""
    *leading, rows, columns = shape
    if columns <= width:
        return row_major(shape)
    if columns % width != 0:
        raise ValueError(f"rows of {columns} elements do not divide into swizzle tiles of {width}")
    outer = row_major(shape).stride
    assert isinstance(outer, tuple)
    return Layout((*leading, rows, (width, columns // width)), (*outer[:-2], width, (1, rows * width)))


def tile_columns(buffer: Buffer) -> int | None:
    """Columns of one swizzle tile of a shared buffer, all columns if it is row-major; None for other layouts."""
    layout = buffer.layout
    extents = tuple(extent.value for extent in buffer.shape if isinstance(extent, Const))
    if not isinstance(layout, Staged) or len(extents) != len(buffer.shape) or not extents:
        return None
    if layout.layout == row_major(extents):
        return extents[-1]
    span = span_of(layout.swizzle, buffer.dtype)
    if span is None or len(extents) < 2:
        return None
    width = (span or CHUNK) * 8 // buffer.dtype.bits
    whole = extents[-1] % width == 0
    return width if whole and layout.layout == swizzle_tiled(extents, width) else None


def staged_layout(buffer: Buffer, stages: int) -> Layout:
    """The layout of `stages` consecutive copies of a buffer. Raises ValueError unless in rows or swizzle tiles."""
    width = tile_columns(buffer)
    if width is None:
        raise ValueError(f"`{buffer.name}` is neither row-major nor laid out in swizzle tiles")
    extents = (stages, *(extent.value for extent in buffer.shape if isinstance(extent, Const)))
    return swizzle_tiled(extents, width) if len(extents) > 2 else row_major(extents)
