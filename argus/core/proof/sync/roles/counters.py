"""Counters in closed form: a role's body with every read of a counter replaced by what it counts there.

A loop adds to a counter what its body does, once an iteration; a loop over tiles is counted in tiles, so that no
product of a tile's number and a trip count appears: `base(D)` uses came before the tile, D of each tile.
Source: proof-methods 3.2 (ghosts), `reference/ir.md` 3.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Await,
    Buffer,
    Copy,
    For,
    If,
    Let,
    Mma,
    One,
    Peek,
    Roles,
    Stmt,
    View,
    bodies,
    trips,
    with_bodies,
)
from argus.core.ir.rewrite import in_stmt
from argus.core.proof.sync.roles.context import Ledger, divided, refuse
from argus.core.walk import fold, rebuild, substitute, symbols


@frozen(eq=False)
class Added:
    """`by` is added in the iterations where `guard` holds."""

    guard: Cond
    by: Index


Gains = Mapping[Buffer, tuple[Added, ...]]


@define(eq=False)
class Counting:
    """One agent's counters, followed through its body."""

    ledger: Ledger
    tiles: For | None
    values: dict[Buffer, Index] = field(factory=dict[Buffer, Index])
    names: dict[Symbol, Index] = field(factory=dict[Symbol, Index])

    def resolved(self, body: tuple[Stmt, ...], context: tuple[Cond, ...]) -> tuple[Stmt, ...]:
        """The body without counters. context: what holds where it stands. Raises RefusedError."""
        return tuple(each for stmt in body for each in self._stmt(stmt, context))

    def _stmt(self, stmt: Stmt, context: tuple[Cond, ...]) -> Iterator[Stmt]:
        match stmt:
            case Alloc(buffer=buffer) if buffer.space == "counter":
                if context or buffer in self.values:
                    refuse(stmt, "a counter that is made inside a body, or twice")
                self.values[buffer] = algebra.const(0)
            case Let(value=Peek(view=view)) | Advance(counter=view) if _buffer(view) not in self.values:
                refuse(stmt, "a counter that is not made where the role begins, or an integer that memory supplies")
            case Let(symbol=symbol, value=Peek(view=view)):
                self.names[symbol] = self.ledger.settled(self.values[view.buffer], context)
            case Let():
                refuse(stmt, "an integer that an atomic operation supplies is not built yet in the verifier")
            case Advance(counter=counter, by=by):
                self.values[counter] = algebra.add(self.values[counter], substitute(by, self.names))
            case For():
                yield self._loop(_renamed(stmt, self.names), context)
            case If(cond=cond, then=then, otherwise=otherwise):
                yield self._branch(stmt, substitute(cond, self.names), then, otherwise, context)
            case One(body=body):
                if any(isinstance(inner, Advance) for inner in body):
                    refuse(stmt, "a counter that one thread of an agent advances")
                yield One(self.resolved(body, context), span=stmt.span, origin=stmt.origin)
            case Roles():
                refuse(stmt, "roles inside a role")
            case _:
                yield self._by_tiles(in_stmt(stmt, self.names))

    def _by_tiles(self, stmt: Stmt) -> Stmt:
        """With `base(D)` for `t * D` where a slot or a phase is computed: so many uses came before tile t."""
        match stmt:
            case Await(event=event, phase=phase):
                return evolve(stmt, event=self._slot(event), phase=self._uses(phase))
            case Arrive(event=event):
                return evolve(stmt, event=self._slot(event))
            case Copy(source=source, target=target, signal=signal):
                lands = None if signal is None else self._slot(signal)
                return evolve(stmt, source=self._slot(source), target=self._slot(target), signal=lands)
            case Mma(a=a, b=b):
                return evolve(stmt, a=self._slot(a), b=self._slot(b))
            case _:
                return stmt

    def _slot(self, view: View) -> View:
        if view.buffer.space not in ("shared", "barrier") or self.tiles is None or not view.at:
            return view
        return evolve(view, at=(self._uses(view.at[0]), *view.at[1:]))

    def _uses(self, at: Index) -> Index:
        tiles = self.tiles
        if tiles is None or tiles.symbol not in symbols(at):
            return at
        number = algebra.sym(tiles.symbol)

        def visit(node: Node, parts: Sequence[Node]) -> Node:
            if isinstance(node, Bin) and node.op in ("max", "min"):
                return node  # where a loop begins in this tile, which is no count of uses
            made = rebuild(node, parts)
            if isinstance(made, Bin) and made.op == "*" and number in (made.left, made.right):
                each = made.right if made.left is number else made.left
                if tiles.symbol not in symbols(each) and all(symbol.kind != "loop" for symbol in symbols(each)):
                    return self.ledger.base(each, tiles)
            return made

        return cast(Index, fold(at, visit))

    def _branch(
        self, stmt: If, cond: Cond, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...], context: tuple[Cond, ...]
    ) -> Stmt:
        before = dict(self.values)
        first = self.resolved(then, (*context, cond))
        after_first, self.values = self.values, dict(before)
        second = self.resolved(otherwise, (*context, algebra.negate(cond)))
        for counter, value in after_first.items():
            other = self.values.get(counter, algebra.const(0))
            self.values[counter] = value if value is other else algebra.pick(cond, value, other)
        return evolve(with_bodies(stmt, (first, second)), cond=cond)

    def _loop(self, stmt: For, context: tuple[Cond, ...]) -> Stmt:
        gains = self._gains(stmt)
        if any(counter not in self.values for counter in gains):
            refuse(stmt, "a counter that is not made where the role begins")
        entry = dict(self.values)
        facts = (*context, *_inside(stmt))
        for counter, added in gains.items():
            self.values[counter] = self._head(stmt, entry[counter], added, context)
        body = self.resolved(stmt.body, facts)
        for counter, added in gains.items():
            self.values[counter] = self._after(stmt, entry[counter], added, context)
        return with_bodies(stmt, (body,))

    def _over_tiles(self, loop: For) -> bool:
        return self.tiles is not None and loop.symbol == self.tiles.symbol

    # -- what an iteration adds ----------------------------------------------------------------------------

    def _gains(self, loop: For) -> Gains:
        found: dict[Buffer, list[Added]] = {}
        for counter, added in self._added(loop.body, algebra.TRUE):
            found.setdefault(counter, []).append(added)
        return {counter: tuple(each) for counter, each in found.items()}

    def _added(self, body: tuple[Stmt, ...], guard: Cond) -> Iterator[tuple[Buffer, Added]]:
        for stmt in body:
            match stmt:
                case Advance(counter=counter, by=by):
                    if any(symbol.kind == "fresh" for symbol in symbols(by)):
                        refuse(stmt, "a counter that is advanced by what a counter says")
                    yield counter, Added(guard, by)
                case If(cond=cond, then=then, otherwise=otherwise):
                    yield from self._added(then, algebra.all_of((guard, cond)))
                    yield from self._added(otherwise, algebra.all_of((guard, algebra.negate(cond))))
                case For():
                    for counter, each in self._added(stmt.body, algebra.TRUE):
                        if stmt.symbol in symbols(each.by):
                            refuse(stmt, "a counter that is advanced by another number in each iteration")
                        whole = algebra.mul(each.by, _times(stmt, each.guard, trips(stmt)))
                        yield counter, Added(guard, whole)
                case _:
                    for inner in bodies(stmt):
                        yield from self._added(inner, guard)

    def _head(self, loop: For, entry: Index, gains: tuple[Added, ...], context: tuple[Cond, ...]) -> Index:
        """The counter at the head of an iteration."""
        if not self._over_tiles(loop):
            if loop.step not in (1, -1) and gains:
                refuse(loop, "a counter that is advanced in a loop which does not count by one")
            before = algebra.mul(algebra.sub(algebra.sym(loop.symbol), loop.start), loop.step)
            return algebra.add(entry, *(algebra.mul(g.by, _times(loop, g.guard, before)) for g in gains))
        each, counted = self._of_tiles(loop, entry, gains, context)
        return (
            self.ledger.base(each, loop)
            if counted
            else algebra.add(entry, algebra.mul(each, self.ledger.rounds(loop.symbol)))
        )

    def _after(self, loop: For, entry: Index, gains: tuple[Added, ...], context: tuple[Cond, ...]) -> Index:
        if not self._over_tiles(loop):
            return algebra.add(entry, *(algebra.mul(g.by, _times(loop, g.guard, trips(loop))) for g in gains))
        each, counted = self._of_tiles(loop, entry, gains, context)
        return (
            self.ledger.total(each, loop)
            if counted
            else algebra.add(entry, algebra.mul(each, self.ledger.rounds("end")))
        )

    def _of_tiles(
        self, loop: For, entry: Index, gains: tuple[Added, ...], context: tuple[Cond, ...]
    ) -> tuple[Index, bool]:
        """(D, True) where D uses of each tile have been counted, of the tiles of others too; else (by, False)."""
        if any(symbol.kind == "fresh" for g in gains for symbol in symbols(g.guard)):
            refuse(loop, "a counter that is advanced where a counter says so")
        inside = (*context, *_inside(loop))
        whole = self.ledger.settled(algebra.add(*(algebra.pick(g.guard, g.by, 0) for g in gains)), inside)
        if loop.symbol in symbols(whole):
            if loop.step != 1 or loop.start is not algebra.const(0) or entry is not algebra.const(0):
                refuse(loop, "agents share out tiles that advance a counter by unlike numbers")
            return whole, True
        each = divided(whole, loop.step)
        if each is not None and self.ledger.equal(context, entry, algebra.mul(loop.start, each)):
            return each, True
        if isinstance(whole, Const) and entry is algebra.const(0):
            return whole, False
        refuse(loop, "a counter that does not count the uses of every tile before this one")


