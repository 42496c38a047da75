"""Products of matrices as nests: a sum of products of elements of two matrices, and what is computed of each sum."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from argus.core.index import Index
from argus.nests.canonical import Canonical
from argus.nests.nest import Apply, Axis, Read, Reduce, TensorType
from argus.nests.rewrite import reductions, symbols_of

_MATRIX = 2


@frozen
class Product:
    """One product of matrices, or a batch of them, within a nest.

    sums: the reduction. a, b: its operands, (..., rows, k) and (..., columns, k), or transposed, with k before rows or
    columns. batch: the axis of matrices, if there are several; shared: all have one matrix `a`.
    """

    sums: Reduce
    a: TensorType
    b: TensorType
    a_transposed: bool
    b_transposed: bool
    rows: Axis
    columns: Axis
    batch: Axis | None
    shared: bool

    @property
    def depth(self) -> Axis:
        return self.sums.axes[0]


def product_of_matrices(form: Canonical) -> Product | None:
    """The product whose sums a nest computes its elements of, each from one sum; None for other nests."""
    if len(form.nests) != 1:
        return None
    nest = form.nests[0]
    found = reductions(nest.body)
    types = {each.type.name: each.type for each in form.parameters}
    match found[:1], found[1:], nest.domain:
        case [Reduce(op="add", axes=(depth,), body=Apply(op="mul", args=(Read() as x, Read() as y)))], [], (
            *batch,
            rows,
            columns,
        ) if len(batch) <= 1:
            pass
        case _:
            return None
    if columns.symbol in symbols_of(x):
        x, y = y, x
    a, b = (_matrix_of(each, types, own, depth, batch) for each, own in ((x, rows), (y, columns)))
    if a is None or b is None or bool(batch) != b.batched:
        return None
    return Product(
        found[0],
        a.type,
        b.type,
        a.transposed,
        b.transposed,
        rows,
        columns,
        batch[0] if batch else None,
        bool(batch) and not a.batched,
    )


@frozen
class _Matrix:
    """An operand. batched: it has an axis of matrices. transposed: k is before the rows or columns."""

    type: TensorType
    batched: bool
    transposed: bool


def _matrix_of(
    read: Read, types: dict[str, TensorType], own: Axis, depth: Axis, batch: Iterable[Axis]
) -> _Matrix | None:
    """The operand of a product; None if it is not a whole tensor."""
    of = types[read.tensor]
    known: dict[Index, Axis] = {axis.index: axis for axis in (own, depth, *batch)}
    axes = [known.get(place) for place in read.index]
    *before, row, last = axes if len(axes) >= _MATRIX else (None, None)
    if read.outside is not None or {row, last} != {own, depth} or before not in ([], list(batch)):
        return None
    whole = all(axis is not None and axis.extent is extent for axis, extent in zip(axes, of.shape, strict=True))
    return _Matrix(of, bool(before), last == own) if whole else None
