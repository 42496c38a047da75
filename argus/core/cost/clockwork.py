"""One processor with its blocks, played through: who waits for whom, and which unit is busy when.

Groups of threads run their statements in the order of their own clocks. A unit serves one request after the other; what
is asynchronous ends when its unit has served it, and is waited for where the kernel says so. Barriers are those of
`argus.core.machine`: one meaning. Nothing is drawn at random, and nothing is fitted to a kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import assert_never

from attrs import define, field, frozen

from argus.core.cost.costs import Cost
from argus.core.cost.groups import Cast, Group
from argus.core.cost.machine import Machine
from argus.core.cost.quick import Function, function
from argus.core.cost.traffic import Traffic
from argus.core.elements import gets
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    If,
    Kernel,
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
from argus.core.machine import Barrier, arrive, land

Steps = Iterator[None]
Slot = tuple[Buffer, int]


@frozen(eq=False)
class Script:
    """What is played. cast: of one block; blocks: how many alike on the processor.

    costs: of each statement by who runs it. heat: cycles of the matrix units for one of theirs. tiles: trips of
    outermost loops around others that are played, None: all.
    """

    kernel: Kernel
    machine: Machine
    cast: Cast
    blocks: int
    costs: Mapping[tuple[Stmt, str], Cost]
    traffic: Traffic
    heat: float
    serialised: bool = False
    tiles: int | None = None


@frozen(eq=False)
class Played:
    """cycles: until the last byte has left. busy: cycles of each unit. waits: cycles that groups stood still, by
    statement and by group's name, of one block. notes: what was not played as it is written. stuck: where nobody goes
    on, None: all came to an end.
    """

    cycles: float
    busy: Mapping[str, float]
    waits: Mapping[tuple[str, Stmt], float]
    notes: tuple[str, ...]
    stuck: Stmt | None


@define(eq=False)
class _Unit:
    """A unit that serves one request after the other."""

    free: float = 0.0
    busy: float = 0.0

    def serve(self, now: float, cycles: float) -> float:
        """When a request that comes now is done."""
        self.free = max(self.free, now) + cycles
        self.busy += cycles
        return self.free


@define(eq=False)
class _Gate:
    """A barrier, and who waits at it for which phase."""

    barrier: Barrier
    waiting: list[tuple[int, _Player]] = field(factory=list)


@define(eq=False)
class _Meeting:
    arrived: int = 0
    waiting: list[_Player] = field(factory=list)


@define(eq=False)
class _Block:
    gates: dict[Slot, _Gate] = field(factory=dict)
    meetings: defaultdict[str, _Meeting] = field(factory=lambda: defaultdict(_Meeting))
    left: int = 0
    over: float = 0.0


@define(eq=False)
class _Player:
    """A group on its way. now: its clock. ready: when a register tile holds what was asked for; queues: when entries
    end, oldest first; open: entries that no `Commit` has closed; stored: when its stores to shared memory are done; last:
    when all that it has started is.
    """

    group: Group
    block: _Block
    now: float
    threads: int
    known: dict[Symbol, int]
    ready: dict[Buffer, float] = field(factory=dict)
    counters: dict[Buffer, int] = field(factory=dict)
    queues: defaultdict[str, list[tuple[float, float]]] = field(factory=lambda: defaultdict(list))
    open: defaultdict[str, list[tuple[float, float]]] = field(factory=lambda: defaultdict(list))
    stored: float = 0.0
    last: float = 0.0
    at: Stmt | None = None
    asleep: bool = False
    done: bool = False
    steps: Steps = field(factory=lambda: iter(()))


class Clockwork:
    """A script while it is played."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._machine = script.machine
        self._fitted = script.machine.fitted
        self._units: dict[str, _Unit] = {name: _Unit() for name in ("tensor", "shared", "memory", "lines", "issue")}
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._functions: dict[Index | Cond, Function] = {}
        self._waits: defaultdict[tuple[str, Stmt], float] = defaultdict(float)
        self._notes: list[str] = []
        self._counts = {
            stmt.buffer: stmt.count
            for stmt in walk(script.kernel.body)
            if isinstance(stmt, Alloc) and stmt.count is not None
        }
        self._players: list[_Player] = []

    def play(self) -> Played:
        blocks = [_Block() for _ in range(self._script.blocks)]
        for block in blocks:
            self._start(block, (self._script.cast.before,), 0.0)
            self._go()
            self._start(block, self._script.cast.beside, block.over)
        self._go()
        stuck = next((player.at for player in self._players if not player.done), None)
        if stuck is None:
            for block in blocks:
                self._start(block, (self._script.cast.after,), block.over)
            self._go()
        return Played(
            cycles=max(block.over for block in blocks),
            busy={name: unit.busy for name, unit in self._units.items()},
            waits={key: cycles / len(blocks) for key, cycles in self._waits.items()},
            notes=tuple(self._notes),
            stuck=stuck,
        )

    # -- time ------------------------------------------------------------------------------------------------

    def _start(self, block: _Block, groups: tuple[Group, ...], now: float) -> None:
        for group in groups:
            known = {symbol: _one(value) for symbol, value in group.numbers.items()}
            player = _Player(group, block, now, group.threads, known)
            player.steps = self._body(player, group.body, 0)
            self._players.append(player)
            self._resume(player)

    def _resume(self, player: _Player) -> None:
        self._at(player.now, lambda _: self._step(player))

    def _at(self, time: float, what: Callable[[float], None]) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, what))

    def _go(self) -> None:
        while self._events:
            time, _, what = heappop(self._events)
            what(time)

    def _step(self, player: _Player) -> None:
        for _ in player.steps:
            if not player.asleep:
                self._resume(player)
            return
        player.done = True
        player.block.over = max(player.block.over, player.now, player.last)

    def _wait(self, player: _Player, stmt: Stmt, until: float) -> None:
        if until > player.now:
            self._waits[player.group.name, stmt] += until - player.now
            player.now = until

    def _value(self, player: _Player, node: Index | Cond) -> int:
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

    # -- statements ------------------------------------------------------------------------------------------

    def _body(self, me: _Player, body: tuple[Stmt, ...], depth: int) -> Steps:
        for stmt in body:
            me.at = stmt
            match stmt:
                case For():
                    yield from self._loop(me, stmt, depth)
                case If():
                    taken = stmt.then if self._value(me, stmt.cond) else stmt.otherwise
                    if taken:
                        yield from self._body(me, taken, depth)
                case One():
                    threads, me.threads = me.threads, 1
                    yield from self._body(me, stmt.body, depth)
                    me.threads = threads
                case Let(symbol=symbol, value=value):
                    self._let(me, symbol, value)
                case Advance(counter=counter, by=by):
                    me.counters[counter] = me.counters.get(counter, 0) + self._value(me, by)
                case Copy():
                    self._copy(me, stmt)
                    yield
                case Mma():
                    self._product(me, stmt)
                    yield
                case Map() | Fold():
                    self._arithmetic(me, stmt)
                    yield
                case Arrive():
                    self._arrive(me, stmt)
                    yield
                case Await():
                    yield from self._await(me, stmt)
                case Sync():
                    yield from self._meet(me, stmt)
                case Commit(queue=queue):
                    group = me.open.pop(queue, [])
                    if group:
                        me.queues[queue].append((max(r for r, _ in group), max(d for _, d in group)))
                case Wait():
                    self._settle(me, stmt)
                    yield
                case Fence():
                    self._wait(me, stmt, me.stored)
                    me.now += self._fitted.overhead
                    yield
                case Edit():
                    self._note("edits of tensor maps take no time here")
                case Alloc() | Policy() | Tag() | Reset() | Assume() | Assert() | Roles():
                    continue
                case _:
                    assert_never(stmt)

    def _loop(self, me: _Player, stmt: For, depth: int) -> Steps:
        start, stop = self._value(me, stmt.start), self._value(me, stmt.stop)
        values = range(start, stop, stmt.step)
        if depth == 0 and self._script.tiles is not None and has_loops(stmt):
            by = abs(stmt.step)
            values = values[: -(-(self._script.tiles - start % by) // by)]
        for value in values:
            me.known[stmt.symbol] = value
            yield from self._body(me, stmt.body, depth + 1)

    def _let(self, me: _Player, symbol: Symbol, value: object) -> None:
        if isinstance(value, Peek) and value.view.buffer.space == "counter":
            me.known[symbol] = me.counters.get(value.view.buffer, 0)
        else:
            self._note("what data decide is taken to be 0")
            me.known[symbol] = 0

    def _cost(self, me: _Player, stmt: Stmt) -> Cost:
        return self._script.costs[stmt, me.group.name]

    def _copy(self, me: _Player, stmt: Copy) -> None:
        cost, queue = self._cost(me, stmt), stmt.atom.moments.queue
        if stmt.source.buffer.space == "register":
            self._wait(me, stmt, me.ready.get(stmt.source.buffer, 0.0))
        begun = me.now
        me.now += max(cost.issue, self._fitted.overhead if stmt.atom.unit == 1 else 0.0)
        if cost.lines:
            me.now = max(me.now, self._units["lines"].serve(begun, cost.lines))
        if stmt.signal is not None:
            self._fetch(me, stmt, cost, begun)
            return
        read = self._units["shared"].serve(begun, cost.shared) if cost.shared else begun
        if stmt.target.peer is not None:  # another block's shared memory lies behind the port
            read = self._units["memory"].serve(begun, cost.staged / self._fitted.remote) + self._fitted.near / 2
        done = read
        if cost.loaded or cost.stored:
            done = self._units["memory"].serve(read, self._carried(stmt, cost)) + self._latency(stmt)
        elif stmt.target.buffer.space == "register":
            done += self._fitted.held
        me.last = max(me.last, done)
        if queue is not None and stmt.atom.moments.group == "commit":
            me.open[queue].append((read, done))
        elif queue is not None:
            me.queues[queue].append((read, done))
        elif stmt.target.buffer.space == "register":
            me.ready[stmt.target.buffer] = done
        elif stmt.target.buffer.space == "shared":
            me.stored = max(me.stored, done)

    def _fetch(self, me: _Player, stmt: Copy, cost: Cost, begun: float) -> None:
        """An asynchronous copy that completes on a barrier, once what lands has been written to shared memory."""
        assert stmt.signal is not None
        served = self._units["memory"].serve(begun, self._carried(stmt, cost))
        slot = self._slot(me, stmt.signal)
        gate = self._gate(me.block, slot)
        amount = int(cost.staged)

        def written(time: float) -> None:
            at = self._units["shared"].serve(time, cost.shared) + self._fitted.landed
            self._at(at, lambda now: self._changed(gate, land(gate.barrier, amount), now))

        self._at(served + self._latency(stmt), written)

    def _carried(self, stmt: Copy, cost: Cost) -> float:
        """Cycles for which a copy keeps the way to memory: the port, or this processor's share of what is common.

        Lines that many ask for at one time pass the cache's own limits at less than the price of as many lines.
        """
        machine, traffic = self._machine, self._script.traffic
        moved, own = cost.loaded + cost.stored, traffic.own.get(stmt, 1.0)
        crowded = moved * (own + (1 - own) * self._fitted.again) / machine.cache
        common = traffic.busy * max(crowded, moved * traffic.far.get(stmt, 0.0) / machine.memory)
        port = machine.port * min(machine.paired, machine.target.processors / traffic.busy)
        return max(max(cost.landed, moved) / port, common) + cost.filled / self._fitted.fill

    def _latency(self, stmt: Copy) -> float:
        return self._fitted.far if self._script.traffic.far.get(stmt, 0.0) > 0 else self._fitted.near

    def _product(self, me: _Player, stmt: Mma) -> None:
        cost, queue = self._cost(me, stmt), stmt.atom.moments.queue
        for operand in (stmt.a, stmt.b):
            if operand.buffer.space == "register":
                self._wait(me, stmt, me.ready.get(operand.buffer, 0.0))
        end = self._units["tensor"].serve(me.now, cost.tensor * self._script.heat)
        if cost.shared:
            end = max(end, self._units["shared"].serve(me.now, cost.shared))
        done = end + self._fitted.product
        me.last = max(me.last, done)
        if queue is None or self._script.serialised:
            me.ready[stmt.target.buffer] = done
            self._wait(me, stmt, done if self._script.serialised else end - self._fitted.product)
        else:
            entries = me.open if stmt.grouped else me.queues
            entries[queue].append((done, done))
        me.now += self._fitted.overhead

    def _arithmetic(self, me: _Player, stmt: Map | Fold) -> None:
        views = [each.view for each in gets(stmt.elem)] if isinstance(stmt, Map) else [stmt.source]
        for view in views:
            self._wait(me, stmt, me.ready.get(view.buffer, 0.0))
        me.now = max(me.now, self._units["issue"].serve(me.now, self._cost(me, stmt).issue))

    # -- waiting ---------------------------------------------------------------------------------------------

    def _slot(self, me: _Player, view: View) -> Slot:
        return view.buffer, sum(self._value(me, at) for at in view.at)

    def _gate(self, block: _Block, slot: Slot) -> _Gate:
        found = block.gates.get(slot)
        if found is None:
            found = block.gates[slot] = _Gate(Barrier(self._counts.get(slot[0]) or 1))
        return found

    def _arrive(self, me: _Player, stmt: Arrive) -> None:
        gate = self._gate(me.block, self._slot(me, stmt.event))
        arrivals, announced = stmt.count * me.threads, self._value(me, stmt.bytes)
        self._wait(me, stmt, me.stored)
        me.now += self._fitted.overhead
        self._changed(gate, arrive(gate.barrier, arrivals, announced), me.now)

    def _changed(self, gate: _Gate, barrier: Barrier, now: float) -> None:
        fresh = barrier.phases > gate.barrier.phases
        gate.barrier = barrier
        if not fresh:
            return
        for phase, player in gate.waiting[:]:
            if barrier.phases > phase:
                gate.waiting.remove((phase, player))
                self._wake(player, now + self._fitted.signal)

    def _wake(self, player: _Player, time: float) -> None:
        assert player.at is not None
        self._wait(player, player.at, time)
        player.asleep = False
        self._resume(player)

    def _await(self, me: _Player, stmt: Await) -> Steps:
        gate, phase = self._gate(me.block, self._slot(me, stmt.event)), self._value(me, stmt.phase)
        if gate.barrier.phases <= phase:
            me.asleep = True
            gate.waiting.append((phase, me))
        else:
            me.now += self._fitted.overhead
        yield

    def _meet(self, me: _Player, stmt: Sync) -> Steps:
        """Of all blocks of a cluster this one stands for the others: they arrive when it does."""
        self._wait(me, stmt, me.stored)
        wanted = self._script.kernel.threads if stmt.threads is None else stmt.threads
        me.now += self._fitted.meeting
        if me.threads >= wanted or stmt.how == "wait":
            yield
            return
        meeting = me.block.meetings[stmt.barrier]
        meeting.arrived += me.threads
        if meeting.arrived >= wanted:
            meeting.arrived = 0
            for other in meeting.waiting:
                self._wake(other, me.now)
            meeting.waiting.clear()
        elif stmt.how == "meet":
            me.asleep = True
            meeting.waiting.append(me)
        yield

    def _settle(self, me: _Player, stmt: Wait) -> None:
        entries = me.queues[stmt.queue]
        over = len(entries) - stmt.pending
        if over > 0:
            reads = stmt.of == "reads"
            self._wait(me, stmt, max(read if reads else done for read, done in entries[:over]))
            del entries[:over]


def has_loops(stmt: For) -> bool:
    return any(isinstance(each, For) for each in walk(stmt.body))


def _one(value: object) -> int:
    """A number; of threads, the first's."""
    return value if isinstance(value, int) else int(value.flat[0])  # type: ignore[attr-defined]
