"""Checks claims that elements have pairwise distinct components, across threads, and claimed iterations and blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argus.core.ir import Assert, Buffer, Distinct, TagOf, static
from argus.core.layout import TV
from argus.interp.compiled_kernel import registers_of
from argus.interp.memory.cells import AnyArray, BoolArray, IntArray, unravel
from argus.interp.memory.trace import Spot
from argus.interp.state import Block, Gathered, Launch, Share, coordinates
from argus.interp.violation import Event


def gather(block: Block, event: Event, claim: Distinct, columns: Sequence[IntArray], known: BoolArray) -> None:
    """Collect one wave's elements with known components; `check` compares them at the end of the launch.

    columns: each component, (thread, value), then the thread and the register of each element.
    """
    over = {symbol.name for symbol in claim.over}
    blocks = zip(block.launch.prepared.kernel.blocks, block.index, strict=True)
    same = [(name, number) for name, number in event.iteration if name not in over]
    same += [(symbol.name, number) for symbol, number in blocks if symbol.name not in over]
    share = Share(block, event, tuple(column[known] for column in columns), block.launch.moment)
    gathered = block.launch.distinct_elements.setdefault((event.stmt, block.base, tuple(same)), Gathered())
    gathered.shares.append(share)


def check(launch: Launch) -> None:
    """Check the claims of distinctness of a finished launch (I39).

    Registers that replicate one element of a tile count once.
    """
    for (stmt, *_), gathered in launch.distinct_elements.items():
        assert isinstance(stmt, Assert)
        assert isinstance(stmt.claim, Distinct)
        _check_one(stmt.claim, gathered)


def _check_one(claim: Distinct, gathered: Gathered) -> None:
    shares = gathered.shares
    run = np.concatenate([np.full(share.columns[0].size, n, np.int64) for n, share in enumerate(shares)])
    *columns, thread, value = (
        np.concatenate(parts) for parts in zip(*(share.columns for share in shares), strict=True)
    )
    of = claim.components[0]
    element = _element(of, thread, value)
    keys = [_execution(share.event) for share in shares]
    executions = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    execution = np.array([executions[key] for key in keys], np.int64)[run]
    order = np.lexsort((value, thread, execution, *columns))
    same = np.ones(max(0, order.size - 1), np.bool_)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    same &= (element[order][1:] != element[order][:-1]) | (execution[order][1:] != execution[order][:-1])
    if same.any():
        at = int(same.argmax())
        one, other = sorted((int(order[at]), int(order[at + 1])), key=lambda n: (int(execution[n]), int(thread[n])))
        _report(of, [shares[int(run[n])] for n in (one, other)], (one, other), (thread, value, *columns))


def _execution(event: Event) -> tuple[object, ...]:
    """A key of one execution of a statement, the same for all waves."""
    return event.block, event.path


def _element(of: TagOf, thread: IntArray, value: IntArray) -> IntArray:
    """The element numbers of registers; for shared memory `value` is the element number already."""
    layout = of.view.buffer.layout
    return layout.threads.table()[thread] + layout.values.table()[value] if isinstance(layout, TV) else value


def _report(of: TagOf, shares: Sequence[Share], pair: tuple[int, int], arrays: Sequence[AnyArray]) -> None:
    thread, value, *columns = arrays
    first, second = pair
    before, after = shares
    buffer = of.view.buffer
    record = ", ".join(str(int(column[second])) for column in columns)
    at = tuple(_coordinates(buffer, int(thread[n]), int(value[n])) for n in pair)
    facts = [(f"`{buffer.name}`{list(place)}", f"({record})") for place in dict.fromkeys(at)]
    apart = _execution(before.event) != _execution(after.event)
    after.block.report(
        "I39",
        f"two elements of `{buffer.name}` have the components ({record})",
        after.event,
        thread=int(thread[second]),
        value=int(value[second]) if buffer.space == "register" else None,
        element=at[1],
        buffer=buffer.name,
        other=before.event if apart else None,
        other_thread=before.block.base + int(thread[first]) - after.block.base,
        facts=(*facts, *_where(before.event, after.event)),
        origins=tuple(
            _spot(share, buffer, int(thread[n]), int(value[n])) for share, n in zip(shares, pair, strict=True)
        ),
    )


def _spot(share: Share, buffer: Buffer, thread: int, value: int) -> Spot:
    """The cell of one element at the time of the claim."""
    block = share.block
    if buffer.space == "shared":
        cell = int(block.launch.prepared.shared_cells(buffer)[value])
    else:
        cell = thread * registers_of(buffer)[1] + value
    return Spot(buffer, block.cells(buffer), cell, share.moment)


def _coordinates(buffer: Buffer, thread: int, value: int) -> tuple[int, ...]:
    if buffer.space == "register":
        return coordinates(buffer, thread, value)
    return unravel(value, [static(extent) for extent in buffer.shape])


def _where(before: Event, after: Event) -> tuple[tuple[str, str], ...]:
    """The other execution's block, if it differs."""
    return () if before.block == after.block else (("the other's block", str(before.block)),)
