"""Queries on the IR that matchers use: loops around `Mma`s, operand buffers, copies by memory space, bank conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Bin, BinOp, Const, Coord, Held, Index, Read, Symbol
from argus.core.ir import (
    Buffer,
    Copy,
    For,
    If,
    Kernel,
    Let,
    Mma,
    Policy,
    Role,
    Staged,
    Stmt,
    Sync,
    Tag,
    View,
    bodies,
    walk,
)
from argus.core.memory.banks import worst_conflict
from argus.core.memory.lane_accesses import by_wave
from argus.core.proof.limits.memory import axis_modes, offsets_along
from argus.core.walk import IntArray, evaluate, mentions, symbols, topological


@frozen(eq=False)
class Group:
    """A body and the threads that run it: a role, or the whole block without roles. agents: copies of the role."""

    body: tuple[Stmt, ...]
    agents: int
    role: Role | None

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        return tuple(walk(self.body))


def groups(kernel: Kernel) -> tuple[Group, ...]:
    """One group per role; the block itself for a kernel without roles."""
    if kernel.roles is None:
        return (Group(kernel.body, 1, None),)
    return tuple(Group(role.body, role.agents, role) for role in kernel.roles.roles)


def mma_groups(kernel: Kernel) -> tuple[Group, ...]:
    """Groups whose body has an `Mma`."""
    return tuple(group for group in groups(kernel) if any(isinstance(stmt, Mma) for stmt in group.stmts))


def mma_statements(kernel: Kernel) -> tuple[Mma, ...]:
    """All `Mma` statements."""
    return tuple(stmt for stmt in walk(kernel.body) if isinstance(stmt, Mma))


def mainloops(kernel: Kernel) -> tuple[For, ...]:
    """Innermost loops that contain an `Mma`: the mainloops."""
    found = (stmt for stmt in walk(kernel.body) if isinstance(stmt, For))
    return tuple(
        loop for loop in found if any(isinstance(s, Mma) for s in walk(loop.body)) and not _has_inner_mainloop(loop)
    )


def _has_inner_mainloop(loop: For) -> bool:
    return any(isinstance(s, For) and any(isinstance(p, Mma) for p in walk(s.body)) for s in walk(loop.body))


def iteration_symbols(loop: For) -> frozenset[Symbol]:
    """Symbols that change between iterations: the loop variable, and counters read in the body."""
    return frozenset({loop.symbol, *(stmt.symbol for stmt in walk(loop.body) if isinstance(stmt, Let))})


def copies(kernel: Kernel, source: str, target: str) -> tuple[Copy, ...]:
    """Copies from memory space `source` to memory space `target`, anywhere in the kernel."""
    found = (stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy))
    return tuple(each for each in found if (each.source.buffer.space, each.target.buffer.space) == (source, target))


def operand_loads(kernel: Kernel) -> tuple[Copy, ...]:
    """Copies of `Mma` operands from global memory."""
    wanted = operand_buffers(kernel)
    found = (*copies(kernel, "global", "shared"), *copies(kernel, "global", "register"))
    return tuple(each for each in found if each.target.buffer in wanted)


def operand_buffers(kernel: Kernel) -> frozenset[Buffer]:
    """Buffers that hold `Mma` operands on their way from global memory: closed under copies."""
    known = {view.buffer for each in mma_statements(kernel) for view in (each.a, each.b)}
    moves = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.source.buffer.space != "global"]
    for _ in moves:
        more = {each.source.buffer for each in moves if each.target.buffer in known} - known
        if not more:
            break
        known |= more
    return frozenset(known)


def shared_operand_views(kernel: Kernel) -> Iterator[tuple[For, View]]:
    """(mainloop, view) for each read of shared memory in a mainloop: by an `Mma` or a copy."""
    for loop in mainloops(kernel):
        for stmt in walk(loop.body):
            read = (stmt.source,) if isinstance(stmt, Copy) else (stmt.a, stmt.b) if isinstance(stmt, Mma) else ()
            yield from ((loop, view) for view in read if view.buffer.space == "shared")


def output_stores(kernel: Kernel) -> tuple[Copy, ...]:
    """Copies to global memory."""
    return (*copies(kernel, "register", "global"), *copies(kernel, "shared", "global"))


def coordinate_operators(view: View) -> frozenset[BinOp]:
    """Binary operators in the coordinates of a view."""
    return frozenset(node.op for node in topological(view.at) if isinstance(node, Bin))


def reduction_axes(kernel: Kernel) -> dict[Buffer, int]:
    """The reduction axis (K) of each operand in global memory: the one whose tag name both operands have."""
    tags = [stmt for stmt in walk(kernel.prologue) if isinstance(stmt, Tag) and stmt.view.where is TRUE]
    named = {stmt.view.buffer: dict(stmt.names) for stmt in tags}
    operands = [each.source.buffer for each in operand_loads(kernel)]
    known = [set(named[buffer]) for buffer in operands if buffer in named]
    common = set[str].intersection(*known) if known else set[str]()
    found: dict[Buffer, int] = {}
    for buffer in operands:
        for name, value in named.get(buffer, {}).items():
            if name in common and isinstance(value, Coord):
                found[buffer] = value.axis
    return found


def is_split_k(kernel: Kernel) -> bool:
    """Whether a block's first K index depends on the block index (split-K)."""
    axes = reduction_axes(kernel)
    return any(
        symbols(load.source.at[axes[load.source.buffer]]) & set(kernel.blocks)
        for load in operand_loads(kernel)
        if load.source.buffer in axes
    )


