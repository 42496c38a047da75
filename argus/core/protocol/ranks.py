"""Freedom from deadlock as a question: are there numbers that grow along every wait?

The rank of an operation of use u is `alpha * u + beta`, one beta an operation. Part of the obligations' meaning.
Source: proof-methods 3.3, deadlock by formula.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.algebra import add, all_of, le, mul, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.protocol.claims import empty_ahead
from argus.core.protocol.ring import OnRing, Protocol, Role, WaitGroups
from argus.core.protocol.role_ops import Duties

_ALPHA = sym(Symbol("alpha", "fresh", 0, None))


def rank(protocol: Protocol, found: tuple[Duties, ...]) -> Cond:
    """Satisfiable if and only if no circle of waits and program order closes within finitely many uses."""
    parts: list[Cond] = []
    for role in protocol.roles:
        if role.share[0] == 0:
            parts.extend(_programme(role))
    for duty in found:
        parts.extend(_waits(duty))
    return all_of(parts)


def _beta(role: Role, op: object) -> Index:
    place = next(place for place, each in enumerate(role.body) if each is op)
    return sym(Symbol(f"beta.{role.name}.{place}", "fresh"))


def _before(first: Index, second: Index, later: int) -> Cond:
    """The first, of any use, comes before the second of the use that is `later` by so many."""
    return le(add(first, 1), add(mul(_ALPHA, later), second))


def _programme(role: Role) -> Iterator[Cond]:
    ops = [op for op in role.body if not isinstance(op, WaitGroups)]
    for one, following in zip(ops, [*ops[1:], *ops[:1]], strict=True):
        wraps = following is ops[0]
        yield _before(_beta(role, one), _beta(role, following), following.ahead - one.ahead + wraps)


def _waits(duty: Duties) -> Iterator[Cond]:
    filler = duty.role
    providers: list[OnRing] = [duty.arrive, *duty.copies]
    for agent in duty.agents:
        for op in providers:
            yield _before(_beta(filler, op), _beta(agent.role, agent.wait), 0)
        for guest in duty.guests:
            yield _before(_beta(guest.role, guest.copy), _beta(agent.role, agent.wait), 0)
        yield _before(_beta(agent.role, agent.release), _beta(filler, duty.wait), duty.ring.stages - empty_ahead(duty))
    for giver in duty.givers:
        yield _before(_beta(giver.role, giver.release), _beta(filler, duty.wait), duty.ring.stages - empty_ahead(duty))
