"""Expressions of nests over a tile of several axes.

A read is loaded once for each element that the tile needs, and taken from registers where several of the tile's
elements read the same one, as those of windows do. A reduction over axes of which each thread has all is a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import gcd, inf, prod
from operator import add as plus
from typing import Any

from attrs import field, frozen

from argus.kernels.nests.fragments import Body
from argus.kernels.nests.tiles import Tile
from argus.language import (
    TV,
    Fragment,
    Int,
    IntLike,
    Tensor,
    add,
    bf16,
    f16,
    f32,
    i8,
    ld_global_b8,
    ld_global_b16,
    ld_global_b32,
    load,
    maximum_nan,
    minimum_nan,
    mul,
    thread,
    zeros,
)
from argus.nests.affine import computed
from argus.nests.nest import Expr, Read, Reduce
from argus.nests.terms import literal, literal_factors, names_in, tile_coordinate

Loaded = tuple[str, tuple[Any, ...], float, TV]
"""A tensor, the coordinates and the number out of bounds of what is read, and how threads hold it."""

FOLDS: Mapping[str, tuple[Callable[..., Any], float]] = {
    "add": (add, 0.0),
    "mul": (mul, 1.0),
    "max": (maximum_nan, -inf),
    "min": (minimum_nan, inf),
}
"""The operation of a reduction, and its neutral number."""
_NARROW = {i8: ld_global_b8, f32: ld_global_b32, f16: ld_global_b16, bf16: ld_global_b16}
"""The load of one element of each type."""
_WORTH = 2
"""Axes of a coordinate from which on elements of a tile may read the same one."""


@frozen(eq=False)
class Place:
    """The coordinate of a nest's axis: `base`, and `step` times the coordinate along an axis of the tile, if any."""

    base: IntLike
    axis: int | None = None
    step: int = 1


@frozen(eq=False)
class TileBody:
    """The values of nests at the elements of a tile, in f32.

    sizes: by name. places: of the axes around, by name. known: what reductions over more than the tile are. loaded:
    what has been read, by its place: of tiles that are looked at several times.
    """

    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, Any]
    tile: Tile
    places: Mapping[str, Place]
    known: Mapping[Expr, Any] = field(factory=dict[Expr, Any])
    loaded: dict[Loaded, Fragment] = field(factory=dict[Loaded, Fragment])
    _body: Body = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_body", Body(self._read, self.numbers, self._reduced))

    def value(self, expr: Expr) -> Fragment:
        """The expression at each element."""
        found = self._body.of(expr)
        return found if isinstance(found, Fragment) else zeros(f32, self.tile.layout) + found

    @property
    def numbers(self) -> dict[str, Any]:
        """Sizes, and the coordinates of the tile's elements."""
        at = {axis: Int(tile_coordinate(number)) for number, axis in enumerate(self.tile.coordinates)}
        return {**self.sizes, **self.at(at)}

    def at(self, coordinates: Mapping[int, IntLike]) -> dict[str, Any]:
        """The coordinates of nests' axes at those of the tile; 0 along axes that are not given."""
        return {
            name: place.base if place.axis is None else place.base + coordinates.get(place.axis, 0) * place.step
            for name, place in self.places.items()
        }

    def _reduced(self, of: Reduce) -> Any:  # noqa: ANN401 reason: a register tile, or what stands for one
        if of in self.known:
            return self.known[of]
        extents = [literal(axis.extent) for axis in of.axes]
        rank = len(self.tile.axes)
        inner = TileBody(
            self.tensors,
            self.sizes,
            self.tile.with_values([extent or 0 for extent in extents]),
            {**self.places, **{axis.name: Place(0, rank + at) for at, axis in enumerate(of.axes)}},
            self.known,
            self.loaded,
        )
        found, (combine, _) = inner.value(of.body), FOLDS[of.op]
        for number in reversed(range(len(self.tile.coordinates), len(inner.tile.coordinates))):
            found = found.fold(number, combine, within=thread)
        return found

    def _read(self, read: Read) -> Fragment:
        source = _Source(self, read)
        outside = 0.0 if read.outside is None else read.outside
        arbitrary = source.place(*(Int(tile_coordinate(number)) for number in range(len(source.layout.tile))))
        key = read.tensor, tuple(at.node if isinstance(at, Int) else at for at in arbitrary), outside, source.layout
        if key not in self.loaded:
            view = self.tensors[read.tensor].gather(source.layout.tile, source.place, outside=outside)
            via = None if source.in_vectors else _NARROW[view.dtype]
            found = load(view, source.layout, edge=outside, via=via)
            self.loaded[key] = found if found.dtype is f32 else found.to(f32)
        loaded = self.loaded[key]
        return loaded if source.is_whole else loaded.gather(self.tile.layout, source.held)