def constant_extent(index: Index) -> int | None:
    """The value of a constant index; None for any other."""
    return index.value if isinstance(index, Const) else None


def bank_conflicts(kernel: Kernel) -> Iterator[tuple[Copy, int]]:
    """Copies between registers and shared memory with their conflict degree: most distinct words of one bank per phase.

    Symbols are evaluated at their least value, as an offset common to all threads does not change the degree. Copies
    whose atom has no phases, or whose addresses depend on data, are left out.
    """
    for stmt in (*copies(kernel, "register", "shared"), *copies(kernel, "shared", "register")):
        view = stmt.target if stmt.target.buffer.space == "shared" else stmt.source
        size = view.buffer.dtype.bits // 8
        count = stmt.atom.vector_bits // view.buffer.dtype.bits
        found = _offsets(stmt, view) if stmt.atom.phases and count else None
        if found is None or len(found) % kernel.target.unit or np.any(found[:, ::count] % count):
            continue
        vectors = by_wave(found[:, ::count] * size, kernel.target.unit)
        yield stmt, worst_conflict(vectors, stmt.atom.phases, count * size, kernel.target.banks).degree


def _offsets(stmt: Copy, view: View) -> IntArray | None:
    """Element offsets from the start of a shared buffer, shape (threads, values); None where they depend on data."""
    layout = view.buffer.layout
    assert isinstance(layout, Staged)
    coords = stmt.by.coordinates()
    numbers = {symbol: max(0, symbol.low or 0) for symbol in symbols(*view.at)}
    total = np.zeros(coords[0].shape, np.int64)
    for at, mode in zip(view.at, axis_modes(layout.layout), strict=True):
        if mentions(at, (Read, Held)):
            return None
        along = offsets_along(mode, np.broadcast_to(np.asarray(evaluate(at, numbers, coords), np.int64), total.shape))
        if along is None:
            return None
        total = total + along
    return total if layout.swizzle is None else layout.swizzle.images(total)


def has_policy_before_mma(kernel: Kernel, name: str) -> bool:
    """Whether a policy statement of that name directly precedes some `Mma`."""
    for body in statement_lists(kernel):
        for before, stmt in pairwise(body):
            if isinstance(stmt, Mma) and isinstance(before, Policy) and before.name == name:
                return True
    return False


def statement_lists(kernel: Kernel) -> Iterator[tuple[Stmt, ...]]:
    """Every statement list of the kernel, nested ones included."""
    yield kernel.body
    for stmt in walk(kernel.body):
        yield from bodies(stmt)


def has_partial_barrier(kernel: Kernel) -> bool:
    """Whether a barrier is under a condition on the thread index, so that some waves execute it and others do not."""
    return any(
        isinstance(stmt, If) and kernel.thread in symbols(stmt.cond) and any(map(_is_barrier, walk(stmt.then)))
        for stmt in walk(kernel.body)
    )


def _is_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Sync)
