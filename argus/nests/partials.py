"""Long reductions in two steps: partial results, each by a block, and what they combine to.

The axes of a reduction are those of parts and those within a part. A sum, product or extremum of parts is that of all.
Moments have parts, too: with n elements of each part, its mean m and its sum q of squared deviations from m, the mean
of all is that of the means, and the sum of all squared deviations is that of q + n (m - mean)^2 [Chan, Golub, LeVeque
1979].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.target import LARGEST_SIZE
from argus.core.walk import symbols, within
from argus.nests.affine import computed, product_of
from argus.nests.nest import Apply, Axis, Coordinate, Expr, Nest, Read, Reduce
from argus.nests.rewrite import indices, placed, reads, reductions, with_reduction

LONGEST_PART, SHORTEST_PART = 1 << 14, 1 << 10
"""Elements of a part that an axis is cut into."""
LONG = 1 << 16
"""Elements of a reduction from which on parts of it are reduced by themselves, if it has few results."""
HELD = 8 * 48 << 10
"""Elements of a row that the shared memory of a cluster of blocks holds."""
MANY = 1 << 10
"""Results that keep a GPU busy, so that each can be reduced by one block."""
_BUSY, _NEIGHBOURS, _STRIP = 132, 128, 64
"""Blocks that keep a GPU busy, columns of one, and elements of a part of a column, at least."""
MOST_PARTIAL = 1 << 30
"""Partial results that a tensor in memory is made for, at most."""
Values = Mapping[str, int]
"""Of sizes, by name."""


@frozen
class Parts:
    """The axes of parts and those within a part, and what the reduced coordinates are in terms of them."""

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    places: Mapping[Symbol, Index]

    @property
    def count(self) -> Index:
        """The elements of a part."""
        return product_of(axis.extent for axis in self.inner)


def parts_of(
    axes: Sequence[Axis], kept: Sequence[Axis], body: Expr, values: Values, many: int = MANY, *, always: bool = False
) -> Parts | None:
    """The parts of a long reduction for each of the kept coordinates; None if one block does each at once.

    The last axis is within a part, or as much of it as divides a literal extent; if possible, whole rows of views that
    the body reads. values: of the sizes. many: results from which on there are no parts. always: short ones of several
    axes have parts, too.
    """
    counts = [_value(axis.extent, values) for axis in (*kept, *axes)]
    if always and len(axes) > 1 and any(count is None for count in counts):
        return Parts(tuple(axes[:-1]), (axes[-1],), {})
    if any(count is None for count in counts):
        return None
    results, length = (prod(n for n in part if n) for part in (counts[: len(kept)], counts[len(kept) :]))
    if (results >= many or length < LONG) and not (always and len(axes) > 1):
        return None
    *before, last = axes
    if isinstance(last.extent, Const) and last.extent.value > LONGEST_PART:
        pieces = [n for n in range(LONGEST_PART, SHORTEST_PART - 1, -1) if last.extent.value % n == 0]
        if pieces:
            rows = _divisors(body, last)
            piece = next((n for n in pieces if all(n % each == 0 for each in rows)), pieces[0])
            return _cut(tuple(before), last, last.extent.value // piece)
    return Parts(tuple(before), (last,), {}) if before else None


def _cut(before: tuple[Axis, ...], axis: Axis, count: int) -> Parts:
    """Parts of an axis of a literal extent, as many as divide it, and of all of those before it."""
    assert isinstance(axis.extent, Const)
    piece = axis.extent.value // count
    number = Axis(f"{axis.name}_part", algebra.const(count))
    inside = Axis(f"{axis.name}_in", algebra.const(piece))
    at = algebra.add(algebra.mul(number.index, piece), inside.index)
    return Parts((*before, number), (inside,), {axis.symbol: at})


def _of_columns(of: Reduce, kept: Sequence[Axis], values: Values) -> Parts | None:
    """Parts of columns that are long and too few for blocks to keep a GPU busy, as a block has many neighbours."""
    (*_, last), counts = of.axes, [_value(axis.extent, values) for axis in kept]
    contiguous = {each.index[-1] for each in reads(of.body) if each.index}
    known = None not in counts and isinstance(last.extent, Const) and len(of.axes) == 1
    if not known or not isinstance(last.extent, Const) or not any(axis.index in contiguous for axis in kept):
        return None
    blocks = prod(n for n in counts if n) // _NEIGHBOURS
    if last.index in contiguous or not MANY <= blocks * _NEIGHBOURS < _BUSY * _NEIGHBOURS:
        return None
    count = 1 << (2 * _BUSY // blocks).bit_length()
    fits = last.extent.value % count == 0 and last.extent.value // count >= _STRIP
    return _cut((), last, count) if fits else None


def _divisors(body: Expr, axis: Axis) -> set[int]:
    """The numbers by which reads divide what is computed of a coordinate."""
    parts = (node for read in reads(body) for index in read.index for node in within(index))
    split = (node for node in parts if isinstance(node, Bin) and node.op in ("//", "%"))
    return {node.right.value for node in split if isinstance(node.right, Const) and axis.symbol in symbols(node.left)}


def _value(extent: Index, values: Values) -> int | None:
    known = all(symbol.name in values for symbol in symbols(extent))
    return int(computed(extent, values)) if known else None


def in_parts(nest: Nest, values: Values, *, always: bool = False) -> tuple[Nest, ...]:
    """The nest in two: of the partial results of its one reduction, and of what they combine to; or as it is."""
    found = reductions(nest.body)
    if len(found) != 1 or found[0].op not in ("add", "mul", "max", "min"):
        return (nest,)
    (of,) = found
    kept = _kept(nest, of)
    parts, columns = parts_of(of.axes, kept, of.body, values, always=always), _of_columns(of, kept, values)
    parts = parts or columns
    if parts is None:
        return (nest,)
    if (_value(product_of(axis.extent for axis in (*kept, *parts.outer)), values) or 0) > MOST_PARTIAL:
        return (nest,)
    name = f"{nest.output}_parts"
    domain = (*parts.outer, *kept) if parts is columns else (*kept, *parts.outer)
    partial = Nest(name, "f32", domain, Reduce(of.op, parts.inner, placed(of.body, parts.places)))
    total = Reduce(of.op, parts.outer, _result(partial))
    return partial, Nest(nest.output, nest.dtype, nest.domain, with_reduction(nest.body, of, total))


def _kept(nest: Nest, of: Reduce) -> tuple[Axis, ...]:
    """The axes of the output on which a reduction depends."""
    parts = (*indices(of.body), *(index for each in reads(of.body) for index in each.index))
    named = {symbol for part in parts for symbol in symbols(part)}
    return tuple(axis for axis in nest.domain if axis.symbol in named)


def _result(nest: Nest) -> Read:
    """The element of a nest's output at its domain's coordinates."""
    return Read(nest.output, tuple(axis.index for axis in nest.domain), nest.dtype)


def moments(
    name: str,
    x: Expr,
    kept: tuple[Axis, ...],
    axes: tuple[Axis, ...],
    values: Values,
    *,
    always: bool = False,
    whole: bool = False,
) -> tuple[Nest, ...]:
    """The nests of the mean of x over axes (output NAME_mean), and of its mean squared deviation from it (NAME_var).

    values: of the sizes; a long reduction has parts. always: one of several axes has, too. whole: one that a cluster of
    blocks holds has none.
    """
    counts = [_value(axis.extent, values) for axis in axes]
    held = whole and not always and all(counts) and prod(count or 0 for count in counts) <= HELD
    # of what a block cannot hold, both are read off at once
    parts = None if held else parts_of(axes, kept, x, values, LARGEST_SIZE, always=always)
    if parts is None:
        mean = _mean(x, axes)
        deviation = _square(Apply("sub", (x, mean)))
        return Nest(f"{name}_mean", "f32", kept, mean), Nest(f"{name}_var", "f32", kept, _mean(deviation, axes))
    domain, here = (*kept, *parts.outer), placed(x, parts.places)
    means = Nest(f"{name}_means", "f32", domain, _mean(here, parts.inner))
    off = Reduce("add", parts.inner, _square(Apply("sub", (here, means.body))))
    squares = Nest(f"{name}_squares", "f32", domain, off)
    mean = Nest(f"{name}_mean", "f32", kept, _mean(_result(means), parts.outer))
    between = Apply("mul", (_square(Apply("sub", (_result(means), mean.body))), Coordinate(parts.count)))
    total = Reduce("add", parts.outer, Apply("add", (_result(squares), between)))
    return means, squares, mean, Nest(f"{name}_var", "f32", kept, _divided(total, (*parts.outer, *parts.inner)))


def _mean(x: Expr, axes: tuple[Axis, ...]) -> Expr:
    return _divided(Reduce("add", axes, x), axes)


def _divided(x: Expr, axes: Sequence[Axis]) -> Expr:
    """Divided by the number of elements along axes: one by one, as a product of sizes may not fit 32 bits."""
    literal = prod(axis.extent.value for axis in axes if isinstance(axis.extent, Const))
    counts = [axis.extent for axis in axes if not isinstance(axis.extent, Const)]
    for count in (*counts, *((algebra.const(literal),) if literal > 1 or not counts else ())):
        x = Apply("div", (x, Coordinate(count)))
    return x


def _square(x: Expr) -> Expr:
    return Apply("mul", (x, x))
