"""What all executions of an addition add to one element of a tensor: a sum over those that add to it.

An execution is that of a block, an agent and an iteration. It adds to the element if the place of its tile says so: for
each axis an equation between the element's coordinate and the tile's. The equations are solved for as many variables of
the execution as they determine, each by a rule under which the solution is the only one; the sum is over the others,
of what is added where the solution is an execution at all, and 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import cast

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Bin, Cond, Const, Index, Node, Sym, Symbol
from argus.core.ir import trips
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable, distinct_count
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.relevance import relevant
from argus.core.proof.values.held.terms import chosen, mapped, plus, replaced
from argus.core.values.digits import quotient
from argus.core.values.expr import Expr, Reduce, expr
from argus.core.values.rewriting import integers
from argus.core.walk import NodeT, fold, rebuild, substitute, symbols, topological

_PARTS = 16
"""Values of a variable up to which the parts of a sum are spelled out: their ranges adjoin where they are numbers."""


@frozen
class Digits:
    """A loop variable of [0, high low) that occurs as its quotient and its remainder by `low` only."""

    variable: Symbol
    high: Index
    low: Index

    def names(self) -> tuple[Symbol, Symbol]:
        return (Symbol(f"{self.variable.name}//", "loop", 0), Symbol(f"{self.variable.name}%", "loop", 0))

    @property
    def extents(self) -> dict[Symbol, Index]:
        return dict(zip(self.names(), (self.high, self.low), strict=True))

    def over(self, root: NodeT) -> NodeT:
        """An integer or a condition in terms of the digits."""
        return cast(NodeT, self.within(root))

    def within(self, root: Node) -> Node:
        own = algebra.sym(self.variable)
        above, below = (algebra.sym(each) for each in self.names())

        def visit(node: Node, parts: Sequence[Node]) -> Node:
            if isinstance(node, Bin) and node.left is own and node.right is self.low and node.op in ("//", "%"):
                return above if node.op == "//" else below
            return rebuild(node, parts) if parts else node

        return fold(root, visit)


def digits_of(loop: Loop, roots: Sequence[Node]) -> Digits | None:
    """The digits of a loop variable that occurs in no other way; None if it does."""
    stmt, own = loop.stmt, algebra.sym(loop.symbol)
    divided = [
        node for node in topological(roots) if isinstance(node, Bin) and node.op in ("//", "%") and node.left is own
    ]
    lows: set[Index] = {node.right for node in divided}
    if len(lows) != 1 or loop.symbol in symbols(*lows) or stmt.start is not algebra.const(0) or stmt.step != 1:
        return None
    (low,) = lows
    high = quotient(stmt.stop, low)
    if high is None:
        return None
    found = Digits(loop.symbol, high, low)
    left = (cast(Index, found.within(root)) for root in roots)
    return None if any(loop.symbol in symbols(each) for each in left) else found


@define(eq=False)
class Executions:
    """The executions that add to one element. extents: of the variables, each of [0, extent).

    solved: those that the element determines. conditions: under which the solution is an execution that adds to it.
    """

    extents: dict[Symbol, Index]
    solved: dict[Symbol, Index] = field(factory=dict[Symbol, Index], init=False)
    conditions: list[Cond] = field(factory=list[Cond], init=False)

    def solve(self, place: Index, at: Index) -> None:
        """Take over that a tile's coordinate is `at`: solved for one variable, or for two digits, or as a condition."""
        place, at = (substitute(each, self.solved) for each in (place, at))
        terms, constant = linear_terms(place)
        alone = [
            (atom, factor)
            for atom, factor in terms
            if isinstance(atom, Sym) and atom.symbol in self.free and not self._elsewhere(atom, terms)
        ]
        for unit, _ in (each for each in alone if each[1] == 1):
            assert isinstance(unit, Sym)
            for atom, factor in terms:
                if atom is not unit and self._solve_digits(place, at, unit, (atom, factor)):
                    return
        for unit, factor in sorted(alone, key=lambda each: self._is_block(each[0])):
            if factor in (1, -1):
                assert isinstance(unit, Sym)
                rest = algebra.linear([each for each in terms if each[0] is not unit], constant)
                self._fix({unit.symbol: algebra.mul(algebra.sub(at, rest), factor)})
                self.conditions += self._in_range(unit.symbol)
                return
        self.conditions.append(algebra.eq(place, at))

    @property
    def free(self) -> dict[Symbol, Index]:
        """The variables that are not solved for."""
        return {each: extent for each, extent in self.extents.items() if each not in self.solved}

    def _solve_digits(self, place: Index, at: Index, unit: Sym, other: tuple[Index, int]) -> bool:
        """Whether place is `d u + w + rest`, w of [0, d): then u is the quotient by d, and w the remainder."""
        split = self._multiple(*other)
        if split is None or self.extents[unit.symbol] is not split[1]:
            return False
        number, by = split
        rest = algebra.sub(algebra.sub(place, algebra.sym(unit.symbol)), algebra.mul(algebra.sym(number), by))
        if {number, unit.symbol} & symbols(rest, by):
            return False
        whole = algebra.sub(at, rest)
        above = algebra.floordiv(whole, by)
        self._fix({number: above, unit.symbol: algebra.sub(whole, algebra.mul(above, by))})
        self.conditions += [algebra.le(1, by), *self._in_range(number)]
        return True

    def _multiple(self, atom: Index, factor: int) -> tuple[Symbol, Index] | None:
        """The variable of which a term is a multiple, and by how much."""
        if isinstance(atom, Sym) and atom.symbol in self.free and factor > 1:
            return atom.symbol, algebra.const(factor)
        if not isinstance(atom, Bin) or atom.op != "*" or factor != 1:
            return None
        for one, two in ((atom.left, atom.right), (atom.right, atom.left)):
            if isinstance(one, Sym) and one.symbol in self.free:
                return one.symbol, two
        return None

    def _elsewhere(self, atom: Sym, terms: Sequence[tuple[Index, int]]) -> bool:
        return any(atom.symbol in symbols(other) for other, _ in terms if other is not atom)

    def _is_block(self, atom: Index) -> bool:
        return isinstance(atom, Sym) and atom.symbol.kind == "block"

    def _fix(self, found: Mapping[Symbol, Index]) -> None:
        self.solved = {each: substitute(value, found) for each, value in self.solved.items()} | dict(found)
        self.conditions = [substitute(each, found) for each in self.conditions]

    def _in_range(self, variable: Symbol) -> tuple[Cond, Cond]:
        number = self.solved[variable]
        return algebra.le(0, number), algebra.lt(number, substitute(self.extents[variable], self.solved))


