"""Replaces every read of a role's counters by a closed form (induction variable substitution).

A loop adds to a counter its body's increment in each iteration. For a loop over tiles, a ghost variable avoids the
product of tile index and trip count: `base(D)` is the number of uses before the tile, with D uses per tile.
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
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.sync.roles.context import ProofContext, exact_quotient, refuse
from argus.core.walk import fold, rebuild, substitute, symbols


@frozen(eq=False)
class Increment:
    """An increment by `by` in the iterations where `guard` holds."""

    guard: Cond
    by: Index


Increments = Mapping[Buffer, tuple[Increment, ...]]


@define(eq=False)
class CounterResolver:
    """Tracks the counters of one agent through its body. values: of each counter. names: of integers read from them."""

    proof: ProofContext
    tiles: For | None
    values: dict[Buffer, Index] = field(factory=dict[Buffer, Index])
    names: dict[Symbol, Index] = field(factory=dict[Symbol, Index])

    def resolve(self, body: tuple[Stmt, ...], context: tuple[Cond, ...]) -> tuple[Stmt, ...]:
        """The body without counters. context: the path condition. Raises RefusedError."""
        return tuple(each for stmt in body for each in self._stmt(stmt, context))

    def _stmt(self, stmt: Stmt, context: tuple[Cond, ...]) -> Iterator[Stmt]:
        match stmt:
            case Alloc(buffer=buffer) if buffer.space == "counter":
                if context or buffer in self.values:
                    refuse(stmt, "a counter that is created inside a nested body, or twice")
                self.values[buffer] = algebra.const(0)
            case Let(value=Peek(view=view)) | Advance(counter=view) if _buffer(view) not in self.values:
                refuse(stmt, "a counter that is not created at the start of the role, or an integer from memory")
            case Let(symbol=symbol, value=Peek(view=view)):
                self.names[symbol] = self.proof.simplify(self.values[view.buffer], context)
            case Let():
                refuse(stmt, "an integer from an atomic operation is not supported by the verifier yet")
            case Advance(counter=counter, by=by):
                self.values[counter] = algebra.add(self.values[counter], substitute(by, self.names))
            case For():
                yield self._loop(_renamed(stmt, self.names), context)
            case If(cond=cond, then=then, otherwise=otherwise):
                yield self._branch(stmt, substitute(cond, self.names), then, otherwise, context)
            case One(body=body):
                if any(isinstance(inner, Advance) for inner in body):
                    refuse(stmt, "a counter that only one thread of an agent advances")
                yield One(self.resolve(body, context), span=stmt.span, origin=stmt.origin)
            case Roles():
                refuse(stmt, "roles inside a role")
            case _:
                yield self._with_base(rewrite_stmt(stmt, self.names))

    def _with_base(self, stmt: Stmt) -> Stmt:
        """The statement with `base(D)` for `t * D` (the uses before tile t) in slot indices and phases."""
        match stmt:
            case Await(event=event, phase=phase):
                return evolve(stmt, event=self._slot(event), phase=self._uses(phase))
            case Arrive(event=event):
                return evolve(stmt, event=self._slot(event))
            case Copy(source=source, target=target, signal=signal):
                signal_slot = None if signal is None else self._slot(signal)
                return evolve(stmt, source=self._slot(source), target=self._slot(target), signal=signal_slot)
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
                return node  # a loop bound of this tile, not a count of uses
            made = rebuild(node, parts)
            if isinstance(made, Bin) and made.op == "*" and number in (made.left, made.right):
                each = made.right if made.left is number else made.left
                if tiles.symbol not in symbols(each) and all(symbol.kind != "loop" for symbol in symbols(each)):
                    return self.proof.base(each, tiles)
            return made

        return cast(Index, fold(at, visit))

    def _branch(
        self, stmt: If, cond: Cond, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...], context: tuple[Cond, ...]
    ) -> Stmt:
        before = dict(self.values)
        first = self.resolve(then, (*context, cond))
        after_first, self.values = self.values, dict(before)
        second = self.resolve(otherwise, (*context, algebra.negate(cond)))
        for counter, value in after_first.items():
            other = self.values.get(counter, algebra.const(0))
            self.values[counter] = value if value is other else algebra.pick(cond, value, other)
        return evolve(with_bodies(stmt, (first, second)), cond=cond)

    def _loop(self, stmt: For, context: tuple[Cond, ...]) -> Stmt:
        gains = self._gains(stmt)
        if any(counter not in self.values for counter in gains):
            refuse(stmt, "a counter that is not created at the start of the role")
        entry = dict(self.values)
        facts = (*context, *_inside(stmt))
        for counter, added in gains.items():
            self.values[counter] = self._head(stmt, entry[counter], added, context)
        body = self.resolve(stmt.body, facts)
        for counter, added in gains.items():
            self.values[counter] = self._after(stmt, entry[counter], added, context)
        return with_bodies(stmt, (body,))

    def _over_tiles(self, loop: For) -> bool:
        return self.tiles is not None and loop.symbol == self.tiles.symbol

    # -- increments of an iteration ----------------------------------------------------------------------------

    def _gains(self, loop: For) -> Increments:
        found: dict[Buffer, list[Increment]] = {}
        for counter, added in self._added(loop.body, algebra.TRUE):
            found.setdefault(counter, []).append(added)
        return {counter: tuple(each) for counter, each in found.items()}

    def _added(self, body: tuple[Stmt, ...], guard: Cond) -> Iterator[tuple[Buffer, Increment]]:
        for stmt in body:
            match stmt:
                case Advance(counter=counter, by=by):
                    if any(symbol.kind == "fresh" for symbol in symbols(by)):
                        refuse(stmt, "a counter whose increment depends on a counter")
                    yield counter, Increment(guard, by)
                case If(cond=cond, then=then, otherwise=otherwise):
                    yield from self._added(then, algebra.all_of((guard, cond)))
                    yield from self._added(otherwise, algebra.all_of((guard, algebra.negate(cond))))
                case For():
                    for counter, each in self._added(stmt.body, algebra.TRUE):
                        if stmt.symbol in symbols(each.by):
                            refuse(stmt, "a counter whose increment varies between iterations")
                        whole = algebra.mul(each.by, _times(stmt, each.guard, trips(stmt)))
                        yield counter, Increment(guard, whole)
                case _:
                    for inner in bodies(stmt):
                        yield from self._added(inner, guard)

    def _head(self, loop: For, entry: Index, gains: tuple[Increment, ...], context: tuple[Cond, ...]) -> Index:
        """The counter at the start of an iteration."""
        if not self._over_tiles(loop):
            if loop.step not in (1, -1) and gains:
                refuse(loop, "a counter that is advanced in a loop with a step other than 1 or -1")
            before = algebra.mul(algebra.sub(algebra.sym(loop.symbol), loop.start), loop.step)
            return algebra.add(entry, *(algebra.mul(g.by, _times(loop, g.guard, before)) for g in gains))
        each, counted = self._of_tiles(loop, entry, gains, context)
        return (
            self.proof.base(each, loop)
            if counted
            else algebra.add(entry, algebra.mul(each, self.proof.rounds(loop.symbol)))
        )

    def _after(self, loop: For, entry: Index, gains: tuple[Increment, ...], context: tuple[Cond, ...]) -> Index:
        if not self._over_tiles(loop):
            return algebra.add(entry, *(algebra.mul(g.by, _times(loop, g.guard, trips(loop))) for g in gains))
        each, counted = self._of_tiles(loop, entry, gains, context)
        return (
            self.proof.total(each, loop) if counted else algebra.add(entry, algebra.mul(each, self.proof.rounds("end")))
        )

    def _of_tiles(
        self, loop: For, entry: Index, gains: tuple[Increment, ...], context: tuple[Cond, ...]
    ) -> tuple[Index, bool]:
        """(D, True) if the counter counts D uses of every tile, including other agents' tiles; else (by, False)."""
        if any(symbol.kind == "fresh" for g in gains for symbol in symbols(g.guard)):
            refuse(loop, "a counter that is advanced under a condition on a counter")
        inside = (*context, *_inside(loop))
        whole = self.proof.simplify(algebra.add(*(algebra.pick(g.guard, g.by, 0) for g in gains)), inside)
        if loop.symbol in symbols(whole):
            if loop.step != 1 or loop.start is not algebra.const(0) or entry is not algebra.const(0):
                refuse(loop, "agents divide tiles among them that advance a counter by different numbers")
            return whole, True
        each = exact_quotient(whole, loop.step)
        if each is not None and self.proof.equal(context, entry, algebra.mul(loop.start, each)):
            return each, True
        if isinstance(whole, Const) and entry is algebra.const(0):
            return whole, False
        refuse(loop, "a counter that does not count the uses of all earlier tiles")


def _buffer(counter: Buffer | View) -> Buffer:
    return counter.buffer if isinstance(counter, View) else counter


def _times(loop: For, guard: Cond, iterations: Index) -> Index:
    """The number of the first `iterations` iterations in which the guard holds."""
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
    """The loop with substituted bounds; its body is substituted when it is visited."""
    return evolve(stmt, start=substitute(stmt.start, names), stop=substitute(stmt.stop, names))
