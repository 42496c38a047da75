"""Nests of reductions, windows and scans, for tests and benchmarks: each with the tensors that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index
from argus.nests.nest import (
    Apply,
    Axis,
    Compare,
    Constant,
    Coordinate,
    Expr,
    Nest,
    Read,
    Reduce,
    ReduceOp,
    Select,
    TensorType,
    size,
)

EPSILON = 2.0**-17
"""What norms add to a variance."""


@frozen
class Case:
    """Nests of one domain, and the tensors that they read."""

    nests: tuple[Nest, ...]
    inputs: tuple[TensorType, ...]


def apply(op: str, *args: Expr) -> Apply:
    return Apply(op, args)


def read(tensor: str, *index: Index, outside: float | None = None) -> Read:
    return Read(tensor, index, "f32", outside)


def tensor(name: str, *shape: Index) -> TensorType:
    return TensorType(name, shape, "f32")


def number(extent: Index) -> Coordinate:
    """An extent as a number."""
    return Coordinate(extent)


def square(x: Expr) -> Expr:
    return apply("mul", x, x)


def total(axis: Axis, body: Callable[[Axis], Expr], op: ReduceOp = "add") -> Reduce:
    return Reduce(op, (axis,), body(axis))


# -- reductions ----------------------------------------------------------------------------------------------

A, J, B = (Axis(name, size(extent)) for name, extent in (("a", "A"), ("j", "J"), ("b", "B")))
_MIDDLE = tensor("X", A.extent, J.extent, B.extent)
Of = Callable[[Axis], Expr]
"""The elements along an axis."""


def _along(name: str) -> Axis:
    """Another axis of the reduced extent."""
    return Axis(name, J.extent)


def _middle(axis: Axis) -> Expr:
    return read("X", A.index, axis.index, B.index)


def _rows(axis: Axis) -> Expr:
    return read("X", A.index, axis.index)


def mean(x: Of, name: str = "k") -> Expr:
    return apply("div", total(_along(name), x), number(J.extent))


def softmax(x: Of) -> Of:
    top = total(_along("top"), x, "max")

    def weight(axis: Axis) -> Expr:
        return apply("exp", apply("sub", x(axis), top))

    return lambda axis: apply("div", weight(axis), total(_along("k"), weight))


def log_softmax(x: Of) -> Of:
    top = total(_along("top"), x, "max")
    below = apply("log", total(_along("k"), lambda axis: apply("exp", apply("sub", x(axis), top))))
    return lambda axis: apply("sub", apply("sub", x(axis), top), below)


def rms_norm(x: Of) -> Of:
    below = apply("sqrt", apply("add", mean(lambda axis: square(x(axis))), Constant(EPSILON)))
    return lambda axis: apply("div", x(axis), below)


def l1_norm(x: Of) -> Of:
    return lambda axis: apply("div", x(axis), mean(lambda each: apply("abs", x(each))))


def l2_norm(x: Of) -> Of:
    norm = apply("sqrt", total(_along("k"), lambda axis: square(x(axis))))
    return lambda axis: apply("div", x(axis), norm)


def layer_norm(x: Of) -> Of:
    """With a weight and a bias for each element of a row."""
    middle = mean(x)

    def deviation(axis: Axis) -> Expr:
        return apply("sub", x(axis), middle)

    variance = mean(lambda axis: square(deviation(axis)), "l")
    scale = apply("div", Constant(1.0), apply("sqrt", apply("add", variance, Constant(EPSILON))))

    def normed(axis: Axis) -> Expr:
        return apply(
            "add", apply("mul", apply("mul", deviation(axis), scale), read("G", axis.index)), read("H", axis.index)
        )

    return normed


def reduced(op: ReduceOp, *, columns: bool, of: Callable[[Expr], Expr] = lambda x: x) -> Case:
    """X (A, J, B) along J, or X (A, J)."""
    x = _middle if columns else _rows
    domain = (A, B) if columns else (A,)
    body = total(J, lambda axis: of(x(axis)), op)
    return Case((Nest("Y", "f32", domain, body),), (_MIDDLE if columns else tensor("X", A.extent, J.extent),))


def averaged(*, columns: bool) -> Case:
    found = reduced("add", columns=columns)
    (nest,) = found.nests
    body = apply("div", nest.body, number(J.extent))
    return Case((Nest("Y", "f32", nest.domain, body),), found.inputs)


def along(of: Callable[[Of], Of], *, columns: bool, weights: bool = False) -> Case:
    """What a function makes of the elements along J, at each of them."""
    x = _middle if columns else _rows
    domain = (A, J, B) if columns else (A, J)
    inputs = (_MIDDLE if columns else tensor("X", A.extent, J.extent),)
    more = (tensor("G", J.extent), tensor("H", J.extent)) if weights else ()
    return Case((Nest("Y", "f32", domain, of(x)(J)),), (*inputs, *more))


def loss(of: Callable[[Expr, Expr], Expr]) -> Case:
    """The mean of what a function makes of two elements, in each row."""
    x = read("X", A.index, J.index)
    z = read("Z", A.index, J.index)
    body = apply("div", Reduce("add", (J,), of(x, z)), number(J.extent))
    return Case((Nest("Y", "f32", (A,), body),), tuple(tensor(name, A.extent, J.extent) for name in ("X", "Z")))


def squared_error(x: Expr, z: Expr) -> Expr:
    return square(apply("sub", x, z))


def smooth_l1(x: Expr, z: Expr) -> Expr:
    off = apply("abs", apply("sub", x, z))
    near = apply("mul", Constant(0.5), square(off))
    return Select(Compare("<", off, Constant(1.0)), near, apply("sub", off, Constant(0.5)))


def hinge(x: Expr, z: Expr) -> Expr:
    return apply("max", apply("sub", Constant(1.0), apply("mul", x, z)), Constant(0.0))


# -- windows -------------------------------------------------------------------------------------------------


@frozen
class Window:
    """A window along one axis: how many elements, and how they and the next window's lie."""

    count: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def extent(self, extent: Index) -> Index:
        """The extent of the output along an axis of this extent."""
        left = algebra.add(extent, 2 * self.padding - self.dilation * (self.count - 1) - 1)
        return algebra.add(algebra.floordiv(left, self.stride), 1)

    def place(self, out: Axis, own: Axis) -> Index:
        at = algebra.add(algebra.mul(out.index, self.stride), algebra.mul(own.index, self.dilation))
        return algebra.sub(at, self.padding)


