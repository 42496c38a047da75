"""The units of one processor, and when what they are asked for is done."""

from __future__ import annotations

from attrs import define

from argus.core.cost.costs import Cost
from argus.core.cost.group_state import GroupState
from argus.core.cost.scenario import Scenario
from argus.core.ir import Commit, Copy, Fold, Map, Mma, Wait
from argus.core.ir.element_walk import gets

NAMES = ("tensor", "shared", "memory", "lines", "issue")


@define(eq=False)
class _Unit:
    free: float = 0.0
    busy: float = 0.0


class Units:
    """Units that serve one request after the other, in the order in which these come."""

    def __init__(self, script: Scenario) -> None:
        self._script = script
        self._machine, self._fitted = script.machine, script.machine.fitted
        self._units = {name: _Unit() for name in NAMES}

    def busy(self) -> dict[str, float]:
        """Cycles, by unit."""
        return {name: unit.busy for name, unit in self._units.items()}

    def serve(self, name: str, now: float, cycles: float) -> float:
        """When a request that comes now is done."""
        if not cycles:
            return now
        unit = self._units[name]
        unit.free = max(unit.free, now) + cycles
        unit.busy += cycles
        return unit.free

    def carry(self, stmt: Copy, cost: Cost, now: float) -> float:
        """When bytes have passed the way to memory: the port, or this processor's share of what is common.

        Lines that many ask for at one time pass the cache's own limits at less than the price of as many lines.
        """
        machine, traffic = self._machine, self._script.traffic
        moved, own = cost.loaded + cost.stored, traffic.own.get(stmt, 1.0)
        crowded = moved * (own + (1 - own) * self._fitted.again) / machine.cache
        common = traffic.busy * max(crowded, moved * traffic.far.get(stmt, 0.0) / machine.memory)
        port = machine.port * min(machine.paired, machine.target.processors / traffic.busy)
        cycles = max(max(cost.landed, moved) / port, common) + cost.filled / self._fitted.fill
        return self.serve("memory", now, cycles)

    def latency(self, stmt: Copy) -> float:
        far = self._script.traffic.far.get(stmt, 0.0) > 0
        return self._fitted.near + far * self._fitted.farther

    def copy(self, me: GroupState, stmt: Copy, cost: Cost) -> None:
        """A copy that no barrier is told of: waited for by its queue, by the use of a register tile, or not at all."""
        begun = self.begin(me, stmt, cost)
        read = self.serve("shared", begun, cost.shared)
        if stmt.target.peer is not None:
            read = self.serve("memory", begun, cost.staged / self._fitted.remote) + self._fitted.near / 2
        done = read
        if cost.loaded or cost.stored:
            done = self.carry(stmt, cost, read) + self.latency(stmt)
        elif stmt.target.buffer.space == "register":
            done += self._machine.held
        me.last = max(me.last, done)
        queue = stmt.atom.completion.queue
        if queue is not None:
            entries = me.open if stmt.atom.completion.group == "commit" else me.queues
            entries[queue].append((read, done))
        elif stmt.target.buffer.space == "register":
            me.ready[stmt.target.buffer] = done
        elif stmt.target.buffer.space == "shared":
            me.stored = max(me.stored, done)

    def begin(self, me: GroupState, stmt: Copy, cost: Cost) -> float:
        """When a copy begins; its threads go on once it is issued, and its lines have been asked for."""
        if stmt.source.buffer.space == "register":
            me.wait(stmt, me.ready.get(stmt.source.buffer, 0.0))
        begun = me.now
        if stmt.atom.unit == 1:
            me.now += self._fitted.overhead
        else:
            me.now = max(self.serve("issue", begun, cost.issue), self.serve("lines", begun, cost.lines))
        return begun

    def multiply(self, me: GroupState, stmt: Mma, cost: Cost) -> None:
        for operand in (stmt.a, stmt.b):
            if operand.buffer.space == "register":
                me.wait(stmt, me.ready.get(operand.buffer, 0.0))
        if self._script.beside:
            count = cost.tensor / stmt.atom.issue_cycles  # of one scheduler
            me.now = self.serve("issue", me.now, count * self._script.beside * self._machine.simple)
        end = self.serve("tensor", me.now, cost.tensor * self._script.heat)
        end = max(end, self.serve("shared", me.now, cost.shared))
        done = end + self._fitted.product
        me.last = max(me.last, done)
        queue = stmt.atom.completion.queue
        if queue is None or self._script.serialised:
            # An instruction that the next one of its wave does not overtake keeps the wave until it begins.
            me.ready[stmt.target.buffer] = done
            me.wait(stmt, done if self._script.serialised else end - self._fitted.product)
        else:
            entries = me.open if stmt.grouped else me.queues
            entries[queue].append((done, done))
        me.now += self._fitted.overhead

    def compute(self, me: GroupState, stmt: Map | Fold, cost: Cost) -> None:
        views = [each.view for each in gets(stmt.elem)] if isinstance(stmt, Map) else [stmt.source]
        for view in views:
            me.wait(stmt, me.ready.get(view.buffer, 0.0))
        me.now = max(me.now, self.serve("issue", me.now, cost.issue))


def commit(me: GroupState, stmt: Commit) -> None:
    group = me.open.pop(stmt.queue, [])
    if group:
        me.queues[stmt.queue].append((max(read for read, _ in group), max(done for _, done in group)))


def settle(me: GroupState, stmt: Wait) -> None:
    """Until so many entries of a queue are left."""
    entries = me.queues[stmt.queue]
    over = len(entries) - stmt.pending
    if over > 0:
        me.wait(stmt, max(read if stmt.of == "reads" else done for read, done in entries[:over]))
        del entries[:over]
