"""Extraction of ring protocols: from correct kernels, and from edited ones, which are refused or differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, lt, sub
from argus.core.index import Cond, Symbol, SymbolKind
from argus.core.ir import Alloc, Arrive, Await, Copy, For, If, Kernel, Mma, One, Stmt, Sync, Wait
from argus.core.ir.surgery import fresh_copies
from argus.core.protocol import ring as protocols
from argus.core.protocol.ring import Protocol
from argus.core.verdict import Proved
from argus.verifier.kernel import verify
from property_tests.role_programs import ROLES
from tests.core.proof.queries import extract, failing, refusal
from tests.core.proof.rings import Drained, changed, edited, every, of_role, ring


def unnamed(protocol: Protocol) -> Protocol:
    """The protocol with roles that are named by number, and nobody waiting at the end."""
    roles = tuple(evolve(role, name=str(place), finishes=False) for place, role in enumerate(protocol.roles))
    return evolve(protocol, roles=roles)


def said(kernel: Kernel) -> Protocol:
    return extract(kernel).extracted.protocol


@pytest.mark.parametrize(
    ("cfg", "wanted"),
    [
        (Drained(), protocols.plain(4, parts=(2048, 512))),
        (Drained(stages=2), protocols.plain(2, parts=(2048, 512))),
        (Drained(lag=1), protocols.plain(4, lag=1, parts=(2048, 512))),
        (Drained(lag=1, agents=2), protocols.plain(4, consumers=2, lag=1, parts=(4096, 512))),
        (Drained(products=2), protocols.plain(4, parts=(4096, 1024))),
        (Drained(lag=1, products=2), protocols.plain(4, lag=1, parts=(4096, 1024))),
        (Drained(lag=1, products=2, pending=1), protocols.plain(4, lag=1, parts=(4096, 1024))),
    ],
    ids=["each use", "two slots", "a lag", "two agents", "two products", "and a lag", "half a use may be left"],
)
def test_a_ring_of_one_tile_is_the_plain_protocol(cfg: Drained, wanted: Protocol) -> None:
    found = said(ring(cfg))
    assert unnamed(found) == unnamed(evolve(wanted, persistent=False))
    assert [role.finishes for role in found.roles] == [True, *[False] * cfg.agents]


def test_the_cooperative_schedule_is_a_ring_of_two_consumers_over_all_tiles() -> None:
    wanted = protocols.plain(2, consumers=2, lag=1, parts=(4096, 512))
    assert unnamed(said(ROLES["cooperative"])) == unnamed(wanted)


def test_the_ping_pong_schedule_is_two_consumers_with_tiles_in_turn() -> None:
    found, wanted = said(ROLES["pingpong"]), protocols.pingpong(2)
    assert [role.share for role in found.roles] == [(0, 1), (0, 2), (1, 2)]
    assert [role.turn for role in found.roles] == [False, True, True]
    parts = protocols.producer(parts=(2048, 512)).body
    rings = (protocols.Ring(2, (2048, 512)),)
    made = evolve(wanted, rings=rings, roles=(evolve(wanted.roles[0], body=parts), *wanted.roles[1:]))
    assert unnamed(found) == unnamed(made)


def test_barriers_by_hand_are_extracted_as_a_ring() -> None:
    assert unnamed(said(ROLES["barriers_by_hand"])) == unnamed(
        evolve(protocols.plain(2, parts=(2048, 512)), persistent=False)
    )
    ordinary = unnamed(said(ROLES["ordinary_reads_of_slots"])).roles[1]
    assert ordinary.body == protocols.consumer("1", late=False).body


# -- phases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [-1, 1, 2])
@pytest.mark.parametrize("role", ["load", "math"])
def test_a_phase_off_by_rounds_is_that_of_another_use_which_its_trips_do_not_have(role: str, by: int) -> None:
    kernel = ring(Drained(stages=2))
    wait = of_role(kernel, role, Await)[0]
    reason, stmt = refusal(changed(kernel, wait, phase=add(wait.phase, by)))
    assert reason == "an operation on a ring whose condition does not skip exactly the uses beyond the tile"
    assert stmt.span == wait.span


def test_another_phase_is_refused() -> None:
    kernel = ring(Drained(stages=2))
    wait = of_role(kernel, "math", Await)[0]
    for phase in (algebra.const(0), algebra.mul(wait.phase, 2), add(wait.phase, 7), add(wait.event.at[0], 0)):
        reason, stmt = refusal(changed(kernel, wait, phase=phase))
        assert reason == "the awaited phase is not that of the slot's use"
        assert stmt.span == wait.span


def test_a_slot_at_no_fixed_distance_is_refused() -> None:
    kernel = ROLES["barriers_by_hand"]
    arrive = of_role(kernel, "math", Arrive)[0]
    (k,) = [loop.symbol for loop in of_role(kernel, "math", For)]
    at = algebra.mod(algebra.floordiv(algebra.sym(k), 2), 2)
    reason, stmt = refusal(changed(kernel, arrive, event=evolve(arrive.event, at=(at,))))
    assert reason == "a slot that is not at a fixed distance from the loop's trip"
    assert stmt.span == arrive.span


def test_a_copy_completes_on_the_barrier_of_its_own_slot() -> None:
    kernel = ROLES["barriers_by_hand"]
    copy = of_role(kernel, "load", Copy)[1]
    assert copy.signal is not None
    (k,) = [loop.symbol for loop in of_role(kernel, "load", For)]
    signal = evolve(copy.signal, at=(algebra.mod(add(algebra.sym(k), 1), 2),))
    reason, stmt = refusal(changed(kernel, copy, signal=signal))
    assert reason == "a copy into one slot that completes on the barrier of another"
    assert stmt.span == copy.span


# -- trap T4 -------------------------------------------------------------------------------------------------


def test_a_slot_that_others_may_still_read_is_not_released() -> None:
    kernel = ROLES["ordinary_reads_of_slots"]
    (meeting,) = of_role(kernel, "store", Sync)
    (arrive,) = of_role(kernel, "store", Arrive)
    reason, stmt = refusal(edited(kernel, meeting))
    assert reason.endswith("(trap T4)")
    assert stmt.span == arrive.span


def test_a_conditional_barrier_does_not_cover_readers() -> None:
    kernel = ROLES["ordinary_reads_of_slots"]
    (meeting,) = of_role(kernel, "store", Sync)
    (k,) = [loop.symbol for loop in of_role(kernel, "store", For)]
    guarded = If(lt(0, algebra.sym(k)), (meeting,), span=meeting.span)
    reason, _ = refusal(edited(kernel, meeting, guarded))
    assert reason.endswith("(trap T4)")


def test_a_barrier_before_the_read_does_not_cover_it() -> None:
    kernel = ROLES["ordinary_reads_of_slots"]
    (meeting,) = of_role(kernel, "store", Sync)
    look = of_role(kernel, "store", Copy)[0]
    moved = edited(edited(kernel, meeting), look, meeting, look)
    reason, _ = refusal(moved)
    assert reason.endswith("(trap T4)")


@pytest.mark.parametrize("kind", ["wave", "thread"])
def test_each_reader_releases_unless_some_do_not_arrive(kind: SymbolKind) -> None:
    kernel = ROLES["each_reader_releases"]
    (arrive,) = of_role(kernel, "store", Arrive)
    some = If(lt(0, algebra.sym(Symbol("which", kind, 0, 3))), (arrive,), span=arrive.span)
    reason, stmt = refusal(edited(kernel, arrive, some))
    assert reason.endswith("(trap T4)")
    assert stmt.span == arrive.span


# -- trips beside the loop -----------------------------------------------------------------------------------


def epilogue(kernel: Kernel) -> tuple[Wait, If]:
    """Of a ring with a lag of one: the wait after the loop, and the release of the last use."""
    assert kernel.roles is not None
    body = kernel.roles.roles[1].body
    (at,) = (place for place, stmt in enumerate(body) if isinstance(stmt, For))
    after = body[at + 1 :]
    wait = next(stmt for stmt in after if isinstance(stmt, Wait))
    return wait, next(stmt for stmt in after if isinstance(stmt, If))


LAGGED = ring(Drained(lag=1))


def test_the_epilogue_is_the_peeled_trips() -> None:
    assert isinstance(verify(LAGGED, solver="z3").verdict, Proved)
    _, late = epilogue(LAGGED)
    reason, _ = refusal(edited(LAGGED, late))
    assert reason == "0 operations on rings are outside the loop, but 1 are missing from its trips"
    twice = edited(LAGGED, late, late, *fresh_copies((late,)))
    reason, _ = refusal(twice)
    assert "after the last tile" in reason or "outside the loop" in reason


def test_the_last_groups_are_waited_for_before_anything_else() -> None:
    wait, late = epilogue(LAGGED)
    for kernel in (edited(LAGGED, wait), changed(LAGGED, wait, pending=1), moved_behind(LAGGED, wait, late)):
        reason, _ = refusal(kernel)
        assert reason.startswith("groups may be in flight when the loop ends")


def moved_behind(kernel: Kernel, first: Stmt, second: Stmt) -> Kernel:
    return edited(edited(kernel, first), second, second, first)


GUARDS: dict[str, Callable[[For], Cond]] = {
    "a trip late": lambda loop: algebra.le(2, algebra.sym(loop.symbol)),
    "every trip": lambda _: algebra.TRUE,
    "even trips": lambda loop: algebra.eq(algebra.mod(algebra.sym(loop.symbol), 2), 0),
    "but the last": lambda loop: lt(add(algebra.sym(loop.symbol), 1), loop.stop),
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_a_condition_that_skips_other_uses_is_refused(guard: Callable[[For], Cond]) -> None:
    kernel = ROLES["two_consumers"]
    (loop,) = of_role(kernel, "math", For)
    (branch,) = of_role(kernel, "math", If)
    reason, stmt = refusal(changed(kernel, branch, cond=guard(loop)))
    assert reason == "an operation on a ring whose condition does not skip exactly the uses beyond the tile"
    assert stmt.span == of_role(kernel, "math", Arrive)[0].span


def test_a_release_in_the_epilogue_is_of_its_own_use() -> None:
    kernel = ROLES["two_consumers"]
    last = of_role(kernel, "math", Arrive)[-1]
    (loop,) = of_role(kernel, "math", For)
    at = algebra.mod(sub(loop.stop, 2), 3)
    reason, stmt = refusal(changed(kernel, last, event=evolve(last.event, at=(at,))))
    assert reason == "an operation outside the loop over uses that is not the one missing from its trips"
    assert stmt.span == last.span
    reason, _ = refusal(changed(kernel, last, count=2))
    assert reason == "an operation outside the loop over uses that is not the one missing from its trips"


def test_the_producer_waits_for_every_slot_in_order_at_its_end() -> None:
    kernel = ring(Drained(stages=2))
    ends = of_role(kernel, "load", Await)[1:]
    assert len(ends) == 2
    for broken in (edited(kernel, ends[1]), changed(kernel, ends[0], phase=add(ends[0].phase, 1))):
        reason, _ = refusal(broken)
        assert reason == "the statements after the last tile are not the waits for every slot in order"


# -- groups --------------------------------------------------------------------------------------------------


def on_a_condition(kernel: Kernel, number: int) -> Kernel:
    """The kernel, of which a product is executed in the first three trips alone."""
    product = of_role(kernel, "math", Mma)[number]
    (loop,) = of_role(kernel, "math", For)
    return edited(kernel, product, If(lt(algebra.sym(loop.symbol), 3), (product,), span=product.span))


def test_the_first_product_of_a_use_is_in_each_trip() -> None:
    reason, _ = refusal(on_a_condition(ring(Drained(products=2, lag=1)), 0))
    assert reason == "a use that is read again under a condition"


def test_a_product_on_a_condition_is_no_group_of_each_use() -> None:
    for pending, left in ((0, 0), (1, 1), (2, 2)):
        kernel = on_a_condition(ring(Drained(products=2, lag=1, pending=pending)), 1)
        (wait,) = [op for op in said(kernel).roles[1].body if isinstance(op, protocols.WaitGroups)]
        assert wait.pending == left
        assert ("I10" in failing(kernel)) == (left == 2)


@pytest.mark.share(2)
def test_groups_that_may_be_left_are_counted_by_uses() -> None:
    for pending, left in ((0, 0), (1, 1), (2, 1), (3, 2)):
        kernel = ring(Drained(products=2, lag=1, pending=pending))
        (wait,) = [op for op in said(kernel).roles[1].body if isinstance(op, protocols.WaitGroups)]
        assert wait.pending == left
        assert ("I10" in failing(kernel)) == (left == 2)


# -- what a ring is ------------------------------------------------------------------------------------------


def test_counts_and_bytes_are_those_of_the_statements() -> None:
    kernel = ring(Drained(stages=2, agents=2))
    empty = next(stmt for stmt in every(kernel, Alloc) if stmt.buffer.name.endswith("empty"))
    assert said(changed(kernel, empty, count=3)).rings[0].empty == 3
    arrive = of_role(kernel, "load", Arrive)[0]
    more = said(changed(kernel, arrive, bytes=add(arrive.bytes, 16)))
    (announced,) = [op for op in more.roles[0].body if isinstance(op, protocols.ArriveFull)]
    assert announced.size == 4096 + 512 + 16
    alone = of_role(kernel, "math", One)[0]
    by_all = said(edited(kernel, alone, *alone.body))
    assert [op.count for op in by_all.roles[1].body if isinstance(op, protocols.Release)] == [128]


def test_products_read_one_ring() -> None:
    kernel = ring(Drained())
    product = of_role(kernel, "math", Mma)[0]
    fixed = [evolve(view, at=(algebra.const(0), *view.at[1:])) for view in (product.a, product.b)]
    reason, _ = refusal(changed(kernel, product, a=fixed[0], b=fixed[1]))
    assert "slot" in reason
