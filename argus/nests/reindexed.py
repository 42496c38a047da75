"""Sums over the places of inputs instead of those of outputs, and taps that read the same inputs as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from itertools import product as combinations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Sym, Symbol
from argus.core.walk import substitute, symbols
from argus.nests.affine import extents_of, in_range
from argus.nests.linear import Fresh, Term
from argus.nests.nest import Axis, Constant, Expr, Inside, Nest, Read, Reduce, Select, TensorType
from argus.nests.rewrite import indices, placed, reads
from argus.nests.simplify import select

_FEW = 16
"""Places of a window, at most."""


def symbols_in(expr: Expr) -> set[Symbol]:
    """The axes and sizes that a value depends on."""
    nodes = [*indices(expr), *(place for each in reads(expr) for place in each.index)]
    return set[Symbol]().union(*(symbols(each) for each in nodes))


def read_of(factor: Expr) -> Read | None:
    """The read that a factor is, 0 outside of the tensor or under a condition on coordinates; None for other values."""
    match factor:
        case Read(outside=outside) if outside in (None, 0.0):
            return factor
        case Select(test=Inside(), then=Read(outside=outside) as read, other=Constant(value=0.0)) if outside in (
            None,
            0.0,
        ):
            return read
        case _:
            return None


def with_read(factor: Expr, read: Read) -> Expr:
    """The same with another read."""
    return Select(factor.test, read, factor.other) if isinstance(factor, Select) else read


def counted_from_inputs(
    factor: Expr, axes: tuple[Axis, ...], types: Mapping[str, TensorType], fresh: Fresh, known: Mapping[Symbol, Axis]
) -> tuple[Expr, tuple[Axis, ...]]:
    """The sum of a factor over axes, over the places of the tensor that it reads where they run through these.

    So the sum over all y of x[y - r], 0 outside, is that over all i of x[i] if each is read. known: axes by symbol.
    """
    read = read_of(factor)
    if read is None or read.outside is None:
        return factor, axes
    for axis in axes:
        for k, extent in enumerate(types[read.tensor].shape):
            place = read.index[k]
            if axis.symbol not in symbols(place) or sum(axis.symbol in symbols(each) for each in read.index) > 1:
                continue
            here = fresh(Axis(f"{axis.name}_i", extent))
            at = _place_of(axis, place, here.index)
            if at is None:
                continue
            moved = {axis.symbol: at}
            condition = (
                factor.test.condition if isinstance(factor, Select) and isinstance(factor.test, Inside) else None
            )
            tests = algebra.TRUE if condition is None else substitute(condition, moved)
            extents = extents_of((*known.values(), here))
            if not in_range(at, axis.extent, extents):
                if condition is None:
                    continue  # a condition for another
                tests = algebra.all_of((tests, algebra.le(0, at), algebra.lt(at, axis.extent)))
            index = tuple(here.index if n == k else substitute(each, moved) for n, each in enumerate(read.index))
            shape = types[read.tensor].shape
            whole = all(in_range(each, size, extents) for each, size in zip(index, shape, strict=True))
            made = select(Inside(tests), evolve(read, index=index, outside=None if whole else 0.0), Constant(0.0))
            rest = tuple(here if each is axis else each for each in axes)
            return counted_from_inputs(made, rest, types, fresh, known) if read_of(made) is not None else (made, rest)
    return factor, axes


def _place_of(axis: Axis, place: Index, here: Index) -> Index | None:
    """The coordinate along the axis at which the place is `here`: of y - r, here + r; of (y - r) // 2, 2 here + r."""
    step = 1
    if isinstance(place, Bin) and place.op == "//" and isinstance(place.right, Const):
        place, step = place.left, place.right.value
    rest = substitute(place, {axis.symbol: algebra.const(0)})
    if algebra.sub(place, rest) is not axis.index or place is axis.index:
        return None
    return algebra.sub(algebra.mul(here, step), rest)


@frozen
class _Window:
    """A place that is read, by the number of its axis: of a window's own axis, and of a tap, if there is one.

    first: the place of the least of both. offsets: from it, by the coordinates of both; None where nothing is read.
    """

    number: int
    axes: tuple[Axis, ...]
    first: Index
    offsets: Mapping[tuple[int, ...], int]


