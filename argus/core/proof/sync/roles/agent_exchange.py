"""The exchange of tiles between the agents of a role: each stores its part in shared memory, and after a barrier of all
agents each reads the parts of all.

Such a barrier waits for all threads of all agents of the role. All agents execute the same statements: the barriers lie
in a tile or in its loops over uses, outside of branches, and neither these loops nor those over tiles depend on the
agent's number. So the n-th arrival of each agent is by the same statement, in the same tile and iteration, and

- for the data, every agent finds its own store together with the others', each of them the same statement's with the
  other agent's number: the sequential kernel has one received copy for each agent in place of the store;
- for races and missing fences, the agents are one agent of all their threads, whose barrier this is, where threads of
  one number are several threads;
- no barrier causes a deadlock: in the order of events, replace each agent's events by those of agent 0. Agents wait for
  the same events of other roles, and others wait for all agents alike, so agent 0 could take each step of a cycle there
  too: an order without cycles stays one. The new waits, of leaving a barrier for the others' arrivals at it, are then
  those of agent 0's own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check.parts import views
from argus.core.index import Held, Index, Node, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Atomic,
    Await,
    Buffer,
    Copy,
    For,
    If,
    Kernel,
    Let,
    Role,
    Stmt,
    Sync,
    View,
    bodies,
    walk,
    with_bodies,
)
from argus.core.ir.rewrite import rewrite_view
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import refuse
from argus.core.proof.sync.roles.events import is_agent_indexed
from argus.core.proof.sync.visibility import visibility_obligations
from argus.core.walk import mentions, symbols

_ALIKE = ("size", "block", "loop")
"""The kinds of symbols that mean the same for all agents at one place of the role; loops, as those around are alike."""


@frozen(eq=False)
class AgentExchange:
    """Barriers of all agents of a role. barrier: their name. buffers: the shared memory that agents exchange by it."""

    role: Role
    barrier: str
    buffers: frozenset[Buffer]

    @property
    def threads(self) -> int:
        """The threads of all agents."""
        return self.role.agents * self.role.agent

    def meets(self, stmt: Stmt) -> bool:
        """Whether a statement is the barrier of all agents."""
        return isinstance(stmt, Sync) and stmt.barrier == self.barrier

    def sends(self, stmt: Stmt) -> bool:
        """Whether a statement stores into exchanged memory."""
        return isinstance(stmt, Copy) and stmt.target.buffer in self.buffers

    def received(self, store: Copy) -> Iterator[Copy]:
        """The stores of all agents for one agent's."""
        for sender in range(self.role.agents):
            name: dict[Symbol, Index] = {self.role.number: algebra.const(sender)}
            source = View(store.source.buffer, store.source.shape, store.source.at, peer=algebra.const(sender))
            yield evolve(store, source=source, target=rewrite_view(store.target, name))

    def with_received(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements with all agents' stores in place of one's."""
        made: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Copy) and self.sends(stmt):
                made += self.received(stmt)
            else:
                made.append(with_bodies(stmt, tuple(self.with_received(part) for part in bodies(stmt))))
        return tuple(made)

    def of_one_agent(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements with the barrier of one agent for that of all, which all of its threads meet at."""
        return tuple(
            evolve(stmt, barrier=self.role.name, threads=self.role.agent)
            if isinstance(stmt, Sync) and self.meets(stmt)
            else with_bodies(stmt, tuple(map(self.of_one_agent, bodies(stmt))))
            for stmt in body
        )


def find_agent_exchange(kernel: Kernel) -> AgentExchange | None:
    """The exchange between agents of a kernel; None if no barrier is for several. Raises RefusedError."""
    assert kernel.roles is not None
    for role in kernel.roles.roles:
        wide = [stmt for stmt in walk(role.body) if isinstance(stmt, Sync) and _is_of_all_agents(stmt, role)]
        if wide:
            found = AgentExchange(role, wide[0].barrier, _exchanged(role))
            _check(kernel, found)
            return found
    return None


def _is_of_all_agents(stmt: Sync, role: Role) -> bool:
    return role.agents > 1 and stmt.barrier not in (role.name, "cta", "cluster")


def _exchanged(role: Role) -> frozenset[Buffer]:
    """The shared memory to which threads of the role store, but for that which is indexed by the agent's number."""
    stored = {s.target.buffer for s in walk(role.body) if isinstance(s, Copy) and s.target.buffer.space == "shared"}
    every = [view for stmt in walk(role.body) if not isinstance(stmt, Alloc) for view in views(stmt)]
    return frozenset(b for b in stored if not _is_own(role, [view for view in every if view.buffer is b]))


def _is_own(role: Role, accesses: Sequence[View]) -> bool:
    """Whether one index of all views is the agent's number."""
    axes = range(min(len(view.at) for view in accesses))
    return any(all(view.at[axis] is algebra.sym(role.number) for view in accesses) for axis in axes)


def _check(kernel: Kernel, found: AgentExchange) -> None:
    """Raises RefusedError unless all agents execute each barrier equally often, in the same iterations."""
    role, known = found.role, set[Stmt]()
    own = {stmt.symbol for stmt in walk(role.body) if isinstance(stmt, Let) and isinstance(stmt.value, Atomic)}
    if kernel.peers > 1:
        refuse(role.body[0], "a barrier of several agents in a cluster")
    for stmt in _in_loops(role.body, role):
        known.add(stmt)
        if found.meets(stmt) and (not isinstance(stmt, Sync) or (stmt.how, stmt.threads) != ("meet", found.threads)):
            refuse(stmt, "a barrier of several agents that is not for all threads of the role")
        if isinstance(stmt, Copy) and found.sends(stmt):
            _check_store(stmt)
    for stmt in walk(role.body):
        if _is_apart(stmt, role, own) and any(isinstance(each, Await | Arrive | Advance) for each in walk((stmt,))):
            refuse(stmt, "barriers of some agents alone, in a role with a barrier of all its agents")
        if isinstance(stmt, Await | Arrive) and is_agent_indexed(stmt.event):
            refuse(stmt, "turns of agents, in a role with a barrier of all its agents")
    for stmt in walk(kernel.body):
        if (found.meets(stmt) or found.sends(stmt)) and stmt not in known:
            refuse(stmt, "a barrier of several agents, or a store to what they exchange, in a branch or another role")
        touched = not isinstance(stmt, Alloc) and {view.buffer for view in views(stmt)} & found.buffers
        if touched and stmt not in set(walk(role.body)):
            refuse(stmt, "memory that agents of one role exchange, in another role")


def _in_loops(body: Sequence[Stmt], role: Role) -> Iterator[Stmt]:
    """The statements that each agent executes equally often: outside of branches, in loops that are alike for all."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For) and _is_alike(stmt.start, stmt.stop):
            yield from _in_loops(stmt.body, role)


def _is_alike(*bounds: Index) -> bool:
    return all(each.kind in _ALIKE for each in symbols(*bounds)) and not any(mentions(each, (Held,)) for each in bounds)


def _is_apart(stmt: Stmt, role: Role, own: AbstractSet[Symbol]) -> bool:
    """Whether agents may differ in how often they execute the body. own: what each obtains by an atomic operation."""
    match stmt:
        case If(cond=cond):
            on: tuple[Node, ...] = (cond,)
        case For(start=start, stop=stop):
            on = (start, stop)
        case _:
            return False
    known = symbols(*on)
    return role.number in known or not own.isdisjoint(known) or any(mentions(each, (Held,)) for each in on)


def _check_store(stmt: Copy) -> None:
    source, target = stmt.source, stmt.target
    plain = (stmt.edge, stmt.combine, stmt.signal, stmt.peers) == (None, None, None, None)
    plain = plain and source.buffer.space == "register" and source.where is target.where is algebra.TRUE
    if not plain or source.peer is not None or target.peer is not None:
        refuse(stmt, "a store to what agents exchange that is not a plain copy of registers")


def exchange_obligations(accesses: Accesses, body: Sequence[Stmt], found: AgentExchange) -> Iterator[Obligation]:
    """I5, I10, I12, I36 of the exchanged memory, for the agents as one agent. body: all statements of one of them."""
    made = found.with_received(body)
    others = frozenset(view.buffer for stmt in walk(made) for view in views(stmt)) - found.buffers
    yield from visibility_obligations(accesses, made, found.threads, found.barrier, others, several=True)
