"""Sums over ranges, compared term by term: equal where their terms are, and where those of one range alone are 0.

The normal form of a sum spells out the numbers in the ends of its range, and divides its body by tests on the
variable. Of a sum over the taps of a filter along three axes, padded along each, that makes hundreds of sums. A term
has no ends.

What is computed of a sum is compared operand by operand, down to the sums. Their normal forms are compared alone where
terms do not show it: the normal form of a function of a sum of many terms, such as an exponential, may be far larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.residues import equal_by_residues, equal_by_terms
from argus.core.proof.values.held.terms import chosen, plus, replaced
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Number, Reduce, Test, Whole, expr, fn
from argus.core.values.rewriting import elements, nodes
from argus.core.walk import symbols

_ZERO = expr(0)
_OF_CONTRACTIONS = frozenset(("add", "sub", "mul", "neg"))


def equal_over_ranges(known: Known, held: Expr, formula: Expr, at: Sequence[Symbol] = ()) -> bool:
    """Whether what is held equals the formula because their sums have equal terms.

    at: the coordinates of an element, by whose remainders sums within functions are compared. False where neither has
    sums, or that does not show: no other cases are tried.
    """
    if not any(isinstance(each, Reduce) for root in (held, formula) for each in nodes(root)):
        return False
    return _Operands(known, at).are_equal(*(known.simplified(known.in_digits(each)) for each in (held, formula)))


@define(eq=False)
class _Operands:
    """Compares values operand by operand. found: of pairs that were compared; a sum may be used several times."""

    known: Known
    at: Sequence[Symbol] = ()
    found: dict[tuple[Expr, Expr], bool] = field(factory=dict[tuple[Expr, Expr], bool])

    def are_equal(self, held: Expr, formula: Expr, *, within: bool = False) -> bool:
        """The same of parts: sums of sums term by term, other functions operand by operand. within: of a function."""
        key = held, formula
        if key not in self.found:
            self.found[key] = held is formula or self._are_equal(held, formula, within=within)
        return self.found[key]

    def _are_equal(self, held: Expr, formula: Expr, *, within: bool) -> bool:
        one, two = _summed(held), _summed(formula)
        if one.sums or two.sums:
            by_terms = bool(one.sums and two.sums) and _are_equal(self.known, one.sums, two.sums)
            if by_terms and _is_same(self.known, one.rest, two.rest):
                return True
            return within and all(map(_is_contraction, (held, formula))) and self._are_equal_sums(held, formula)
        match held, formula:
            case Fn(name=name, args=args), Fn(name=other, args=others):
                return name == other and self._all_equal(args, others)
            case Choose(test=test, then=then, other=left), Choose(test=meant, then=wanted, other=rest):
                return self._are_same_tests(test, meant) and self._all_equal((then, left), (wanted, rest))
            case _:
                return False

    def _are_equal_sums(self, held: Expr, formula: Expr) -> bool:
        ways = (_is_same, partial(equal_by_terms, cases=False), partial(equal_by_residues, at=self.at, cases=False))
        return any(way(self.known, held, formula) for way in ways)

    def _all_equal(self, one: Sequence[Expr], two: Sequence[Expr]) -> bool:
        return len(one) == len(two) and all(self.are_equal(*each, within=True) for each in zip(one, two, strict=True))

    def _are_same_tests(self, one: Test, two: Test) -> bool:
        if not isinstance(one, Compare) or not isinstance(two, Compare):
            return one is two
        return one.op == two.op and self._all_equal((one.left, one.right), (two.left, two.right))


def _is_contraction(of: Expr) -> bool:
    """Whether it is made of sums, products and choices by places alone: the normal form of which is no larger."""
    return all(
        (isinstance(each, Fn) and each.name in _OF_CONTRACTIONS)
        or (isinstance(each, Reduce) and each.op == "sum")
        or (isinstance(each, Choose) and not isinstance(each.test, Compare))
        or isinstance(each, Number | Whole | Element)
        for each in nodes(of)
    )


def _is_same(known: Known, one: Expr, two: Expr) -> bool:
    return one is two or known.equal(known.simplified(one), known.simplified(two), cases=False)


@frozen
class _Range:
    """A bound variable, the ends of its range, and the axes of tensors at which it is named."""

    variable: Symbol
    low: Index
    high: Index
    places: tuple[tuple[str, int], ...]


@frozen
class _Nest:
    """A sum of sums over ranges of which none depends on another, in an order that is not theirs."""

    ranges: tuple[_Range, ...]
    body: Expr

    @property
    def ends(self) -> list[tuple[Index, Index]]:
        return [(each.low, each.high) for each in self.ranges]


@frozen
class _Summed:
    """A value as sums and what is added to them."""

    sums: tuple[_Nest, ...]
    rest: Expr


def _summed(of: Expr) -> _Summed:
    sums, rest = list[_Nest](), _ZERO
    for negative, part in _parts(of):
        if isinstance(part, Reduce) and part.op == "sum":
            nest = _nest(part)
            sums.append(evolve(nest, body=fn("neg", nest.body)) if negative else nest)
        else:
            rest = plus(rest, fn("neg", part) if negative else part)
    return _Summed(tuple(sums), rest)


def _parts(of: Expr, *, negative: bool = False) -> Iterator[tuple[bool, Expr]]:
    """What is added, and whether it is subtracted."""
    match of:
        case Fn(name="add" | "sub" as name, args=(a, b)):
            yield from _parts(a, negative=negative)
            yield from _parts(b, negative=negative != (name == "sub"))
        case Fn(name="neg", args=(a,)):
            yield from _parts(a, negative=not negative)
        case _:
            yield negative, of


def _nest(of: Reduce) -> _Nest:
    found, bound, named = list[Reduce](), set[Symbol](), set[Symbol]()
    body: Expr = of
    # A condition of a sum around may name what has the name of a variable within: it is not that variable.
    while isinstance(body, Reduce) and body.op == "sum" and body.variable not in bound | named:
        if not bound.isdisjoint(symbols(body.low, body.high)):
            break
        found.append(body)
        bound.add(body.variable)
        named |= symbols(body.where)
        body = body.body
    body = chosen(algebra.all_of(each.where for each in found), body, _ZERO)
    ranges = [_Range(each.variable, each.low, each.high, _places(body, each.variable)) for each in found]
    ranges.sort(key=lambda each: (each.places, each.low.digest, each.high.digest))
    return _Nest(tuple(ranges), body)


def _places(body: Expr, variable: Symbol) -> tuple[tuple[str, int], ...]:
    found = ((each.tensor, axis, at) for each in elements(body) for axis, at in enumerate(each.at))
    return tuple(sorted({(tensor, axis) for tensor, axis, at in found if variable in symbols(at)}))


# -- terms -------------------------------------------------------------------------------------------------


def _are_equal(known: Known, held: Sequence[_Nest], formula: Sequence[_Nest]) -> bool:
    """Whether both are equal sums: where both have a term it is equal, and where one has none the other's is 0."""
    first, second = held[0].ends, formula[0].ends
    if any(each.ends != first for each in held) or any(each.ends != second for each in formula):
        return False
    if len(first) != len(second) or any(a is not b for (a, _), (b, _) in zip(first, second, strict=True)):
        return False
    numbers = [_number(place, low) for place, (low, _) in enumerate(first)]
    one, two = (_term(each, numbers) for each in (held, formula))
    within = [[algebra.lt(at, high) for at, (_, high) in zip(numbers, ends, strict=True)] for ends in (first, second)]
    here = known.within(*(algebra.le(low, at) for at, (low, _) in zip(numbers, first, strict=True)))
    return (
        _is_same(here.within(*within[0], *within[1]), one, two)
        and _is_zero_beyond(here, one, *within)
        and _is_zero_beyond(here, two, *reversed(within))
    )


def _is_zero_beyond(here: Known, term: Expr, own: Sequence[Cond], other: Sequence[Cond]) -> bool:
    """Whether the terms in the own ranges that are not in the others are 0."""
    inside = here.within(*own)
    ways = (algebra.negate(cond) for cond in dict.fromkeys(other) if not inside.holds(cond))
    return all(_is_same(inside.within(beyond), term, _ZERO) for beyond in ways)


def _term(sums: Sequence[_Nest], numbers: Sequence[Index]) -> Expr:
    """What is summed at these numbers of the ranges, by all sums together."""
    found = _ZERO
    for each in sums:
        names = {of.variable: at for of, at in zip(each.ranges, numbers, strict=True)}
        found = plus(found, replaced(each.body, names))
    return found


def _number(place: int, low: Index) -> Index:
    """A number of a range, under a name that no expression has."""
    return algebra.sym(Symbol(f"~each{place}", "fresh", low.value if isinstance(low, Const) else None))
