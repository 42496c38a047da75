"""Values in normal form: finite, infinite, or by cases.

    Value = Poly | Open(poly) | Infinite(sign) | Undefined | Cases(test, then, other)

`Open` is a finite value plus maxima whose sets may be empty: -inf if one is. It stays whole as long as only shifts and
further maxima meet it, and is split into cases where another operation takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Above,
    Poly,
    constant,
    number_of,
    single,
)


@frozen
class Open:
    """A finite value plus maxima, with the test that all their sets have elements; -inf where it is 0."""

    of: Poly
    test: Poly


@frozen
class Infinite:
    """-inf or +inf."""

    sign: int


@frozen
class Undefined:
    """No value: inf - inf, a division by 0."""


@frozen
class Cases:
    """`then` where the test is 1, else `other`; at least one is not finite."""

    test: Poly
    then: Value
    other: Value


Value = Poly | Open | Infinite | Undefined | Cases
Leaf = Poly | Infinite | Undefined
NOTHING = Infinite(-1)


def cases(test: Poly, then: Value, other: Value) -> Value:
    """A choice; one polynomial if both branches are finite."""
    if test is ONE or then == other:
        return then
    if test is ZERO:
        return other
    if isinstance(then, Poly) and isinstance(other, Poly):
        return _chosen(test, then, other)
    test, turned = oriented(test)
    return Cases(test, other, then) if turned else Cases(test, then, other)


def oriented(test: Poly) -> tuple[Poly, bool]:
    """The test or its negation, whichever is first in the canonical order, and whether it is the negation."""
    negation = polys.sub(ONE, test)
    return (negation, True) if negation.digest < test.digest else (test, False)


def _chosen(test: Poly, then: Poly, other: Poly) -> Poly:
    """A choice between finite values. max(0, d) where the test is d > 0 and the branches differ by a multiple of d."""
    if number_of(polys.sub(ONE, test)) is None and len(test.terms) > 1 and single(polys.sub(ONE, test)) is not None:
        test, then, other = polys.sub(ONE, test), other, then
    difference = polys.sub(then, other)
    alone = single(test)
    if alone is not None and alone[1] == 1 and len(alone[0]) == 1 and isinstance(sign := alone[0][0][0], Above):
        ratio = (
            polys.mul(difference, polys.power(sign.of, -1)) if len(sign.of.terms) == 1 else _ratio(difference, sign.of)
        )
        if ratio is not None and number_of(ratio) is not None:
            return polys.add(other, polys.mul(ratio, polys.largest((ZERO, sign.of))))
    return polys.add(other, polys.mul(test, difference))


def _ratio(a: Poly, b: Poly) -> Poly | None:
    """a / b where that is a number."""
    if not a.terms:
        return ZERO
    factor = a.terms[0][1] / b.terms[0][1]
    return constant(factor) if polys.scale(b, factor) is a else None


def settle(value: Value) -> Value:
    """The value with `Open` split into cases."""
    return cases(value.test, value.of, NOTHING) if isinstance(value, Open) else value


def opened(value: Value) -> Value:
    """The value; a choice between a finite one and -inf as `Open`."""
    match value:
        case Cases(test=test, then=Poly() as of, other=Infinite(sign=-1)):
            return Open(of, test)
        case Cases(test=test, then=Infinite(sign=-1), other=Poly() as of):
            return Open(of, polys.sub(ONE, test))
        case _:
            return value


def on_leaves(value: Value, visit: Callable[[Leaf], Value]) -> Value:
    """The value with its leaves mapped."""
    value = settle(value)
    if isinstance(value, Cases):
        return cases(value.test, on_leaves(value.then, visit), on_leaves(value.other, visit))
    assert not isinstance(value, Open)
    return visit(value)


def within(value: Value, test: Poly, *, holds: bool) -> Value:
    """The value where the test is 1, or 0, as far as its cases are concerned."""
    test, turned = oriented(test)
    return _within(settle(value), test, holds=holds is not turned)


def _within(value: Value, test: Poly, *, holds: bool) -> Value:
    if not isinstance(value, Cases):
        return value
    if value.test is test:
        return _within(value.then if holds else value.other, test, holds=holds)
    return cases(value.test, _within(value.then, test, holds=holds), _within(value.other, test, holds=holds))


def on_pairs(a: Value, b: Value, visit: Callable[[Leaf, Leaf], Value]) -> Value:
    """Both values' leaves combined, under consistent tests."""
    a, b = settle(a), settle(b)
    if isinstance(a, Cases):
        return cases(
            a.test,
            on_pairs(a.then, within(b, a.test, holds=True), visit),
            on_pairs(a.other, within(b, a.test, holds=False), visit),
        )
    assert not isinstance(a, Open)
    left = a
    return on_leaves(b, lambda leaf: visit(left, leaf))
