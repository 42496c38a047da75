"""Reductions over elements that one target takes: ranges of bound variables, read off tables of numbers.

What each target takes is given by tables with one more axis. If all targets take the same places up to an offset, and
these places are those of nested ranges, the reduction is one over ranges; a few elements are spelled out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Cmp, Cond, Const, Index, Sym, Symbol
from argus.core.proof.values.held.joined import joined_cond, zipped
from argus.core.proof.values.held.rotated import unrotated
from argus.core.proof.values.held.tables import BoolArray, Tables
from argus.core.proof.values.held.terms import all_symbols, chosen, plus, replaced, unknown
from argus.core.values.expr import Choose, Compare, Expr, Fn, Reduce, ReduceOp, expr, fn, infinity, reduce_
from argus.core.values.rewriting import elements, integers, map_parts, nodes
from argus.core.walk import IntArray, symbols

_SPELLED_OUT = 16
_MOST_PARTS = 128
NEUTRAL: dict[ReduceOp, Expr] = {"sum": expr(0), "product": expr(1), "max": infinity(-1), "min": infinity(1)}
_FUNCTION = {"sum": "add", "product": "mul", "max": "max", "min": "min"}


@frozen(eq=False)
class Range:
    """A bound variable in [0, high)."""

    variable: Symbol
    high: Index


def bound_variables(root: Expr, count: int) -> list[Symbol]:
    """Names for variables around an expression that no binder within it has."""
    names = (each.variable.name for each in nodes(root) if isinstance(each, Reduce))
    used = [int(name[1:]) for name in names if name[0] == "~" and name[1:].isdigit()]
    return [Symbol(f"~{max(used, default=0) + 1 + number}", "fresh", 0) for number in range(count)]


def reduction(op: ReduceOp, ranges: Sequence[Range], body: Expr) -> Expr:
    """`op` of the body over all ranges: those of a nested reduction are joined where they adjoin."""
    if any(each.high is algebra.const(0) for each in ranges):
        return NEUTRAL[op]
    ranges, body = _spelled(op, list(ranges), _of_runs(op, body))
    if op == "sum" and isinstance(body, Fn) and body.name == "add" and any(map(_has_sum, _operands("add", body))):
        whole = NEUTRAL["sum"]
        for each in _operands("add", body):
            whole = plus(whole, _of_product(ranges, each))
        return whole
    ranges, body = _unnested(op, ranges, body)
    alone = [each for each in ranges if each.high is algebra.const(1)]
    body = replaced(body, {each.variable: algebra.const(0) for each in alone})
    ranges = [each for each in ranges if each not in alone]
    body = replaced(body, dict(_turned(ranges, body)))
    for each in ranges:
        body = unrotated(each.variable, each.high, body)
    while (joined := _joined(ranges, body)) is not None:
        ranges, body = joined
    strides = _strides((each.variable for each in ranges), body)
    ranges = sorted(ranges, key=lambda each: (not isinstance(each.high, Const), strides.get(each.variable, 0)))
    fresh = bound_variables(body, len(ranges))
    body = replaced(body, {each.variable: algebra.sym(name) for each, name in zip(ranges, fresh, strict=True)})
    for each, name in zip(ranges, fresh, strict=True):
        body = reduce_(op, name, 0, each.high, body)
    return body


def _strides(names: Iterable[Symbol], body: Expr) -> dict[Symbol, int]:
    """The least step of each variable in a coordinate or a condition."""
    found: dict[Symbol, int] = {}
    own = set(names)
    for part in integers(body):
        index = algebra.sub(part.right, part.left) if isinstance(part, Cmp) else part
        for atom, factor in linear_terms(index)[0] if isinstance(index, Index) else ():
            if isinstance(atom, Sym) and atom.symbol in own:
                found[atom.symbol] = min(abs(factor), found.get(atom.symbol, abs(factor)))
    return found


def _operands(name: str, of: Expr) -> Iterator[Expr]:
    """What a nested operation is of, in order."""
    if isinstance(of, Fn) and of.name == name:
        for each in of.args:
            yield from _operands(name, each)
    else:
        yield of


def _has_sum(of: Expr) -> bool:
    return any(isinstance(each, Reduce) and each.op == "sum" for each in _operands("mul", of))


def _of_product(ranges: Sequence[Range], of: Expr) -> Expr:
    """The sum of a product: factors without the variables come out."""
    names = {each.variable for each in ranges}
    outer: Expr | None = None
    inner: Expr | None = None
    for each in _operands("mul", of):
        if names.isdisjoint(all_symbols(each)):
            outer = each if outer is None else fn("mul", outer, each)
        else:
            inner = each if inner is None else fn("mul", inner, each)
    whole = reduction("sum", ranges, expr(1) if inner is None else inner)
    return whole if outer is None else fn("mul", outer, whole)


def _spelled(op: ReduceOp, ranges: list[Range], body: Expr) -> tuple[list[Range], Expr]:
    """Parts that differ in the numbers of places, as those of nested loops that are spelled out: own ranges."""
    parts, more = list(_operands(_FUNCTION[op], body)), list[Range]()
    if not 1 < len(parts) <= _MOST_PARTS:
        return ranges, body
    while len(parts) > 1:
        number = Symbol(f"~part{len(ranges) + len(more)}", "fresh", 0)
        found = _in_steps(parts, number)
        if found is None:
            return ranges, body
        more.append(Range(number, algebra.const(len(parts) // len(found))))
        parts = found
    return [*ranges, *more], parts[0]


def _in_steps(parts: Sequence[Expr], number: Symbol) -> list[Expr] | None:
    """One part for each run of as many parts as possible, of which each is the one before with places a step further.

    number: of a part in its run. None if there are no such runs.
    """
    for extent in range(len(parts), 1, -1):
        if len(parts) % extent == 0:
            runs = (parts[at : at + extent] for at in range(0, len(parts), extent))
            found = list(takewhile(lambda each: each is not None, (_in_step(each, number) for each in runs)))
            if len(found) * extent == len(parts):
                return [each for each in found if each is not None]
    return None


def _in_step(parts: Sequence[Expr], number: Symbol) -> Expr | None:
    """What each part is at its number; None where they do not differ, or not each as the one before.

    A condition that a part's own number decides is not in it: what is read at places from 0 on follows from the place.
    """
    here = algebra.sym(number)

    def between(a: Index, b: Index) -> Index | None:
        step = algebra.sub(b, a)
        return a if a is b else algebra.add(a, algebra.mul(here, step)) if isinstance(step, Const) else None

    def both(a: Cond, b: Cond) -> Cond:
        return algebra.all_of(_shared(a, b, lambda x, y: joined_cond(x, y, between)))

    for first in dict.fromkeys((0, len(parts) - 2)):
        one, two = parts[first : first + 2]
        made = None if one is two else zipped(one, two, between, both)
        if made is None:
            continue
        whole = replaced(made, {number: algebra.sub(here, first)})
        for guess in (whole, _within(whole, number)):
            if all(replaced(guess, {number: algebra.const(each)}) is part for each, part in enumerate(parts)):
                return guess
    return None


def _shared(a: Cond, b: Cond, both: Callable[[Cond, Cond], Cond | None]) -> Iterator[Cond]:
    """The conditions that are a part of both, or of which each has one that joins with the other's."""
    left, right = (each.parts if isinstance(each, And) else (each,) for each in (a, b))
    rest = [each for each in right if each not in left]
    for part in left:
        if part in right:
            yield part
            continue
        found = next(((each, joined) for each in rest if (joined := both(part, each)) is not None), None)
        if found is not None:
            rest.remove(found[0])
            yield found[1]