def _buffer(counter: Buffer | View) -> Buffer:
    return counter.buffer if isinstance(counter, View) else counter


def _times(loop: For, guard: Cond, iterations: Index) -> Index:
    """In how many of the first `iterations` iterations the guard holds."""
    if guard is algebra.TRUE:
        return iterations
    k = algebra.sym(loop.symbol)
    if loop.step == 1:
        for late in range(1, _LATEST + 1):
            if guard is algebra.le(algebra.add(loop.start, late), k):
                return algebra.maximum(0, algebra.sub(iterations, late))
            if guard is algebra.lt(algebra.add(k, late), loop.stop):
                return algebra.minimum(iterations, algebra.maximum(0, algebra.sub(trips(loop), late)))
    refuse(loop, "a counter that is advanced under a condition other than `k >= start + n` or `k + n < stop`")


_LATEST = 8


def _inside(loop: For) -> tuple[Cond, ...]:
    k = algebra.sym(loop.symbol)
    if loop.step > 0:
        return algebra.le(loop.start, k), algebra.lt(k, loop.stop)
    return algebra.le(k, loop.start), algebra.lt(loop.stop, k)


def _renamed(stmt: For, names: Mapping[Symbol, Index]) -> For:
    """The loop with its bounds renamed, its body untouched: names of the body are bound when it is reached."""
    return evolve(stmt, start=substitute(stmt.start, names), stop=substitute(stmt.stop, names))
