"""Deadlock freedom by a ranking function: a satisfiability query for numbers that increase along every wait.

The rank of an operation of use u is `alpha * u + beta`, with one beta per operation. Part of the obligation semantics.
Source: proof-methods 3.3, deadlock by formula.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.algebra import add, all_of, le, mul, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.protocol.claims import empty_slot_offset
from argus.core.protocol.ring import Protocol, RingOp, Role, WaitGroups
from argus.core.protocol.role_ops import RingOps

_ALPHA = sym(Symbol("alpha", "fresh", 0, None))


def rank_condition(protocol: Protocol, found: tuple[RingOps, ...]) -> Cond:
    """Satisfiable if and only if waits and program order have no cycle within finitely many uses."""
    parts: list[Cond] = []
    for role in protocol.roles:
        if role.share[0] == 0:
            parts.extend(_program_order(role))
    for ring_ops in found:
        parts.extend(_waits(ring_ops))
    return all_of(parts)


def _beta(role: Role, op: object) -> Index:
    place = next(place for place, each in enumerate(role.body) if each is op)
    return sym(Symbol(f"beta.{role.name}.{place}", "fresh"))


def _before(first: Index, second: Index, later: int) -> Cond:
    """That the first operation of any use precedes the second of the use `later` uses after it."""
    return le(add(first, 1), add(mul(_ALPHA, later), second))


def _program_order(role: Role) -> Iterator[Cond]:
    ops = [op for op in role.body if not isinstance(op, WaitGroups)]
    for one, following in zip(ops, [*ops[1:], *ops[:1]], strict=True):
        wraps = following is ops[0]
        yield _before(_beta(role, one), _beta(role, following), following.ahead - one.ahead + wraps)


def _waits(ring_ops: RingOps) -> Iterator[Cond]:
    producer = ring_ops.role
    providers: list[RingOp] = [ring_ops.arrive, *ring_ops.copies]
    for agent in ring_ops.agents:
        for op in providers:
            yield _before(_beta(producer, op), _beta(agent.role, agent.wait), 0)
        for remote in ring_ops.remote_copies:
            yield _before(_beta(remote.role, remote.copy), _beta(agent.role, agent.wait), 0)
        yield _before(
            _beta(agent.role, agent.release),
            _beta(producer, ring_ops.wait),
            ring_ops.ring.stages - empty_slot_offset(ring_ops),
        )
    for remote in ring_ops.remote_releases:
        yield _before(
            _beta(remote.role, remote.release),
            _beta(producer, ring_ops.wait),
            ring_ops.ring.stages - empty_slot_offset(ring_ops),
        )
