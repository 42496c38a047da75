"""Mutation operators on the views of copies and products: another place, another order, another buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from argus.core.algebra import TRUE, add, bit_xor, const, coord, floordiv, mod, mul, sub, sym
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.ir import Alloc, Copy, Fold, Kernel, Map, Mma, View, walk
from argus.core.walk import substitute, symbols
from argus.testing.mutation.operator import Change, Operator, around_the_end, at_axis, counted, each, other


def _views(stmt: Any) -> Iterator[tuple[str, View]]:  # noqa: ANN401 reason: any statement
    """The global and shared views of a statement, by field."""
    for name in ("source", "target", "a", "b"):
        view = getattr(stmt, name, None)
        if isinstance(view, View) and view.buffer.space in ("global", "shared"):
            yield name, view


def _register_views(stmt: Any) -> Iterator[tuple[str, View]]:  # noqa: ANN401 reason: any statement
    for name in ("source", "target"):
        view = getattr(stmt, name, None)
        if isinstance(view, View) and view.buffer.space == "register":
            yield name, view


def _moved(stmt: Any, name: str, view: View, axis: int, index: Index, what: str) -> Iterator[Change]:  # noqa: ANN401 reason: as above
    yield from other(stmt, f"{name} axis {axis} {what}", **{name: at_axis(view, axis, index)})


def _by_one(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        for axis, at in enumerate(view.at):
            for by in (1, -1):
                yield from _moved(stmt, name, view, axis, add(at, by), f"+ {by}")


def _by_a_vector(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        yield from _moved(stmt, name, view, len(view.at) - 1, add(view.at[-1], 8), "+ 8")


def _by_a_tile(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        first = max(0, len(view.at) - len(view.shape))
        for axis, (at, extent) in enumerate(zip(view.at[first:], view.shape, strict=False), start=first):
            if isinstance(extent, Const):
                for by in (extent.value, -extent.value):
                    yield from _moved(stmt, name, view, axis, add(at, by), f"+ {by}")


def _wrapped(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    """Move a view of a shared buffer by one along an axis, wrapping around: another stage, or rotated elements."""
    for name, view in _views(stmt):
        if view.buffer.space == "shared":
            for axis, at in enumerate(view.at):
                index = around_the_end(view, axis, add(at, 1))
                yield from _moved(stmt, name, view, axis, index, "the next, round the end")


def _first_slot(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        for axis, at in enumerate(view.at):
            if isinstance(at, Bin) and at.op == "%":
                yield from _moved(stmt, name, view, axis, const(0), "always 0")
                yield from _moved(stmt, name, view, axis, sub(at.right, add(at, 1)), "in descending order")


def _turned(stmt: Any, name: str, view: View, coordinates: tuple[Index, ...], what: str) -> Iterator[Change]:  # noqa: ANN401 reason: as above
    at = tuple(substitute(index, {}, coordinates) for index in view.at)
    where = substitute(view.where, {}, coordinates)
    yield from other(stmt, f"{name} {what}", **{name: evolve(view, at=at, where=where)})


def _extents(view: View) -> tuple[int, ...] | None:
    sizes = tuple(extent.value for extent in view.shape if isinstance(extent, Const))
    return sizes if len(sizes) == len(view.shape) == 2 else None


def _swapped_axes(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        sizes = _extents(view)
        if sizes is not None and sizes[0] == sizes[1]:
            yield from _turned(stmt, name, view, (coord(1), coord(0)), "transposed")
        elif sizes is not None:
            rows, columns = sizes
            number = add(mul(coord(0), columns), coord(1))
            yield from _turned(stmt, name, view, (mod(number, rows), floordiv(number, rows)), "in the other order")


def _reversed(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        sizes = _extents(view)
        if sizes is not None:
            rows, columns = sizes
            yield from _turned(stmt, name, view, (sub(rows - 1, coord(0)), coord(1)), "rows reversed")
            yield from _turned(stmt, name, view, (coord(0), sub(columns - 1, coord(1))), "columns reversed")


def _rotated(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        sizes = _extents(view)
        if sizes is not None:
            yield from _turned(stmt, name, view, (mod(add(coord(0), 1), sizes[0]), coord(1)), "rows rotated")
            yield from _turned(stmt, name, view, (coord(0), mod(add(coord(1), 8), sizes[1])), "columns rotated by 8")


def _permuted(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        sizes = _extents(view)
        if sizes is not None and sizes[0] % 2 == 0 and sizes[1] % 16 == 0:
            columns = bit_xor(coord(1), mul(mod(coord(0), 2), 8))
            yield from _turned(stmt, name, view, (coord(0), columns), "columns xored by the row")
            yield from _turned(stmt, name, view, (bit_xor(coord(0), 1), coord(1)), "rows in pairs exchanged")


def _collapsed(_: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        if len(view.shape) == 2:
            yield from _turned(stmt, name, view, (mul(floordiv(coord(0), 2), 2), coord(1)), "every second row twice")


def _spoken_of(kernel: Kernel, view: View) -> list[Symbol]:
    sizes = set(kernel.sizes)
    return sorted((s for s in symbols(*view.at) if s not in sizes), key=lambda s: s.name)


def _with(stmt: Any, name: str, view: View, symbol: Symbol, index: Index, what: str) -> Iterator[Change]:  # noqa: ANN401 reason: as above
    at = tuple(substitute(expression, {symbol: index}) for expression in view.at)
    yield from other(stmt, f"{name} with {symbol.name} {what}", **{name: evolve(view, at=at)})


def _frozen(kernel: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        for symbol in _spoken_of(kernel, view):
            yield from _with(stmt, name, view, symbol, const(0), "= 0")


def _stepped(kernel: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        for symbol in _spoken_of(kernel, view):
            for by in (1, -1):
                yield from _with(stmt, name, view, symbol, add(sym(symbol), by), f"+ {by}")


def _scaled(kernel: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        for symbol in _spoken_of(kernel, view):
            yield from _with(stmt, name, view, symbol, floordiv(sym(symbol), 2), "halved")
            yield from _with(stmt, name, view, symbol, mul(sym(symbol), 2), "doubled")


def _exchanged_symbols(kernel: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    for name, view in _views(stmt):
        found = _spoken_of(kernel, view)
        others = [s for s in (*kernel.blocks, *counted(kernel, stmt)) if s not in found]
        for symbol in found:
            for one in (*found, *others[:1]):
                if one is not symbol:
                    yield from _with(stmt, name, view, symbol, sym(one), f"= {one.name}")


def _other_buffer(kernel: Kernel, stmt: Copy | Mma) -> Iterator[Change]:
    held = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)]
    for name, view in (*_views(stmt), *_register_views(stmt)):
        for buffer in (*kernel.parameters, *held):
            same = buffer.space == view.buffer.space and buffer.dtype == view.buffer.dtype
            fits = len(buffer.shape) == len(view.buffer.shape)
            if buffer.space == "register":
                fits = buffer.layout == view.buffer.layout
            if same and fits and buffer is not view.buffer:
                yield from other(stmt, f"{name} is `{buffer.name}`", **{name: evolve(view, buffer=buffer)})


def _unmasked(_: Kernel, stmt: Copy | Mma | Map) -> Iterator[Change]:
    for name, view in (*_views(stmt), *_register_views(stmt)):
        if view.where is not TRUE:
            yield from other(stmt, f"{name} without its mask", **{name: evolve(view, where=TRUE)})


_PLACED = (Copy, Mma)

OPERATORS: tuple[Operator, ...] = (
    Operator("shift_by_one", "an index of a view is off by one", each(_PLACED, _by_one)),
    Operator("shift_by_a_vector", "the last index of a view is off by 8", each(_PLACED, _by_a_vector)),
    Operator("shift_by_a_tile", "an index of a view is off by a tile", each(_PLACED, _by_a_tile)),
    Operator("next_slot", "an index of a shared tile is the next, with wrap-around", each(_PLACED, _wrapped)),
    Operator("slot_by_other_rule", "a stage is always the first, or in descending order", each(_PLACED, _first_slot)),
    Operator("swap_axes", "a tile's elements are taken in the other order of axes", each(_PLACED, _swapped_axes)),
    Operator("reverse_axis", "a tile's rows or columns are taken in reverse", each(_PLACED, _reversed)),
    Operator("rotate_axis", "a tile's rows or columns are rotated", each(_PLACED, _rotated)),
    Operator("permute_elements", "a tile's elements are permuted by xor", each(_PLACED, _permuted)),
    Operator("collapse_rows", "two rows of a tile are one", each(_PLACED, _collapsed)),
    Operator("freeze_symbol", "a view uses 0 for a block, an iteration or an agent", each(_PLACED, _frozen)),
    Operator("step_symbol", "a view uses the next or the previous block, iteration or agent", each(_PLACED, _stepped)),
    Operator("scale_symbol", "a view uses half or twice a block, an iteration or an agent", each(_PLACED, _scaled)),
    Operator("exchange_symbols", "a view uses one symbol for another", each(_PLACED, _exchanged_symbols)),
    Operator("another_buffer", "a view is of another buffer of its kind", each((*_PLACED, Fold), _other_buffer)),
    Operator("drop_mask", "a view's mask is left out", each((*_PLACED, Map, Fold), _unmasked)),
)
