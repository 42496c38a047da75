"""Operations on values in normal form that may be infinite."""

from __future__ import annotations

from fractions import Fraction

from argus.core.values import binding
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Greatest,
    NoNormalFormError,
    Poly,
    of_atom,
)
from argus.core.values.cases import (
    Infinite,
    Leaf,
    Open,
    Undefined,
    Value,
    on_leaves,
    on_pairs,
    opened,
)
from argus.core.values.conditions import positive
from argus.core.values.ends import at_most
from argus.core.values.meeting import joined, neighbours
from argus.core.values.opaque import opaque
from argus.core.values.truth import above


def sum_of(a: Value, b: Value) -> Value:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Open) and isinstance(other, Poly):
            return Open(polys.add(one.of, other), one.test)
    return on_pairs(a, b, _added)


def _added(a: Leaf, b: Leaf) -> Value:
    if isinstance(a, Poly) and isinstance(b, Poly):
        return polys.add(a, b)
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return Undefined()
    signs = {each.sign for each in (a, b) if isinstance(each, Infinite)}
    return Infinite(signs.pop()) if len(signs) == 1 else Undefined()


def is_scaled(args: list[Value]) -> bool:
    return any(isinstance(x, Open) and isinstance(y, Poly) and _sign(y) > 0 for x, y in (args, args[::-1]))


def scaled_open(args: list[Value]) -> Value:
    one, other = args if isinstance(args[0], Open) else args[::-1]
    assert isinstance(one, Open)
    assert isinstance(other, Poly)
    return Open(polys.mul(one.of, other), one.test)


def product_of(a: Leaf, b: Leaf) -> Value:
    if isinstance(a, Poly) and isinstance(b, Poly):
        return polys.mul(a, b)
    if isinstance(a, Infinite) and isinstance(b, Infinite):
        return Infinite(a.sign * b.sign)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Infinite) and isinstance(other, Poly) and (sign := _sign(other)):
            return Infinite(one.sign * sign)
    return Undefined()


def _sign(of: Poly) -> int:
    """1 or -1 where the signs of the parts tell it, else 0."""
    return 1 if positive(of) == () else -1 if positive(polys.scale(of, -1)) == () else 0


def exp_of(a: Leaf) -> Value:
    if isinstance(a, Infinite):
        return ZERO if a.sign < 0 else a
    return polys.exp(a) if isinstance(a, Poly) else a


def opaque_of(name: str, args: list[Value]) -> Value:
    if all(isinstance(each, Poly) for each in args):
        return opaque(name, tuple(each for each in args if isinstance(each, Poly)))
    if len(args) == 1:
        return on_leaves(args[0], lambda leaf: _opaque_leaf(name, leaf))
    raise NoNormalFormError(f"an argument of `{name}` may be infinite")


def _opaque_leaf(name: str, leaf: Leaf) -> Value:
    if isinstance(leaf, Infinite):
        raise NoNormalFormError(f"an argument of `{name}` may be infinite")
    return opaque_of(name, [leaf]) if isinstance(leaf, Poly) else leaf


def compared(op: str, a: Leaf, b: Leaf) -> Value:
    if isinstance(a, Poly) and isinstance(b, Poly):
        difference = polys.sub(b, a)
        over, under = above(difference), above(polys.scale(difference, -1))
        if op == "<":
            return over
        return polys.sub(ONE, under) if op == "<=" else polys.sub(polys.sub(ONE, under), over)
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return Undefined()
    left, right = (each.sign if isinstance(each, Infinite) else 0 for each in (a, b))
    truth = {"<": left < right, "<=": left <= right, "==": left == right}[op]
    return ONE if truth else ZERO


def maximum_of(a: Value, b: Value) -> Value:
    """The larger value. Maxima over ranges that meet become one before emptiness is looked at."""
    a, b = opened(a), opened(b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Infinite) and one.sign < 0:
            return other
    if isinstance(a, Open | Poly) and isinstance(b, Open | Poly):
        merged = _joined(a, b)
        if merged is not None:
            return merged
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Poly) and isinstance(other, Open) and (rest := _extended(other, one)) is not None:
                return maximum_of(*rest)
    return on_pairs(a, b, _larger)


