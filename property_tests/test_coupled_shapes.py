"""Property: the reductions of the lemma on coupled rings certify no shape that fails when each move is taken singly."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from argus.core.protocol.coupled import CoupledConsumer, CoupledProducer, CoupledShape, certify_coupled, explore
from argus.core.protocol.lemma import Certified
from property_tests.depth import examples

RINGS = (0, 1)


def shape(random: Random) -> CoupledShape:
    """Two blocks that mostly copy and release as they should: parts, targets, order and counts vary."""
    written: list[list[tuple[tuple[int, int], tuple[int, ...]]]] = []
    for own in RINGS:
        targets = tuple(ring for ring in RINGS if random.random() < 0.85) or (own,)
        common = own + 1 if random.random() < 0.9 else 1
        shared = [((common, 2), targets)] if random.random() < 0.5 else [((common, 2), (ring,)) for ring in targets]
        steps = [((0, random.choice((2, 4))), (own,)), *shared]
        if random.random() < 0.3:
            random.shuffle(steps)
        written.append(steps)
    due = [sum(size for each in written for (_, size), to in each if ring in to) for ring in RINGS]
    producers = tuple(
        CoupledProducer(
            ((-1, due[own]), *(step for step, _ in written[own])), ((own,), *(to for _, to in written[own]))
        )
        for own in RINGS
    )
    consumers: list[CoupledConsumer] = []
    for home in RINGS:
        to = [ring for ring in RINGS if random.random() < 0.9] or [home]
        random.shuffle(to)
        consumers += [CoupledConsumer(home, tuple((ring, 1) for ring in to))] * random.choice((1, 1, 2))
    gives = [sum(count for each in consumers for ring, count in each.gives if ring == own) for own in RINGS]
    wrong = random.random() < 0.1
    return CoupledShape(producers, tuple(consumers), (max(1, gives[0] + wrong), max(1, gives[1])))


@pytest.mark.share(3)
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32))
def test_what_is_certified_never_fails_move_by_move(seed: int) -> None:
    drawn = shape(Random(seed))  # noqa: S311 reason: an example, not a secret
    found = certify_coupled(drawn)
    event(type(found).__name__)
    if isinstance(found, Certified):
        assert isinstance(explore(drawn), Certified)
