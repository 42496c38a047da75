"""Which products an output is the sum of, stated for all of a contraction at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Int, IntLike, OfInts, uniform_index, unwrap
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.index import Index, Symbol
from argus.core.ir import Assert, Products

Place = tuple[IntLike, ...]
Pairs = Iterable[tuple[Place, Place]]


def every(*extents: IntLike) -> tuple[tuple[Int, ...], ...]:
    """All coordinates below these extents, for what an `assert_products` sums over.

    Raises E106 outside of one, or where it is asked for twice.
    """
    tracer = current("every")
    if tracer.bound is None or tracer.bound:
        fault(
            "E106", "`every` stands once in what `assert_products` is given", help="write one `for ... in every(...)`"
        )
    for extent in extents:
        size = uniform_index(extent)
        high = None if size.range[1] is None else size.range[1] - 1
        tracer.bound.append((Symbol(tracer.unique("each"), "fresh", 0, high), size))
    return (tuple(Int(algebra.sym(symbol)) for symbol, _ in tracer.bound),)


def assert_products(tensor: Tensor, products: OfInts[Pairs]) -> None:
    """Each element of the tensor is the sum of these products: pairs of places in the two factors.

    products: a function of the element's coordinates; places beyond a factor contribute nothing.
    """
    tracer = current("assert_products")
    if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`assert_products` takes a tensor, found {describe_value(tensor)}")
    tracer.bound = []
    own = tuple(Int(algebra.coord(axis)) for axis in range(len(tensor.view.shape)))
    pairs = tuple((_place(a), _place(b)) for a, b in cast(Callable[..., Pairs], products)(*own))
    over, tracer.bound = tuple(tracer.bound), None
    tracer.emit(Assert(Products(tensor.view, pairs, over), span=tracer.span()))


def _place(coordinates: Place) -> tuple[Index, ...]:
    return tuple(unwrap(each) for each in coordinates)
