"""Closed forms of counters, compared with executing the body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from argus.core import algebra
from argus.core.algebra import TRUE, add, const, le, lt, mul, sub, sym
from argus.core.dtype import i32
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Atomic,
    Await,
    Buffer,
    For,
    If,
    Let,
    One,
    Peek,
    Roles,
    Staged,
    Stmt,
    View,
    walk,
)
from argus.core.layout import Layout
from argus.core.proof.sync.roles.context import TILE, RefusedError
from argus.core.proof.sync.roles.counters import CounterResolver
from argus.core.walk import evaluate, substitute, symbols
from tests.core.proof.queries import proof_context

COUNTER = Buffer("uses", "counter", i32, (), Staged(Layout(1, 0)), 4)
ARRAY = Buffer("array", "global", i32, (const(8),), Staged(Layout(8, 1)))
EVENT = View(Buffer("full", "barrier", i32, (const(2),), Staged(Layout(2, 1))), (), (const(0),))
N, W = Symbol("N", "size", 1, 100), Symbol("wg", "agent", 0, 1)
K, J, T = (Symbol(name, "loop", 0) for name in ("k", "j", "t"))
ALLOC = Alloc(COUNTER)
Env = dict[Symbol, int]


def probe() -> tuple[Stmt, ...]:
    """The counter is read into a barrier's phase, where the closed form is then found."""
    seen = Symbol("seen", "fresh")
    return Let(seen, Peek(View(COUNTER, (), ()))), Await(EVENT, sym(seen))


def up(by: Index | int = 1) -> Advance:
    return Advance(COUNTER, const(by) if isinstance(by, int) else by)


def loop(symbol: Symbol, stop: Index | int, *body: Stmt, start: Index | int = 0, step: int = 1) -> For:
    first, last = (const(each) if isinstance(each, int) else each for each in (start, stop))
    return For(symbol, first, last, step, body)


def when(cond: Cond, *then: Stmt, otherwise: tuple[Stmt, ...] = ()) -> If:
    return If(cond, then, otherwise)


def number(value: Index, env: Env) -> int:
    return int(cast("int", evaluate(value, env)))


def counted(body: tuple[Stmt, ...], env: Env, state: list[int]) -> Iterator[tuple[int, Env]]:
    """The counter at each probe of a run, with the values of the symbols there."""
    for stmt in body:
        match stmt:
            case Advance(by=by):
                state[0] += number(by, env)
            case Await():
                yield state[0], dict(env)
            case For(symbol=symbol, start=start, stop=stop, step=step):
                for value in range(number(start, env), number(stop, env), step):
                    yield from counted(stmt.body, {**env, symbol: value}, state)
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from counted(then if evaluate(cond, env) else otherwise, env, state)
            case _:
                pass


def closed(body: tuple[Stmt, ...], env: Env) -> Iterator[tuple[int, Env]]:
    """The closed forms at each probe of the same run."""
    for stmt in body:
        match stmt:
            case Await(phase=phase):
                yield number(phase, env), dict(env)
            case For(symbol=symbol, start=start, stop=stop, step=step):
                for value in range(number(start, env), number(stop, env), step):
                    yield from closed(stmt.body, {**env, symbol: value})
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from closed(then if evaluate(cond, env) else otherwise, env)
            case _:
                pass


