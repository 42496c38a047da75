"""Reductions along one axis of a tile and loops over others: rows, columns, and what is computed from them.

A tile has one kept axis and one reduced axis. Each reduction of the nest is a pass over the reduced axes, inner ones
first; a last pass computes an output that has these axes, too. Elements that threads hold are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from attrs import define, evolve, field, frozen

from argus.kernels.nests.bodies import FOLDS, Loaded, Place, TileBody
from argus.kernels.nests.fragments import TYPES
from argus.kernels.nests.reduction_shapes import Shape, shape_of
from argus.kernels.nests.tiles import WARP, Tile, TileAxis, blocks, may_be_in_order, nested, power_of_two, vector_for
from argus.language import (
    DType,
    Fragment,
    IntLike,
    Tensor,
    all_to_each,
    assume,
    ceil_div,
    copy,
    f32,
    first_lane,
    first_thread,
    i32,
    load,
    minimum,
    registers,
    shared,
    sm_90a,
    sync,
    thread,
    warp,
    where,
)
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import Axis, Expr, Nest, Read, Reduce
from argus.nests.partials import LONG
from argus.nests.rewrite import reads, reductions
from argus.nests.terms import begins_at_multiples, literal_factors, names_in

_LARGEST = 1 << 40
"""Elements of a tensor, so that offsets in bytes fit 64 bits."""
_THREADS, _MOST_THREADS = 256, 1024
_BUSY = 128
"""Blocks from which on a GPU is busy."""
_FEW = 8
"""Runs of a thread of a warp that has a row."""
_HELD, _HELD_OF_COLUMNS = 32, 16
"""Elements that a thread holds, of rows and of columns: so many that enough threads are resident."""
_NONE = (1 << 31) - 1
"""A place that is none."""
_ARG = frozenset(("argmax", "argmin"))


@frozen
class Reductions:
    """A block of `threads`: `kept` of them along the kept axis, the others along the reduced one.

    A warp has either one kept coordinate (or several and no other warp has them), or one reduced one: `kept` is up to
    32 of rows, of which 32 / kept threads or all share each, and from 32 of columns.

    columns: the kept axis is contiguous in memory, not the reduced one. vector: elements of one access along the
    contiguous axis, which divide its length. values: runs of a thread along the reduced axis. held: the reduced axes
    are one tile, which threads keep in registers. in_order: blocks that start one after the other are neighbours along
    the last kept axis; else along the first.
    """

    threads: int = 256
    kept: int = 1
    vector: int = 1
    values: int = 4
    columns: bool = False
    held: bool = False
    in_order: bool = True
    target = sm_90a

    @property
    def tile(self) -> Tile:
        """The axes (kept, reduced)."""
        along, across = (self.vector, 1) if self.columns else (1, self.vector)
        axes = TileAxis(self.kept, 1, along), TileAxis(self.threads // self.kept, self.values, across)
        return Tile(axes, turned=self.columns)


KEPT, REDUCED = 0, 1
Combine = Callable[..., Any]
"""The operation of a reduction, on register tiles."""


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Reductions | None:
    """The configuration for nests with reductions over axes of any extent; None for other nests."""
    shape = shape_of(form.nests)
    if shape is None or not {each.op for each in shape.of} <= {*FOLDS, *_ARG}:
        return None
    contiguous = _contiguous(shape)
    types = {each.dtype for each in _reads(form)}
    if contiguous is None or not types <= set(TYPES):
        return None
    wide = max(TYPES[each].bits // 8 for each in types)
    if shape.along and (_is_long(shape, sizes) or not _are_alike(shape, sizes)):
        return None  # a block for each result, which then computes all that depends on it, keeps no GPU busy
    length = int(computed(shape.of[0].axes[-1].extent, sizes))
    held = all(len(each.axes) == 1 for each in shape.of) and len(shape.of) + bool(shape.along) > 1
    tensors = len({each for of in shape.of for each in reads(of.body)}) if held else 0
    vector = _aligned(form, contiguous, vector_for(int(computed(contiguous.extent, sizes)), wide))
    if contiguous is shape.of[0].axes[-1]:
        found = _for_rows(length, vector, tensors)
    else:
        found = _for_columns(length, vector, tensors)
    kept = [int(computed(axis.extent, sizes)) for axis in shape.kept]
    return found if may_be_in_order(kept) else evolve(found, in_order=False)


def _aligned(form: Canonical, axis: Axis, vector: int) -> int:
    """The elements of an access along an axis, of which each begins at a multiple: fewer where that is not known."""
    extents = {each.type.name: each.type.shape[-1] for each in form.parameters}
    used = [(each.index[-1], extents[each.tensor]) for each in _reads(form) if axis.name in names_in(each.index[-1])]
    while vector > 1 and not all(begins_at_multiples(vector, axis, *each) for each in used):
        vector //= 2
    return vector


def _is_long(shape: Shape, sizes: Mapping[str, int]) -> bool:
    """Whether few results are reduced from many elements each."""
    results = prod(int(computed(axis.extent, sizes)) for axis in shape.kept)
    length = prod(int(computed(axis.extent, sizes)) for axis in shape.of[0].axes)
    return results < _BUSY and length >= LONG


def _are_alike(shape: Shape, sizes: Mapping[str, int]) -> bool:
    """Whether what is computed after the reductions has the extents that these are over."""
    after, *over = (
        [int(computed(axis.extent, sizes)) for axis in axes] for axes in (shape.along, *(of.axes for of in shape.of))
    )
    return all(each == after for each in over)


def _reads(form: Canonical) -> list[Read]:
    return reads(*(nest.body for nest in form.nests))


def _contiguous(shape: Shape) -> Axis | None:
    """The axis along which elements that reductions read are neighbours: the reduced one, or the last one kept."""
    reduced = {each.axes[-1].name: each.axes[-1] for each in shape.of}
    kept = {axis.name: axis for axis in shape.kept[-1:]}
    for each in (read for of in shape.of for read in reads(of.body)):
        factors = literal_factors(each.index[-1], {*reduced, *kept}) or {}
        for name, factor in factors.items():
            if factor == 1:
                return shape.of[0].axes[-1] if name in reduced else kept[name]
    return None


def _for_rows(length: int, vector: int, tensors: int) -> Reductions:
    """By part of a warp, by a warp, by a block that holds the row, or by one that reads it in several passes.

    tensors: that have such a row, which is to be held; 0 if it is read once.
    """
    held = tensors > 0
    runs = -(-length // vector)
    if runs <= WARP * _FEW:
        lanes = min(WARP, power_of_two(-(-runs // 2)))
        return Reductions(_THREADS, _THREADS // lanes, vector, -(-runs // lanes), held=held)
    elements = length * max(1, tensors)
    threads = min(_MOST_THREADS, max(2 * WARP, power_of_two(-(-elements // _HELD))))
    if held and elements <= threads * _HELD:
        return Reductions(threads, 1, vector, -(-runs // threads), held=True)
    return Reductions(2 * _THREADS, 1, vector, max(1, 16 // vector))


def _for_columns(length: int, vector: int, tensors: int) -> Reductions:
    """By threads that hold columns, or by those that read them in several passes. tensors: as of rows."""
    lanes = _THREADS // WARP
    values = -(-length // lanes)
    fewer, elements = vector, values * tensors
    while fewer > 1 and elements * fewer > _HELD_OF_COLUMNS:
        fewer //= 2
    if tensors > 0 and elements * fewer <= _HELD:
        return Reductions(_THREADS, WARP, fewer, values, columns=True, held=True)
    kept = WARP if vector > 1 else 2 * WARP  # neighbours of 256 bytes and more
    return Reductions(_THREADS, kept, vector, max(2, 8 // vector), columns=True)


def reduced(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Reductions) -> None:
    """Store the outputs, each computed from reductions."""
    shape = shape_of(form.nests)
    assert shape is not None
    for tensor in tensors.values():
        assume(prod(tensor.shape, start=1) <= _LARGEST)
    _Block(form.nests, tensors, sizes, cfg, shape).run()


@define(eq=False)
class _Block:
    """The work of one block."""

    nests: tuple[Nest, ...]
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, Any]
    cfg: Reductions
    shape: Shape
    found: dict[Expr, _Total] = field(factory=dict[Expr, "_Total"], init=False)
    loaded: dict[Loaded, Fragment] = field(factory=dict[Loaded, Fragment], init=False)
    places: dict[str, Place] = field(factory=dict[str, Place], init=False)
    numbers: dict[str, IntLike] = field(factory=dict[str, IntLike], init=False)
    """The coordinate of each kept axis, or the number of the tile along it."""
    tile: Tile = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tile = self.cfg.tile if self.cfg.tile.axes[KEPT].extent > 1 else self.cfg.tile.without(KEPT)

    def run(self) -> None:
        kept, width = self.shape.kept, self.cfg.tile.axes[KEPT].extent
        tiled = kept[-1:] if width > 1 else ()
        self._assume_vectors()
        counts = [ceil_div(self.extent(a), width) if a in tiled else self.extent(a) for a in kept]
        for axis, number in zip(kept, blocks(counts or (1,), in_order=self.cfg.in_order), strict=False):
            self.numbers[axis.name] = number
            self.places[axis.name] = Place(number * width, KEPT) if axis in tiled else Place(number)
        for each in self.shape.of:
            self._reduce(each)
        for nest in self.nests:
            if self.shape.along:
                self._store_along(nest)
            else:
                self._store_totals(nest)

    def extent(self, axis: Axis) -> IntLike:
        return computed(axis.extent, self.sizes)

    def _assume_vectors(self) -> None:
        """Accesses divide the length of the contiguous axis."""
        if self.cfg.vector > 1:
            contiguous = self.shape.kept[-1] if self.cfg.columns else self.shape.of[0].axes[-1]
            assume(self.extent(contiguous) % self.cfg.vector == 0)

    # -- passes ------------------------------------------------------------------------------------------

    def _reduce(self, of: Reduce) -> None:
        """Compute a reduction, which later ones and the output may need."""
        if of in self.found:
            return
        if of.op not in _ARG:
            self.found[of] = self._total(of)
            return
        best = Reduce("max" if of.op == "argmax" else "min", of.axes, of.body)
        self._reduce(best)
        self.found[of] = self._first_place(of, self.found[best].in_tile)

    def _first_place(self, of: Reduce, best: Fragment) -> _Total:
        """The first coordinate at which the body is its extremum, or not a number."""
        (axis,) = of.axes
        assume(self.extent(axis) >= 1)
        number, known = self.tile.number(REDUCED), self._known(of.body)
        places = registers(i32, self.tile.layout)

        def part(at: Sequence[IntLike]) -> Fragment:
            body = self._body(of.axes, at, known)
            values, place = body.value(of.body), body.numbers[axis.name]
            places[:] = place
            inside = place < self.extent(axis)
            first = where((values == best) | (values != values), places, _NONE)  # noqa: PLR0124 reason: not a number
            return where(inside, first, _NONE).min(number, within=thread)

        return self._over_tiles(of.axes, part, minimum, i32, _NONE)

    def _total(self, of: Reduce) -> _Total:
        combine, neutral = FOLDS[of.op]
        number, known = self.tile.number(REDUCED), self._known(of.body)

        def part(at: Sequence[IntLike]) -> Fragment:
            body = self._body(of.axes, at, known)
            end = body.numbers[of.axes[-1].name] < self.extent(of.axes[-1])
            return where(end, body.value(of.body), neutral).fold(number, combine, within=thread)

        return self._over_tiles(of.axes, part, combine, f32, neutral)

    def _over_tiles(
        self,
        axes: Sequence[Axis],
        part: Callable[[Sequence[IntLike]], Fragment],
        combine: Combine,
        dtype: DType,
        neutral: float,
    ) -> _Total:
        """What threads make of each tile, combined. part: of a tile."""
        if self.cfg.held:
            assert len(axes) == 1, "registers hold one reduced axis"
            assume(self.extent(axes[0]) <= self.tile.axes[REDUCED].extent)
            return self._across(part([0]), combine, dtype)
        sums = registers(dtype, self.tile.layout.partial(self.tile.number(REDUCED)))
        sums[:] = neutral
        for at in self._tiles(axes):
            sums[:] = combine(sums, part(at))
        return self._across(sums, combine, dtype)

    def _tiles(self, axes: Sequence[Axis]) -> Iterator[Sequence[IntLike]]:
        """Loops over the coordinates of all axes but the last, and over the tiles of that."""
        if self.cfg.held:
            yield [0]
            return
        *outer, last = [self.extent(axis) for axis in axes]
        yield from nested([*outer, ceil_div(last, self.tile.axes[REDUCED].extent)])

    def _body(self, axes: Sequence[Axis], at: Sequence[IntLike], known: Mapping[Expr, Any]) -> TileBody:
        """The values of a tile. at: the coordinates of all axes but the last, and the number of the tile along it."""
        here = {axis.name: Place(number) for axis, number in zip(axes, at, strict=True)}
        here[axes[-1].name] = Place(at[-1] * self.tile.axes[REDUCED].extent, REDUCED)
        loaded = self.loaded if self.cfg.held else dict[Loaded, Fragment]()
        return TileBody(self.tensors, self.sizes, self.tile, {**self.places, **here}, known, loaded)

    def _known(self, expr: Expr) -> dict[Expr, Any]:
        """What the reductions in an expression are, in all threads."""
        return {each: self.found[each].in_tile for each in reductions(expr)}

    # -- across threads ----------------------------------------------------------------------------------

    def _across(self, part: Fragment, combine: Combine, dtype: DType) -> _Total:
        """A reduction of what threads along the reduced axis have."""
        number, kept = self.tile.number(REDUCED), self.tile.axes[KEPT]
        lanes = self.tile.axes[REDUCED].lanes
        within = 1 if self.cfg.columns else min(lanes, WARP)
        of_warp = part.fold(number, combine, within=warp) if within > 1 else part
        groups = lanes // within
        if groups == 1:
            return _Total(of_warp, of_warp)
        if not self.cfg.columns:
            box = shared(dtype, (groups,))
            copy(of_warp, box, by=first_lane)
            sync()
            all_of = load(box, all_to_each(self.cfg.threads)).fold(0, combine, within=thread)
            return _Total(all_of, all_of)
        box = shared(dtype, (groups, kept.extent))
        copy(of_warp, box.T)
        sync()
        in_tile = load(box.T, self.tile.part((KEPT,), (groups,))).fold(1, combine, within=thread)
        return _Total(in_tile, load(box.T, self._last(groups).layout).fold(1, combine, within=warp))

    def _last(self, groups: int) -> Tile:
        """The tile of kept coordinates from which totals of columns are stored: lanes of a warp hold the same."""
        kept = self.tile.axes[KEPT].extent
        lanes = self.cfg.threads // kept
        if lanes < 1:
            return Tile((TileAxis(self.cfg.threads, kept // self.cfg.threads), TileAxis(1, groups)))
        return Tile((TileAxis(kept), TileAxis(lanes, max(1, groups // lanes))))

    # -- stores ------------------------------------------------------------------------------------------

    def _store_totals(self, nest: Nest) -> None:
        """Store a value for each kept coordinate."""
        lanes, Y = self.tile.axes[REDUCED].lanes, self.tensors[nest.output]
        last = self._last(lanes) if self.cfg.columns else self.tile
        known: dict[Expr, Any] = {each: self.found[each].stored for each in reductions(nest.body)}
        value: Any = TileBody(self.tensors, self.sizes, last.without(REDUCED), self.places, known).value(nest.body)
        tiled = self.tile.coordinates[:1] == (KEPT,)
        at = [self.numbers[axis.name] for axis in nest.domain]
        if tiled:
            target = Y[(*at[:-1], slice(None))].tile(last.without(REDUCED).shape, (at[-1],))
            copy(value.to(Y.dtype), target, edge=0)
        else:
            copy(value.to(Y.dtype), Y[tuple(at) or (0,)], by=first_thread, edge=0)

    def _store_along(self, nest: Nest) -> None:
        """Store a value for each coordinate, computed from the reductions."""
        Y, known = self.tensors[nest.output], self._known(nest.body)
        along = self.shape.along
        for at in self._tiles(along):
            value: Any = self._body(along, at, known).value(nest.body)
            numbers: dict[str, IntLike] = {**self.numbers, **{a.name: n for a, n in zip(along, at, strict=True)}}
            shown = {along[-1].name: REDUCED}
            if KEPT in self.tile.coordinates:
                shown[self.shape.kept[-1].name] = KEPT
            items = [slice(None) if axis.name in shown else numbers[axis.name] for axis in nest.domain]
            order = [axis.name for axis in nest.domain if axis.name in shown]
            view = Y[tuple(items)]
            if [shown[name] for name in order] == [REDUCED, KEPT]:
                view, order = view.T, order[::-1]
            copy(value.to(Y.dtype), view.tile(self.tile.shape, tuple(numbers[name] for name in order)), edge=0)


@frozen(eq=False)
class _Total:
    """A reduction, in all threads of the tile, and in those that store it."""

    in_tile: Any
    stored: Any
