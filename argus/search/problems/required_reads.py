"""Lower bound of the bytes of a tensor that a kernel reads at given sizes: the union of disjoint boxes, counted once.

Enumerates all blocks and loop iterations of a copy numerically. Boxes with the tile's extents that start at multiples
of them do not overlap. Copies under data-dependent conditions, at data- or thread-dependent coordinates, and of strided
views count as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.cost.addressing import NotModelledError, start, value_of
from argus.core.cost.groups import sizes_of
from argus.core.index import Coord, Node, Sum, Symbol
from argus.core.ir import Buffer, Copy, For, If, Kernel, Role, Stmt, View, bodies, trips
from argus.core.walk import IntArray, Value, symbols, topological

_MOST = 1 << 22
"""Most executions of a copy that are enumerated."""
Numbers = dict[Symbol, Value]


@frozen(eq=False)
class _CopySite:
    """A copy with its enclosing statements, outermost first, each with whether the copy is in its first body."""

    copy: Copy
    around: tuple[tuple[Stmt, bool], ...]
    role: Role | None


def required_bytes(buffer: Buffer, kernel: Kernel, sizes: Mapping[str, int]) -> float:
    """Bytes that are certainly read: the maximum over groups of copies with equal box extents; 0 if none is known."""
    found: dict[tuple[int, ...], list[IntArray]] = {}
    for way in _copy_sites(kernel):
        if way.copy.source.buffer is buffer and (boxes := _boxes(way, kernel, sizes)) is not None:
            found.setdefault(boxes[0], []).append(boxes[1])
    shape = [int(value_of(extent, sizes_of(kernel, sizes))) for extent in buffer.shape]
    elements = (_elements(spans, np.concatenate(corners), shape) for spans, corners in found.items())
    return max(elements, default=0) * buffer.dtype.bits / 8


def _elements(spans: tuple[int, ...], corners: IntArray, shape: list[int]) -> int:
    """Number of elements in the union of aligned boxes at these corners, clipped to the tensor."""
    different = np.unique(corners, axis=0)
    counted = np.ones(len(different), np.int64)
    for axis, (span, extent) in enumerate(zip(spans, shape, strict=True)):
        first = different[:, axis]
        counted *= np.where((first % span == 0) & (first >= 0), np.clip(extent - first, 0, span), 0)
    return int(counted.sum())


def _copy_sites(kernel: Kernel) -> Iterator[_CopySite]:
    yield from _within(kernel.prologue, (), None)
    for role in () if kernel.roles is None else kernel.roles.roles:
        yield from _within(role.body, (), role)
    yield from _within(kernel.epilogue, (), None)


def _within(body: tuple[Stmt, ...], around: tuple[tuple[Stmt, bool], ...], role: Role | None) -> Iterator[_CopySite]:
    for stmt in body:
        if isinstance(stmt, Copy):
            yield _CopySite(stmt, around, role)
        for part, inner in enumerate(bodies(stmt)):
            yield from _within(inner, (*around, (stmt, part == 0)), role)


def _boxes(way: _CopySite, kernel: Kernel, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], IntArray] | None:
    """Extents of the boxes that a copy reads, and their corners, shape (boxes, axes); None if unknown."""
    known = sizes_of(kernel, sizes)
    try:
        spans = _box_extents(way.copy.source, known)
        places = _executions(way, kernel, known)
        corners = [np.broadcast_to(axis, _length(places)) for axis in start(way.copy.source, places)]
    except (NotModelledError, _TooManyError, OverflowError):
        return None
    whole = len(np.unique(way.copy.by.elements())) == prod(spans)
    return (spans, np.unique(np.stack(corners, axis=1), axis=0)) if whole else None


class _TooManyError(Exception):
    """More than `_MOST` executions."""


def _box_extents(view: View, known: Mapping[Symbol, Value]) -> tuple[int, ...]:
    """Extents, along the buffer's axes, of a view with unit stride along each of its axes.

    Raises NotModelledError for other views.
    """
    spans: list[int] = []
    seen: list[int] = []
    for at in view.at:
        terms = at.terms if isinstance(at, Sum) else ((at, 1),)
        axes = [(atom.axis, factor) for atom, factor in terms if isinstance(atom, Coord)]
        hidden = any(
            isinstance(node, Coord) for atom, _ in terms if not isinstance(atom, Coord) for node in topological((atom,))
        )
        if hidden or len(axes) > 1 or any(factor != 1 for _, factor in axes):
            raise NotModelledError("a view without unit strides")
        seen += [axis for axis, _ in axes]
        spans.append(int(value_of(view.shape[axes[0][0]], known)) if axes else 1)
    if view.where is not TRUE or len(set(seen)) != len(seen):
        raise NotModelledError("a view without unit strides")
    if prod(spans) != prod(int(value_of(extent, known)) for extent in view.shape):
        raise NotModelledError("a view that repeats elements")
    return tuple(spans)


def _executions(way: _CopySite, kernel: Kernel, known: Mapping[Symbol, Value]) -> Numbers:
    """Values of the relevant symbols, one per execution of the copy; irrelevant symbols are not enumerated."""
    told = _relevant_symbols(way)
    if (way.role is not None and way.role.thread in told) or kernel.thread in told:
        raise NotModelledError("thread-dependent coordinates")
    numbers: Numbers = {symbol: np.full(1, value, np.int64) for symbol, value in known.items()}
    for block, extent in zip(kernel.blocks, kernel.grid, strict=True):
        numbers = _expand_symbol(
            numbers, block, np.zeros(1, np.int64), value_of(extent, known).reshape(1), 1, wanted=block in told
        )
    if way.role is not None:
        count = np.full(_length(numbers), way.role.agents, np.int64)
        numbers = _expand_symbol(numbers, way.role.number, 0 * count, count, 1, wanted=way.role.number in told)
    for stmt, first in way.around:
        match stmt:
            case For():
                begin = np.broadcast_to(value_of(stmt.start, numbers), _length(numbers))
                count = np.broadcast_to(value_of(trips(stmt), numbers), _length(numbers))
                numbers = _expand_symbol(numbers, stmt.symbol, begin, count, stmt.step, wanted=stmt.symbol in told)
            case If():
                held = np.broadcast_to(value_of(stmt.cond, numbers).astype(np.bool_), _length(numbers))
                numbers = _select(numbers, np.flatnonzero(held == first))
            case _:
                pass
    return numbers


def _relevant_symbols(way: _CopySite) -> frozenset[Symbol]:
    """Symbols in the copy's coordinates, enclosing conditions and loop bounds."""
    roots: list[Node] = list(way.copy.source.at)
    for stmt, _ in way.around:
        match stmt:
            case For(start=begin, stop=stop):
                roots += [begin, stop]
            case If(cond=cond):
                roots.append(cond)
            case _:
                pass
    return symbols(*roots)


def _expand_symbol(
    numbers: Numbers, symbol: Symbol, first: IntArray, count: IntArray, step: int, *, wanted: bool
) -> Numbers:
    """Repeat each execution by the loop's trip count; by min(count, 1) if the symbol is irrelevant."""
    times = np.broadcast_to(np.maximum(count, 0) if wanted else np.minimum(np.maximum(count, 0), 1), _length(numbers))
    if int(times.sum()) > _MOST:
        raise _TooManyError
    which = np.repeat(np.arange(_length(numbers)), times)
    trip = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    begin = np.broadcast_to(first, _length(numbers))[which]
    return {**_select(numbers, which), symbol: begin + trip * step}


def _select(numbers: Numbers, which: npt.NDArray[np.int64]) -> Numbers:
    return {symbol: np.asarray(value)[which] for symbol, value in numbers.items()}


def _length(numbers: Numbers) -> int:
    return len(np.asarray(next(iter(numbers.values())))) if numbers else 1
