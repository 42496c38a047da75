"""Copies of one thread: which instruction fits the two tiles, or why none does."""

from __future__ import annotations

from typing import NoReturn

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.dsl.faults import fault
from argus.core.dtype import DType
from argus.core.index import Const, Coord, Index
from argus.core.ir import Staged, Strided, View, static
from argus.core.layout import Swizzle, row_major
from argus.core.walk import mentions, substitute


def span_of(swizzle: Swizzle | None, dtype: DType) -> int | None:
    """Bytes over which a swizzle permutes chunks of 16 bytes as the TMA does; 0 without one, None for another."""
    if swizzle is None or swizzle.bits == 0:
        return 0
    elements = (128 // dtype.bits).bit_length() - 1
    return 16 << swizzle.bits if (swizzle.base, swizzle.shift) == (elements, 3) and swizzle.bits <= 3 else None


def choose_box(legal: list[Atom], source: View, target: View) -> Atom:
    """The one whose swizzle is that of the shared tile, if both tiles are boxes that it can move. Raises E108, E501."""
    memory = source if source.buffer.space == "shared" else target
    tensor = target if memory is source else source
    layout = memory.buffer.layout
    assert isinstance(layout, Staged)
    span = span_of(layout.swizzle, memory.buffer.dtype)
    atom = next((atom for atom in legal if atom.box is not None and atom.box.span == span), None)
    if atom is None or atom.box is None:
        _refuse(legal[0], memory, f"its swizzle {layout.swizzle} is none of {', '.join(map(str, legal))}")
    sizes = [static(size) for size in memory.shape if isinstance(size, Const)]
    if len(sizes) != atom.box.axes or len(tensor.buffer.shape) != atom.box.axes:
        fault(
            "E501",
            f"`{atom}` moves tiles of {atom.box.axes} axes of a tensor of as many; others are not built yet",
            help=f"declare a tensor of {atom.box.axes} axes and copy tiles of it",
        )
    _check_box(atom, memory, sizes)
    _check_tensor(atom, tensor)
    return atom


def _check_box(atom: Atom, memory: View, sizes: list[int]) -> None:
    box, dtype, layout = atom.box, memory.buffer.dtype, memory.buffer.layout
    assert box is not None
    assert isinstance(layout, Staged)
    row = sizes[-1] * dtype.bits // 8
    if box.extent and max(sizes) > box.extent:
        _refuse(atom, memory, f"a box of {tuple(sizes)} has an extent beyond {box.extent}")
    if row % box.multiple != 0 or (box.span and row > box.span):
        limit = f" of at most {box.span}" if box.span else ""
        _refuse(atom, memory, f"rows of {row} bytes are no multiples of {box.multiple}{limit}")
    extents = tuple(static(size) for size in memory.buffer.shape)
    dense = layout.layout == row_major(extents) and extents[-1] == sizes[-1]
    if not dense or not _placed(memory.at, len(sizes)):
        _refuse(atom, memory, "its rows do not lie one after the other in shared memory")
    align = atom.operands["target" if memory.buffer.space == atom.operands["target"].space else "source"].align
    offset: Index = algebra.const(0)
    for at, size in zip(memory.at, extents, strict=True):
        start = substitute(at, {}, (algebra.const(0),) * len(sizes))
        offset = algebra.add(algebra.mul(offset, size), start)
    if algebra.mod(algebra.mul(offset, dtype.bits // 8), align) is not algebra.const(0):
        _refuse(atom, memory, f"it does not begin at a multiple of {align} bytes")


def _check_tensor(atom: Atom, tensor: View) -> None:
    layout = tensor.buffer.layout
    plain = isinstance(layout, Strided) and layout.strides[-1] is algebra.const(1)
    if not plain or not _placed(tensor.at, len(tensor.shape)):
        _refuse(atom, tensor, "it is not a box of the tensor")
    if tensor.where is not algebra.TRUE:
        _refuse(atom, tensor, "some of its elements are masked")


def _placed(at: tuple[Index, ...], axes: int) -> bool:
    """Whether the last axes move with the view's, in order and by 1, and the others not."""
    for position, expression in enumerate(at):
        axis = position - (len(at) - axes)
        rest = algebra.sub(expression, algebra.coord(axis)) if axis >= 0 else expression
        if mentions(rest, (Coord,)):
            return False
    return True


def _refuse(atom: Atom, view: View, why: str) -> NoReturn:
    fault(
        "E108",
        f"`{atom}` cannot move this tile of `{view.buffer.name}`: {why}",
        help="a box is dense in shared memory, its rows fit the swizzle's span, and it moves with the tensor's axes",
    )
