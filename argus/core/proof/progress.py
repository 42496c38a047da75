"""How far accesses have come: records of one agent's accesses, and what moves them on.

Part of `visibility`, which decides what a later access needs of an earlier one's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve, field, frozen

from argus.core.index import Index
from argus.core.ir import Buffer, Mma, Stmt, Wait
from argus.core.proof import maps
from argus.core.proof.access import Access
from argus.core.proof.maps import Described, Maps

Kind = Literal["write", "read", "bulk", "product"]
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
    """An access of a statement; `at` in terms of loop variables, primed for earlier iterations."""

    stmt: Stmt
    kind: Kind
    access: Access
    alone: bool


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
        key: (t, evolve(p, fenced=p.fenced or by_all or t.alone, looked=max(p.looked, side) if p.met else p.looked))
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
        key: (t, evolve(p, over=True, ended=p.ended or stmt.of == "all") if t.kind == kind and p.since >= least else p)
        for key, (t, p) in state.records.items()
    }
    late = state.late
    if stmt.queue == "wgmma":
        late = {place: evolve(p, over=True) if p.since >= least else p for place, p in state.late.items()}
    return evolve(state, records=records, late=late)