class _Source:
    """The elements of a tensor that a tile reads, each once, as a tile of its own.

    Its axes are those of the tile along which threads differ, and for each coordinate of the tensor one over the values
    that it takes with the others.
    """

    def __init__(self, body: TileBody, read: Read) -> None:
        self.body, self.read = body, read
        self.axes = {place.axis: name for name, place in body.places.items() if place.axis is not None}
        used = {axis for axis, name in self.axes.items() if any(name in names_in(index) for index in read.index)}
        self.runs = [run for run in map(self._run, range(len(read.index))) if run is not None]
        joined = {axis for run in self.runs for axis, _ in run.steps}
        self.kept = tuple(sorted(used - joined))
        self.is_whole = not self.runs and self.kept == body.tile.coordinates
        self.layout = body.tile.part(self.kept, tuple(run.count for run in self.runs))

    @property
    def in_vectors(self) -> bool:
        """Whether threads read runs of several elements, which begin at multiples of as many."""
        last = names_in(self.read.index[-1])
        axes = self.body.tile.axes
        return any(axes[axis].vector > 1 and self.axes[axis] in last for axis in self.kept)

    def _run(self, at: int) -> _Run | None:
        """The values that the axes of which each thread has all give a coordinate; None if they are not fewer."""
        factors, tile = literal_factors(self.read.index[at], set(self.axes.values())), self.body.tile
        if factors is None:
            return None
        steps: list[tuple[int, int]] = []
        for axis, name in self.axes.items():
            alone = sum(name in names_in(index) for index in self.read.index) == 1
            if name in factors and tile.axes[axis].lanes == 1 and alone:
                steps.append((axis, factors[name] * self.body.places[name].step))
        if len(steps) < _WORTH:
            return None
        spans = [factor * (tile.axes[axis].extent - 1) for axis, factor in steps]
        step = gcd(*(factor for _, factor in steps))
        count = sum(map(abs, spans)) // step + 1
        if count >= prod(tile.axes[axis].extent for axis, _ in steps):
            return None
        return _Run(at, tuple(steps), sum(min(0, span) for span in spans), step, count)

    def place(self, *at: Int) -> tuple[Any, ...]:
        """The place in the tensor of an element of the source."""
        numbers = {**self.body.sizes, **self.body.at(dict(zip(self.kept, at, strict=False)))}
        found = [computed(index, numbers) for index in self.read.index]
        for run, number in zip(self.runs, at[len(self.kept) :], strict=True):
            found[run.at] += run.least + number * run.step
        return tuple(found)

    def held(self, *at: Int) -> tuple[IntLike, ...]:
        """The element of the source that an element of the tile is."""
        own = dict(zip(self.body.tile.coordinates, at, strict=True))
        numbers: list[IntLike] = []
        for run in self.runs:
            offset = reduce(plus, (own[axis] * factor for axis, factor in run.steps))
            numbers.append((offset - run.least) // run.step)
        return (*(own[axis] for axis in self.kept), *numbers)


@frozen
class _Run:
    """The values of a coordinate of a tensor: least + step * [0, count), by axes of the tile with their factors."""

    at: int
    steps: tuple[tuple[int, int], ...]
    least: int
    step: int
    count: int
