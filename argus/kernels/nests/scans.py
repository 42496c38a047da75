"""Prefix sums and products along an axis: inclusive or exclusive, from either end, of any body.

The reduction of element n is over the first +-n + c coordinates of its axis. A row is scanned in chunks: by each warp,
then across the warps of a block; columns, by each thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from attrs import define, evolve, field, frozen

from argus.kernels.nests.bodies import FOLDS, Place, TileBody
from argus.kernels.nests.fragments import TYPES
from argus.kernels.nests.tiles import WARP, Tile, TileAxis, blocks, may_be_in_order, power_of_two, vector_for
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Tensor,
    all_to_each,
    assume,
    ceil_div,
    copy,
    f32,
    last_lane,
    load,
    loop,
    registers,
    shared,
    sm_90a,
    sync,
    thread,
    warp,
    wave,
    where,
)
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import Axis, Expr, Nest, Reduce
from argus.nests.rewrite import placed, reads, reductions
from argus.nests.terms import coordinates_in, literal, literal_factors, minus, names_in

_LARGEST = 1 << 40
"""Elements of a tensor, so that offsets in bytes fit 64 bits."""
KEPT, SCANNED = 0, 1


@frozen
class Scans:
    """A block of `threads` scans a row, each thread `values` runs of `vector` elements at a time.

    columns: each thread scans a column, `values` elements at a time. in_order: blocks that start one after the other
    are neighbours along the last of the other axes; else along the first.
    """

    threads: int = 256
    vector: int = 1
    values: int = 4
    columns: bool = False
    in_order: bool = True
    target = sm_90a

    @property
    def tile(self) -> Tile:
        """The axes (kept, scanned)."""
        if self.columns:
            return Tile((TileAxis(self.threads), TileAxis(values=self.values)))
        return Tile((TileAxis(spare=True), TileAxis(self.threads, self.values, self.vector, in_order=True)))


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Scans | None:
    """The configuration for a scan along an axis; None for other nests."""
    scan = scan_of(form.nests[0]) if len(form.nests) == 1 else None
    types = {each.dtype for each in reads(form.nests[0].body)}
    if scan is None or not types <= set(TYPES):
        return None
    kept = [int(computed(axis.extent, sizes)) for axis in form.nests[0].domain if axis is not scan.axis]
    in_order = may_be_in_order(kept)
    if scan.axis != form.nests[0].domain[-1]:
        return Scans(4 * WARP, values=8, columns=True, in_order=in_order)
    length = int(computed(scan.axis.extent, sizes))
    plain = not scan.backwards and scan.shift == 0
    vector = vector_for(length, max(TYPES[each].bits // 8 for each in types)) if plain else 1
    threads = min(8 * WARP, max(2 * WARP, power_of_two(-(-length // 16))))
    return Scans(threads, vector, 16 // vector, in_order=in_order)


@frozen(eq=False)
class Scan:
    """A scan along an axis of the output.

    of: the reduction, over one axis. body: what it combines, by the place from where the scan begins. axis: that of the
    output. backwards: element n is over as many coordinates as lie between it and the end. shift: how many more
    coordinates than elements so far, at most 0.
    """

    of: Reduce
    body: Expr
    axis: Axis
    backwards: bool
    shift: int


def scan_of(nest: Nest) -> Scan | None:
    """The scan that a nest is; None if it is none."""
    found = reductions(nest.body)
    if len(found) != 1 or len(found[0].axes) != 1 or found[0].op not in ("add", "mul"):
        return None
    of = _from_the_start(found[0])
    extent = of.axes[0].extent
    along = [axis for axis in nest.domain if axis.name in names_in(extent)]
    if len(along) != 1:
        return None
    (axis,) = along
    factor = (literal_factors(extent, [axis.name]) or {}).get(axis.name)
    rest = minus(extent, axis.index) if factor == 1 else minus(minus(extent, axis.extent), minus(0, axis.index))
    shift = literal(minus(rest, 1)) if factor == 1 else literal(rest)
    if factor not in (1, -1) or shift is None or shift > 0:
        return None
    if any(axis.name in names_in(index) for each in reads(of.body) for index in each.index):
        return None
    return Scan(found[0], of.body, axis, factor == -1, shift)


def _from_the_start(of: Reduce) -> Reduce:
    """The reduction with the last coordinate first, where its body is then of that coordinate alone."""
    (own,) = of.axes
    turned = placed(of.body, {own.symbol: minus(minus(own.extent, 1), own.index)})
    outer = coordinates_in(own.extent)
    return of if _mentions(turned, outer) or not _mentions(of.body, outer) else evolve(of, body=turned)


def _mentions(body: Expr, names: frozenset[str]) -> bool:
    return any(not names_in(index).isdisjoint(names) for each in reads(body) for index in each.index)


def scans(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Scans) -> None:
    """Store what each element of the output is, computed from the scan up to it."""
    (nest,) = form.nests
    scan = scan_of(nest)
    assert scan is not None
    for tensor in tensors.values():
        assume(prod(tensor.shape, start=1) <= _LARGEST)
    _Block(nest, scan, tensors, sizes, cfg).run()


@define(eq=False)
class _Block:
    nest: Nest
    scan: Scan
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, Any]
    cfg: Scans
    places: dict[str, Place] = field(factory=dict[str, Place], init=False)
    numbers: dict[str, IntLike] = field(factory=dict[str, IntLike], init=False)

    def run(self) -> None:
        kept = [axis for axis in self.nest.domain if axis is not self.scan.axis]
        width = self.cfg.tile.axes[KEPT].extent
        counts = [self.extent(axis) for axis in kept]
        if self.cfg.columns:
            counts[-1] = ceil_div(counts[-1], width)
        for axis, number in zip(kept, blocks(counts or [1], in_order=self.cfg.in_order), strict=False):
            last = self.cfg.columns and axis is kept[-1]
            self.numbers[axis.name] = number
            self.places[axis.name] = Place(number * width, KEPT) if last else Place(number)
        if self.cfg.vector > 1:
            assume(self.extent(self.scan.axis) % self.cfg.vector == 0)
        combine, neutral = FOLDS[self.scan.of.op]
        number = self.cfg.tile.number(SCANNED)
        before = registers(f32, self.cfg.tile.layout.partial(number))
        before[:] = neutral
        box = None if self.cfg.columns else shared(f32, (self.cfg.threads // WARP,))
        for chunk in loop(ceil_div(self.extent(self.scan.axis), self.cfg.tile.axes[SCANNED].extent)):
            terms = self._terms(chunk, neutral)
            if box is None:
                run = terms.scan(number, combine, within=thread)
                self._store(chunk, combine(before, run))
                before[:] = combine(before, run.last(number, within=thread))
                continue
            run = terms.scan(number, combine, within=warp)
            copy(run.last(number, within=warp), box, by=last_lane)
            sync()
            of_warps = load(box, all_to_each(self.cfg.threads))
            earlier = of_warps.fold(0, combine, where=of_warps.index[0] < wave)
            self._store(chunk, combine(run, combine(before, earlier)))
            before[:] = combine(before, of_warps.fold(0, combine))
            sync()  # the next chunk's totals replace these

    def extent(self, axis: Axis) -> Any:  # noqa: ANN401 reason: an integer of the kernel
        return computed(axis.extent, self.sizes)

    def _terms(self, chunk: Int, neutral: float) -> Fragment:
        """What the scan combines: of a chunk, neutral before the first and after the last."""
        tile, scan = self.cfg.tile, self.scan
        start = chunk * tile.axes[SCANNED].extent
        (own,) = scan.of.axes
        body = TileBody(self.tensors, self.sizes, tile, {**self.places, own.name: Place(start + scan.shift, SCANNED)})
        at = body.numbers[own.name]
        inside = (at >= 0) & (at < self.extent(scan.axis))
        return where(inside, body.value(scan.body), neutral)

    def _store(self, chunk: Int, run: Fragment) -> None:
        tile, scan, Y = self.cfg.tile, self.scan, self.tensors[self.nest.output]
        start = chunk * tile.axes[SCANNED].extent
        end = self.extent(scan.axis) - 1
        place = Place(end - start, SCANNED, -1) if scan.backwards else Place(start, SCANNED)
        places = {**self.places, scan.axis.name: place}
        body = TileBody(self.tensors, self.sizes, tile, places, {scan.of: run})
        shown = tile.coordinates

        def at(*coordinates: Int) -> Sequence[IntLike]:
            found = body.at(dict(zip(shown, coordinates, strict=True)))
            return tuple(found[axis.name] for axis in self.nest.domain)

        copy(body.value(self.nest.body).to(Y.dtype), Y.gather(tile.shape, at), edge=0)
