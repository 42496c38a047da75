"""The content of tiles as tags and sets, read off the expressions of what their elements hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, nan

import numpy as np
from attrs import define, field

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Cmp, Cond, Coord, Index, Sym, Symbol
from argus.core.ir import Assert, Buffer, Relation, View
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import any_place, at_any_element
from argus.core.proof.dataflow.piecewise_index import evaluate_piecewise
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, extremes, numeric
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.values.adjacent_runs import joined_runs
from argus.core.proof.values.alike_terms import not_said_by_tags
from argus.core.proof.values.complete_sets import complete_sets
from argus.core.proof.values.content import Data, Inside, Names, Number, Top, Value
from argus.core.proof.values.held.cells import Cells
from argus.core.proof.values.held.empty_ranges import with_empty_ranges
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.joined import of_numbers
from argus.core.proof.values.held.loops import Loops
from argus.core.proof.values.held.settled import settled
from argus.core.proof.values.held.table_forms import is_function, layout_in
from argus.core.proof.values.held.tables import affine_in
from argus.core.proof.values.held.terms import heads, reasons, replaced
from argus.core.proof.values.held.unnamed import unnamed_reasons
from argus.core.proof.values.in_cases import MOST_TESTS, common_test
from argus.core.proof.values.in_words import in_words
from argus.core.proof.values.made_of import MadeOf, Reading, common_guards, single, without_guards
from argus.core.proof.values.named_parts import Part, common_context, known_tags
from argus.core.proof.values.part_counts import count, without_decided_extrema
from argus.core.proof.values.ties import Tie, ties
from argus.core.values.expr import Choose, Compare, Expr, Infinity, ReduceOp, fn
from argus.core.values.expr import Number as Rational
from argus.core.values.rewriting import elements, nodes
from argus.core.values.rewriting import substitute as substitute_value
from argus.core.walk import mentions, substitute, symbols

Cases = tuple[tuple[Cond, Value], ...]
"""A value in each of several cases of loops, blocks and sizes, of which one holds."""


@define(eq=False)
class Contents:
    """The contents of the tiles of one flow.

    tags: the tags of tensors by their names, or why they are not known. before: as in `Cells`.
    """

    flow: Flow
    tags: Mapping[str, Names | str]
    before: Mapping[Buffer, Expr] = field(factory=dict[Buffer, Expr])
    loops: Loops = field(factory=Loops)
    cells: Cells = field(init=False)
    _known: dict[tuple[Step, View, TV], Cases] = field(factory=dict["tuple[Step, View, TV]", "Cases"], init=False)
    _values: dict[tuple[Step, View, TV], Expr | str] = field(
        factory=dict[tuple[Step, View, TV], "Expr | str"], init=False
    )

    def __attrs_post_init__(self) -> None:
        self.cells = Cells(self.flow, self.loops.at_head, self.loops.after_loop, self.before, through_views=False)

    def _agree(self, one: Part, two: Part) -> bool:
        """Whether two tags are equal at all elements of the tile that is being read."""
        equal = algebra.eq(one.value, two.value)
        if equal is algebra.FALSE or self._layout is None:
            return False
        given = [at_any_element(cond, self._layout) for cond in common_context(one, two)]
        return self.flow.holds((*self._context, *given), at_any_element(equal, self._layout))

    def of(self, access: Access) -> Cases:
        """What a read finds in each case, over the coordinates of its layout."""
        assert access.by is not None
        key = access.step, access.view, access.by
        if key not in self._known:
            self._layout = access.by
            found = self.value(access)
            lost = isinstance(found, str)
            self._known[key] = ((algebra.TRUE, Top(found)),) if lost else tuple(self._cases(found, access, ()))
        return self._known[key]

    def _cases(self, held: Expr, access: Access, given: tuple[Cond, ...]) -> Iterator[tuple[Cond, Value]]:
        """The content, by the cases of a test that holds for all elements or none, where it has no other form."""
        assert access.by is not None
        self._context = *access.step.context, *given
        found = self.data(held, access.by, access.shape)
        test = common_test(held) if isinstance(found, Top) and len(given) < MOST_TESTS else None
        if not isinstance(held, Choose) or test is None:
            yield algebra.all_of(given), found
            return
        yield from self._cases(held.then, access, (*given, test))
        yield from self._cases(held.other, access, (*given, algebra.negate(test)))

    def not_said(self, access: Access) -> str:
        """Why tags do not say what a read finds, or why that is not known; empty if they do."""
        found = self.value(access)
        if isinstance(found, str):
            return found
        assert access.by is not None
        known = Known(self.flow, access.step.context, self.cells.questions.renewed())
        return not_said_by_tags(substitute_value(found, {}, any_place(access.by)), self.tags, known)

    def value(self, access: Access) -> Expr | str:
        """The value of an access over the coordinates of its layout, or why it has none."""
        assert access.by is not None
        key = access.step, access.view, access.by
        if key not in self._values:
            self._values[key] = self._value(access, access.by)
        return self._values[key]

    def _value(self, access: Access, by: TV) -> Expr | str:
        questions = self.cells.questions = self.cells.questions.renewed()
        held = self.loops.resolved(self.cells, self.cells.read(access))
        held = self._of_agents(held)
        held = settled(self.cells.tables, held, Known(self.flow, access.step.context, questions))
        infinite = self.cells.casts.infinite(self.flow, questions, partial(self.loops.solved, self.cells))
        lost = (*reasons(held), *unnamed_reasons(held), *filter(None, (infinite,)))
        if lost or heads(held):
            return lost[0] if lost else "a tile that a loop carries"
        return self._over_coordinates(held, by, access.shape)

    def _of_agents(self, held: Expr) -> Expr:
        """A value that tests the number of an agent as one form over that number, where there is one."""
        tested = [
            symbol
            for each in nodes(held)
            if isinstance(each, Choose) and not isinstance(each.test, Compare)
            for symbol in symbols(each.test)
        ]
        for agent in dict.fromkeys(tested):
            numbers = self._numbers(agent)
            if numbers is not None:
                values = [replaced(held, {agent: algebra.const(number)}) for number in numbers]
                one = of_numbers(values, agent, numbers.start)
                held = held if one is None else one
        return held

    def _numbers(self, symbol: Symbol) -> range | None:
        """The numbers of an agent, or of a block in its cluster."""
        rank = self.flow.timeline.kernel.rank
        if isinstance(rank, Sym) and rank.symbol == symbol:
            return range(self.flow.timeline.kernel.peers)
        if symbol.kind != "agent" or symbol.low is None or symbol.high is None:
            return None
        return range(symbol.low, symbol.high + 1)

    def unrelated(self, summed: Access, scale: Access) -> str:
        """Why nothing says that elements of a scale belong to the sums that they multiply; empty if something does.

        Both have one layout. A name that the scale alone carries must be decided by those of the sum, by a relation.
        """
        values = self.value(summed), self.value(scale)
        if isinstance(values[0], str) or isinstance(values[1], str):
            return next(each for each in values if isinstance(each, str))
        assert summed.by is not None
        self._context, self._layout = summed.step.context, summed.by
        reading = Reading(self.tags, self._agree, self._ties())
        alone = reading.of(values[1]).names.keys() - reading.of(values[0]).names.keys()
        untagged = [each.tensor for each in elements(values[1]) if not known_tags(self.tags, each.tensor)]
        if any(not self._is_single(tensor) for tensor in untagged):
            return f"`{scale.view.buffer.name}` carries no tag that could tell what it belongs to"
        product = reading.of(fn("mul", *values))
        for name in sorted(alone):
            if any(part.tie is None for part in product.names.get(name, ())):
                sums = f"the sum `{summed.view.buffer.name}`"
                return f"no relation is asserted between `{name}` of the scale and {sums}"
        return product.lost

    def _is_single(self, tensor: str) -> bool:
        found = [each for each in self.flow.timeline.kernel.parameters if each.name == tensor]
        return bool(found) and all(extent is algebra.const(1) for extent in found[0].shape)

    def _over_coordinates(self, held: Expr, by: TV, shape: tuple[int, int]) -> Expr | str:
        """The value over coordinates. A table that is a function of them, but has no form, stays as it is."""
        held = with_empty_ranges(held, self.cells.tables)
        axes = [np.broadcast_to(axis, shape) for axis in by.coordinates()]
        coords = [algebra.coord(axis) for axis in range(len(axes))]
        known: dict[Symbol, Index] = {}
        for name in self.cells.tables.of(held):
            table = np.broadcast_to(self.cells.tables.known[name], shape)
            found = affine_in(table, axes, coords) or layout_in(table, axes, coords)
            if found is not None:
                known[name] = found
            elif not is_function(table, axes):
                return "threads that hold one element of a tile hold different parts"
        return replaced(held, known)

    _context: tuple[Cond, ...] = field(default=(), init=False)
    _related: tuple[Tie, ...] | None = field(default=None, init=False)
    _layout: TV | None = field(default=None, init=False)

    def data(self, held: Expr, by: TV, shape: tuple[int, int]) -> Value:
        """The tags and sets of a value over the coordinates of a layout."""
        if isinstance(held, Rational):
            return Number(float(held.value))
        if isinstance(held, Infinity):
            return Number(inf * held.sign)
        if not elements(held):
            return Number(nan)
        made = Reading(self.tags, self._agree, self._ties()).of(held)  # what agrees depends on where it is read
        if made.lost:
            return Top(made.lost)
        guards = common_guards(made)
        made = without_guards(made, guards)
        singles = {name: single(parts) for name, parts in made.names.items()}
        own = dict.fromkeys(cond for found in singles.values() if found is not None for cond in found[1])
        inside, loose = (self._bounds(conds, by, shape) for conds in (guards, own))
        if inside is None or loose is None:
            return Top("an element under a condition that is not a bound of a coordinate")
        scales = self._decided(made, by)
        if isinstance(scales, str):
            return Top(scales)
        record: dict[str, FragmentIndex] = {}
        sets: dict[str, Index | None] = {}
        for name, parts in made.names.items():
            one = singles[name]
            place = None if one is None else self._fragment(one[0], by, shape)
            if place is not None:
                record[name] = place
            elif name not in scales:
                sets[name] = self._count(parts, made.op or "sum", by)
        whole = [each for each in made.closed if each.name not in scales]
        closed = complete_sets(whole, lambda each: self._count(each.parts, each.op, by))
        return Data(
            record,
            inside,
            sets=sets or None,
            closed=closed,
            form=in_words(held, self.tags),
            loose=loose,
            scales=scales,
        )

    def _count(self, parts: Iterable[Part], op: ReduceOp, by: TV) -> Index | None:
        """c(x) of the parts; None if that has no form over coordinates."""

        def holds(given: Sequence[Cond], goal: Cond) -> bool:
            there = (at_any_element(cond, by) for cond in given)
            return self.flow.holds((*self._context, *there), at_any_element(goal, by))

        parts = tuple(parts)
        found = count(parts, op)
        if found is None and op == "sum":
            found = count([joined_runs(each, holds) for each in parts], op)
        if found is None or symbols(found) & self.cells.tables.known.keys():
            return None
        return without_decided_extrema(found, lambda goal: self.flow.holds(self._context, goal))

    def _ties(self) -> tuple[Tie, ...]:
        if self._related is None:
            claims = (step.stmt.claim for step in self.flow.timeline.steps if isinstance(step.stmt, Assert))
            self._related = ties((each for each in claims if isinstance(each, Relation)), self.flow.holds)
        return self._related

    def _decided(self, made: MadeOf, by: TV) -> frozenset[str] | str:
        """The names that others decide by relations; or which relation is not known to hold."""
        found: list[str] = []
        for name in sorted({*made.names, *made.collected}):
            parts = (*made.names.get(name, ()), *(p for each in made.closed if each.name == name for p in each.parts))
            asked = [part.tie for part in parts if part.tie is not None]
            if not self.flow.holds(self._context, at_any_element(algebra.all_of(asked), by)):
                return f"the relation that is asserted of `{name}` is not known of all elements that are multiplied"
            if parts and len(asked) == len(parts):
                found.append(name)
        return frozenset(found)

    def _bounds(self, conds: Iterable[Cond], by: TV, shape: tuple[int, int]) -> tuple[Inside, ...] | None:
        """Conditions as bounds of coordinates, without those that are known to hold; None if one is none."""
        parts = [each for cond in conds for each in _conjuncts(cond)]
        left = [each for each in parts if not self.flow.holds(self._context, at_any_element(each, by))]
        found = [self._inside(each, by, shape) for each in left]
        return tuple(each for each in found if each is not None) if None not in found else None

    def _fragment(self, index: Index, by: TV, shape: tuple[int, int]) -> FragmentIndex | None:
        """An expression at each element; each table in it is one more coordinate."""
        axes, known = by.coordinates(), self.cells.tables.known
        tables = sorted(symbols(index) & known.keys(), key=lambda each: each.name)
        index = substitute(index, {symbol: algebra.coord(len(axes) + n) for n, symbol in enumerate(tables)})
        places = [numeric(np.broadcast_to(each, shape)) for each in (*axes, *(known[symbol] for symbol in tables))]
        return evaluate_piecewise(index, places, self.cells.thread, shape)

    def _inside(self, cond: Cond, by: TV, shape: tuple[int, int]) -> Inside | None:
        """A condition as a bound: a size, or all sizes, of `e >= 0` are the extent, and the rest is the coordinate."""
        if not isinstance(cond, Cmp) or cond.op != "<=":
            return None
        terms, constant = linear_terms(algebra.sub(cond.right, cond.left))
        sizes = [(a, f) for a, f in terms if not mentions(a, (Coord,)) and _of_sizes(a)]
        found: Inside | None = None
        for extent in ([each for each in sizes if isinstance(each[0], Sym) and each[1] == 1], sizes):
            rest = algebra.linear([(a, -f) for a, f in terms if (a, f) not in extent], -constant - 1 if extent else 0)
            place = self._fragment(rest, by, shape)
            if place is None:
                continue
            below = all(self.flow.holds(self._context, algebra.le(0, end)) for end in extremes(place))
            found = Inside(place, algebra.linear(extent, 0 if extent else constant + 1), open=not below)
            if below:
                break
        return found


def _of_sizes(index: Index) -> bool:
    return all(symbol.kind == "size" for symbol in symbols(index))


def _conjuncts(cond: Cond) -> tuple[Cond, ...]:
    return cond.parts if isinstance(cond, And) else (cond,)
