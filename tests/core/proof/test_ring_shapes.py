"""Rings with one use per tile, individually tracked products, turns in a loop, uses that depend on the tile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Arrive, Assume, Await, Copy, For, If, Kernel, Mma, One, Role, Stmt, Wait, walk
from argus.core.ir.surgery import fresh_copies
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.obligations import sequentialise
from argus.core.protocol import ring as protocols
from argus.core.protocol.ring import Protocol
from argus.core.query import Unsat
from property_tests.programs import CORPUS, templates
from tests.core.proof.queries import extract, failing, obligations_of, refusal, session
from tests.core.proof.rings import changed, edited, of_role

EventT = TypeVar("EventT", Await, Arrive)


@cache
def kernel(name: str) -> Kernel:
    (template,) = templates(CORPUS / f"{name}.py")
    return template.trace(template.instances()[0])


ATTENTION = "traced/attention_hopper"
HELD = "proved/rows_held_over_a_tile"
PEELED = "proved/first_use_peeled"
TURNS = "proved/turns_in_the_loop"


def bare(protocol: Protocol) -> Protocol:
    """Without names, bytes and ends: roles by number, each copy one byte of one part."""
    roles = tuple(
        evolve(role, name=str(place), finishes=False, body=_bare(role.body), before=_bare(role.before))
        for place, role in enumerate(protocol.roles)
    )
    rings = tuple(evolve(ring, parts=ring.parts[:1] and (1,)) for ring in protocol.rings)
    return evolve(protocol, rings=rings, roles=roles)


def _bare(ops: tuple[protocols.Op, ...]) -> tuple[protocols.Op, ...]:
    kept = (op for op in ops if not (isinstance(op, protocols.Copy) and op.part))
    return tuple(
        evolve(op, size=min(op.size, 1)) if isinstance(op, protocols.Copy | protocols.ArriveFull) else op for op in kept
    )


def test_attention_holds_queries_and_prefetches_keys() -> None:
    found = bare(extract(kernel(ATTENTION)).extracted.protocol)
    assert found == bare(protocols.flash(2, 2))


@pytest.mark.parametrize("name", [ATTENTION, "traced/grouped_gemm"])
def test_the_rings_of_a_listing_are_proved(name: str) -> None:
    made, asked = kernel(name), session()
    read = sequentialise(made, asked)
    assert not isinstance(read, RefusedError), read.reason
    assumed = [stmt.cond for stmt in made.prologue if isinstance(stmt, Assume)]
    codes = set[str]()
    for each in read.obligations:
        if each.invariant == "I28":  # the listing bounds no size
            continue
        given = [] if each.premises == "nothing" else assumed
        assert not each.unknown, each.unknown
        assert isinstance(asked.prove([*given, *each.hypotheses], each.goal), Unsat), each.what
        codes.add(each.invariant)
    assert {"I4", "I5", "I6", "I7", "I8", "I9", "I14"} <= codes


def test_fills_of_the_sequential_kernel_are_of_the_awaited_uses() -> None:
    """Keys come from the last block down, values one block behind, queries once."""
    read = sequentialise(kernel(ATTENTION), session())
    assert not isinstance(read, RefusedError)
    filled = [
        stmt.target.buffer.name
        for stmt in walk(read.kernel.prologue)
        if isinstance(stmt, Copy) and stmt.target.buffer in read.rings
    ]
    step = ["k_ring_k"] * 2 + ["v_ring_v"] * 2
    assert filled == ["q_ring_q"] * 2 + ["k_ring_k"] * 2 + step + step + ["v_ring_v"] * 2


# -- rings held over a tile ------------------------------------------------------------------------------------


def tile_of(made: Kernel, role: str) -> For:
    assert made.roles is not None
    (body,) = (each.body for each in made.roles.roles if each.name == role)
    return next(stmt for stmt in body if isinstance(stmt, For))


def on(made: Kernel, role: str, kind: type[EventT], name: str) -> EventT:
    return next(stmt for stmt in of_role(made, role, kind) if stmt.event.buffer.name == name)


def around(made: Kernel, role: str, stmt: Stmt) -> Stmt:
    """The branch of one thread that holds a statement, or the statement."""
    ones = of_role(made, role, One)
    return next((each for each in ones if stmt in each.body), stmt)


def moved(made: Kernel, stmt: Stmt, *, before: Stmt) -> Kernel:
    return edited(edited(made, stmt), before, *fresh_copies((stmt,)), before)


def test_a_per_tile_ring_is_awaited_first() -> None:
    made = kernel(HELD)
    wait = on(made, "math", Await, "rows_full")
    inside = next(stmt for stmt in tile_of(made, "math").body if isinstance(stmt, For))
    reason, _ = refusal(moved(made, wait, before=inside.body[0]))
    assert reason == "a ring with one use per tile, used in the loop over uses"


def test_a_per_tile_ring_is_read_between_wait_and_release() -> None:
    made = kernel(HELD)
    release = around(made, "math", on(made, "math", Arrive, "rows_empty"))
    wait = on(made, "math", Await, "rows_full")
    reason, _ = refusal(moved(made, release, before=next(s for s in tile_of(made, "math").body if isinstance(s, For))))
    assert "out of place" in reason or "outside its wait and release" in reason
    reason, _ = refusal(changed(made, wait, phase=algebra.add(wait.phase, 1)))
    assert reason == "the awaited phase is not that of the tile's use"
    twice = on(made, "math", Arrive, "rows_empty")
    assert "I8" in failing(changed(made, twice, count=2))


# -- products followed one by one --------------------------------------------------------------------------------


def test_a_weaker_wait_leaves_a_reading_product_in_flight() -> None:
    made = kernel(PEELED)
    (inside, after) = (stmt for stmt in of_role(made, "math", Wait) if stmt.queue == "wgmma")
    assert "I10" not in failing(made)
    assert "I10" in failing(changed(made, inside, pending=2))
    reason, _ = refusal(edited(made, after))
    assert reason == "products may be in flight when a tile ends"
    assert "I10" not in failing(changed(made, inside, pending=0))


def test_a_conditional_product_is_refused() -> None:
    made = kernel(PEELED)
    product = of_role(made, "math", Mma)[1]
    (loop,) = (stmt for stmt in tile_of(made, "math").body if isinstance(stmt, For))
    guarded = If(algebra.lt(3, algebra.sym(loop.symbol)), (product,), span=product.span)
    reason, _ = refusal(edited(made, product, guarded))
    assert "condition" in reason


# -- turns in a loop ---------------------------------------------------------------------------------------------


def turn(made: Kernel, kind: type[EventT]) -> EventT:
    return on(made, "math", kind, "turns")


BREAKS: dict[str, tuple[Callable[[Kernel], Kernel], str]] = {
    "a phase ahead": (
        lambda made: changed(made, turn(made, Await), phase=algebra.add(turn(made, Await).phase, 1)),
        "an agent does not wait for the turn that the agent before it leaves",
    ),
    "left twice": (
        lambda made: changed(made, turn(made, Arrive), count=2),
        "leaving a turn does not arrive once at the next agent's barrier",
    ),
    "never left": (
        lambda made: edited(made, around(made, "math", turn(made, Arrive))),
        "a turn of `math` that is not one wait and one arrival per trip",
    ),
}


@pytest.mark.parametrize(("name", "orders"), [(TURNS, 1), ("proved/turns_of_three", 3)])
@pytest.mark.parametrize(("broken", "wanted"), BREAKS.values(), ids=BREAKS)
def test_turns_in_a_loop_are_an_order(broken: Callable[[Kernel], Kernel], wanted: str, name: str, orders: int) -> None:
    made = kernel(name)
    assert [ring.parts for ring in extract(made).extracted.protocol.rings].count(()) == orders
    reason, _ = refusal(broken(made))
    assert reason == wanted


def test_an_idle_role_is_ignored() -> None:
    made = kernel(PEELED)
    assert made.roles is not None
    idle = Role("idle", 8, 4, 128, None, (), made.roles.roles[0].number, made.roles.roles[0].thread)
    more = evolve(made, threads=384, roles=evolve(made.roles, roles=(*made.roles.roles, idle)))
    assert obligations_of(more)
