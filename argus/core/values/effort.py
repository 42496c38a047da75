"""How much of polynomials normal forms may still go through: a count, so that no clock decides what is proved.

What is counted are the terms of polynomials, each with its factors, as those are what an operation takes its time for.
It is read off what an operation is applied to, before it is known whether that has been computed before: the same
comparison counts alike in every process.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import define

from argus.core.values.atoms import Exp, Monomial, NoNormalFormError, Poly, inner

TOO_LONG = "normal forms of it have more terms than the budget allows"


@define(eq=False)
class Effort:
    """What is left of a budget of terms. Terms count each time that they are gone through."""

    left: int

    def spend(self, terms: int) -> None:
        """Count so many terms. Raises NoNormalFormError where they are more than are left."""
        self.left -= terms
        if self.left < 0:
            raise NoNormalFormError(TOO_LONG)

    @property
    def is_spent(self) -> bool:
        """Whether a comparison was given up."""
        return self.left < 0


def unlimited() -> Effort:
    """An effort that no comparison spends."""
    return Effort(1 << 62)


def size(value: Poly) -> int:
    """The terms of a polynomial and their factors, where an exponential counts as the term that it is of."""
    return 1 + sum(map(_size_of_term, value.terms))


def _size_of_term(term: tuple[Monomial, Fraction]) -> int:
    monomial = term[0]
    return 1 + len(monomial) + sum(len(atom.of.terms[0][0]) for atom, _ in monomial if isinstance(atom, Exp))


def size_of_product(one: Poly, two: Poly) -> int:
    """The terms of a product, and their factors, before terms are joined."""
    return size(one) * (1 + len(two.terms)) + size(two) * (1 + len(one.terms))


def size_within(value: Poly) -> int:
    """The sizes of a polynomial and of all those within its atoms, at any depth, each once."""
    seen, left = {value}, [value]
    while left:
        for monomial, _ in left.pop().terms:
            for atom, _ in monomial:
                new = [each for each in inner(atom) if each not in seen]
                seen.update(new)
                left += new
    return sum(map(size, seen))
