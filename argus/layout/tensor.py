"""`Tensor`: a layout over a buffer, and CuTe's `local_tile` and `local_partition`, which cut one for a block or thread.

>>> from argus.layout import Layout, Tensor, local_partition, local_tile
>>> matrix = Tensor(Layout((4, 8), (8, 1)), list(range(100, 132)))
>>> matrix[2, 3], matrix[2, :]
(119, Tensor((8,):(1,), offset=16, 32 elements))
>>> block = local_tile(matrix, (2, 4), (1, 1))
>>> print(block, block[0, 0])
20 + (2,4):(8,1) 120
>>> print(local_partition(block, Layout((2, 2), (2, 1)), 3))
29 + (1,2):(0,2)
"""

from __future__ import annotations

from html import escape
from typing import Any, Protocol, Union, cast

from argus.core.layout.compose import Tiler
from argus.core.layout.composed import ComposedLayout
from argus.core.layout.faults import malformed, misplaced
from argus.core.layout.inttuple import (
    Coordinate,
    IntTuple,
    checked_coordinate,
    crd2idx,
    dice,
    has_none,
    integer,
    product,
    product_each,
)
from argus.core.layout.lift import zipped_divide
from argus.core.layout.values import IntArray, Layout
from argus.layout.trees import Shaped, idx2crd, slice_and_offset

Key = Union[int, slice, None, tuple["Key", ...]]
"""A coordinate in which None or `:` keeps a mode."""
MAX_CELLS = 1024
"""Most elements that a notebook shows."""


class Buffer(Protocol):
    """A list, an array or a tensor with one dimension."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...  # noqa: ANN401 reason: an element is what the user put there
    def __setitem__(self, index: int, value: Any, /) -> None: ...  # noqa: ANN401


class Tensor:
    """The elements of a one-dimensional buffer at `offset + layout(coordinate)`; a view, the buffer is not copied.

    data: a list, an array or a tensor with one dimension; None for a tensor of addresses, whose element at an address
    is the address. offset: in elements. The offset of a swizzled layout stays inside it, before the swizzle.
    Raises LayoutError: E801 for a layout or a buffer of another kind, E803 if the layout leaves the buffer.
    """

    def __init__(self, layout: Shaped, data: Buffer | None = None, offset: int = 0) -> None:
        if not isinstance(layout, Layout | ComposedLayout):  # pyright: ignore[reportUnnecessaryIsInstance] reason: a user may pass anything
            raise malformed(f"a tensor of {layout!r}", "give a `Layout`, or a swizzled one")
        self.layout = layout
        self.data = data
        self.offset = integer(offset, "an offset")
        if data is not None:
            self._check_buffer(data)

    def _check_buffer(self, data: Buffer) -> None:
        dimensions: int = getattr(data, "ndim", 1)
        if dimensions != 1:
            raise malformed(f"a buffer of {dimensions} dimensions", "flatten it: the layout gives the shape")
        low, high = self._extremes()
        if low < 0 or high >= len(data):
            raise misplaced(
                f"{self} has addresses {low} .. {high}, and the buffer has {len(data)} elements",
                "give a longer buffer, or another offset",
            )

    def _extremes(self) -> tuple[int, int]:
        if isinstance(self.layout, Layout):
            ends = [(extent - 1) * stride for extent, stride in self.layout.flat_modes]
            return self.offset + sum([end for end in ends if end < 0]), self.offset + sum([e for e in ends if e > 0])
        images = self.layout.table()
        return self.offset + int(images.min()), self.offset + int(images.max())

    @property
    def shape(self) -> IntTuple:
        return self.layout.shape

    def size(self) -> int:
        """The number of elements."""
        return self.layout.size()

    def table(self) -> IntArray:
        """The addresses of the elements, in colexicographic order."""
        return self.layout.table() + self.offset

    def __call__(self, *coord: Coordinate) -> int | Tensor:
        """The address of an element, or with None in the coordinate, the tensor of the modes at None."""
        place = checked_coordinate(coord[0] if len(coord) == 1 else coord)
        if place is None:
            return self
        if has_none(place):
            part, moved = slice_and_offset(place, self.layout)
            return Tensor(part, self.data, self.offset + moved)
        return self.offset + cast(int, self.layout(place))

    def __getitem__(self, key: Key) -> Any:  # noqa: ANN401
        """The element at an index or a coordinate, or the tensor of the modes at `:` or None."""
        found = self(_coordinate(key))
        return found if self.data is None or isinstance(found, Tensor) else self.data[found]

    def __setitem__(self, key: Key, value: object) -> None:
        """Write an element. Raises LayoutError: E801 without a buffer, E803 for a coordinate that keeps a mode."""
        place = self(_coordinate(key))
        if self.data is None:
            raise malformed(f"{self} has no buffer to write to", "give `data`")
        if isinstance(place, Tensor):
            raise misplaced(f"{key} keeps a mode of {self}", "write one element at a time")
        self.data[place] = value

    def view(self, layout: Shaped) -> Tensor:
        """Another layout over the same buffer, from the same offset: `tensor.view(zipped_divide(tensor.layout, t))`."""
        return Tensor(layout, self.data, self.offset)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same layout, offset and elements in the buffer."""
        if not isinstance(other, Tensor) or (self.layout, self.offset) != (other.layout, other.offset):
            return False
        if self.data is None or other.data is None or self.data is other.data:
            return self.data is other.data
        if len(self.data) != len(other.data):
            return False
        return all(bool(self.data[place] == other.data[place]) for place in range(len(self.data)))

    __hash__ = None  # pyright: ignore[reportAssignmentType] reason: a tensor is mutable

    def __str__(self) -> str:
        return f"{self.offset} + {self.layout}"

    def __repr__(self) -> str:
        shown = f"Tensor({self.layout}" + (f", offset={self.offset}" if self.offset else "")
        return shown + (")" if self.data is None else f", {len(self.data)} elements)")

    def _repr_html_(self) -> str:
        """The elements as a table: the first mode down, all others across."""
        title = f"<p><code>{escape(repr(self))}</code></p>"
        if self.size() > MAX_CELLS or self.size() == 0:
            return title
        rows = product(self.shape[0]) if isinstance(self.shape, tuple) and self.shape else 1
        cells = [self[index] for index in range(self.size())]
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells[row::rows]) + "</tr>"
            for row in range(rows)
        )
        return f"{title}<table>{body}</table>"


