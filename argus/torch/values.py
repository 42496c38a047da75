"""Tensors of a graph while it is lowered: a value for each element, computed from what is in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.nests.affine import flattened, stride
from argus.nests.nest import Axis, Constant, Expr, TensorType
from argus.nests.rewrite import reads

Indices = tuple[Index, ...]


@frozen(eq=False)
class Value:
    """A tensor as a function of coordinates. shape: over sizes. dtype: of its elements, by name.

    tensor: its name, if it is in memory as it is.
    """

    shape: Indices
    dtype: str
    element: Callable[[Indices], Expr]
    tensor: str | None = None
    _known: dict[Indices, Expr] = field(factory=dict[Indices, Expr], init=False)

    def at(self, index: Sequence[Index]) -> Expr:
        """The element at these coordinates: the same object each time."""
        place = tuple(index)
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self.element(place)
        return found


def number(value: float, dtype: str) -> Value:
    """A scalar."""
    return Value((), dtype, lambda _: Constant(float(value)))


def turned(value: Value) -> Value:
    """The matrices with rows for columns."""
    *batch, rows, columns = value.shape
    return Value((*batch, columns, rows), value.dtype, lambda index: value.at((*index[:-2], index[-1], index[-2])))


def is_turned(value: Value, axes: Sequence[Axis], types: Mapping[str, TensorType]) -> bool:
    """Whether columns of the matrices are neighbours in what they are computed from, and elements of rows are not.

    axes: new ones, of the value. types: of tensors in memory.
    """
    if len(axes) < len(("rows", "columns")):
        return False
    steps: set[tuple[bool, bool]] = set()
    for read in reads(value.at([axis.index for axis in axes])):
        place = flattened(read.index, types[read.tensor].shape)
        rows, columns = (stride(place, axis.symbol) for axis in axes[-2:])
        if rows is not algebra.const(0):  # a vector along the columns is read again and again
            steps.add((rows is algebra.const(1), columns is algebra.const(1)))
    return steps == {(True, False)}


def broadcast(value: Value, rank: int) -> Callable[[Indices], Expr]:
    """The value's element at coordinates of a result of a higher rank, along whose other axes it repeats."""
    missing = rank - len(value.shape)

    def element(index: Indices) -> Expr:
        own = index[missing:]
        zero = algebra.const(0)
        return value.at([zero if e is algebra.const(1) else i for i, e in zip(own, value.shape, strict=True)])

    return element
