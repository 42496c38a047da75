"""Execution counts: how often a block runs each statement at given sizes, and the total cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from argus.core.cost.addressing import NotModelledError, value_of
from argus.core.cost.costs import NOTHING, Cost, cost_of
from argus.core.cost.groups import BlockGroups, Group, block_groups, sizes_of
from argus.core.cost.machine import Machine
from argus.core.index import Node, Symbol
from argus.core.ir import Await, For, If, Kernel, Let, Mma, One, Stmt, Sync, Wait, bodies, trips, walk
from argus.core.walk import IntArray, Value, symbols

_MOST = 1 << 16
"""Most iterations that the walk enumerates exactly, over all loops around a statement; beyond that it samples."""


@frozen(eq=False)
class Run:
    """A statement of a group. times: how often the group executes it. cost: of one execution.

    main: whether it is in the main loop: an innermost loop that contains matrix products.
    """

    stmt: Stmt
    group: Group
    times: float
    cost: Cost
    main: bool


@frozen
class Counts:
    """The totals of one block.

    total: cost of all its groups. waits: executions of mbarrier and queue waits. syncs: executions of thread barriers.
    steps: matrix products issued by the group that issues most. after: the part of `total` in the epilogue, after the
    main loop. notes: what the counts leave out.
    """

    total: Cost
    waits: float
    syncs: float
    steps: float
    after: Cost
    notes: tuple[str, ...]

    @property
    def conflicts(self) -> float:
        """Cycles of shared memory over cycles without bank conflicts."""
        return self.total.shared / self.total.unconflicted if self.total.unconflicted else 1.0

    @property
    def coalesced(self) -> float:
        """The share of bytes moved to and from global memory that the kernel uses."""
        moved = self.total.loaded + self.total.stored
        return min(1.0, self.total.useful / moved) if moved else 1.0


def _as_dict(values: Mapping[Symbol, Value]) -> Mapping[Symbol, Value]:
    return dict(values)


@frozen(eq=False)
class _Walk:
    """The state of a walk. known: values of symbols, one per entry of `weights`; weights: how often each occurs."""

    known: Mapping[Symbol, Value] = field(converter=_as_dict)
    weights: npt.NDArray[np.float64]
    main: bool = False

    @property
    def times(self) -> float:
        return float(self.weights.sum())


def runs(group: Group, machine: Machine, notes: list[str]) -> Iterator[Run]:
    """Each statement of the group with its execution count; a data-dependent count counts as one, with a note."""
    branch_symbols = _branch_symbols(group.body)
    start = _Walk(group.numbers, np.ones(1))
    yield from _body(group.body, group, start, branch_symbols, machine, notes)


def _branch_symbols(body: tuple[Stmt, ...]) -> frozenset[Symbol]:
    """Symbols in conditions and loop bounds: the walk enumerates the values of these."""
    roots: list[Node] = []
    for stmt in walk(body):
        match stmt:
            case If(cond=cond):
                roots.append(cond)
            case For(start=start, stop=stop):
                roots += [start, stop]
            case _:
                continue
    return symbols(*roots)


def _body(
    body: tuple[Stmt, ...],
    group: Group,
    at: _Walk,
    branch_symbols: frozenset[Symbol],
    machine: Machine,
    notes: list[str],
) -> Iterator[Run]:
    for stmt in body:
        match stmt:
            case For():
                inner = evolve(_enter_loop(stmt, at, branch_symbols, notes), main=_is_main(stmt))
                yield from _body(stmt.body, group, inner, branch_symbols, machine, notes)
            case If():
                for part, inner in zip(bodies(stmt), _branches(stmt, at, notes), strict=True):
                    if inner.times:
                        yield from _body(part, group, inner, branch_symbols, machine, notes)
            case One():
                one = evolve(group, threads=1)
                yield from _body(stmt.body, one, at, branch_symbols, machine, notes)
            case _:
                if isinstance(stmt, Let):
                    at = evolve(at, known={**at.known, stmt.symbol: 0})
                yield Run(stmt, group, at.times, _cost(stmt, group, at, machine, notes), at.main)


def _is_main(loop: For) -> bool:
    """Whether the loop contains matrix products, and no loop inside it does."""
    inner = [stmt for stmt in walk(loop.body) if isinstance(stmt, For) and _multiplies(stmt)]
    return _multiplies(loop) and not inner


def _multiplies(loop: For) -> bool:
    return any(isinstance(stmt, Mma) for stmt in walk(loop.body))


def _cost(stmt: Stmt, group: Group, at: _Walk, machine: Machine, notes: list[str]) -> Cost:
    first = {symbol: _first_value(value, symbol in group.numbers) for symbol, value in at.known.items()}
    try:
        return cost_of(stmt, evolve(group, numbers=first), machine)
    except NotModelledError as error:
        _note(notes, f"the model leaves out a {type(stmt).__name__.lower()}: {error}")
        return NOTHING


def _first_value(value: Value, own: bool) -> Value:
    return value if own or isinstance(value, int) else int(value.flat[0])


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)


def _enter_loop(loop: For, at: _Walk, branch_symbols: frozenset[Symbol], notes: list[str]) -> _Walk:
    """The walk inside a loop; enumerates the iterations if a condition or a bound depends on the loop variable."""
    shape = at.weights.shape
    try:
        count = np.broadcast_to(value_of(trips(loop), at.known), shape)
        first = np.broadcast_to(value_of(loop.start, at.known), shape)
    except NotModelledError as error:
        _note(notes, f"the model runs a loop once: {error}")
        return evolve(at, known={**at.known, loop.symbol: 0})
    if loop.symbol not in branch_symbols:
        return _Walk({**at.known, loop.symbol: int(first.flat[0])}, at.weights * count)
    total = int(count.sum())
    if total == 0:
        return _Walk({**at.known, loop.symbol: int(first.flat[0])}, np.zeros(shape))
    sampled = count if total <= _MOST else np.minimum(count, max(1, _MOST // len(count)))
    if total > _MOST:
        _note(notes, f"the model samples {int(sampled.sum())} of {total} iterations of a loop, evenly spaced")
    which = np.repeat(np.arange(len(count)), sampled)
    number = np.arange(len(which)) - np.repeat(np.cumsum(sampled) - sampled, sampled)
    spread = number * np.maximum(1, count[which] - 1) // np.maximum(1, sampled[which] - 1)
    trip = np.where(sampled[which] == count[which], number, spread)
    known = {symbol: _select_entries(value, which, len(count)) for symbol, value in at.known.items()}
    weights = at.weights[which] * count[which] / np.maximum(1, sampled[which])
    return _Walk({**known, loop.symbol: first[which] + trip * loop.step}, weights)


def _select_entries(value: Value, which: IntArray, count: int) -> Value:
    """The symbol's values at selected entries of the walk; per-thread values and scalars are unchanged."""
    return value[which] if isinstance(value, np.ndarray) and value.shape == (count,) else value


