"""How much a nest multiplies for what it reads: whether it is for matrix units, whatever else it computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from argus.core.walk import symbols
from argus.nests.affine import computed
from argus.nests.nest import Apply, Axis, Nest, Reduce
from argus.nests.rewrite import reads, reductions

_MANY = 1 << 24
"""Products below which any kernel is quick."""
_EACH = 32
"""Products for each element that is read, from which on arithmetic takes longer than memory."""


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
    read = [{symbol for each in one.index for symbol in symbols(each)} for one in reads(term.body)]
    used = set[object]().union(*read)
    products = _count((axis for axis in axes if axis.symbol in used), values)
    elements = sum(_count((axis for axis in axes if axis.symbol in own), values) for own in read)
    return products >= _MANY and products >= _EACH * elements


def _count(axes: Iterable[Axis], values: Mapping[str, int]) -> int:
    return prod(int(computed(axis.extent, values)) for axis in axes)
