"""Reports deadlocks: the cycle of waits, or the chain of waits that ends at one that no arrival completes."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.ir import Copy, Stmt
from argus.interp.machine.agents import Cluster, Unit, Waiting
from argus.interp.machine.barriers import TrackedMbarrier
from argus.interp.machine.remaining_ops import Key, arrivals, key_of


@frozen(eq=False)
class _Blocked:
    """A blocked unit, its wait, and the arrivals that it would still make, the first one at each barrier."""

    unit: Unit
    waiting: Waiting
    wanted: Key
    remaining: dict[Key, Stmt]

    @property
    def name(self) -> str:
        agent = self.unit.agent
        several = agent.threads > agent.width
        return f"{agent.name}, thread {agent.base + self.unit.first}" if several else agent.name

    @property
    def overtaken(self) -> Stmt | None:
        """The statement that completed the phase after the one waited for; None if the waits skipped a phase."""
        on, phase = self.waiting.on, self.waiting.phase
        if not isinstance(on, TrackedMbarrier) or not self.waiting.missed:
            return None
        return on.ended[phase + 1].stmt if self.unit.follows_last_wait(on, phase) else None

    @property
    def when(self) -> str:
        return "".join(f", {name} = {value}" for name, value in self.waiting.event.iteration)


def report(cluster: Cluster) -> None:
    """Report a deadlock at the first wait of the cycle, or of the chain that ends where nobody arrives any more."""
    blocked = [_blocked(unit, unit.waiting) for unit in cluster.units if unit.waiting is not None]
    chain, closed = _chain(blocked)
    first, other = chain[0], next((each for each in (*chain[1:], *blocked) if each is not chain[0]), None)
    shape = "the waits form a cycle" if closed else "the last wait never ends" if chain[1:] else "the wait never ends"
    hops = [_hop(each, chain[(place + 1) % len(chain)]) for place, each in enumerate(chain)]
    if not closed:
        hops[-1] = _end(chain[-1])
    unit = first.unit
    cluster.launch.reporter.report(
        _code(blocked),
        f"deadlock, {shape}: {'; '.join(hops)}",
        first.waiting.event,
        thread=unit.agent.base + unit.first,
        other=None if other is None else other.waiting.event,
        facts=(*((each.name, f"waits for {each.waiting.describe()}{each.when}") for each in blocked), *_ended(cluster)),
        related=_related(chain, blocked, closed=closed),
    )


def _ended(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Facts about agents of roles that have ended."""
    for agent in dict.fromkeys(unit.agent for unit in cluster.units if unit.agent.role is not None):
        if all(unit.finished for unit in cluster.units if unit.agent is agent):
            yield agent.name, "has ended"


def _blocked(unit: Unit, waiting: Waiting) -> _Blocked:
    remaining: dict[Key, Stmt] = {}
    for key, stmt in arrivals(unit):
        remaining.setdefault(key, stmt)
    return _Blocked(unit, waiting, key_of(unit, waiting.on), remaining)


def _chain(blocked: list[_Blocked]) -> tuple[list[_Blocked], bool]:
    """A chain of units, each of which waits for the next, and whether it is a cycle; cycles are preferred."""
    chains = [_from(each, blocked) for each in blocked]
    return next((found for found in chains if found[1]), min(chains, key=lambda found: not found[0][-1].waiting.missed))


def _from(start: _Blocked, blocked: list[_Blocked]) -> tuple[list[_Blocked], bool]:
    chain = [start]
    while True:
        arriving = (
            []
            if _not_ended_by_arrivals(chain[-1].waiting)
            else [each for each in blocked if chain[-1].wanted in each.remaining]
        )
        following = next((each for each in arriving if each is not chain[-1]), arriving[0] if arriving else None)
        if following is None:
            return chain, False
        if following in chain:
            return chain[chain.index(following) :], True
        chain.append(following)


def _not_ended_by_arrivals(waiting: Waiting) -> bool:
    """Whether no arrival can end the wait: its phase was missed, or only bytes are missing."""
    if not isinstance(waiting.on, TrackedMbarrier):
        return False
    return waiting.missed or waiting.on.state.arrived == waiting.on.state.count


def _hop(each: _Blocked, following: _Blocked) -> str:
    return f"{each.name} waits for {each.waiting.describe()}, where {following.name} would arrive"


def _end(each: _Blocked) -> str:
    text = f"{each.name} waits for {each.waiting.describe()}"
    if each.waiting.missed:
        return f"{text}, by an arrival that came too early" if each.overtaken else text
    return (
        f"{text}: the bytes announced do not arrive"
        if _not_ended_by_arrivals(each.waiting)
        else f"{text}: nobody arrives there"
    )


def _related(chain: list[_Blocked], blocked: list[_Blocked], *, closed: bool) -> tuple[tuple[Stmt, str], ...]:
    """The waits of the other units of the chain, and the arrivals that would end them."""
    found = [(each.waiting.event.stmt, f"{each.name} waits here{each.when}") for each in chain[1:]]
    for place, each in enumerate(chain):
        arriving = chain[(place + 1) % len(chain)]
        arrival = arriving.remaining.get(each.wanted)
        if arrival is not None and (closed or place + 1 < len(chain)):
            verb = "copy" if isinstance(arrival, Copy) else "arrive"
            found.append((arrival, f"where {arriving.name} would {verb}, for {each.name}"))
    early = None if closed else chain[-1].overtaken
    if early is not None:
        found.append((early, f"completes phase {chain[-1].waiting.phase + 1} before {chain[-1].name} has waited"))
    others = [each for each in blocked if each not in chain]
    found += [(each.waiting.event.stmt, f"{each.name} waits here{each.when}") for each in others]
    return tuple(found)


def _code(blocked: list[_Blocked]) -> str:
    """I7 for mismatched byte counts; for a missed phase I8 if it completed too early, else I6; otherwise I9."""
    for each in blocked:
        if isinstance(each.waiting.on, TrackedMbarrier):
            state = each.waiting.on.state
            if state.bytes < 0 or (state.bytes > 0 and state.arrived == state.count and not each.waiting.on.underway):
                return "I7"
    missed = [each for each in blocked if each.waiting.missed]
    if not missed:
        return "I9"
    return "I8" if all(each.overtaken for each in missed) else "I6"
