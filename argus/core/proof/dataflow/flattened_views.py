"""Replaces a tensor that a kernel accesses through one view by a tensor with the coordinates of that view.

`Y.reshape(-1, C)` puts row m at `(m // Q // P, m // Q % P, m % Q)` of a tensor of shape (B, P, Q, C): each of two
groups of axes becomes one axis. If the extents are positive, which a separate obligation states (I28), the map between
coordinates is a bijection that preserves bounds. A tagged gathered view, `X.gather(shape, pixel, outside=0)`, becomes a
tensor whose elements are the gathered ones, and zeros where the view's condition fails; access obligations are computed
on the original kernel. A tensor is replaced only if every statement that mentions it can be rewritten.
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
    """A tensor `flat` that replaces another tensor, and the view of the original that it equals.

    gathered: the view may contain an element several times, or padding; no statement stores through it.
    """

    flat: Buffer
    view: View
    gathered: bool


@frozen(eq=False)
class FlattenedKernel:
    """A kernel after the replacement, with the replaced tensors."""

    kernel: Kernel
    replaced: tuple[FlattenedView, ...] = ()

    @property
    def gathered(self) -> frozenset[Buffer]:
        """The original tensors that are replaced by gathered views."""
        return frozenset(each.view.buffer for each in self.replaced if each.gathered)


def in_place_of(replaced: Sequence[FlattenedView], buffer: Buffer) -> tuple[Buffer, View]:
    """What replaces a tensor of the kernel, and the view of the tensor that it is; by default the tensor itself."""
    found = next((each for each in replaced if each.view.buffer is buffer), None)
    return (buffer, whole(buffer)) if found is None else (found.flat, found.view)


def flatten_views(kernel: Kernel) -> FlattenedKernel:
    """Replace every tensor that one view covers; the kernel itself if there is none, or if it has roles."""
    if kernel.roles is not None:
        return FlattenedKernel(kernel)
    found = {buffer: _find_flattening(kernel, buffer) for buffer in kernel.parameters if _is_dense(buffer)}
    replaced = {buffer: each for buffer, each in found.items() if each is not None}
    if not replaced:
        return FlattenedKernel(kernel)
    body = tuple(_rewrite_statement(stmt, replaced) for stmt in kernel.prologue)
    end = tuple(_rewrite_statement(stmt, replaced) for stmt in kernel.epilogue)
    parameters = tuple(replaced[buffer].flat if buffer in replaced else buffer for buffer in kernel.parameters)
    return FlattenedKernel(evolve(kernel, parameters=parameters, prologue=body, epilogue=end), tuple(replaced.values()))


def _is_dense(buffer: Buffer) -> bool:
    """Whether a tensor is a contiguous float tensor in global memory with at least three axes and no promise."""
    layout = buffer.layout
    if buffer.space != "global" or not isinstance(layout, Strided) or len(buffer.shape) < 3:
        return False
    strides, shape = layout.strides, buffer.shape
    nested = all(algebra.mul(strides[axis + 1], shape[axis + 1]) is strides[axis] for axis in range(len(shape) - 1))
    return nested and buffer.dtype.family == "float" and buffer.promise is algebra.TRUE


def _find_flattening(kernel: Kernel, buffer: Buffer) -> FlattenedView | None:
    """The first candidate that can replace a tensor in all statements; None if there is none."""
    for each in (*_grouped_views(buffer), *_tagged_gather(kernel, buffer)):
        if _rewrites_everywhere(kernel, each):
            return each
    return None


def _grouped_views(buffer: Buffer) -> Iterator[FlattenedView]:
    """The reshapes of a dense tensor to two axes, each a group of consecutive axes."""
    assert isinstance(buffer.layout, Strided)
    for split in range(len(buffer.shape) - 1, 0, -1):
        groups = buffer.shape[:split], buffer.shape[split:]
        shape = tuple(reduce(algebra.mul, group) for group in groups)
        at = tuple(place for axis, group in enumerate(groups) for place in delinearize(algebra.coord(axis), group))
        strides = buffer.layout.strides[split - 1], buffer.layout.strides[-1]
        flat = evolve(buffer, shape=shape, layout=Strided(strides))
        yield FlattenedView(flat, View(buffer, shape, at), gathered=False)


def _tagged_gather(kernel: Kernel, buffer: Buffer) -> Iterator[FlattenedView]:
    """The gathered view of a tensor that is tagged as a whole, if it is the only one, as a dense tensor."""
    found = [s.view for s in walk(kernel.body) if isinstance(s, Tag) and s.view.buffer is buffer]
    parts = [view for view in found if not is_whole(view)]
    if len(parts) == 1 and len(parts[0].shape) == 2 and not _reads_memory(parts[0]):
        (view,) = parts
        flat = evolve(buffer, shape=view.shape, layout=Strided((view.shape[1], algebra.const(1))))
        yield FlattenedView(flat, view, gathered=True)


def _reads_memory(view: View) -> bool:
    return any(mentions(node, (Read,)) for node in (*view.at, view.where))


def _rewrites_everywhere(kernel: Kernel, replaced: FlattenedView) -> bool:
    """Whether every statement can be rewritten to the replacement, and at least one copies the tensor."""
    copies = [(s, v) for s in walk(kernel.body) if isinstance(s, Copy) for v in _copied_views(s, replaced.view.buffer)]
    moved = bool(copies) and all(_flat_view(stmt, view, replaced) is not None for stmt, view in copies)
    return moved and all(_rewrites(stmt, replaced) for stmt in walk(kernel.body))


def _copied_views(stmt: Copy, buffer: Buffer) -> Iterator[View]:
    for view in (stmt.source, stmt.target):
        if view.buffer is buffer:
            yield view


def _flat_view(stmt: Copy, view: View, replaced: FlattenedView) -> View | None:
    """The view of the replacement that covers what a copy moves; None if there is none.

    Also None if the instruction addresses the tensor by its own axes, as TMA does.
    """
    if stmt.atom.box is not None or stmt.through is not None:
        return None
    at = subview_coordinates(view, replaced.view)
    if at is None:
        return None
    if not replaced.gathered:
        return View(replaced.flat, view.shape, at, view.where)
    fills = stmt.source is view and is_gathered(stmt, view) and stmt.edge == 0
    return View(replaced.flat, view.shape, at) if fills and same_padding(view, replaced.view, at) else None


def _rewrites(stmt: Stmt, replaced: FlattenedView) -> bool:
    """Whether a statement other than a copy mentions the tensor only as a whole or through the replaced view."""
    buffer = replaced.view.buffer
    match stmt:
        case Copy():
            return True
        case Tag(view=view):
            return view.buffer is not buffer or is_whole(view) or _is_replaced_view(view, replaced)
        case Assert(claim=WrittenOnce(view=view)):
            return view.buffer is not buffer or (
                not replaced.gathered and (is_whole(view) or _is_replaced_view(view, replaced))
            )
        case Assert(claim=Products(view=view)):
            return view.buffer is not buffer or (not replaced.gathered and is_whole(view))
        case Assert(claim=claim):
            return all(view.buffer is not buffer for view in claim_views(claim))
        case _:
            return all(view.buffer is not buffer for view in views(stmt))


def _is_replaced_view(view: View, replaced: FlattenedView) -> bool:
    """Whether a view equals the replaced view."""
    same = view.shape == replaced.view.shape and view.at == replaced.view.at and view.peer is None
    return same and view.where is replaced.view.where


def _rewrite_statement(stmt: Stmt, replaced: Mapping[Buffer, FlattenedView]) -> Stmt:
    inner = with_bodies(stmt, tuple(tuple(_rewrite_statement(s, replaced) for s in body) for body in bodies(stmt)))
    match inner:
        case Copy(source=source, target=target):
            one, two = (_rewrite_view(inner, view, replaced) for view in (source, target))
            return inner if one is source and two is target else evolve(inner, source=one, target=two)
        case Tag(view=view, names=names) if view.buffer in replaced:
            each = replaced[view.buffer]
            return evolve(inner, view=whole(each.flat), names=_rewrite_names(names, view, each))
        case Assert(claim=WrittenOnce(view=view, record=record, where=where)) if view.buffer in replaced:
            each = replaced[view.buffer]
            condition = substitute(where, {}, each.view.at) if is_whole(view) else where
            return evolve(inner, claim=WrittenOnce(whole(each.flat), _rewrite_names(record, view, each), condition))
        case _:
            return inner


def _rewrite_view(stmt: Copy, view: View, replaced: Mapping[Buffer, FlattenedView]) -> View:
    found = _flat_view(stmt, view, replaced[view.buffer]) if view.buffer in replaced else view
    assert found is not None
    return found


def _rewrite_names(
    names: Sequence[tuple[str, Index]], view: View, replaced: FlattenedView
) -> tuple[tuple[str, Index], ...]:
    """Expressions over a view's coordinates as expressions over the coordinates of the replacement."""
    if not is_whole(view):
        return tuple(names)
    return tuple((name, substitute(each, {}, replaced.view.at)) for name, each in names)


def delinearize(number: Index, shape: Sequence[Index]) -> tuple[Index, ...]:
    """The coordinates of the element with a row-major index `number`."""
    coords: list[Index] = []
    for size in reversed(shape[1:]):
        coords.append(algebra.mod(number, size))
        number = algebra.floordiv(number, size)
    return (number, *reversed(coords))
