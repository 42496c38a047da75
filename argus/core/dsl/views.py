"""Tensors as user code sees them: views of global and shared storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from keyword import iskeyword
from typing import Any, Union, cast

from argus.core import algebra
from argus.core.dsl.faults import described, fault
from argus.core.dsl.handles import Int, IntLike, OfInts, extent, extents, number, place, several, unwrap
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
    """What stands in `Tensor[...]`, to be read by `declared` when the kernel is traced."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item


def declared(spec: TensorSpec) -> tuple[tuple[str, ...], DType] | str:
    """The names of a tensor's sizes and its element type; a sentence on what is wrong if they are not there."""
    item = spec.item
    if not isinstance(item, tuple):
        return f"`Tensor` takes the names of sizes and an element type, found {described(item)}"
    parts = cast(tuple[object, ...], item)
    if len(parts) != 2 or not isinstance(parts[0], str):
        return f"`Tensor` takes the names of sizes and an element type, found {described(parts)}"
    axes, dtype = tuple(parts[0].split()), parts[1]
    if not isinstance(dtype, DType):
        return f"{described(dtype)} is not an element type"
    wrong = next((axis for axis in axes if not _is_size(axis)), None)
    if not axes or wrong is not None:
        return f"{wrong or parts[0]!r} is neither the name of a size nor a positive number"
    return axes, dtype


def _is_size(axis: str) -> bool:
    if axis.isdecimal():
        return int(axis) > 0
    return axis.isascii() and axis.isidentifier() and not iskeyword(axis)


Slice = Union[IntLike, slice]


class Tensor:
    """A view of global or shared storage. Methods give views; no data moves."""

    __slots__ = ("view",)

    def __init__(self, view: View) -> None:
        self.view = view

    def __class_getitem__(cls, item: tuple[str, DType]) -> Any:  # noqa: ANN401 reason: stands for Tensor in annotations
        return TensorSpec(item)

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
        sizes, numbers = extents(shape, "a tile"), several(at, "the number of a tile")
        rank = len(self.view.shape)
        if len(sizes) != rank or len(numbers) != rank:
            fault(
                "E106",
                f"`{self.view.buffer.name}` has {rank} axes, the tile {len(sizes)} and its number {len(numbers)}",
                help="give one extent and one number for each axis",
            )
        coords = [
            algebra.add(algebra.mul(place(index), size), algebra.coord(axis))
            for axis, (size, index) in enumerate(zip(sizes, numbers, strict=True))
        ]
        return self._view(tuple(algebra.const(size) for size in sizes), coords)

    def part(self, axis: int, i: IntLike, of: int) -> Tensor:
        """Part `i` of `of` equal parts along a static axis."""
        size, parts = self._static(axis), extent(of, "the number of parts")
        if size % parts != 0:
            fault("E106", f"axis {axis} of extent {size} does not divide into {parts} parts", help="take parts that do")
        shape = tuple(algebra.const(size // parts) if a == axis else e for a, e in enumerate(self.view.shape))
        start = algebra.mul(place(i), size // parts)
        coords = [
            algebra.add(start, algebra.coord(a)) if a == axis else algebra.coord(a) for a in range(len(self.view.shape))
        ]
        return self._view(shape, coords)

    def __getitem__(self, item: Slice | tuple[Slice, ...]) -> Tensor:
        """Fix leading axes with integers; `:` keeps an axis."""
        items = item if isinstance(item, tuple) else (item,)
        if len(items) > len(self.view.shape):
            name, rank = self.view.buffer.name, len(self.view.shape)
            fault("E106", f"`{name}` has {rank} axes, {len(items)} are indexed", help="index each axis once at most")
        shape: list[Index] = []
        coords: list[Index] = []
        for axis, size in enumerate(self.view.shape):
            chosen = items[axis] if axis < len(items) else slice(None)
            if isinstance(chosen, slice):
                if chosen != slice(None):
                    fault("E106", "only `:` slices make a view", help="use `.tile(shape, number)` for a part")
                coords.append(algebra.coord(len(shape)))
                shape.append(size)
            else:
                coords.append(place(chosen))
        return self._view(tuple(shape), coords)

    @property
    def T(self) -> Tensor:  # noqa: N802 reason: NumPy's name
        rank = len(self.view.shape)
        coords = [algebra.coord(rank - 1 - axis) for axis in range(rank)]
        return self._view(tuple(reversed(self.view.shape)), coords)

    def reshape(self, *shape: IntLike) -> Tensor:
        """The same elements in row-major order under other extents."""
        new, old = tuple(_size(size) for size in shape), self.view.shape
        position: Index = algebra.const(0)
        for axis, size in enumerate(new):
            position = algebra.add(algebra.mul(position, size), algebra.coord(axis))
        if _product(new) is not _product(old):
            fault(
                "E106",
                f"a view of shape {_shape(old)} is reshaped to {_shape(new)}",
                help="keep the number of elements",
            )
        coords: list[Index] = []
        for size in reversed(old[1:]):
            coords.append(algebra.mod(position, size))
            position = algebra.floordiv(position, size)
        return self._view(new, [position, *reversed(coords)] if old else [])

    def gather(self, shape: tuple[IntLike, ...], where: OfInts[Iterable[IntLike]]) -> Tensor:
        """A computed view: element `i` of the result is element `where(*i)` of this tensor."""
        sizes = tuple(_size(size) for size in several(shape, "the shape of a gather"))
        places = cast(Callable[..., object], where)(*(Int(algebra.coord(axis)) for axis in range(len(sizes))))
        found = tuple(unwrap(x) for x in several(cast(tuple[IntLike, ...], places), "the function of a gather"))
        if len(found) != len(self.view.shape):
            fault(
                "E106",
                f"the gather gives {len(found)} coordinates for {len(self.view.shape)} axes",
                help="return one coordinate for each axis of the tensor",
            )
        return self._view(sizes, found)

    def _static(self, axis: int) -> int:
        name, rank = self.view.buffer.name, len(self.view.shape)
        if not 0 <= number(axis, "an axis") < rank:
            fault("E106", f"`{name}` has no axis {axis}", help=f"its axes are numbered from 0 to {rank - 1}")
        size = self.view.shape[axis]
        if not isinstance(size, Const):
            fault(
                "E106", f"axis {axis} of `{name}` has the symbolic extent {show(size)}", help="take a tile of it first"
            )
        return static(size)

    def _view(self, shape: tuple[Index, ...], coords: Iterable[Index]) -> Tensor:
        inner = tuple(coords)
        at = tuple(substitute(expression, {}, inner) for expression in self.view.at)
        where = substitute(self.view.where, {}, inner)
        return Tensor(View(self.view.buffer, shape, at, where, self.view.peer))

    def __repr__(self) -> str:
        return f"{self.view.buffer.name}[{', '.join(show(e) for e in self.view.at)}]"


def _size(value: IntLike) -> Index:
    """An extent, symbolic or not."""
    size = place(value)
    return algebra.const(extent(value, "an extent")) if isinstance(size, Const) else size


def _shape(sizes: tuple[Index, ...]) -> str:
    return f"({', '.join(show(size) for size in sizes)})"


def _product(sizes: tuple[Index, ...]) -> Index:
    total: Index = algebra.const(1)
    for size in sizes:
        total = algebra.mul(total, size)
    return total
