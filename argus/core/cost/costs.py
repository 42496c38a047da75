"""The cost of one execution of a statement: cycles of each hardware unit, and bytes at each memory level."""

from __future__ import annotations

from math import ceil, prod
from typing import assert_never

import numpy as np
from attrs import evolve, frozen

from argus.core.atom import Atom
from argus.core.cost.addressing import (
    NotModelledError,
    addresses,
    bytes_inside,
    coordinates,
    elements,
    executions,
    line_bytes,
    moved_shape,
    offsets,
)
from argus.core.cost.groups import Group
from argus.core.cost.machine import Machine
from argus.core.ir import Cast, Copy, Fold, Map, Mma, Op, Stmt, View, Where, static
from argus.core.ir.element_walk import nodes
from argus.core.layout import TV
from argus.core.memory.banks import cycles
from argus.core.walk import IntArray

SPECIAL = frozenset({"exp", "exp2", "log", "log2", "rsqrt", "rcp", "div", "sqrt", "tanh"})
"""Functions of the special function unit."""
COMPUTED = frozenset({"erf", "expm1", "log1p", "tanh_accurate", "sin", "cos", "pow"})
"""Functions of several instructions: about as many as two of the special function unit and a polynomial."""
INSTRUCTIONS = 16


@frozen
class Cost:
    """The cost of one statement for one group of threads.

    products: matrix instructions. tensor: cycles of the SM's matrix units. shared, unconflicted: cycles of shared
    memory, with and without bank conflicts. lines: cycles that global memory instructions take to access cache lines.
    issue: cycles of the busiest scheduler. loaded, stored: bytes of global memory that this SM requests and writes.
    landed: bytes that arrive in its shared memory; more than `loaded` under multicast. filled: out-of-bounds bytes of
    TMA boxes. useful: bytes of global memory that the kernel uses. staged: bytes read from and written to shared
    memory. vector: bytes of one lane's access to global memory, 0 if there is none.
    """

    products: float = 0
    tensor: float = 0.0
    shared: float = 0.0
    unconflicted: float = 0.0
    lines: float = 0.0
    issue: float = 0.0
    loaded: float = 0.0
    stored: float = 0.0
    landed: float = 0.0
    filled: float = 0.0
    useful: float = 0.0
    staged: float = 0.0
    vector: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.products + other.products,
            self.tensor + other.tensor,
            self.shared + other.shared,
            self.unconflicted + other.unconflicted,
            self.lines + other.lines,
            self.issue + other.issue,
            self.loaded + other.loaded,
            self.stored + other.stored,
            self.landed + other.landed,
            self.filled + other.filled,
            self.useful + other.useful,
            self.staged + other.staged,
            min((each for each in (self.vector, other.vector) if each), default=0),
        )

    def times(self, count: float) -> Cost:
        return Cost(
            self.products * count,
            self.tensor * count,
            self.shared * count,
            self.unconflicted * count,
            self.lines * count,
            self.issue * count,
            self.loaded * count,
            self.stored * count,
            self.landed * count,
            self.filled * count,
            self.useful * count,
            self.staged * count,
            self.vector,
        )


NOTHING = Cost()


def cost_of(stmt: Stmt, group: Group, machine: Machine) -> Cost:
    """The cost of a statement; zero for synchronisation. Raises NotModelledError for data-dependent costs."""
    match stmt:
        case Mma():
            return _mma_cost(stmt, group, machine)
        case Copy():
            return _copy_cost(stmt, group, machine)
        case Map():
            return Cost(issue=_map_cycles(stmt, group, machine))
        case Fold():
            return Cost(issue=_fold_cycles(stmt, group, machine))
        case _:
            return NOTHING


