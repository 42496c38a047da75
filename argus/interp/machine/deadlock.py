"""A block in which nobody can move: who waits for whom, up to the wait that began it or that nobody ends."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.ir import Copy, Stmt, Sync
from argus.interp.machine.agents import Cluster, Unit, Waiting
from argus.interp.machine.barriers import Phased
from argus.interp.machine.remaining_ops import Key, arrivals, key_of


@frozen(eq=False)
class _Blocked:
    """A unit, what it waits for, and the arrivals that it would make if it went on: the first at each barrier."""

    unit: Unit
    waiting: Waiting
    wanted: Key
    gives: dict[Key, Stmt]

    @property
    def name(self) -> str:
        agent = self.unit.agent
        several = agent.threads > agent.width
        return f"{agent.name}, thread {agent.base + self.unit.first}" if several else agent.name

    @property
    def overtaken(self) -> Stmt | None:
        """What completed the phase after the one waited for, if the waits so far were for one phase after another."""
        on, phase = self.waiting.on, self.waiting.phase
        if not isinstance(on, Phased) or not self.waiting.missed:
            return None
        return on.ended[phase + 1].stmt if self.unit.in_turn(on, phase) else None

    @property
    def when(self) -> str:
        return "".join(f", {name} = {value}" for name, value in self.waiting.event.iteration)


def report(cluster: Cluster) -> None:
    """Report a hang: at the first wait of the circle, or of the chain that ends where nobody arrives any more."""
    blocked = [_blocked(unit, unit.waiting) for unit in cluster.units if unit.waiting is not None]
    chain, closed = _chain(blocked)
    first, other = chain[0], next((each for each in (*chain[1:], *blocked) if each is not chain[0]), None)
    shape = "a circle of waits" if closed else "nobody ends the last of these waits" if chain[1:] else "nobody ends it"
    hops = [_hop(each, chain[(place + 1) % len(chain)]) for place, each in enumerate(chain)]
    if not closed:
        hops[-1] = _end(chain[-1])
    unit = first.unit
    cluster.launch.reporter.report(
        _code(blocked),
        f"no agent can move, {shape}: {'; '.join(hops)}",
        first.waiting.event,
        thread=unit.agent.base + unit.first,
        other=None if other is None else other.waiting.event,
        facts=(*((each.name, f"waits for {each.waiting.told()}{each.when}") for each in blocked), *_ended(cluster)),
        related=_related(chain, blocked, closed=closed),
    )


def _ended(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Agents of roles that have run to their end."""
    for agent in dict.fromkeys(unit.agent for unit in cluster.units if unit.agent.role is not None):
        if all(unit.finished for unit in cluster.units if unit.agent is agent):
            yield agent.name, "has ended"


def _blocked(unit: Unit, waiting: Waiting) -> _Blocked:
    gives: dict[Key, Stmt] = {}
    for key, stmt in arrivals(unit):
        gives.setdefault(key, stmt)
    return _Blocked(unit, waiting, key_of(unit, waiting.on), gives)


def _chain(blocked: list[_Blocked]) -> tuple[list[_Blocked], bool]:
    """Units each of which waits for the next, and whether the last waits for the first."""
    chains = [_from(each, blocked) for each in blocked]
    return next((found for found in chains if found[1]), min(chains, key=lambda found: not found[0][-1].waiting.missed))


def _from(start: _Blocked, blocked: list[_Blocked]) -> tuple[list[_Blocked], bool]:
    chain = [start]
    while True:
        givers = [] if _settled(chain[-1].waiting) else [each for each in blocked if chain[-1].wanted in each.gives]
        following = next((each for each in givers if each is not chain[-1]), givers[0] if givers else None)
        if following is None:
            return chain, False
        if following in chain:
            return chain[chain.index(following) :], True
        chain.append(following)


def _settled(waiting: Waiting) -> bool:
    """Whether no arrival can end the wait: the phase was missed, or only bytes are lacking."""
    if not isinstance(waiting.on, Phased):
        return False
    return waiting.missed or waiting.on.state.arrived == waiting.on.state.count


def _hop(each: _Blocked, following: _Blocked) -> str:
    return f"{each.name} waits for {each.waiting.told()}, where {following.name} would arrive"


def _end(each: _Blocked) -> str:
    text = f"{each.name} waits for {each.waiting.told()}"
    if each.waiting.missed:
        return f"{text}, by an arrival before its turn" if each.overtaken else text
    return f"{text}: the bytes announced do not arrive" if _settled(each.waiting) else f"{text}: nobody arrives there"


def _related(chain: list[_Blocked], blocked: list[_Blocked], *, closed: bool) -> tuple[tuple[Stmt, str], ...]:
    """Where the others of the chain wait, and where each would end the wait of the one before."""
    found = [(each.waiting.event.stmt, f"{each.name} waits here{each.when}") for each in chain[1:]]
    for place, each in enumerate(chain):
        giver = chain[(place + 1) % len(chain)]
        arrival = giver.gives.get(each.wanted)
        if arrival is not None and (closed or place + 1 < len(chain)):
            verb = "land" if isinstance(arrival, Copy) else "meet" if isinstance(arrival, Sync) else "arrive"
            found.append((arrival, f"where {giver.name} would {verb}, for {each.name}"))
    early = None if closed else chain[-1].overtaken
    if early is not None:
        found.append((early, f"completes phase {chain[-1].waiting.phase + 1} before {chain[-1].name} has waited"))
    others = [each for each in blocked if each not in chain]
    found += [(each.waiting.event.stmt, f"{each.name} waits here{each.when}") for each in others]
    return tuple(found)


def _code(blocked: list[_Blocked]) -> str:
    """I7 where bytes do not add up; where a phase was missed I8 if it came too early, else I6; else I9."""
    for each in blocked:
        if isinstance(each.waiting.on, Phased):
            state = each.waiting.on.state
            if state.bytes < 0 or (state.bytes > 0 and state.arrived == state.count and not each.waiting.on.underway):
                return "I7"
    missed = [each for each in blocked if each.waiting.missed]
    if not missed:
        return "I9"
    return "I8" if all(each.overtaken for each in missed) else "I6"
