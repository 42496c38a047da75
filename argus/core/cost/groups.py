"""Who runs what: the agents of a block, each with its statements and the numbers that its symbols stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import evolve, field, frozen

from argus.core.index import Symbol
from argus.core.ir import If, Kernel, Stmt, walk
from argus.core.walk import IntArray, Value, evaluate, symbols

Numbers = Mapping[Symbol, Value]


def _copied(numbers: Numbers) -> Numbers:
    return dict(numbers)


@frozen(eq=False)
class Group:
    """Threads of a block that go through their statements together.

    numbers: of sizes, of the block, of the agent; of threads one a thread, shape (threads, 1). first: the row of their
    first in the layouts of register tiles. crowd: coordinates of the blocks that run together, one number a block.
    """

    name: str
    threads: int
    unit: int
    body: tuple[Stmt, ...]
    numbers: Numbers = field(converter=_copied)
    first: int = 0
    crowd: Numbers = field(factory=dict[Symbol, Value])

    @property
    def waves(self) -> int:
        return -(-self.threads // self.unit)


@frozen(eq=False)
class BlockGroups:
    """Of one block: what all its threads do first, then groups beside one another, then all of them again."""

    before: Group
    beside: tuple[Group, ...]
    after: Group


def sizes_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[Symbol, Value]:
    """The kernel's sizes by symbol. Raises KeyError for one that is not given."""
    return {symbol: sizes[symbol.name] for symbol in kernel.sizes}


def block_groups(kernel: Kernel, numbers: Numbers, crowd: Numbers | None = None) -> BlockGroups:
    """numbers: of sizes and of the block's coordinates. crowd: of the blocks that run together, if these matter."""
    unit, others = kernel.target.unit, crowd or {}
    every = {**numbers, kernel.thread: _column(0, kernel.threads)}
    before = Group("prologue", kernel.threads, unit, kernel.prologue, every, 0, others)
    after = Group("epilogue", kernel.threads, unit, kernel.epilogue, every, 0, others)
    if kernel.roles is None:
        return BlockGroups(evolve(before, body=()), tuple(_by_waves(kernel, numbers, others)), evolve(after, body=()))
    beside: list[Group] = []
    for role in kernel.roles.roles:
        for number in range(role.agents):
            first = role.first_warp * role.unit + number * role.agent
            known: dict[Symbol, Value] = {
                **numbers,
                role.number: number,
                role.thread: _column(0, role.agent),
                kernel.thread: _column(first, role.agent),
            }
            beside.append(Group(role.name, role.agent, unit, role.body, known, 0, others))
    return BlockGroups(before, tuple(beside), after)


def _column(first: int, count: int) -> IntArray:
    return np.arange(first, first + count, dtype=np.int64)[:, None]


def _by_waves(kernel: Kernel, numbers: Numbers, crowd: Numbers) -> Iterator[Group]:
    """The waves of a kernel without roles, those together that no condition tells apart."""
    unit, body = kernel.target.unit, kernel.body
    conditions = [s.cond for s in walk(body) if isinstance(s, If) and symbols(s.cond) == frozenset((kernel.thread,))]
    threads = np.arange(kernel.threads, dtype=np.int64)
    told = [np.broadcast_to(np.asarray(evaluate(c, {kernel.thread: threads})), threads.shape) for c in conditions]
    kinds = [tuple(bool(each[w : w + unit].any()) for each in told) for w in range(0, kernel.threads, unit)]
    first = 0
    for wave in range(1, len(kinds) + 1):
        if wave == len(kinds) or kinds[wave] != kinds[first]:
            start, end = first * unit, min(wave * unit, kernel.threads)
            known = {**numbers, kernel.thread: _column(start, end - start)}
            yield Group(f"waves {first} to {wave - 1}", end - start, unit, body, known, start, crowd)
            first = wave
