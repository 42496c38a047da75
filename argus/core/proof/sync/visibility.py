"""Visibility between the generic and the asynchronous proxy, and lifetimes of operands in flight, for one agent.

Each access to shared memory, and the registers of each product, has a progress record, propagated to a fixpoint over
all loops, tiles included. No record is dropped: each later access checks the progress that it requires.

    ordinary write   fenced by its writers; a barrier of all; published: fence and then barrier
    cp.async         groups committed since; complete for its thread; then as an ordinary write
    ordinary read    a barrier of all
    bulk store       groups committed since; complete for its issuer; then a barrier of all
    product          products issued since; complete; then a barrier of all

Sources: NVIDIA PTX ISA, asynchronous proxy, `cp.async.bulk`, `wgmma.mma_async`; proof-methods 4 (the automaton of the
asynchronous proxy, its strict rule). That a warp's wait covers the whole warpgroup's product is trap T5, assumed.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.check import claim_views
from argus.core.index import Symbol
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
    MAX_GROUPS,
    Check,
    Key,
    Kind,
    Progress,
    SharedAccess,
    State,
    after_barrier,
    after_commit,
    after_proxy_fence,
    after_wait,
    key_of,
    record_access,
)
from argus.core.proof.sync.stages import anchored, may_conflict
from argus.core.walk import substitute, symbols

_OLDEST = 8
"""Number of iterations after which accesses to stages are no longer distinguished."""


@define(eq=False)
class Visibility:
    """One agent's body. barrier: of all its threads. ring_buffers: buffers that the ring protocol covers instead.

    several: the statements are those of several agents with one barrier, each of which executes all of them.
    """

    accesses: Accesses
    threads: int
    barrier: str
    ring_buffers: frozenset[Buffer]
    several: bool = False
    found: dict[tuple[str, str, Stmt, Stmt | None], Check] = field(
        factory=dict[tuple[str, str, Stmt, "Stmt | None"], Check]
    )
    _steps: dict[Stmt, Step] = field(factory=dict[Stmt, Step], init=False)
    _past: set[Symbol] = field(factory=set[Symbol], init=False)
    """Unknown numbers of earlier iterations, of all of them alike: records would have no end if each had its own."""

    def walk(self, body: tuple[Stmt, ...], state: State, *, alone: bool) -> State:
        for stmt in body:
            state = self._through(stmt, state, alone=alone)
        return state

    def _through(self, stmt: Stmt, state: State, *, alone: bool) -> State:
        match stmt:
            case For():
                return self._loop(stmt, state, alone=alone)
            case If(then=then, otherwise=otherwise):
                return self.walk(then, state, alone=alone).join(self.walk(otherwise, state, alone=alone))
            case One(body=body):
                return self.walk(body, state, alone=True)
            case Sync(barrier=barrier, how="meet", threads=threads) if barrier == self.barrier and not alone:
                return after_barrier(state) if threads in (None, self.threads) else state
            case Fence(kind="async_proxy"):
                return after_proxy_fence(state, by_all=not alone or self.threads == 1)
            case Fence(kind="wgmma"):
                return evolve(state, dirty=frozenset[Buffer]())
            case Edit():
                for found in tensor_map_edits.edit_checks(stmt, state, alone=alone):
                    self.record(found)
                return evolve(state, maps=tensor_maps.after_edit(state.maps, stmt))
            case Commit(queue="bulk"):
                return after_commit(state, "bulk")
            case Commit(queue="cp_async"):
                return after_commit(state, "staged", alone=alone)
            case Wait(queue="bulk" | "wgmma" | "cp_async"):
                return after_wait(state, stmt, alone=alone)
            case Copy() | Map() | Fold() | Mma():
                return self._accessed(stmt, state, alone=alone)
            case Assert(claim=claim):
                claimed = {view.buffer for view in claim_views(claim)}
                for (mma, buffer), progress in state.late.items():
                    if buffer in claimed:
                        self._check_registers_free(stmt, buffer, mma, good=progress.reads_done)
                return state
            case Alloc(buffer=buffer) if buffer.space == "register":
                return evolve(state, dirty=state.dirty | {buffer})
            case _:
                assert not bodies(stmt)
                return state

    def _loop(self, loop: For, entry: State, *, alone: bool) -> State:
        """Iterates to the fixpoint: records only lose progress, and progress is finite."""
        state = anchored(self.accesses, entry, loop)
        while True:
            after = self.walk(loop.body, state, alone=alone)
            following = state.join(self._earlier(after, loop))
            if following.equals(state):
                return entry.join(after)
            state = following

    def _earlier(self, state: State, loop: For) -> State:
        """The records at the next iteration; variables of inner loops are primed, as their runs are over."""
        inside = {stmt.symbol for stmt in walk(loop.body) if isinstance(stmt, For)}
        unknown = inside | {
            each
            for touched, _ in state.records.values()
            for at in touched.access.view.at
            for each in symbols(at)
            if each.kind == "fresh" and each not in self._past
        }
        past = {each: algebra.sym(_primed(each)) for each in unknown}
        self._past |= {_primed(each) for each in unknown if each.kind == "fresh"}
        before: Shift = {**past, loop.symbol: algebra.sub(algebra.sym(loop.symbol), loop.step)}
        long_ago: Shift = {**past, loop.symbol: algebra.sym(_primed(loop.symbol))}
        records: dict[Key, tuple[SharedAccess, Progress]] = {}
        for now, progress in state.records.values():
            touched = self._in_the_past(now, before if now.age < _OLDEST else long_ago)
            key = key_of(touched)
            known = records.get(key)
            records[key] = (touched, progress if known is None else known[1].join(progress))
        return State(records, state.late, state.dirty, tensor_maps.previous_iteration(state.maps, long_ago))

    def _in_the_past(self, touched: SharedAccess, past: Shift) -> SharedAccess:
        view = touched.access.view
        if not any(past.keys() & symbols(at) for at in view.at):
            return touched
        moved = evolve(view, at=tuple(substitute(at, past) for at in view.at))
        return evolve(touched, access=self.accesses.with_view(touched.access, moved), age=touched.age + 1)

    # -- accesses ------------------------------------------------------------------------------------------

    def _accessed(self, stmt: Copy | Map | Fold | Mma, state: State, *, alone: bool) -> State:
        step = self._steps.setdefault(stmt, Step(stmt, algebra.TRUE, 0, 0, None))
        state = self._registers(stmt, self.accesses.of(step), state)
        for access in self.accesses.of(step):
            buffer = access.view.buffer
            if buffer.space == "shared" and buffer not in self.ring_buffers:
                touched = SharedAccess(stmt, _kind(stmt, access), access, alone)
                self._check_threads(touched)
                for earlier, progress in tuple(state.records.values()):
                    self._check_pair(touched, earlier, progress)
        if isinstance(stmt, Copy) and stmt.through is not None:
            self.record(tensor_map_edits.copy_check(stmt, stmt.through, state, alone=alone))
        for access in self.accesses.of(step):
            buffer = access.view.buffer
            if buffer.space == "shared" and buffer not in self.ring_buffers:
                touched = SharedAccess(stmt, _kind(stmt, access), access, alone)
                state = record_access(state, touched)
        return state

    def _check_threads(self, touched: SharedAccess) -> None:
        """I5: no two threads of one statement write one cell, since nothing orders them."""
        if touched.kind not in ("write", "staged"):
            return
        own = overlap(touched.access, touched.access, {})
        name = touched.access.view.buffer.name
        good = own is not None and not own.cells.of_two_threads
        reason = "" if own is not None else "its address does not separate into slot and cell"
        what = f"no two threads of the statement write one cell of `{name}`"
        self.record(Check("I5", what, touched.stmt, None, good, "give each thread its own cells", reason))

    def _check_pair(self, later: SharedAccess, earlier: SharedAccess, progress: Progress) -> None:
        if later.access.view.buffer is not earlier.access.view.buffer or not may_conflict(
            later, earlier, agents=self.several
        ):
            return
        name = later.access.view.buffer.name
        match later.kind, earlier.kind:
            case (("bulk" | "product"), ("write" | "staged")):
                self._check_published(later, earlier, progress, name)
            case (("write" | "staged"), "bulk"):
                self._note(
                    "I13",
                    f"the bulk store has read `{name}` before it is written again",
                    later,
                    earlier,
                    good=progress.reads_done and progress.synced,
                    help_=_BULK,
                )
            case (("write" | "staged"), "product"):
                self._note(
                    "I10",
                    f"products that read `{name}` are complete before it is written again",
                    later,
                    earlier,
                    good=progress.reads_done and progress.synced,
                    help_=_PRODUCT,
                )
            case (("read" | "write" | "staged"), "staged"):
                self._note(
                    "I31",
                    f"the copy into `{name}` is complete, and a barrier follows, before the next access",
                    later,
                    earlier,
                    good=progress.reads_done and progress.synced,
                    help_=_STAGED,
                )
            case "read", "write":
                self._note(
                    "I5",
                    f"a barrier orders the write and the read of `{name}`",
                    later,
                    earlier,
                    good=progress.synced,
                    help_=_SYNC,
                )
            case (("write" | "staged"), "read"):
                self._note(
                    "I36",
                    f"a barrier orders the read and the write of `{name}`",
                    later,
                    earlier,
                    good=progress.synced,
                    help_=_SYNC,
                )
            case (("write" | "staged"), "write"):
                self._note(
                    "I5", f"a barrier orders two writes of `{name}`", later, earlier, good=progress.synced, help_=_SYNC
                )
            case _:
                return

    def _check_published(self, later: SharedAccess, earlier: SharedAccess, progress: Progress, name: str) -> None:
        what = f"a proxy fence by the writers of `{name}` and then a barrier precede the asynchronous read"
        mine = progress.synced and progress.reader_fence >= (1 if later.alone else 2)
        presumed = PATH_RULE if mine and not progress.published else ""
        self._note("I12", what, later, earlier, good=mine or progress.published, help_=_FENCE, presumed=presumed)

    def _note(
        self,
        code: str,
        what: str,
        later: SharedAccess,
        earlier: SharedAccess,
        *,
        good: bool,
        help_: str,
        presumed: str = "",
    ) -> None:
        self.record(Check(code, what, later.stmt, earlier.stmt, good, help_, presumed=presumed))

    # -- registers -----------------------------------------------------------------------------------------

    def _registers(self, stmt: Copy | Map | Fold | Mma, accesses: tuple[Access, ...], state: State) -> State:
        """I11: registers of products in flight are not accessed, and `wgmma.fence` precedes a product."""
        product = isinstance(stmt, Mma) and stmt.atom.completion.queue == "wgmma"
        touched = {access.view.buffer for access in accesses if access.view.buffer.space == "register"}
        for (mma, buffer), progress in state.late.items():
            if (
                buffer in touched
                and not progress.reads_done
                and not (product and _continues_accumulation(stmt, mma, buffer))
            ):
                self._check_registers_free(stmt, buffer, mma, good=False)
            elif buffer in touched and not product:
                self._check_registers_free(stmt, buffer, mma, good=True)
        if not product:
            return evolve(state, dirty=state.dirty | touched)
        assert isinstance(stmt, Mma)
        for buffer in touched:
            self._check_wgmma_fence(stmt, buffer, good=buffer not in state.dirty)
        further = after_commit(state, "product")
        late = {place: evolve(p, since=min(p.since + 1, MAX_GROUPS)) for place, p in further.late.items()}
        late |= {(stmt, buffer): Progress() for buffer in touched}
        return evolve(further, late=late)

    def _check_registers_free(self, stmt: Stmt, buffer: Buffer, mma: Mma, *, good: bool) -> None:
        what = f"the product that uses the registers of `{buffer.name}` is complete before they are accessed"
        self.record(Check("I11", what, stmt, mma, good, "wait for the product: `wgmma.wait(pending=0)`"))

    def _check_wgmma_fence(self, stmt: Mma, buffer: Buffer, *, good: bool) -> None:
        what = f"`wgmma.fence` lies between the last ordinary write of `{buffer.name}` and the product"
        self.record(Check("I11", what, stmt, None, good, "put a wgmma fence before the product"))

    def record(self, found: Check) -> None:
        """Adds a result; of results for the same pair, a failure wins, and then one that needs an assumption."""
        key = (found.invariant, found.what, found.stmt, found.other)
        before = self.found.get(key)
        if before is None or (before.good and not (before.presumed and found.good)):
            self.found[key] = found


PATH_RULE = "a proxy fence of the reader, after it has met the writers, covers what they wrote (proxy-path-rule)"
"""The assumption of proofs without a writer's fence: the text of the PTX model is disputed (docs/soundness.md)."""

