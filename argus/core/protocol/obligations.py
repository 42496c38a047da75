"""Obligation semantics: role-local proof obligations of a protocol as queries in linear integer arithmetic.

A *claim* is a goal that must follow from its hypotheses. A *rank* is a satisfiability query for numbers that increase
along every wait, which excludes cyclic waits. With the one-slot lemma for the shape of the ring, the claims imply
safety. Source: proof-methods 3.2 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from argus.core.algebra import negate
from argus.core.index import Cond
from argus.core.protocol.claims import Claim, empty_slot_offset, guest_claims, ring_claims, slot_claims, trip_claims
from argus.core.protocol.coupled import CoupledConsumer, CoupledProducer, CoupledShape, certify_coupled
from argus.core.protocol.lemma import Certified, Shape, certify
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.ranks import rank_condition
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
    Protocol,
    Release,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    tile_rings,
    trip_rings,
)
from argus.core.protocol.role_ops import RingOps, find_ring_ops
from argus.core.query import Answer, GaveUp, Query, Sat, Unsat

Ask = Callable[[Query], Answer]


@frozen
class Question:
    """A query to the solver.

    claim, what: the failed claim, by name and as a sentence, if the answer is not the wanted one. wanted: Unsat for a
    claim, Sat for a rank. decisive: a failed claim is a failure of the protocol; otherwise another ring may prevent it.
    """

    claim: str
    what: str
    query: Query
    wanted: type[Unsat | Sat]
    decisive: bool = True


@frozen
class ProtocolObligations:
    """The obligations of a protocol: solver queries, and the shapes for which the one-slot lemma must hold.

    incomplete: why these necessary conditions are not sufficient; empty if they are.
    """

    questions: tuple[Question, ...]
    shapes: tuple[Shape | CoupledShape, ...]
    incomplete: str = ""


def protocol_obligations(protocol: Protocol) -> ProtocolObligations | Fails | Unknown:
    """The obligations of a protocol; Fails if an operation is missing, Unknown if it is out of scope.

    Rings with one use per tile have the obligations of a ring whose trips are tiles, independently of the others.
    """
    tiles = tile_rings(protocol)
    if tiles is None:
        return _periodic_obligations(protocol)
    outside = _tile_ring_error(protocol)
    if outside:
        return Unknown(outside)
    own, others = _periodic_obligations(tiles), _periodic_obligations(trip_rings(protocol))
    if isinstance(own, Fails):
        return Unknown(f"{own.what}, unless there is only one tile, or the operations of the trips prevent it")
    for each in (own, others):
        if isinstance(each, Fails | Unknown):
            return each
    assert isinstance(own, ProtocolObligations)
    assert isinstance(others, ProtocolObligations)
    of_tiles = tuple(
        evolve(each, decisive=protocol.persistent and each.claim not in _ORDER_CLAIMS) for each in own.questions
    )
    return ProtocolObligations(
        (*of_tiles, *others.questions), (*own.shapes, *others.shapes), own.incomplete or others.incomplete
    )


_ORDER_CLAIMS = frozenset({"WAR", "RAW", "release", "window"})
"""Claims of order, which the waits of another ring may establish."""


def _tile_ring_error(protocol: Protocol) -> str:
    """Why rings with one use per tile cannot be checked separately; empty if they can.

    If they are filled and awaited before all trips, ranks by tile first, then by trip, increase along every wait.
    """
    for role in protocol.roles:
        for op in role.tile_ops:
            if op in role.after and isinstance(op, WaitEmpty | WaitFull | ArriveFull | Copy):
                return f"{role.name} executes {type(op).__name__} after the trips of a tile"
            phase = op.phase.cursor.restarts if isinstance(op, WaitEmpty | WaitFull) else False
            signal = op.signal.restarts if isinstance(op, Copy) else False
            if phase or signal or (not isinstance(op, WaitGroups | NamedBarrierOp) and op.slot.restarts):
                return f"{role.name} restarts a cursor at each tile, on a ring with one use per tile"
        if role.tile_ops and (role.share[1] > 1 or role.seeds):
            return f"{role.name} takes only every n-th tile, on a ring with one use per tile"
    return ""


def _periodic_obligations(protocol: Protocol) -> ProtocolObligations | Fails | Unknown:
    found = find_ring_ops(protocol)
    if isinstance(found, Fails | Unknown):
        return found
    own = [claim for ring_ops in found for claim in ring_claims(protocol, ring_ops)]
    claims = [*own, *trip_claims(protocol, found)]
    circle = Question("rank", "roles wait for each other cyclically", Query((rank_condition(protocol, found),)), Sat)
    if any(empty_slot_offset(ring_ops) for ring_ops in found):
        # Such a wait may compensate for a failed claim, and one slot no longer represents all.
        beyond = "a producer waits for the slot of a later use: the one-slot lemma does not apply"
        return ProtocolObligations((*_questions(claims), circle), (), beyond)
    if any(ring_ops.remote_copies or ring_ops.remote_releases for ring_ops in found):
        return _coupled_obligations(protocol, found, (*_questions(claims), circle))
    within = _questions([claim for ring_ops in found for claim in slot_claims(ring_ops)], decisive=len(found) == 1)
    return ProtocolObligations((*_questions(claims), circle, *within), tuple(_shape(each) for each in found))


def _coupled_obligations(
    protocol: Protocol, found: tuple[RingOps, ...], asked: tuple[Question, ...]
) -> ProtocolObligations | Unknown:
    """The obligations of the coupled rings of a cluster, which behave as one ring with respect to slots."""
    if any(role.share[1] > 1 for role in protocol.roles):
        return Unknown("coupled rings whose roles divide the tiles among them")
    if len({ring_ops.ring.stages for ring_ops in found}) > 1 or any(ring_ops.ring.full != 1 for ring_ops in found):
        return Unknown("coupled rings with different numbers of slots, or several announcements per use")
    if any(agent.read is None for ring_ops in found for agent in ring_ops.agents):
        return Unknown("coupled rings, one of which has no data")
    drained = [agent.role.name for ring_ops in found for agent in ring_ops.agents]
    if len({ring_ops.role.name for ring_ops in found}) < len(found) or len(set(drained)) < len(drained):
        return Unknown("coupled rings of which a role fills or consumes two")
    claims = [claim for ring_ops in found for part in (slot_claims, guest_claims) for claim in part(ring_ops)]
    return ProtocolObligations((*asked, *_questions(claims, decisive=False)), (_coupled(found),))


def _coupled(found: tuple[RingOps, ...]) -> CoupledShape:
    producers: list[CoupledProducer] = []
    for ring_ops in found:
        steps: list[tuple[int, int]] = []
        to: list[tuple[int, ...]] = []
        ops = [op for op in ring_ops.role.body if isinstance(op, ArriveFull | Copy)]
        for op in sorted(ops, key=lambda each: -each.ahead):
            steps.append((-1 if isinstance(op, ArriveFull) else op.part, op.size))
            to.append((op.ring,))
        producers.append(CoupledProducer(tuple(steps), tuple(to)))
    consumers: list[CoupledConsumer] = []
    for ring_ops in found:
        for agent in ring_ops.agents:
            gives = [op for op in agent.role.body if isinstance(op, Release)]
            ordered = sorted(gives, key=lambda each: -each.ahead)
            consumers.append(CoupledConsumer(ring_ops.number, tuple((op.ring, op.count) for op in ordered)))
    return CoupledShape(tuple(producers), tuple(consumers), tuple(ring_ops.ring.empty for ring_ops in found))


def check_obligations(protocol: Protocol, ask: Ask, least: Ask | None = None) -> Outcome:
    """Checks a protocol for every size that satisfies the assumptions, with a solver.

    least: asked again for a failed claim, to obtain a small model.
    """
    required = protocol_obligations(protocol)
    if isinstance(required, Fails | Unknown):
        return required
    for question in required.questions:
        answer = ask(question.query)
        if isinstance(answer, GaveUp):
            return Unknown(f"{question.claim}: {answer.solver} gave up: {answer.reason}")
        if not isinstance(answer, question.wanted):
            if not question.decisive:
                return Unknown(f"{question.what}, unless the operations on another ring prevent it")
            small = least(question.query) if least is not None and isinstance(answer, Sat) else answer
            return Fails(question.claim, question.what, model=_model(small) or _model(answer))
    for shape in required.shapes:
        certificate = certify_shape(shape)
        if isinstance(certificate, Fails) and len(required.shapes) > 1:
            return Unknown(f"{certificate.what}, unless the operations on another ring prevent it")
        if not isinstance(certificate, Certified):
            return certificate
    return Unknown(required.incomplete) if required.incomplete else Holds("every size")


def certify_shape(shape: Shape | CoupledShape) -> Certified | Fails | Unknown:
    """The one-slot lemma for a shape of one ring, or of several coupled rings."""
    return certify(shape) if isinstance(shape, Shape) else certify_coupled(shape)


def _questions(claims: Sequence[Claim], *, decisive: bool = True) -> tuple[Question, ...]:
    return tuple(
        Question(each.name, each.what, _counterexample_query(each.hypotheses, each.goal), Unsat, decisive)
        for each in claims
    )


def _counterexample_query(hypotheses: Sequence[Cond], goal: Cond) -> Query:
    return Query((*hypotheses, negate(goal)))


def _model(answer: Answer) -> tuple[tuple[str, int], ...]:
    if not isinstance(answer, Sat):
        return ()
    return tuple(sorted((symbol.name, value) for symbol, value in answer.model.items()))


def _shape(ring_ops: RingOps) -> Shape:
    """The steps on one slot in one use, in the program order of each role."""
    return Shape(
        ring_ops.filling, tuple(agent.draining for agent in ring_ops.agents), ring_ops.ring.full, ring_ops.ring.empty
    )
