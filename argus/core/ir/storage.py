"""Storage and views of it."""

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
"""Which registers of a machine: those that a compiler chooses, or those that matrix instructions sum into."""


@frozen
class Strided:
    """A global tensor: element strides, one an axis."""

    strides: tuple[Index, ...]


@frozen
class Staged:
    """A shared tensor: a layout over all its axes, then a swizzle of the offset."""

    layout: Layout
    swizzle: Swizzle | None = None


@frozen(eq=False)
class Buffer:
    """Storage. Axes of registers are those of their tile; `layout` is what makes an address of coordinates.

    align: bytes that its first element's address is a multiple of. banks: the largest bank-conflict degree
    that the author allows (None: not declared). promise: what holds of every element (read-only integers).
    file: the registers that a tile is in; it decides nothing of what is computed.
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


@frozen(eq=False)
class View:
    """A shape and, per axis of the buffer, an expression over the view's own coordinates. No data moves.

    where: elements at which it is false lie outside the tensor. peer: the CTA of the cluster that is meant.
    """

    buffer: Buffer
    shape: tuple[Index, ...]
    at: tuple[Index, ...]
    where: Cond = TRUE
    peer: Index | None = None


def whole(buffer: Buffer) -> View:
    """All of a buffer under its own coordinates."""
    return View(buffer, buffer.shape, tuple(coord(axis) for axis in range(len(buffer.shape))))


def axes_of(view: View) -> tuple[int, ...] | None:
    """Of a view of all of a buffer, its axis along each axis of the buffer; None for a view of a part of it."""
    coords = tuple(coord(axis) for axis in range(len(view.shape)))
    if view.where is not TRUE or len(view.at) != len(coords) or any(each not in coords for each in view.at):
        return None
    axes = tuple(coords.index(each) for each in view.at)
    whole_axes = len(set(axes)) == len(axes)
    return axes if whole_axes and tuple(view.shape[axis] for axis in axes) == view.buffer.shape else None


@frozen
class Origin:
    """The construct that a statement was expanded from, and which use of it."""

    construct: str
    use: int


def ascending_condition(buffer: Buffer) -> Cond:
    """The promise that no element of a row of integers is less than the one before, as one of every element."""
    at = coord(0)
    after = add(at, 1)
    return any_of((le(buffer.shape[0], after), le(read(buffer.name, (at,)), read(buffer.name, (after,)))))


def static(extent: Index) -> int:
    """The number a constant expression is. Raises ValueError for a symbolic one."""
    if not isinstance(extent, Const):
        raise ValueError("a symbolic extent where a number is needed")  # noqa: TRY004 reason: the value is wrong
    return extent.value