def _within(root: Expr, number: Symbol) -> Expr:
    """The expression with each choice of elements made only where their places, if the number is in them, are not
    below 0.
    """

    def visit(node: Expr) -> Expr:
        made = map_parts(node, visit, lambda index: index, lambda cond: cond)
        if not isinstance(made, Choose) or isinstance(made.test, Compare):
            return made
        places = (at for each in elements(made.then) for at in each.at if number in symbols(at))
        return chosen(algebra.all_of((made.test, *(algebra.le(0, at) for at in places))), made.then, made.other)

    return visit(root)


def _of_runs(op: ReduceOp, body: Expr) -> Expr:
    """Parts over runs of which each begins where the one before ends: one part over all of them."""
    if not isinstance(body, Fn) or body.name != _FUNCTION[op]:
        return body
    first, *rest = _operands(_FUNCTION[op], body)
    found = [first]
    for part in rest:
        both = _run(found[-1], part)
        found = [*found, part] if both is None else [*found[:-1], both]
    whole = found[0]
    for part in found[1:]:
        whole = fn(_FUNCTION[op], whole, part)
    return whole


def _run(one: Expr, two: Expr) -> Expr | None:
    """Two reductions of one body over [0, n) and [n, n + m) as one over [0, n + m); None if they are none."""
    if not isinstance(one, Reduce) or not isinstance(two, Reduce) or one.op != two.op:
        return None
    if not (one.low is two.low is algebra.const(0) and one.where is two.where is algebra.TRUE):
        return None
    here = algebra.sym(two.variable)
    if replaced(one.body, {one.variable: algebra.add(here, one.high)}) is two.body:
        body = replaced(one.body, {one.variable: here})
        return reduce_(one.op, two.variable, 0, algebra.add(one.high, two.high), body)
    inner = _run(one.body, two.body) if one.variable == two.variable and one.high is two.high else None
    return None if inner is None else reduce_(one.op, one.variable, 0, one.high, inner)