def _branches(stmt: If, at: _Walk, notes: list[str]) -> tuple[_Walk, _Walk]:
    """The walks where the condition is true for some thread, and where it is false for some thread."""
    try:
        truth = np.asarray(value_of(stmt.cond, at.known), np.bool_)
    except NotModelledError as error:
        _note(notes, f"the model counts both branches of a condition: {error}")
        return at, at
    if truth.ndim == 2:  # of threads, shape (threads, 1) or (threads, places)
        some, other = truth.any(axis=0), (~truth).any(axis=0)
    else:
        some, other = truth, ~truth
    return (
        evolve(at, weights=at.weights * some.astype(np.float64)),
        evolve(at, weights=at.weights * other.astype(np.float64)),
    )


def block_numbers(kernel: Kernel, sizes: Mapping[str, int]) -> dict[Symbol, Value]:
    """Values of the sizes and of the first block's coordinates; the first block has the most work."""
    return {**sizes_of(kernel, sizes), **dict.fromkeys(kernel.blocks, 0)}


def all_groups(groups: BlockGroups) -> tuple[Group, ...]:
    return groups.prologue, *groups.concurrent, groups.epilogue


def counts(kernel: Kernel, sizes: Mapping[str, int], machine: Machine) -> Counts:
    """The totals of the first block. Raises KeyError for a missing size."""
    groups = block_groups(kernel, block_numbers(kernel, sizes))
    total, after, notes = NOTHING, NOTHING, list[str]()
    waits = syncs = steps = 0.0
    for group in all_groups(groups):
        mine = 0.0
        for run in runs(group, machine, notes):
            scaled = run.cost.times(run.times)
            total = total + scaled
            after = after + scaled if mine and not run.main else after
            waits += run.times * isinstance(run.stmt, Await | Wait)
            syncs += run.times * isinstance(run.stmt, Sync)
            mine += run.times * isinstance(run.stmt, Mma)
        steps = max(steps, mine)
    return Counts(total, waits, syncs, steps, after, tuple(notes))
