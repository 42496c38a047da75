"""Property: machine, event graph and obligations agree on every ring that all three support."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import event, given, settings

from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.obligations import check_obligations
from argus.core.protocol.outcome import Fails, Unknown
from argus.core.query import Answer, Budget, Query
from argus.solvers.z3_backend import Z3
from argus.testing.protocol.mutations import Edit
from argus.testing.protocol.search import Bound, replay, search_deeper
from property_tests.depth import examples
from property_tests.rings import rings

pytestmark = pytest.mark.share(3, among="three meanings of a protocol")

BOUND = Bound(states=1000, shortest=0)
_solver = Z3()


@lru_cache(maxsize=4096)
def _ask(query: Query) -> Answer:
    return _solver.check(query, Budget())


@settings(max_examples=examples(120, 2_000))
@given(ring=rings())
def test_the_three_meanings_agree(ring: Edit) -> None:
    _, protocol = ring
    others = (check_event_graph(protocol), check_obligations(protocol, _ask))
    failing = next((each for each in others if isinstance(each, Fails)), others[0])
    outcomes = (search_deeper(protocol, BOUND, failing), *others)
    known = {type(outcome).__name__ for outcome in outcomes if not isinstance(outcome, Unknown)}
    event(" ".join(sorted(known)))

    assert len(known) == 1, outcomes
    machine = outcomes[0]
    if isinstance(machine, Fails):
        assert machine.size is not None
        assert replay(protocol, machine.size, machine.schedule) == machine
