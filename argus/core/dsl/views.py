"""Tensors as user code sees them: views of global and shared storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from keyword import iskeyword
from typing import Any, Union, cast

from attrs import evolve

from argus.core import algebra
from argus.core.dsl.bounds import bounds_conditions, coordinates_in, quotient
from argus.core.dsl.clusters import ranked_peer
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import (
    CoordinateFunction,
    Int,
    IntLike,
    axis_values,
    extent,
    extents,
    number,
    uniform_index,
    unwrap,
)
from argus.core.dsl.tracer import current
from argus.core.dtype import DType
from argus.core.index import Const, Index
from argus.core.ir import TagOf, View, static
from argus.core.layout import TV
from argus.core.walk import show, substitute


class TagNames:
    """`x.tag.k`: the component `k` of the tags of a view's elements."""

    __slots__ = ("_by", "_view")

    def __init__(self, view: View, by: TV | None = None) -> None:
        self._view = view
        self._by = by

    def __getattr__(self, name: str) -> TagOf:
        if name.startswith("_"):
            raise AttributeError(name)
        return TagOf(self._view, name, self._by)


class TensorSpec:
    """What stands in `Tensor[...]`, to be read by `declared` when the kernel is traced."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item


def declared(spec: TensorSpec) -> tuple[tuple[str, ...], DType] | str:
    """The names of a tensor's sizes and its element type; a sentence on what is wrong if they are not there."""
    item = spec.item
    if not isinstance(item, tuple):
        return f"`Tensor` takes the names of sizes and an element type, found {describe_value(item)}"
    parts = cast(tuple[object, ...], item)
    if len(parts) != 2 or not isinstance(parts[0], str):
        return f"`Tensor` takes the names of sizes and an element type, found {describe_value(parts)}"
    axes, dtype = tuple(parts[0].split()), parts[1]
    if not isinstance(dtype, DType):
        return f"{describe_value(dtype)} is not an element type"
    wrong = next((axis for axis in axes if not _is_size(axis)), None)
    if not axes or wrong is not None:
        return f"{wrong or parts[0]!r} is neither the name of a size nor a positive number"
    return axes, dtype


def _is_size(axis: str) -> bool:
    if axis.isdecimal():
        return int(axis) > 0
    return axis.isascii() and axis.isidentifier() and not iskeyword(axis)


_MATRIX = 2
"""Axes."""
Slice = Union[IntLike, slice]


