"""The synchronisation events of each statement of a role, and the statements that are refused."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import TRUE, add, all_of, const, floordiv, le, lt, mod, mul, negate, sub, sym
from argus.core.dtype import i32
from argus.core.index import Index, Symbol
from argus.core.ir import (
    Arrive,
    Await,
    Buffer,
    Copy,
    For,
    If,
    Mma,
    One,
    Role,
    Roles,
    Staged,
    Stmt,
    Sync,
    View,
    Wait,
    walk,
)
from argus.core.layout import Layout
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.events import (
    ArriveEvent,
    Event,
    FillEvent,
    MmaEvent,
    MmaWaitEvent,
    OrderEvent,
    ReadEvent,
    SyncEvent,
    WaitEvent,
    conditional_tile,
    events_of,
    slot_of,
    tile_loop_of,
    use_loops,
)
from property_tests.role_programs import ROLES
from tests.core.proof.queries import refusal
from tests.core.proof.rings import changed

K, T, WG = Symbol("k", "loop", 0), Symbol("t", "loop", 0), Symbol("wg", "agent", 0, 1)
k = sym(K)
SLOT, ZERO = mod(k, 2), const(0)
BARRIER = Buffer("full", "barrier", i32, (const(2),), Staged(Layout(2, 1)))


def event(at: Index = SLOT) -> View:
    return View(BARRIER, (), (at,))


def wait(at: Index = SLOT) -> Await:
    return Await(event(at), floordiv(k, 2))


def arrive(count: int = 1, size: Index | int = 0, at: Index = SLOT) -> Arrive:
    return Arrive(event(at), count, const(size) if isinstance(size, int) else size)


def found(agent: int, *body: Stmt) -> list[Event]:
    return list(events_of(body, agent))


def refused(agent: int, *body: Stmt) -> tuple[str, Stmt]:
    with pytest.raises(RefusedError) as caught:
        found(agent, *body)
    return caught.value.reason, caught.value.stmt


def stmts(name: str, kind: type[Stmt]) -> list[Stmt]:
    return [stmt for stmt in walk(ROLES[name].body) if isinstance(stmt, kind)]


def test_a_guard_is_that_of_all_branches_around() -> None:
    inner, other, last = wait(), wait(), wait()
    first, second = lt(k, 3), le(k, 7)
    body = If(first, (If(second, (inner,), (other,)),), (last,))
    one, two, three = found(1, body)
    assert [one.stmt, two.stmt, three.stmt] == [inner, other, last]
    assert one.guard is all_of((first, second))
    assert two.guard is all_of((first, negate(second)))
    assert three.guard is negate(first)
    assert found(1, wait())[0].guard is TRUE


def test_a_barrier_is_at_a_use_modulo_its_stages() -> None:
    (waited,) = found(1, wait(mod(add(k, 1), 2)))
    assert isinstance(waited.action, WaitEvent)
    assert waited.action.use is add(k, 1)
    assert waited.action.phase is floordiv(k, 2)
    for at in (k, mod(k, 3), const(0)):
        if at is not const(0):
            stmt = wait(at)
            assert refused(1, stmt) == ("the index of `full` is not a use modulo its 2 stages", stmt)
    (turn,) = found(1, wait(sym(WG)))
    assert isinstance(turn.action, OrderEvent)


def test_arrivals_are_those_of_all_threads_that_run_the_statement() -> None:
    for agent, body, count in ((128, arrive(2), 256), (128, One((arrive(2),)), 2), (1, arrive(3), 3)):
        (arrived,) = found(agent, body)
        assert isinstance(arrived.action, ArriveEvent)
        assert arrived.action.count == count
    (left,) = found(128, One((arrive(at=sym(WG)),)))
    assert isinstance(left.action, OrderEvent)
    assert left.action.count == 1


def test_bytes_are_announced_by_one_thread_and_a_number() -> None:
    (arrived,) = found(128, One((arrive(size=4096),)))
    assert isinstance(arrived.action, ArriveEvent)
    assert arrived.action.size == 4096
    for agent, stmt in ((128, arrive(size=4096)), (1, arrive(size=mul(k, 16)))):
        reason, blamed = refused(agent, stmt)
        assert "bytes" in reason
        assert blamed is stmt
    turn = arrive(size=16, at=sym(WG))
    assert refused(1, turn) == ("bytes announced on a barrier that is not indexed by a use", turn)


def test_one_thread_of_several_does_not_wait_for_all() -> None:
    stmt = wait()
    reason, blamed = refused(128, One((stmt,)))
    assert reason == "only one of several threads waits: the others continue without the barrier"
    assert blamed is stmt
    assert isinstance(found(1, One((wait(),)))[0].action, WaitEvent)
    reason, blamed = refused(128, One((If(lt(k, 2), (stmt,)),)))
    assert blamed is stmt


def test_a_loop_inside_a_tile_has_no_events() -> None:
    plain = For(T, const(0), const(3), 1, (Sync(),))
    assert found(1, plain) == []
    (product,) = stmts("barriers_by_hand", Mma)
    for inner in (wait(), arrive(), product, Wait("wgmma", 0), If(lt(k, 2), (wait(),))):
        stmt = For(T, const(0), const(3), 1, (inner,))
        reason, blamed = refused(1, stmt)
        assert reason.startswith("a nested loop that uses barriers")
        assert blamed is stmt


def test_other_bodies_are_refused() -> None:
    role = Role("inner", 0, 4, 128, None, (wait(),), WG, Symbol("t", "thread", 0, 127))
    stmt = Roles((role,))
    assert refused(1, stmt) == ("`Roles` is not supported by the verifier yet", stmt)


def test_the_statements_of_a_ring_and_their_uses() -> None:
    kernel = ROLES["barriers_by_hand"]
    assert kernel.roles is not None
    load, math = (next(stmt for stmt in role.body if isinstance(stmt, For)) for role in kernel.roles.roles)
    variable = sym(load.symbol)
    kinds = [type(each.action) for each in found(1, *load.body)]
    assert kinds == [WaitEvent, ArriveEvent, FillEvent, FillEvent]
    filled = found(1, *load.body)[2].action
    assert isinstance(filled, FillEvent)
    assert filled.use is filled.signal is variable
    assert (filled.buffer.name, filled.barrier.name) == ("a", "full")
    kinds = [type(each.action) for each in found(128, *math.body)]
    assert kinds == [WaitEvent, MmaEvent, MmaWaitEvent, ArriveEvent]
    product = found(128, *math.body)[1].action
    assert isinstance(product, MmaEvent)
    assert [(view.buffer.name, slot_of(product.stmt, view)) for view in product.views] == [
        ("a", sym(math.symbol)),
        ("b", sym(math.symbol)),
    ]


def test_operands_in_one_ring_lie_in_slots_of_one_use() -> None:
    kernel = ROLES["barriers_by_hand"]
    product = next(stmt for stmt in stmts("barriers_by_hand", Mma) if isinstance(stmt, Mma))
    moved = evolve(product.b, at=(mod(add(product.b.at[0], 1), 2), *product.b.at[1:]))
    reason, stmt = refusal(changed(kernel, product, b=moved))
    assert reason == "a product whose operands are in slots of different uses"
    assert stmt.span == product.span
    fixed = evolve(product.b, at=(const(0), *product.b.at[1:]))
    reason, _ = refusal(changed(kernel, product, b=fixed))
    assert reason == "the index of `b` is not a use modulo its 2 stages"


def test_ordinary_reads_of_slots_are_seen() -> None:
    looks = [
        stmt
        for stmt in stmts("ordinary_reads_of_slots", Copy)
        if isinstance(stmt, Copy) and stmt.source.buffer.space == "shared"
    ]
    assert looks
    for stmt in looks:
        (looked,) = found(128, stmt)
        assert isinstance(looked.action, ReadEvent)
        assert looked.action.buffer is stmt.source.buffer
    reason, _ = refused(128, evolve(looks[0], target=looks[0].source))
    assert reason == "a slot of a ring that is copied to another target than registers"


def test_meetings_and_waits_of_one_queue() -> None:
    assert isinstance(found(128, Sync("math", "meet", 128))[0].action, SyncEvent)
    assert found(128, Sync("math", "arrive", 128)) == []
    assert isinstance(found(128, Wait("wgmma", 1))[0].action, MmaWaitEvent)
    assert found(128, Wait("bulk", 1)) == []


def uses(*body: Stmt, step: int = 1, start: Index = ZERO) -> For:
    return For(K, start, const(9), step, body)


def test_the_loops_over_uses_are_those_that_work_on_barriers() -> None:
    loop, plain = uses(wait()), For(T, const(0), const(4), 1, (Sync(),))
    second, down = uses(arrive()), uses(wait(), step=-1)
    assert use_loops((plain, loop)) == (loop,)
    assert use_loops((loop, plain, second, down)) == (loop, second, down)
    assert use_loops((plain,)) == ()
    for tile in ((If(lt(k, 1), (uses(wait()),)),), (uses(wait(), step=2),), (For(T, ZERO, const(4), 1, (loop,)),)):
        with pytest.raises(RefusedError):
            use_loops(tile)


def test_a_tile_may_be_worked_on_under_one_condition() -> None:
    loop, sync = uses(wait()), Sync()
    branch = If(lt(k, 1), (sync, loop))
    assert conditional_tile((sync, branch)) is branch
    assert conditional_tile((loop, sync)) is None
    assert conditional_tile((branch, If(lt(k, 2), (loop,)))) is None


def test_the_loop_over_tiles_holds_a_loop_over_uses() -> None:
    def role(*body: Stmt) -> Role:
        return Role("load", 0, 4, 1, None, body, WG, Symbol("thread", "thread", 0, 0))

    over = For(T, const(0), const(5), 1, (uses(wait()),))
    assert tile_loop_of(role(uses(wait()))) is None
    assert tile_loop_of(role(over, uses(wait()))) is over
    second = For(T, const(0), const(5), 1, (uses(wait(mod(sub(k, 1), 2))),))
    with pytest.raises(RefusedError) as caught:
        tile_loop_of(role(over, second))
    assert caught.value.stmt is second
