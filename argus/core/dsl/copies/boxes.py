"""Single-thread copies by the TMA: split into boxes, and the choice of an instruction that fits both tiles."""

from __future__ import annotations

from typing import NoReturn

from attrs import evolve

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.dsl.faults import fault
from argus.core.index import Const, Coord, Index
from argus.core.ir import Staged, Strided, View, static
from argus.core.ir.view_ends import ENDED_AXES, box_end
from argus.core.memory.swizzle_tiles import span_of, tile_columns
from argus.core.walk import mentions, substitute

_MAX_AXES = 5
"""The most axes of a tensor map."""
_MAX_TILE_AXES = 2
"""The most axes that a tile in shared memory may have, whatever the rank of the tensor."""


def split_into_boxes(source: View, target: View, named: tuple[Atom, ...] | None) -> tuple[tuple[View, View], ...]:
    """The pairs of (source, target) views of the boxes that make up one copy.

    A box is at most one swizzle tile wide, so that a wider tile takes several instructions. If both views are
    transposed, the copy moves the untransposed tiles.
    """
    if not named or any(atom.box is None or atom.box.axes < _MAX_TILE_AXES for atom in named):
        return ((source, target),)
    memory = source if source.buffer.space == "shared" else target
    if source.shape == target.shape and _is_transposed(memory):
        source, target = _transpose(source), _transpose(target)
        memory = source if source.buffer.space == "shared" else target
    whole = ((source, target),)
    if not memory.shape or source.shape != target.shape:
        return whole
    width, columns = tile_columns(memory.buffer), memory.shape[-1]
    if width is None or not isinstance(columns, Const) or columns.value <= width or columns.value % width != 0:
        return whole
    return tuple(
        (_slice_columns(source, start, width), _slice_columns(target, start, width))
        for start in range(0, columns.value, width)
    )


def _is_transposed(view: View) -> bool:
    """Whether the first of a view's two axes runs along the rows of its buffer."""
    if len(view.shape) != _MAX_TILE_AXES or len(view.at) < _MAX_TILE_AXES:
        return False
    rests = (algebra.sub(view.at[-1], algebra.coord(0)), algebra.sub(view.at[-2], algebra.coord(1)))
    return not any(mentions(rest, (Coord,)) for rest in rests)


def _transpose(view: View) -> View:
    """The view with its two axes exchanged."""
    inner = (algebra.coord(1), algebra.coord(0))
    at = tuple(substitute(expression, {}, inner) for expression in view.at)
    return evolve(view, shape=view.shape[::-1], at=at, where=substitute(view.where, {}, inner))


def _slice_columns(view: View, start: int, width: int) -> View:
    """The columns [start, start + width) of a view."""
    last = len(view.shape) - 1
    inner = (*(algebra.coord(axis) for axis in range(last)), algebra.add(algebra.coord(last), start))
    at = tuple(substitute(expression, {}, inner) for expression in view.at)
    shape = (*view.shape[:-1], algebra.const(width))
    return View(view.buffer, shape, at, substitute(view.where, {}, inner), view.peer)


def choose_box(legal: list[Atom], source: View, target: View) -> Atom:
    """The instruction with the swizzle of the shared tile and the rank of the tensor, out of `legal`.

    Raises E108 or E501 unless both tiles are boxes that it can move.
    """
    memory = source if source.buffer.space == "shared" else target
    tensor = target if memory is source else source
    layout = memory.buffer.layout
    assert isinstance(layout, Staged)
    span = span_of(layout.swizzle, memory.buffer.dtype)
    fitting = [atom for atom in legal if atom.box is not None and atom.box.span == span]
    if not fitting:
        _box_fault(legal[0], memory, f"its swizzle {layout.swizzle} is not that of any of {', '.join(map(str, legal))}")
    ended = tensor is source and tensor.where is not algebra.TRUE
    rank = len(tensor.buffer.shape) + ENDED_AXES * ended
    atom = next((atom for atom in fitting if atom.box is not None and atom.box.axes in (1, rank)), None)
    sizes = [static(size) for size in memory.shape if isinstance(size, Const)]
    if atom is None or atom.box is None or len(sizes) != min(atom.box.axes, _MAX_TILE_AXES):
        most = f"2 to {_MAX_AXES - ENDED_AXES * ended}{', which the view ends' if ended else ''}"
        fault(
            "E501",
            f"`{fitting[0]}` and similar instructions move boxes of two axes of a tensor of {most} axes; "
            f"a tile of {len(sizes)} axes of a tensor of {len(tensor.buffer.shape)} is not built yet",
            help="copy tiles of the tensor's last two axes and index the others: `A[b, h].tile(...)`",
        )
    _check_box(atom, memory, sizes)
    _check_tensor(atom, tensor, ended=ended)
    return atom


def _check_box(atom: Atom, memory: View, sizes: list[int]) -> None:
    box, dtype, layout = atom.box, memory.buffer.dtype, memory.buffer.layout
    assert box is not None
    assert isinstance(layout, Staged)
    row = sizes[-1] * dtype.bits // 8
    if box.extent and max(sizes) > box.extent:
        _box_fault(atom, memory, f"a box of {tuple(sizes)} has an extent beyond {box.extent}")
    if row % box.multiple != 0 or (box.span and row > box.span):
        limit = f" of at most {box.span}" if box.span else ""
        _box_fault(atom, memory, f"rows of {row} bytes are not multiples of {box.multiple}{limit}")
    width = tile_columns(memory.buffer)
    start = tuple(substitute(at, {}, (algebra.const(0),) * len(sizes)) for at in memory.at)
    one_swizzle_tile = width == sizes[-1] and algebra.mod(start[-1], sizes[-1]) is algebra.const(0)
    if not one_swizzle_tile or not _follows_axes(memory.at, len(sizes)):
        _box_fault(atom, memory, "its rows are not contiguous in shared memory")
    align = atom.operands["target" if memory.buffer.space == atom.operands["target"].space else "source"].align
    offset = algebra.add(*(mode.at(place) for mode, place in zip(layout.layout, start, strict=True)))
    if algebra.mod(algebra.mul(offset, dtype.bits // 8), align) is not algebra.const(0):
        _box_fault(atom, memory, f"it does not begin at a multiple of {align} bytes")


def _check_tensor(atom: Atom, tensor: View, *, ended: bool) -> None:
    layout = tensor.buffer.layout
    plain = isinstance(layout, Strided) and layout.strides[-1] is algebra.const(1)
    if not plain or not _follows_axes(tensor.at, len(tensor.shape)):
        _box_fault(atom, tensor, "it is not a box of the tensor")
    if tensor.where is not algebra.TRUE and not (ended and box_end(tensor) is not None):
        _box_fault(atom, tensor, "some of its elements are masked")


def _follows_axes(at: tuple[Index, ...], axes: int) -> bool:
    """Whether the last `axes` buffer axes follow the view's axes in order with step 1, and the others are fixed."""
    for position, expression in enumerate(at):
        axis = position - (len(at) - axes)
        rest = algebra.sub(expression, algebra.coord(axis)) if axis >= 0 else expression
        if mentions(rest, (Coord,)):
            return False
    return True


def _box_fault(atom: Atom, view: View, why: str) -> NoReturn:
    fault(
        "E108",
        f"`{atom}` cannot move this tile of `{view.buffer.name}`: {why}",
        help="a box is dense in shared memory, its rows fit the swizzle's span, and its axes are those of the tensor",
    )
