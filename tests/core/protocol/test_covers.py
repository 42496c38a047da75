"""When reads by groups have ended: across the end of a tile, without a wait, and with more trips than uses."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.obligations import check_obligations
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.ring import Cursor, Phase, Protocol, Read, Ring, Role, WaitEmpty, WaitGroups, pingpong, plain
from argus.core.query import Answer, Budget, Query
from argus.solvers.z3_backend import Z3
from argus.testing.protocol.search import Bound, replay, search


def ask(query: Query) -> Answer:
    return Z3().check(query, Budget())


def waits_on(filler: Role, by: int) -> Role:
    """The filler waits for the slot of the use that is later by so many."""
    ahead = Cursor(by)
    return evolve(filler, body=(WaitEmpty(slot=ahead, phase=Phase(ahead, -1)), *filler.body[1:]))


def in_turns(*, lag: int, pending: int, by: int) -> Protocol:
    """Four stages, two consumers that take tiles in turn."""
    whole = pingpong(4, lag=lag)
    filler, *drains = whole.roles
    left = tuple(
        evolve(role, body=tuple(WaitGroups(pending) if isinstance(op, WaitGroups) else op for op in role.body))
        for role in drains
    )
    return evolve(whole, roles=(waits_on(filler, by), *left))


def shown(protocol: Protocol, bound: Bound) -> Outcome:
    """What the machine says; its schedule fails again."""
    found = search(protocol, bound)
    if isinstance(found, Fails):
        assert found.size is not None
        assert replay(protocol, found.size, found.schedule) == found
    return found


@pytest.mark.share(24)
@pytest.mark.parametrize(
    ("lag", "pending", "by", "expected"),
    [
        (2, 2, 0, Holds),
        (2, 3, 0, Fails),
        (2, 3, 1, Holds),
        (2, 4, 1, Fails),
        (1, 2, 1, Holds),
        (1, 3, 1, Fails),
        (1, 3, 2, Holds),
        (0, 1, 1, Fails),
    ],
)
def test_a_read_is_over_at_a_later_release_or_at_its_tiles_end(
    lag: int, pending: int, by: int, expected: type[Outcome]
) -> None:
    """A release comes before the wait that covers its read; whether the filler waits for a release after it decides.

    Without a lag the last release of a tile is not in its epilogue, and the next agent's says nothing of the read.
    """
    protocol = in_turns(lag=lag, pending=pending, by=by)

    assert isinstance(check_event_graph(protocol), expected)
    assert isinstance(shown(protocol, Bound(tiles=6, states=8000, shortest=0)), expected)


@pytest.mark.parametrize(("stages", "lag", "by"), [(6, 0, 4), (7, 0, 5), (8, 1, 5), (8, 1, 6)])
def test_groups_that_nothing_waits_for_go_on_to_the_tiles_end(stages: int, lag: int, by: int) -> None:
    """Tiles too short for a use so much later say nothing of when a read is over."""
    whole = plain(stages, lag=lag)
    filler, drain = whole.roles
    careless = evolve(drain, body=tuple(op for op in drain.body if not isinstance(op, WaitGroups)))
    protocol = evolve(whole, roles=(waits_on(filler, by), careless), persistent=False)
    drawn, run = check_event_graph(protocol), shown(protocol, Bound(shortest=0))

    assert isinstance(drawn, Fails)
    assert isinstance(run, Fails)
    assert (drawn.claim, run.claim) == ("WAR", "WAR")


def test_trips_without_a_use_come_before_the_end_of_reads() -> None:
    """The epilogue of a ring's uses is then a trip like others, in which a group may be left."""
    protocol = evolve(plain(2, lag=1), rings=(Ring(2, fewer=1),), min_trips=2)

    assert isinstance(shown(protocol, Bound(shortest=0)), Fails)
    assert isinstance(check_event_graph(protocol), Unknown)
    assert isinstance(check_obligations(protocol, ask), Unknown)


def test_a_read_in_an_epilogue_is_not_over_at_its_tiles_end() -> None:
    whole = pingpong(6, lag=1)
    filler, *drains = whole.roles
    behind = tuple(
        evolve(role, body=tuple(evolve(op, ahead=-1) if isinstance(op, Read) else op for op in role.body))
        for role in drains
    )
    protocol = evolve(whole, roles=(waits_on(filler, 1), *behind))

    assert isinstance(check_event_graph(protocol), Fails)
