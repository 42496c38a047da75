"""The progress of one agent's shared-memory accesses, and the transfer functions of waits, fences and barriers.

Part of `visibility`, which decides how much progress a later access requires of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve, field, frozen

from argus.core.atom import Queue
from argus.core.index import Index
from argus.core.ir import Buffer, Mma, Stmt, Wait
from argus.core.proof.dataflow.access import Access
from argus.core.proof.sync import tensor_maps as maps
from argus.core.proof.sync.tensor_maps import Maps, MapState

Kind = Literal["write", "staged", "read", "bulk", "product"]
"""staged: a write by `cp.async`, complete when its group has been waited for."""
MAX_GROUPS = 16
"""Saturation of the count of groups since an operation: larger counts are not distinguished."""


ReaderFence = Literal[0, 1, 2]
"""Which threads of the reader executed a proxy fence: 0 none, 1 the elected thread, 2 all."""


@frozen
class Progress:
    """A lower bound, over all paths, on the progress of an access.

    fenced: its writers executed a proxy fence. synced: a barrier of the agent followed. published: first the fence,
    then the barrier. reader_fence: a proxy fence of the reader followed the barrier. since: groups committed, or
    products issued, since then. reads_done: it has read its operands. complete: it is entirely done.
    """

    fenced: bool = False
    synced: bool = False
    published: bool = False
    reader_fence: ReaderFence = 0
    since: int = 0
    reads_done: bool = False
    complete: bool = False

    def join(self, other: Progress) -> Progress:
        return Progress(
            self.fenced and other.fenced,
            self.synced and other.synced,
            self.published and other.published,
            _less(self.reader_fence, other.reader_fence),
            min(self.since, other.since),
            self.reads_done and other.reads_done,
            self.complete and other.complete,
        )


def _less(one: ReaderFence, two: ReaderFence) -> ReaderFence:
    return min(one, two)


@frozen(eq=False)
class SharedAccess:
    """A shared-memory access of a statement; its view uses loop variables, primed for old iterations.

    alone: executed by one thread. age: iterations since, of the loop on which its index depends.
    fixed: the same access with its constant stage, where `access` writes that stage in terms of a loop variable.
    """

    stmt: Stmt
    kind: Kind
    access: Access
    alone: bool
    age: int = 0
    fixed: Access | None = None

    @property
    def forms(self) -> tuple[Access, ...]:
        """The access in each of its forms: two accesses are apart if they are in any of them."""
        return (self.access,) if self.fixed is None else (self.access, self.fixed)


@frozen(eq=False)
class Check:
    """The result of checking an invariant between a statement and an earlier one.

    unknown: why it cannot be decided. presumed: the named assumption on which it depends.
    """

    invariant: str
    what: str
    stmt: Stmt
    other: Stmt | None
    good: bool
    help: str = ""
    unknown: str = ""
    presumed: str = ""


Key = tuple[Stmt, Kind, Buffer, tuple[Index, ...]]


@frozen(eq=False)
class State:
    """The abstract state of one agent.

    records: accesses to shared memory. late: products that may still use registers. dirty: register tiles that
    ordinary code has accessed since the last `wgmma.fence`. maps: the state of tensor maps in memory.
    """

    records: Mapping[Key, tuple[SharedAccess, Progress]] = field(factory=dict[Key, "tuple[SharedAccess, Progress]"])
    late: Mapping[tuple[Mma, Buffer], Progress] = field(factory=dict[tuple[Mma, Buffer], Progress])
    dirty: frozenset[Buffer] = frozenset()
    maps: Maps = field(factory=dict[Buffer, MapState])

    def equals(self, other: State) -> bool:
        mine = {key: progress for key, (_, progress) in self.records.items()}
        theirs = {key: progress for key, (_, progress) in other.records.items()}
        return mine == theirs and (self.late, self.dirty, self.maps) == (other.late, other.dirty, other.maps)

    def join(self, other: State) -> State:
        """The state after either of two paths."""
        records = dict(self.records)
        for key, (touched, progress) in other.records.items():
            mine = records.get(key)
            records[key] = (touched, progress if mine is None else mine[1].join(progress))
        late = dict(self.late)
        for place, progress in other.late.items():
            late[place] = late[place].join(progress) if place in late else progress
        return State(records, late, self.dirty | other.dirty, maps.join_maps(self.maps, other.maps))


def key_of(touched: SharedAccess) -> Key:
    view = touched.access.view
    return touched.stmt, touched.kind, view.buffer, view.at


def record_access(state: State, touched: SharedAccess) -> State:
    return evolve(state, records={**state.records, key_of(touched): (touched, Progress())})


def after_barrier(state: State) -> State:
    records = {
        key: (t, evolve(p, synced=t.kind in ("write", "read") or p.reads_done, published=p.published or p.fenced))
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def after_proxy_fence(state: State, *, by_all: bool) -> State:
    """The state after a proxy fence: of the writers before the barrier, of the reader after it."""
    side: ReaderFence = 2 if by_all else 1
    records = {
        key: (
            t,
            evolve(
                p,
                fenced=_is_fenced(t, p, by_all=by_all),
                reader_fence=max(p.reader_fence, side) if p.synced else p.reader_fence,
            ),
        )
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def _is_fenced(touched: SharedAccess, progress: Progress, *, by_all: bool) -> bool:
    """Whether the writers have fenced a write; a fence does not cover a write that is still in flight."""
    in_flight = touched.kind == "staged" and not progress.reads_done
    return progress.fenced or (not in_flight and (by_all or touched.alone))


def after_commit(state: State, kind: Kind, *, alone: bool = False) -> State:
    """The state after a group is committed or a product issued. alone: by one thread, for its own copies only."""
    records = {
        key: (
            t,
            evolve(p, since=min(p.since + 1, MAX_GROUPS))
            if t.kind == kind and _covers_all_copies(t, alone=alone)
            else p,
        )
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def _covers_all_copies(touched: SharedAccess, *, alone: bool) -> bool:
    """Whether a commit or wait (by one thread, or by all) is executed by every thread with a copy of this access."""
    return touched.kind != "staged" or touched.alone or not alone


_QUEUES: Mapping[Queue, tuple[Kind, int]] = {"bulk": ("bulk", 1), "cp_async": ("staged", 1), "wgmma": ("product", 0)}
"""For each queue, the kind of its operations, and their `since` count while they are the youngest entry."""


def after_wait(state: State, stmt: Wait, *, alone: bool = False) -> State:
    """The state after a wait: all groups but the youngest `pending` are complete. A group counts once committed.

    alone: one thread waits, which does not cover copies of other threads.
    """
    if stmt.of == "reads" and stmt.queue != "bulk":
        return state
    kind, first = _QUEUES[stmt.queue]
    least = stmt.pending + first
    records = {
        key: (t, evolve(p, reads_done=True, complete=p.complete or stmt.of == "all") if covered else p)
        for key, (t, p) in state.records.items()
        for covered in (t.kind == kind and p.since >= least and _covers_all_copies(t, alone=alone),)
    }
    late = state.late
    if stmt.queue == "wgmma":
        late = {place: evolve(p, reads_done=True) if p.since >= least else p for place, p in state.late.items()}
    return evolve(state, records=records, late=late)