def _windows(windows: Sequence[Window]) -> tuple[list[Index], list[Axis], list[Axis]]:
    """Extents of the input, axes of the output and of the windows."""
    extents = [size(name) for name in ("D", "H", "W")[-len(windows) :]]
    outer = [Axis(f"o{at}", w.extent(extent)) for at, (w, extent) in enumerate(zip(windows, extents, strict=True))]
    inner = [Axis(f"w{at}", algebra.const(w.count)) for at, w in enumerate(windows)]
    return extents, outer, inner


def pool(op: ReduceOp, *windows: Window) -> Case:
    """The maximum, or the mean with zeros outside, of windows of X (N, C, ...)."""
    n, c = Axis("n", size("N")), Axis("c", size("C"))
    extents, outer, inner = _windows(windows)
    places = [w.place(o, i) for w, o, i in zip(windows, outer, inner, strict=True)]
    padded = any(w.padding for w in windows)
    outside = (-inf if op == "max" else 0.0) if padded else None
    body: Expr = Reduce(op, tuple(inner), read("X", n.index, c.index, *places, outside=outside))
    if op == "add":
        body = apply("div", body, Constant(float(prod(w.count for w in windows))))
    return Case((Nest("Y", "f32", (n, c, *outer), body),), (tensor("X", n.extent, c.extent, *extents),))


def depthwise(*windows: Window, bias: bool = False) -> Case:
    """The convolution of each channel of X (N, C, ...) with its own weights F (C, ...)."""
    n, c = Axis("n", size("N")), Axis("c", size("C"))
    extents, outer, inner = _windows(windows)
    places = [w.place(o, i) for w, o, i in zip(windows, outer, inner, strict=True)]
    x = read("X", n.index, c.index, *places, outside=0.0 if any(w.padding for w in windows) else None)
    product = apply("mul", x, read("F", c.index, *(axis.index for axis in inner)))
    body: Expr = Reduce("add", tuple(inner), product)
    inputs = [tensor("X", n.extent, c.extent, *extents), tensor("F", c.extent, *(axis.extent for axis in inner))]
    if bias:
        body = apply("add", body, read("G", c.index))
        inputs.append(tensor("G", c.extent))
    return Case((Nest("Y", "f32", (n, c, *outer), body),), tuple(inputs))


# -- scans ---------------------------------------------------------------------------------------------------


def scan(op: ReduceOp, *, backwards: bool = False, exclusive: bool = False, masked: bool = False) -> Case:
    """The sums or products of each row of X (A, J) up to each element; masked: of X M."""
    length = algebra.sub(J.extent, J.index) if backwards else algebra.add(J.index, 1)
    own = Axis("k", algebra.sub(length, 1) if exclusive else length)
    at = algebra.sub(algebra.sub(J.extent, 1), own.index) if backwards else own.index
    x: Expr = read("X", A.index, at)
    if masked:
        x = apply("mul", x, read("M", A.index, at))
    inputs = tuple(tensor(name, A.extent, J.extent) for name in ("X", *(("M",) if masked else ())))
    return Case((Nest("Y", "f32", (A, J), Reduce(op, (own,), x)),), inputs)


def column_scan(op: ReduceOp) -> Case:
    """The same of X (A, J, B) along J."""
    own = Axis("k", algebra.add(J.index, 1))
    return Case((Nest("Y", "f32", (A, J, B), Reduce(op, (own,), _middle(own))),), (_MIDDLE,))
