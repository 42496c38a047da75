"""Whether tags say what a value is: they name coordinates, and neither tensors nor what is computed from elements.

A value is a function of elements, and of sums and extrema over all elements of some names. Tags say enough of it where
all terms of a collection are computed alike. Three things hide behind right tags, and ask for a formula:

1. Elements, or terms of one sum or extremum, that are computed otherwise than the rest: every other one is another
   tensor's, or counts twice.
2. Two sums over the elements of one name with other weights, or a function of an element that is none of them: what a
   mean is divided by is not the sum of its weights.
3. Terms that are computed from collections of their own: from one over some of the same elements, from an extremum,
   as the maximum so far or of the term's row, that does not cancel, or as quotients or products of sums, as a mean of
   means.

What is computed alike is decided by the shape of an expression, without coordinates and ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from attrs import evolve, frozen

from argus.core.index import Coord, Index
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.named_parts import Tags
from argus.core.proof.values.padding import number
from argus.core.proof.values.references_left import depends_on_reference
from argus.core.proof.values.summed_terms import MOST, Term, Terms
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Number,
    Reduce,
    ReduceOp,
    Whole,
)
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import bound_variables, elements, free_symbols, nodes
from argus.core.values.rewriting import parts as parts_of
from argus.core.walk import mentions, substitute, symbols
from argus.core.wrapping import BITS

_ARITHMETIC = frozenset({"add", "sub", "neg", "mul", "div", "max", "min"})
_ELSEWHERE = "claim a formula with `assert_equals`"


def not_said_by_tags(held: Expr, tags: Tags, known: Known | None = None) -> str:
    """Why tags do not say what a value is; empty if they do. tags: those of the tensors.

    known: what holds where the value is used. With it, references are compared in each case of sizes and blocks.
    """
    if any(isinstance(each, Whole) and not _is_of_sizes(each) for each in nodes(held)):
        return f"numbers that differ between elements: {_ELSEWHERE}"
    unknown = next((each.name for each in nodes(held) if isinstance(each, Fn) and _is_unknown_number(each)), None)
    if unknown is not None:
        return f"`{unknown}` of numbers: {_ELSEWHERE}"
    terms = _Questions(tags)
    if any(isinstance(each, Choose) and terms.is_of_unlike_cases(each) for each in nodes(held)):
        return f"elements that are computed otherwise than the rest: {_ELSEWHERE}"
    sums = list[_Collection]()
    for root in terms.roots(held):
        found = terms.collection(root)
        if found is None:
            return f"more than {MOST} terms of a sum: {_ELSEWHERE}"
        if terms.differ(found):
            return f"terms of one sum that are computed otherwise than the rest: {_ELSEWHERE}"
        if terms.of_some(found):
            return f"terms that are computed from collections of their own: {_ELSEWHERE}"
        if terms.of_sums(found):
            return f"a sum of quotients or products of sums: {_ELSEWHERE}"
        sums += [found] if found.weights else []
    for one, two in combinations(sums, 2):
        if one.over & two.over and one.weights != two.weights and not one.within(two) and not two.within(one):
            return f"sums over the same elements with other weights: {_ELSEWHERE}"
    if any(terms.is_weighed_otherwise(function, each) for function in terms.functions(held) for each in sums):
        return f"a weight that is no term of the sum of the weights: {_ELSEWHERE}"
    depends = depends_on_reference(held, known)
    return f"a value that depends on the reference of its sums: {_ELSEWHERE}" if depends else ""


def is_relative(held: Expr) -> bool:
    """Whether a value has exponentials of differences from an extremum, as a softmax has."""
    return any(
        isinstance(inner, Reduce) and inner.op in ("max", "min")
        for each in nodes(held)
        if isinstance(each, Fn) and each.name in ("exp", "exp2")
        for inner in nodes(each)
    )


@frozen(eq=False)
class _Collection:
    """A sum or an extremum, with the terms of all those of its kind in it.

    over: the names of which it collects the elements. weights: the shapes of what a sum multiplies elements by, if that
    is more than elements and numbers.
    """

    root: Expr
    terms: tuple[Term, ...]
    over: frozenset[str]
    weights: frozenset[int]

    def within(self, other: _Collection) -> bool:
        """Whether the other is computed from this one."""
        return self.root in set(nodes(other.root))


class _Questions:
    """What is asked of the collections of one value."""

    def __init__(self, tags: Tags) -> None:
        self._tags = tags
        self._terms = Terms()

    def is_of_unlike_cases(self, of: Choose) -> bool:
        """Whether the coordinates tell by which of two different ways an element is computed."""
        if isinstance(of.test, Compare) or number(of.then) is not None or number(of.other) is not None:
            return False
        return self._terms.shape(of.then) != self._terms.shape(of.other)

    def roots(self, held: Expr) -> Iterator[Expr]:
        """The collections that are no part of another of their kind."""
        seen, todo = set[Expr](), [held]
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            op = self._terms.op(here)
            if op is None:
                todo += parts_of(here)
            else:
                yield here
                todo += [part for term in self._terms.terms(here, op) or () for part in self._inner(term.of, op)]

    def _inner(self, term: Expr, op: ReduceOp) -> Sequence[Expr]:
        return (term,) if self._terms.op(term) not in (None, op) else parts_of(term)

    def collection(self, root: Expr) -> _Collection | None:
        """Its terms; None if they are too many."""
        op = self._terms.op(root)
        assert op is not None
        found = self._terms.terms(root, op)
        if found is None:
            return None
        terms = tuple(evolve(each, of=self._terms.cancelled(each.of)) for each in found)
        over = {name for term in terms for name, at in self._named(term.of) if symbols(at) & term.bound}
        weights = {each for term in terms if term.bound and op == "sum" for each in self._weights(term.of)}
        return _Collection(root, terms, frozenset(over), frozenset(weights))

    # -- the three questions -------------------------------------------------------------------------------

    def differ(self, of: _Collection) -> bool:
        """Whether terms of different shapes stand for different elements of one name."""
        known = [(self._terms.shape(term.of), self._places(term)) for term in of.terms]
        return any(
            one != two and any(here[n] is None or here[n] is not there[n] for n in here.keys() & there.keys())
            for (one, here), (two, there) in combinations(known, 2)
        )

    def _places(self, term: Term) -> dict[str, Index | None]:
        """The coordinate of its elements by name; None if they have several, or it is collected."""
        own = bound_variables(term.of)
        found: dict[str, Index | None] = {}
        for name, at in self._named(term.of):
            if not symbols(at) & own:
                found[name] = None if symbols(at) & term.bound or found.get(name, at) is not at else at
        return found

    def of_some(self, of: _Collection) -> bool:
        """Whether a term is computed from an extremum, or a collection over its elements, that is another for each."""
        return any(
            isinstance(inner, Reduce)
            and free_symbols(inner) & term.bound
            and (inner.op in ("max", "min") or self._over(inner) & of.over)
            for term in of.terms
            for inner in nodes(term.of)
        )

    def of_sums(self, of: _Collection) -> bool:
        """Whether a term is a quotient or a product of sums that differ between the terms: a mean of means."""
        return any(
            isinstance(inner, Reduce) and free_symbols(inner) & term.bound
            for term in of.terms
            for factor in self._numerators(term.of)
            if self._terms.op(of.root) == self._terms.op(factor) == "sum"
            for inner in nodes(factor)
        )

    def functions(self, held: Expr) -> Iterator[Fn]:
        """The functions outside of all collections, but for arithmetic."""
        seen, todo = set[Expr](), [held]
        while todo:
            here = todo.pop()
            if here in seen or isinstance(here, Reduce):
                continue
            seen.add(here)
            if isinstance(here, Fn) and here.name not in _ARITHMETIC:
                yield here
            todo += parts_of(here)

    def is_weighed_otherwise(self, function: Fn, of: _Collection) -> bool:
        """Whether it is a function of an element of those that the sum collects, but none of the sum's weights."""
        within = set(nodes(function))
        if of.root in within or function in set(nodes(of.root)):
            return False
        own = bound_variables(function)
        names = {name for name, at in self._named(function) if not symbols(at) & own}
        return bool(names & of.over) and self._terms.shape(function) not in of.weights

    def _over(self, of: Reduce) -> frozenset[str]:
        return frozenset(name for name, at in self._named(of.body) if of.variable in symbols(at))

    def _named(self, of: Expr) -> Iterator[tuple[str, Index]]:
        for each in elements(of):
            tags = self._tags.get(each.tensor, ())
            if not isinstance(tags, str):
                yield from ((name, substitute(at, {}, each.at)) for name, at in tags)

    def _weights(self, of: Expr) -> Iterator[int]:
        for factor, _ in self._terms.product(of).factors:
            if not isinstance(factor, Element | Number | Whole):
                yield self._terms.shape(factor)

    def _numerators(self, of: Expr) -> Iterator[Expr]:
        """What a value multiplies, and the numerators of its quotients."""
        for factor, _ in self._terms.product(of).factors:
            match factor:
                case Fn(name="div", args=(over, _)):
                    yield from self._numerators(over)
                case _:
                    yield factor


def _is_unknown_number(of: Fn) -> bool:
    """Whether it is computed from numbers alone, by what is no operation over the reals: an integer that may wrap."""
    return (of.name not in OPERATIONS or of.name in BITS) and not elements(of)


def _is_of_sizes(of: Whole) -> bool:
    return not mentions(of.index, (Coord,)) and all(each.kind == "size" for each in symbols(of.index))
