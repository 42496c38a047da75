"""Tensors whose elements a kernel numbers across axes, as tensors of rows: their axes but the last become one.

`Y.reshape(-1, C)` puts row m at `(m // Q // P, m // Q % P, m % Q)` of a tensor of shape (B, P, Q, C). Where extents are
positive, which is proved apart (I28), rows and these coordinates are one to one, and one is inside where the other is.
A tensor is taken for one of rows only if all that the kernel says of it can be said of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.check import claim_views
from argus.core.check.parts import views
from argus.core.index import Bin, Index
from argus.core.ir import (
    Assert,
    Buffer,
    Copy,
    Kernel,
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
from argus.core.proof.timeline import is_whole
from argus.core.walk import substitute


def flattened(kernel: Kernel) -> Kernel:
    """The kernel with such tensors as tensors of rows; itself if there are none."""
    if kernel.roles is not None:
        return kernel
    rows = {buffer: _of_rows(buffer) for buffer in kernel.parameters if _is_dense(buffer)}
    rows = {buffer: flat for buffer, flat in rows.items() if _said_of_rows(kernel, buffer, flat)}
    if not rows:
        return kernel
    body = tuple(_in_rows(stmt, rows) for stmt in kernel.prologue)
    end = tuple(_in_rows(stmt, rows) for stmt in kernel.epilogue)
    parameters = tuple(rows.get(buffer, buffer) for buffer in kernel.parameters)
    return evolve(kernel, parameters=parameters, prologue=body, epilogue=end)


def _is_dense(buffer: Buffer) -> bool:
    """Whether a tensor of at least three axes has its rows one after another."""
    layout = buffer.layout
    if buffer.space != "global" or not isinstance(layout, Strided) or len(buffer.shape) < 3:
        return False
    strides, shape = layout.strides, buffer.shape
    nested = all(algebra.mul(strides[axis + 1], shape[axis + 1]) is strides[axis] for axis in range(len(shape) - 1))
    return nested and buffer.dtype.family == "float" and buffer.promise is algebra.TRUE


def _of_rows(buffer: Buffer) -> Buffer:
    assert isinstance(buffer.layout, Strided)
    rows = algebra.const(1)
    for extent in buffer.shape[:-1]:
        rows = algebra.mul(rows, extent)
    return evolve(buffer, shape=(rows, buffer.shape[-1]), layout=Strided(buffer.layout.strides[-2:]))


def _said_of_rows(kernel: Kernel, buffer: Buffer, flat: Buffer) -> bool:
    """Whether all statements that speak of a tensor can, and one numbers rows across axes."""
    found = [view for stmt in walk(kernel.body) for view in _views(stmt, buffer)]
    moved = [view for s in walk(kernel.body) if isinstance(s, Copy) for view in _moved(s, buffer)]
    rows = bool(moved) and all(view is not None and _rows_of(view, flat) is not None for view in moved)
    return rows and all(is_whole(view) for view in found)


def _moved(stmt: Copy, buffer: Buffer) -> Iterator[View | None]:
    """The views of a tensor that a copy has; None for one that an instruction takes by its axes."""
    for view in (stmt.source, stmt.target):
        if view.buffer is buffer:
            yield None if stmt.atom.box is not None or stmt.through is not None else view


def _views(stmt: Stmt, buffer: Buffer) -> Iterator[View]:
    """What statements that are no copies say of a tensor; a view of none of it where there is no form for that."""
    match stmt:
        case Copy():
            return
        case Tag(view=view) | Assert(claim=WrittenOnce(view=view)):
            if view.buffer is buffer:
                yield view
        case Assert(claim=claim):
            if any(view.buffer is buffer for view in claim_views(claim)):
                yield View(buffer, (), ())
        case _:
            if any(view.buffer is buffer for view in views(stmt)):
                yield View(buffer, (), ())


def _in_rows(stmt: Stmt, rows: Mapping[Buffer, Buffer]) -> Stmt:
    inner = with_bodies(stmt, tuple(tuple(_in_rows(s, rows) for s in body) for body in bodies(stmt)))
    match inner:
        case Copy(source=source, target=target):
            one, two = (_taken(view, rows) for view in (source, target))
            return inner if one is source and two is target else evolve(inner, source=one, target=two)
        case Tag(view=view, names=names) if view.buffer in rows:
            return evolve(inner, view=whole(rows[view.buffer]), names=_of_elements(names, view.buffer))
        case Assert(claim=WrittenOnce(view=view, record=record, where=where)) if view.buffer in rows:
            meant = substitute(where, {}, _coordinates(view.buffer))
            claim = WrittenOnce(whole(rows[view.buffer]), _of_elements(record, view.buffer), meant)
            return evolve(inner, claim=claim)
        case _:
            return inner


def _taken(view: View, rows: Mapping[Buffer, Buffer]) -> View:
    found = _rows_of(view, rows[view.buffer]) if view.buffer in rows else view
    assert found is not None
    return found


def _of_elements(names: Sequence[tuple[str, Index]], buffer: Buffer) -> tuple[tuple[str, Index], ...]:
    """Expressions over coordinates, of the element of a row."""
    return tuple((name, substitute(each, {}, _coordinates(buffer))) for name, each in names)


def _coordinates(buffer: Buffer) -> tuple[Index, ...]:
    return (*unflattened(algebra.coord(0), buffer.shape[:-1]), algebra.coord(1))


def unflattened(number: Index, shape: Sequence[Index]) -> tuple[Index, ...]:
    """The coordinates of an element by its number, the last axis fastest."""
    coords: list[Index] = []
    for size in reversed(shape[1:]):
        coords.append(algebra.mod(number, size))
        number = algebra.floordiv(number, size)
    return (number, *reversed(coords))


def _rows_of(view: View, flat: Buffer) -> View | None:
    """The same elements by row and column; None if the view does not number rows."""
    shape, at = view.buffer.shape, view.at
    inner = at[-2]
    if not isinstance(inner, Bin) or inner.op != "%" or inner.right is not shape[-2]:
        return None
    row, column = inner.left, at[-1]
    if unflattened(row, shape[:-1]) != at[:-1] or view.peer is not None:
        return None
    return View(flat, view.shape, (row, column), view.where)
