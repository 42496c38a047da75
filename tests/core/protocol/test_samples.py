from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest
from attrs import evolve

from argus.core import protocol as package
from argus.core.algebra import sym
from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.lemma import Certified, Shape, certify
from argus.core.protocol.obligations import ProtocolObligations, check_obligations, protocol_obligations
from argus.core.protocol.outcome import Fails, Holds, Size, Unknown
from argus.core.protocol.ring import Protocol, WaitEmpty, alternating, attention, flash, pingpong, plain
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from argus.testing import protocol as explorer
from argus.testing.protocol.mutations import seeded
from argus.testing.protocol.search import Bound, replay, search

EXPLORER = {"lowering", "state", "blocked", "search", "mutations"}
PARTS = {
    "graph": {"offsets", "distances", "events", "producers_consumers", "statics", "building", "graph"},
    "obligations": {"role_ops", "claims", "coupled", "lemma", "ranks", "obligations"},
}
SHARED = {"__init__", "ring", "outcome"}
BOUND = Bound(states=1500, shortest=4000)


def ask(query: Query) -> Answer:
    return Z3().check(query, Budget())


def names(protocol: Protocol) -> tuple[str, str, str]:
    """What each meaning says, by its kind."""
    machine, drawn, owed = search(protocol, BOUND), check_event_graph(protocol), check_obligations(protocol, ask)
    return type(machine).__name__, type(drawn).__name__, type(owed).__name__


def test_no_semantics_imports_another() -> None:
    folder = Path(package.__path__[0])
    assert {file.stem for file in folder.glob("*.py")} == SHARED.union(*PARTS.values())
    for part in PARTS.values():
        for name in part:
            modules = imported(folder / f"{name}.py")
            inside = {m.rpartition(".")[2] for m in modules if m.startswith("argus.core.protocol.")}
            assert inside <= part | {"ring", "outcome"}, name
            assert not {m for m in modules if m.startswith(("argus.core.barriers", "argus.testing"))}, name


def test_the_explorer_imports_no_other_semantics() -> None:
    folder = Path(explorer.__path__[0])
    assert {file.stem for file in folder.glob("*.py")} == EXPLORER | {"__init__"}
    for name in EXPLORER:
        inside = {m for m in imported(folder / f"{name}.py") if m.startswith("argus.core.protocol.")}
        assert {m.rpartition(".")[2] for m in inside} <= {"ring", "outcome"}, name


