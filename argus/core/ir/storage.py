"""Buffers (storage) and views of them."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.algebra import TRUE, add, any_of, coord, le, read
from argus.core.atom import Space
from argus.core.dtype import DType
from argus.core.index import Cond, Const, Index
from argus.core.layout import TV, Layout, Swizzle
from argus.core.span import NOWHERE, Span

File = Literal["any", "accumulation"]
"""The register file of a tile: any that the compiler chooses, or the accumulation registers (AGPRs) of CDNA."""


@frozen
class Strided:
    """The layout of a global tensor: the stride of each axis, in elements."""

    strides: tuple[Index, ...]


@frozen
class Staged:
    """The layout of a shared tensor: a layout over all its axes, then a swizzle of the offset."""

    layout: Layout
    swizzle: Swizzle | None = None


@frozen(eq=False)
class Buffer:
    """Storage. `layout` maps coordinates to offsets, or for a register tile to (thread, register).

    align: the alignment of the first element in bytes. owner: the role that registers and counters belong to, "" for
    the block. banks: the largest bank-conflict degree that the author allows (None: not declared). promise: a data
    contract, a condition on every element (read-only integers). file: the register file of a tile, which does not
    change what is computed. products: the most products that matrix instructions may add to an element of a register
    tile before it is assigned again (None: not declared).
    """

    name: str
    space: Space
    dtype: DType
    shape: tuple[Index, ...]
    layout: Strided | Staged | TV
    align: int = 16
    owner: str = ""
    banks: int | None = None
    promise: Cond = TRUE
    span: Span = NOWHERE
    file: File = "any"
    products: int | None = None


@frozen(eq=False)
class View:
    """A shape and, for each axis of the buffer, an index expression over the view's own coordinates. No data moves.

    where: elements at which it is false are out of bounds. peer: the rank of the CTA whose shared memory the view is
    of; None for this CTA's.
    """

    buffer: Buffer
    shape: tuple[Index, ...]
    at: tuple[Index, ...]
    where: Cond = TRUE
    peer: Index | None = None


def whole(buffer: Buffer) -> View:
    """The identity view of a buffer."""
    return View(buffer, buffer.shape, tuple(coord(axis) for axis in range(len(buffer.shape))))


def axes_of(view: View) -> tuple[int, ...] | None:
    """For a view that permutes the axes of a whole buffer, the view's axis for each buffer axis; None for others."""
    coords = tuple(coord(axis) for axis in range(len(view.shape)))
    if view.where is not TRUE or len(view.at) != len(coords) or any(each not in coords for each in view.at):
        return None
    axes = tuple(coords.index(each) for each in view.at)
    whole_axes = len(set(axes)) == len(axes)
    return axes if whole_axes and tuple(view.shape[axis] for axis in axes) == view.buffer.shape else None


@frozen
class Origin:
    """The construct that a statement was expanded from, and the index of the use of that construct."""

    construct: str
    use: int


def ascending_condition(buffer: Buffer) -> Cond:
    """The promise that a one-dimensional tensor of integers is nondecreasing, as a condition on each element."""
    at = coord(0)
    after = add(at, 1)
    return any_of((le(buffer.shape[0], after), le(read(buffer.name, (at,)), read(buffer.name, (after,)))))


def static(extent: Index) -> int:
    """The value of a constant extent. Raises ValueError for a symbolic one."""
    if not isinstance(extent, Const):
        raise ValueError("a symbolic extent where a number is needed")  # noqa: TRY004 reason: the value is wrong
    return extent.value
