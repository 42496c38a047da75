"""Shared matrices with rows wider than the span of their swizzle: slabs side by side, each one span wide.

A box of the copy engine and a matrix descriptor both take rows of one span. A row of more is therefore laid out as
`(rows, (width, slabs)) : (width, (1, rows * width))`, which is what several boxes, one beside the other, leave in
shared memory; along its columns a descriptor steps from slab to slab. Without a swizzle a slab is one chunk of 16
bytes wide, and 8 rows of it are the matrix that the instruction takes at once.
"""

from __future__ import annotations

from argus.core.dtype import DType
from argus.core.index import Const
from argus.core.ir import Buffer, Staged
from argus.core.layout import Layout, Swizzle, row_major

CHUNK = 16
"""Bytes that no swizzle takes apart."""


def span_of(swizzle: Swizzle | None, dtype: DType) -> int | None:
    """Bytes over which a swizzle permutes chunks of 16 bytes as the TMA does; 0 without one, None for another."""
    if swizzle is None or swizzle.bits == 0:
        return 0
    elements = (128 // dtype.bits).bit_length() - 1
    return 16 << swizzle.bits if (swizzle.base, swizzle.shift) == (elements, 3) and swizzle.bits <= 3 else None


def swizzle_tiled(shape: tuple[int, ...], width: int) -> Layout:
    """Row-major, but that each `width` columns lie in a slab of their own. Raises ValueError unless slabs are whole."""
    *leading, rows, columns = shape
    if columns <= width:
        return row_major(shape)
    if columns % width != 0:
        raise ValueError(f"rows of {columns} elements are no whole slabs of {width}")
    outer = row_major(shape).stride
    assert isinstance(outer, tuple)
    return Layout((*leading, rows, (width, columns // width)), (*outer[:-2], width, (1, rows * width)))


def tile_columns(buffer: Buffer) -> int | None:
    """Columns of one slab of a shared buffer; those of the buffer where there is one; None for other layouts."""
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
    """The buffer's layout `stages` times, one after the other. Raises ValueError for other than rows or slabs."""
    width = tile_columns(buffer)
    if width is None:
        raise ValueError(f"`{buffer.name}` is laid out neither in rows nor in slabs")
    extents = (stages, *(extent.value for extent in buffer.shape if isinstance(extent, Const)))
    return swizzle_tiled(extents, width) if len(extents) > 2 else row_major(extents)
