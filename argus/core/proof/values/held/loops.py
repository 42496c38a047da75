"""Tiles that a loop carries: a closed form over the iterations so far, guessed from base and step, and then checked.

The tile at the head of iteration k is an opaque element. What the body makes of it is a recurrence: it adds a term
(a sum over the iterations), takes a maximum, scales and adds, or replaces the tile. A guess counts only if the normal
form of one step from the guess at k is the guess at the next k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Buffer
from argus.core.proof.dataflow.timeline import Loop, Segment
from argus.core.proof.values.held.cells import Cells, registers_of
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.recurrences import Linear, folded, linear, rescaled
from argus.core.proof.values.held.terms import HEAD, chosen, exchanged, heads, parts, reasons, replaced, unknown
from argus.core.values.expr import Element, Expr, ReduceOp, element, expr, fn, infinity

Key = tuple[Segment, Buffer]
Guess = Callable[[Index], Expr]
"""The tile at the head of an iteration, by the loop variable there."""


@frozen
class Closed:
    """The closed form of a tile. head: at the head of iteration k. after: after the loop."""

    head: Expr
    after: Expr


@define(eq=False)
class Loops:
    """The closed forms of all tiles of one flow."""

    _closed: dict[Key, Closed] = field(factory=dict[Key, Closed], init=False)
    _running: set[Key] = field(factory=set[Key], init=False)
    _names: dict[str, Key] = field(factory=dict[str, Key], init=False)

    def at_head(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Expr:
        """The tile at the head of an arbitrary iteration; opaque where its own recurrence is being looked at."""
        if (segment, buffer) in self._running:
            return self._opaque(cells, segment, loop, buffer)
        return self._solved(cells, segment, loop, buffer).head

    def after_loop(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Expr:
        """The tile after the loop."""
        return self._solved(cells, segment, loop, buffer).after

    def resolved(self, cells: Cells, root: Expr) -> Expr:
        """The expression with opaque tiles replaced by their closed forms, where those are known."""
        table: dict[Expr, Expr] = {}
        for each in heads(root):
            segment, buffer = self._names[each.tensor]
            place = cells.tables.numbers(each.at[0])
            if (segment, buffer) in self._closed and place is not None and segment.loop is not None:
                values = registers_of(buffer).shape[1]
                form = cells.tables.at(self._closed[segment, buffer].head, (place // values, place % values))
                table[each] = replaced(form, {segment.loop.symbol: each.at[1]})
        return exchanged(root, table) if table else root

    def _opaque(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Element:
        name = f"{HEAD}{segment.steps[0].segment} {buffer.name}"
        self._names[name] = segment, buffer
        return element(name, cells.tables.index(registers_of(buffer)), algebra.sym(loop.symbol))

    def _solved(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Closed:
        key = segment, buffer
        if key in self._closed:
            return self._closed[key]
        mine = self._opaque(cells, segment, loop, buffer)
        if key in self._running:
            return Closed(mine, unknown(f"`{buffer.name}` after a loop that is being looked at"))
        self._running.add(key)
        step = cells.after(buffer, segment, cells.events(segment, buffer))
        self._running.discard(key)
        step = self.resolved(cells, step)
        entry = self.resolved(cells, cells.entry(segment, buffer))
        if any(each is not mine and self._names[each.tensor] in self._running for each in heads(step)):
            return Closed(mine, unknown(f"`{buffer.name}` depends on tiles that depend on it"))
        found = _Recurrence(cells, loop, mine, entry, step).closed()
        if found is None:
            lost = unknown(f"no closed form of `{buffer.name}` over {loop.symbol.name} is known")
            found = Closed(lost, lost)
        self._closed[key] = found
        return found


@define(eq=False)
class _Recurrence:
    """The values of one tile: `entry` before the loop, `step` (of the tile `mine` before) after an iteration."""

    cells: Cells
    loop: Loop
    mine: Element
    entry: Expr
    step: Expr

    @property
    def k(self) -> Index:
        return algebra.sym(self.loop.symbol)

    def known(self, *more: Cond) -> Known:
        return Known(self.cells.flow, (*self.loop.facts, *more))

    def before(self, k: Index) -> Index:
        """The number of iterations before the one of k."""
        stmt = self.loop.stmt
        passed = algebra.sub(k, stmt.start) if stmt.step > 0 else algebra.sub(stmt.start, k)
        return algebra.floordiv(passed, abs(stmt.step))

    def at(self, root: Expr, k: Index) -> Expr:
        return replaced(root, {self.loop.symbol: k})

    def closed(self) -> Closed | None:
        """The closed form; None if no guess is right."""
        if any(each is not self.mine for each in heads(self.step)):
            return None
        if self.mine not in set(parts(self.step)):
            return self._replaced_each_time(self.step)
        stmt = self.loop.stmt
        follows = algebra.add(self.k, stmt.step)
        again = algebra.lt(follows, stmt.stop) if stmt.step > 0 else algebra.lt(stmt.stop, follows)
        step = self.known(again).simplified(self.step)
        if self.mine not in set(parts(step)):
            return self._replaced_each_time(step)
        later = self.known(self.loop.has_earlier(1)).simplified(self.step)
        for guess in self._guesses(later):
            if self._holds(guess, later):
                trips = self.loop.trips
                end = algebra.add(stmt.start, algebra.mul(trips, stmt.step))
                after = guess(end) if not reasons(self.entry) else chosen(
                    algebra.lt(0, trips), guess(end), self.entry
                )
                return Closed(guess(self.k), after)
        return None

    def _replaced_each_time(self, step: Expr) -> Closed:
        """A tile that an iteration replaces. step: what it holds after an iteration that another one follows."""
        start, stride = self.loop.stmt.start, self.loop.stmt.step
        previous = self.at(step, algebra.sub(self.k, stride))
        head = previous
        first = Known(self.cells.flow, ())
        if reasons(self.entry) or not first.equal(self.at(step, algebra.sub(start, stride)), self.entry):
            head = chosen(algebra.eq(self.k, start), self.entry, previous)
        last = self.loop.last(0)[self.loop.symbol]
        end = self.at(exchanged(self.step, {self.mine: head}), last)
        return Closed(head, chosen(algebra.lt(0, self.loop.trips), end, self.entry))

    # -- guesses -----------------------------------------------------------------------------------------

    def _guesses(self, later: Expr) -> Iterator[Guess]:
        for op, neutral in (("max", infinity(-1)), ("min", infinity(1))):
            term = folded(op, later, self.mine)
            if term is not None:
                yield self._reduced("max" if op == "max" else "min", op, neutral, term)
        found = linear(later, self.mine)
        if found is None:
            return
        if found.factor is expr(1):
            yield self._reduced("sum", "add", expr(0), found.rest)
            return
        if found.rest is expr(0):
            yield self._reduced("product", "mul", expr(1), found.factor)
            return
        for old, new in rescaled(found.factor, self.loop.symbol):
            yield self._of_one_reference(found, old, new)

    def _iterations(self, op: ReduceOp, k: Index, body: Callable[[Index], Expr]) -> Expr:
        """`op` over the iterations before that of k."""
        number = Symbol("~iteration", "fresh", 0)
        stmt = self.loop.stmt
        at = algebra.add(stmt.start, algebra.mul(algebra.sym(number), stmt.step))
        return reduction(op, [Range(number, self.before(k))], body(at))

    def _reduced(self, op: ReduceOp, function: str, neutral: Expr, term: Expr) -> Guess:
        entry = neutral if reasons(self.entry) else self.entry

        def guess(k: Index) -> Expr:
            found = self._iterations(op, k, lambda at: self.at(term, at))
            return found if entry is neutral else fn(function, entry, found)

        return guess

    def _of_one_reference(self, found: Linear, old: Expr, new: Expr) -> Guess:
        """A sum that is rescaled whenever its reference changes: all terms with the reference of k."""

        def guess(k: Index) -> Expr:
            reference = self.at(old, k)
            return self._iterations(
                "sum", k, lambda at: exchanged(self.at(found.rest, at), {self.at(new, at): reference})
            )

        return guess

    def _holds(self, guess: Guess, later: Expr) -> bool:
        """Base and step of the induction."""
        stmt, k = self.loop.stmt, self.k
        after = guess(algebra.add(k, stmt.step))
        if not reasons(self.entry):
            if not Known(self.cells.flow, ()).equal(guess(stmt.start), self.entry):
                return False
            if later is self.step or self.known().equal(exchanged(self.step, {self.mine: guess(k)}), after):
                return self.known().equal(exchanged(self.step, {self.mine: guess(k)}), after)
        once = self.known(algebra.eq(k, stmt.start)).simplified(self.step)
        first = self.at(once, stmt.start)
        runs = Known(self.cells.flow, (algebra.lt(0, self.loop.trips),))
        if not reasons(self.entry):
            first = exchanged(first, {self.at(self.mine, stmt.start): self.entry})
        if heads(first) or not runs.equal(first, guess(algebra.add(stmt.start, stmt.step))):
            return False
        more = self.known(self.loop.has_earlier(1))
        return more.equal(exchanged(later, {self.mine: guess(k)}), after)
