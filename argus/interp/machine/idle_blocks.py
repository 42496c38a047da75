"""Skips blocks without work: of the blocks that have no tile and would all do the same, one is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from attrs import frozen

from argus.core.check.parts import expressions, views
from argus.core.index import Symbol
from argus.core.ir import Assert, Assume, Atomic, For, Kernel, Let, Role, Roles, Stmt, Tag, bodies, trips
from argus.core.walk import Value, evaluate, symbols
from argus.interp.state import Launch

_Index = tuple[int, ...]
_BATCH = 256
"""Groups whose work is looked up at once."""


@frozen
class _Loop:
    """An outermost loop whose trip count depends on the block; role: the role that contains it."""

    stmt: For
    role: Role | None


def without_repeats(launch: Launch, groups: Iterator[list[_Index]]) -> Iterator[list[_Index]]:
    """The clusters to run: all that have work, and the first of those without."""
    loops = _tile_loops(launch.prepared.kernel)
    if not loops:
        yield from groups
        return
    seen = False
    while batch := list(islice(groups, _BATCH)):
        for group, idle in zip(batch, _idle_groups(launch, loops, batch), strict=True):
            if not (idle and seen):
                yield group
            seen = seen or idle


def _idle_groups(launch: Launch, loops: Sequence[_Loop], groups: Sequence[Sequence[_Index]]) -> list[bool]:
    """For each group whether none of its blocks has work: trip counts are evaluated for all blocks at once."""
    kernel = launch.prepared.kernel
    indices = np.array([index for group in groups for index in group], np.int64)
    here: dict[Symbol, Value] = {**launch.sizes}
    here |= {block: indices[:, axis] for axis, block in enumerate(kernel.blocks)}
    works = np.zeros(len(indices), np.bool_)
    for loop in loops:
        role, count = loop.role, trips(loop.stmt)
        numbers: tuple[Symbol, ...] = () if role is None else (role.number,)
        if not symbols(count) <= here.keys() | set(numbers):
            return [False] * len(groups)
        for number in range(1 if role is None else role.agents):
            works |= np.asarray(evaluate(count, {**here, **dict.fromkeys(numbers, number)})) > 0
    ends = np.cumsum([len(group) for group in groups])
    return [not part.any() for part in np.split(works, ends[:-1])]


def _tile_loops(kernel: Kernel) -> tuple[_Loop, ...]:
    """The loops over a block's tiles; none if blocks differ, or access tensors, outside such loops."""
    found: list[_Loop] = []
    return tuple(found) if _collect(kernel, kernel.body, None, found) else ()


def _collect(kernel: Kernel, body: Sequence[Stmt], role: Role | None, found: list[_Loop]) -> bool:
    """Whether no statement outside the loops depends on the block or accesses a tensor; adds the loops to `found`."""
    blocks = set(kernel.blocks)
    for stmt in body:
        if isinstance(stmt, For) and symbols(trips(stmt)) & blocks:
            found.append(_Loop(stmt, role))
            continue
        if symbols(*expressions(stmt)) & blocks or _touches_tensors(stmt):
            return False
        parts = [(part, role) for part in bodies(stmt)]
        if isinstance(stmt, Roles):
            parts = [(each.body, each) for each in stmt.roles]
        if not all(_collect(kernel, part, owner, found) for part, owner in parts):
            return False
    return True


def _touches_tensors(stmt: Stmt) -> bool:
    """Whether a statement reads or writes global memory; tags, claims and assumptions do not."""
    if isinstance(stmt, Tag | Assert | Assume):
        return False
    if isinstance(stmt, Let) and isinstance(stmt.value, Atomic):
        return True
    return any(view.buffer.space == "global" for view in views(stmt))