def total_of_executions(
    known: Known, store: Access, value: Expr, coordinates: Sequence[Index], agent: Mapping[Symbol, Index]
) -> tuple[Expr, tuple[Cond, ...]] | str:
    """What all executions of an addition add to the element at these coordinates, or why that is not known.

    value: what one of them adds, wherever it adds to the element. known: of the element alone. agent: the number of the
    agent that adds the value, where it was taken for one: the result is then for the elements to which that agent adds,
    under the conditions returned.
    """
    assert store.places is not None
    line, step = known.flow.timeline, store.step
    if line.path_condition or step.waves is not None or store.mask is not None or store.ends:
        return "an addition by some blocks or threads"
    if not _is_box(store.places):
        return "an addition of a tile that is not a box of elements, each once"
    guard, extents = step.guard, dict(zip(line.kernel.blocks, line.kernel.grid, strict=True))
    digits = None
    if step.loop is not None:
        digits = digits_of(step.loop, (*(each.base for each in store.places), guard, *integers(value)))
        extents |= digits.extents if digits is not None else {step.loop.symbol: trips(step.loop.stmt)}
    names = _Names(step.loop, digits)
    found = _executions(extents, store.places, coordinates, names)
    if not agent.keys() <= found.solved.keys():
        return "an addition to elements to which other agents may add"
    found.conditions.append(substitute(names.of(guard), found.solved))
    if any(extents.keys() & symbols(extent) for extent in found.free.values()):
        return "an addition in a loop whose length depends on the block or another loop"
    mine = tuple(algebra.eq(number, found.solved[each]) for each, number in agent.items())
    return _summed(evolve(known, context=(*known.context, *mine)), found, names.in_value(value)), mine


