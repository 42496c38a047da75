"""A discrete-event simulation of one processor and its resident blocks.

Thread groups execute statements in the order of their clocks. Each unit serves requests first in, first out; an
asynchronous operation completes when its unit has served it, and only the kernel's own waits wait for it. Barriers have
the semantics of `argus.core.barriers`. The simulation is deterministic and has no parameters fitted to a kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import assert_never

from argus.core.barriers import Mbarrier, arrive, complete_tx
from argus.core.cost.compiled_expr import Function, function
from argus.core.cost.costs import Cost
from argus.core.cost.group_state import Block, GroupState, MbarrierState, NamedBarrierState, Slot, Steps
from argus.core.cost.groups import Group
from argus.core.cost.scenario import Scenario, SimulationResult
from argus.core.cost.units import Units, commit, wait_for_queue
from argus.core.index import Cond, Index
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Buffer,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    If,
    Let,
    Map,
    Mma,
    One,
    Peek,
    Policy,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    View,
    Wait,
    walk,
)
from argus.core.walk import Value


class Simulation:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._fitted = scenario.machine.fitted
        self._units = Units(scenario)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._functions: dict[Index | Cond, Function] = {}
        self._notes: list[str] = []
        self._arrival_counts = _arrival_counts(scenario.kernel.body)
        self._states: list[GroupState] = []
        self._statements_left = scenario.statement_limit

    def run(self) -> SimulationResult:
        blocks = [Block() for _ in range(self._scenario.blocks)]
        for block in blocks:
            self._start(block, (self._scenario.groups.prologue,), 0.0)
        self._run_events()
        for block in blocks:
            self._start(block, self._scenario.groups.concurrent, block.end)
        self._run_events()
        unfinished = [state.at for state in self._states if not state.done]
        if not unfinished:
            for block in blocks:
                self._start(block, (self._scenario.groups.epilogue,), block.end)
            self._run_events()
        waits: defaultdict[tuple[str, Stmt], float] = defaultdict(float)
        for state in self._states:
            for stmt, cycles in state.waits.items():
                waits[state.group.name, stmt] += cycles / len(blocks)
        over = max(max(state.now, state.last) for state in self._states)
        deadlocked_at = unfinished[0] if unfinished and self._statements_left > 0 else None
        done = self._scenario.statement_limit - self._statements_left
        return SimulationResult(over, self._units.busy(), waits, tuple(self._notes), deadlocked_at, done)

    # -- time ------------------------------------------------------------------------------------------------

    def _start(self, block: Block, groups: tuple[Group, ...], now: float) -> None:
        for group in groups:
            known = {symbol: _scalar(value) for symbol, value in group.numbers.items()}
            state = GroupState(group, block, now, group.threads, known)
            state.steps = self._body(state, group.body, 0)
            self._states.append(state)
            self._resume(state)

    def _resume(self, state: GroupState) -> None:
        self._schedule(state.now, lambda _: self._step(state))

    def _schedule(self, time: float, what: Callable[[float], None]) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, what))

    def _run_events(self) -> None:
        while self._events and self._statements_left > 0:
            time, _, what = heappop(self._events)
            what(time)

    def _step(self, state: GroupState) -> None:
        for _ in state.steps:
            if not state.asleep:
                self._resume(state)
            return
        state.done = True
        state.block.end = max(state.block.end, state.now, state.last)

    def _value(self, state: GroupState, node: Index | Cond) -> int:
        found = self._functions.get(node)
        if found is None:
            found = self._functions[node] = function(node)
        try:
            return found(state.known)
        except (KeyError, ZeroDivisionError, IndexError):
            self._note("the model evaluates data-dependent values as 0")
            return 0

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _cost(self, me: GroupState, stmt: Stmt) -> Cost:
        return self._scenario.costs[stmt, me.group.name]

    # -- statements ------------------------------------------------------------------------------------------

    def _body(self, me: GroupState, body: tuple[Stmt, ...], depth: int) -> Steps:
        for stmt in body:
            me.at = stmt
            self._statements_left -= 1
            match stmt:
                case Let():
                    self._let(me, stmt)
                case Advance(counter=counter, by=by):
                    me.counters[counter] = me.counters.get(counter, 0) + self._value(me, by)
                case Await():
                    self._await(me, stmt)
                    yield
                case Arrive():
                    self._arrive(me, stmt)
                    yield
                case Copy():
                    self._copy(me, stmt)
                    yield
                case Mma():
                    self._units.multiply(me, stmt, self._cost(me, stmt))
                    yield
                case Wait():
                    wait_for_queue(me, stmt)
                    yield
                case One():
                    threads, me.threads = me.threads, 1
                    yield from self._body(me, stmt.body, depth)
                    me.threads = threads
                case If():
                    taken = stmt.then if self._value(me, stmt.cond) else stmt.otherwise
                    if taken:
                        yield from self._body(me, taken, depth)
                case For():
                    yield from self._loop(me, stmt, depth)
                case Map() | Fold():
                    self._units.compute(me, stmt, self._cost(me, stmt))
                    yield
                case Sync():
                    self._sync(me, stmt)
                    yield
                case Commit():
                    commit(me, stmt)
                case Fence():
                    me.wait(stmt, me.stored)
                    me.now += self._fitted.issue_overhead
                    yield
                case Edit():
                    self._note("the model charges nothing for edits of tensor maps")
                case Alloc() | Policy() | Tag() | Reset() | Assume() | Assert() | Roles():
                    continue
                case _:
                    assert_never(stmt)

    def _loop(self, me: GroupState, stmt: For, depth: int) -> Steps:
        start = self._value(me, stmt.start)
        values = range(start, self._value(me, stmt.stop), stmt.step)
        if depth == 0 and self._scenario.tiles is not None and has_loops(stmt):
            by = abs(stmt.step)
            values = values[: max(0, -(-(self._scenario.tiles - start % by) // by))]
        for value in values:
            me.known[stmt.symbol] = value
            yield from self._body(me, stmt.body, depth + 1)

    def _let(self, me: GroupState, stmt: Let) -> None:
        match stmt.value:
            case Peek(view=view) if view.buffer.space == "counter":
                me.known[stmt.symbol] = me.counters.get(view.buffer, 0)
            case Peek() | Atomic():
                self._note("the model evaluates data-dependent values as 0")
                me.known[stmt.symbol] = 0
            case _:
                assert_never(stmt.value)

    def _copy(self, me: GroupState, stmt: Copy) -> None:
        """Issue a copy; a TMA load completes on its mbarrier after the write to shared memory."""
        cost = self._cost(me, stmt)
        if stmt.signal is None:
            self._units.copy(me, stmt, cost)
            return
        mbarrier = self._mbarrier(me, stmt.signal)
        served = self._units.transfer(stmt, cost, self._units.issue(me, stmt, cost))

        def written(time: float) -> None:
            at = self._units.serve("shared", time, cost.shared) + self._fitted.landing_latency
            self._schedule(
                at, lambda now: self._update_mbarrier(mbarrier, complete_tx(mbarrier.barrier, int(cost.staged)), now)
            )

        self._schedule(served + self._units.latency(stmt), written)

    # -- barriers --------------------------------------------------------------------------------------------

    def _mbarrier(self, me: GroupState, view: View) -> MbarrierState:
        slot: Slot = view.buffer, sum(self._value(me, at) for at in view.at)
        found = me.block.mbarriers.get(slot)
        if found is None:
            found = me.block.mbarriers[slot] = MbarrierState(Mbarrier(self._arrival_counts.get(view.buffer, 1)))
        return found

    def _arrive(self, me: GroupState, stmt: Arrive) -> None:
        mbarrier = self._mbarrier(me, stmt.event)
        me.wait(stmt, me.stored)
        me.now += self._fitted.issue_overhead
        announced = self._value(me, stmt.bytes)
        self._update_mbarrier(mbarrier, arrive(mbarrier.barrier, stmt.count * me.threads, announced), me.now)

    def _update_mbarrier(self, mbarrier: MbarrierState, barrier: Mbarrier, now: float) -> None:
        fresh = barrier.phases > mbarrier.barrier.phases
        mbarrier.barrier = barrier
        if not fresh:
            return
        for phase, state in mbarrier.waiting[:]:
            if barrier.phases > phase:
                mbarrier.waiting.remove((phase, state))
                self._wake(state, now + self._fitted.barrier_latency)

    def _wake(self, state: GroupState, time: float) -> None:
        assert state.at is not None
        state.wait(state.at, time)
        state.asleep = False
        self._resume(state)

    def _await(self, me: GroupState, stmt: Await) -> None:
        mbarrier, phase = self._mbarrier(me, stmt.event), self._value(me, stmt.phase)
        if mbarrier.barrier.phases > phase:
            me.now += self._fitted.issue_overhead
            return
        me.asleep = True
        mbarrier.waiting.append((phase, me))

    def _sync(self, me: GroupState, stmt: Sync) -> None:
        """A thread barrier. The simulated block stands for its whole cluster: peers arrive when it does."""
        me.wait(stmt, me.stored)
        wanted = self._scenario.kernel.threads if stmt.threads is None else stmt.threads
        me.now += self._fitted.sync_latency
        if me.threads >= wanted or stmt.how == "wait":
            return
        barrier = me.block.named_barriers.setdefault(stmt.barrier, NamedBarrierState())
        barrier.arrived += me.threads
        if barrier.arrived >= wanted:
            barrier.arrived = 0
            for other in barrier.waiting:
                self._wake(other, me.now)
            barrier.waiting.clear()
        elif stmt.how == "meet":
            me.asleep = True
            barrier.waiting.append(me)


def has_loops(stmt: For) -> bool:
    return any(isinstance(each, For) for each in walk(stmt.body))


def _arrival_counts(body: tuple[Stmt, ...]) -> dict[Buffer, int]:
    """Arrival count of each barrier buffer."""
    return {stmt.buffer: stmt.count for stmt in walk(body) if isinstance(stmt, Alloc) and stmt.count is not None}


def _scalar(value: Value) -> int:
    """A scalar; of per-thread values, the first thread's."""
    return value if isinstance(value, int) else int(value.flat[0])
