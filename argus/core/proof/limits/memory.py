"""Obligations of every access: in bounds (I37), contiguous and aligned vectors (I19), whole swizzle periods (I18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from argus.core import algebra
from argus.core.index import Cond, Coord, Index, Read
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, Staged, Strided, View
from argus.core.layout import Layout
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Step, Timeline, is_gathered
from argus.core.proof.limits import boxes, gathers, integers, vectors
from argus.core.proof.obligation import Obligation
from argus.core.walk import IntArray, mentions


def access_obligations(timeline: Timeline, accesses: Accesses, of: Callable[[Buffer], bool]) -> Iterator[Obligation]:
    """I37, I19, I18 and I28 for each copy of the timeline that accesses a buffer for which `of` is true."""
    for step in timeline.steps:
        if isinstance(step.stmt, Copy):
            for access in accesses.of(step):
                if access.view.buffer.space != "register" and of(access.view.buffer):
                    yield from _obligations_of_access(accesses, step, step.stmt, access)


def _obligations_of_access(accesses: Accesses, step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    name = access.view.buffer.name
    if access.gathered is not None:
        yield from gathers.gather_obligations(accesses, step, stmt, access)
        return
    if access.places is None and is_gathered(stmt, access.view):
        yield from vectors.gathered_vector_obligations(step, stmt, access)
        return
    if access.places is None:
        for invariant, what in (("I37", "stays inside"), ("I19", "is aligned in")):
            yield Obligation(
                invariant,
                f"the copy {what} `{name}`",
                stmt,
                algebra.FALSE,
                step.context,
                unknown=f"an address of `{name}` mixes symbols and coordinates",
                instead=gathers.ROW_GATHER if any(mentions(at, (Read,)) for at in access.view.at) else "",
            )
        return
    yield from _bound_obligations(step, stmt, access, access.places)
    yield from _alignment_obligations(step, stmt, access, access.places)
    yield from integers.access_width_obligations(step, stmt, access, access.places)


def _alignment_obligations(
    step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]
) -> Iterator[Obligation]:
    """Alignment of a copy by its kind: vectors per thread, a box per block, or matrices per warp."""
    memory = stmt.atom.operands["source" if access.mode == "read" else "target"]
    staged = isinstance(access.view.buffer.layout, Staged)
    if stmt.atom.box is not None:
        yield from boxes.box_obligations(step, stmt, access)
        if staged and staged_offsets(access.view, places) is None:
            reason = "a box that moves inside one buffer"
            yield Obligation("I19", "the box is aligned", stmt, algebra.FALSE, step.context, unknown=reason)
            return
    elif memory.tv is not None and staged:
        offsets = staged_offsets(access.view, places)
        yield from boxes.matrix_copy_obligations(
            step, stmt, access, memory, offsets, tuple(symbolic_axes(access, places))
        )
    else:
        yield from _vector_obligations(step, stmt, access, places)
        return
    if staged:
        yield _stage_obligation(step, stmt, access, places)


def _bound_obligations(step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]) -> Iterator[Obligation]:
    buffer = access.view.buffer
    if buffer.space == "global" and stmt.edge is not None:
        return
    for axis, (place, extent) in enumerate(zip(places, buffer.shape, strict=True)):
        goal = algebra.all_of((algebra.le(0, place.least), algebra.lt(place.most, extent)))
        yield Obligation(
            "I37",
            f"coordinate {axis} of the {access.mode} of `{buffer.name}` stays in [0, {show(extent)})",
            stmt,
            goal,
            step.context,
            compared=place.table.size,
            help=_bounds_help(access, axis),
        )


def _bounds_help(access: Access, axis: int) -> str:
    buffer, chosen = access.view.buffer, access.view.at[axis]
    if buffer.space != "global":
        return f"make `{buffer.name}` larger or the index smaller"
    if not mentions(chosen, (Coord,)):  # no tile that reaches over the end: zeros in its place would hide the fault
        extent = show(buffer.shape[axis])
        return f"index axis {axis} of `{buffer.name}`, which is `{show(chosen)}` here, by a number below {extent}"
    effect = "read 0 outside the tensor" if access.mode == "read" else "write nothing outside the tensor"
    return f"give the copy `edge=0`, to {effect}, or `assume(...)` sizes that are whole tiles"


# -- vectors -------------------------------------------------------------------------------------------------


def _vector_obligations(step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]) -> Iterator[Obligation]:
    buffer = access.view.buffer
    count = stmt.atom.vector_bits // buffer.dtype.bits
    side = stmt.atom.operands["source" if access.mode == "read" else "target"]
    wide = side.align * 8 // buffer.dtype.bits
    if places[0].table.shape[1] % count:
        reason = f"a thread holds {places[0].table.shape[1]} elements, which are not whole vectors"
        yield Obligation("I19", f"`{stmt.atom}` moves vectors", stmt, algebra.FALSE, step.context, unknown=reason)
        return
    what = f"`{stmt.atom}` moves {count} consecutive elements of `{buffer.name}` from a multiple of {side.align} bytes"
    yield from _consecutive_obligations(step, stmt, places, count, what, buffer)
    match buffer.layout:
        case Staged():
            yield from _staged_obligations(step, stmt, access, places, count, wide, what)
        case Strided(strides=strides):
            goals = [
                _offset_multiple(place, stride, wide, count) for place, stride in zip(places, strides, strict=True)
            ]
            yield Obligation(
                "I19",
                what,
                stmt,
                algebra.all_of(goals) if buffer.align % side.align == 0 else algebra.FALSE,
                step.context,
                compared=places[0].table.size // count,
                help=f"`assume` that the row length is a multiple of {wide}, or use a narrower instruction",
            )
            if stmt.edge is not None and count > 1:
                yield _edge_obligation(step, stmt, places, buffer, count)
        case _:
            return


def _consecutive_obligations(
    step: Step, stmt: Copy, places: tuple[Separable, ...], count: int, what: str, buffer: Buffer
) -> Iterator[Obligation]:
    """I19: within a vector the last coordinate counts up by one and the others are constant."""
    for axis, place in enumerate(places):
        groups = place.table.reshape(place.table.shape[0], -1, count)
        wanted = groups[:, :, :1] + (np.arange(count) if axis == len(places) - 1 else 0)
        if not (groups == wanted).all():
            yield Obligation(
                "I19",
                what,
                stmt,
                algebra.FALSE,
                step.context,
                help=f"spread the tile so that each thread holds runs of {count} elements of `{buffer.name}`",
            )
            return


def _offset_multiple(place: Separable, stride: Index, wide: int, count: int) -> Cond:
    """The condition that an axis contributes a multiple of `wide` elements to every vector's address."""
    if algebra.mod(stride, wide) is algebra.const(0):
        return algebra.TRUE
    firsts = place.table.reshape(place.table.shape[0], -1, count)[:, :, 0]
    if (firsts % wide == firsts.flat[0] % wide).all():
        coordinate = algebra.eq(algebra.mod(algebra.add(place.base, int(firsts.flat[0])), wide), 0)
        if coordinate is algebra.TRUE:
            return coordinate
        return algebra.any_of((coordinate, boxes.stride_divisible(stride, wide)))
    return boxes.stride_divisible(stride, wide)


