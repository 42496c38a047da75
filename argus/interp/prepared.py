"""What one kernel's runs share, whatever the sizes: index tables and memoised scalar expressions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np
from attrs import define, field, frozen

from argus.core import tiling
from argus.core.atom import Atom
from argus.core.index import Cond, Const, Index, Node, Symbol
from argus.core.ir import Assert, Buffer, Copy, Covers, Kernel, Mma, Stmt, View, WrittenOnce, walk
from argus.core.layout import TV
from argus.core.walk import evaluate, symbols
from argus.interp.memory import BoolArray, IntArray
from argus.interp.places import Access, Env, Locator, Place, held_at, register_place, shared_cells
from argus.interp.violation import not_built

_SCALARS = 4096


@frozen(eq=False)
class Side:
    """One side of a copy: a fixed place in registers, or a locator of places in memory."""

    buffer: Buffer
    fixed: Place | None
    locator: Locator | None

    def locate(self, env: Env) -> Place:
        if self.fixed is not None:
            return self.fixed
        assert self.locator is not None
        return self.locator.locate(env)


@frozen(eq=False)
class CopyPlan:
    source: Side
    target: Side


@frozen(eq=False)
class MmaPlan:
    """Cells of the operands: (wave, row, k) for a and b, (wave, m, n) for c, repeats folded in."""

    a: IntArray
    b: IntArray
    c: IntArray


def registers_of(buffer: Buffer) -> tuple[int, int]:
    """Threads and registers a thread of a fragment."""
    layout = buffer.layout
    assert isinstance(layout, TV), buffer.name
    return layout.threads.size(), layout.values.size()


class Scalars:
    """Uniform expressions: one evaluation for each value of their symbols."""

    def __init__(self, thread: Symbol, threads: int, unit: int) -> None:
        self.threads, self.unit = threads, unit
        self.thread = thread
        self._needed: dict[Node, tuple[tuple[Symbol, ...], bool]] = {}
        self._memo: dict[tuple[Node, tuple[int, ...]], int] = {}

    def number(self, node: Index | Cond, env: Env, wave: int, stmt: Stmt) -> int:
        """The value for one wave. Raises ArgusError if the threads of the wave disagree."""
        if isinstance(node, Const):
            return node.value
        found = self._needed.get(node)
        if found is None:
            inside = symbols(node)
            local = any(s.kind in ("thread", "wave") for s in inside)
            found = tuple(s for s in inside if s.kind not in ("thread", "wave")), local
            self._needed[node] = found
        needed, local = found
        key = (node, (*(env[symbol] for symbol in needed), wave if local else -1))
        value = self._memo.get(key)
        if value is None:
            if len(self._memo) >= _SCALARS:
                self._memo.clear()
            value = self._memo[key] = self._evaluate(node, env, wave, stmt)
        return value

    def _evaluate(self, node: Index | Cond, env: Env, wave: int, stmt: Stmt) -> int:
        first = wave * self.unit
        lanes = np.arange(first, min(first + self.unit, self.threads), dtype=np.int64)
        local = {s: lanes if s.kind == "thread" else lanes // self.unit for s in symbols(node)}
        values = np.asarray(evaluate(node, {**local, **env}))
        if values.size > 1 and bool((values != values.flat[0]).any()):
            raise not_built("value that differs between the threads of a wave", stmt)
        return int(values.flat[0])


@define(eq=False)
class Prepared:
    """A kernel with everything precomputed that does not depend on sizes. It holds caches: use it in one thread."""

    kernel: Kernel
    unit: int = field(init=False)
    scalars: Scalars = field(init=False)
    covers: bool = field(init=False)
    counted: tuple[WrittenOnce, ...] = field(init=False)
    _lanes: dict[Symbol, IntArray] = field(init=False)
    _copies: dict[Stmt, CopyPlan] = field(factory=dict[Stmt, CopyPlan], init=False)
    _mmas: dict[tuple[int, object, int, int, int], tuple[Atom, MmaPlan]] = field(
        factory=dict[tuple[int, object, int, int, int], tuple[Atom, MmaPlan]], init=False
    )
    _shared: dict[Buffer, IntArray] = field(factory=dict[Buffer, IntArray], init=False)
    _held: dict[tuple[Buffer, TV], IntArray] = field(factory=dict[tuple[Buffer, TV], IntArray], init=False)

    def __attrs_post_init__(self) -> None:
        kernel = self.kernel
        self.unit = kernel.target.unit
        self.scalars = Scalars(kernel.thread, kernel.threads, self.unit)
        claims = [stmt.claim for stmt in walk(kernel.body) if isinstance(stmt, Assert)]
        self.covers = any(isinstance(claim, Covers) for claim in claims)
        self.counted = tuple(claim for claim in claims if isinstance(claim, WrittenOnce))
        threads = np.arange(kernel.threads, dtype=np.int64)[:, None]
        self._lanes = {kernel.thread: threads}
        used = {s for stmt in walk(kernel.body) if isinstance(stmt, Copy) for s in _view_symbols(stmt)}
        self._lanes |= {s: threads if s.kind == "thread" else threads // self.unit for s in used}

    @property
    def waves(self) -> int:
        return -(-self.kernel.threads // self.unit)

    def copy(self, stmt: Copy) -> CopyPlan:
        """Where a copy's elements are. Raises ArgusError for what the interpreter cannot run."""
        plan = self._copies.get(stmt)
        if plan is None:
            for name in ("signal", "peers", "combine"):
                if getattr(stmt, name) is not None:
                    raise not_built(f"copy with {name}", stmt)
            plan = CopyPlan(self._side(stmt, stmt.source, "source"), self._side(stmt, stmt.target, "target"))
            self._copies[stmt] = plan
        return plan

    def _side(self, stmt: Copy, view: View, role: str) -> Side:
        if view.buffer.space == "register":
            return Side(view.buffer, register_place(view, stmt.by, stmt), None)
        if view.buffer.space not in ("global", "shared"):
            raise not_built(f"copy of {view.buffer.space} memory", stmt)
        operand = stmt.atom.operands[role]
        vector = max(1, (operand.vector_bits or stmt.atom.vector_bits) // view.buffer.dtype.bits)
        access = Access(vector, operand.align, stmt.edge is not None)
        return Side(view.buffer, None, Locator(view, stmt.by, access, stmt, self._lanes))

    def mma(self, stmt: Mma) -> MmaPlan:
        sizes = [registers_of(view.buffer)[1] for view in (stmt.a, stmt.b, stmt.target)]
        key = (id(stmt.atom), stmt.tiling, sizes[0], sizes[1], sizes[2])
        known = self._mmas.get(key)
        if known is None:
            cells: list[IntArray] = []
            for role, registers in zip("abc", sizes, strict=True):
                held = tiling.operands(stmt.atom, stmt.tiling, role)
                flat = (held.thread * registers + held.value).transpose(0, 1, 3, 2, 4)
                waves, repeats, rows, others, columns = flat.shape
                cells.append(np.ascontiguousarray(flat.reshape(waves, repeats * rows, others * columns)))
            known = self._mmas[key] = (stmt.atom, MmaPlan(*cells))
        return known[1]

    def shared_cells(self, buffer: Buffer) -> IntArray:
        found = self._shared.get(buffer)
        if found is None:
            found = self._shared[buffer] = shared_cells(buffer)
        return found

    def held(self, buffer: Buffer, by: TV, stmt: Stmt) -> IntArray:
        """Register cells of `buffer` that hold, in each thread, the elements of `by`."""
        key = (buffer, by)
        found = self._held.get(key)
        if found is None:
            layout = buffer.layout
            if not isinstance(layout, TV) or layout.tile != by.tile:
                raise not_built("operand of another shape", stmt)
            register = held_at(layout, by.elements(), stmt)
            thread = np.arange(by.threads.size(), dtype=np.int64)[:, None]
            found = self._held[key] = cast(IntArray, thread * layout.values.size() + register)
        return found


def _view_symbols(stmt: Copy) -> set[Symbol]:
    nodes = [node for view in (stmt.source, stmt.target) for node in (*view.at, view.where)]
    return {symbol for symbol in symbols(*nodes) if symbol.kind in ("thread", "wave")}


def lane_values(node: Node, rows: slice, unit: int) -> dict[Symbol, IntArray]:
    """Values, one a row of threads, of the symbols below `node` that differ between threads."""
    threads = np.arange(rows.start, rows.stop, dtype=np.int64)[:, None]
    moving = [symbol for symbol in symbols(node) if symbol.kind in ("thread", "wave")]
    return {symbol: threads if symbol.kind == "thread" else threads // unit for symbol in moving}


def first_where(flags: BoolArray) -> tuple[int, ...]:
    """The first true entry in row-major order."""
    return tuple(int(x) for x in np.unravel_index(int(flags.argmax()), flags.shape))


def grid(extents: Sequence[int]) -> tuple[IntArray, ...]:
    """Coordinates of every element of a tile, flat, last axis fastest."""
    if prod(extents) == 0:
        return tuple(np.zeros(0, np.int64) for _ in extents)
    return tuple(axis.reshape(-1) for axis in np.indices(tuple(extents), dtype=np.int64))