k, n = sym(K), sym(N)
BODIES: dict[str, tuple[Stmt, ...]] = {
    "in a line": (*probe(), up(), *probe(), up(3), *probe()),
    "once a trip": (loop(K, n, *probe(), up(), *probe()), *probe()),
    "several times a trip": (up(2), loop(K, n, *probe(), up(), *probe(), up(2)), *probe()),
    "from another start": (loop(K, n, *probe(), up(), start=2), *probe()),
    "no trip": (loop(K, 0, *probe(), up()), *probe()),
    "but in the first trip": (loop(K, n, *probe(), when(le(1, k), up()), *probe()), *probe()),
    "but in the first three": (loop(K, n, *probe(), when(le(3, k), up(2)), *probe()), *probe()),
    "from the second trip on": (loop(K, n, *probe(), when(le(3, k), up()), start=2), *probe()),
    "but in the last trip": (loop(K, n, *probe(), when(lt(add(k, 1), n), up()), *probe()), *probe()),
    "but in the last two": (loop(K, n, *probe(), when(lt(add(k, 2), n), up()), *probe()), *probe()),
    "in branches": (when(lt(n, 4), up(), *probe(), otherwise=(up(5), *probe())), *probe()),
    "in one branch": (when(lt(n, 4), up()), *probe(), loop(K, n, up(), *probe()), *probe()),
    "loops in a loop": (loop(K, n, *probe(), loop(J, 3, *probe(), up(), *probe()), up(), *probe()), *probe()),
    "guards in a loop in a loop": (loop(K, 2, loop(J, n, when(le(1, sym(J)), up()), *probe()), *probe()), *probe()),
    "loop after loop": (loop(K, n, up(), *probe()), loop(J, n, *probe(), up(2)), *probe()),
    "a skip": (up(n), *probe(), loop(K, n, up(), *probe()), up(n), *probe()),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_closed_form_is_what_a_run_counts(body: tuple[Stmt, ...]) -> None:
    found = CounterResolver(proof_context(), None).resolve((ALLOC, *body), ())
    assert not [stmt for stmt in walk(found) if isinstance(stmt, Let | Advance)]
    for size in range(1, 9):
        wanted = list(counted(body, {N: size}, [0]))
        assert list(closed(found, {N: size})) == wanted
        assert wanted


def over_tiles(start: Index | int, step: int, *tile: Stmt) -> For:
    return loop(T, sym(Symbol("tiles", "size", 0, 9)), *tile, start=start, step=step)


USES = loop(K, n, *probe(), up(), *probe())


@pytest.mark.parametrize(
    ("skip", "tiles"),
    [
        ((), over_tiles(0, 1, USES, *probe())),
        ((up(mul(sym(W), n)),), over_tiles(sym(W), 2, USES, *probe(), up(n), *probe())),
    ],
    ids=["all tiles", "each second tile, the others' uses skipped"],
)
def test_uses_over_tiles_are_counted_by_a_ghost_of_what_one_tile_uses(skip: tuple[Stmt, ...], tiles: For) -> None:
    body = (*skip, tiles, *probe())
    asked = proof_context()
    found = CounterResolver(asked, tiles).resolve((ALLOC, *body), ())
    (base,) = symbols(asked.base(n))
    (total,) = symbols(asked.total(n))
    every = Symbol("tiles", "size", 0, 9)
    for size, agent, many in ((1, 0, 3), (3, 1, 4), (4, 0, 5), (2, 1, 1)):
        env = {N: size, W: agent, every: many}
        wanted = list(counted(body, env, [0]))
        # A ghost's value: uses of the tiles before; at the end, of the tiles that this agent has passed.
        passed = list(range(agent if skip else 0, many, tiles.step))
        after = passed[-1] + tiles.step if passed else (agent if skip else 0)
        values = list(with_ghosts(found, env, base, {total: size * after}, size))
        assert values == [value for value, _ in wanted]


def with_ghosts(body: tuple[Stmt, ...], env: Env, base: Symbol, ends: Env, size: int) -> Iterator[int]:
    for stmt in body:
        if isinstance(stmt, For) and stmt.symbol == T:
            for tile in range(number(stmt.start, env), number(stmt.stop, env), stmt.step):
                inner = {**env, T: tile, base: tile * size}
                yield from (value for value, _ in closed(stmt.body, inner))
        else:
            yield from (value for value, _ in closed((stmt,), {**env, **ends}))


def test_what_a_tile_adds_of_its_own_is_counted_in_rounds() -> None:
    tiles = over_tiles(sym(W), 2, *probe(), up())
    asked = proof_context()
    found = CounterResolver(asked, tiles).resolve((ALLOC, tiles), ())
    (wait,) = [stmt for stmt in walk(found) if isinstance(stmt, Await)]
    assert wait.phase is asked.rounds(T)


def refused(*body: Stmt, tiles: For | None = None) -> tuple[str, Stmt]:
    with pytest.raises(RefusedError) as caught:
        CounterResolver(proof_context(), tiles).resolve(body, ())
    return caught.value.reason, caught.value.stmt


def test_counters_without_a_closed_form_are_refused_at_their_statement() -> None:
    uneven = when(algebra.eq(algebra.mod(k, 2), 0), up())
    growing, by_itself = loop(J, n, up(sym(J))), probe()
    supplied = Let(Symbol("x", "fresh"), Peek(View(ARRAY, (), (const(0),))))
    fetched = Let(Symbol("x", "fresh"), Atomic("add", View(ARRAY, (), (const(0),)), const(1)))
    alone, roles = One((up(),)), Roles(())
    early = up()
    cases: tuple[tuple[str, Stmt, tuple[Stmt, ...]], ...] = (
        ("not created at the start of the role", early, (early,)),
        ("an integer from memory", supplied, (ALLOC, supplied)),
        ("atomic operation", fetched, (ALLOC, fetched)),
        ("one thread of an agent advances", alone, (ALLOC, alone)),
        ("roles inside a role", roles, (ALLOC, roles)),
        ("varies between iterations", growing, (ALLOC, loop(K, n, growing))),
    )
    for reason, blamed, body in cases:
        found, stmt = refused(*body)
        assert reason in found
        assert stmt is blamed
    around = loop(K, n, uneven)
    found, stmt = refused(ALLOC, around)
    assert "under a condition other than" in found
    assert isinstance(stmt, For)
    assert stmt.symbol == K
    own = up(sym(cast("Let", by_itself[0]).symbol))
    found, stmt = refused(ALLOC, loop(K, n, *by_itself, own))
    assert "increment depends on a counter" in found
    assert stmt is own


@pytest.mark.parametrize(
    ("before", "start", "step", "tile"),
    [
        ((), 0, 2, (when(lt(sym(T), 3), up(n)),)),
        ((up(n),), 0, 1, (up(sym(T)),)),
        ((), sym(W), 2, (up(sym(T)),)),
        ((up(n),), 0, 1, (up(n),)),
        ((), sym(W), 2, (up(n),)),
        ((up(mul(sub(const(1), sym(W)), n)),), sym(W), 2, (up(mul(n, 2)),)),
    ],
    ids=[
        "every second, in some",
        "as often as the tile says, ahead",
        "as often as the tile says, shared out",
        "ahead of its tiles",
        "without skips",
        "the other's skip",
    ],
)
def test_tiles_that_are_not_all_counted_are_refused(
    before: tuple[Stmt, ...], start: Index | int, step: int, tile: tuple[Stmt, ...]
) -> None:
    tiles = over_tiles(start, step, *tile)
    found, stmt = refused(ALLOC, *before, tiles, tiles=tiles)
    assert "tile" in found
    assert isinstance(stmt, For)
    assert stmt.symbol == T


@pytest.mark.parametrize(
    ("tile", "each"),
    [(when(lt(sym(T), 3), up(n)), algebra.pick(lt(sym(TILE), 3), n, 0)), (up(sym(T)), sym(TILE))],
    ids=["in some tiles", "as often as the tile says"],
)
def test_a_ghost_counts_uses_that_the_tile_decides(tile: Stmt, each: Index) -> None:
    asked = proof_context()
    tiles = over_tiles(0, 1, *probe(), tile)
    body = CounterResolver(asked, tiles).resolve((ALLOC, tiles, *probe()), ())
    head, after = (stmt.phase for stmt in walk(body) if isinstance(stmt, Await))
    assert head is asked.base(each)
    assert after is asked.total(each)
    same = substitute(algebra.add(each, algebra.maximum(0, sym(TILE)), sub(0, sym(TILE))), {TILE: sym(T)})
    assert asked.base(same, tiles) is head
    assert asked.base(algebra.add(each, 1)) is not head


def test_a_counter_that_the_context_decides_is_simple() -> None:
    asked = proof_context(le(1, n))
    assert asked.simplify(algebra.maximum(0, sub(n, 1)), ()) is sub(n, 1)
    assert asked.simplify(algebra.minimum(n, const(0)), ()) is const(0)
    assert asked.simplify(algebra.pick(lt(n, 4), const(7), n), (lt(n, 3),)) is const(7)
    assert asked.simplify(algebra.pick(lt(n, 4), const(7), n), (lt(5, n),)) is n
    undecided = algebra.pick(lt(n, 4), const(7), n)
    assert asked.simplify(undecided, (TRUE,)) is undecided
