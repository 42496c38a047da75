"""Property: a proved protocol of rings across a cluster has no failing interleaving.

The obligations, with their lemma on one slot of each ring, and the event graph are tested separately, against
`interleavings`, an independent exhaustive search over small numbers of uses.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from argus.core.diagnostic import InternalError
from argus.core.protocol.coupled import CoupledShape
from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.lemma import Certified
from argus.core.protocol.obligations import check_obligations
from argus.core.protocol.outcome import Holds
from argus.core.protocol.ring import Protocol, Role, clustered
from argus.core.query import Answer, Budget, Query
from argus.solvers.z3_backend import Z3
from property_tests.clusters import cluster, wired
from property_tests.depth import examples
from property_tests.interleavings import failure

MOST = 400
"""State limit of the exhaustive search after the priority runs."""
_solver = Z3()


@lru_cache(maxsize=4096)
def _ask(query: Query) -> Answer:
    return _solver.check(query, Budget())


def first_failure(protocol: Protocol, seed: int, most: int = MOST) -> str:
    """A failure in runs of a few uses: in one tile, more than two rounds of the slots, and in two tiles."""
    stages = protocol.rings[0].stages
    for trips, tiles in ((2 * stages + 1, 1), (stages + 1, 2 if protocol.persistent else 1), (1, 1)):
        found, _ = failure(protocol, trips, tiles, most, seed)
        if found:
            return f"{found}, in {tiles} tiles of {trips} trips"
    return ""


@pytest.mark.share(3)
@settings(max_examples=examples(50))
@given(seed=st.integers(0, 2**32))
def test_what_is_proved_of_a_cluster_never_goes_wrong(seed: int) -> None:
    try:
        edits, protocol = cluster(Random(seed))  # noqa: S311 reason: an example, not a secret
    except InternalError:  # an edit that leaves a ring without what its operations name
        assume(condition=False)
        raise
    outcomes = {"obligations": check_obligations(protocol, _ask), "graph": check_event_graph(protocol)}
    event(" ".join(type(each).__name__ for each in outcomes.values()))
    proved = [name for name, each in outcomes.items() if isinstance(each, Holds)]
    if proved:
        assert not first_failure(protocol, seed), f"{proved} prove it after: {edits}"


@pytest.mark.parametrize("consumers", [1, 2])
@pytest.mark.parametrize("lag", [0, 1])
def test_rings_of_a_cluster_are_proved_and_all_their_runs_are_right(consumers: int, lag: int) -> None:
    protocol = clustered(2, consumers=consumers, lag=lag)

    assert isinstance(check_obligations(protocol, _ask), Holds)
    assert isinstance(check_event_graph(protocol), Holds)
    assert not first_failure(protocol, 0)


RELEASED_WITHOUT_WAIT = wired(2, (False, False), (False, True))
"""Block 1 releases slots of block 0 without ever waiting for its uses, so it may be rounds ahead."""


def test_a_slot_given_back_by_who_knows_nothing_of_it_is_not_proved() -> None:
    assert not isinstance(check_obligations(RELEASED_WITHOUT_WAIT, _ask), Holds)
    assert not isinstance(check_event_graph(RELEASED_WITHOUT_WAIT), Holds)
    assert first_failure(RELEASED_WITHOUT_WAIT, 0)


def test_without_the_lemma_the_obligations_would_prove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_any(_: CoupledShape) -> Certified:
        return Certified(0)

    monkeypatch.setattr("argus.core.protocol.obligations.certify_coupled", of_any)

    assert isinstance(check_obligations(RELEASED_WITHOUT_WAIT, _ask), Holds)


def test_all_runs_of_two_uses_are_tried() -> None:
    assert failure(clustered(1), 2, 1, 100_000, 0) == ("", True)


@pytest.mark.parametrize("place", range(5))
def test_a_filler_without_one_of_its_steps_goes_wrong(place: int) -> None:
    """The runs distinguish correct protocols from wrong ones."""
    good = clustered(1)
    filler = good.roles[0]
    body = (*filler.body[:place], *filler.body[place + 1 :])
    wrong = Protocol(good.rings, (Role(filler.name, body, finishes=True), *good.roles[1:]))

    assert first_failure(wrong, 0)
