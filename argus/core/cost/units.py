"""The hardware units of one processor as first-in-first-out servers, and the completion times of requests."""

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
    """The units of one processor; each serves requests in order of arrival."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._machine, self._fitted = scenario.machine, scenario.machine.fitted
        self._units = {name: _Unit() for name in NAMES}

    def busy(self) -> dict[str, float]:
        """Busy cycles by unit."""
        return {name: unit.busy for name, unit in self._units.items()}

    def serve(self, name: str, now: float, cycles: float) -> float:
        """The completion time of a request that arrives now."""
        if not cycles:
            return now
        unit = self._units[name]
        unit.free = max(unit.free, now) + cycles
        unit.busy += cycles
        return unit.free

    def transfer(self, stmt: Copy, cost: Cost, now: float) -> float:
        """The time at which a copy's bytes have passed the memory path: the SM's port, or its share of cache and memory
        bandwidth.


        Requests of many SMs for one line cost the cache less than requests for as many different lines.
        """
        machine, traffic = self._machine, self._scenario.traffic
        moved, own = cost.loaded + cost.stored, traffic.distinct_share.get(stmt, 1.0)
        crowded = moved * (own + (1 - own) * self._fitted.shared_line_cost) / machine.cache
        common = traffic.busy * max(crowded, moved * traffic.miss_share.get(stmt, 0.0) / machine.memory)
        port = machine.port * min(machine.port_sharers, machine.target.processors / traffic.busy)
        cycles = max(max(cost.landed, moved) / port, common) + cost.filled / self._fitted.fill_rate
        return self.serve("memory", now, cycles)

    def latency(self, stmt: Copy) -> float:
        far = self._scenario.traffic.miss_share.get(stmt, 0.0) > 0
        return self._fitted.cache_latency + far * self._fitted.memory_latency

    def copy(self, me: GroupState, stmt: Copy, cost: Cost) -> None:
        """Issue a copy without an mbarrier; a queue, the use of its register tile, or nothing waits for it."""
        begun = self.issue(me, stmt, cost)
        read = self.serve("shared", begun, cost.shared)
        if stmt.target.peer is not None:
            read = self.serve("memory", begun, cost.staged / self._fitted.remote_rate) + self._fitted.cache_latency / 2
        done = read
        if cost.loaded or cost.stored:
            done = self.transfer(stmt, cost, read) + self.latency(stmt)
        elif stmt.target.buffer.space == "register":
            done += self._machine.shared_latency
        me.last = max(me.last, done)
        queue = stmt.atom.completion.queue
        if queue is not None:
            entries = me.open if stmt.atom.completion.group == "commit" else me.queues
            entries[queue].append((read, done))
        elif stmt.target.buffer.space == "register":
            me.ready[stmt.target.buffer] = done
        elif stmt.target.buffer.space == "shared":
            me.stored = max(me.stored, done)

    def issue(self, me: GroupState, stmt: Copy, cost: Cost) -> float:
        """The start time of a copy. Its threads continue once it is issued and its cache lines are requested."""
        if stmt.source.buffer.space == "register":
            me.wait(stmt, me.ready.get(stmt.source.buffer, 0.0))
        begun = me.now
        if stmt.atom.unit == 1:
            me.now += self._fitted.issue_overhead
        else:
            me.now = max(self.serve("issue", begun, cost.issue), self.serve("lines", begun, cost.lines))
        return begun

    def multiply(self, me: GroupState, stmt: Mma, cost: Cost) -> None:
        for operand in (stmt.a, stmt.b):
            if operand.buffer.space == "register":
                me.wait(stmt, me.ready.get(operand.buffer, 0.0))
        if self._scenario.moves_per_mma:
            count = cost.tensor / stmt.atom.issue_cycles  # per scheduler
            me.now = self.serve("issue", me.now, count * self._scenario.moves_per_mma * self._machine.simple)
        end = self.serve("tensor", me.now, cost.tensor * self._scenario.mma_slowdown)
        end = max(end, self.serve("shared", me.now, cost.shared))
        done = end + self._fitted.mma_latency
        me.last = max(me.last, done)
        queue = stmt.atom.completion.queue
        if queue is None or self._scenario.serialised:
            # In-order instructions: the wave stalls until the unit starts this one.
            me.ready[stmt.target.buffer] = done
            me.wait(stmt, done if self._scenario.serialised else end - self._fitted.mma_latency)
        else:
            entries = me.open if stmt.grouped else me.queues
            entries[queue].append((done, done))
        me.now += self._fitted.issue_overhead

    def compute(self, me: GroupState, stmt: Map | Fold, cost: Cost) -> None:
        views = [each.view for each in gets(stmt.elem)] if isinstance(stmt, Map) else [stmt.source]
        for view in views:
            me.wait(stmt, me.ready.get(view.buffer, 0.0))
        me.now = max(me.now, self.serve("issue", me.now, cost.issue))


def commit(me: GroupState, stmt: Commit) -> None:
    group = me.open.pop(stmt.queue, [])
    if group:
        me.queues[stmt.queue].append((max(read for read, _ in group), max(done for _, done in group)))


def wait_for_queue(me: GroupState, stmt: Wait) -> None:
    """Wait until at most `stmt.pending` entries of the queue are outstanding."""
    entries = me.queues[stmt.queue]
    over = len(entries) - stmt.pending
    if over > 0:
        me.wait(stmt, max(read if stmt.of == "reads" else done for read, done in entries[:over]))
        del entries[:over]
