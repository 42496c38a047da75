"""The numbers that nests compute, in float64: what a kernel's run is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from argus.core.elementwise import ELEMENT_OPS
from argus.core.wrapping import wrapped
from argus.nests.affine import computed
from argus.nests.integers import TYPES
from argus.nests.nest import (
    Apply,
    Both,
    Compare,
    Constant,
    Convert,
    Coordinate,
    Either,
    Expr,
    Graph,
    Inside,
    Negated,
    Nest,
    Read,
    Reduce,
    Select,
    Test,
)

Array = npt.NDArray[Any]
Numbers = Mapping[str, Any]


def evaluated(graph: Graph, given: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """All tensors of a graph by name, the inputs included."""
    tensors = dict(given)
    for nest in graph.nests:
        tensors[nest.output] = nest_value(nest, tensors, sizes)
    return tensors


def nest_value(nest: Nest, tensors: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
    """The nest's output, in float64."""
    shape = tuple(int(computed(axis.extent, sizes)) for axis in nest.domain)
    places = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij", sparse=True)
    numbers = {**sizes, **{axis.name: place for axis, place in zip(nest.domain, places, strict=True)}}
    with np.errstate(all="ignore"):
        found = _Numbers(tensors, numbers).of(nest.body)
    return np.ascontiguousarray(np.broadcast_to(np.asarray(found, np.float64), shape))


_where: Any = np.where


class _Numbers:
    """Values at arrays of coordinates, which broadcast; shared expressions are computed once."""

    def __init__(self, tensors: Mapping[str, Array], numbers: Numbers) -> None:
        self._tensors = tensors
        self._numbers = numbers
        self._known: dict[int, Any] = {}

    def of(self, expr: Expr) -> Any:  # noqa: ANN401 reason: an array or a number
        if id(expr) not in self._known:
            self._known[id(expr)] = self._made(expr)
        return self._known[id(expr)]

    def _made(self, expr: Expr) -> Any:  # noqa: ANN401 reason: as above
        match expr:
            case Read():
                return self._element(expr)
            case Constant(value=value):
                return np.float64(value)
            case Coordinate(index=index):
                return np.asarray(computed(index, self._numbers), np.float64)
            case Apply(op="pow", args=args):
                return np.power(*map(self.of, args))
            case Apply(op=op, args=args):
                return ELEMENT_OPS[op].meaning(*(np.asarray(self.of(each), np.float64) for each in args))
            case Select(test=test, then=then, other=other):
                return _where(self._test(test), self.of(then), self.of(other))
            case Convert(dtype=dtype, arg=arg):
                found = self.of(arg)
                return wrapped(found, TYPES[dtype].bits) if dtype in TYPES else found
            case Reduce():
                return self._reduced(expr)
            case _:
                assert_never(expr)

    def _element(self, read: Read) -> Any:  # noqa: ANN401 reason: as above
        tensor = self._tensors[read.tensor]
        at = [np.asarray(computed(each, self._numbers)) for each in read.index]
        if read.outside is None:
            return tensor[tuple(at)].astype(np.float64) if at else np.float64(tensor[()])
        inside = np.asarray(True)
        for place, extent in zip(at, tensor.shape, strict=True):
            inside = inside & (place >= 0) & (place < extent)
        clipped = tuple(np.clip(place, 0, extent - 1) for place, extent in zip(at, tensor.shape, strict=True))
        return np.where(inside, tensor[clipped].astype(np.float64), read.outside)

    def _reduced(self, reduce: Reduce) -> Any:  # noqa: ANN401 reason: as above
        """Along new last axes of all arrays of coordinates; an extent may depend on coordinates."""
        count = len(reduce.axes)
        numbers = {name: np.asarray(each)[(..., *([None] * count))] for name, each in self._numbers.items()}
        within: Any = np.asarray(True)
        for k, axis in enumerate(reduce.axes):
            extent = np.asarray(computed(axis.extent, numbers))
            place = np.arange(int(extent.max(initial=0))).reshape(-1, *([1] * (count - 1 - k)))
            numbers[axis.name] = place
            within = within & (place < extent)
        body = np.asarray(_Numbers(self._tensors, numbers).of(reduce.body), np.float64)
        axes = tuple(range(-count, 0))
        shape = np.broadcast_shapes(body.shape, np.shape(within), *(np.shape(numbers[a.name]) for a in reduce.axes))
        body, within = np.broadcast_to(body, shape), np.broadcast_to(within, shape)
        match reduce.op:
            case "add":
                return np.sum(body, axes, where=within)
            case "mul":
                return np.prod(body, axes, where=within)
            case "max":
                return np.max(body, axes, where=within, initial=-np.inf)
            case "min":
                return np.min(body, axes, where=within, initial=np.inf)
            case "argmax":
                return np.argmax(np.where(within, body, -np.inf), -1)
            case "argmin":
                return np.argmin(np.where(within, body, np.inf), -1)
            case _:
                assert_never(reduce.op)

    def _test(self, test: Test) -> Any:  # noqa: ANN401 reason: as above
        match test:
            case Compare(op=op, left=left, right=right):
                a, b = self.of(left), self.of(right)
                return np.less(a, b) if op == "<" else np.less_equal(a, b) if op == "<=" else np.equal(a, b)
            case Inside(condition=condition):
                return computed(condition, self._numbers)
            case Both(tests=tests):
                return np.logical_and.reduce(np.broadcast_arrays(*map(self._test, tests)))
            case Either(tests=tests):
                return np.logical_or.reduce(np.broadcast_arrays(*map(self._test, tests)))
            case Negated(test=negated):
                return np.logical_not(self._test(negated))
            case _:
                assert_never(test)
