"""What a kernel consists of, as matchers ask: loops around products, what these multiply, copies by where they go."""

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
    """Threads that run one body: a role, or the block if it has none. agents: that run it side by side."""

    body: tuple[Stmt, ...]
    agents: int
    role: Role | None

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        return tuple(walk(self.body))


def groups(kernel: Kernel) -> tuple[Group, ...]:
    """Roles; the block itself where there are none."""
    if kernel.roles is None:
        return (Group(kernel.body, 1, None),)
    return tuple(Group(role.body, role.agents, role) for role in kernel.roles.roles)


def multiplying(kernel: Kernel) -> tuple[Group, ...]:
    return tuple(group for group in groups(kernel) if any(isinstance(stmt, Mma) for stmt in group.stmts))


def products(kernel: Kernel) -> tuple[Mma, ...]:
    return tuple(stmt for stmt in walk(kernel.body) if isinstance(stmt, Mma))


def loops(kernel: Kernel) -> tuple[For, ...]:
    """Innermost loops around products."""
    found = (stmt for stmt in walk(kernel.body) if isinstance(stmt, For))
    return tuple(loop for loop in found if any(isinstance(s, Mma) for s in walk(loop.body)) and not _inner(loop))


def _inner(loop: For) -> bool:
    return any(isinstance(s, For) and any(isinstance(p, Mma) for p in walk(s.body)) for s in walk(loop.body))


def trips(loop: For) -> frozenset[Symbol]:
    """What differs from trip to trip: the loop's variable, and counters that are read within it."""
    return frozenset({loop.symbol, *(stmt.symbol for stmt in walk(loop.body) if isinstance(stmt, Let))})


def copies(kernel: Kernel, source: str, target: str) -> tuple[Copy, ...]:
    """Between two spaces, everywhere in the kernel."""
    found = (stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy))
    return tuple(each for each in found if (each.source.buffer.space, each.target.buffer.space) == (source, target))


def loads(kernel: Kernel) -> tuple[Copy, ...]:
    """From global memory, of what products multiply."""
    wanted = fed(kernel)
    found = (*copies(kernel, "global", "shared"), *copies(kernel, "global", "register"))
    return tuple(each for each in found if each.target.buffer in wanted)


def fed(kernel: Kernel) -> frozenset[Buffer]:
    """Storage that operands of products come through."""
    known = {view.buffer for each in products(kernel) for view in (each.a, each.b)}
    moves = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.source.buffer.space != "global"]
    for _ in moves:
        more = {each.source.buffer for each in moves if each.target.buffer in known} - known
        if not more:
            break
        known |= more
    return frozenset(known)


def staged(kernel: Kernel) -> Iterator[tuple[For, View]]:
    """In each loop around products: views of shared memory that operands are taken from."""
    for loop in loops(kernel):
        for stmt in walk(loop.body):
            read = (stmt.source,) if isinstance(stmt, Copy) else (stmt.a, stmt.b) if isinstance(stmt, Mma) else ()
            yield from ((loop, view) for view in read if view.buffer.space == "shared")


def stores(kernel: Kernel) -> tuple[Copy, ...]:
    return (*copies(kernel, "register", "global"), *copies(kernel, "shared", "global"))


def operations(view: View) -> frozenset[BinOp]:
    """Those in the coordinates of a view."""
    return frozenset(node.op for node in topological(view.at) if isinstance(node, Bin))


def contracted(kernel: Kernel) -> dict[Buffer, int]:
    """Of each operand in global memory the axis that products sum over: the one whose name both operands have."""
    tags = [stmt for stmt in walk(kernel.prologue) if isinstance(stmt, Tag) and stmt.view.where is TRUE]
    named = {stmt.view.buffer: dict(stmt.names) for stmt in tags}
    operands = [each.source.buffer for each in loads(kernel)]
    known = [set(named[buffer]) for buffer in operands if buffer in named]
    common = set[str].intersection(*known) if known else set[str]()
    found: dict[Buffer, int] = {}
    for buffer in operands:
        for name, value in named.get(buffer, {}).items():
            if name in common and isinstance(value, Coord):
                found[buffer] = value.axis
    return found


def blocks_in_depth(kernel: Kernel) -> bool:
    """Whether where in K a block begins depends on which block it is."""
    axes = contracted(kernel)
    return any(
        symbols(load.source.at[axes[load.source.buffer]]) & set(kernel.blocks)
        for load in loads(kernel)
        if load.source.buffer in axes
    )


def extent(index: Index) -> int | None:
    return index.value if isinstance(index, Const) else None


def conflicts(kernel: Kernel) -> Iterator[tuple[Copy, int]]:
    """Copies between registers and shared memory, and how many words of one bank they ask for at once, at most.

    Symbols are taken as 0: what all threads share moves all of them alike. What has no phases, or depends on data, is
    left out.
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
    """Elements from the start of a shared buffer, shape (threads, values); None for a place that data decide."""
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


def advised(kernel: Kernel, name: str) -> bool:
    """Whether some product stands right behind a piece of advice of that name."""
    for body in lists(kernel):
        for before, stmt in pairwise(body):
            if isinstance(stmt, Mma) and isinstance(before, Policy) and before.name == name:
                return True
    return False


def lists(kernel: Kernel) -> Iterator[tuple[Stmt, ...]]:
    """Every list of statements."""
    yield kernel.body
    for stmt in walk(kernel.body):
        yield from bodies(stmt)


def skewed(kernel: Kernel) -> bool:
    """Whether some waves stop at a meeting that others do not."""
    return any(
        isinstance(stmt, If) and kernel.thread in symbols(stmt.cond) and any(map(_meets, walk(stmt.then)))
        for stmt in walk(kernel.body)
    )


def _meets(stmt: Stmt) -> bool:
    return isinstance(stmt, Sync)
