"""Tests of element expressions that end rows: beyond an integer in memory, what they choose reads none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Coord, Read
from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Neither, Num, Op, Test, Where
from argus.core.walk import mentions, topological


def ended_reads(elem: Elem, ended: frozenset[int] = frozenset()) -> Iterator[tuple[Get, frozenset[int]]]:
    """What an expression computes with, and the coordinates that a test around it ends by an integer in memory."""
    match elem:
        case Get():
            yield elem, ended
        case Op(args=args):
            for each in args:
                yield from ended_reads(each, ended)
        case Cast(arg=arg):
            yield from ended_reads(arg, ended)
        case Where(test=test, then=then, other=other):
            yield from ended_reads(then, ended.union(*map(_ended, _implied(test, holds=True))))
            yield from ended_reads(other, ended.union(*map(_ended, _implied(test, holds=False))))
        case Lit() | Num():
            return
        case _:
            assert_never(elem)


def _implied(test: Test, *, holds: bool) -> Iterator[Cond]:
    """Conditions that are true if a test holds, or if it does not."""
    match test:
        case Holds(cond=cond):
            yield cond if holds else algebra.negate(cond)
        case Both(parts=parts) if holds:
            for each in parts:
                yield from _implied(each, holds=holds)
        case Either(parts=parts) if not holds:
            for each in parts:
                yield from _implied(each, holds=holds)
        case Neither(part=part):
            yield from _implied(part, holds=not holds)
        case Both() | Either() | Compare():
            return
        case _:
            assert_never(test)


def _ended(cond: Cond) -> frozenset[int]:
    """The coordinates that a condition bounds from above by an integer in memory."""
    return frozenset(axis for each in (cond.parts if isinstance(cond, And) else (cond,)) for axis in _bounded(each))


def _bounded(cond: Cond) -> Iterator[int]:
    if isinstance(cond, Cmp) and cond.op == "<=":
        apart = algebra.sub(cond.right, cond.left)
        for axis in {node.axis for node in topological((apart,)) if isinstance(node, Coord)}:
            rest = algebra.add(apart, algebra.coord(axis))
            within = any(isinstance(node, Coord) and node.axis == axis for node in topological((rest,)))
            if not within and mentions(rest, (Read,)):
                yield axis
