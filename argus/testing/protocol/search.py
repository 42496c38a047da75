"""Model-checks a ring protocol at small sizes, first under fixed priorities, then exhaustively.

Complete only for the sizes and states that its result names. Source: proof-methods 5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, permutations

from attrs import evolve, frozen

from argus.core.protocol.outcome import Fails, Holds, Outcome, Size, Unknown
from argus.core.protocol.ring import Protocol
from argus.testing.protocol.blocked import wait_cycle
from argus.testing.protocol.lowering import Program, StartCopy, program
from argus.testing.protocol.state import Fault, Machine, State, age

Move = int | StartCopy
_ENGINE = -1
_ORDERS = 24


@frozen
class Bound:
    """Limits of a search.

    trips, tiles: the largest size; by default two more trips than there are stages. states: total states explored.
    shortest: states that the search for a shortest schedule may visit, 0 for none.
    """

    trips: int | None = None
    tiles: int = 2
    states: int = 4000
    shortest: int = 20_000


def sizes(protocol: Protocol, bound: Bound) -> list[Size]:
    """The sizes to search, ordered by uses, then by trips."""
    fewer = max(0, -max((role.trips for role in protocol.roles), default=0))
    enough = max((ring.stages for ring in protocol.rings), default=1) + 2 + fewer
    most = bound.trips if bound.trips is not None else enough
    tiles = bound.tiles if protocol.persistent else 1
    every = [Size(trips, n) for trips in range(protocol.min_trips, most + 1) for n in range(1, tiles + 1)]
    if protocol.persistent and any(ring.per_tile or ring.fewer for ring in protocol.rings):
        # If a tile is one use, or the rings' use counts diverge from tile to tile, more tiles of few trips are needed.
        every.extend(
            Size(trips, n)
            for trips in range(protocol.min_trips, protocol.min_trips + 2)
            for n in range(tiles + 1, enough + 1)
        )
    return sorted(every, key=lambda size: (size.uses, size.trips))


def search_deeper(protocol: Protocol, bound: Bound, other: Outcome) -> Outcome:
    """`search`; if only `other` has a failure, search again with enough tiles to show one error per tile."""
    found = search(protocol, bound)
    if not isinstance(found, Holds) or not isinstance(other, Fails):
        return found
    tiles = max((ring.stages for ring in protocol.rings), default=1) + 2
    return search(protocol, evolve(bound, tiles=max(bound.tiles, tiles), states=8 * bound.states))


def search(protocol: Protocol, bound: Bound) -> Outcome:
    """Fails with a schedule for `replay`; Holds up to the bound; Unknown if no size is within the bound."""
    every = sizes(protocol, bound)
    if not every:
        return Unknown("no size within the bound satisfies the assumptions")
    left, explored = bound.states, 0
    for size in every:
        machine = Machine(program(protocol, size))
        failure = _directed(machine, size)
        if failure is None and left > 0:
            found, visited = _explore(machine, size, left)
            left -= visited
            failure = found if isinstance(found, Fails) else None
            explored = size.uses if found is None and explored + 1 >= size.uses else explored
        if failure is not None:
            shorter = _explore(machine, size, bound.shortest)[0] if bound.shortest else None
            return shorter if isinstance(shorter, Fails) else failure
    last = every[-1]
    return Holds(
        f"{_ORDERS} priorities up to {last.trips} trips and {last.tiles} tiles; all schedules up to {explored} uses"
    )


def _directed(machine: Machine, size: Size) -> Fails | None:
    """The first failure under fixed priorities, with the oldest or the youngest copy completing first."""
    actors = (*range(len(machine.program.roles)), _ENGINE)
    for order in islice(permutations(actors), _ORDERS):
        for oldest in (True, False):
            failure = _along(machine, size, order, oldest=oldest)
            if failure is not None:
                return failure
    return None


def _along(machine: Machine, size: Size, order: Sequence[int], *, oldest: bool) -> Fails | None:
    state = machine.start()
    schedule: list[Move] = []
    while (move := _first(machine, state, order, oldest=oldest)) is not None:
        schedule.append(move)
        following = machine.after(state, move)
        if isinstance(following, Fault):
            return _failed(machine, size, following, schedule)
        state = following
    return _hang(machine, size, state, schedule)


def _first(machine: Machine, state: State, order: Sequence[int], *, oldest: bool) -> Move | None:
    for actor in order:
        if actor == _ENGINE:
            if state.in_flight:
                pick = min if oldest else max
                return pick(state.in_flight, key=age)
        elif machine.enabled(state, actor):
            return actor
    return None


def _explore(machine: Machine, size: Size, most: int) -> tuple[Fails | bool | None, int]:
    """A failure with the fewest moves; None if there is none, False if `most` states did not suffice."""
    start = machine.start()
    parents: dict[State, tuple[State, Move] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        moves = machine.moves(state)
        if not moves:
            hang = _hang(machine, size, state, _path(parents, state))
            if hang is not None:
                return hang, len(parents)
        for move in moves:
            following = machine.after(state, move)
            if isinstance(following, Fault):
                return _failed(machine, size, following, [*_path(parents, state), move]), len(parents)
            if following not in parents:
                if len(parents) >= most:
                    return False, len(parents)
                parents[following] = (state, move)
                queue.append(following)
    return None, len(parents)


def _path(parents: dict[State, tuple[State, Move] | None], state: State) -> list[Move]:
    moves: list[Move] = []
    while (step := parents[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]


def _failed(machine: Machine, size: Size, fault: Fault, schedule: Sequence[Move]) -> Fails:
    return Fails(fault.claim, fault.what, size, tuple(_names(machine.program, schedule)))


def _hang(machine: Machine, size: Size, state: State, schedule: Sequence[Move]) -> Fails | None:
    waiting = machine.waiting(state)
    if not waiting:
        return None
    cycle = wait_cycle(machine, state)
    return Fails("hang", "; ".join(cycle), size, tuple(_names(machine.program, schedule)), cycle)


def _names(program_: Program, schedule: Sequence[Move]) -> Iterator[str]:
    for move in schedule:
        yield _landing(move) if isinstance(move, StartCopy) else program_.roles[move]


def _landing(flight: StartCopy) -> str:
    return f"engine:{flight.tag[0]}.{flight.tag[1]}:{'.'.join(map(str, flight.cell))}"


def replay(protocol: Protocol, size: Size, schedule: Sequence[str]) -> Fails | None:
    """The failure that a schedule leads to; None if there is none, or a move of it is not enabled."""
    machine = Machine(program(protocol, size))
    state = machine.start()
    done: list[Move] = []
    for name in schedule:
        move = next((each for each in machine.moves(state) if next(_names(machine.program, [each])) == name), None)
        if move is None:
            return None
        done.append(move)
        following = machine.after(state, move)
        if isinstance(following, Fault):
            return _failed(machine, size, following, done)
        state = following
    return None if machine.moves(state) else _hang(machine, size, state, done)