def _mma_cost(stmt: Mma, group: Group, machine: Machine) -> Cost:
    atom, tiling = stmt.atom, stmt.tiling
    rows, columns, depth = tiling.repeat
    units = min(tiling.threads, max(1, group.threads // atom.unit))
    count = units * rows * columns * depth
    # A wave's instruction occupies one scheduler's matrix unit; a warpgroup's occupies all four.
    parallel = min(machine.schedulers, units) if atom.unit == machine.target.unit else 1
    read = count * _operand_bytes(atom)
    return Cost(
        products=count,
        tensor=count * atom.issue_cycles / parallel,
        shared=read / machine.bank_bytes,
        unconflicted=read / machine.bank_bytes,
        staged=read,
    )


def _operand_bytes(atom: Atom) -> float:
    """Bytes of shared memory that one execution reads."""
    found = 0.0
    for operand in (atom.operands["a"], atom.operands["b"]):
        if operand.space == "shared" and operand.dtype is not None:
            found += operand.tile[0] * operand.tile[1] * operand.dtype.bits / 8
    return found


def _copy_cost(stmt: Copy, group: Group, machine: Machine) -> Cost:
    total = NOTHING
    for view, reads in ((stmt.source, True), (stmt.target, False)):
        match view.buffer.space:
            case "shared":
                total += _shared_cost(stmt, view, group, machine)
            case "global":
                total += _global_cost(stmt, view, group, machine, reads=reads)
            case "register" | "barrier" | "counter" | "map":
                pass
            case _:
                assert_never(view.buffer.space)
    return evolve(total, issue=_issue_cycles(stmt, group, machine))


def _issue_cycles(stmt: Copy, group: Group, machine: Machine) -> float:
    """Cycles for which a scheduler issues the copy for its waves, address arithmetic included."""
    if stmt.atom.unit == 1:
        return 1.0
    size = stmt.source.buffer.dtype.bits
    values = stmt.by.values.size()
    fragment = stmt.atom.operands["target" if stmt.target.buffer.space == "register" else "source"].tv
    per_thread = values // fragment.values.size() if fragment is not None else values * size / stmt.atom.vector_bits
    outside = "global" in (stmt.source.buffer.space, stmt.target.buffer.space)
    each = 1 + (machine.fitted.address_instructions * machine.simple if outside else 0.0)
    return max(1.0, per_thread) * each * ceil(group.waves / machine.schedulers)


def _shared_cost(stmt: Copy, view: View, group: Group, machine: Machine) -> Cost:
    size = view.buffer.dtype.bits / 8
    if stmt.atom.box is not None:
        moved = elements(view) * size * _multicast_blocks(stmt)
        return Cost(shared=moved / machine.bank_bytes, unconflicted=moved / machine.bank_bytes, staged=moved)
    moved = prod(moved_shape(stmt, group)) * size
    ideal = moved / machine.bank_bytes
    if stmt.atom.direct:  # lanes write consecutive words, whichever addresses they read
        return Cost(shared=ideal, unconflicted=ideal, staged=moved)
    found = offsets(view, coordinates(stmt, group), group.numbers, moved_shape(stmt, group))
    reads = view is stmt.source
    memory = stmt.atom.operands["source" if reads else "target"]
    if memory.tv is not None:
        taken = _matrix_cycles(found, int(size), group, machine)
    else:
        vector = max(1, stmt.atom.vector_bits // view.buffer.dtype.bits)
        rows = executions(found, vector, machine.target.unit) * int(size)
        if not stmt.atom.phases:
            raise NotModelledError(f"`{stmt.atom}` has no phases in its table")
        taken = cycles(rows, stmt.atom.phases, vector * int(size), machine.target.banks)
    return Cost(shared=float(taken), unconflicted=min(ideal, float(taken)), staged=moved)


_ROW = 16
"""Bytes of a row of an 8x8 matrix, transposed or not."""


def _matrix_cycles(found: IntArray, size: int, group: Group, machine: Machine) -> int:
    """Cycles for `ldmatrix` and `stmatrix`: one phase per 8x8 matrix, over the eight rows that the lanes address."""
    unit = machine.target.unit
    waves = found.reshape(group.waves, unit, -1, _ROW // size // 4) * size // _ROW
    per_execution = waves.transpose(0, 2, 1, 3).reshape(group.waves * waves.shape[2], -1)
    rows = np.stack([np.unique(each)[:8] for each in per_execution]) * _ROW
    return cycles(rows[:, None, :], (tuple(range(8)),), _ROW, machine.target.banks)


def _global_cost(stmt: Copy, view: View, group: Group, machine: Machine, *, reads: bool) -> Cost:
    if stmt.atom.box is not None:
        return _box_cost(stmt, view, group, machine, reads=reads)
    found = addresses(stmt, view, group)
    size = view.buffer.dtype.bits // 8
    vector = max(1, stmt.atom.vector_bits // view.buffer.dtype.bits)
    rows = executions(found, vector, machine.target.unit).reshape(-1, machine.target.unit)
    segment = machine.target.segment_bytes
    moved = _distinct(rows, segment) * segment if not reads else len(np.unique(rows[rows >= 0] // segment)) * segment
    lines = _distinct(rows, machine.line)
    useful = float(len(np.unique(found[found >= 0])) * size)
    loaded, stored = (float(moved), 0.0) if reads else (0.0, float(moved))
    wide = len(rows) * machine.target.unit * vector * size / machine.line
    return Cost(
        lines=float(max(lines, wide if lines else 0)),
        loaded=loaded,
        stored=stored,
        landed=loaded,
        useful=useful,
        vector=vector * size,
    )


def _box_cost(stmt: Copy, view: View, group: Group, machine: Machine, *, reads: bool) -> Cost:
    """Cost of a TMA box: the first block's cache lines, scaled to the resident blocks' mean in-bounds bytes."""
    own = float(bytes_inside(view, group.numbers))
    wanted = float(bytes_inside(view, {**group.numbers, **group.resident}).mean()) if group.resident else own
    lines = line_bytes(view, group.numbers, machine.line, machine.fitted.shortest_row)
    requested = lines * wanted / own if own else wanted
    whole = elements(view) * view.buffer.dtype.bits / 8
    blocks = _multicast_blocks(stmt)
    return Cost(
        loaded=requested if reads else 0.0,
        stored=0.0 if reads else requested,
        landed=requested * blocks if reads else 0.0,
        filled=whole - wanted if reads else 0.0,
        useful=wanted,
        vector=stmt.atom.vector_bits // 8,
    )


def _distinct(rows: IntArray, grain: int) -> int:
    """Distinct segments per execution, summed. rows: addresses, shape (executions, lanes), -1 for none."""
    ordered = np.sort(np.where(rows >= 0, rows // grain, -1), axis=1)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return int((new & (ordered >= 0)).sum())


def _multicast_blocks(stmt: Copy) -> int:
    """Blocks of the cluster whose multicast copies land in this block's shared memory, its own included."""
    return 1 if stmt.peers is None else max(1, static(stmt.peers).bit_count())


def _values_per_thread(view: View) -> float:
    """Elements of a register tile, or of a view of it, per thread."""
    layout = view.buffer.layout
    assert isinstance(layout, TV)
    whole = 1.0
    for extent in view.buffer.shape:
        whole *= static(extent)
    own = layout.values.size() * elements(view) / whole if whole else 0.0
    return max(1.0, min(own, layout.values.size()))


def _map_cycles(stmt: Map, group: Group, machine: Machine) -> float:
    """Issue cycles of the busiest scheduler: one instruction per operation and value; a cast converts two values."""
    each = 0.0
    for node in nodes(stmt.elem):
        match node:
            case Op(name=name):
                simple = machine.simple * (INSTRUCTIONS if name in COMPUTED else 1)
                each += machine.special if name in SPECIAL else simple
            case Cast():
                each += machine.simple / 2
            case Where():
                each += machine.simple
            case _:
                continue
    waves = ceil(group.waves / machine.schedulers)
    return _values_per_thread(stmt.target) * max(each, machine.simple / 2) * waves


def _fold_cycles(stmt: Fold, group: Group, machine: Machine) -> float:
    """One instruction per value; a reduction within a warp adds a butterfly of log2(lanes) shuffles."""
    values = _values_per_thread(stmt.source)
    moves = 0.0
    if stmt.within == "warp":
        steps = (machine.target.unit - 1).bit_length()
        moves = steps * _values_per_thread(stmt.target) * 2 * machine.simple
    return (values * machine.simple + moves) * ceil(group.waves / machine.schedulers)
