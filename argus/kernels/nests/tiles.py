"""Tiles of any number of axes over the threads of a block, parts of them, and loops over tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from attrs import evolve, frozen

from argus.language import TV, Int, IntLike, Layout, assume, block_id, loop, unflatten

WARP = 32
_MOST_TILES = 1 << 30
"""Of one loop over the tiles of several axes."""
_MOST_ACROSS = 65535
"""Blocks of a grid along its second and third axis."""


@frozen
class TileAxis:
    """An axis of a tile: `lanes` threads lie along it, and each has `values` runs of `vector` elements.

    Neighbouring threads have neighbouring runs: element (run * lanes + lane) * vector + i is the i-th of a run.
    in_order: of each warp, so that the elements of a warp follow those of the warp before. spare: the tile has no
    coordinate along it; its threads hold the same.
    """

    lanes: int = 1
    values: int = 1
    vector: int = 1
    in_order: bool = False
    spare: bool = False

    @property
    def extent(self) -> int:
        return self.lanes * self.values * self.vector


@frozen
class Tile:
    """The axes of a tile. turned: the first axis has the fastest threads; else the last."""

    axes: tuple[TileAxis, ...]
    turned: bool = False

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The numbers of the axes along which the tile has a coordinate."""
        return tuple(at for at, each in enumerate(self.axes) if not each.spare)

    def number(self, axis: int) -> int:
        """The number of an axis' coordinate."""
        return self.coordinates.index(axis)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.axes[at].extent for at in self.coordinates)

    @property
    def layout(self) -> TV:
        return self.part(self.coordinates, ())

    def without(self, axis: int) -> Tile:
        """The tile of the other axes, of which the threads along this one hold the same."""
        return Tile(tuple(evolve(a, spare=True) if at == axis else a for at, a in enumerate(self.axes)), self.turned)

    def with_values(self, extents: Sequence[int]) -> Tile:
        """The tile with further axes, along which each thread holds all elements."""
        return Tile((*self.axes, *(TileAxis(values=extent) for extent in extents)), self.turned)

    def part(self, kept: Sequence[int], more: Sequence[int]) -> TV:
        """Where threads hold elements of a tile of some of the axes, and of further ones of which each holds all.

        kept: numbers of axes. more: extents. Threads that differ along other axes alone hold the same.
        """
        shape = (*(self.axes[axis].extent for axis in kept), *more)
        strides = _products(shape)
        threads: list[tuple[int, int]] = []
        runs: list[tuple[int, int]] = []
        values: list[tuple[int, int]] = []
        for axis in range(len(self.axes)) if self.turned else reversed(range(len(self.axes))):
            own, stride = self.axes[axis], strides[kept.index(axis)] if axis in kept else 0
            together = WARP if own.in_order else own.lanes
            threads.append((together, own.vector * stride))
            threads.append((own.lanes // together, own.vector * together * own.values * stride))
            if axis in kept:
                runs.append((own.vector, stride))
                values.append((own.values, own.vector * together * stride))
        values += [(extent, strides[len(kept) + at]) for at, extent in enumerate(more)]
        return TV(_layout(threads), _layout([*runs, *values]), shape)


def _products(shape: Sequence[int]) -> list[int]:
    """The product of the extents before each, and of all."""
    return [1, *accumulate(shape, mul)]


def _layout(modes: Sequence[tuple[int, int]]) -> Layout:
    """The layout of the modes that have more than one element."""
    kept = [mode for mode in modes if mode[0] > 1] or [(1, 0)]
    return Layout(tuple(extent for extent, _ in kept), tuple(stride for _, stride in kept))


def nested(counts: Sequence[IntLike]) -> Iterator[tuple[IntLike, ...]]:
    """One loop of the kernel over all coordinates below these counts, the last the fastest."""
    if len(counts) == 1:
        for at in loop(counts[0]):
            yield (at,)
        return
    assume(prod(counts, start=1) <= _MOST_TILES)
    for at in loop(prod(counts, start=1)):
        yield unflatten(at, tuple(counts))


def blocks(counts: Sequence[IntLike], *, in_order: bool) -> tuple[Int, ...]:
    """The coordinates of this block in a grid of so many along each axis.

    in_order: blocks that start one after the other are neighbours along the last axis, whose elements are neighbours in
    memory; else along the first.
    """
    return block_id(tuple(counts[::-1]))[::-1] if in_order else block_id(tuple(counts))


def may_be_in_order(counts: Sequence[int]) -> bool:
    """Whether a grid that has the last axis first may have so many blocks along the others."""
    return all(count <= _MOST_ACROSS for count in counts[:-1])


def power_of_two(number: int) -> int:
    """The least power of two that is at least the number."""
    return 1 << max(0, number - 1).bit_length()


def vector_for(length: int, bytes_of: int) -> int:
    """The elements of the widest access, of 16 bytes at most, that divides a row of elements of so many bytes."""
    vector = 16 // bytes_of
    while length % vector:
        vector //= 2
    return vector
