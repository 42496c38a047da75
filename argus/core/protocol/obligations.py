"""The obligations' meaning: what each role owes on its own, as questions of linear integer arithmetic.

A *claim* is a goal that must follow from its hypotheses; a *rank* is a question that must have an answer: numbers
that grow along every wait, so that nobody waits in a circle. With the one-slot lemma for the shape of the ring,
the claims give safety. Source: proof-methods 3.2 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from argus.core.algebra import negate
from argus.core.index import Cond
from argus.core.protocol.claims import Claim, empty_ahead, guest_claims, ring_claims, slot_claims, trip_claims
from argus.core.protocol.coupled import Coupled, Drainer, Filler, certify_coupled
from argus.core.protocol.lemma import Certified, Shape, certify
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.ranks import rank
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Meet,
    Protocol,
    Release,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    of_tiles,
    of_trips,
)
from argus.core.protocol.role_ops import Duties, duties
from argus.core.query import Answer, GaveUp, Query, Sat, Unsat

Ask = Callable[[Query], Answer]


@frozen
class Question:
    """claim, what: what fails if the answer is not the wanted one. wanted: Unsat for a claim, Sat for a rank.

    decisive: without it the protocol fails; otherwise another ring may do what this one leaves out.
    """

    claim: str
    what: str
    query: Query
    wanted: type[Unsat | Sat]
    decisive: bool = True


@frozen
class Obliged:
    """Everything that the protocol owes: the questions, and the shapes that need the one-slot lemma.

    beyond: why the questions and the lemma do not suffice, though each of them is owed.
    """

    questions: tuple[Question, ...]
    shapes: tuple[Shape | Coupled, ...]
    beyond: str = ""


def oblige(protocol: Protocol) -> Obliged | Fails | Unknown:
    """The obligations of a protocol; Fails where one is missing an operation, Unknown where it is out of scope.

    Rings of which a tile is one use owe by themselves what a ring owes whose uses are tiles.
    """
    tiles = of_tiles(protocol)
    if tiles is None:
        return _oblige(protocol)
    outside = _beyond(protocol)
    if outside:
        return Unknown(outside)
    own, others = _oblige(tiles), _oblige(of_trips(protocol))
    if isinstance(own, Fails):
        return Unknown(f"{own.what}, unless there is one tile alone, or the trips do what this ring leaves out")
    for each in (own, others):
        if isinstance(each, Fails | Unknown):
            return each
    assert isinstance(own, Obliged)
    assert isinstance(others, Obliged)
    apart = tuple(evolve(each, decisive=protocol.persistent and each.claim not in _BY_OTHERS) for each in own.questions)
    return Obliged((*apart, *others.questions), (*own.shapes, *others.shapes), own.beyond or others.beyond)


_BY_OTHERS = frozenset({"WAR", "RAW", "release", "window"})
"""Claims of order, which the waits of another ring may make good."""


def _beyond(protocol: Protocol) -> str:
    """Why rings of which a tile is one use have no order of their own among the tiles; empty if they have.

    Ranks by tile first, then by trip, grow along every wait if these rings are waited for and filled before all trips.
    """
    for role in protocol.roles:
        for op in role.once:
            if op in role.after and isinstance(op, WaitEmpty | WaitFull | ArriveFull | Copy):
                return f"{role.name} makes {type(op).__name__} after the trips of a tile"
            phase = op.phase.cursor.restarts if isinstance(op, WaitEmpty | WaitFull) else False
            signal = op.signal.restarts if isinstance(op, Copy) else False
            if phase or signal or (not isinstance(op, WaitGroups | Meet) and op.slot.restarts):
                return f"{role.name} counts the uses of a tile anew, where a tile is one use"
        if role.once and (role.share[1] > 1 or role.seeds):
            return f"{role.name} shares out tiles of which each is one use"
    return ""


def _oblige(protocol: Protocol) -> Obliged | Fails | Unknown:
    found = duties(protocol)
    if isinstance(found, Fails | Unknown):
        return found
    own = [claim for duty in found for claim in ring_claims(protocol, duty)]
    claims = [*own, *trip_claims(protocol, found)]
    circle = Question("rank", "roles wait for each other in a circle", Query((rank(protocol, found),)), Sat)
    if any(empty_ahead(duty) for duty in found):
        # Such a wait may make up for what the other claims forbid, and one slot no longer stands for all.
        beyond = "a producer waits for the slot of a later use: the one-slot lemma does not apply"
        return Obliged((*_asked(claims), circle), (), beyond)
    if any(duty.guests or duty.givers for duty in found):
        return _oblige_coupled(protocol, found, (*_asked(claims), circle))
    within = _asked([claim for duty in found for claim in slot_claims(duty)], decisive=len(found) == 1)
    return Obliged((*_asked(claims), circle, *within), tuple(_shape(each) for each in found))


def _oblige_coupled(protocol: Protocol, found: tuple[Duties, ...], asked: tuple[Question, ...]) -> Obliged | Unknown:
    """Rings that fill each other, all of them: they are one ring as far as slots go."""
    if any(role.share[1] > 1 for role in protocol.roles):
        return Unknown("rings that fill each other, and tiles that are shared out among roles")
    if len({duty.ring.stages for duty in found}) > 1 or any(duty.ring.full != 1 for duty in found):
        return Unknown("rings that fill each other have different numbers of slots, or several announcements a use")
    if any(agent.read is None for duty in found for agent in duty.agents):
        return Unknown("rings that fill each other, one of which has no data")
    drained = [agent.role.name for duty in found for agent in duty.agents]
    if len({duty.role.name for duty in found}) < len(found) or len(set(drained)) < len(drained):
        return Unknown("rings that fill each other, and a role that fills or drains two of them")
    claims = [claim for duty in found for part in (slot_claims, guest_claims) for claim in part(duty)]
    return Obliged((*asked, *_asked(claims, decisive=False)), (_coupled(found),))


def _coupled(found: tuple[Duties, ...]) -> Coupled:
    fillers: list[Filler] = []
    for duty in found:
        steps: list[tuple[int, int]] = []
        to: list[tuple[int, ...]] = []
        ops = [op for op in duty.role.body if isinstance(op, ArriveFull | Copy)]
        for op in sorted(ops, key=lambda each: -each.ahead):
            steps.append((-1 if isinstance(op, ArriveFull) else op.part, op.size))
            to.append((op.ring,))
        fillers.append(Filler(tuple(steps), tuple(to)))
    drainers: list[Drainer] = []
    for duty in found:
        for agent in duty.agents:
            gives = [op for op in agent.role.body if isinstance(op, Release)]
            ordered = sorted(gives, key=lambda each: -each.ahead)
            drainers.append(Drainer(duty.number, tuple((op.ring, op.count) for op in ordered)))
    return Coupled(tuple(fillers), tuple(drainers), tuple(duty.ring.empty for duty in found))


def obligations(protocol: Protocol, ask: Ask, least: Ask | None = None) -> Outcome:
    """For every size that satisfies the assumptions, by the answers of a solver.

    least: asked again for a claim that fails, to give a small model.
    """
    owed = oblige(protocol)
    if isinstance(owed, Fails | Unknown):
        return owed
    for question in owed.questions:
        answer = ask(question.query)
        if isinstance(answer, GaveUp):
            return Unknown(f"{question.claim}: {answer.solver} gave up: {answer.reason}")
        if not isinstance(answer, question.wanted):
            if not question.decisive:
                return Unknown(f"{question.what}, unless another ring does what this one leaves out")
            small = least(question.query) if least is not None and isinstance(answer, Sat) else answer
            return Fails(question.claim, question.what, model=_model(small) or _model(answer))
    for shape in owed.shapes:
        certificate = certified(shape)
        if isinstance(certificate, Fails) and len(owed.shapes) > 1:
            return Unknown(f"{certificate.what}, unless another ring does what this one leaves out")
        if not isinstance(certificate, Certified):
            return certificate
    return Unknown(owed.beyond) if owed.beyond else Holds("every size")


def certified(shape: Shape | Coupled) -> Certified | Fails | Unknown:
    """The lemma for a shape of one ring, or of several that fill each other."""
    return certify(shape) if isinstance(shape, Shape) else certify_coupled(shape)


def _asked(claims: Sequence[Claim], *, decisive: bool = True) -> tuple[Question, ...]:
    return tuple(
        Question(each.name, each.what, _denied(each.hypotheses, each.goal), Unsat, decisive) for each in claims
    )


def _denied(hypotheses: Sequence[Cond], goal: Cond) -> Query:
    return Query((*hypotheses, negate(goal)))


def _model(answer: Answer) -> tuple[tuple[str, int], ...]:
    if not isinstance(answer, Sat):
        return ()
    return tuple(sorted((symbol.name, value) for symbol, value in answer.model.items()))


def _shape(duty: Duties) -> Shape:
    """What happens on one slot in one use, in the order of each role's program."""
    return Shape(duty.filling, tuple(agent.draining for agent in duty.agents), duty.ring.full, duty.ring.empty)
