"""Elements of a register tile that several lanes of a warp hold, stored by all of them in one instruction.

The hardware keeps one lane's number and does not say whose: nothing is lost where all hold the same one, which is to be
shown of each lane's own registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argus.core.ir import Copy, Map, Num
from argus.core.ir.element_walk import nodes
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import is_whole
from argus.core.proof.values.content import Content, Data, Number
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import IntArray, symbols


def replicas(flow: ValueFlow, stores: Sequence[Access], places: Sequence[Separable]) -> bool:
    """Whether what is stored to one place twice is one element of a tile, stored by lanes of one warp that all hold it.

    places: of the one store's elements, (thread, value).
    """
    store = stores[0]
    stmt = store.step.stmt
    if len(stores) != 1 or not isinstance(stmt, Copy) or not is_whole(stmt.source):
        return False
    held = stmt.source.buffer.layout
    if stmt.source.buffer.space != "register" or not isinstance(held, TV) or _numbers_of_threads(flow):
        return False
    shape = held.threads.size(), held.values.size()
    if any(place.table.shape != shape for place in places):
        return False
    lanes = np.arange(shape[0])[:, None] // flow.timeline.kernel.target.unit
    tables = [np.broadcast_to(axis, shape) for axis in (lanes, np.arange(shape[1])[None, :], *held.coordinates())]
    first = _first([place.table for place in places])
    return all(_alike(table, first) for table in (*tables, *_told(flow.written(store.step), shape)))


def _numbers_of_threads(flow: ValueFlow) -> bool:
    """Whether some statement computes with a number that threads have each their own of, which no table tells."""
    maps = [step.stmt for step in flow.timeline.steps if isinstance(step.stmt, Map)]
    numbers = [node.value for stmt in maps for node in nodes(stmt.elem) if isinstance(node, Num)]
    return any(symbol.kind == "thread" for symbol in symbols(*numbers))


def _told(content: Content, shape: tuple[int, int]) -> Iterator[IntArray]:
    """Tables that tell apart registers which may hold different numbers."""
    for piece in content:
        yield piece.mask.astype(np.int64)
        match piece.value:
            case Number():
                pass
            case Data() as data if all(count is not None for _, count in data.counts):
                yield from (part.table for part in data.record.values())
                yield from (bound.coordinate.table for bound in (*data.inside, *data.loose))
            case _:
                yield np.arange(shape[0] * shape[1]).reshape(shape)


def _first(tables: Sequence[IntArray]) -> IntArray:
    """Of each register, the first that has its numbers in all tables."""
    columns = np.stack([table.reshape(-1) for table in tables])
    _, first, back = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    return first[back.reshape(-1)]


def _alike(table: IntArray, first: IntArray) -> bool:
    flat = table.reshape(-1)
    return bool((flat == flat[first]).all())
