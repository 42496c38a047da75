"""Mutation operators on layouts of shared memory and registers: swizzles, strides, threads, aliasing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from argus.core.algebra import const
from argus.core.index import Const
from argus.core.ir import Alloc, Buffer, Copy, Kernel, Map, Mma, Staged, walk
from argus.core.ir.surgery import kernel_with_objects, replace_objects
from argus.core.layout import TV, Layout, Swizzle
from argus.core.tiling import spread
from argus.testing.mutation.operator import Made, Operator, allocated, each_buffer

_SWIZZLES = tuple(Swizzle(bits, base, 3) for bits in (1, 2, 3) for base in (2, 3, 4))


def _swizzled(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    layout = buffer.layout
    if not isinstance(layout, Staged):
        return
    for swizzle in _SWIZZLES:
        if swizzle != layout.swizzle and layout.layout.size() % swizzle.period == 0:
            yield evolve(buffer, layout=Staged(layout.layout, swizzle), banks=None), f"under {swizzle}"


def _unswizzled(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    if isinstance(buffer.layout, Staged) and buffer.layout.swizzle is not None:
        yield evolve(buffer, layout=Staged(buffer.layout.layout), banks=None), "without a swizzle"


def _modes(buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Extents and strides of a shared buffer, one per axis."""
    layout = buffer.layout
    if not isinstance(layout, Staged) or not isinstance(layout.layout.stride, tuple):
        return None
    strides = [stride for stride in layout.layout.stride if isinstance(stride, int)]
    extents = [extent.value for extent in buffer.shape if isinstance(extent, Const)]
    return (tuple(extents), tuple(strides)) if len(strides) == len(extents) == len(buffer.shape) else None


def _restrided(buffer: Buffer, extents: tuple[int, ...], strides: tuple[int, ...]) -> Buffer:
    layout = buffer.layout
    assert isinstance(layout, Staged)
    return evolve(buffer, layout=Staged(Layout(extents, strides), layout.swizzle), banks=None)


def _transposed(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    found = _modes(buffer)
    if found is not None and len(found[0]) >= 2:
        extents, strides = found
        swapped = (*strides[:-2], 1, extents[-2])
        if swapped != strides:
            yield _restrided(buffer, extents, swapped), "column-major"


def _overlapping(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    found = _modes(buffer)
    if found is not None and len(found[0]) >= 2:
        extents, strides = found
        for axis in range(len(strides) - 1):
            if extents[axis] > 1 and strides[axis] > 1:
                less = (*strides[:axis], strides[axis] // 2, *strides[axis + 1 :])
                yield _restrided(buffer, extents, less), f"axis {axis} of half its stride"


def _padded(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    found = _modes(buffer)
    layout = buffer.layout
    if found is None or len(found[0]) != 2 or not isinstance(layout, Staged):
        return
    extents, strides = found
    yield _restrided(buffer, extents, (strides[0] + 8, strides[1])), "with rows of 8 elements more"


def _fewer_slots(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    found = _modes(buffer)
    if found is not None and len(found[0]) >= 3 and found[0][0] > 1:
        extents, strides = found
        made = _restrided(buffer, (extents[0] - 1, *extents[1:]), strides)
        yield evolve(made, shape=(const(extents[0] - 1), *buffer.shape[1:])), f"of {extents[0] - 1} slots"


def _unaligned(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    if buffer.align > 16:
        yield evolve(buffer, align=buffer.align // 2), f"aligned to {buffer.align // 2} bytes"


def _other_vectors(kernel: Kernel) -> Iterator[Made]:
    """Distribute a register tile that only copies access over the threads in other vectors."""
    for buffer in _free(kernel):
        layout = buffer.layout
        assert isinstance(layout, TV)
        for vector in (2, 4, 8, 16):
            try:
                made = spread((layout.tile[0], layout.tile[1]), layout.threads.size(), vector)
            except ValueError:
                continue
            if made != layout:
                yield _with_layout(kernel, buffer, made, f"in vectors of {vector}")


def _other_threads(kernel: Kernel) -> Iterator[Made]:
    """Reorder the threads of a register tile that only copies access."""
    for buffer in _free(kernel):
        layout = buffer.layout
        assert isinstance(layout, TV)
        modes = layout.threads.flat_modes
        if len(modes) > 1:
            turned = Layout(tuple(e for e, _ in modes[::-1]), tuple(s for _, s in modes[::-1]))
            yield _with_layout(kernel, buffer, TV(turned, layout.values, layout.tile), "by threads in another order")


def _free(kernel: Kernel) -> Iterator[Buffer]:
    fixed: set[Buffer] = set()
    for stmt in walk(kernel.body):
        if isinstance(stmt, Mma):
            fixed |= {stmt.target.buffer, stmt.a.buffer, stmt.b.buffer}
        elif isinstance(stmt, Map):
            fixed.add(stmt.target.buffer)
    for buffer in allocated(kernel, "register"):
        if buffer not in fixed and isinstance(buffer.layout, TV) and len(buffer.layout.tile) == 2:
            yield buffer


def _with_layout(kernel: Kernel, buffer: Buffer, layout: TV, what: str) -> Made:
    """The kernel with another layout of the buffer, also in the copies that access it."""
    made = evolve(buffer, layout=layout)
    exchange: dict[int, Any] = {id(buffer): made}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy) and buffer in (stmt.source.buffer, stmt.target.buffer):
            exchange[id(stmt)] = evolve(replace_objects(stmt, {id(buffer): made}), by=layout)
    return Made(kernel_with_objects(kernel, exchange), f"`{buffer.name}` {what}", buffer.span)


def _shared_storage(kernel: Kernel) -> Iterator[Made]:
    """Alias two buffers of equal shape, type and layout."""
    for space in ("shared", "register"):
        found = allocated(kernel, space)
        for at, one in enumerate(found):
            for two in found[at + 1 :]:
                if one.shape == two.shape and one.dtype == two.dtype and one.layout == two.layout:
                    merged = kernel_with_objects(kernel, {id(two): one})
                    first = next(s for s in walk(merged.body) if isinstance(s, Alloc) and s.buffer is one)
                    body = tuple(s for s in merged.prologue if not _again(s, one, first))
                    yield Made(evolve(merged, prologue=body), f"`{two.name}` is `{one.name}`", two.span)


def _again(stmt: object, buffer: Buffer, first: Alloc) -> bool:
    return isinstance(stmt, Alloc) and stmt.buffer is buffer and stmt is not first


OPERATORS: tuple[Operator, ...] = (
    Operator("other_swizzle", "a shared tile has another swizzle", each_buffer(_swizzled, "shared")),
    Operator("drop_swizzle", "a shared tile has no swizzle", each_buffer(_unswizzled, "shared")),
    Operator("tile_by_columns", "a shared tile is column-major", each_buffer(_transposed, "shared")),
    Operator("overlap_rows", "rows or slots of a shared tile overlap", each_buffer(_overlapping, "shared")),
    Operator("pad_rows", "rows of a shared tile are padded", each_buffer(_padded, "shared")),
    Operator("fewer_slots", "a shared buffer has one stage less", each_buffer(_fewer_slots, "shared")),
    Operator("less_alignment", "a shared buffer has half its alignment", each_buffer(_unaligned, "shared")),
    Operator("other_vectors", "a register tile is held in vectors of another width", _other_vectors),
    Operator("other_threads", "a register tile is held by threads in another order", _other_threads),
    Operator("one_storage", "two buffers share storage", _shared_storage),
)
