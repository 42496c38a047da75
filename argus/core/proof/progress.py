"""How far accesses have come: records of one agent's accesses, and what moves them on.

Part of `visibility`, which decides what a later access needs of an earlier one's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve, field, frozen

from argus.core.index import Index
from argus.core.ir import Buffer, Mma, Stmt, Wait
from argus.core.proof.access import Access

Kind = Literal["write", "read", "bulk", "product"]
MOST = 16
"""Groups since an operation that are told apart; more is no different from so many."""


@frozen
class Progress:
    """How far an access has come, at the least on every path. since: groups committed or products issued since.

    looked: a fence of the reader's side only lies after the meeting.
    """

    fenced: bool = False
    met: bool = False
    published: bool = False
    looked: bool = False
    since: int = 0
    over: bool = False

    def least(self, other: Progress) -> Progress:
        return Progress(
            self.fenced and other.fenced,
            self.met and other.met,
            self.published and other.published,
            self.looked and other.looked,
            min(self.since, other.since),
            self.over and other.over,
        )


@frozen(eq=False)
class Touched:
    """An access of a statement; `at` in terms of loop variables, primed for earlier iterations."""

    stmt: Stmt
    kind: Kind
    access: Access
    alone: bool


Key = tuple[Stmt, Kind, Buffer, tuple[Index, ...]]


@frozen(eq=False)
class State:
    """records: accesses to shared memory. late: products whose registers are still in use. dirty: register tiles that
    ordinary code has written since the last `wgmma.fence`.
    """

    records: Mapping[Key, tuple[Touched, Progress]] = field(factory=dict[Key, "tuple[Touched, Progress]"])
    late: Mapping[tuple[Mma, Buffer], Progress] = field(factory=dict[tuple[Mma, Buffer], Progress])
    dirty: frozenset[Buffer] = frozenset()

    def same(self, other: State) -> bool:
        mine = {key: progress for key, (_, progress) in self.records.items()}
        theirs = {key: progress for key, (_, progress) in other.records.items()}
        return mine == theirs and self.late == other.late and self.dirty == other.dirty

    def joined(self, other: State) -> State:
        """What holds on both paths at least."""
        records = dict(self.records)
        for key, (touched, progress) in other.records.items():
            mine = records.get(key)
            records[key] = (touched, progress if mine is None else mine[1].least(progress))
        late = dict(self.late)
        for place, progress in other.late.items():
            late[place] = late[place].least(progress) if place in late else progress
        return State(records, late, self.dirty | other.dirty)


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
    """A fence after the writes by those who wrote; of the others it is one of the reader's side."""
    records = {
        key: (t, evolve(p, fenced=p.fenced or by_all or t.alone, looked=p.looked or p.met))
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def counted(state: State, kind: Kind) -> State:
    records = {
        key: (t, evolve(p, since=min(p.since + 1, MOST)) if t.kind == kind else p)
        for key, (t, p) in state.records.items()
    }
    return evolve(state, records=records)


def waited(state: State, stmt: Wait) -> State:
    """All groups but the youngest `pending` are over. A bulk group begins to count when it is committed."""
    if stmt.of == "reads" and stmt.queue != "bulk":
        return state
    kind, least = ("bulk", stmt.pending + 1) if stmt.queue == "bulk" else ("product", stmt.pending)
    records = {
        key: (t, evolve(p, over=True) if t.kind == kind and p.since >= least else p)
        for key, (t, p) in state.records.items()
    }
    late = state.late
    if stmt.queue == "wgmma":
        late = {place: evolve(p, over=True) if p.since >= least else p for place, p in state.late.items()}
    return evolve(state, records=records, late=late)
