"""Tiles that a loop carries: a closed form over the iterations so far, guessed from base and step, and then checked.

The tile at the head of iteration k is an opaque element. What the body makes of it is a recurrence: it adds a term
(a sum over the iterations), takes a maximum, scales and adds, or replaces the tile. Sums and maxima over the
iterations are right by definition; of a rescaled sum it is shown that the factor is the right one (`rescaling`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.ir import Buffer
from argus.core.proof.dataflow.timeline import Loop, Segment
from argus.core.proof.values.held.alike_branches import by_reference
from argus.core.proof.values.held.cancelled import cancelled
from argus.core.proof.values.held.cells import Cells
from argus.core.proof.values.held.iterations import Closed, Guess, Recurrence
from argus.core.proof.values.held.recurrences import linear
from argus.core.proof.values.held.rescaling import Reference, Rescaled, Rescaling
from argus.core.proof.values.held.tables import Positions, alike_columns, registers_of
from argus.core.proof.values.held.terms import HEAD, exchanged, heads, plus, reasons, replaced, unknown
from argus.core.proof.values.held.unnamed import unnamed
from argus.core.values.expr import Choose, Compare, Element, Expr, element, expr
from argus.core.values.rewriting import nodes
from argus.core.walk import IntArray

ZERO = expr(0)
_ANY = element("~reference")
"""Stands for the reference of all terms."""


@frozen
class Tile:
    """A register tile that a loop writes."""

    segment: Segment
    buffer: Buffer


@define(eq=False)
class Loops:
    """The closed forms of all tiles of one flow."""

    _closed: dict[Tile, Closed] = field(factory=dict[Tile, Closed], init=False)
    _steps: dict[Tile, Expr] = field(factory=dict[Tile, Expr], init=False)
    _alike: dict[Tile, IntArray] = field(factory=dict[Tile, "IntArray"], init=False)
    _running: set[Tile] = field(factory=set[Tile], init=False)
    _solving: set[Tile] = field(factory=set[Tile], init=False)
    _nothing: set[tuple[Expr, Expr]] = field(factory=set[tuple[Expr, Expr]], init=False)
    """Sums and references after loops: where the reference is -inf, all terms are 0."""
    _names: dict[str, Tile] = field(factory=dict[str, Tile], init=False)

    def at_head(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Expr:
        """The tile at the head of an arbitrary iteration.

        In terms of opaque tiles while the recurrence of one of the same loop is being looked at.
        """
        tile = Tile(segment, buffer)
        if not any(each.segment is segment for each in self._running):
            return self._solved(cells, tile, loop).head
        return self._opaque(cells, tile, loop) if tile in self._running else self._carried(cells, tile, loop)

    def after_loop(self, cells: Cells, segment: Segment, loop: Loop, buffer: Buffer) -> Expr:
        """The tile after the loop."""
        return self._solved(cells, Tile(segment, buffer), loop).after

    def resolved(self, cells: Cells, root: Expr) -> Expr:
        """The expression with opaque tiles replaced by their closed forms, where those are known."""
        table: dict[Expr, Expr] = {}
        for each in heads(root):
            tile, at = self._names[each.tensor], self._positions(cells, each)
            if tile in self._closed and at is not None and tile.segment.loop is not None:
                form = cells.tables.at(self._closed[tile].head, at)
                table[each] = replaced(form, {tile.segment.loop.symbol: each.at[1]})
        return exchanged(root, table) if table else root

    def solved(self, cells: Cells, root: Expr) -> Expr:
        """The same, of tiles that nothing else has asked for as well."""
        for each in heads(root):
            tile = self._names[each.tensor]
            if tile.segment.loop is not None:
                self._solved(cells, tile, tile.segment.loop)
        return self.resolved(cells, root)

    # -- opaque tiles ------------------------------------------------------------------------------------

    def _opaque(self, cells: Cells, tile: Tile, loop: Loop) -> Element:
        name = f"{HEAD}{tile.segment.steps[0].segment} {tile.buffer.name}"
        self._names[name] = tile
        registers = self._alike.get(tile, registers_of(tile.buffer))
        return element(name, cells.tables.index(registers), algebra.sym(loop.symbol))

    def _positions(self, cells: Cells, head: Element) -> Positions | None:
        """The registers of the tile that an opaque element stands for."""
        place = cells.tables.numbers(head.at[0])
        if place is None:
            return None
        values = registers_of(self._names[head.tensor].buffer).shape[1]
        return place // values, place % values

    def _step(self, cells: Cells, tile: Tile, loop: Loop) -> Expr:
        """The tile after an iteration, in terms of opaque tiles at its head."""
        if tile not in self._steps:
            self._running.add(tile)
            with cells.of_one_iteration(tile.segment):
                step = cells.after(tile.buffer, tile.segment, cells.events(tile.segment, tile.buffer))
            self._running.discard(tile)
            mine = self._opaque(cells, tile, loop)
            self._alike[tile] = self._first_alike(cells, tile, mine, step)
            if (first := self._opaque(cells, tile, loop)) is not mine:
                step = exchanged(step, {mine: first})
                self._steps = {each: value for each, value in self._steps.items() if mine not in set(nodes(value))}
                cells.forget(tile.segment, mine)
            self._steps[tile] = step
        return self._steps[tile]

    def _carried(self, cells: Cells, tile: Tile, loop: Loop) -> Expr:
        """A tile at the head of an iteration: what the one before has set, or opaque if that depends on more."""
        step, mine = self._step(cells, tile, loop), self._opaque(cells, tile, loop)
        if mine in set(nodes(step)):
            if any(each is not mine for each in heads(step)) or _by_values(step, mine):
                return mine
            found = self._solved(cells, tile, loop)
            return mine if found.extremum else found.head
        of = self._recurrence(cells, tile, loop, step)
        previous = of.at(self._ahead(cells, step), algebra.sub(of.k, loop.stmt.step))
        begun = {each.entry: each.now for each in self._references(cells, previous)}
        return of.carried(previous, exchanged(of.entry, begun), of.first.alike)

    def _first_alike(self, cells: Cells, tile: Tile, mine: Element, step: Expr) -> IntArray:
        """For each register of a tile, the first one that always holds the same."""
        registers = registers_of(tile.buffer)
        entry, term = cells.entry(tile.segment, tile.buffer), exchanged(step, {mine: ZERO})
        if reasons(entry) or any(self._names[each.tensor] == tile for each in heads(term)):
            return registers
        tables = (cells.tables.known[name] for each in (entry, term) for name in cells.tables.of(each))
        rows = [np.broadcast_to(each, registers.shape).ravel() for each in tables]
        first, classes = alike_columns(np.stack([np.zeros(registers.size, np.int64), *rows]))
        return first[classes].reshape(registers.shape)

    def _ahead(self, cells: Cells, step: Expr) -> Expr:
        """The expression with what tiles are after the iteration as what they are at the head of the next one."""
        return exchanged(step, {each.step: each.following for each in self._references(cells, step)})

    def _references(self, cells: Cells, step: Expr) -> Iterator[Reference]:
        """The opaque tiles of which the expression is, with what one iteration makes of them."""
        for each in heads(step):
            tile, at = self._names[each.tensor], self._positions(cells, each)
            loop = tile.segment.loop
            if at is None or loop is None or tile in self._running or each.at[1] is not algebra.sym(loop.symbol):
                continue
            after, entry = self._step(cells, tile, loop), cells.entry(tile.segment, tile.buffer)
            following = element(each.tensor, each.at[0], algebra.add(algebra.sym(loop.symbol), loop.stmt.step))
            yield Reference(each, following, cells.tables.at(after, at), cells.tables.at(entry, at))

    # -- closed forms ------------------------------------------------------------------------------------

    def _solved(self, cells: Cells, tile: Tile, loop: Loop) -> Closed:
        if tile not in self._closed:
            if tile in self._running or tile in self._solving:
                lost = unknown(f"`{tile.buffer.name}` depends on tiles that depend on it")
                return Closed(lost, lost)
            self._solving.add(tile)
            found = self._closed_form(cells, tile, loop)
            self._solving.discard(tile)
            self._closed[tile] = found
        return self._closed[tile]

    def _closed_form(self, cells: Cells, tile: Tile, loop: Loop) -> Closed:
        step, mine = self._step(cells, tile, loop), self._opaque(cells, tile, loop)
        step = cancelled(step, lambda each: self._of_iterations(cells, each))
        for each in heads(step):
            other = self._names[each.tensor]
            if each is not mine and other.segment.loop is not None:
                self._solved(cells, other, other.segment.loop)
        of = self._recurrence(cells, tile, loop, step)
        found = self._replaced(cells, of, step) if mine not in set(nodes(step)) else of.closed()
        if found is not None and not (_by_values(step, mine) and reasons(found.after)):
            return found
        reason = f"no closed form of `{tile.buffer.name}` over {loop.symbol.name} is known"
        number, lost = unnamed(of, reason), unknown(reason)
        if number is None or found is None:
            return number or found or Closed(lost, lost)
        head, after = (
            other if reasons(own) else own for own, other in ((found.head, number.head), (found.after, number.after))
        )
        return Closed(head, after, extremum=True)

    def _recurrence(self, cells: Cells, tile: Tile, loop: Loop, step: Expr) -> Recurrence:
        def rescaled(of: Recurrence, afresh: bool) -> Guess | None:
            return self._rescaled(cells, of, self._ahead(cells, step), afresh=afresh)

        mine, entry = self._opaque(cells, tile, loop), cells.entry(tile.segment, tile.buffer)
        found = Recurrence(cells, loop, mine, entry, self.resolved(cells, step), rescaled)
        if reasons(entry):
            found.entry = entry = found.first.simplified(entry)
        if reasons(found.step) or any(each is not mine for each in heads(found.step)):  # maybe in no iteration
            plain = self.resolved(cells, found.known().simplified(found.step))
            found = Recurrence(cells, loop, mine, entry, plain, rescaled)
        return found

    def _replaced(self, cells: Cells, of: Recurrence, step: Expr) -> Closed | None:
        """A tile that each iteration replaces: in terms of what other tiles hold after it."""
        ahead = self._ahead(cells, step)
        previous = self.resolved(cells, of.at(ahead, algebra.sub(of.k, of.loop.stmt.step)))
        last, begun, ended = ahead, dict[Expr, Expr](), dict[Expr, Expr]()
        for each in self._references(cells, step):
            after = self._after(cells, each)
            last = exchanged(last, {each.following: after})
            begun[each.entry], ended[each.entry] = self.resolved(cells, each.now), after
        last = of.at(self.resolved(cells, last), of.loop.last(0)[of.loop.symbol])
        if heads(previous) or heads(last):
            return None
        same = of.first.alike if begun else of.first.same
        head = of.carried(previous, exchanged(of.entry, begun), same)
        return Closed(head, of.after(last, exchanged(of.entry, ended)))

    def _of_iterations(self, cells: Cells, head: Element) -> tuple[Expr, ...]:
        """What the tile was before its loop, and what one iteration makes of it."""
        tile = self._names[head.tensor]
        loop = tile.segment.loop
        if loop is None or tile in self._running:
            return (unknown(f"`{tile.buffer.name}` within an iteration"),)
        return cells.entry(tile.segment, tile.buffer), self._step(cells, tile, loop)

    def _after(self, cells: Cells, reference: Reference) -> Expr:
        """The closed form of an opaque tile after the loop."""
        tile, at = self._names[reference.now.tensor], self._positions(cells, reference.now)
        assert at is not None
        closed = self._closed.get(tile)
        if closed is None:  # it is being looked for, and depends on what asks for it
            return unknown(f"`{tile.buffer.name}` depends on tiles that depend on it")
        return cells.tables.at(closed.after, at)

    # -- rescaled sums -----------------------------------------------------------------------------------

    def _rescaled(self, cells: Cells, of: Recurrence, step: Expr, *, afresh: bool) -> Guess | None:
        """A sum that is rescaled whenever its reference changes. step: of the tile, in terms of opaque tiles."""
        known = of.known()
        for ref in self._references(cells, step):
            step = by_reference(step, ref, known, of.first)
        if reasons(step):
            step = known.simplified(step)
        sets = exchanged(step, {of.mine: ZERO})
        if afresh:
            step = of.known(of.loop.has_earlier(1)).simplified(step)
        found = linear(step, of.mine)
        if found is None:
            return None
        for ref in self._references(cells, found.factor):
            after = self.resolved(cells, ref.step)
            rest = sets if afresh else found.rest
            begins = (of.entry, ref.entry) in self._nothing
            sum_ = Rescaling(of, found.factor, rest, ref, after, begins).sum(ZERO if afresh else of.entry)
            if sum_ is not None and not heads(term := self.resolved(cells, sum_.term(_ANY))):
                return self._guess(cells, of, ref, sum_, term)
        return None

    def _guess(self, cells: Cells, of: Recurrence, ref: Reference, found: Rescaled, term: Expr) -> Guess | None:
        now, after = self.resolved(cells, ref.now), self._after(cells, ref)

        def summed(k: Index, reference: Expr) -> Expr:
            total = of.over_iterations("sum", k, lambda number: of.at(term, number))
            return plus(found.entry(reference), exchanged(total, {_ANY: reference}))

        ended = summed(of.end, after)
        self._nothing.add((ended, after))
        return Guess(lambda k: summed(k, of.at(now, k)), ended)


def _by_values(step: Expr, tile: Element) -> bool:
    """Whether a test of values decides what becomes of a tile."""
    tests = (each for each in nodes(step) if isinstance(each, Choose) and isinstance(each.test, Compare))
    return any(tile in set(nodes(each)) for each in tests)
