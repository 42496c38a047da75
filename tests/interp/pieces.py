"""Helpers that build Hopper kernels statement by statement."""

from __future__ import annotations

from argus.core.algebra import const, sym
from argus.core.dtype import DType, i32
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Let, Peek, Staged, Strided, View
from argus.core.layout import TV, Layout, row_major


def tensor(name: str, dtype: DType, *shape: Symbol) -> Buffer:
    return Buffer(name, "global", dtype, tuple(sym(s) for s in shape), Strided((sym(shape[1]), const(1))))


def shared(name: str, dtype: DType, *shape: int) -> Buffer:
    return Buffer(name, "shared", dtype, tuple(const(n) for n in shape), Staged(row_major(shape)), align=1024)


def barrier(name: str, count: int) -> Buffer:
    return Buffer(name, "barrier", i32, (const(count),), Staged(row_major((count,))))


def counter(name: str) -> Buffer:
    return Buffer(name, "counter", i32, (), Staged(Layout(1, 0)))


def fragment(name: str, dtype: DType, held: TV, owner: str) -> Buffer:
    return Buffer(name, "register", dtype, tuple(const(n) for n in held.tile), held, owner=owner)


def view(buffer: Buffer, shape: tuple[int, ...], *at: Index) -> View:
    return View(buffer, tuple(const(n) for n in shape), at)


def event(buffer: Buffer, index: Index) -> View:
    return View(buffer, (), (index,))


def one_thread(*tile: int) -> TV:
    size = tile[0] * tile[1]
    return TV(Layout(1, 0), Layout(size, 1), tile)


def use(cursor: Buffer, name: str) -> tuple[Let, Index]:
    """The cursor's value, under a fresh name."""
    fresh = Symbol(name, "fresh", 0)
    return Let(fresh, Peek(View(cursor, (), ()))), sym(fresh)