def imported(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


@pytest.mark.share(8)
@pytest.mark.parametrize(("stages", "consumers", "lag"), list(product((1, 2, 3), (1, 2), (0, 1, 2, 3))))
def test_a_ring_holds_while_its_lag_is_below_its_stages(stages: int, consumers: int, lag: int) -> None:
    expected = "Holds" if lag < stages else "Fails"

    assert names(plain(stages, consumers=consumers, lag=lag)) == (expected,) * 3


@pytest.mark.share(12)
@pytest.mark.parametrize(("k_stages", "v_stages"), list(product((1, 2), (1, 2))))
def test_two_rings(k_stages: int, v_stages: int) -> None:
    for persistent in (False, True):
        for order in ("K(i+1) V(i)", "K(i) V(i)"):
            assert names(attention(k_stages, v_stages, order=order, persistent=persistent)) == ("Holds",) * 3
        expected = "Fails" if v_stages == 1 else "Holds"
        assert names(attention(k_stages, v_stages, order="V(i) K(i)", persistent=persistent)) == (expected,) * 3


def test_a_deadlock_of_two_rings_names_the_cycle() -> None:
    broken = attention(1, 1, order="V(i) K(i)")
    machine, drawn = search(broken, BOUND), check_event_graph(broken)

    assert isinstance(machine, Fails)
    assert machine.claim == "hang"
    assert machine.cycle == (
        "P waits for phase 0 of empty of ring 1[0] (0 phases complete, 0 of 1 arrivals), where C would arrive",
        "C waits for phase 1 of full of ring 0[0] (1 phases complete, 0 of 1 arrivals), where P would arrive",
    )
    assert isinstance(drawn, Fails)
    assert drawn.claim == "deadlock"
    assert any(event.startswith("P.") for event in drawn.cycle)
    assert any(event.startswith("C.") for event in drawn.cycle)


@pytest.mark.share(3)
def test_pingpong_needs_its_turns() -> None:
    """T1: without the order barrier a first wait meets a parity two phases off."""
    assert names(pingpong(3)) == ("Holds",) * 3
    assert names(pingpong(3, turns=False)) == ("Fails",) * 3
    assert names(pingpong(3, skips=False)) == ("Fails",) * 3

    machine, drawn = search(pingpong(3, turns=False), BOUND), check_event_graph(pingpong(3, turns=False))
    assert isinstance(machine, Fails)
    assert machine.claim == "RAW"
    assert isinstance(drawn, Fails)
    assert drawn.claim == "window"


@pytest.mark.share(2)
def test_barriers_without_waits_are_unconstrained() -> None:
    """The values' slots are free once the keys' are; who gives both back may give back values late."""
    whole = flash(1, 2, turns=False)
    filler, *drains = whole.roles
    body = tuple(op for op in filler.body if not (isinstance(op, WaitEmpty) and op.ring == 1))
    trusting = evolve(whole, roles=(evolve(filler, body=body), *drains))

    assert names(trusting) == ("Holds", "Holds", "Unknown")
    more = evolve(trusting, rings=(evolve(whole.rings[0], stages=3), *whole.rings[1:]))
    assert names(more) == ("Fails", "Fails", "Unknown")


def test_named_barriers_need_a_first_arrival() -> None:
    assert names(alternating()) == ("Holds", "Holds", "Unknown")
    assert names(alternating(seeded=False)) == ("Fails", "Fails", "Unknown")


SMALLEST = {
    "stale parity": (Size(1, 1), "parity"),
    "wrong stage": (Size(1, 1), "slot"),
    "missing empty wait": (Size(2, 2), "WAR"),
    "release before wgmma wait": (Size(2, 2), "release"),
    "off-by-one trip (P: K-1)": (Size(1, 1), "exists"),
    "off-by-one trip (P: K+1)": (Size(1, 1), "exists"),
    "phase not carried": (Size(1, 2), "slot"),
    "expect_tx half": (Size(1, 1), "bytes"),
    "empty init 1 for 2 consumers": (Size(2, 2), "arrivals"),
    "consumer exits early": (Size(2, 2), "exists"),
    "lag not below the stages": (Size(4, 1), "rank"),
}


@pytest.mark.share(4)
@pytest.mark.parametrize(("name", "protocol"), seeded())
def test_seeded_bugs_at_their_smallest_size(name: str, protocol: Protocol) -> None:
    machine, owed = search(protocol, BOUND), check_obligations(protocol, ask)

    assert isinstance(machine, Fails)
    assert isinstance(owed, Fails)
    assert isinstance(check_event_graph(protocol), Fails)
    assert (machine.size, owed.claim) == SMALLEST[name]
    assert machine.size is not None
    assert replay(protocol, machine.size, machine.schedule) == machine
    assert (machine.claim == "hang") == bool(machine.cycle)


def test_an_impossible_schedule_is_no_counterexample() -> None:
    assert replay(plain(2), Size(1, 1), ("C0",)) is None
    assert replay(plain(2), Size(1, 1), ("P", "engine:0.0:0.0.0", "C0", "C0")) is None


@pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("protocol", [plain(3, consumers=2, lag=1), pingpong(4), attention(2, 2, persistent=True)])
def test_every_question_is_answered_by_both_solvers(solver: Solver, protocol: Protocol) -> None:
    owed = protocol_obligations(protocol)

    assert isinstance(owed, ProtocolObligations)
    assert len(owed.questions) > 20
    for question in owed.questions:
        assert isinstance(solver.check(question.query, Budget()), question.wanted), question.what


def least(query: Query) -> Answer:
    ordered = sorted(query.symbols, key=lambda symbol: (symbol.kind != "size", symbol.name))
    return Session(Z3()).minimise(query.assertions, [sym(symbol) for symbol in ordered])


MODELS = {
    "stale parity": {"u": 0},
    "wrong stage": {"u": 0},
    "missing empty wait": {"u": 3, "v": 0},
    "release before wgmma wait": {"T": 1, "k": 0},
    "off-by-one trip (P: K-1)": {"K": 1, "k": 0},
    "off-by-one trip (P: K+1)": {"K": 1, "k": 1},
    "phase not carried": {"lost": 1, "u": 1},
}


@pytest.mark.parametrize("name", MODELS)
def test_the_smallest_model_of_a_claim(name: str) -> None:
    owed = check_obligations(dict(seeded())[name], ask, least)

    assert isinstance(owed, Fails)
    assert dict(owed.model) == MODELS[name]


def test_a_solver_that_gives_up_proves_nothing() -> None:
    owed = check_obligations(plain(2), lambda _: GaveUp("tired", "no time"))

    assert isinstance(owed, Unknown)
    assert "tired" in owed.reason


def test_the_answers_decide() -> None:
    assert isinstance(check_obligations(plain(2), lambda _: Unsat("yes")), Fails)
    assert isinstance(check_obligations(plain(2), lambda _: Sat("no", {})), Fails)


GOOD = (("wait", 0), ("announce", 2), ("copy", 1), ("copy", 1))
DRAIN = (("wait", 0), ("read", 0), ("over", 0), ("release", 1))


def test_the_one_slot_lemma() -> None:
    one, two = certify(Shape(GOOD, (DRAIN,))), certify(Shape(GOOD, (DRAIN, DRAIN), empty=2))

    assert isinstance(one, Certified)
    assert isinstance(two, Certified)
    assert one.states < two.states
    assert certify(Shape(GOOD, (DRAIN,))) is one


@pytest.mark.parametrize(
    "shape",
    [
        Shape(GOOD, (DRAIN, DRAIN), empty=1),
        Shape(GOOD, (DRAIN,), empty=2),
        Shape(GOOD[1:], (DRAIN,)),
        Shape((GOOD[0], ("announce", 1), *GOOD[2:]), (DRAIN,)),
        Shape((GOOD[1], GOOD[0], *GOOD[2:]), (DRAIN,)),
        Shape((GOOD[2], *GOOD[:2], GOOD[3]), (DRAIN,)),
        Shape(GOOD, (DRAIN[1:],)),
        Shape(GOOD, ((DRAIN[0], DRAIN[1], DRAIN[3], DRAIN[2]),)),
        Shape(GOOD, ((DRAIN[3], *DRAIN[:3]),)),
    ],
)
def test_shapes_without_the_lemma(shape: Shape) -> None:
    found = certify(shape)

    assert isinstance(found, Fails)
    assert found.claim == "lemma"


def test_an_outcome_is_not_a_bool() -> None:
    for outcome in (Holds("every size"), Fails("RAW", "so"), Unknown("why")):
        with pytest.raises(TypeError, match="not a bool"):
            bool(outcome)
