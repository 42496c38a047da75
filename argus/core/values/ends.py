"""Ends of ranges: minima and maxima of integers, as far as the bounds of quotients decide them; ends clipped alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Literal

from argus.core import algebra
from argus.core.algebra import IndexLike
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Const, Index
from argus.core.walk import symbols

Extremum = Literal["min", "max"]
_QUOTIENTS = 3
_RESIDUES = 64


def most_of(index: Index) -> int | None:
    """An upper bound of an integer; d (x // d) is known to lie within [x - d + 1, x] for d above 0."""
    return _most(index, _QUOTIENTS)


@lru_cache(maxsize=1 << 16)
def _most(index: Index, depth: int) -> int | None:
    index = _in_first_operands(index)
    high = index.range[1]
    if depth == 0:
        return high
    for atom, factor in linear_terms(index)[0]:
        found = _divided(atom, factor)
        if found is None:
            continue
        dividend, spread, times = found
        whole = algebra.mul(algebra.sub(dividend, spread) if times < 0 else dividend, times)
        more = _most(algebra.add(index, algebra.mul(atom, -factor), whole), depth - 1)
        high = more if high is None or (more is not None and more < high) else high
    return high


def _in_first_operands(index: Index) -> Index:
    """The integer with each of its minima and maxima apart: those that differ by a shift then cancel."""
    for atom, factor in linear_terms(index)[0]:
        first, rest = apart(atom)
        if rest is not atom:
            index = algebra.add(index, algebra.mul(algebra.sub(algebra.add(first, rest), atom), factor))
    return index


def _divided(atom: Index, factor: int) -> tuple[Index, Index, int] | None:
    """(x, c, n), if factor * atom is known to lie within n [x - c, x]: c = (d - 1) s of s d (y // d), x = s y."""
    parts = factors_of(atom)
    for i, each in enumerate(parts):
        if not isinstance(each, Bin) or each.op != "//" or not _positive(divisor := each.right):
            continue
        others, times = [*parts[:i], *parts[i + 1 :]], factor
        if divisor in others:
            others.remove(divisor)
        elif isinstance(divisor, Const) and factor % divisor.value == 0:
            times = factor // divisor.value
        else:
            continue
        if all(other.range[0] is not None and other.range[0] >= 0 for other in others):
            scale = reduce(algebra.mul, others, algebra.const(1))
            return algebra.mul(each.left, scale), algebra.mul(algebra.sub(divisor, 1), scale), times
    return None


def _positive(index: Index) -> bool:
    low = index.range[0]
    return low is not None and low > 0


def at_most(a: IndexLike, b: IndexLike) -> bool:
    """Whether a <= b is known."""
    return _at_most(algebra.index(a), algebra.index(b))


@lru_cache(maxsize=1 << 13)
def _at_most(left: Index, right: Index) -> bool:
    return (
        _below(left, right)
        or all(any(_below(x, y) for x in _moved_out(left, "min")) for y in _moved_out(right, "min"))
        or all(any(_below(x, y) for y in _moved_out(right, "max")) for x in _moved_out(left, "max"))
    )


def _below(a: Index, b: Index) -> bool:
    difference = algebra.sub(a, b)
    high = most_of(difference)
    return (high is not None and high <= 0) or _below_by_quotients(difference)


def _below_by_quotients(difference: Index) -> bool:
    """Whether the difference is at most 0 by x // d - y // d, which is at most the quotient of x - y rounded up."""
    quotients = [
        (atom, factor) for atom, factor in linear_terms(difference)[0] if isinstance(atom, Bin) and atom.op == "//"
    ]
    for x, factor in quotients:
        for y, other in quotients:
            if factor > 0 and other == -factor and x.right is y.right and _positive(x.right):
                more = _most_between(x, y)
                rest = algebra.add(difference, algebra.mul(algebra.sub(y, x), factor))
                if more is not None and _below(algebra.add(rest, more * factor), algebra.const(0)):
                    return True
    return False


def _most_between(x: Bin, y: Bin) -> int | None:
    """An upper bound of x - y, two quotients by one divisor."""
    high = most_of(algebra.sub(x.left, y.left))
    if high is not None and isinstance(x.right, Const):
        return -(-high // x.right.value)
    return 0 if at_most(x.left, y.left) else None


def _moved_out(index: Index, op: Extremum) -> frozenset[Index]:
    """The integers whose minimum, or maximum, a sum with one is."""
    for atom, factor in linear_terms(index)[0]:
        rest = algebra.sub(index, algebra.mul(atom, factor))
        parts = factors_of(atom)
        for i, each in enumerate(parts):
            others = [*parts[:i], *parts[i + 1 :]]
            if not isinstance(each, Bin) or each.op != (op if factor > 0 else "max" if op == "min" else "min"):
                continue
            if all(other.range[0] is not None and other.range[0] >= 0 for other in others):
                outside = reduce(algebra.mul, others, algebra.const(factor))
                ways = (algebra.add(rest, algebra.mul(way, outside)) for way in (each.left, each.right))
                return frozenset[Index]().union(*(_moved_out(way, op) for way in ways))
    return frozenset((index,))


def operands(index: Index, op: Extremum) -> frozenset[Index]:
    """The integers whose minimum, or maximum, the index is."""
    if isinstance(index, Bin) and index.op == op:
        return operands(index.left, op) | operands(index.right, op)
    return frozenset((index,))


def lesser(*parts: IndexLike) -> Index:
    """The minimum, without what is known not to be it."""
    return _extremum("min", parts)


def greater(*parts: IndexLike) -> Index:
    """The maximum, without what is known not to be it."""
    return _extremum("max", parts)


def tidy(index: Index) -> Index:
    """The index; a minimum or a maximum without what is known not to be it."""
    if isinstance(index, Bin) and index.op in ("min", "max"):
        return _extremum("min" if index.op == "min" else "max", (index,))
    return index


def end(index: Index) -> Index:
    """The end of a range: a minimum, or a maximum, of sums, without what is known not to be it."""
    for op in ("min", "max"):
        parts = _moved_out(index, op)
        if len(parts) > 1:
            return _extremum(op, tuple(parts))
    return index


def of_maximum(index: Index) -> tuple[Index, Index] | None:
    """Both operands of a maximum."""
    return (index.left, index.right) if isinstance(index, Bin) and index.op == "max" else None


@lru_cache(maxsize=1 << 13)
def apart(index: Index) -> tuple[Index, Index]:
    """(a, rest) with a + rest = the index: min(a, b) as a + min(0, b - a), so that a shift of both changes a alone.

    a is the first in an order that neither shifts change nor a bound variable's sign, unless it alone decides.
    """
    op = index.op if isinstance(index, Bin) else None
    if op is None or op not in ("min", "max"):
        return algebra.const(0), index
    every = operands(index, op)
    atoms = sorted(
        {atom for each in every for atom, _ in linear_terms(each)[0]}, key=lambda atom: (_bound(atom), atom.digest)
    )
    factors = {each: dict(linear_terms(each)[0]) for each in every}
    first = min(every, key=lambda each: (*(factors[each].get(atom, 0) for atom in atoms), linear_terms(each)[1]))
    rest = [algebra.sub(each, first) for each in every]
    return first, reduce(algebra.minimum if op == "min" else algebra.maximum, sorted(rest, key=lambda one: one.digest))


def _bound(atom: Index) -> bool:
    return any(each.name.startswith("#") for each in symbols(atom))


def _extremum(op: Extremum, parts: tuple[IndexLike, ...]) -> Index:
    join = algebra.minimum if op == "min" else algebra.maximum
    every = frozenset[Index]().union(*(operands(algebra.index(part), op) for part in parts))
    kept = sorted(every, key=lambda one: one.digest)
    for each in tuple(kept):
        others = [other for other in kept if other is not each]
        if others and _decides(op, reduce(join, others), each):
            kept = others
    return reduce(join, kept)


def _decides(op: Extremum, a: Index, b: Index) -> bool:
    """Whether b adds nothing beside a."""
    return at_most(a, b) if op == "min" else at_most(b, a)


def least_of(index: Index, known: Collection[Cond]) -> Index:
    """The index; a minimum or a maximum without the operands that are not it by known orders of two of them, or by
    known conditions of `orders_of`.
    """
    if not isinstance(index, Bin) or index.op not in ("min", "max"):
        return index
    kept = sorted(operands(index, index.op), key=lambda one: one.digest)
    for each in tuple(kept):
        others = [other for other in kept if other is not each]
        if others and any(_is_known(index.op, other, each, known) for other in (*others, _joined(index.op, others))):
            kept = others
    return _joined(index.op, kept)


def _is_known(op: str, other: Index, each: Index, known: Collection[Cond]) -> bool:
    """Whether the other integer is known to be no more than this, or no less."""
    low, high = (other, each) if op == "min" else (each, other)
    return algebra.le(low, high) in known or algebra.lt(low, high) in known


def _joined(op: str, parts: Sequence[Index]) -> Index:
    return reduce(algebra.minimum if op == "min" else algebra.maximum, parts)


def orders_of(index: Index) -> Iterator[Cond]:
    """Of a minimum or a maximum, for each of its operands, that the others decide without it."""
    if isinstance(index, Bin) and index.op in ("min", "max"):
        every = sorted(operands(index, index.op), key=lambda one: one.digest)
        for each in every:
            rest = _joined(index.op, [other for other in every if other is not each])
            yield algebra.le(rest, each) if index.op == "min" else algebra.le(each, rest)


def clipped(low: Index, high: Index) -> tuple[Index, Index]:
    """The ends of [low, high), where low <= high, clipped alike: [a, min(a + c, b)) is [min(a, b), min(a + c, b))."""
    limits = operands(high, "min")
    over = [each for each in limits if not at_most(low, each)]
    if 0 < len(over) < len(limits):
        low = lesser(low, *over)
    floors = operands(low, "max")
    under = [each for each in floors if not at_most(each, high)]
    if 0 < len(under) < len(floors):
        high = greater(high, *under)
    return low, high


def unclipped(low: Index, high: Index) -> tuple[Index, Index]:
    """Ends of a range that has elements exactly where [low, high) has: without what clips both."""
    limits, floors = operands(high, "min"), operands(low, "max")
    lows, highs = operands(low, "min") - limits, operands(high, "max") - floors
    if lows and lows != operands(low, "min"):
        low = reduce(algebra.minimum, sorted(lows, key=lambda one: one.digest))
    if highs and highs != operands(high, "max"):
        high = reduce(algebra.maximum, sorted(highs, key=lambda one: one.digest))
    return low, high


def whole(index: Index) -> Index:
    """The integer with x - d (x // d) for each x % d whose quotient it has too."""
    terms, offset = linear_terms(index)
    factors = {each for atom, _ in terms for each in factors_of(atom)}
    if not any(_remainder_of(each, factors) for each in factors):
        return index
    parts: list[Index] = [algebra.const(offset)]
    for atom, number in terms:
        part = algebra.const(number)
        for each in factors_of(atom):
            quotient = _remainder_of(each, factors)
            exact = each if quotient is None else algebra.sub(quotient.left, algebra.mul(quotient, quotient.right))
            part = algebra.mul(part, exact)
        parts.append(part)
    return algebra.add(*parts)


def factors_of(atom: Index) -> tuple[Index, ...]:
    """The factors of a product; the index itself, if it is none."""
    if isinstance(atom, Bin) and atom.op == "*":
        return *factors_of(atom.left), *factors_of(atom.right)
    return (atom,)


def _remainder_of(index: Index, among: set[Index]) -> Bin | None:
    """The quotient x // d among these, if the index is x % d."""
    if isinstance(index, Bin) and index.op == "%":
        quotient = algebra.floordiv(index.left, index.right)
        return quotient if isinstance(quotient, Bin) and quotient.op == "//" and quotient in among else None
    return None


def undivided(cond: Cond) -> Cond:
    """The condition without a quotient that is compared alone: r <= x // d is r d <= x, and x // d < r is x < r d."""
    if not isinstance(cond, Cmp):
        return cond
    difference = whole(algebra.sub(cond.right, cond.left))
    if cond.op != "<=":
        return algebra.eq(0, difference)
    for atom, factor in linear_terms(difference)[0]:
        if isinstance(atom, Bin) and atom.op == "//" and abs(factor) == 1 and _positive(atom.right):
            rest = algebra.sub(difference, algebra.mul(atom, factor))
            if factor > 0:  # 0 <= rest + x // d
                return undivided(algebra.le(0, algebra.add(atom.left, algebra.mul(rest, atom.right))))
            # x // d <= rest
            return undivided(algebra.lt(atom.left, algebra.mul(algebra.add(rest, 1), atom.right)))
    return algebra.le(0, difference)


@lru_cache(maxsize=1 << 12)
def residue(cond: Cond) -> tuple[Index, int, int] | None:
    """(x, d, r), if the condition is x % d == r for a number d of at most a few; x without a constant."""
    if not isinstance(cond, Cmp) or cond.op != "==":
        return None
    terms, offset = linear_terms(algebra.sub(cond.left, cond.right))
    match terms:
        case ((Bin(op="%", left=left, right=Const(value=divisor)), factor),) if abs(factor) == 1 < divisor <= _RESIDUES:
            parts, constant = linear_terms(left)
            wanted = -offset * factor
            if not 0 <= wanted < divisor:
                return algebra.linear(parts, 0), divisor, -1
            return algebra.linear(parts, 0), divisor, (wanted - constant) % divisor
        case _:
            return None


def rounded(end: Index, shift: Index, divisor: int, remainder: int) -> Index:
    """The end that cuts off the same numbers v of which v + shift has this remainder: there, one with remainder 0.

    The end itself, if its own remainder is not known.
    """
    terms, offset = linear_terms(algebra.add(end, shift))
    if any(factor % divisor for _, factor in terms):
        return end
    return algebra.add(end, (remainder - offset) % divisor - remainder)