def _edge_obligation(step: Step, stmt: Copy, places: tuple[Separable, ...], buffer: Buffer, count: int) -> Obligation:
    """I19: no vector crosses the tensor's edge, because extent and start are multiples of the vector length."""
    last, extent = places[-1], buffer.shape[-1]
    firsts = last.table.reshape(last.table.shape[0], -1, count)[:, :, 0]
    starts = algebra.eq(algebra.mod(algebra.add(last.base, int(firsts.flat[0])), count), 0)
    regular = bool((firsts % count == firsts.flat[0] % count).all())
    goal = algebra.all_of((starts, algebra.eq(algebra.mod(extent, count), 0))) if regular else algebra.FALSE
    return Obligation(
        "I19",
        f"no vector of {count} elements reaches over the edge of `{buffer.name}`",
        stmt,
        goal,
        step.context,
        compared=firsts.size,
        help=f"`assume({show(extent)} % {count} == 0)`, or use a narrower instruction",
    )


def staged_offsets(view: View, places: tuple[Separable, ...], *, moves: bool = False) -> IntArray | None:
    """Element offsets of a view's cells in shared memory, at slot 0 of every symbolic axis; None if not regular.

    Offsets are relative to the start of the slot, or of the tile of rows. Both starts must be whole swizzle periods;
    I18 states that. moves: a tile may begin anywhere on an axis of a buffer without a swizzle; its offsets are then
    relative to its least coordinate on that axis.
    """
    layout = view.buffer.layout
    assert isinstance(layout, Staged)
    offsets = np.zeros(places[0].table.shape, np.int64)
    for place, mode in zip(places, axis_modes(layout.layout), strict=True):
        symbolic = place.base is not algebra.const(0)
        plain = moves and layout.swizzle is None
        if symbolic and isinstance(mode.stride, tuple):
            return None
        if symbolic and not (place.uniform or plain or _starts_on_period(place, mode, layout)):
            return None
        if symbolic and not place.uniform:
            assert isinstance(mode.stride, int)
            offsets = offsets + (place.table - (place.low if plain else 0)) * mode.stride
        if not symbolic:
            along = offsets_along(mode, place.table)
            if along is None:
                return None
            offsets = offsets + along
    return offsets if layout.swizzle is None else layout.swizzle.images(offsets)


