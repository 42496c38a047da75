"""Right transformations of reductions: other orders of the same elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argus.core import algebra
from argus.core.algebra import add, ceil_div, le, lt, minimum, mul, sub, sym
from argus.core.index import Bin, Cond, Index, Symbol
from argus.core.values import rewriting
from argus.core.values.expr import Expr, Reduce, choose, expr, fn, infinity, reduce_
from argus.core.walk import substitute, symbols
from property_tests.small.choosing import Choose
from property_tests.values.parts import Change, body_at, inner_variable, over

COMBINE = {"sum": "add", "max": "max", "min": "min", "product": "mul"}
NEUTRAL: Mapping[str, Expr] = {"sum": expr(0), "product": expr(1), "max": infinity(-1), "min": infinity(1)}
_BLOCKS = (2, 4, 8, 32)


def _of_reductions(change: Callable[[Reduce], Expr | None]) -> Change:
    """Of those whose variable is bound only once in them: substitution does not look at binders."""

    def of(part: Expr) -> Expr | None:
        if not isinstance(part, Reduce) or part.variable in rewriting.bound_variables(part.body):
            return None
        return change(part)

    return of


def _where(of: Reduce, at: Index) -> Cond:
    return substitute(of.where, {of.variable: at})


def _at(of: Reduce, variable: Symbol, ends: tuple[Index, Index], at: Index, *conds: Cond) -> Reduce:
    """The reduction over another variable, of the body at `at`."""
    where = algebra.all_of((_where(of, at), *conds))
    return reduce_(of.op, variable, *ends, body_at(of, at), where)


def chunks(choose_: Choose) -> Change:
    """Blocks of so many elements, the last one cut off; of a range of whole blocks, these."""
    block = choose_(_BLOCKS)

    def change(of: Reduce) -> Expr | None:
        here, inner = of.variable, inner_variable(of, of.variable)
        size = sub(of.high, of.low)
        if isinstance(size, Bin) and size.op == "*":
            at = add(of.low, mul(sym(here), size.right), sym(inner))
            parts = _at(of, inner, (algebra.const(0), size.right), at)
            return reduce_(of.op, here, 0, size.left, parts)
        at = add(of.low, mul(sym(here), block), sym(inner))
        parts = _at(of, inner, (algebra.const(0), algebra.const(block)), at, lt(at, of.high))
        return reduce_(of.op, here, 0, ceil_div(size, block), parts)

    return _of_reductions(change)


def clipped_chunks(choose_: Choose) -> Change:
    """Blocks of a range whose ends are clipped, as a loop over steps of so many elements."""
    block = choose_(_BLOCKS)

    def change(of: Reduce) -> Expr | None:
        outer = inner_variable(of, of.variable)
        low = add(of.low, mul(sym(outer), block))
        parts = over(of, low, minimum(add(low, block), of.high))
        return reduce_(of.op, outer, 0, ceil_div(sub(of.high, of.low), block), parts)

    return _of_reductions(change)


def lanes(choose_: Choose) -> Change:
    """Each of so many threads takes every so-manieth element."""
    block = choose_(_BLOCKS)

    def change(of: Reduce) -> Expr | None:
        here, lane = of.variable, inner_variable(of, of.variable)
        at = add(of.low, mul(sym(here), block), sym(lane))
        parts = _at(of, here, (algebra.const(0), ceil_div(sub(of.high, of.low), block)), at, lt(at, of.high))
        return reduce_(of.op, lane, 0, block, parts)

    return _of_reductions(change)


def vectors(choose_: Choose) -> Change:
    """Chunks of lanes of vectors: three nested ranges in another order than that of the elements."""
    width, count = choose_((2, 4)), choose_((2, 8))

    def change(of: Reduce) -> Expr | None:
        here, lane = of.variable, inner_variable(of, of.variable)
        inner = inner_variable(fn("add", of, expr(sym(lane))), of.variable)
        at = add(of.low, mul(sym(here), width * count), mul(sym(lane), width), sym(inner))
        parts = _at(of, inner, (algebra.const(0), algebra.const(width)), at, lt(at, of.high))
        chunk = reduce_(of.op, here, 0, ceil_div(sub(of.high, of.low), width * count), parts)
        return reduce_(of.op, lane, 0, count, chunk)

    return _of_reductions(change)


def split(choose_: Choose) -> Change:
    """Two ranges that meet."""
    by = choose_((1, 2, 3))

    def change(of: Reduce) -> Expr | None:
        middle = add(of.low, minimum(by, sub(of.high, of.low)))
        return fn(COMBINE[of.op], over(of, of.low, middle), over(of, middle, of.high))

    return _of_reductions(change)


def peeled(_: Choose) -> Change:
    """The first element, and the rest."""

    def change(of: Reduce) -> Expr | None:
        if of.where is not algebra.TRUE or lt(of.low, of.high) is not algebra.TRUE:
            return None
        return fn(COMBINE[of.op], body_at(of, of.low), over(of, add(of.low, 1), of.high))

    return _of_reductions(change)


def unrolled(_: Choose) -> Change:
    """Two sums: of the elements at even places and at odd ones."""

    def change(of: Reduce) -> Expr | None:
        size = sub(of.high, of.low)
        even, odd = (add(of.low, mul(sym(of.variable), 2), n) for n in (0, 1))
        ends = algebra.const(0), ceil_div(size, 2)
        parts = (_at(of, of.variable, ends, even), _at(of, of.variable, ends, odd, lt(odd, of.high)))
        return fn(COMBINE[of.op], *parts)

    return _of_reductions(change)


def backwards(_: Choose) -> Change:
    def change(of: Reduce) -> Expr | None:
        back = sub(sub(add(of.low, of.high), 1), sym(of.variable))
        return _at(of, of.variable, (of.low, of.high), back)

    return _of_reductions(change)


def shifted(choose_: Choose) -> Change:
    by = choose_((algebra.const(1), algebra.sym(Symbol("k", "size", 1))))

    def change(of: Reduce) -> Expr | None:
        return _at(of, of.variable, (add(of.low, by), add(of.high, by)), sub(sym(of.variable), by))

    return _of_reductions(change)


def padded(choose_: Choose) -> Change:
    """A range of whole tiles, the elements beyond the last one neutral."""
    tile = choose_(_BLOCKS)

    def change(of: Reduce) -> Expr | None:
        high = add(of.low, mul(ceil_div(sub(of.high, of.low), tile), tile))
        body = choose(lt(sym(of.variable), of.high), of.body, NEUTRAL[of.op])
        return over(of, of.low, high, body)

    return _of_reductions(change)


def interchanged(_: Choose) -> Change:
    """The inner loop outside."""

    def change(of: Reduce) -> Expr | None:
        inner = of.body
        if not isinstance(inner, Reduce) or inner.op != of.op or of.variable in symbols(inner.low, inner.high):
            return None
        where = algebra.all_of((of.where, inner.where))
        outer = reduce_(of.op, of.variable, of.low, of.high, inner.body, where)
        return reduce_(inner.op, inner.variable, inner.low, inner.high, outer)

    return _of_reductions(change)


def staged(choose_: Choose) -> Change:
    """Elements by way of a tile: the place in it, and the tile's number, in place of the coordinate."""
    tile = choose_(_BLOCKS)

    def change(of: Reduce) -> Expr | None:
        here = sym(of.variable)
        at = add(mul(algebra.floordiv(here, tile), tile), algebra.mod(here, tile))
        low, inner = algebra.floordiv(of.low, tile), inner_variable(of, of.variable)
        first = add(mul(here, tile), sym(inner))
        inside = algebra.all_of((le(of.low, first), lt(first, of.high)))
        if at is here:  # the algebra sees that they are one: the same over tiles and places
            tiles = _at(of, inner, (algebra.const(0), algebra.const(tile)), first, inside)
            return reduce_(of.op, of.variable, low, ceil_div(of.high, tile), tiles)
        return _at(of, of.variable, (of.low, of.high), at)

    return _of_reductions(change)


def masked(_: Choose) -> Change:
    """A part of the range as a condition on a longer one, and a condition as a choice."""

    def change(of: Reduce) -> Expr | None:
        inside = algebra.all_of((le(of.low, sym(of.variable)), lt(sym(of.variable), of.high), of.where))
        longer = (minimum(of.low, 0), add(of.high, 3))
        return reduce_(of.op, of.variable, *longer, choose(inside, of.body, NEUTRAL[of.op]))

    return _of_reductions(change)


LOOPS: Mapping[str, Callable[[Choose], Change]] = {
    "chunks": chunks,
    "clipped chunks": clipped_chunks,
    "lanes": lanes,
    "chunks of lanes of vectors": vectors,
    "split in two": split,
    "first element peeled": peeled,
    "even and odd elements": unrolled,
    "backwards": backwards,
    "shifted": shifted,
    "neutral padding": padded,
    "loops interchanged": interchanged,
    "staged in tiles": staged,
    "mask of a longer range": masked,
}
