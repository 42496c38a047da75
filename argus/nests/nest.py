"""The data of nests: a domain, and the value of each of its elements as an expression over reads of tensors.

    Expr = Read(tensor, index, dtype, outside) | Constant(value) | Coordinate(index)
         | Apply(op, args) | Select(test, then, other) | Convert(dtype, arg) | Reduce(op, axes, body)
    Test = Compare(op, left, right) | Inside(condition) | Both(tests) | Either(tests) | Negated(test)

Indices and extents are index expressions (`argus.core.index`) over the axes' symbols and sizes; equal ones are one
object. Views, permutations, expansions, slices, flips and padding have vanished into the indices of reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Union

from attrs import Factory, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.index_text import show
from argus.core.target import LARGEST_SIZE

CompareOp = Literal["<", "<=", "=="]
ReduceOp = Literal["add", "mul", "max", "min", "argmax", "argmin"]


def size(name: str) -> Index:
    """A size as an index expression, from 0 to the largest that kernels take."""
    return algebra.sym(Symbol(name, "size", 0, LARGEST_SIZE))


@frozen
class Axis:
    """A coordinate that runs from 0 to the extent, exclusive.

    extent: over sizes; of a reduced axis also over the axes around it (a prefix sum has `n + 1`). A nest's axes have
    different names.
    """

    name: str
    extent: Index

    @property
    def symbol(self) -> Symbol:
        high = max(0, self.extent.value - 1) if isinstance(self.extent, Const) else None
        return Symbol(self.name, "fresh", 0, high)

    @property
    def index(self) -> Index:
        """The coordinate as an index expression."""
        return algebra.sym(self.symbol)


@frozen(cache_hash=True)
class Read:
    """An element of a tensor. index: one expression for each axis of the tensor.

    dtype: the tensor's. outside: the value where an index lies outside the tensor; None where none does.
    """

    tensor: str
    index: tuple[Index, ...]
    dtype: str
    outside: float | None = None


@frozen(cache_hash=True)
class Constant:
    """A number; true is 1 and false 0."""

    value: float


@frozen(cache_hash=True)
class Coordinate:
    """An integer computed from coordinates and sizes, as a number."""

    index: Index


@frozen(cache_hash=True)
class Apply:
    """An element operation by its name in `argus.core.elementwise`, or `pow`, on values."""

    op: str
    args: tuple[Expr, ...]


@frozen(cache_hash=True)
class Select:
    """`then` where the test holds, else `other`."""

    test: Test
    then: Expr
    other: Expr


@frozen(cache_hash=True)
class Convert:
    """The value rounded to another type of elements; an integer in another type of integers, modulo 2^bits."""

    dtype: str
    arg: Expr


@frozen(cache_hash=True)
class Reduce:
    """The body combined over axes that belong to this node; without an element, the operation's identity.

    argmax, argmin: the first coordinate along the one axis at which the body is greatest or least.
    """

    op: ReduceOp
    axes: tuple[Axis, ...]
    body: Expr


Expr = Union[Read, Constant, Coordinate, Apply, Select, Convert, Reduce]


@frozen(cache_hash=True)
class Compare:
    """A comparison of two values; false if either is NaN."""

    op: CompareOp
    left: Expr
    right: Expr


@frozen(cache_hash=True)
class Inside:
    """A condition on coordinates and sizes."""

    condition: Cond


@frozen(cache_hash=True)
class Both:
    tests: tuple[Test, ...]


@frozen(cache_hash=True)
class Either:
    tests: tuple[Test, ...]


@frozen(cache_hash=True)
class Negated:
    test: Test


Test = Union[Compare, Inside, Both, Either, Negated]


@frozen
class TensorType:
    """A dense tensor, last axis fastest.

    shape: over sizes. dtype: the type of elements by its name in `argus.core.dtype`, or `i64` or `bool`.
    """

    name: str
    shape: tuple[Index, ...]
    dtype: str

    @property
    def extents(self) -> tuple[str, ...]:
        """The extents as text: numbers and names of sizes, in a canonical form."""
        return tuple(map(show, self.shape))


@frozen
class Nest:
    """One output, whose element at the domain's coordinates is the body, rounded to the type of the output.

    The output's shape is the domain's extents.
    """

    output: str
    dtype: str
    domain: tuple[Axis, ...]
    body: Expr

    @property
    def type(self) -> TensorType:
        return TensorType(self.output, tuple(axis.extent for axis in self.domain), self.dtype)


@frozen
class Graph:
    """What a graph of tensor operations computes.

    nests: in an order in which each reads inputs and outputs of those before. outputs: names of inputs or of nests'
    outputs, in the order of the results. mutated: the tensor that holds the final value of an input, by the input.
    """

    inputs: tuple[TensorType, ...]
    nests: tuple[Nest, ...]
    outputs: tuple[str, ...]
    mutated: Mapping[str, str] = field(default=Factory(dict[str, str]))

    @property
    def tensors(self) -> Mapping[str, TensorType]:
        """All tensors by name."""
        return {each.name: each for each in (*self.inputs, *(nest.type for nest in self.nests))}
