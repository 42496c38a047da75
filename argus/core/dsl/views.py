"""Tensors as user code sees them: views of global and shared storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Int, IntLike, unwrap
from argus.core.dtype import DType
from argus.core.index import Const, Index
from argus.core.ir import TagOf, View, static
from argus.core.walk import show, substitute


class TagNames:
    """`x.tag.k`: the component `k` of the tags of a view's elements."""

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> TagOf:
        if name.startswith("_"):
            raise AttributeError(name)
        return TagOf(self._view, name)


class TensorSpec:
    """`Tensor["M K", bf16]`: the names of a tensor's sizes and its element type."""

    __slots__ = ("axes", "dtype")

    def __init__(self, axes: tuple[str, ...], dtype: DType) -> None:
        self.axes = axes
        self.dtype = dtype


Slice = Union[IntLike, slice]


class Tensor:
    """A view of global or shared storage. Methods give views; no data moves."""

    __slots__ = ("view",)

    def __init__(self, view: View) -> None:
        self.view = view

    def __class_getitem__(cls, item: tuple[str, DType]) -> Any:  # noqa: ANN401 reason: stands for Tensor in annotations
        axes, dtype = item
        return TensorSpec(tuple(axes.split()), dtype)

    @property
    def shape(self) -> tuple[Int, ...]:
        return tuple(Int(extent) for extent in self.view.shape)

    @property
    def dtype(self) -> DType:
        return self.view.buffer.dtype

    @property
    def tag(self) -> TagNames:
        return TagNames(self.view)

    def tile(self, shape: tuple[int, ...], at: tuple[IntLike, ...]) -> Tensor:
        """The tile number `at` of a grid of tiles of this shape; it may reach over the tensor's end."""
        if len(shape) != len(self.view.shape) or len(at) != len(shape):
            fault(
                "E106",
                f"`{self.view.buffer.name}` has {len(self.view.shape)} axes, the tile {len(shape)} and its number {len(at)}",
                help="give one extent and one number for each axis",
            )
        coords = [
            algebra.add(algebra.mul(unwrap(number), extent), algebra.coord(axis))
            for axis, (extent, number) in enumerate(zip(shape, at, strict=True))
        ]
        return self._view(tuple(algebra.const(int(extent)) for extent in shape), coords)

    def part(self, axis: int, i: IntLike, of: int) -> Tensor:
        """Part `i` of `of` equal parts along a static axis."""
        extent = self._static(axis)
        if extent % of != 0:
            fault("E106", f"axis {axis} of extent {extent} does not divide into {of} parts")
        shape = tuple(algebra.const(extent // of) if a == axis else e for a, e in enumerate(self.view.shape))
        start = algebra.mul(unwrap(i), extent // of)
        coords = [
            algebra.add(start, algebra.coord(a)) if a == axis else algebra.coord(a) for a in range(len(self.view.shape))
        ]
        return self._view(shape, coords)

    def __getitem__(self, item: Slice | tuple[Slice, ...]) -> Tensor:
        """Fix leading axes with integers; `:` keeps an axis."""
        items = item if isinstance(item, tuple) else (item,)
        if len(items) > len(self.view.shape):
            fault("E106", f"`{self.view.buffer.name}` has {len(self.view.shape)} axes, {len(items)} are indexed")
        shape: list[Index] = []
        coords: list[Index] = []
        for axis, extent in enumerate(self.view.shape):
            chosen = items[axis] if axis < len(items) else slice(None)
            if isinstance(chosen, slice):
                if chosen != slice(None):
                    fault("E106", "only `:` slices make a view", help="use `.tile(shape, number)` for a part")
                coords.append(algebra.coord(len(shape)))
                shape.append(extent)
            else:
                coords.append(unwrap(chosen))
        return self._view(tuple(shape), coords)

    @property
    def T(self) -> Tensor:  # noqa: N802 reason: NumPy's name
        rank = len(self.view.shape)
        coords = [algebra.coord(rank - 1 - axis) for axis in range(rank)]
        return self._view(tuple(reversed(self.view.shape)), coords)

    def reshape(self, *shape: IntLike) -> Tensor:
        """The same elements in row-major order under other extents."""
        extents = tuple(unwrap(extent) for extent in shape)
        old = self.view.shape
        number: Index = algebra.const(0)
        for axis, extent in enumerate(extents):
            number = algebra.add(algebra.mul(number, extent), algebra.coord(axis))
        if _product(extents) is not _product(old):
            fault("E106", f"a view of {_product(old)!r} elements is reshaped to {[show(e) for e in extents]}")
        coords: list[Index] = []
        for extent in reversed(old[1:]):
            coords.append(algebra.mod(number, extent))
            number = algebra.floordiv(number, extent)
        return self._view(extents, [number, *reversed(coords)])

    def gather(self, shape: tuple[IntLike, ...], where: Callable[..., Iterable[IntLike]]) -> Tensor:
        """A computed view: element `i` of the result is element `where(*i)` of this tensor."""
        extents = tuple(unwrap(extent) for extent in shape)
        found = tuple(unwrap(x) for x in where(*(Int(algebra.coord(axis)) for axis in range(len(extents)))))
        if len(found) != len(self.view.shape):
            fault("E106", f"the gather gives {len(found)} coordinates for {len(self.view.shape)} axes")
        return self._view(extents, found)

    def _static(self, axis: int) -> int:
        extent = self.view.shape[axis]
        if not isinstance(extent, Const):
            fault("E106", f"axis {axis} of `{self.view.buffer.name}` has the symbolic extent {show(extent)}")
        return static(extent)

    def _view(self, shape: tuple[Index, ...], coords: Iterable[Index]) -> Tensor:
        inner = tuple(coords)
        at = tuple(substitute(expression, {}, inner) for expression in self.view.at)
        where = substitute(self.view.where, {}, inner)
        return Tensor(View(self.view.buffer, shape, at, where, self.view.peer))

    def __repr__(self) -> str:
        return f"{self.view.buffer.name}[{', '.join(show(e) for e in self.view.at)}]"


def _product(extents: tuple[Index, ...]) -> Index:
    total: Index = algebra.const(1)
    for extent in extents:
        total = algebra.mul(total, extent)
    return total
