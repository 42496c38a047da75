"""What a value is made of: the tags of the elements of tensors in it, and the numbers over which it sums them.

Read off an expression. A name that several elements carry has several parts. Sums and extrema collect parts; any other
operation on a collection closes it: its set is complete, and says nothing more of what is computed from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import nan

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.proof.values.bound_parts import bound, complete_for_each, varies
from argus.core.proof.values.held.terms import all_symbols, replaced
from argus.core.proof.values.named_parts import Agree, Binder, Closed, Part, Parts, Tags, distinct
from argus.core.proof.values.padding import NEUTRAL, Pads, either, number, operated, outside, positively_scaled
from argus.core.proof.values.ties import Tie, for_each, joined, tied
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    ReduceOp,
    Whole,
    reduce_,
)
from argus.core.values.numbers import unscaled
from argus.core.values.rewriting import parts as parts_of
from argus.core.walk import substitute, symbols

_MOST = 256
_WORDS: Mapping[ReduceOp, str] = {"sum": "sum", "product": "product", "max": "maximum", "min": "minimum"}
_COLLECTS: Mapping[str, ReduceOp] = {"add": "sum", "sub": "sum", "max": "max", "min": "min"}


@frozen
class MadeOf:
    """The parts of a value by name, and the complete collections from which it was computed.

    op: what collects the parts; None if nothing does yet. symbols: all that the value depends on. scaled: whether it is
    a product, a quotient or a negative. pads: its numbers where conditions fail. lost: why its sets are unknown, or "".
    unpaired: names of which one factor of a product carries the first alone, the other the second, without a relation.
    """

    names: Mapping[str, Parts] = field(factory=dict[str, Parts])
    closed: tuple[Closed, ...] = ()
    op: ReduceOp | None = None
    symbols: frozenset[Symbol] = frozenset()
    scaled: bool = False
    pads: Pads = field(factory=dict[Cond, float])
    lost: str = ""
    unpaired: frozenset[tuple[str, str]] = frozenset()

    @property
    def collected(self) -> frozenset[str]:
        """The names of which it has, or was computed from, a collection."""
        own = (name for name, parts in self.names.items() if any(part.collected for part in parts))
        return frozenset((*own, *(each.name for each in self.closed)))

    def each(self, change: Callable[[Parts], Parts], closed: Callable[[Parts], Parts] | None = None) -> MadeOf:
        """The value with all its parts changed, and those of its complete collections, if asked."""
        names = {name: change(parts) for name, parts in self.names.items()}
        done = self.closed if closed is None else tuple(evolve(c, parts=closed(c.parts)) for c in self.closed)
        return evolve(self, names=names, closed=done)

    def under(self, conds: Sequence[Cond]) -> MadeOf:
        """The value where conditions hold; what was complete is so there too."""
        return self.each(lambda parts: tuple(part.under(conds) for part in parts)) if conds else self

    def case(self, test: Cond) -> MadeOf:
        """The value as one case of another, which depends on it where a test holds."""
        return evolve(self.under([test]), closed=tuple(each.where(test) for each in self.closed))


class Reading:
    """One reading of expressions.

    agree: asked of elements that are multiplied.
    ties: the names that relations decide.
    """

    def __init__(self, tags: Tags, agree: Agree, ties: Sequence[Tie] = ()) -> None:
        self._tags = tags
        self._agree = agree
        self._ties = ties
        self._done: dict[Expr, MadeOf] = {}

    def of(self, root: Expr) -> MadeOf:
        """What the value of an expression is made of."""
        if root not in self._done:
            self._done[root] = self._read(_in_its_range(root))
        return self._done[root]

    def _read(self, root: Expr) -> MadeOf:
        below = [self.of(each) for each in parts_of(root)]
        lost = next((each.lost for each in below if each.lost), "")
        found = self._of(root)
        if any(len(each) > _MOST for each in (*found.names.values(), found.closed)):
            found = MadeOf(lost=f"more than {_MOST} elements or collections are added up one by one")
        unpaired = found.unpaired.union(*(each.unpaired for each in below))
        found = evolve(found, symbols=all_symbols(root), pads=self._pads(root), lost=found.lost or lost)
        return evolve(found, unpaired=unpaired)

    def _pads(self, root: Expr) -> Pads:
        match root:
            case Fn(name=name, args=args):
                scaled = unscaled(root)
                if scaled is not None and self._is_unpadded(args[scaled is args[0]]):
                    return positively_scaled(self.of(scaled).pads)
                return operated(name, [self.of(each).pads for each in args], [*map(number, args)])
            case Choose(test=test, then=then, other=other):
                if isinstance(test, Compare):
                    return operated("", [self.of(then).pads, self.of(other).pads], [None, None])
                left, right = number(then), number(other)
                if right is not None:
                    return outside(self.of(then).pads, test, right)
                if left is not None:
                    return outside(self.of(other).pads, algebra.negate(test), left)
                return either(self.of(then).pads, self.of(other).pads)
            case Reduce(op=op, variable=variable, body=body):
                pads = self.of(body).pads.items()
                return {c: each if each == NEUTRAL[op] else nan for c, each in pads if variable not in symbols(c)}
            case Number() | Infinity() | Whole() | Element():
                return {}

    def _is_unpadded(self, scale: Expr) -> bool:
        return not self.of(scale).pads

    def _of(self, root: Expr) -> MadeOf:
        match root:
            case Number() | Infinity() | Whole():
                return MadeOf()
            case Element(tensor=tensor, at=at):
                named, own = self._tags.get(tensor, ()), symbols(*at)
                if isinstance(named, str):
                    return MadeOf(lost=named)
                return MadeOf({name: (Part(substitute(e, {}, at), beside=own),) for name, e in named})
            case Fn(name=name, args=args):
                return self._operated(name, [self.of(each) for each in args])
            case Choose(test=Compare(left=left, right=right), then=then, other=other):
                tested = [_completed(self.of(each)) for each in (left, right)]
                return _together([self.of(then), self.of(other), *tested])
            case Choose(test=test, then=then, other=other):
                assert not isinstance(test, Compare)
                cases, op = _alike([self.of(then).case(test), self.of(other).case(algebra.negate(test))])
                return evolve(_all_parts(cases), op=op)
            case Reduce():
                return _reduced(root, self.of(root.body))

    def _operated(self, name: str, args: Sequence[MadeOf]) -> MadeOf:
        if name in _COLLECTS:
            op = _COLLECTS[name]
            args = [args[0], evolve(args[1], scaled=True)] if name == "sub" else args
            found = _all_parts([_collecting(each, op) for each in _apart(args)])
            return evolve(found, op=op if found.names else None, scaled=False)
        if name == "mul":
            return self._multiplied(*args)
        if name == "div":
            return self._multiplied(args[0], evolve(_completed(args[1]), symbols=args[1].symbols))
        if name == "neg":
            return evolve(args[0], scaled=True)
        symbols_of_all = frozenset[Symbol]().union(*(each.symbols for each in args))
        return _completed(evolve(_together([_completed(each) for each in args]), symbols=symbols_of_all))

    def _multiplied(self, one: MadeOf, two: MadeOf) -> MadeOf:
        """A product: a name that both factors carry counts once where they agree in it.

        It has an element where both have one, as padding of a factor leaves no product of elements. A collection that
        meets another over the same name is complete.
        """
        meet = bool(one.collected & two.collected)
        one, two = (
            evolve(_completed(each) if meet else _collecting(each, "sum"), symbols=each.symbols) for each in (one, two)
        )
        one, two = one.under(common_guards(two)), two.under(common_guards(one))
        mine = _beside(one, two)
        theirs = _beside(two, one)
        names, others = self._tied(mine.names, theirs.names), self._tied(theirs.names, mine.names)
        unpaired = frozenset(product(_alone(names, others), _alone(others, names)))
        for name, parts in others.items():
            names[name] = self._paired(names[name], parts) if name in names else parts
        closed = distinct((*one.closed, *two.closed))
        both = one.symbols | two.symbols
        return MadeOf(names, closed, one.op or two.op, both, scaled=True, unpaired=unpaired)

    def _tied(self, names: Mapping[str, Parts], others: Mapping[str, Parts]) -> dict[str, Parts]:
        """The parts of a factor, with what relations ask of the names that it alone carries."""
        among = _all_parts([MadeOf(names), MadeOf(others)]).names
        return {
            name: parts if name in others else tied(parts, name, among, self._ties) for name, parts in names.items()
        }

    def _paired(self, ones: Parts, twos: Parts) -> Parts:
        """The parts of two factors under one name: one where they agree, both where they do not."""
        found: list[Part] = []
        met: set[Part] = set()
        for one in ones:
            alone = True
            for two in twos:
                if _exclude(one, two):
                    met.add(two)
                elif one.value is two.value or self._agree(one, two):
                    binders = (*one.binders, *(b for b in two.binders if b not in one.binders))
                    found.append(evolve(one.under(two.guards), binders=binders, tie=joined(one, two)))
                    met.add(two)
                    alone = False
            found += [one] if alone and not all(_exclude(one, two) for two in twos) else []
        return (*found, *(two for two in twos if two not in met))


def _in_its_range(root: Expr) -> Expr:
    """A reduction with its range as that of its variable, so that digits of one number divide as that number does."""
    if not isinstance(root, Reduce) or not isinstance(root.low, Const) or not isinstance(root.high, Const):
        return root
    own = Symbol(root.variable.name, "fresh", root.low.value, root.high.value - 1)
    if own in all_symbols(root) or root.high.value <= root.low.value:
        return root
    names = {root.variable: algebra.sym(own)}
    return reduce_(root.op, own, root.low, root.high, replaced(root.body, names), substitute(root.where, names))


def _alone(names: Mapping[str, Parts], others: Mapping[str, Parts]) -> list[str]:
    """The names that one factor alone carries, without those that relations tie to others."""
    return [name for name, parts in names.items() if name not in others and any(each.tie is None for each in parts)]


def _exclude(one: Part, two: Part) -> bool:
    """Whether their guards are never met at once."""
    return any(algebra.negate(cond) in two.guards for cond in one.guards)


def _apart(args: Sequence[MadeOf]) -> list[MadeOf]:
    """Terms, where a multiple of a sum is no part of a sum over more elements of the same name: it is complete."""
    return [
        _completed(each)
        if each.scaled and any(each.collected & other.names.keys() for other in args if other is not each)
        else each
        for each in args
    ]


def _beside(one: MadeOf, other: MadeOf) -> MadeOf:
    """The parts of a factor, knowing what they are multiplied by."""
    return one.each(lambda parts: tuple(evolve(part, beside=part.beside | other.symbols) for part in parts))


def _collecting(of: MadeOf, op: ReduceOp) -> MadeOf:
    """The same as a term of a sum or an extremum: collections of another kind are complete."""
    return of if of.op in (None, op) else _completed(of)


def _completed(of: MadeOf) -> MadeOf:
    """The value with its collections complete; what is left depends on all of it."""
    closed = list(of.closed)
    names: dict[str, Parts] = {}
    for name, parts in of.names.items():
        if any(each.collected for each in parts):
            closed.append(Closed(name, of.op or "sum", tuple(each for each in parts if each.collected)))
        rest = [evolve(each, beside=each.beside | of.symbols) for each in parts if not each.collected]
        if rest:
            names[name] = tuple(dict.fromkeys(rest))
    return MadeOf(names, distinct(closed), None, of.symbols)


def _all_parts(args: Sequence[MadeOf]) -> MadeOf:
    """All parts of all values, each as often as it occurs."""
    names: dict[str, Parts] = {}
    for each in args:
        for name, parts in each.names.items():
            names[name] = (*names.get(name, ()), *parts)
    return MadeOf(names, distinct(part for each in args for part in each.closed))


def _together(args: Sequence[MadeOf]) -> MadeOf:
    """The parts of values of which one or all are used: each as often as in the one that has it most often."""
    args, op = _alike(args)
    found: dict[str, Parts] = {}
    for each in args:
        for name, parts in each.names.items():
            found[name] = tuple((Counter(found.get(name, ())) | Counter(parts)).elements())
    return MadeOf(found, distinct(part for each in args for part in each.closed), op)


def _alike(args: Sequence[MadeOf]) -> tuple[Sequence[MadeOf], ReduceOp | None]:
    """Values that are collected alike, and how; collections of several kinds are complete."""
    ops: set[ReduceOp] = {each.op for each in args if each.op is not None}
    if len(ops) > 1:
        return [_completed(each) for each in args], None
    return args, next(iter(ops)) if ops else None


def _reduced(of: Reduce, body: MadeOf) -> MadeOf:
    op: ReduceOp = "sum" if of.op == "product" else of.op
    padded = (each for cond, each in body.pads.items() if of.variable in symbols(cond))
    if body.collected | body.names.keys() and any(each != NEUTRAL[of.op] for each in padded):
        return evolve(body, lost=f"padding that is not neutral goes into a {_WORDS[of.op]}")
    binder = Binder(of.variable, of.low, of.high, of.where)
    vary = {name for name, parts in body.names.items() if any(varies(each, binder) for each in parts)}
    for one, two in sorted(body.unpaired):
        if {one, two} <= vary:
            return evolve(body, lost=f"no tag says which `{one}` is multiplied by which `{two}`")
    found = _collecting(body, op).each(
        lambda parts: tuple(bound(each, binder, of.op) for each in for_each(parts, binder)),
        lambda parts: complete_for_each(for_each(parts, binder), binder),
    )
    return evolve(found, closed=distinct(each.without(of.variable) for each in found.closed), op=op, scaled=False)


def common_guards(of: MadeOf) -> tuple[Cond, ...]:
    """The conditions outside of which the value has no element at all: those of all its parts."""
    parts = [part for parts in of.names.values() for part in parts] + [p for c in of.closed for p in c.parts]
    first = [cond for cond in parts[0].guards if not symbols(cond) & parts[0].bound] if parts else []
    return tuple(cond for cond in first if all(cond in part.guards for part in parts))


def without_guards(of: MadeOf, conds: Sequence[Cond]) -> MadeOf:
    """The value where these conditions hold."""

    def there(parts: Parts) -> Parts:
        return tuple(evolve(p, guards=tuple(cond for cond in p.guards if cond not in conds)) for p in parts)

    rest = (evolve(c, given=tuple(cond for cond in c.given if cond not in conds)) for c in of.closed)
    return evolve(of, closed=distinct(rest)).each(there, there)


def single(parts: Parts) -> tuple[Index, tuple[Cond, ...]] | None:
    """The tag, and conditions under which it is there, if all parts are single elements with one tag; else None."""
    if any(part.collected for part in parts) or len({part.value for part in parts}) != 1:
        return None
    common = tuple(cond for cond in parts[0].guards if all(cond in part.guards for part in parts))
    rest = [algebra.all_of(cond for cond in part.guards if cond not in common) for part in parts]
    if algebra.any_of(rest) is algebra.TRUE:
        return parts[0].value, common
    return parts[0].value, min((part.guards for part in parts), key=len)