_SYNC = "put a `sync()` of the agent between the two"
_FENCE = 'let every writer run `fence("async proxy")` after its writes, then `sync()`, before the copy or product'
_STAGED = "close the group, `cp_async.commit()`, wait for it, `cp_async.wait(...)`, and then `sync()`"
_BULK = 'let the thread that issued the store wait, `bulk.wait(n, of="reads")`, and then `sync()`'
_PRODUCT = "wait for the products, `wgmma.wait(...)`, and then `sync()`"


def _continues_accumulation(stmt: Stmt, mma: Mma, buffer: Buffer) -> bool:
    """Whether a product accumulates into the tile of one in flight; products of one shape are in order."""
    return isinstance(stmt, Mma) and stmt.target.buffer is buffer is mma.target.buffer and stmt.atom == mma.atom


def _kind(stmt: Stmt, access: Access) -> Kind:
    if isinstance(stmt, Mma):
        return "product" if stmt.atom.proxy == "async" else "read"
    if isinstance(stmt, Copy) and stmt.atom.proxy == "async":
        return "bulk"
    if isinstance(stmt, Copy) and stmt.atom.completion.queue == "cp_async" and access.mode == "write":
        return "staged"
    return access.mode


def _primed(symbol: Symbol) -> Symbol:
    return Symbol(f"{symbol.name}'", symbol.kind, symbol.low, symbol.high)


def visibility_obligations(
    accesses: Accesses,
    body: tuple[Stmt, ...],
    threads: int,
    barrier: str,
    ring_buffers: frozenset[Buffer],
    *,
    several: bool = False,
) -> Iterator[Obligation]:
    """The obligations of an agent of `threads` threads, and that no bulk store is still reading when it ends.

    several: of several agents, as in `Visibility`.
    """
    walk = Visibility(accesses, threads, barrier, ring_buffers, several)
    end = walk.walk(body, State(), alone=threads == 1)
    for touched, progress in end.records.values():
        if touched.kind == "bulk":
            name = touched.access.view.buffer.name
            what = f"the bulk store has read `{name}` before the block may end"
            walk.record(Check("I13", what, touched.stmt, None, progress.reads_done, "end with `bulk.wait(0)`"))
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