class Tensor:
    """A view of global or shared storage. Methods give views; no data moves.

    outside: what a computed view reads where it leaves its tensor. computed: axes along which what is beyond the
    view's end may be an element of the tensor, so that a part of the view ends by a condition of its own.
    """

    __slots__ = ("computed", "outside", "view")

    def __init__(self, view: View, outside: float | None = None, computed: frozenset[int] = frozenset()) -> None:
        self.view = view
        self.outside = outside
        self.computed = computed

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
        sizes, numbers = extents(shape, "a tile"), axis_values(at, "the number of a tile")
        rank = len(self.view.shape)
        if len(sizes) != rank or len(numbers) != rank:
            fault(
                "E106",
                f"`{self.view.buffer.name}` has {rank} axes, the tile {len(sizes)} and its number {len(numbers)}",
                help="give one extent and one number for each axis",
            )
        coords = [
            algebra.add(algebra.mul(uniform_index(index), size), algebra.coord(axis))
            for axis, (size, index) in enumerate(zip(sizes, numbers, strict=True))
        ]
        return self._view(tuple(algebra.const(size) for size in sizes), coords)

    def of(self, rank: IntLike) -> Tensor:
        """The same tile in the shared memory of the block of this cluster that has this rank: what a copy from
        registers may write.
        """
        if self.view.buffer.space != "shared":
            name = self.view.buffer.name
            fault(
                "E106", f"`{name}` is no shared memory, which each block has its own of", help="leave `.of(rank)` out"
            )
        made = evolve(self.view, peer=ranked_peer(current("of"), rank))
        return Tensor(made, self.outside, self.computed)

    def part(self, axis: int, i: IntLike, of: int) -> Tensor:
        """Part `i` of `of` equal parts along a static axis."""
        size, parts = self._static(axis), extent(of, "the number of parts")
        if size % parts != 0:
            fault("E106", f"axis {axis} of extent {size} does not divide into {parts} parts", help="take parts that do")
        shape = tuple(algebra.const(size // parts) if a == axis else e for a, e in enumerate(self.view.shape))
        start = algebra.mul(uniform_index(i), size // parts)
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
        # One integer of a tensor may be that of an element: `tag(A, lambda m, k: dict(x=expert[m // 128]))`.
        element = len(items) == len(self.view.shape) and self.dtype.family == "int"
        for axis, size in enumerate(self.view.shape):
            chosen = items[axis] if axis < len(items) else slice(None)
            if isinstance(chosen, slice):
                if chosen != slice(None):
                    fault("E106", "only `:` slices make a view", help="use `.tile(shape, number)` for a part")
                coords.append(algebra.coord(len(shape)))
                shape.append(size)
            else:
                coords.append(unwrap(chosen) if element else uniform_index(chosen))
        return self._view(tuple(shape), coords)

    @property
    def T(self) -> Tensor:  # noqa: N802 reason: NumPy's name
        rank = len(self.view.shape)
        coords = [algebra.coord(rank - 1 - axis) for axis in range(rank)]
        return self._view(tuple(reversed(self.view.shape)), coords)

    @property
    def mT(self) -> Tensor:  # noqa: N802 reason: the name in the array API
        """Each matrix turned: the last two axes exchanged."""
        rank = len(self.view.shape)
        if rank < _MATRIX:
            fault("E106", f"`{self.view.buffer.name}` has {rank} axes, a matrix two", help="take a tensor of matrices")
        axes = (*range(rank - _MATRIX), rank - 1, rank - 2)
        return self._view(tuple(self.view.shape[axis] for axis in axes), [algebra.coord(axis) for axis in axes])

    @property
    def fastest(self) -> int:
        """The axis whose neighbours lie side by side in memory: the last, or the first of what `T` turned."""
        axes = [axis for axis in range(len(self.view.shape)) if self._along_rows(axis)]
        if len(axes) != 1:
            name = self.view.buffer.name
            fault("E106", f"no one axis of a view runs along the rows of `{name}`", help="take tiles of the tensor")
        return axes[0]

    def _along_rows(self, axis: int) -> bool:
        *others, last = (algebra.sub(at, substitute(at, {}, self._first(axis))) for at in self.view.at)
        return last is algebra.coord(axis) and not any(other is not algebra.const(0) for other in others)

    def _first(self, axis: int) -> tuple[Index, ...]:
        """The coordinates of the first element along an axis."""
        return tuple(algebra.const(0) if a == axis else algebra.coord(a) for a in range(len(self.view.shape)))

    def reshape(self, *shape: IntLike) -> Tensor:
        """The same elements in row-major order under other extents; -1 for one extent that follows from the others."""
        old = self.view.shape
        new = _completed(shape, old)
        if _product(new) is not _product(old):
            fault(
                "E106",
                f"a view of shape {_shape(old)} is reshaped to {_shape(new)}",
                help="keep the number of elements",
            )
        coords: list[Index] = []
        computed: set[int] = set()
        for mine, theirs in _groups(old, new):
            numbered = [algebra.coord(axis) for axis in theirs]
            coords += _numbered(_position([new[axis] for axis in theirs], numbered), [old[axis] for axis in mine])
            # Beyond the last row lies nothing, but beyond the end of another axis begins the next row.
            computed |= set(theirs[1:])
        made = self._view(new, coords)
        return Tensor(made.view, made.outside, made.computed | frozenset(computed))

    def gather(
        self, shape: tuple[IntLike, ...], where: CoordinateFunction[Iterable[IntLike]], *, outside: float | None = None
    ) -> Tensor:
        """A computed view: element `i` of the result is element `where(*i)` of this tensor.

        outside: read where that lies beyond the tensor; without it, it must lie in the tensor.
        """
        sizes = tuple(_size(size) for size in axis_values(shape, "the shape of a gather"))
        places = cast(Callable[..., object], where)(*(Int(algebra.coord(axis)) for axis in range(len(sizes))))
        found = tuple(unwrap(x) for x in axis_values(cast(tuple[IntLike, ...], places), "the function of a gather"))
        if len(found) != len(self.view.shape):
            fault(
                "E106",
                f"the gather gives {len(found)} coordinates for {len(self.view.shape)} axes",
                help="return one coordinate for each axis of the tensor",
            )
        made = self._view(sizes, found)
        axes = frozenset(range(len(sizes)))
        if outside is None:
            return Tensor(made.view, made.outside, axes)
        if self.outside is not None and self.outside != outside:
            fault("E106", f"a gather reads {outside:g} outside, the view it is made of {self.outside:g}")
        ends = [
            cond for at, size in zip(found, self.view.shape, strict=True) for cond in bounds_conditions(at, size, sizes)
        ]
        return Tensor(evolve(made.view, where=algebra.all_of((made.view.where, *ends))), float(outside), axes)

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
        """The view at coordinates over those of the new one, kept within this one's end where that is computed."""
        inner = tuple(coords)
        ends = {axis: bounds_conditions(inner[axis], self.view.shape[axis], shape) for axis in self.computed}
        at = tuple(substitute(expression, {}, inner) for expression in self.view.at)
        where = (substitute(self.view.where, {}, inner), *(cond for axis in sorted(ends) for cond in ends[axis]))
        view = View(self.view.buffer, shape, at, algebra.all_of(where), self.view.peer)
        return Tensor(
            view, self.outside, coordinates_in([inner[axis] for axis, conds in ends.items() if len(conds) < 2])
        )

    def __repr__(self) -> str:
        return f"{self.view.buffer.name}[{', '.join(show(e) for e in self.view.at)}]"


def _size(value: IntLike) -> Index:
    """An extent, symbolic or not."""
    size = uniform_index(value)
    return algebra.const(extent(value, "an extent")) if isinstance(size, Const) else size


def _completed(shape: tuple[IntLike, ...], old: tuple[Index, ...]) -> tuple[Index, ...]:
    """The extents, with the one that is given as -1."""
    unknown = [axis for axis, size in enumerate(shape) if isinstance(size, int) and size == -1]
    given = tuple(algebra.const(1) if axis in unknown else _size(size) for axis, size in enumerate(shape))
    if not unknown:
        return given
    found = quotient(old, given)
    if len(unknown) > 1 or found is None:
        fault(
            "E106",
            f"-1 in the shape {_shape(given)} does not follow from {_shape(old)}",
            help="give -1 once, for extents that the others are not made of",
        )
    return tuple(found if axis in unknown else size for axis, size in enumerate(given))


def _position(shape: Sequence[Index], coords: Sequence[Index]) -> Index:
    """The number of the element at these coordinates, in row-major order."""
    position: Index = algebra.const(0)
    for size, coord in zip(shape, coords, strict=True):
        position = algebra.add(algebra.mul(position, size), coord)
    return position


def _numbered(number: Index, shape: Sequence[Index]) -> list[Index]:
    """The coordinates of the element with this number."""
    coords: list[Index] = []
    for size in reversed(shape[1:]):
        coords.append(algebra.mod(number, size))
        number = algebra.floordiv(number, size)
    return [number, *reversed(coords)] if shape else []


def _groups(old: tuple[Index, ...], new: tuple[Index, ...]) -> Iterator[tuple[range, range]]:
    """Runs of axes that hold equally many elements, as short as can be seen: each is numbered by itself."""
    at, to = 0, 0
    while at < len(old) or to < len(new):
        ends = ((a, b) for a in range(at + 1, len(old) + 1) for b in range(to + 1, len(new) + 1))
        whole = [
            (a, b) for a, b in ends if (a == len(old)) == (b == len(new)) and _product(old[at:a]) is _product(new[to:b])
        ]
        a, b = whole[0] if whole else (len(old), len(new))
        yield range(at, a), range(to, b)
        at, to = a, b


def _shape(sizes: tuple[Index, ...]) -> str:
    return f"({', '.join(show(size) for size in sizes)})"


def _product(sizes: Sequence[Index]) -> Index:
    total: Index = algebra.const(1)
    for size in sizes:
        total = algebra.mul(total, size)
    return total


def unflatten(position: IntLike, shape: tuple[IntLike, ...]) -> tuple[Int, ...]:
    """The coordinates of element number `position` of a tensor of this shape, in row-major order.

    Beyond the last element it is the first coordinate that leaves the shape.
    """
    rest = unwrap(position)
    found: list[Int] = []
    for size in reversed(axis_values(shape, "the shape of `unflatten`")[1:]):
        found.append(Int(algebra.mod(rest, _size(size))))
        rest = algebra.floordiv(rest, _size(size))
    return (Int(rest), *reversed(found))
