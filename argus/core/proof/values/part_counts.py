"""How often the elements of some parts carry a number: c(x), from the ranges of their bound variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cond, Const, Coord, Index, Node, Sym, Symbol
from argus.core.proof.values.content import COUNTED
from argus.core.proof.values.named_parts import Binder, Part
from argus.core.values.expr import ReduceOp
from argus.core.walk import fold, mentions, rebuild, substitute, symbols


def count(parts: Iterable[Part], op: ReduceOp) -> Index | None:
    """c(x): how often the number `COUNTED` is collected; None if it has no closed form. An extremum counts once."""
    members: list[tuple[Cond, Index]] = []
    for part in parts:
        member = _member(part)
        if member is None or part.times is None:
            return None
        members.append((member, part.times))
    if op in ("max", "min"):
        return algebra.pick(algebra.any_of(cond for cond, _ in members), 1, 0)
    if any(not isinstance(times, Const) for _, times in members):
        return None
    return algebra.add(*(algebra.pick(cond, times, 0) for cond, times in members), 0)


def _member(part: Part) -> Cond | None:
    """That the part has an element with this number, and then one; None if that is not known."""
    x = algebra.sym(COUNTED)
    if not part.binders:
        return algebra.all_of((algebra.eq(x, part.value), *part.guards))
    flipped = _flipped(part.value)
    if flipped is not None:
        part, x = evolve(part, value=flipped[0]), algebra.bit_xor(x, flipped[1])
    terms, constant = linear_terms(part.value)
    own = [(atom.symbol, f) for atom, f in terms if isinstance(atom, Sym) and atom.symbol in part.bound]
    factors = dict(own)
    rest = algebra.linear([(a, f) for a, f in terms if not (isinstance(a, Sym) and a.symbol in factors)], constant)
    if factors.keys() != part.bound or symbols(rest) & part.bound:
        return None
    digits = _digits(part.binders, factors)
    if digits is None:
        return None
    offset = algebra.sub(x, rest)
    names: dict[Symbol, Index] = {}
    goals: list[Cond] = []
    for digit in digits:
        offset = algebra.sub(offset, algebra.mul(digit.low, digit.factor))
    for number, digit in enumerate(digits):
        place = algebra.floordiv(offset, digit.factor)
        offset = algebra.mod(offset, digit.factor) if digit.factor > 1 else algebra.const(0)
        goals.append(algebra.lt(place, digit.length))
        if number == 0:
            goals.append(algebra.le(0, place))
        at = algebra.add(place, digit.low)
        names[digit.variable] = algebra.neg(at) if digit.turned else at
    exact = algebra.eq(offset, 0)
    inner = (*goals, *part.guards, *(each.where for each in part.binders))
    return algebra.all_of((exact, *(substitute(cond, names) for cond in inner)))


def _flipped(value: Index) -> tuple[Index, int] | None:
    """(y, c) for y ^ c."""
    if isinstance(value, Bin) and value.op == "^":
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(other, Const):
                return one, other.value
    return None


@frozen(eq=False)
class _Digit:
    """A bound variable, or its negative if `turned`, as a digit: (low + d) * factor for d in [0, length)."""

    variable: Symbol
    low: Index
    length: Index
    factor: int
    turned: bool


def _digits(binders: Iterable[Binder], factors: Mapping[Symbol, int]) -> list[_Digit] | None:
    """The variables as digits of one number, greatest factor first; None if two places may give one number.

    The length of the first may depend on the others.
    """
    found: list[_Digit] = []
    bound = frozenset(factors)
    for each in binders:
        factor = factors[each.variable]
        low = each.low if factor > 0 else algebra.sub(1, each.high)
        if symbols(low) & bound:
            return None
        found.append(_Digit(each.variable, low, algebra.sub(each.high, each.low), abs(factor), factor < 0))
    found.sort(key=lambda each: each.factor, reverse=True)
    for upper, lower in pairwise(found):
        if not isinstance(lower.length, Const) or lower.factor * lower.length.value > upper.factor:
            return None
    return found


def without_decided_extrema(count: Index, holds: Callable[[Cond], bool]) -> Index:
    """The count without the minima and maxima of sizes and blocks that one operand always is."""

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        found = rebuild(node, parts)
        if not isinstance(found, Bin) or found.op not in ("min", "max") or mentions(found, (Coord,)):
            return found
        if COUNTED in symbols(found):
            return found
        for low, high in ((found.left, found.right), (found.right, found.left)):
            if holds(algebra.le(low, high)):
                return low if found.op == "min" else high
        return found

    made = fold(count, visit)
    assert isinstance(made, Index)
    return made
