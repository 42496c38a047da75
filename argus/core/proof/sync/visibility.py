"""What an asynchronous unit may see, and when others may touch what it still uses: one agent, all its loops at once.

Each access to shared memory, and each product's registers, leaves a record of how far it has come; the records are
followed to a fixpoint, so that a tile's end meets the next one's beginning. No record is dropped: what a later access
needs of it is checked there.

    ordinary write   fenced by its writers, met by all, published: fenced and then met
    cp.async         groups committed since; over for its thread; then as an ordinary write
    ordinary read    met by all
    bulk store       committed groups since; over for its issuer; then met by all
    product          products since; over; then met by all

Sources: NVIDIA PTX ISA, asynchronous proxy, `cp.async.bulk`, `wgmma.mma_async`; proof-methods 4 (the automaton of the
asynchronous proxy, its strict rule). That a warp's wait covers the whole warpgroup's product is trap T5, assumed.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.check import claim_views
from argus.core.index import And, Bin, Cmp, Cond, Const, Index, Symbol
from argus.core.ir import (
    Alloc,
    Assert,
    Buffer,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    If,
    Map,
    Mma,
    One,
    Stmt,
    Sync,
    Wait,
    bodies,
    walk,
)
from argus.core.proof.dataflow.access import Access, Accesses, overlap
from argus.core.proof.dataflow.timeline import Shift, Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync import tensor_map_edits, tensor_maps
from argus.core.proof.sync.progress import (
    MOST,
    Found,
    Key,
    Kind,
    Progress,
    State,
    Touched,
    counted,
    fenced,
    key_of,
    met,
    recorded,
    waited,
)
from argus.core.walk import substitute, symbols

_OLDEST = 8
"""Iterations after which accesses to slots are no longer told apart."""


@define(eq=False)
class Visibility:
    """The walk over one agent's body. meets: the barrier of all its threads. elsewhere: buffers that a ring's protocol
    answers for.
    """

    accesses: Accesses
    threads: int
    meets: str
    elsewhere: frozenset[Buffer]
    found: dict[tuple[str, str, Stmt, Stmt | None], Found] = field(
        factory=dict[tuple[str, str, Stmt, "Stmt | None"], Found]
    )
    _steps: dict[Stmt, Step] = field(factory=dict[Stmt, Step], init=False)

    def walk(self, body: tuple[Stmt, ...], state: State, *, alone: bool) -> State:
        for stmt in body:
            state = self._through(stmt, state, alone=alone)
        return state

    def _through(self, stmt: Stmt, state: State, *, alone: bool) -> State:
        match stmt:
            case For():
                return self._loop(stmt, state, alone=alone)
            case If(then=then, otherwise=otherwise):
                return self.walk(then, state, alone=alone).joined(self.walk(otherwise, state, alone=alone))
            case One(body=body):
                return self.walk(body, state, alone=True)
            case Sync(barrier=barrier, how="meet", threads=threads) if barrier == self.meets and not alone:
                return met(state) if threads in (None, self.threads) else state
            case Fence(kind="async_proxy"):
                return fenced(state, by_all=not alone or self.threads == 1)
            case Fence(kind="wgmma"):
                return evolve(state, dirty=frozenset[Buffer]())
            case Edit():
                for found in tensor_map_edits.of_edit(stmt, state, alone=alone):
                    self.keep(found)
                return evolve(state, maps=tensor_maps.edited(state.maps, stmt))
            case Commit(queue="bulk"):
                return counted(state, "bulk")
            case Commit(queue="cp_async"):
                return counted(state, "staged", alone=alone)
            case Wait(queue="bulk" | "wgmma" | "cp_async"):
                return waited(state, stmt, alone=alone)
            case Copy() | Map() | Fold() | Mma():
                return self._accessed(stmt, state, alone=alone)
            case Assert(claim=claim):
                spoken_of = {view.buffer for view in claim_views(claim)}
                for (mma, buffer), progress in state.late.items():
                    if buffer in spoken_of:
                        self._rest(stmt, buffer, mma, good=progress.over)
                return state
            case Alloc(buffer=buffer) if buffer.space == "register":
                return evolve(state, dirty=state.dirty | {buffer})
            case _:
                assert not bodies(stmt)
                return state

    def _loop(self, loop: For, entry: State, *, alone: bool) -> State:
        """To the least fixpoint: records only lose progress, which is finite."""
        state = entry
        while True:
            after = self.walk(loop.body, state, alone=alone)
            following = state.joined(self._earlier(after, loop))
            if following.same(state):
                return entry.joined(after)
            state = following

    def _earlier(self, state: State, loop: For) -> State:
        """The records after an iteration as the next one sees them.

        What a loop inside touched, it touched in a run of its own, of which nothing is told.
        """
        inside = {stmt.symbol for stmt in walk(loop.body) if isinstance(stmt, For)}
        unknown = inside | {
            each
            for touched, _ in state.records.values()
            for at in touched.access.view.at
            for each in symbols(at)
            if each.kind == "fresh"
        }
        past = {each: _primed(each) for each in unknown}
        before: Shift = {**past, loop.symbol: algebra.sub(algebra.sym(loop.symbol), loop.step)}
        long_ago: Shift = {**past, loop.symbol: _primed(loop.symbol)}
        records: dict[Key, tuple[Touched, Progress]] = {}
        for now, progress in state.records.values():
            touched = self._in_the_past(now, before if now.age < _OLDEST else long_ago)
            key = key_of(touched)
            known = records.get(key)
            records[key] = (touched, progress if known is None else known[1].least(progress))
        return State(records, state.late, state.dirty, tensor_maps.in_the_past(state.maps, long_ago))

    def _in_the_past(self, touched: Touched, past: Shift) -> Touched:
        view = touched.access.view
        if not any(past.keys() & symbols(at) for at in view.at):
            return touched
        moved = evolve(view, at=tuple(substitute(at, past) for at in view.at))
        return evolve(touched, access=self.accesses.moved(touched.access, moved), age=touched.age + 1)

    # -- accesses ------------------------------------------------------------------------------------------

    def _accessed(self, stmt: Copy | Map | Fold | Mma, state: State, *, alone: bool) -> State:
        step = self._steps.setdefault(stmt, Step(stmt, algebra.TRUE, 0, 0, None))
        state = self._registers(stmt, self.accesses.of(step), state)
        for access in self.accesses.of(step):
            buffer = access.view.buffer
            if buffer.space == "shared" and buffer not in self.elsewhere:
                touched = Touched(stmt, _kind(stmt, access), access, alone)
                self._alone(touched)
                for earlier, progress in tuple(state.records.values()):
                    self._judge(touched, earlier, progress)
        if isinstance(stmt, Copy) and stmt.through is not None:
            self.keep(tensor_map_edits.of_copy(stmt, stmt.through, state, alone=alone))
        for access in self.accesses.of(step):
            buffer = access.view.buffer
            if buffer.space == "shared" and buffer not in self.elsewhere:
                touched = Touched(stmt, _kind(stmt, access), access, alone)
                state = recorded(state, touched)
        return state

    def _alone(self, touched: Touched) -> None:
        """No two threads of one statement write one cell: nothing orders them."""
        if touched.kind not in ("write", "staged"):
            return
        own = overlap(touched.access, touched.access, {})
        name = touched.access.view.buffer.name
        good = own is not None and not own.cells.of_two_threads
        reason = "" if own is not None else "its address does not separate into slot and cell"
        what = f"no two threads of the statement write one cell of `{name}`"
        self.keep(Found("I5", what, touched.stmt, None, good, "give each thread cells of its own", reason))

    def _judge(self, later: Touched, earlier: Touched, progress: Progress) -> None:
        if later.access.view.buffer is not earlier.access.view.buffer or not _meet(later, earlier):
            return
        name = later.access.view.buffer.name
        match later.kind, earlier.kind:
            case (("bulk" | "product"), ("write" | "staged")):
                self._published(later, earlier, progress, name)
            case (("write" | "staged"), "bulk"):
                self._note(
                    "I13",
                    f"the bulk store has read `{name}` before it is written again",
                    later,
                    earlier,
                    good=progress.over and progress.met,
                    help_=_BULK,
                )
            case (("write" | "staged"), "product"):
                self._note(
                    "I10",
                    f"products that read `{name}` are over before it is written again",
                    later,
                    earlier,
                    good=progress.over and progress.met,
                    help_=_PRODUCT,
                )
            case (("read" | "write" | "staged"), "staged"):
                self._note(
                    "I31",
                    f"the copy into `{name}` is over, and met, before it is touched again",
                    later,
                    earlier,
                    good=progress.over and progress.met,
                    help_=_STAGED,
                )
            case "read", "write":
                self._note(
                    "I5",
                    f"a meeting orders the write and the read of `{name}`",
                    later,
                    earlier,
                    good=progress.met,
                    help_=_SYNC,
                )
            case (("write" | "staged"), "read"):
                self._note(
                    "I36",
                    f"a meeting orders the read and the write of `{name}`",
                    later,
                    earlier,
                    good=progress.met,
                    help_=_SYNC,
                )
            case (("write" | "staged"), "write"):
                self._note(
                    "I5", f"a meeting orders two writes of `{name}`", later, earlier, good=progress.met, help_=_SYNC
                )
            case _:
                return

    def _published(self, later: Touched, earlier: Touched, progress: Progress, name: str) -> None:
        what = f"writes of `{name}` are fenced by their writers, who then meet, before the asynchronous read"
        mine = progress.met and progress.looked >= (1 if later.alone else 2)
        presumed = PATH_RULE if mine and not progress.published else ""
        self._note("I12", what, later, earlier, good=mine or progress.published, help_=_FENCE, presumed=presumed)

    def _note(
        self, code: str, what: str, later: Touched, earlier: Touched, *, good: bool, help_: str, presumed: str = ""
    ) -> None:
        self.keep(Found(code, what, later.stmt, earlier.stmt, good, help_, presumed=presumed))

    # -- registers -----------------------------------------------------------------------------------------

    def _registers(self, stmt: Copy | Map | Fold | Mma, accesses: tuple[Access, ...], state: State) -> State:
        """Registers of products in flight, and those that a product must be told of."""
        product = isinstance(stmt, Mma) and stmt.atom.completion.queue == "wgmma"
        touched = {access.view.buffer for access in accesses if access.view.buffer.space == "register"}
        for (mma, buffer), progress in state.late.items():
            if buffer in touched and not progress.over and not (product and _continues(stmt, mma, buffer)):
                self._rest(stmt, buffer, mma, good=False)
            elif buffer in touched and not product:
                self._rest(stmt, buffer, mma, good=True)
        if not product:
            return evolve(state, dirty=state.dirty | touched)
        assert isinstance(stmt, Mma)
        for buffer in touched:
            self._told(stmt, buffer, good=buffer not in state.dirty)
        further = counted(state, "product")
        late = {place: evolve(p, since=min(p.since + 1, MOST)) for place, p in further.late.items()}
        late |= {(stmt, buffer): Progress() for buffer in touched}
        return evolve(further, late=late)

    def _rest(self, stmt: Stmt, buffer: Buffer, mma: Mma, *, good: bool) -> None:
        what = f"the product that uses `{buffer.name}` is over before it is touched"
        self.keep(Found("I11", what, stmt, mma, good, "wait for the product: `wgmma.wait(pending=0)`"))

    def _told(self, stmt: Mma, buffer: Buffer, *, good: bool) -> None:
        what = f"`wgmma.fence` lies between the last ordinary write of `{buffer.name}` and the product"
        self.keep(Found("I11", what, stmt, None, good, "put a wgmma fence before the product"))

    def keep(self, found: Found) -> None:
        key = (found.invariant, found.what, found.stmt, found.other)
        before = self.found.get(key)
        if before is None or (before.good and not (before.presumed and found.good)):
            self.found[key] = found


PATH_RULE = "a proxy fence of the reader, after it has met the writers, covers what they wrote (proxy-path-rule)"
"""What a proof rests on where no writer fences: the text of the PTX model is disputed there (docs/soundness.md)."""

_SYNC = "put a `sync()` of the agent between the two"
_FENCE = 'let every writer run `fence("async proxy")` after its writes, then `sync()`, before the copy or product'
_STAGED = "close the group, `cp_async.commit()`, wait for it, `cp_async.wait(...)`, and then `sync()`"
_BULK = 'let the thread that issued the store wait, `bulk.wait(n, of="reads")`, and then `sync()`'
_PRODUCT = "wait for the products, `wgmma.wait(...)`, and then `sync()`"


def _continues(stmt: Stmt, mma: Mma, buffer: Buffer) -> bool:
    """Whether a product adds to the accumulator of one in flight: of one shape, these follow each other in order."""
    return isinstance(stmt, Mma) and stmt.target.buffer is buffer is mma.target.buffer and stmt.atom == mma.atom


def _kind(stmt: Stmt, access: Access) -> Kind:
    if isinstance(stmt, Mma):
        return "product" if stmt.atom.proxy == "async" else "read"
    if isinstance(stmt, Copy) and stmt.atom.proxy == "async":
        return "bulk"
    if isinstance(stmt, Copy) and stmt.atom.completion.queue == "cp_async" and access.mode == "write":
        return "staged"
    return access.mode


def _meet(later: Touched, earlier: Touched) -> bool:
    """Whether two accesses may touch one cell, from two threads if both are ordinary."""
    met = overlap(later.access, earlier.access, {})
    if met is None:
        return True
    if met.slots is algebra.FALSE or _of_other_slots(met.slots):
        return False
    if not met.cells.shared:
        return False
    ordinary = later.kind in ("read", "write") and earlier.kind in ("read", "write")
    return not ordinary or met.cells.of_two_threads


def _of_other_slots(slots: Cond) -> bool:
    """Whether the remainders that choose two slots differ whatever the iteration: their terms are a number apart."""
    parts = slots.parts if isinstance(slots, And) else (slots,)
    return any(
        isinstance(part, Cmp)
        and part.op == "=="
        and isinstance(part.left, Bin)
        and isinstance(part.right, Bin)
        and _differ(part.left, part.right)
        for part in parts
    )


def _differ(one: Bin, other: Bin) -> bool:
    if (one.op, other.op) != ("%", "%") or one.right is not other.right or not isinstance(one.right, Const):
        return False
    distance = algebra.sub(one.left, other.left)
    return isinstance(distance, Const) and distance.value % one.right.value != 0


def _primed(symbol: Symbol) -> Index:
    """What a symbol stood for in an iteration long ago."""
    return algebra.sym(Symbol(f"{symbol.name}'", symbol.kind, symbol.low, symbol.high))


def obligations(
    accesses: Accesses, body: tuple[Stmt, ...], threads: int, meets: str, elsewhere: frozenset[Buffer]
) -> Iterator[Obligation]:
    """What one agent of so many threads owes for its own accesses, and that none is under way when it ends."""
    walk = Visibility(accesses, threads, meets, elsewhere)
    end = walk.walk(body, State(), alone=threads == 1)
    for touched, progress in end.records.values():
        if touched.kind == "bulk":
            name = touched.access.view.buffer.name
            what = f"the bulk store has read `{name}` before the block may end"
            walk.keep(Found("I13", what, touched.stmt, None, progress.over, "end with `bulk.wait(0)`"))
    for found in walk.found.values():
        yield Obligation(
            found.invariant,
            found.what,
            found.stmt,
            algebra.TRUE if found.good else algebra.FALSE,
            (),
            found.other,
            found.unknown if not found.good else "",
            help=found.help,
            presumed=found.presumed,
        )