def _coordinate(key: Key) -> Coordinate:
    if isinstance(key, tuple):
        return tuple(map(_coordinate, key))
    if isinstance(key, slice):
        if key != slice(None):
            raise misplaced(f"the part {key} of a mode", "keep a whole mode by `:`, or take a tile by `local_tile`")
        return None
    return key


# -- tiles ---------------------------------------------------------------------------------------------------


def local_tile(tensor: Tensor | Shaped, tiler: Tiler, coord: Coordinate, projection: Coordinate = None) -> Tensor:
    """The tile at a coordinate of the tiles: `zipped_divide(tensor, tiler)` sliced in its second mode.

    coord: an index of the tiles or a coordinate, in which None and missing modes keep all tiles. projection: a tuple
    with None for the modes of `tiler` and `coord` that this tensor lacks, such as (1, None, 1) for A of a GEMM tiled by
    (M, N, K). A layout counts as the tensor of its images. Raises LayoutError as `zipped_divide` does, and E803.
    """
    given = tensor if isinstance(tensor, Tensor) else Tensor(tensor)
    if projection is not None:
        tiler = cast(Tiler, dice(projection, cast(IntTuple, tiler)))
        coord = dice(projection, cast(IntTuple, coord))
    tiles, rests = divided = zipped_divide(given.layout, tiler)
    return _part(given.view(divided), (None,) * len(tiles), _padded(coord, len(rests)))


def local_partition(tensor: Tensor | Shaped, threads: Layout, index: int, projection: Coordinate = None) -> Tensor:
    """The elements of one thread: the tensor tiled by the shape of `threads`, at the thread's place in every tile.

    threads: maps a coordinate of the tile to a thread. index: a thread. projection: as for `local_tile`. Raises
    LayoutError as `zipped_divide` does, and E803 if no place of the tile has that thread.
    """
    given = tensor if isinstance(tensor, Tensor) else Tensor(tensor)
    place = idx2crd(index, threads.shape, _steps(threads))
    if threads(place) != index:
        raise misplaced(f"the index {index} is no image of {threads}", "give the index of a thread in a compact layout")
    parts = place if isinstance(place, tuple) else (place,)
    shape: IntTuple = product_each(threads.shape)
    flat: IntTuple = tuple([crd2idx(part, mode.shape) for part, mode in zip(parts, threads, strict=True)])
    if projection is not None:
        shape, flat = dice(projection, shape), dice(projection, flat)
    tiles, rests = divided = zipped_divide(given.layout, shape)
    return _part(given.view(divided), _padded(flat, len(tiles)), (None,) * len(rests))


def _steps(threads: Layout) -> IntTuple:
    """The strides with 1 for a mode of one thread, so that its coordinate is 0."""

    def step(extent: IntTuple, stride: IntTuple) -> IntTuple:
        if isinstance(extent, tuple):
            return tuple(map(step, extent, cast(tuple[IntTuple, ...], stride)))
        return 1 if extent == 1 else stride

    return step(threads.shape, threads.stride)


def _padded(coord: Coordinate, rank: int) -> Coordinate:
    return (*coord, *[None] * (rank - len(coord))) if isinstance(coord, tuple) else coord


def _part(divided: Tensor, *coord: Coordinate) -> Tensor:
    found = divided(*coord)
    return found if isinstance(found, Tensor) else divided.view(Layout((), ()))
