"""Sums that are rescaled whenever the reference of their terms changes: all terms with the reference of now.

A tile T becomes F(r, r') T + R(r, r'), where r is what another tile, the reference, holds at the head of an iteration
and r' what it holds after it. Over the iterations so far it is the sum of R(r, r), each with the reference r of now, if
F takes terms from one reference to another: F(s, r) F(r, r') = F(s, r') and R(r, r') = R(s, s) F(s, r') for all numbers
r, r', s. That is a statement about one iteration, whatever the reference is. Where it is -inf, nothing has been added.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.proof.values.held.emptiness import Nothing, has_element, leaves
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.iterations import Recurrence
from argus.core.proof.values.held.parts import Parts
from argus.core.proof.values.held.recurrences import times
from argus.core.proof.values.held.terms import exchanged
from argus.core.proof.values.held.unnamed import becomes_number
from argus.core.values.expr import Element, Expr, Fn, Number, Reduce, element, expr, fn, infinity
from argus.core.values.numbers import is_number, number_where
from argus.core.values.rewriting import free_symbols, nodes

ZERO = expr(0)
NOTHING = infinity(-1)
_ANY = element("~another reference")


@frozen(eq=False)
class Reference:
    """A tile at the head of an iteration and of the next one, as opaque elements.

    step: what an iteration makes of it, in terms of opaque tiles. entry: what it holds before the loop.
    """

    now: Element
    following: Element
    step: Expr
    entry: Expr


@frozen(eq=False)
class Rescaled:
    """A rescaled sum, by the reference: what was there before the loop, and the term of an iteration."""

    entry: Callable[[Expr], Expr]
    term: Callable[[Expr], Expr]


@define(eq=False)
class Rescaling:
    """One tile F T + R, and its reference.

    after: the reference after an iteration, in closed form. begins: whether the tile is known to be 0 before the loop,
    whatever the reference of its terms, where its reference is -inf.
    """

    of: Recurrence
    factor: Expr
    rest: Expr
    reference: Reference
    after: Expr
    begins: bool
    known: Known = field(init=False)
    """Within the loop."""

    def __attrs_post_init__(self) -> None:
        self.known = self.of.known()

    def sum(self, entry: Expr) -> Rescaled | None:
        """The sum, of a tile that is `entry` before the loop; None if it is not shown to be one."""
        if not self._takes_terms_along() or not self._is_defined():
            return None
        begun = self._begun(entry)
        return None if begun is None else Rescaled(begun, self._term)

    def _of(self, root: Expr, now: Expr, following: Expr) -> Expr:
        return exchanged(root, {self.reference.now: now, self.reference.following: following})

    def _factor(self, now: Expr, following: Expr) -> Expr:
        return self._of(self.factor, now, following)

    def _term(self, at: Expr) -> Expr:
        """The term of an iteration with this reference."""
        rest = self.rest
        if isinstance(rest, Fn) and rest.name == "mul" and self.factor in rest.args:
            rest = rest.args[0] if rest.args[1] is self.factor else rest.args[1]  # F(r, r) is 1
        return self._of(rest, at, at)

    def _takes_terms_along(self) -> bool:
        """The two laws, for references that are numbers."""
        now, following = self.reference.now, self.reference.following
        moved = times(self._term(_ANY), self._factor(_ANY, following))
        return (
            self._same(times(self._factor(_ANY, now), self.factor), self._factor(_ANY, following))
            and self._same(self.rest, moved)
            and self._same(self._term(following), moved)
        )

    def _same(self, one: Expr, two: Expr) -> bool:
        """Whether both are equal, whatever the tests and the numbers of reductions are that depend on no reference.

        A factor of all terms stays as it is: its sign decides what becomes of -inf.
        """
        references = {self.reference.now, self.reference.following, _ANY}

        def is_part(of: Expr) -> bool:
            if isinstance(of, Number) or not is_number(of) or not references.isdisjoint(nodes(of)):
                return False
            varies = any(each.kind == "fresh" for each in free_symbols(of))
            return varies or any(isinstance(each, Reduce) for each in nodes(of))

        parts = Parts("part", is_part, tests=True)
        return self.known.alike(parts.of(one), parts.of(two)) or self.known.same(one, two)

    def _is_defined(self) -> bool:
        """Whether the tile is 0, and so are all terms, as long as the reference is -inf."""
        ref, number = self.reference, self.reference.following
        if not has_element(self.known, ref.step):
            return False  # a reference that was a number may not become -inf
        if has_element(self.of.first, ref.entry):
            return True
        kept = self._of(self.factor, NOTHING, number)
        if not self.known.same(fn("mul", 0, kept), ZERO):
            return False
        if number_where(ref.entry) is None:
            return False
        # After one iteration, the reference is a number.
        later = has_element(self.known, self.after) or becomes_number(
            self.known, exchanged(ref.step, {ref.now: NOTHING})
        )
        if ref.now in set(nodes(self.rest)):  # terms that an earlier iteration has made
            terms = self._of(self.rest, NOTHING, number), self._term(ZERO)
            if not all(self._vanishes_at_head(each, at_first=later) for each in terms):
                return False
        if later:
            return True
        nothing = Nothing(self.known, tuple(leaves(exchanged(ref.step, {ref.now: NOTHING}))))
        kept = self._of(self.factor, NOTHING, NOTHING)
        if not self.known.same(fn("mul", 0, kept), ZERO):
            return False
        terms = self._of(self.rest, NOTHING, NOTHING), self._term(ZERO), self._term(NOTHING)
        return all(nothing.vanishes(each) or self._vanishes_at_head(each, at_first=False) for each in terms)

    def _vanishes_at_head(self, term: Expr, *, at_first: bool) -> bool:
        """Whether the term is 0 where the reference at the head of the iteration is -inf. at_first: of the first."""
        of, start, stride = self.of, self.of.loop.stmt.start, self.of.loop.stmt.step
        entered = _nothing(of.first, self.reference.entry)
        if not entered.vanishes(of.at(term, start)):
            return False
        earlier = of.at(self.reference.step, algebra.sub(of.k, stride))
        return at_first or _nothing(of.known(of.loop.has_earlier(1)), earlier).vanishes(term)

    def _begun(self, entry: Expr) -> Callable[[Expr], Expr] | None:
        """The tile before the loop, by the reference."""
        if entry is ZERO:
            return lambda _: ZERO
        ref, number = self.reference.entry, self.reference.following
        if ref in set(nodes(entry)):
            taken = times(exchanged(entry, {ref: _ANY}), self._factor(_ANY, number))
            nothing = _nothing(self.of.first, ref)
            empty = (exchanged(entry, {ref: each}) for each in (ZERO, NOTHING))
            begins = self.begins or has_element(self.of.first, ref) or all(map(nothing.vanishes, empty))
            if begins and self._same(exchanged(entry, {ref: number}), taken):
                return lambda at: exchanged(entry, {ref: at})
        if has_element(self.of.first, ref):
            return lambda at: times(entry, self._factor(ref, at))
        return None


def _nothing(known: Known, reference: Expr) -> Nothing:
    """What is 0 where a reference is -inf, of which the terms are written as they are or simplified."""
    forms = dict.fromkeys((reference, known.simplified(reference)))
    return Nothing(known, tuple(leaf for form in forms for leaf in leaves(form)))
