"""Constructors of comparisons, conjunctions, disjunctions, negations and selections, in normal form."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from math import gcd
from typing import cast

from argus.core import interval
from argus.core.algebra.integers import IndexLike, index, linear, linear_terms
from argus.core.index import And, Cmp, CmpOp, Cond, Index, Not, Or, Pick, digest_of
from argus.core.interning import intern, lookup


def _junction(kind: type[And | Or], parts: Iterable[Cond]) -> Cond:
    name = "and" if kind is And else "or"
    absorbing = FALSE if kind is And else TRUE
    flat: dict[Cond, None] = {}
    for part in parts:
        for piece in part.parts if isinstance(part, kind) else (part,):
            flat[piece] = None
    if absorbing in flat or _has_opposites(flat):
        return absorbing
    if len(flat) == 1:
        return next(iter(flat))
    ordered = tuple(sorted(flat, key=lambda piece: piece.digest))
    return _make_junction(kind, name, ordered)


def _has_opposites(flat: Collection[Cond]) -> bool:
    """Whether one of the conditions is the negation of another."""
    return any(negate(piece) in flat for piece in flat if not isinstance(piece, And | Or))


def _make_junction(kind: type[And | Or], name: str, ordered: tuple[Cond, ...]) -> Cond:
    key = (name, ordered)
    found = lookup(key)
    if found is not None:
        return cast(Cond, found)
    return intern(key, kind(ordered, digest_of(name, *(part.digest for part in ordered)), ordered))


TRUE = _make_junction(And, "and", ())
FALSE = _make_junction(Or, "or", ())


def all_of(parts: Iterable[Cond]) -> Cond:
    """The conjunction; true without parts."""
    return _junction(And, parts)


def contradict(parts: Iterable[Cond]) -> bool:
    """Whether the conjunction of the parts is FALSE, for callers that have no other use for it."""
    flat: dict[Cond, None] = {}
    for part in parts:
        for piece in part.parts if isinstance(part, And) else (part,):
            flat[piece] = None
    return FALSE in flat or _has_opposites(flat)


def any_of(parts: Iterable[Cond]) -> Cond:
    """The disjunction; false without parts."""
    return _junction(Or, parts)


@lru_cache(maxsize=1 << 13)
def negate(cond: Cond) -> Cond:
    """The negation, in negation normal form; shared parts are negated once."""
    done: dict[Cond, Cond] = {}
    stack = [cond]
    while stack:
        node = stack[-1]
        waiting = [part for part in _junction_parts(node) if part not in done]
        if node in done or waiting:
            if node in done:
                stack.pop()
            stack.extend(waiting)
            continue
        done[node] = _negate_one(node, done)
        stack.pop()
    return done[cond]


def _junction_parts(cond: Cond) -> tuple[Cond, ...]:
    return cond.parts if isinstance(cond, And | Or) else ()


@lru_cache(maxsize=4096)
def _greater(left: Index, right: Index) -> Cond:
    """The negation of `left <= right`; cached, since every junction needs it."""
    return lt(right, left)


def _negate_one(cond: Cond, done: dict[Cond, Cond]) -> Cond:
    match cond:
        case And(parts=parts):
            return any_of(done[part] for part in parts)
        case Or(parts=parts):
            return all_of(done[part] for part in parts)
        case Not(part=part):
            return part
        case Cmp(op="<=", left=left, right=right):
            return _greater(left, right)
        case Cmp():
            key = ("not", cond)
            found = lookup(key)
            if found is not None:
                return cast(Not, found)
            return intern(key, Not(cond, digest_of("not", cond.digest), (cond,)))


@lru_cache(maxsize=1 << 13)
def _compare(op: CmpOp, difference: Index) -> Cond:
    """`difference <= 0` or `difference == 0`, divided by the gcd of the coefficients; positive terms on the left."""
    low, high = difference.range
    if op == "<=":
        if high is not None and high <= 0:
            return TRUE
        if low is not None and low > 0:
            return FALSE
    elif (low is not None and low > 0) or (high is not None and high < 0):
        return FALSE
    elif low == high == 0:
        return TRUE
    terms, constant = linear_terms(difference)
    common = gcd(*(factor for _, factor in terms))
    if op == "==" and constant % common != 0:
        return FALSE
    sign = -1 if op == "==" and terms[0][1] < 0 else 1
    offset = sign * constant // common if op == "==" else -((-constant) // common)
    scaled = [(atom, sign * factor // common) for atom, factor in terms]
    left = linear([(atom, factor) for atom, factor in scaled if factor > 0], max(offset, 0))
    right = linear([(atom, -factor) for atom, factor in scaled if factor < 0], max(-offset, 0))
    key = ("cmp", op, left, right)
    found = lookup(key)
    if found is not None:
        return cast(Cmp, found)
    return intern(key, Cmp(op, left, right, digest_of("cmp", op, left.digest, right.digest), (left, right)))


@lru_cache(maxsize=1 << 14)
def _compared(op: CmpOp, a: IndexLike, b: IndexLike, more: int) -> Cond:
    """`a + more <= b` or `a + more == b`; cached, since contexts are made of the same comparisons again and again."""
    return _compare(op, linear([(index(a), 1), (index(b), -1)], more))


def le(a: IndexLike, b: IndexLike) -> Cond:
    """`a <= b`."""
    return _compared("<=", a, b, 0)


def lt(a: IndexLike, b: IndexLike) -> Cond:
    """`a < b`, as `a + 1 <= b`."""
    return _compared("<=", a, b, 1)


def eq(a: IndexLike, b: IndexLike) -> Cond:
    """`a == b`."""
    return _compared("==", a, b, 0)


def implies(a: Cond, b: Cond) -> Cond:
    """`not a or b`."""
    return any_of((negate(a), b))


def pick(cond: Cond, then: IndexLike, other: IndexLike) -> Index:
    """`then if cond else other`."""
    yes, no = index(then), index(other)
    if cond is TRUE or yes is no:
        return yes
    if cond is FALSE:
        return no
    key = ("pick", cond, yes, no)
    found = lookup(key)
    if found is not None:
        return cast(Pick, found)
    digest = digest_of("pick", cond.digest, yes.digest, no.digest)
    return intern(key, Pick(cond, yes, no, digest, interval.hull(yes.range, no.range), (cond, yes, no)))
