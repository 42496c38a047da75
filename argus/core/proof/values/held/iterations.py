"""The recurrence of one tile, and closed forms of it that are guessed and checked."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.held.carried import Form, Iterations, carried
from argus.core.proof.values.held.cells import Cells
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.recurrences import folded, linear
from argus.core.proof.values.held.terms import chosen, exchanged, heads, plus, reasons, replaced, unknown
from argus.core.proof.values.held.weighted import mean, telescoped
from argus.core.values.expr import Element, Expr, ReduceOp, expr, fn, infinity
from argus.core.values.rewriting import nodes

_EXTREMA: tuple[tuple[ReduceOp, str, Expr], ...] = (("max", "max", infinity(-1)), ("min", "min", infinity(1)))


@frozen
class Closed:
    """The closed form of a tile.

    head: at the head of iteration k. after: after the loop. extremum: whether it is one of the iterations.
    """

    head: Expr
    after: Expr
    extremum: bool = False


@frozen(eq=False)
class Guess:
    """A form of which one iteration from k is the form at the next k.

    at: it, by the loop variable. after: after the loop. extremum: whether it is one of the iterations.
    """

    at: Callable[[Index], Expr]
    after: Expr
    extremum: bool = False


@define(eq=False)
class Recurrence:
    """The values of one tile: `entry` before the loop, `step` (of the tile `mine` before) after an iteration."""

    cells: Cells
    loop: Loop
    mine: Element
    entry: Expr
    step: Expr
    rescaled: Callable[[Recurrence, bool], Guess | None]
    """A guess for a sum that is rescaled; whether the first iteration sets it."""

    @property
    def k(self) -> Index:
        return algebra.sym(self.loop.symbol)

    @property
    def end(self) -> Index:
        """The loop variable after the loop."""
        return algebra.add(self.loop.stmt.start, algebra.mul(self.loop.trips, self.loop.stmt.step))

    def known(self, *more: Cond) -> Known:
        """What is known within the loop."""
        return Known(self.cells.flow, (*self.loop.facts, *more), self.cells.questions)

    @property
    def first(self) -> Known:
        """What is known before the loop."""
        return Known(self.cells.flow, (), self.cells.questions)

    def at(self, root: Expr, k: Index) -> Expr:
        """The expression in another iteration."""
        return replaced(root, {self.loop.symbol: k})

    def closed(self) -> Closed | None:
        """The closed form; None if no guess is right."""
        if any(each is not self.mine for each in heads(self.step)):
            return None
        if self.mine not in set(nodes(self.step)):
            return self._replaced_each_time(self.step)
        lost, stmt = bool(reasons(self.entry)), self.loop.stmt
        if not lost and (found := self._guess(self.step, afresh=False)) is not None:
            return Closed(found.at(self.k), found.after, found.extremum)
        follows = algebra.add(self.k, stmt.step)
        again = algebra.lt(follows, stmt.stop) if stmt.step > 0 else algebra.lt(stmt.stop, follows)
        step = self.known(again).simplified(self.step)
        if self.mine not in set(nodes(step)):
            return self._replaced_each_time(step)
        guess = None
        if not heads(self.known(algebra.eq(self.k, stmt.start)).simplified(self.step)):
            guess = self._guess(self.known(self.loop.has_earlier(1)).simplified(self.step), afresh=True)
        own = None if guess is not None or lost else self._by_induction()
        if own is not None:
            return Closed(own(self.k), own(self.end))
        if guess is None:
            stale = unknown(f"`{self.mine.tensor}` of an earlier iteration")
            return self._replaced_each_time(exchanged(step, {self.mine: stale}))
        head, after = guess.at(self.k), guess.after
        # A form that does not begin with what the tile held holds only once an iteration has set it.
        other = not lost and not self.first.same(guess.at(stmt.start), self.entry)
        if other:
            head = chosen(algebra.eq(self.k, stmt.start), self.entry, head)
        if lost or other:
            after = chosen(algebra.lt(0, self.loop.trips), after, self.entry)
        return Closed(head, after, guess.extremum)

    def _by_induction(self) -> Form | None:
        own = self.iterations, self.step, self.mine, self.entry, self.known(), self.first
        return mean(*own) or carried(*own)

    @property
    def iterations(self) -> Iterations:
        """The iterations of the loop, in order."""
        return Iterations(self.loop.symbol, self.loop.stmt.start, self.loop.stmt.step)

    def _replaced_each_time(self, step: Expr) -> Closed:
        """A tile that an iteration replaces. step: what it holds after an iteration that another one follows."""
        previous = self.at(step, algebra.sub(self.k, self.loop.stmt.step))
        last = self.loop.last(0)[self.loop.symbol]
        head = self.carried(previous, self.entry, self.first.same)
        return Closed(head, self.after(self.at(exchanged(self.step, {self.mine: head}), last), self.entry))

    def carried(self, previous: Expr, entry: Expr, same: Callable[[Expr, Expr], bool]) -> Expr:
        """The tile at the head of an iteration. previous: what the iteration before has made of it, if there is one."""
        start = self.loop.stmt.start
        lost = reasons(entry) or reasons(previous)
        if not lost and same(self.at(previous, start), self.at(entry, start)):
            return previous
        return chosen(algebra.eq(self.k, start), entry, previous)

    def after(self, last: Expr, entry: Expr) -> Expr:
        """The tile after the loop. last: what the last iteration has made of it, if there is one."""
        return chosen(algebra.lt(0, self.loop.trips), last, entry)

    def _guess(self, step: Expr, *, afresh: bool) -> Guess | None:
        """A sum, a product or an extremum over the iterations is a form by definition.

        afresh: the first iteration sets the tile, and `step` is that of later ones; the term of any is what it makes of
        a neutral tile.
        """
        for op, function, neutral in _EXTREMA:
            if (term := folded(function, step, self.mine)) is not None:
                return self._reduced(op, function, neutral, None if afresh else term)
        found = linear(step, self.mine)
        if found is not None and found.factor is expr(1):
            return self._reduced("sum", "add", expr(0), None if afresh else found.rest)
        if found is not None and found.rest is expr(0):
            return self._reduced("product", "mul", expr(1), None if afresh else found.factor)
        return None if found is None else self.rescaled(self, afresh)

    def _reduced(self, op: ReduceOp, function: str, neutral: Expr, known: Expr | None) -> Guess:
        """known: the term of each iteration; None: what it makes of a neutral tile."""
        term = exchanged(self.step, {self.mine: neutral}) if known is None else known
        parts = (
            telescoped(self.iterations, term, self.known(), self.first) if op == "sum" and known is not None else None
        )
        plain, form = parts or (term, None)

        def guess(k: Index) -> Expr:
            found = self.over_iterations(op, k, lambda at: self.at(plain, at))
            found = found if form is None else plus(form(k), found)
            return found if known is None or self.entry is neutral else fn(function, self.entry, found)

        return Guess(guess, guess(self.end), op in ("max", "min"))

    def over_iterations(self, op: ReduceOp, k: Index, body: Callable[[Index], Expr]) -> Expr:
        """`op` over the iterations before that of k, by ascending loop variable."""
        number = Symbol("~iteration", "fresh", 0)
        stmt = self.loop.stmt
        passed = algebra.sub(k, stmt.start) if stmt.step > 0 else algebra.sub(stmt.start, k)
        count = algebra.floordiv(passed, abs(stmt.step))
        first = stmt.start if stmt.step > 0 else algebra.sub(k, stmt.step)
        at = algebra.add(first, algebra.mul(algebra.sym(number), abs(stmt.step)))
        return reduction(op, [Range(number, count)], body(at))
