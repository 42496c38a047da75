"""How far accesses have come: records of one agent's accesses, and what moves them on.

Part of `visibility`, which decides what a later access needs of an earlier one's record.
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
from argus.core.proof.sync.tensor_maps import Described, Maps

Kind = Literal["write", "staged", "read", "bulk", "product"]
"""staged: a write by `cp.async`, which is over when its group has been waited for."""
MOST = 16
"""Groups since an operation that are told apart; more is no different from so many."""


Looked = Literal[0, 1, 2]
"""Whose fence lies on the reader's side: nobody's, the elected thread's, that of all threads."""


@frozen
class Progress:
    """How far an access has come, at the least on every path. since: groups committed or products issued since.

    over: what it reads it has read; ended: all of it is done. looked: after the meeting lies a fence of the reader's
    side: of the elected thread, or of all.
    """

    fenced: bool = False
    met: bool = False
    published: bool = False
    looked: Looked = 0
    since: int = 0
    over: bool = False
    ended: bool = False

    def least(self, other: Progress) -> Progress:
        return Progress(
            self.fenced and other.fenced,
            self.met and other.met,
            self.published and other.published,
            _less(self.looked, other.looked),
            min(self.since, other.since),
            self.over and other.over,
            self.ended and other.ended,
        )


def _less(one: Looked, two: Looked) -> Looked:
    return min(one, two)


@frozen(eq=False)
class Touched:
    """An access of a statement; `at` in terms of loop variables, primed for iterations long ago.

    age: iterations since, of the loop that its place depends on.
    """

    stmt: Stmt
    kind: Kind
    access: Access
    alone: bool
    age: int = 0


@frozen(eq=False)
class Found:
    """One check: an invariant between a statement and an earlier one.

    unknown: why it cannot be told. presumed: the named assumption without which it would not hold.
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
    """records: accesses to shared memory. late: products whose registers are still in use. dirty: register tiles that
    ordinary code has written since the last `wgmma.fence`. maps: what those in memory describe.
    """

    records: Mapping[Key, tuple[Touched, Progress]] = field(factory=dict[Key, "tuple[Touched, Progress]"])
    late: Mapping[tuple[Mma, Buffer], Progress] = field(factory=dict[tuple[Mma, Buffer], Progress])
    dirty: frozenset[Buffer] = frozenset()
    maps: Maps = field(factory=dict[Buffer, Described])

    def same(self, other: State) -> bool:
        mine = {key: progress for key, (_, progress) in self.records.items()}
        theirs = {key: progress for key, (_, progress) in other.records.items()}
        return mine == theirs and (self.late, self.dirty, self.maps) == (other.late, other.dirty, other.maps)

    def joined(self, other: State) -> State:
        """What holds on both paths at least."""
        records = dict(self.records)
        for key, (touched, progress) in other.records.items():
            mine = records.get(key)
            records[key] = (touched, progress if mine is None else mine[1].least(progress))
        late = dict(self.late)
        for place, progress in other.late.items():
            late[place] = late[place].least(progress) if place in late else progress
        return State(records, late, self.dirty | other.dirty, maps.joined(self.maps, other.maps))


def key_of(touched: Touched) -> Key:
    view = touched.access.view
    return touched.stmt, touched.kind, view.buffer, view.at


def recorded(state: State, touched: Touched) -> State:
    return evolve(state, records={**state.records, key_of(touched): (touched, Progress())})


def met(state: State) -> State:
    records = {
        key: (t, evolve(p, met=t.kind in ("write", "read") or p.over, published=p.published or p.fenced))
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def fenced(state: State, *, by_all: bool) -> State:
    """A fence after the writes by those who wrote; after the meeting it is one of the reader's side."""
    side: Looked = 2 if by_all else 1
    records = {
        key: (t, evolve(p, fenced=_fenced(t, p, by_all=by_all), looked=max(p.looked, side) if p.met else p.looked))
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def _fenced(touched: Touched, progress: Progress, *, by_all: bool) -> bool:
    """Whether those who wrote have fenced what they wrote; a fence covers no write that is still under way."""
    under_way = touched.kind == "staged" and not progress.over
    return progress.fenced or (not under_way and (by_all or touched.alone))


def counted(state: State, kind: Kind, *, alone: bool = False) -> State:
    """A group is closed, or a product issued. alone: by one thread, whose copies of all threads are its own only."""
    records = {
        key: (t, evolve(p, since=min(p.since + 1, MOST)) if t.kind == kind and _by_those(t, alone=alone) else p)
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def _by_those(touched: Touched, *, alone: bool) -> bool:
    """Whether what a thread or all threads do to a queue is done by all who have copies of this access on it."""
    return touched.kind != "staged" or touched.alone or not alone


_QUEUES: Mapping[Queue, tuple[Kind, int]] = {"bulk": ("bulk", 1), "cp_async": ("staged", 1), "wgmma": ("product", 0)}
"""What is on a queue, and the count at which an operation is the youngest: of groups, once its own is closed."""


def waited(state: State, stmt: Wait, *, alone: bool = False) -> State:
    """All groups but the youngest `pending` are over. A group of copies begins to count when it is committed.

    alone: the wait is one thread's, and tells nothing of others' copies.
    """
    if stmt.of == "reads" and stmt.queue != "bulk":
        return state
    kind, first = _QUEUES[stmt.queue]
    least = stmt.pending + first
    records = {
        key: (t, evolve(p, over=True, ended=p.ended or stmt.of == "all") if covered else p)
        for key, (t, p) in state.records.items()
        for covered in (t.kind == kind and p.since >= least and _by_those(t, alone=alone),)
    }
    late = state.late
    if stmt.queue == "wgmma":
        late = {place: evolve(p, over=True) if p.since >= least else p for place, p in state.late.items()}
    return evolve(state, records=records, late=late)
