"""Gives buffers of a ring with one stage a stage axis of extent 1, which all other files of this folder expect.

A ring of one stage may be written with one barrier of each kind and tiles without an axis for the stage. A tile that is
filled as a whole, or by parts of the same number of axes, by copies that complete on a single barrier is such a tile.
The kernel with the axis describes the same cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from argus.core import algebra
from argus.core.ir import Buffer, Copy, Kernel, Staged, View, walk
from argus.core.ir.surgery import kernel_with_objects, objects_of
from argus.core.layout import Layout


def with_stage_axes(kernel: Kernel) -> Kernel:
    """The kernel in which each such tile, and each view of it, has a first axis of extent 1."""
    made = {id(buffer): (buffer, _with_axis(buffer, buffer.layout)) for buffer in _without_axis(kernel)}
    if not made:
        return kernel
    exchange: dict[int, Any] = {key: new for key, (_, new) in made.items()}
    kept = tuple(view for part in (kernel.prologue, kernel.roles, kernel.epilogue) for view in objects_of(part, View))
    for view in kept:
        if id(view.buffer) in made:
            exchange[id(view)] = evolve(view, buffer=exchange[id(view.buffer)], at=(algebra.const(0), *view.at))
    return kernel_with_objects(kernel, exchange)


def _without_axis(kernel: Kernel) -> Iterator[Buffer]:
    fills = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.signal is not None]
    for buffer in dict.fromkeys(stmt.target.buffer for stmt in fills):
        own = [stmt for stmt in fills if stmt.target.buffer is buffer]
        if buffer.shape[0] is not algebra.const(1) and all(map(_fills_without_axis, own)):
            yield buffer


def _fills_without_axis(copy: Copy) -> bool:
    one = copy.signal is not None and copy.signal.buffer.shape[0] is algebra.const(1)
    return one and len(copy.target.shape) == len(copy.target.buffer.shape)


def _with_axis(buffer: Buffer, layout: object) -> Buffer:
    assert isinstance(layout, Staged)
    inner = layout.layout
    assert isinstance(inner.shape, tuple)
    assert isinstance(inner.stride, tuple)
    whole = Layout((1, *inner.shape), (inner.size(), *inner.stride))
    return evolve(buffer, shape=(algebra.const(1), *buffer.shape), layout=evolve(layout, layout=whole))