def grouped(term: Term, name: str, domain: Sequence[Axis], fresh: Fresh) -> tuple[Nest, Term] | None:
    """A term over windows of outputs and taps, as one over the inputs that they read, with sums of filters.

    sum over u, r of x[p + u + r] f[r] = sum over e of x[p + e] g[e], with g[e] = sum over u, r with u + r = e of f[r]

    name: of the sums of filters. None for other terms.
    """
    pair = _inputs_and_filters(term)
    if pair is None:
        return None
    x, f, others = pair
    read = read_of(x)
    assert read is not None
    windows = list(_windows(x, read, term, symbols_in(f)))
    alone = {axis.symbol for axis in term.axes} & symbols_in(x) - symbols_in(f)
    moved = {axis for each in windows for axis in each.axes}
    if not windows or alone - {axis.symbol for axis in moved} or any(not each.offsets for each in windows):
        return None
    taps: list[Axis] = []
    index = list(read.index)
    equal = [x.test.condition] if isinstance(x, Select) and isinstance(x.test, Inside) else []
    for each in windows:
        least, most = min(each.offsets.values()), max(each.offsets.values())
        tap = fresh(Axis("e", algebra.const(most - least + 1)))
        taps.append(tap)
        start = algebra.add(each.first, least)
        equal.append(algebra.eq(read.index[each.number], algebra.add(start, tap.index)))
        index[each.number] = algebra.add(start, tap.index)
    condition = algebra.all_of(equal)
    inner = tuple(axis for axis in term.axes if axis in moved)
    kept = tuple(axis for axis in term.axes if axis not in moved)
    own = symbols_in(f) - {axis.symbol for axis in inner}
    if symbols(condition) - {axis.symbol for axis in (*inner, *taps)}:
        return None
    axes = (*(a for a in domain if a.symbol in own), *(a for a in kept if a.symbol in own), *taps)
    filters = Nest(name, "f32", axes, Reduce("add", inner, select(Inside(condition), f, Constant(0.0))))
    made = Read(name, tuple(axis.index for axis in axes), "f32")
    inputs = evolve(read, index=tuple(index))
    return filters, evolve(term, axes=(*kept, *taps), factors=(inputs, made, *others))


def joined(
    sums: Nest, x: Read, f: Read, axes: Sequence[Axis], known: Mapping[Symbol, Axis], name: str
) -> tuple[Nest, Nest, Read, Read, tuple[Axis, ...]] | None:
    """Two axes of a sum, over neighbouring axes of the sums `x` that it reads, as one axis.

    The sums with that axis, the filters with it first, under a new name, what reads both, and the axes; None if there
    are no two such axes. known: axes by symbol.
    """
    places = {axis.index: axis for axis in axes}
    pairs = [k for k, (a, b) in enumerate(pairwise(x.index)) if a in places and b in places]
    if not pairs or f.outside is not None or any(place not in f.index for place in x.index[pairs[0] : pairs[0] + 2]):
        return None
    at = pairs[0]
    outer, inner = places[x.index[at]], places[x.index[at + 1]]
    one = Axis(f"{outer.name}_{inner.name}", algebra.mul(outer.extent, inner.extent))
    parts = algebra.floordiv(one.index, inner.extent), algebra.mod(one.index, inner.extent)
    own = dict(zip((axis.symbol for axis in sums.domain[at : at + 2]), parts, strict=True))
    domain = (*sums.domain[:at], one, *sums.domain[at + 2 :])
    made = evolve(sums, domain=domain, body=placed(sums.body, own))
    rest = [place for place in f.index if place not in (outer.index, inner.index)]
    others = [known[place.symbol] for place in rest if isinstance(place, Sym)]
    if len(others) < len(rest):
        return None
    here = {outer.symbol: parts[0], inner.symbol: parts[1]}
    index = tuple(substitute(place, here) for place in f.index)
    filters = Nest(name, "f32", (one, *others), evolve(f, index=index))
    inputs = evolve(x, index=(*x.index[:at], one.index, *x.index[at + 2 :]))
    weights = Read(name, (one.index, *rest), "f32")
    return made, filters, inputs, weights, (one, *(axis for axis in axes if axis not in (outer, inner)))


def _inputs_and_filters(term: Term) -> tuple[Expr, Read, list[Expr]] | None:
    """What is read at places of windows, the filters, and factors without axes."""
    own = {axis.symbol for axis in term.axes}
    inside = [each for each in term.factors if symbols_in(each) & own]
    others = [each for each in term.factors if not symbols_in(each) & own]
    match inside:
        case [x, Read(outside=None) as f] if read_of(x) is not None:
            return x, f, others
        case [Read(outside=None) as f, x] if read_of(x) is not None:
            return x, f, others
        case _:
            return None


def _windows(x: Expr, read: Read, term: Term, of_filters: set[Symbol]) -> Iterator[_Window]:
    """The places that depend on an axis which filters do not have."""
    for number, place in enumerate(read.index):
        axes = tuple(axis for axis in term.axes if axis.symbol in symbols(place))
        if not any(axis.symbol not in of_filters for axis in axes):
            continue
        counts = [axis.extent.value if isinstance(axis.extent, Const) else _FEW + 1 for axis in axes]
        offsets: dict[tuple[int, ...], int] = {}
        if max(counts) <= _FEW:
            first = _at(place, axes, (0,) * len(axes))
            for at in combinations(*map(range, counts)):
                found = algebra.sub(_at(place, axes, at), first)
                if not isinstance(found, Const):
                    offsets.clear()
                    break
                if not _is_never(x, axes, at):
                    offsets[at] = found.value
            yield _Window(number, axes, first, offsets)
        else:
            yield _Window(number, axes, place, {})


def _at(index: Index, axes: Sequence[Axis], at: Sequence[int]) -> Index:
    return substitute(index, {axis.symbol: algebra.const(n) for axis, n in zip(axes, at, strict=True)})


def _is_never(x: Expr, axes: Sequence[Axis], at: Sequence[int]) -> bool:
    """Whether nothing is read at these coordinates."""
    if not isinstance(x, Select) or not isinstance(x.test, Inside):
        return False
    return (
        substitute(x.test.condition, {a.symbol: algebra.const(n) for a, n in zip(axes, at, strict=True)})
        is algebra.FALSE
    )
