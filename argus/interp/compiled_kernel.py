"""A kernel prepared for many runs: index tables and memoised scalar expressions that do not depend on the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np
from attrs import define, field, frozen

from argus.core import tiling
from argus.core.atom import Atom
from argus.core.check import formula_claims, indirect_tags, masks_by_range, read_arrays
from argus.core.index import Cond, Const, Index, Node, Symbol
from argus.core.ir import (
    Assert,
    Buffer,
    Copy,
    Covers,
    Equals,
    For,
    Kernel,
    Mma,
    Order,
    Products,
    Relation,
    Stmt,
    View,
    WrittenOnce,
    static,
    walk,
)
from argus.core.ir.view_ends import box_end
from argus.core.layout import TV, Layout
from argus.core.walk import evaluate, symbols
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.memory.views import (
    Access,
    Env,
    Locator,
    Place,
    fragment_place,
    lane_place,
    register_place,
    shared_cells,
)
from argus.interp.search.runs import Runs
from argus.interp.violation import not_built

_SCALARS = 4096
_COMBINED = ("add", "max", "min")


@frozen(eq=False)
class Side:
    """One side of a copy: fixed cells in registers, or a locator of cells in memory."""

    buffer: Buffer
    fixed: Place | None
    locator: Locator | None

    def locate(self, env: Env) -> Place:
        """The cells of this side for the given symbol values."""
        if self.fixed is not None:
            return self.fixed
        assert self.locator is not None
        return self.locator.locate(env)


@frozen(eq=False)
class CopyPlan:
    """Both sides of a copy."""

    source: Side
    target: Side


@frozen(eq=False)
class MmaPlan:
    """Register cells of the operands: (wave, row, k) for a and b, (wave, m, n) for c, over all repeats."""

    a: IntArray
    b: IntArray
    c: IntArray


def registers_of(buffer: Buffer) -> tuple[int, int]:
    """The number of threads of a fragment, and of registers per thread."""
    layout = buffer.layout
    assert isinstance(layout, TV), buffer.name
    return layout.threads.size(), layout.values.size()


class Scalars:
    """Evaluates expressions that are uniform within a wave, once for each combination of symbol values."""

    def __init__(self, thread: Symbol, threads: int, unit: int, integers: Mapping[str, IntArray]) -> None:
        self.threads, self.unit, self.integers = threads, unit, integers
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
        values = np.asarray(evaluate(node, {**local, **env}, (), self.integers))
        if values.size > 1 and bool((values != values.flat[0]).any()):
            raise not_built("value that differs between the threads of a wave", stmt)
        return int(values.flat[0])


@define(eq=False)
class Prepared:
    """A kernel with everything precomputed that does not depend on sizes. It holds caches: use it in one thread.

    read: integer tensors whose elements its expressions read; integers: their contents, set for each run.
    indirect_names: names of tags selected by such integers (indirect indexing). stored_names: names that every output
    is claimed to hold and that no claimed sum reduces over.
    write_claims: claims that a tensor is written once. product_claims: claims about the products of each tensor.
    formula_claims: claims that an output equals a formula. runs: cached violations of runs.
    """

    kernel: Kernel
    runs: Runs = field(factory=Runs)
    unit: int = field(init=False)
    read: frozenset[str] = field(init=False)
    integers: dict[str, IntArray] = field(factory=dict[str, IntArray], init=False)
    scalars: Scalars = field(init=False)
    indirect_names: frozenset[str] = field(init=False)
    covers: bool = field(init=False)
    masked: bool = field(init=False)
    stored_names: frozenset[str] = field(init=False)
    write_claims: tuple[WrittenOnce, ...] = field(init=False)
    product_claims: dict[Buffer, tuple[tuple[Assert, Products], ...]] = field(init=False)
    formula_claims: tuple[tuple[Assert, Equals], ...] = field(init=False)
    _lanes: dict[Symbol, IntArray] = field(init=False)
    _copies: dict[Stmt, CopyPlan] = field(factory=dict[Stmt, CopyPlan], init=False)
    _mmas: dict[Stmt, MmaPlan] = field(factory=dict[Stmt, MmaPlan], init=False)
    _matrices: dict[tuple[Stmt, View], Locator] = field(factory=dict[tuple[Stmt, View], Locator], init=False)
    _fragments: dict[tuple[int, object, str, int], tuple[Atom, IntArray]] = field(
        factory=dict[tuple[int, object, str, int], tuple[Atom, IntArray]], init=False
    )
    _shared: dict[Buffer, IntArray] = field(factory=dict[Buffer, IntArray], init=False)
    _loops: dict[Stmt, For] = field(factory=dict[Stmt, For], init=False)
    _gets: dict[tuple[Stmt, View, tuple[Index, ...]], IntArray] = field(
        factory=dict[tuple[Stmt, View, tuple[Index, ...]], IntArray], init=False
    )

    def __attrs_post_init__(self) -> None:
        kernel = self.kernel
        self.runs.bind(kernel)
        self.read = read_arrays(kernel)
        self.indirect_names = indirect_tags(kernel) if self.read else frozenset()
        self.unit = kernel.target.unit
        self.scalars = Scalars(kernel.thread, kernel.threads, self.unit, self.integers)
        claims = [stmt.claim for stmt in walk(kernel.body) if isinstance(stmt, Assert)]
        self.covers = any(isinstance(claim, Covers | Relation | Products | Order) for claim in claims)
        self.masked = masks_by_range(kernel)
        self.write_claims = tuple(claim for claim in claims if isinstance(claim, WrittenOnce))
        stored = [frozenset(name for name, _ in claim.record) for claim in self.write_claims]
        summed = {claim.of.name for claim in claims if isinstance(claim, Covers)}
        self.stored_names = frozenset[str]() if not stored else stored[0].intersection(*stored[1:]) - summed
        self.product_claims = {}
        self.formula_claims = tuple(formula_claims(kernel))
        for stmt in walk(kernel.body):
            if isinstance(stmt, Assert) and isinstance(stmt.claim, Products):
                buffer = stmt.claim.view.buffer
                self.product_claims[buffer] = (*self.product_claims.get(buffer, ()), (stmt, stmt.claim))
        threads = np.arange(kernel.threads, dtype=np.int64)[:, None]
        self._lanes = {kernel.thread: threads}
        used = {s for stmt in walk(kernel.body) if isinstance(stmt, Copy) for s in _view_symbols(stmt)}
        self._lanes |= {s: threads if s.kind == "thread" else threads // self.unit for s in used}

    def set_integers(self, integers: Mapping[str, IntArray]) -> None:
        """Set the integer tensors that expressions read, and drop everything cached for their old contents."""
        if self.read:
            self.integers.clear()
            self.integers.update(integers)
            self.scalars = Scalars(self.kernel.thread, self.kernel.threads, self.unit, self.integers)
            self._copies.clear()
            self._matrices.clear()

    @cached_property
    def stores_to_peers(self) -> bool:
        """Whether blocks store registers into another block's shared memory (DSMEM)."""
        return any(isinstance(stmt, Copy) and stmt.target.peer is not None for stmt in walk(self.kernel.body))

    @property
    def waves(self) -> int:
        """The number of waves of a block."""
        return -(-self.kernel.threads // self.unit)

    def copy(self, stmt: Copy) -> CopyPlan:
        """The cells of a copy. Raises ArgusError (E501) for a copy that the interpreter does not support."""
        plan = self._copies.get(stmt)
        if plan is None:
            known = stmt.combine in _COMBINED and stmt.target.buffer.space == "global"
            if stmt.combine is not None and not known:
                raise not_built(f"copy that combines by {stmt.combine}", stmt)
            plan = CopyPlan(self._side(stmt, stmt.source, "source"), self._side(stmt, stmt.target, "target"))
            self._copies[stmt] = plan
        return plan

    def _side(self, stmt: Copy, view: View, role: str) -> Side:
        if view.buffer.space == "register":
            between = role == "source" and stmt.target.buffer.space == "register"
            place = lane_place(view, stmt.by, stmt, self.unit) if between else register_place(view, stmt.by, stmt)
            return Side(view.buffer, place, None)
        if view.buffer.space not in ("global", "shared"):
            raise not_built(f"copy of {view.buffer.space} memory", stmt)
        operand = stmt.atom.operands[role]
        vector = max(1, (operand.vector_bits or stmt.atom.vector_bits) // view.buffer.dtype.bits)
        access = Access(vector, operand.align, stmt.edge is not None, _sharers(stmt.atom))
        if stmt.atom.box is not None:
            memory = view.buffer.space == "global"
            end = box_end(view) if memory and role == "source" else None
            access = Access(edge=access.edge, begins=stmt.atom.box.multiple if memory else 1, end=end)
        return Side(view.buffer, None, Locator(view, stmt.by, access, stmt, self._lanes, self.integers))

    def matrix(self, stmt: Mma, view: View) -> Locator:
        """The cells of a matrix operand in shared memory: one row of all elements, first axis fastest."""
        key = (stmt, view)
        found = self._matrices.get(key)
        if found is None:
            shape = tuple(static(extent) for extent in view.shape)
            by = TV(Layout(1, 0), Layout(prod(shape), 1), shape)
            found = self._matrices[key] = Locator(view, by, Access(1, 1, edge=False), stmt, {}, self.integers)
        return found

    def registers(self, stmt: Mma, role: str, view: View) -> IntArray:
        """Cells of a matrix operand in registers: (wave, row, k) for a and b, (wave, m, n) for c."""
        size = registers_of(view.buffer)[1]
        key = (id(stmt.atom), stmt.tiling, role, size)
        known = self._fragments.get(key)
        if known is None:
            known = self._fragments[key] = (stmt.atom, _operand_cells(stmt, role, size))
        return known[1]

    def mma(self, stmt: Mma) -> MmaPlan:
        """The register cells of all operands of a matrix instruction."""
        plan = self._mmas.get(stmt)
        if plan is None:
            roles = (("a", stmt.a), ("b", stmt.b), ("c", stmt.target))
            plan = self._mmas[stmt] = MmaPlan(*(self.registers(stmt, role, view) for role, view in roles))
        return plan

    def shared_cells(self, buffer: Buffer) -> IntArray:
        """The cell of each element of a shared buffer, first axis fastest."""
        found = self._shared.get(buffer)
        if found is None:
            found = self._shared[buffer] = shared_cells(buffer)
        return found

    def loop_around(self, stmt: Stmt) -> For | None:
        """The innermost loop that contains a statement; None outside loops."""
        if stmt not in self._loops:
            for outer in walk(self.kernel.body):
                if isinstance(outer, For) and any(inner is stmt for inner in walk(outer.body)):
                    self._loops[stmt] = outer
        return self._loops.get(stmt)

    def held(self, view: View, by: TV, at: tuple[Index, ...], stmt: Stmt) -> IntArray:
        """The register cells, (thread, value), of the elements `at` of a fragment's view, for each coordinate of `by`.

        `by` must be the same in every execution of the statement, since the result is cached.
        """
        key = (stmt, view, at)
        found = self._gets.get(key)
        if found is None:
            coords = [
                np.broadcast_to(np.asarray(evaluate(node, {}, by.coordinates())), by.elements().shape) for node in at
            ]
            place = fragment_place(view, coords, stmt)
            found = self._gets[key] = np.broadcast_to(place.address, by.elements().shape)
        return found


def _operand_cells(stmt: Mma, role: str, registers: int) -> IntArray:
    """The register cells of an operand over all repeats of the instruction: (wave, rows, columns)."""
    holders = tiling.operands(stmt.atom, stmt.tiling, role)
    flat = (holders.thread * registers + holders.value).transpose(0, 1, 3, 2, 4)
    waves, repeats, rows, others, columns = flat.shape
    return np.ascontiguousarray(flat.reshape(waves, repeats * rows, others * columns))


def _sharers(atom: Atom) -> int:
    """The number of threads that access memory collectively (ldmatrix, stmatrix); 1 if each thread does on its own."""
    return atom.unit if all(operand.tv is not None for operand in atom.operands.values()) else 1


def _view_symbols(stmt: Copy) -> set[Symbol]:
    nodes = [node for view in (stmt.source, stmt.target) for node in (*view.at, view.where)]
    return {symbol for symbol in symbols(*nodes) if symbol.kind in ("thread", "wave")}


def lane_values(node: Node, rows: slice, unit: int) -> dict[Symbol, IntArray]:
    """The values, one row per thread, of the symbols in `node` that differ between threads."""
    threads = np.arange(rows.start, rows.stop, dtype=np.int64)[:, None]
    varying = [symbol for symbol in symbols(node) if symbol.kind in ("thread", "wave")]
    return {symbol: threads if symbol.kind == "thread" else threads // unit for symbol in varying}


def first_where(flags: BoolArray) -> tuple[int, ...]:
    """The indices of the first true entry in row-major order."""
    return tuple(int(x) for x in np.unravel_index(int(flags.argmax()), flags.shape))


def grid(extents: Sequence[int]) -> tuple[IntArray, ...]:
    """The coordinates of every element of a tile, one flat array per axis, last axis fastest."""
    if prod(extents) == 0:
        return tuple(np.zeros(0, np.int64) for _ in extents)
    return tuple(axis.reshape(-1) for axis in np.indices(tuple(extents), dtype=np.int64))
