"""Tensors that a kernel sees through one view, as tensors with the view's coordinates.

`Y.reshape(-1, C)` puts row m at `(m // Q // P, m // Q % P, m % Q)` of a tensor of shape (B, P, Q, C): two groups of
axes become one axis each. Where extents are positive, which is proved apart (I28), these coordinates and those are one
to one, and one is inside where the other is. A tagged view that gathers, `X.gather(shape, pixel, outside=0)`, becomes a
tensor of its own, whose elements are those that it names and zeros where it names none; where they lie is asked of the
kernel as it is. A tensor is taken for another one only if all that the kernel says of it can be said of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check import claim_views
from argus.core.check.parts import views
from argus.core.index import Index, Read
from argus.core.ir import (
    Assert,
    Buffer,
    Copy,
    Kernel,
    Products,
    Stmt,
    Strided,
    Tag,
    View,
    WrittenOnce,
    bodies,
    walk,
    whole,
    with_bodies,
)
from argus.core.proof.dataflow.subview import same_padding, subview_coordinates
from argus.core.proof.dataflow.timeline import is_gathered, is_whole
from argus.core.walk import mentions, substitute


@frozen(eq=False)
class FlattenedView:
    """What stands for a tensor, and the view of the tensor that it is.

    gathered: the view may reach an element several times, or name none; nothing is stored through it.
    """

    flat: Buffer
    view: View
    gathered: bool


@frozen(eq=False)
class FlattenedKernel:
    """A kernel in which such tensors are others, each with what it stands for."""

    kernel: Kernel
    seen: tuple[FlattenedView, ...] = ()

    @property
    def gathered(self) -> frozenset[Buffer]:
        """The tensors whose elements lie where a view says."""
        return frozenset(each.view.buffer for each in self.seen if each.gathered)

    @property
    def apart(self) -> frozenset[Buffer]:
        """What stands for them."""
        return frozenset(each.flat for each in self.seen if each.gathered)


def flatten_views(kernel: Kernel) -> FlattenedKernel:
    """The kernel with such tensors as others; itself if there are none."""
    if kernel.roles is not None:
        return FlattenedKernel(kernel)
    found = {buffer: _seen(kernel, buffer) for buffer in kernel.parameters if _is_dense(buffer)}
    seen = {buffer: each for buffer, each in found.items() if each is not None}
    if not seen:
        return FlattenedKernel(kernel)
    body = tuple(_through(stmt, seen) for stmt in kernel.prologue)
    end = tuple(_through(stmt, seen) for stmt in kernel.epilogue)
    parameters = tuple(seen[buffer].flat if buffer in seen else buffer for buffer in kernel.parameters)
    return FlattenedKernel(evolve(kernel, parameters=parameters, prologue=body, epilogue=end), tuple(seen.values()))


def _is_dense(buffer: Buffer) -> bool:
    """Whether a tensor of at least three axes has its rows one after another."""
    layout = buffer.layout
    if buffer.space != "global" or not isinstance(layout, Strided) or len(buffer.shape) < 3:
        return False
    strides, shape = layout.strides, buffer.shape
    nested = all(algebra.mul(strides[axis + 1], shape[axis + 1]) is strides[axis] for axis in range(len(shape) - 1))
    return nested and buffer.dtype.family == "float" and buffer.promise is algebra.TRUE


def _seen(kernel: Kernel, buffer: Buffer) -> FlattenedView | None:
    """What may stand for a tensor, if all statements can be read so."""
    for each in (*_in_groups(buffer), *_tagged(kernel, buffer)):
        if _said_through(kernel, each):
            return each
    return None


def _in_groups(buffer: Buffer) -> Iterator[FlattenedView]:
    """A dense tensor with its axes in two groups, each numbered as one axis."""
    assert isinstance(buffer.layout, Strided)
    for split in range(len(buffer.shape) - 1, 0, -1):
        groups = buffer.shape[:split], buffer.shape[split:]
        shape = tuple(reduce(algebra.mul, group) for group in groups)
        at = tuple(place for axis, group in enumerate(groups) for place in delinearize(algebra.coord(axis), group))
        strides = buffer.layout.strides[split - 1], buffer.layout.strides[-1]
        flat = evolve(buffer, shape=shape, layout=Strided(strides))
        yield FlattenedView(flat, View(buffer, shape, at), gathered=False)


def _tagged(kernel: Kernel, buffer: Buffer) -> Iterator[FlattenedView]:
    """The one view of a tensor that is tagged as a whole and gathers, as a tensor without gaps."""
    found = [s.view for s in walk(kernel.body) if isinstance(s, Tag) and s.view.buffer is buffer]
    parts = [view for view in found if not is_whole(view)]
    if len(parts) == 1 and len(parts[0].shape) == 2 and not _of_memory(parts[0]):
        (view,) = parts
        flat = evolve(buffer, shape=view.shape, layout=Strided((view.shape[1], algebra.const(1))))
        yield FlattenedView(flat, view, gathered=True)


def _of_memory(view: View) -> bool:
    return any(mentions(node, (Read,)) for node in (*view.at, view.where))


def _said_through(kernel: Kernel, seen: FlattenedView) -> bool:
    """Whether all statements that speak of a tensor can be read through a view, and one moves its elements."""
    copies = [(s, v) for s in walk(kernel.body) if isinstance(s, Copy) for v in _moved(s, seen.view.buffer)]
    moved = bool(copies) and all(_taken(stmt, view, seen) is not None for stmt, view in copies)
    return moved and all(_can_say(stmt, seen) for stmt in walk(kernel.body))


def _moved(stmt: Copy, buffer: Buffer) -> Iterator[View]:
    for view in (stmt.source, stmt.target):
        if view.buffer is buffer:
            yield view


def _taken(stmt: Copy, view: View, seen: FlattenedView) -> View | None:
    """The elements that a copy moves, in what stands for their tensor; None of those that an instruction takes by the
    tensor's axes, or that are others.
    """
    if stmt.atom.box is not None or stmt.through is not None:
        return None
    at = subview_coordinates(view, seen.view)
    if at is None:
        return None
    if not seen.gathered:
        return View(seen.flat, view.shape, at, view.where)
    fills = stmt.source is view and is_gathered(stmt, view) and stmt.edge == 0
    return View(seen.flat, view.shape, at) if fills and same_padding(view, seen.view, at) else None


def _can_say(stmt: Stmt, seen: FlattenedView) -> bool:
    """Whether a statement that is no copy speaks of a tensor, if it does, as a whole or through the view."""
    buffer = seen.view.buffer
    match stmt:
        case Copy():
            return True
        case Tag(view=view):
            return view.buffer is not buffer or is_whole(view) or _is_seen(view, seen)
        case Assert(claim=WrittenOnce(view=view)):
            return view.buffer is not buffer or (not seen.gathered and (is_whole(view) or _is_seen(view, seen)))
        case Assert(claim=Products(view=view)):
            return view.buffer is not buffer or (not seen.gathered and is_whole(view))
        case Assert(claim=claim):
            return all(view.buffer is not buffer for view in claim_views(claim))
        case _:
            return all(view.buffer is not buffer for view in views(stmt))


def _is_seen(view: View, seen: FlattenedView) -> bool:
    """Whether a view is the one that something stands for."""
    alike = view.shape == seen.view.shape and view.at == seen.view.at and view.peer is None
    return alike and view.where is seen.view.where


def _through(stmt: Stmt, seen: Mapping[Buffer, FlattenedView]) -> Stmt:
    inner = with_bodies(stmt, tuple(tuple(_through(s, seen) for s in body) for body in bodies(stmt)))
    match inner:
        case Copy(source=source, target=target):
            one, two = (_view(inner, view, seen) for view in (source, target))
            return inner if one is source and two is target else evolve(inner, source=one, target=two)
        case Tag(view=view, names=names) if view.buffer in seen:
            each = seen[view.buffer]
            return evolve(inner, view=whole(each.flat), names=_named(names, view, each))
        case Assert(claim=WrittenOnce(view=view, record=record, where=where)) if view.buffer in seen:
            each = seen[view.buffer]
            meant = substitute(where, {}, each.view.at) if is_whole(view) else where
            return evolve(inner, claim=WrittenOnce(whole(each.flat), _named(record, view, each), meant))
        case _:
            return inner


def _view(stmt: Copy, view: View, seen: Mapping[Buffer, FlattenedView]) -> View:
    found = _taken(stmt, view, seen[view.buffer]) if view.buffer in seen else view
    assert found is not None
    return found


def _named(names: Sequence[tuple[str, Index]], view: View, seen: FlattenedView) -> tuple[tuple[str, Index], ...]:
    """Expressions over a view's coordinates, of the element of what stands for its tensor."""
    if not is_whole(view):
        return tuple(names)
    return tuple((name, substitute(each, {}, seen.view.at)) for name, each in names)


def delinearize(number: Index, shape: Sequence[Index]) -> tuple[Index, ...]:
    """The coordinates of an element by its number, the last axis fastest."""
    coords: list[Index] = []
    for size in reversed(shape[1:]):
        coords.append(algebra.mod(number, size))
        number = algebra.floordiv(number, size)
    return (number, *reversed(coords))