def _unnested(op: ReduceOp, ranges: list[Range], body: Expr) -> tuple[list[Range], Expr]:
    """The ranges with those of the body, where that is the same reduction over a range of its own."""
    while True:
        inner, around = body, None
        if op == "sum" and isinstance(body, Fn) and body.name in ("mul", "div"):
            sums = [each for each in body.args if isinstance(each, Reduce) and each.op == "sum"]
            if len(sums) == 1 and (body.name == "mul" or body.args[0] is sums[0]):
                inner, around = sums[0], body
        if not isinstance(inner, Reduce) or inner.op != op or inner.where is not algebra.TRUE:
            return ranges, body
        if inner.low is not algebra.const(0) or symbols(inner.high) & {each.variable for each in ranges}:
            return ranges, body
        name = Symbol(f"{inner.variable.name}'{len(ranges)}", "fresh", 0)
        own = replaced(inner.body, {inner.variable: algebra.sym(name)})
        ranges = [*ranges, Range(name, inner.high)]
        body = own if around is None else fn(around.name, *(own if each is inner else each for each in around.args))


def _turned(ranges: Sequence[Range], body: Expr) -> Iterator[tuple[Symbol, Index]]:
    """The last value first, for each variable with which all coordinates of elements fall."""
    places = [linear_terms(at)[0] for each in elements(body) for at in each.at]
    for each in ranges:
        own = [f for terms in places for atom, f in terms if isinstance(atom, Sym) and atom.symbol == each.variable]
        if own and max(own) < 0:
            yield each.variable, algebra.sub(algebra.sub(each.high, 1), algebra.sym(each.variable))


def _joined(ranges: list[Range], body: Expr) -> tuple[list[Range], Expr] | None:
    """Two ranges a < n and b of which only n b + a matters as one; None if there are none."""
    for a in ranges:
        if not isinstance(a.high, Const):
            continue
        for b in ranges:
            if a is b:
                continue
            moved = algebra.sub(algebra.sym(a.variable), algebra.mul(algebra.sym(b.variable), a.high))
            one = replaced(body, {a.variable: moved})
            if b.variable not in all_symbols(one):
                rest = [each for each in ranges if each not in (a, b)]
                return [*rest, Range(a.variable, algebra.mul(b.high, a.high))], one
    return None