def _extended(of: Open, by: Poly) -> tuple[Value, Poly] | None:
    """The maximum with one of several pieces in its range, and the largest of the other pieces."""
    pieces = polys.pieces_of(by)
    for i, piece in enumerate(pieces):
        whole = _joined(of, piece) if len(pieces) > 1 else None
        if whole is not None:
            return whole, polys.largest([*pieces[:i], *pieces[i + 1 :]])
    return None


def _joined(a: Open | Poly, b: Open | Poly) -> Value | None:
    """c + k G1 and c + k G2 with k > 0, where G1 and G2 are over ranges that meet."""
    left, right = (each.of if isinstance(each, Open) else each for each in (a, b))
    for one, factor in polys.greatest_in(left):
        for two, other in polys.greatest_in(right):
            if factor != other or factor <= 0 or not (_own_test(a, one) and _own_test(b, two)):
                continue
            rests = (
                polys.sub(left, polys.scale(of_atom(one), factor)),
                polys.sub(right, polys.scale(of_atom(two), factor)),
            )
            union = joined(one, two) if rests[0] is rests[1] else [one, two]
            if len(union) == 1 and not polys.greatest_in(rests[0]):
                return _restated(union[0], factor, rests[0])
    for value, other in ((a, b), (b, a)):
        if isinstance(other, Poly) and (found := _with_neighbour(value, other)) is not None:
            return found
    return None


def _with_neighbour(value: Open | Poly, element: Poly) -> Poly | None:
    """The larger of c + k G and c + k g with k > 0, where g is what G's body is beside G's range.

    The set has this element, so it is not empty, whether the range is or not.
    """
    whole = value.of if isinstance(value, Open) else value
    for atom, factor in polys.greatest_in(whole):
        if factor <= 0 or not _own_test(value, atom) or not at_most(atom.low, atom.high):
            continue
        rest = polys.sub(whole, polys.scale(of_atom(atom), factor))
        wanted = polys.scale(polys.sub(element, rest), 1 / factor)
        for at, low, high in neighbours(atom):
            body, where = (binding.replace(part, {atom.variable: at}) for part in (atom.body, atom.where))
            if body is wanted and where is ONE:
                longer = binding.greatest(atom.variable, low, high, atom.where, atom.body)[0]
                return polys.add(rest, polys.scale(longer, factor))
    return None


def _own_test(value: Open | Poly, atom: Greatest) -> bool:
    """Whether the value is finite exactly where this maximum is."""
    return isinstance(value, Poly) or value.test is binding.inhabited(atom.variable, atom.low, atom.high, atom.where)


def _restated(atom: Greatest, factor: Fraction, rest: Poly) -> Value:
    found, test = binding.greatest(atom.variable, atom.low, atom.high, atom.where, atom.body)
    whole = polys.add(rest, polys.scale(found, factor))
    return whole if test is ONE else Open(whole, test)


def _larger(a: Leaf, b: Leaf) -> Value:
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return Undefined()
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Infinite):
            return one if one.sign > 0 else other
    assert isinstance(a, Poly)
    assert isinstance(b, Poly)
    return polys.largest(_merged([*polys.pieces_of(a), *polys.pieces_of(b)]))


def _merged(pieces: list[Poly]) -> list[Poly]:
    """The pieces, with maxima over ranges that meet joined; all of them are finite here."""
    for i, first in enumerate(pieces):
        for j in range(i):
            whole = _joined(first, pieces[j])
            if isinstance(whole, Open | Poly):
                rest = [piece for k, piece in enumerate(pieces) if k not in (i, j)]
                return _merged([*rest, whole.of if isinstance(whole, Open) else whole])
    return pieces