def _executions(
    extents: Mapping[Symbol, Index], places: Sequence[Separable], coordinates: Sequence[Index], names: _Names
) -> Executions:
    """Those of variables with these extents whose tile contains the element."""
    found = Executions(dict(extents))
    apart: list[Cond] = []
    for place, at in zip(places, coordinates, strict=True):
        equation = _tile_of(place, at)
        if equation is None:
            apart += [names.of(algebra.le(place.least, at)), names.of(algebra.le(at, place.most))]
        else:
            found.solve(names.of(equation[0]), equation[1])
    found.conditions += [substitute(each, found.solved) for each in apart]
    return found


def _summed(known: Known, found: Executions, value: Expr) -> Expr:
    value, every = replaced(value, found.solved), algebra.all_of(found.conditions)
    inside = [algebra.lt(algebra.sym(each), extent) for each, extent in found.free.items()]
    here = known.within(*inside, *(algebra.le(0, algebra.sym(each)) for each in found.free))
    value = _where(here, here.decided(every), value)
    ranges: list[Range] = []
    for each, extent in found.free.items():
        if isinstance(extent, Const) and 0 < extent.value <= _PARTS:
            value = reduce(plus, (replaced(value, {each: algebra.const(part)}) for part in range(extent.value)))
        else:
            own = Range(Symbol(f"~{each.name}", "fresh", 0), extent)
            value, ranges = replaced(value, {each: algebra.sym(own.variable)}), [*ranges, own]
    return reduction("sum", ranges, value) if ranges else value


def _where(known: Known, cond: Cond, value: Expr) -> Expr:
    """The value where the condition holds, and 0 elsewhere, without the parts outside of which it is 0 anyway."""
    for part in cond.parts if isinstance(cond, And) else (cond,):
        if part is not algebra.TRUE and not _vanishes(known.within(algebra.negate(part)), value):
            value = chosen(part, value, expr(0))
    return value


def _vanishes(known: Known, value: Expr) -> bool:
    """Whether a sum is known to be 0, since some condition outside of which its terms are 0 does not hold."""
    if isinstance(value, Reduce) and value.op == "sum":
        here = algebra.sym(value.variable)
        inside = known.within(algebra.le(value.low, here), algebra.lt(here, value.high), value.where)
        return _vanishes(inside, value.body)
    return known.holds(algebra.negate(algebra.all_of(relevant("sum", value))))


@frozen
class _Names:
    """How expressions over the variable of a loop are over its digits, or over the number of the iteration."""

    loop: Loop | None
    digits: Digits | None

    def of(self, root: NodeT) -> NodeT:
        if self.loop is None:
            return root
        if self.digits is not None:
            return self.digits.over(root)
        number = algebra.mul(algebra.sym(self.loop.symbol), self.loop.stmt.step)
        return substitute(root, {self.loop.symbol: algebra.add(self.loop.stmt.start, number)})

    def in_value(self, value: Expr) -> Expr:
        done: dict[Expr, Expr] = {}

        def visit(node: Expr) -> Expr:
            if node not in done:
                done[node] = mapped(node, visit, self.of, self.of)
            return done[node]

        return value if self.loop is None else visit(value)


def _is_box(places: Sequence[Separable]) -> bool:
    """Whether the elements of a tile are all of a box, each once."""
    size = prod(place.high - place.low + 1 for place in places)
    return distinct_count(places) == places[0].table.size == size


def _tile_of(place: Separable, at: Index) -> tuple[Index, Index] | None:
    """The equation that holds if the element is in the tile along one axis; None if it is not one equation."""
    width = place.high - place.low + 1
    if width == 1:
        return place.least, at
    tile = algebra.floordiv(place.least, width)
    return (tile, algebra.floordiv(at, width)) if algebra.mul(tile, width) is place.least else None