def lattice(columns: IntArray) -> list[tuple[int, IntArray]] | None:
    """Extents and steps, inner first, of nested ranges whose points are the columns in order; None if there are none.

    columns: (coordinates, points); the first point is 0.
    """
    count = columns.shape[1]
    if count == 1:
        return []
    step = columns[:, 1] - columns[:, 0]
    for extent in range(count, 1, -1):
        if count % extent:
            continue
        blocks = columns.reshape(columns.shape[0], count // extent, extent)
        if bool((blocks == blocks[:, :, :1] + step[:, None, None] * np.arange(extent)).all()):
            outer = lattice(blocks[:, :, 0])
            return None if outer is None else [(extent, step), *outer]
    return None


def reduced(
    tables: Tables,
    op: ReduceOp,
    body: Expr,
    taken: dict[Symbol, IntArray],
    size: int,
    counts: IntArray | None = None,
) -> Expr:
    """`op` of the body over the last axis of the tables taken.

    taken: for each symbol of a table in the body, its numbers, (threads, values, elements). counts: how many of the
    elements each target takes, None: all `size` of them.
    """
    if not taken:
        high = algebra.const(size) if counts is None else tables.index(counts)
        return reduction(op, [Range(Symbol("~fold", "fresh", 0), high)], body)
    names = list(taken)
    arrays = np.broadcast_arrays(*taken.values())
    found = _ranges(names, arrays, counts) or (_ranges(names, _in_order(arrays), None) if counts is None else None)
    if found is not None:
        first, ranges, steps = found
        variables = [Symbol(f"~fold{number}", "fresh", 0) for number in range(len(ranges))]
        at = {
            name: algebra.add(
                tables.index(start),
                *(algebra.mul(algebra.sym(v), int(step[row])) for v, step in zip(variables, steps, strict=True)),
            )
            for row, (name, start) in enumerate(zip(names, first, strict=True))
        }
        highs = [algebra.const(extent) for extent in ranges]
        if counts is not None:
            if len(highs) > 1:
                return unknown("a scan over elements that are not in one run")
            highs = [tables.index(counts)]
        pairs = zip(variables, highs, strict=True)
        return reduction(op, [Range(variable, high) for variable, high in pairs], replaced(body, at))
    if counts is not None or size > _SPELLED_OUT:
        return unknown("elements that are folded together lie at no regular places")
    spelled = [
        replaced(body, {name: tables.index(table[..., each]) for name, table in zip(names, arrays, strict=True)})
        for each in range(size)
    ]
    whole = spelled[0]
    for each in spelled[1:]:
        whole = fn(_FUNCTION[op], whole, each)
    return whole


Found = tuple[list[IntArray], list[int], list[IntArray]]


def _ranges(names: Sequence[Symbol], arrays: Sequence[IntArray], counts: IntArray | None) -> Found | None:
    """(first number of each table, extents, steps) of the ranges that every target takes."""
    steps: list[IntArray] = []
    size = arrays[0].shape[-1]
    there = None if counts is None else before(counts, size)
    most = None if counts is None else np.unravel_index(int(counts.argmax()), counts.shape)
    for table in arrays:
        delta = table - table[..., :1]
        one = delta.reshape(-1, size)[0] if most is None else delta[most]
        same = delta == one
        if not bool((same if there is None else same | ~there).all()):
            return None
        steps.append(one)
    assert len(steps) == len(names)
    found = lattice(np.stack(steps))
    if found is None:
        return None
    return [table[..., 0] for table in arrays], [extent for extent, _ in found], [step for _, step in found]


def before(counts: IntArray, size: int) -> BoolArray:
    """Which of `size` elements are among the first of each count: (*counts.shape, size)."""
    return np.less(np.arange(size), np.expand_dims(counts, -1))


def _in_order(arrays: Sequence[IntArray]) -> list[IntArray]:
    """The tables with the elements of each target sorted by their numbers."""
    order = np.lexsort(tuple(reversed(arrays)), axis=-1)
    return [np.take_along_axis(each, order, axis=-1) for each in arrays]
