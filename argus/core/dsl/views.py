"""The language's tensors: views of global and shared memory."""

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
    Bool,
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
from argus.core.dsl.values import Value, chosen, element_value, in_formula
from argus.core.dtype import DType
from argus.core.index import Const, Index
from argus.core.index_text import show
from argus.core.ir import TagOf, View, static
from argus.core.layout import TV
from argus.core.walk import substitute


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
    """The argument of `Tensor[...]`, parsed by `parse_spec` when the kernel is traced."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item


def parse_spec(spec: TensorSpec) -> tuple[tuple[str, ...], DType] | str:
    """The names of a tensor's sizes and its element type; a string with the error for an ill-formed specification."""
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


_MATRIX_AXES = 2
Slice = Union[IntLike, slice]


class Tensor:
    """A view of global or shared memory. Methods return views; no data moves.

    outside: the value that a computed view reads out of bounds. computed: axes along which coordinates beyond the
    view's extent may still address elements of the tensor, so that a tile of the view needs a bounds condition.
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
        """Tile `at` of a grid of tiles of this shape; it may extend beyond the end of the tensor."""
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

    def rows(self, start: IntLike, stop: IntLike | None = None) -> Tensor:
        """The rows from `start` on along the first axis, as a view whose row 0 is `start`.

        stop: the end of the rows; a tile may extend beyond it, and a store with `edge` then writes nothing there, and a
        load, of a TMA box too, reads that number. Without it, a tile reaches into the rows that follow, up to the end
        of the tensor.
        """
        first, rest = uniform_index(start), self.view.shape[1:]
        end = self.view.shape[0] if stop is None else uniform_index(stop)
        axes = [algebra.coord(axis) for axis in range(len(self.view.shape))]
        made = self._view((algebra.sub(end, first), *rest), [algebra.add(first, axes[0]), *axes[1:]])
        clipped = frozenset[int]() if stop is None else frozenset((0,))
        return Tensor(made.view, made.outside, made.computed | clipped)

    def of(self, rank: IntLike) -> Tensor:
        """The same tile in the shared memory of the block with this rank in the cluster, as the target of a copy from
        registers.
        """
        if self.view.buffer.space != "shared":
            name = self.view.buffer.name
            fault("E106", f"`{name}` is not in shared memory", help="leave `.of(rank)` out")
        made = evolve(self.view, peer=ranked_peer(current("of"), rank))
        return Tensor(made, self.outside, self.computed)

    def part(self, axis: int, i: IntLike, of: int) -> Tensor:
        """Part `i` of `of` equal parts along an axis of static extent."""
        size, parts = self._static_extent(axis), extent(of, "the number of parts")
        if size % parts != 0:
            fault(
                "E106",
                f"axis {axis} of extent {size} does not divide into {parts} parts",
                help="give a divisor of the extent",
            )
        shape = tuple(algebra.const(size // parts) if a == axis else e for a, e in enumerate(self.view.shape))
        start = algebra.mul(uniform_index(i), size // parts)
        coords = [
            algebra.add(start, algebra.coord(a)) if a == axis else algebra.coord(a) for a in range(len(self.view.shape))
        ]
        return self._view(shape, coords)

    def __getitem__(self, item: Slice | tuple[Slice, ...]) -> Tensor:
        """Index axes with integers, which drop them; `:` keeps an axis. In a formula, an element is a value."""
        items = item if isinstance(item, tuple) else (item,)
        if in_formula():
            return cast("Tensor", self._in_formula(items))
        if len(items) > len(self.view.shape):
            name, rank = self.view.buffer.name, len(self.view.shape)
            fault("E106", f"`{name}` has {rank} axes, {len(items)} are indexed", help="index each axis at most once")
        shape: list[Index] = []
        coords: list[Index] = []
        # An element of an integer tensor may depend on coordinates: `tag(A, lambda m, k: dict(x=expert[m // 128]))`.
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

    def _in_formula(self, items: tuple[Slice, ...]) -> Value | Tensor:
        """An element in a formula; of a tensor of integers, the element for `scalar`.

        Raises E113 unless each axis is indexed, E111 for memory other than global.
        """
        name, rank = self.view.buffer.name, len(self.view.shape)
        if len(items) != rank or any(isinstance(each, slice) for each in items):
            message = f"`{name}` has {rank} axes, a formula reads it at {len(items)} coordinates"
            fault("E113", message, help="index every axis with an integer")
        if self.view.buffer.space != "global":
            message = f"a formula reads `{name}`, which is in {self.view.buffer.space} memory"
            fault("E111", message, help="read a tensor of the kernel")
        inner = tuple(unwrap(cast(IntLike, each)) for each in items)
        at = tuple(substitute(expression, {}, inner) for expression in self.view.at)
        inside = substitute(self.view.where, {}, inner)
        if self.dtype.family == "int":
            return Tensor(View(self.view.buffer, (), at, inside))
        found = element_value(name, at)
        outside = 0.0 if self.outside is None else self.outside
        return found if inside is algebra.TRUE else chosen(Bool(inside), found, outside)

    @property
    def T(self) -> Tensor:  # noqa: N802 reason: NumPy's name
        rank = len(self.view.shape)
        coords = [algebra.coord(rank - 1 - axis) for axis in range(rank)]
        return self._view(tuple(reversed(self.view.shape)), coords)

    @property
    def mT(self) -> Tensor:  # noqa: N802 reason: the name in the array API
        """The last two axes exchanged (batched transpose)."""
        rank = len(self.view.shape)
        if rank < _MATRIX_AXES:
            fault("E106", f"`{self.view.buffer.name}` has {rank} axes, a matrix two", help="take a tensor of matrices")
        axes = (*range(rank - _MATRIX_AXES), rank - 1, rank - 2)
        return self._view(tuple(self.view.shape[axis] for axis in axes), [algebra.coord(axis) for axis in axes])

    @property
    def fastest(self) -> int:
        """The contiguous axis of a view: the last, or after `T` the first. Raises E106 if there is none."""
        axes = [axis for axis in range(len(self.view.shape)) if self._is_contiguous(axis)]
        if len(axes) != 1:
            name = self.view.buffer.name
            fault("E106", f"no single contiguous axis in this view of `{name}`", help="take tiles of the tensor")
        return axes[0]

    def _is_contiguous(self, axis: int) -> bool:
        *others, last = (algebra.sub(at, substitute(at, {}, self._at_zero(axis))) for at in self.view.at)
        return last is algebra.coord(axis) and not any(other is not algebra.const(0) for other in others)

    def _at_zero(self, axis: int) -> tuple[Index, ...]:
        """The coordinates of an element with that of one axis set to 0."""
        return tuple(algebra.const(0) if a == axis else algebra.coord(a) for a in range(len(self.view.shape)))

    def reshape(self, *shape: IntLike) -> Tensor:
        """The same elements in row-major order with other extents; one extent may be -1 and is then inferred."""
        old = self.view.shape
        new = _infer_extent(shape, old)
        if _product(new) is not _product(old):
            fault(
                "E106",
                f"a view of shape {_shape_text(old)} is reshaped to {_shape_text(new)}",
                help="keep the number of elements",
            )
        coords: list[Index] = []
        computed: set[int] = set()
        for old_axes, new_axes in _equal_size_groups(old, new):
            numbered = [algebra.coord(axis) for axis in new_axes]
            coords += _coordinates_of(
                _linear_index([new[axis] for axis in new_axes], numbered), [old[axis] for axis in old_axes]
            )
            # Beyond the first of these axes the tensor ends, but beyond the others the next row begins.
            computed |= set(new_axes[1:])
        made = self._view(new, coords)
        return Tensor(made.view, made.outside, made.computed | frozenset(computed))

    def gather(
        self, shape: tuple[IntLike, ...], where: CoordinateFunction[Iterable[IntLike]], *, outside: float | None = None
    ) -> Tensor:
        """A computed view: element `i` of the result is element `where(*i)` of this tensor.

        outside: the value read out of bounds; without it, all accesses must be in bounds.
        """
        sizes = tuple(_extent(size) for size in axis_values(shape, "the shape of a gather"))
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
            fault("E106", f"a gather reads {outside:g} out of bounds, the view that it indexes {self.outside:g}")
        ends = [
            cond for at, size in zip(found, self.view.shape, strict=True) for cond in bounds_conditions(at, size, sizes)
        ]
        return Tensor(evolve(made.view, where=algebra.all_of((made.view.where, *ends))), float(outside), axes)

    def _static_extent(self, axis: int) -> int:
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
        """A view of this view. coords: this view's coordinates over those of the new one.

        Adds bounds conditions along the axes in `computed`.
        """
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


def _extent(value: IntLike) -> Index:
    """An extent, static or symbolic."""
    size = uniform_index(value)
    return algebra.const(extent(value, "an extent")) if isinstance(size, Const) else size


def _infer_extent(shape: tuple[IntLike, ...], old: tuple[Index, ...]) -> tuple[Index, ...]:
    """The extents, with -1 replaced by the extent that keeps the number of elements."""
    unknown = [axis for axis, size in enumerate(shape) if isinstance(size, int) and size == -1]
    known = tuple(algebra.const(1) if axis in unknown else _extent(size) for axis, size in enumerate(shape))
    if not unknown:
        return known
    found = quotient(old, known)
    if len(unknown) > 1 or found is None:
        fault(
            "E106",
            f"-1 in the shape {_shape_text(known)} does not follow from {_shape_text(old)}",
            help="give -1 at most once, and extents that divide the number of elements",
        )
    return tuple(found if axis in unknown else size for axis, size in enumerate(known))


def _linear_index(shape: Sequence[Index], coords: Sequence[Index]) -> Index:
    """The row-major linear index of the element at these coordinates."""
    position: Index = algebra.const(0)
    for size, coord in zip(shape, coords, strict=True):
        position = algebra.add(algebra.mul(position, size), coord)
    return position


def _coordinates_of(number: Index, shape: Sequence[Index]) -> list[Index]:
    """The coordinates of the element with this row-major linear index."""
    coords: list[Index] = []
    for size in reversed(shape[1:]):
        coords.append(algebra.mod(number, size))
        number = algebra.floordiv(number, size)
    return [number, *reversed(coords)] if shape else []


def _equal_size_groups(old: tuple[Index, ...], new: tuple[Index, ...]) -> Iterator[tuple[range, range]]:
    """Pairs of shortest runs of old and new axes with provably equal numbers of elements."""
    at, to = 0, 0
    while at < len(old) or to < len(new):
        ends = ((a, b) for a in range(at + 1, len(old) + 1) for b in range(to + 1, len(new) + 1))
        whole = [
            (a, b) for a, b in ends if (a == len(old)) == (b == len(new)) and _product(old[at:a]) is _product(new[to:b])
        ]
        a, b = whole[0] if whole else (len(old), len(new))
        yield range(at, a), range(to, b)
        at, to = a, b


def _shape_text(sizes: tuple[Index, ...]) -> str:
    return f"({', '.join(show(size) for size in sizes)})"


def _product(sizes: Sequence[Index]) -> Index:
    total: Index = algebra.const(1)
    for size in sizes:
        total = algebra.mul(total, size)
    return total


def unflatten(position: IntLike, shape: tuple[IntLike, ...]) -> tuple[Int, ...]:
    """The coordinates of the element with row-major linear index `position` in a tensor of this shape.

    Beyond the last element, the first coordinate exceeds its extent and the others stay in range.
    """
    rest = unwrap(position)
    found: list[Int] = []
    for size in reversed(axis_values(shape, "the shape of `unflatten`")[1:]):
        found.append(Int(algebra.mod(rest, _extent(size))))
        rest = algebra.floordiv(rest, _extent(size))
    return (Int(rest), *reversed(found))
