"""Cache traffic: how many concurrent blocks load the same tile, and the share of each load that misses the cache."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.cost.addressing import NotModelledError, elements, start, value_of
from argus.core.cost.groups import block_groups, sizes_of
from argus.core.cost.machine import Machine
from argus.core.cost.occupancy import Rounds
from argus.core.index import Symbol
from argus.core.ir import Copy, For, Kernel, Let, Stmt, View, trips, walk
from argus.core.walk import IntArray, Value


@frozen
class Traffic:
    """miss_share: for each global load, the share that misses the last-level cache. distinct_share: distinct tiles that
    the concurrent blocks load, divided by the blocks. busy: active processors.

    operands: bytes of the tensors that the kernel reads. fetched: the byte-weighted mean of `miss_share`.
    """

    miss_share: Mapping[Stmt, float]
    distinct_share: Mapping[Stmt, float]
    busy: int
    operands: float
    fetched: float


def traffic(kernel: Kernel, sizes: Mapping[str, int], machine: Machine, rounds: Rounds, resident: int) -> Traffic:
    """Traffic of back-to-back launches: operands that fit in the last-level cache hit there.

    resident: resident blocks per processor. Raises KeyError for a missing size.
    """
    known = sizes_of(kernel, sizes)
    blocks = resident_blocks(kernel, known, min(rounds.blocks, rounds.processors * resident))
    together = max((len(each) for each in blocks.values()), default=1)
    read = {stmt.source.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy) and _loads(stmt)}
    operands = sum(prod(int(value_of(e, known)) for e in each.shape) * each.dtype.bits / 8 for each in read)
    missed = machine.missed(operands)
    miss_share: dict[Stmt, float] = {}
    distinct_share: dict[Stmt, float] = {}
    requested = fetched = 0.0
    for group in block_groups(kernel, {**known, **blocks}).concurrent:
        numbers = dict(group.numbers)
        for stmt in walk(group.body):
            if isinstance(stmt, For):
                numbers[stmt.symbol] = _scalar(value_of(stmt.start, numbers))
            elif isinstance(stmt, Let):
                numbers[stmt.symbol] = 0
            elif isinstance(stmt, Copy) and _loads(stmt):
                distinct_share[stmt] = min(1.0, _distinct_tiles(stmt.source, numbers, kernel.thread) / together)
                miss_share[stmt] = missed * distinct_share[stmt]
                bytes_each = elements(stmt.source) * stmt.source.buffer.dtype.bits / 8
                requested, fetched = requested + bytes_each, fetched + bytes_each * miss_share[stmt]
    return Traffic(
        miss_share,
        distinct_share,
        min(rounds.processors, together),
        operands,
        fetched / requested if requested else 0.0,
    )


def _loads(stmt: Copy) -> bool:
    return stmt.source.buffer.space == "global"


def _scalar(value: object) -> int:
    return int(np.asarray(value).flat[0])


def resident_blocks(kernel: Kernel, known: Mapping[Symbol, Value], together: int) -> dict[Symbol, IntArray]:
    """Coordinates of the first `together` blocks, first axis of the grid fastest, except idle blocks."""
    rest, found = np.arange(together, dtype=np.int64), dict[Symbol, IntArray]()
    for symbol, extent in zip(kernel.blocks, kernel.grid, strict=True):
        count = max(1, int(value_of(extent, known)))
        found[symbol], rest = rest % count, rest // count
    busy = np.zeros(together, np.bool_)
    for group in block_groups(kernel, {**known, **found}).concurrent:
        loops = [stmt for stmt in group.body if isinstance(stmt, For)]
        for loop in loops:
            busy |= _enters_loop(loop, group.numbers)
        if not loops:
            busy[:] = True
    return {symbol: values[busy] for symbol, values in found.items()} if busy.any() else found


def _enters_loop(loop: For, numbers: Mapping[Symbol, Value]) -> npt.NDArray[np.bool_]:
    """Whether each block enters the loop; True if that depends on data."""
    try:
        return value_of(trips(loop), numbers) > 0
    except NotModelledError:
        return np.ones((), np.bool_)


def _distinct_tiles(view: View, numbers: Mapping[Symbol, Value], thread: Symbol) -> int:
    """Distinct tiles that the blocks load; one per block if that depends on data."""
    first = {**numbers, thread: 0}
    blocks = max((np.size(value) for symbol, value in first.items() if symbol.kind == "block"), default=1)
    try:
        begins = start(view, first)
    except NotModelledError:
        return blocks
    return len(np.unique(np.stack([np.broadcast_to(each, (blocks,)) for each in begins]), axis=1).T)
