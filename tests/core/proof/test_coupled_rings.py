"""Coupled rings of a cluster: the shipped pair GEMM is proved, and other forms are refused."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.protocol.coupled import CoupledConsumer, CoupledProducer, CoupledShape, certify_coupled
from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.lemma import Certified
from argus.core.protocol.outcome import Fails, Holds
from argus.core.protocol.ring import clustered
from argus.core.verdict import Proved
from argus.kernels.gemm import gemm
from argus.verifier.kernel import verify


@pytest.mark.share(6)
@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_the_gemm_of_pairs_is_proved(solver: str) -> None:
    report = verify(gemm, solver=solver, config="clustered")
    assert isinstance(report.verdict, Proved), report.diagnostics
    standing = {finding.invariant: finding.standing for finding in report.findings}
    assert [standing[code] for code in ("I7", "I8", "I14", "I15", "I16")] == ["proved"] * 5


def pair(consumers: int, *, both: bool) -> CoupledShape:
    """Two fillers that multicast to each other; consumers give slots back to both of them, or to their own."""
    fillers = tuple(CoupledProducer(((-1, 4), (0, 2), (1 + own, 1)), ((own,), (own,), (0, 1))) for own in (0, 1))
    fills = [
        CoupledProducer((*each.steps[:2], each.steps[2], each.steps[2]), (*each.to[:2], (0,), (1,))) for each in fillers
    ]
    gives = [((0, 1), (1, 1)) if both else ((own, 1),) for own in (0, 1)]
    drainers = tuple(CoupledConsumer(own, gives[own]) for own in (0, 1) for _ in range(consumers))
    return CoupledShape(tuple(fills), drainers, (consumers * (2 if both else 1),) * 2)


@pytest.mark.parametrize("consumers", [1, 2, 3])
def test_one_slot_of_each_ring(consumers: int) -> None:
    assert isinstance(certify_coupled(pair(consumers, both=True)), Certified)
    assert isinstance(certify_coupled(pair(consumers, both=False)), Fails)


def several(*, due: int) -> CoupledShape:
    """As `pair`, with four copies more of each filler to its own ring, of which `due` bytes are announced."""
    fills = [
        CoupledProducer(
            ((-1, due), *((10 + part, 3) for part in range(4)), *each.steps[1:]),
            ((own,), *((own,) for _ in range(4)), *each.to[1:]),
        )
        for own, each in enumerate(pair(2, both=True).producers)
    ]
    return evolve(pair(2, both=True), producers=tuple(fills))


def test_copies_to_one_ring_are_merged() -> None:
    joined, one_by_one = certify_coupled(several(due=16)), certify_coupled(pair(2, both=True))
    assert isinstance(joined, Certified)
    assert isinstance(one_by_one, Certified)
    assert joined.states == one_by_one.states


@pytest.mark.parametrize("due", [13, 4])
def test_a_phase_that_completes_early_is_found(due: int) -> None:
    assert isinstance(certify_coupled(several(due=due)), Fails)


def among(blocks: int, *, lost: bool = False) -> CoupledShape:
    """Each of so many blocks multicasts a part to all, and releases slots to all; if lost, one not to the last."""
    rings = tuple(range(blocks))
    producers = tuple(
        CoupledProducer(((-1, 2 + blocks), (0, 2), *((1 + own, 1) for _ in rings)), ((own,), (own,), *zip(rings)))
        for own in rings
    )
    gives = tuple((ring, 1) for ring in rings)
    consumers = tuple(CoupledConsumer(own, gives[:-1] if lost and own == 0 else gives) for own in rings)
    return CoupledShape(producers, consumers, (*(blocks,) * (blocks - 1), blocks - lost))


def test_four_blocks_are_few_states() -> None:
    found = certify_coupled(among(4))
    assert isinstance(found, Certified)
    assert found.states < 10_000


@pytest.mark.parametrize("blocks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_release_that_one_producer_does_not_wait_for_is_found(blocks: int) -> None:
    assert isinstance(certify_coupled(among(blocks)), Certified)
    assert isinstance(certify_coupled(among(blocks, lost=True)), Fails)


def test_two_copies_of_one_part_are_found() -> None:
    """Together with a copy of another part they would be two parts."""
    first = CoupledProducer(((-1, 2), (1, 2), (1, 2)), ((0,), (0,), (1,)))
    second = CoupledProducer(((-1, 8), (0, 4), (1, 2)), ((1,), (1,), (1,)))
    consumers = CoupledConsumer(0, ((0, 1), (1, 1))), CoupledConsumer(1, ((0, 1), (1, 1)))
    assert isinstance(certify_coupled(CoupledShape((first, second), consumers, (2, 2))), Fails)


@pytest.mark.parametrize(("stages", "lag", "holds"), [(2, 1, True), (3, 2, True), (2, 2, False), (1, 0, True)])
def test_coupled_rings_deadlock_like_one_ring(stages: int, lag: int, holds: bool) -> None:
    found = check_event_graph(clustered(stages, consumers=2, lag=lag))
    assert isinstance(found, Holds if holds else Fails)