def _starts_on_period(place: Separable, mode: Layout, layout: Staged) -> bool:
    """Whether the symbolic part of a coordinate adds whole swizzle periods to the offset, for all symbol values."""
    assert isinstance(mode.stride, int)
    return _whole_periods(place.base, mode.stride, 1 if layout.swizzle is None else layout.swizzle.period)


def _whole_periods(place: Index, stride: int, period: int) -> bool:
    return algebra.mod(algebra.mul(place, stride), period) is algebra.const(0)


def axis_modes(layout: Layout) -> tuple[Layout, ...]:
    """The layout's modes, one per axis; a nested mode is an axis that is split into column tiles."""
    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    return tuple(Layout(shape, stride) for shape, stride in zip(shapes, strides, strict=True))


def offsets_along(mode: Layout, coordinates: IntArray) -> IntArray | None:
    """Element offsets of coordinates on one axis; None if one lies outside a nested mode."""
    if isinstance(mode.stride, int):
        return coordinates * mode.stride
    table = mode.table()
    inside = bool(((coordinates >= 0) & (coordinates < table.size)).all())
    return table.ravel()[coordinates] if inside else None


def _staged_obligations(
    step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...], count: int, wide: int, what: str
) -> Iterator[Obligation]:
    offsets = staged_offsets(access.view, places, moves=True)
    if offsets is None:
        yield Obligation("I19", what, stmt, algebra.FALSE, step.context, unknown="a tile that moves inside one buffer")
        return
    groups = offsets.reshape(offsets.shape[0], -1, count)
    aligned = bool((groups[:, :, 0] % wide == 0).all())
    contiguous = bool((groups == groups[:, :, :1] + np.arange(count)).all())
    slots = algebra.all_of(_slot_aligned(place, stride, wide) for place, stride in symbolic_axes(access, places))
    yield Obligation(
        "I19",
        what,
        stmt,
        slots if aligned and contiguous else algebra.FALSE,
        step.context,
        compared=groups.shape[0] * groups.shape[1],
        help="keep rows and swizzle in whole vectors: a swizzle's base must be at least the vector's length",
    )
    yield _stage_obligation(step, stmt, access, places)


def symbolic_axes(access: Access, places: tuple[Separable, ...]) -> Iterator[tuple[Separable, int]]:
    """The symbolic axes of a shared tensor with their strides in elements.

    Leaves out nested modes: `staged_offsets` returns None for a symbolic coordinate there.
    """
    layout = access.view.buffer.layout
    assert isinstance(layout, Staged)
    for place, mode in zip(places, axis_modes(layout.layout), strict=True):
        if isinstance(mode.stride, int) and place.base is not algebra.const(0):
            yield place, mode.stride


def _slot_aligned(place: Separable, stride: int, wide: int) -> Cond:
    return algebra.eq(algebra.mod(algebra.mul(place.least, stride), wide), 0)


def _stage_obligation(step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]) -> Obligation:
    """I18: each slot starts at a multiple of the swizzle's period, so that all slots are permuted alike."""
    layout = access.view.buffer.layout
    assert isinstance(layout, Staged)
    period = 1 if layout.swizzle is None else layout.swizzle.period
    slots = [(place, stride) for place, stride in symbolic_axes(access, places) if place.uniform]
    whole = all(stride % period == 0 or _whole_periods(place.least, stride, period) for place, stride in slots)
    within = any(
        not p.uniform and not _whole_periods(p.base, stride, period) for p, stride in symbolic_axes(access, places)
    )
    return Obligation(
        "I18",
        f"stages of `{access.view.buffer.name}` are whole periods of its swizzle",
        stmt,
        algebra.TRUE if whole and not within else algebra.FALSE,
        step.context,
        unknown="a tile of rows that begins within a period of the swizzle" if whole and within else "",
        witness=(("period", f"{period} elements"), ("layout", str(layout.layout))),
        fault=f"stages of `{access.view.buffer.name}` are not whole periods of its swizzle",
        help="make each stage a multiple of the swizzle's period",
    )
