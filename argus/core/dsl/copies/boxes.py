"""Copies of one thread: which instruction fits the two tiles, or why none does."""

from __future__ import annotations

from typing import NoReturn

from attrs import evolve

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.dsl.faults import fault
from argus.core.index import Const, Coord, Index
from argus.core.ir import Staged, Strided, View, static
from argus.core.memory.swizzle_tiles import span_of, tile_columns
from argus.core.walk import mentions, substitute

_MOST_AXES = 2
"""Axes of a tile in shared memory, whatever those of the tensor."""


def split_into_boxes(source: View, target: View, named: tuple[Atom, ...] | None) -> tuple[tuple[View, View], ...]:
    """The pairs of views that one copy is: more than one where rows in shared memory are several slabs of a swizzle.

    A box is one slab wide, so that a wider tile takes one instruction a slab, and its bytes are theirs together. Tiles
    that are both turned, rows for columns, are moved as they lie.
    """
    if not named or any(atom.box is None or atom.box.axes < _MOST_AXES for atom in named):
        return ((source, target),)
    memory = source if source.buffer.space == "shared" else target
    if source.shape == target.shape and _turned(memory):
        source, target = _upright(source), _upright(target)
        memory = source if source.buffer.space == "shared" else target
    whole = ((source, target),)
    if not memory.shape or source.shape != target.shape:
        return whole
    width, columns = tile_columns(memory.buffer), memory.shape[-1]
    if width is None or not isinstance(columns, Const) or columns.value <= width or columns.value % width != 0:
        return whole
    return tuple(
        (_columns(source, start, width), _columns(target, start, width)) for start in range(0, columns.value, width)
    )


def _turned(view: View) -> bool:
    """Whether a view of two axes has its first along the rows of its buffer."""
    if len(view.shape) != _MOST_AXES or len(view.at) < _MOST_AXES:
        return False
    rests = (algebra.sub(view.at[-1], algebra.coord(0)), algebra.sub(view.at[-2], algebra.coord(1)))
    return not any(mentions(rest, (Coord,)) for rest in rests)


def _upright(view: View) -> View:
    """The same elements, rows for columns."""
    inner = (algebra.coord(1), algebra.coord(0))
    at = tuple(substitute(expression, {}, inner) for expression in view.at)
    return evolve(view, shape=view.shape[::-1], at=at, where=substitute(view.where, {}, inner))


def _columns(view: View, start: int, width: int) -> View:
    """So many columns of a view."""
    last = len(view.shape) - 1
    inner = (*(algebra.coord(axis) for axis in range(last)), algebra.add(algebra.coord(last), start))
    at = tuple(substitute(expression, {}, inner) for expression in view.at)
    shape = (*view.shape[:-1], algebra.const(width))
    return View(view.buffer, shape, at, substitute(view.where, {}, inner), view.peer)


def choose_box(legal: list[Atom], source: View, target: View) -> Atom:
    """The one whose swizzle is that of the shared tile, if both tiles are boxes that it can move. Raises E108, E501."""
    memory = source if source.buffer.space == "shared" else target
    tensor = target if memory is source else source
    layout = memory.buffer.layout
    assert isinstance(layout, Staged)
    span = span_of(layout.swizzle, memory.buffer.dtype)
    fitting = [atom for atom in legal if atom.box is not None and atom.box.span == span]
    if not fitting:
        _refuse(legal[0], memory, f"its swizzle {layout.swizzle} is none of {', '.join(map(str, legal))}")
    rank = len(tensor.buffer.shape)
    atom = next((atom for atom in fitting if atom.box is not None and atom.box.axes in (1, rank)), None)
    sizes = [static(size) for size in memory.shape if isinstance(size, Const)]
    if atom is None or atom.box is None or len(sizes) != min(atom.box.axes, _MOST_AXES):
        fault(
            "E501",
            f"`{fitting[0]}` and its like move rows and columns of a tensor of 2 to 5 axes; "
            f"a tile of {len(sizes)} axes of a tensor of {rank} is not built yet",
            help="copy tiles of the tensor's last two axes: fix those before, `A[b, h].tile(...)`",
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
    width = tile_columns(memory.buffer)
    start = tuple(substitute(at, {}, (algebra.const(0),) * len(sizes)) for at in memory.at)
    one_slab = width == sizes[-1] and algebra.mod(start[-1], sizes[-1]) is algebra.const(0)
    if not one_slab or not _placed(memory.at, len(sizes)):
        _refuse(atom, memory, "its rows do not lie one after the other in shared memory")
    align = atom.operands["target" if memory.buffer.space == atom.operands["target"].space else "source"].align
    offset = algebra.add(*(mode.at(place) for mode, place in zip(layout.layout, start, strict=True)))
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
