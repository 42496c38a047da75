"""Tiles that a loop carries: a closed form over the iterations so far, guessed from base and step, and then checked.

The tile at the head of iteration k is an opaque element. What the body makes of it is a recurrence: it adds a term
(a sum over the iterations), takes a maximum, scales and adds, or replaces the tile. Sums and maxima over the
iterations are right by definition; of a rescaled sum the normal form has to show that the factor is the right one.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Buffer
from argus.core.proof.dataflow.timeline import Loop, Segment
from argus.core.proof.values.held.cells import Cells, registers_of
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.recurrences import Linear, folded, greatest, grown, linear, operands, rescaled, times
from argus.core.proof.values.held.terms import HEAD, chosen, exchanged, heads, plus, reasons, replaced, unknown
from argus.core.values.expr import Element, Expr, Fn, Reduce, ReduceOp, element, expr, fn, infinity
from argus.core.values.rewriting import nodes

Key = tuple[Segment, Buffer]
Guess = Callable[[Index], Expr]
"""The tile at the head of an iteration, by the loop variable there."""
_EXTREMA: tuple[tuple[ReduceOp, str, Expr], ...] = (("max", "max", infinity(-1)), ("min", "min", infinity(1)))


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
        with cells.afresh():
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
        cells.forget()
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
        return Known(self.cells.flow, (*self.loop.facts, *more), self.cells.questions)

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
        if self.mine not in set(nodes(self.step)):
            return self._replaced_each_time(self.step)
        stmt = self.loop.stmt
        follows = algebra.add(self.k, stmt.step)
        again = algebra.lt(follows, stmt.stop) if stmt.step > 0 else algebra.lt(stmt.stop, follows)
        step = self.known(again).simplified(self.step)
        if self.mine not in set(nodes(step)):
            return self._replaced_each_time(step)
        lost = bool(reasons(self.entry))
        guess, afresh = None if lost else self._guess(self.step), False
        if guess is None and not heads(self.known(algebra.eq(self.k, stmt.start)).simplified(self.step)):
            guess, afresh = self._guess(self.known(self.loop.has_earlier(1)).simplified(self.step), afresh=True), True
        if guess is None:
            stale = unknown(f"`{self.mine.tensor}` of an earlier iteration")
            return self._replaced_each_time(exchanged(step, {self.mine: stale}))
        end = algebra.add(stmt.start, algebra.mul(self.loop.trips, stmt.step))
        head, after = guess(self.k), guess(end)
        # A form that does not begin with what the tile held holds only once an iteration has set it.
        other = afresh and not lost and not self._first.same(guess(stmt.start), self.entry)
        if other:
            head = chosen(algebra.eq(self.k, stmt.start), self.entry, head)
        if lost or other:
            after = chosen(algebra.lt(0, self.loop.trips), after, self.entry)
        return Closed(head, after)

    @property
    def _first(self) -> Known:
        """What is known before the loop."""
        return Known(self.cells.flow, (), self.cells.questions)

    def _replaced_each_time(self, step: Expr) -> Closed:
        """A tile that an iteration replaces. step: what it holds after an iteration that another one follows."""
        start, stride = self.loop.stmt.start, self.loop.stmt.step
        previous = self.at(step, algebra.sub(self.k, stride))
        head = previous
        if (
            reasons(self.entry)
            or reasons(step)
            or not self._first.same(self.at(step, algebra.sub(start, stride)), self.entry)
        ):
            head = chosen(algebra.eq(self.k, start), self.entry, previous)
        last = self.loop.last(0)[self.loop.symbol]
        end = self.at(exchanged(self.step, {self.mine: head}), last)
        return Closed(head, chosen(algebra.lt(0, self.loop.trips), end, self.entry))

    # -- guesses -----------------------------------------------------------------------------------------

    def _guess(self, step: Expr, *, afresh: bool = False) -> Guess | None:
        """A form of which one iteration from k is the form at the next k.

        A sum, a product or an extremum over the iterations is one by definition. afresh: the first iteration sets the
        tile, and `step` is that of later ones; the term of any is what it makes of a neutral tile.
        """
        for op, function, neutral in _EXTREMA:
            if folded(function, step, self.mine) is not None:
                return self._reduced(op, function, neutral, afresh=afresh)
        found = linear(step, self.mine)
        if found is None:
            return None
        if found.factor is expr(1):
            return self._reduced("sum", "add", expr(0), afresh=afresh)
        if found.rest is expr(0):
            return self._reduced("product", "mul", expr(1), afresh=afresh)
        if afresh:
            found = Linear(found.factor, exchanged(self.step, {self.mine: expr(0)}))
        pairs = rescaled(found.factor)
        return next(filter(None, (self._of_one_reference(found, *pair, afresh=afresh) for pair in pairs)), None)

    def _iterations(self, op: ReduceOp, k: Index, body: Callable[[Index], Expr]) -> Expr:
        """`op` over the iterations before that of k."""
        number = Symbol("~iteration", "fresh", 0)
        stmt = self.loop.stmt
        at = algebra.add(stmt.start, algebra.mul(algebra.sym(number), stmt.step))
        return reduction(op, [Range(number, self.before(k))], body(at))

    def _reduced(self, op: ReduceOp, function: str, neutral: Expr, *, afresh: bool) -> Guess:
        term = exchanged(self.step, {self.mine: neutral})

        def guess(k: Index) -> Expr:
            found = self._iterations(op, k, lambda at: self.at(term, at))
            return found if afresh or self.entry is neutral else fn(function, self.entry, found)

        return guess

    def _of_one_reference(self, found: Linear, old: Expr, new: Expr, *, afresh: bool) -> Guess | None:
        """A sum that is rescaled whenever its reference changes from `old` to `new`: all terms with that of k.

        It is one if the new reference is the old one of the next k, and the factor takes the terms so far to it.
        """
        if not self._continues(old, new):
            return None
        entered = (expr(0), old) if afresh else self._entered(old)
        if entered is None:
            return None
        entry, first = entered

        def summed(k: Index, reference: Expr) -> Expr:
            added = self._iterations(
                "sum", k, lambda at: exchanged(self.at(found.rest, at), {self.at(new, at): reference})
            )
            return plus(exchanged(entry, {first: reference}), added)

        if not self.known().same(times(found.factor, summed(self.k, old)), summed(self.k, new)):
            return None
        return lambda k: summed(k, self.at(old, k))

    def _continues(self, old: Expr, new: Expr) -> bool:
        """Whether `new`, a maximum of `old` and others, is `old` at the next k."""
        known, k = self.known(), self.k
        following = self.at(old, algebra.add(k, self.loop.stmt.step))
        if following is old:
            return False
        if known.same(following, new):
            return True
        others = [each for each in operands("max", new) if each not in set(operands("max", old))]
        ranges = [each for each in operands("max", old) if each not in set(operands("max", following))]
        if len(ranges) != 1 or not others or not isinstance(ranges[0], Reduce):
            return False
        added = grown(ranges[0], self.at(ranges[0], algebra.add(k, self.loop.stmt.step)))
        return added is not None and known.same(greatest(others), added)

    def _entered(self, old: Expr) -> tuple[Expr, Expr] | None:
        """The tile before the loop, and the reference of its terms, which is `old` there; None if it has another."""
        zero = expr(0)
        if self._first.same(self.entry, zero):
            return zero, old
        first = self.at(old, self.loop.stmt.start)
        own = set(nodes(self.entry))
        for each in nodes(old):
            if each in own and isinstance(each, Fn | Reduce) and self._first.same(first, each):
                return self.entry, each
        return None
