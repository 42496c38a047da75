"""How much a nest multiplies for what it reads: whether it is for matrix units; and how much it computes besides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import assert_never

from argus.core.cost.costs import COMPUTED, INSTRUCTIONS, SPECIAL
from argus.core.index import Bin
from argus.core.walk import symbols, topological
from argus.nests.affine import bound, computed, extents_of
from argus.nests.nest import Apply, Axis, Constant, Convert, Coordinate, Expr, Nest, Read, Reduce, Select
from argus.nests.rewrite import expressions, reads, reductions

_MANY = 1 << 24
"""Products below which any kernel is quick."""
_EACH = 32
"""Products for each element that is read, from which on arithmetic takes longer than memory."""
_SPECIAL = 4
"""Instructions in the time of one of the special function unit."""

_COMPUTED = COMPUTED | {"tanh"}
"""Functions of nests that are computed: the tanh of a nest is the accurate one."""


def instructions(body: Expr, sums: Reduce) -> int:
    """About how many instructions compute an element from its sum, each value once."""
    return sum(map(_instructions, set(expressions(body)) - set(expressions(sums))))


def _instructions(of: Expr) -> int:
    match of:
        case Apply(op=op):
            return INSTRUCTIONS if op in _COMPUTED else _SPECIAL if op in SPECIAL else 1
        case Select() | Convert():
            return 1
        case Read() | Constant() | Coordinate() | Reduce():
            return 0
        case _:
            assert_never(of)


def multiplies(nest: Nest, values: Mapping[str, int]) -> bool:
    """Whether a nest sums so many products of elements of two tensors that arithmetic decides. values: of the sizes."""
    return any(_is_heavy(nest, term, values) for term in reductions(nest.body) if _contracts(term))


def _contracts(term: Reduce) -> bool:
    of = term.body
    return term.op == "add" and isinstance(of, Apply) and of.op == "mul" and len({e.tensor for e in reads(of)}) > 1


def _is_heavy(nest: Nest, term: Reduce, values: Mapping[str, int]) -> bool:
    axes = (*nest.domain, *term.axes)
    if any(symbol.name not in values for axis in axes for symbol in symbols(axis.extent)):
        return False
    read = reads(term.body)
    used = set[object]().union(*(symbols(each) for one in read for each in one.index))
    products = _count((axis for axis in axes if axis.symbol in used), values)
    elements = sum(_elements(each, axes, values) for each in read)
    return products >= _MANY and products >= _EACH * elements


def _elements(read: Read, axes: Sequence[Axis], values: Mapping[str, int]) -> int:
    """How many elements are read at most; those that several coordinates read by a quotient count once."""
    used, extents = set[object]().union(*(symbols(each) for each in read.index)), extents_of(axes)
    found = _count((axis for axis in axes if axis.symbol in used), values)
    if not any(isinstance(each, Bin) and each.op == "//" for each in topological(read.index)):
        return found
    ends = [(bound(each, extents, upper=True), bound(each, extents, upper=False)) for each in read.index]
    spans = [int(computed(high, values)) - int(computed(low, values)) + 1 for high, low in ends if high and low]
    return min(found, prod(spans)) if len(spans) == len(ends) else found


def _count(axes: Iterable[Axis], values: Mapping[str, int]) -> int:
    return prod(int(computed(axis.extent, values)) for axis in axes)
