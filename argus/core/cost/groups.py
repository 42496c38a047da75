"""The thread groups of a block: the agents of its roles, or its waves, each with its statements and symbol values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import evolve, field, frozen

from argus.core.index import Symbol
from argus.core.ir import If, Kernel, Stmt, walk
from argus.core.walk import IntArray, Value, evaluate, symbols

Numbers = Mapping[Symbol, Value]


def _as_dict(numbers: Numbers) -> Numbers:
    return dict(numbers)


@frozen(eq=False)
class Group:
    """Threads of a block that execute their statements in lockstep.

    numbers: values of sizes, block coordinates and the agent's number, and of the thread index one value per thread,
    shape (threads, 1). first: the row of the group's first thread in register layouts. resident: coordinates of the
    blocks that run at the same time, one value per block.
    """

    name: str
    threads: int
    unit: int
    body: tuple[Stmt, ...]
    numbers: Numbers = field(converter=_as_dict)
    first: int = 0
    resident: Numbers = field(factory=dict[Symbol, Value])

    @property
    def waves(self) -> int:
        return -(-self.threads // self.unit)


@frozen(eq=False)
class BlockGroups:
    """The groups of one block: all threads in the prologue, concurrent groups, all threads in the epilogue."""

    prologue: Group
    concurrent: tuple[Group, ...]
    epilogue: Group


def sizes_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[Symbol, Value]:
    """The kernel's sizes by symbol. Raises KeyError for a missing size."""
    return {symbol: sizes[symbol.name] for symbol in kernel.sizes}


def block_groups(kernel: Kernel, numbers: Numbers, resident: Numbers | None = None) -> BlockGroups:
    """The groups of a block. numbers: sizes and block coordinates. resident: coordinates of concurrent blocks."""
    unit, others = kernel.target.unit, resident or {}
    every = {**numbers, kernel.thread: _thread_column(0, kernel.threads)}
    before = Group("prologue", kernel.threads, unit, kernel.prologue, every, 0, others)
    after = Group("epilogue", kernel.threads, unit, kernel.epilogue, every, 0, others)
    if kernel.roles is None:
        return BlockGroups(
            evolve(before, body=()), tuple(_wave_groups(kernel, numbers, others)), evolve(after, body=())
        )
    concurrent: list[Group] = []
    for role in kernel.roles.roles:
        for number in range(role.agents):
            first = role.first_warp * role.unit + number * role.agent
            known: dict[Symbol, Value] = {
                **numbers,
                role.number: number,
                role.thread: _thread_column(0, role.agent),
                kernel.thread: _thread_column(first, role.agent),
            }
            concurrent.append(Group(role.name, role.agent, unit, role.body, known, 0, others))
    return BlockGroups(before, tuple(concurrent), after)


def _thread_column(first: int, count: int) -> IntArray:
    return np.arange(first, first + count, dtype=np.int64)[:, None]


def _wave_groups(kernel: Kernel, numbers: Numbers, resident: Numbers) -> Iterator[Group]:
    """The waves of a kernel without roles; waves that take the same branches form one group."""
    unit, body = kernel.target.unit, kernel.body
    conditions = [s.cond for s in walk(body) if isinstance(s, If) and symbols(s.cond) == frozenset((kernel.thread,))]
    threads = np.arange(kernel.threads, dtype=np.int64)
    truth = [np.broadcast_to(np.asarray(evaluate(c, {kernel.thread: threads})), threads.shape) for c in conditions]
    kinds = [tuple(bool(each[w : w + unit].any()) for each in truth) for w in range(0, kernel.threads, unit)]
    first = 0
    for wave in range(1, len(kinds) + 1):
        if wave == len(kinds) or kinds[wave] != kinds[first]:
            start, end = first * unit, min(wave * unit, kernel.threads)
            known = {**numbers, kernel.thread: _thread_column(start, end - start)}
            yield Group(f"waves {first} to {wave - 1}", end - start, unit, body, known, start, resident)
            first = wave
