"""One processor with its blocks, played through: who waits for whom, and which unit is busy when.

Groups of threads run their statements in the order of their own clocks. A unit serves one request after the other; what
is asynchronous ends when its unit has served it, and is waited for where the kernel says so. Barriers are those of
`argus.core.barriers`: one meaning. Nothing is drawn at random, and nothing is fitted to a kernel.
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
from argus.core.cost.units import Units, commit, settle
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
    """A script while it is played."""

    def __init__(self, script: Scenario) -> None:
        self._script = script
        self._fitted = script.machine.fitted
        self._units = Units(script)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._functions: dict[Index | Cond, Function] = {}
        self._notes: list[str] = []
        self._counts = _counts(script.kernel.body)
        self._players: list[GroupState] = []
        self._left = script.patience

    def play(self) -> SimulationResult:
        blocks = [Block() for _ in range(self._script.blocks)]
        for block in blocks:
            self._start(block, (self._script.cast.before,), 0.0)
        self._go()
        for block in blocks:
            self._start(block, self._script.cast.beside, block.over)
        self._go()
        going = [player.at for player in self._players if not player.done]
        if not going:
            for block in blocks:
                self._start(block, (self._script.cast.after,), block.over)
            self._go()
        waits: defaultdict[tuple[str, Stmt], float] = defaultdict(float)
        for player in self._players:
            for stmt, cycles in player.waits.items():
                waits[player.group.name, stmt] += cycles / len(blocks)
        over = max(max(player.now, player.last) for player in self._players)
        stuck = going[0] if going and self._left > 0 else None
        done = self._script.patience - self._left
        return SimulationResult(over, self._units.busy(), waits, tuple(self._notes), stuck, done)

    # -- time ------------------------------------------------------------------------------------------------

    def _start(self, block: Block, groups: tuple[Group, ...], now: float) -> None:
        for group in groups:
            known = {symbol: _one(value) for symbol, value in group.numbers.items()}
            player = GroupState(group, block, now, group.threads, known)
            player.steps = self._body(player, group.body, 0)
            self._players.append(player)
            self._resume(player)

    def _resume(self, player: GroupState) -> None:
        self._at(player.now, lambda _: self._step(player))

    def _at(self, time: float, what: Callable[[float], None]) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, what))

    def _go(self) -> None:
        while self._events and self._left > 0:
            time, _, what = heappop(self._events)
            what(time)

    def _step(self, player: GroupState) -> None:
        for _ in player.steps:
            if not player.asleep:
                self._resume(player)
            return
        player.done = True
        player.block.over = max(player.block.over, player.now, player.last)

    def _value(self, player: GroupState, node: Index | Cond) -> int:
        found = self._functions.get(node)
        if found is None:
            found = self._functions[node] = function(node)
        try:
            return found(player.known)
        except (KeyError, ZeroDivisionError, IndexError):
            self._note("what data decide is taken to be 0")
            return 0

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _cost(self, me: GroupState, stmt: Stmt) -> Cost:
        return self._script.costs[stmt, me.group.name]

    # -- statements ------------------------------------------------------------------------------------------

    def _body(self, me: GroupState, body: tuple[Stmt, ...], depth: int) -> Steps:
        for stmt in body:
            me.at = stmt
            self._left -= 1
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
                    settle(me, stmt)
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
                    self._meet(me, stmt)
                    yield
                case Commit():
                    commit(me, stmt)
                case Fence():
                    me.wait(stmt, me.stored)
                    me.now += self._fitted.overhead
                    yield
                case Edit():
                    self._note("edits of tensor maps take no time here")
                case Alloc() | Policy() | Tag() | Reset() | Assume() | Assert() | Roles():
                    continue
                case _:
                    assert_never(stmt)

    def _loop(self, me: GroupState, stmt: For, depth: int) -> Steps:
        start = self._value(me, stmt.start)
        values = range(start, self._value(me, stmt.stop), stmt.step)
        if depth == 0 and self._script.tiles is not None and has_loops(stmt):
            by = abs(stmt.step)
            values = values[: max(0, -(-(self._script.tiles - start % by) // by))]
        for value in values:
            me.known[stmt.symbol] = value
            yield from self._body(me, stmt.body, depth + 1)

    def _let(self, me: GroupState, stmt: Let) -> None:
        match stmt.value:
            case Peek(view=view) if view.buffer.space == "counter":
                me.known[stmt.symbol] = me.counters.get(view.buffer, 0)
            case Peek() | Atomic():
                self._note("what data decide is taken to be 0")
                me.known[stmt.symbol] = 0
            case _:
                assert_never(stmt.value)

    def _copy(self, me: GroupState, stmt: Copy) -> None:
        """One that completes on a barrier does so once what lands has been written to shared memory."""
        cost = self._cost(me, stmt)
        if stmt.signal is None:
            self._units.copy(me, stmt, cost)
            return
        gate = self._gate(me, stmt.signal)
        served = self._units.carry(stmt, cost, self._units.begin(me, stmt, cost))

        def written(time: float) -> None:
            at = self._units.serve("shared", time, cost.shared) + self._fitted.landed
            self._at(at, lambda now: self._changed(gate, complete_tx(gate.barrier, int(cost.staged)), now))

        self._at(served + self._units.latency(stmt), written)

    # -- barriers --------------------------------------------------------------------------------------------

    def _gate(self, me: GroupState, view: View) -> MbarrierState:
        slot: Slot = view.buffer, sum(self._value(me, at) for at in view.at)
        found = me.block.gates.get(slot)
        if found is None:
            found = me.block.gates[slot] = MbarrierState(Mbarrier(self._counts.get(view.buffer, 1)))
        return found

    def _arrive(self, me: GroupState, stmt: Arrive) -> None:
        gate = self._gate(me, stmt.event)
        me.wait(stmt, me.stored)
        me.now += self._fitted.overhead
        announced = self._value(me, stmt.bytes)
        self._changed(gate, arrive(gate.barrier, stmt.count * me.threads, announced), me.now)

    def _changed(self, gate: MbarrierState, barrier: Mbarrier, now: float) -> None:
        fresh = barrier.phases > gate.barrier.phases
        gate.barrier = barrier
        if not fresh:
            return
        for phase, player in gate.waiting[:]:
            if barrier.phases > phase:
                gate.waiting.remove((phase, player))
                self._wake(player, now + self._fitted.signal)

    def _wake(self, player: GroupState, time: float) -> None:
        assert player.at is not None
        player.wait(player.at, time)
        player.asleep = False
        self._resume(player)

    def _await(self, me: GroupState, stmt: Await) -> None:
        gate, phase = self._gate(me, stmt.event), self._value(me, stmt.phase)
        if gate.barrier.phases > phase:
            me.now += self._fitted.overhead
            return
        me.asleep = True
        gate.waiting.append((phase, me))

    def _meet(self, me: GroupState, stmt: Sync) -> None:
        """Of all blocks of a cluster this one stands for the others: they arrive when it does."""
        me.wait(stmt, me.stored)
        wanted = self._script.kernel.threads if stmt.threads is None else stmt.threads
        me.now += self._fitted.meeting
        if me.threads >= wanted or stmt.how == "wait":
            return
        meeting = me.block.meetings.setdefault(stmt.barrier, NamedBarrierState())
        meeting.arrived += me.threads
        if meeting.arrived >= wanted:
            meeting.arrived = 0
            for other in meeting.waiting:
                self._wake(other, me.now)
            meeting.waiting.clear()
        elif stmt.how == "meet":
            me.asleep = True
            meeting.waiting.append(me)


def has_loops(stmt: For) -> bool:
    return any(isinstance(each, For) for each in walk(stmt.body))


def _counts(body: tuple[Stmt, ...]) -> dict[Buffer, int]:
    """Arrivals that complete a phase of each barrier."""
    return {stmt.buffer: stmt.count for stmt in walk(body) if isinstance(stmt, Alloc) and stmt.count is not None}


def _one(value: Value) -> int:
    """A number; of threads, the first's."""
    return value if isinstance(value, int) else int(value.flat[0])
