"""The claim `assert_products`: which products of input elements each output element is the sum of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import CoordinateFunction, Int, IntLike, uniform_index, unwrap
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.index import Index, Symbol
from argus.core.ir import Assert, Products

Coordinates = tuple[IntLike, ...]
Pairs = Iterable[tuple[Coordinates, Coordinates]]


def every(*extents: IntLike) -> tuple[tuple[Int, ...], ...]:
    """The summation indices of an `assert_products`: all coordinates below these extents.

    Raises E106 outside an `assert_products`, or for a second call in one.
    """
    tracer = current("every")
    if tracer.bound is None or tracer.bound:
        fault("E106", "`every` is called once, inside `assert_products`", help="write one `for ... in every(...)`")
    for extent in extents:
        size = uniform_index(extent)
        high = None if size.range[1] is None else size.range[1] - 1
        tracer.bound.append((Symbol(tracer.unique("each"), "fresh", 0, high), size))
    return (tuple(Int(algebra.sym(symbol)) for symbol, _ in tracer.bound),)


def assert_products(tensor: Tensor, products: CoordinateFunction[Pairs]) -> None:
    """Claim: each element of the tensor is the sum of these products of elements of two tensors.

    products: from the element's coordinates to pairs of coordinates, one for each factor; products of out-of-bounds
    elements contribute nothing.
    """
    tracer = current("assert_products")
    if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`assert_products` takes a tensor, found {describe_value(tensor)}")
    tracer.bound = []
    own = tuple(Int(algebra.coord(axis)) for axis in range(len(tensor.view.shape)))
    pairs = tuple((_unwrap_all(a), _unwrap_all(b)) for a, b in cast(Callable[..., Pairs], products)(*own))
    over, tracer.bound = tuple(tracer.bound), None
    tracer.emit(Assert(Products(tensor.view, pairs, over), span=tracer.span()))


def _unwrap_all(coordinates: Coordinates) -> tuple[Index, ...]:
    return tuple(unwrap(each) for each in coordinates)
