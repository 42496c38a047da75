"""Checks claims that the elements of a tensor are sums of given products, when the sums are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

import numpy as np
from attrs import frozen

from argus.core.index import Index, Symbol
from argus.core.ir import Assert, Buffer, Products, Strided
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import CopyPlan, grid
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.memory.views import Place
from argus.interp.state import Block, Factors
from argus.interp.values.sums import same_accumulators
from argus.interp.values.tag_sources import TagSources
from argus.interp.values.tensor_claims import elements, number
from argus.interp.violation import Event

_AT_ONCE = 1 << 20


@frozen(eq=False)
class _Stored:
    """The elements that one wave stores to the tensor: their cells, accumulators (m, n) and lanes."""

    cells: IntArray
    m: IntArray
    n: IntArray
    lane: IntArray


def check_store(block: Block, wave: Wave, plan: CopyPlan, place: Place, rows: slice, event: Event) -> None:
    """Check the claims about the tensor that a store writes; sums with unknown products are skipped."""
    for stmt, claim in block.launch.prepared.product_claims.get(plan.target.buffer, ()):
        products = block.products.get((plan.source.buffer, wave.number))
        if products and plan.source.fixed is not None:
            _check_elementwise(_ProductsCheck(block, wave, event, stmt, claim), products, plan, place, rows)
            continue
        known = block.sums.get((plan.source.buffer, wave.number))
        if known is None or not known.open or known.scaled or plan.source.fixed is None:
            continue
        if not same_accumulators(known.log):
            continue
        cells = known.log[0].cells
        number_of = np.full(int(cells.max()) + 1, -1, np.int64)
        number_of[cells.reshape(-1)] = np.arange(cells.size)
        source = plan.source.fixed.address[rows]
        inside = np.ones(source.shape, np.bool_) if place.inside is None else place.inside[rows]
        m, n = np.divmod(number_of[source[inside]], cells.shape[1])
        stored = _Stored(place.address[rows][inside], m, n, np.flatnonzero(inside.reshape(-1)))
        a, b = (np.concatenate([getattr(entry, side) for entry in known.log], axis=1) for side in ("a", "b"))
        _ProductsCheck(block, wave, event, stmt, claim).run(stored, a, b, source.shape[1])


def _check_elementwise(check: _ProductsCheck, products: Factors, plan: CopyPlan, place: Place, rows: slice) -> None:
    """Check sums that were computed by element-wise multiplications and additions."""
    assert plan.source.fixed is not None
    source = plan.source.fixed.address[rows]
    inside = np.ones(source.shape, np.bool_) if place.inside is None else place.inside[rows]
    number = source[inside] - check.wave.first * products[0][0].shape[1]
    stored = _Stored(place.address[rows][inside], number, number, np.flatnonzero(inside.reshape(-1)))
    a, b = (np.stack([pair[side].reshape(-1) for pair in products], axis=1) for side in (0, 1))
    check.run(stored, a, b, source.shape[1])


class _ProductsCheck:
    """Checks one claim about products for one wave's stores."""

    def __init__(self, block: Block, wave: Wave, event: Event, stmt: Assert, claim: Products) -> None:
        self.block, self.wave, self.event, self.stmt, self.claim = block, wave, event, stmt, claim
        self.launch = block.launch

    def run(self, stored: _Stored, a: IntArray, b: IntArray, registers: int) -> None:
        """Compare the products of each stored element with the claimed ones; a, b: marks of the factors."""
        sources = self._tag_sources()
        if not (sources.known(a).all() and sources.known(b).all()):
            return
        factors = self._factors(sources, a, b)
        if factors is None:
            return
        first, second = factors
        tensors = sources.tensors[first], sources.tensors[second]
        every = elements(self.launch, self.claim.view)
        where = np.full(int(every.cell.max(initial=0)) + 1, -1, np.int64)
        where[every.cell] = np.arange(every.cell.size)
        claimed = prod(number(self.launch, size) for _, size in self.claim.over) * len(self.claim.products)
        step = max(1, _AT_ONCE // max(1, a.shape[1], claimed))
        for start in range(0, stored.cells.size, step):
            part = slice(start, start + step)
            found = self._found(sources, a[stored.m[part]], b[stored.n[part]], tensors, swapped=first > second)
            at = where[stored.cells[part]]
            wanted = self._wanted(tuple(axis[at] for axis in every.coordinates), tensors, swapped=first > second)
            wrong = np.flatnonzero(_rows_differ(found, wanted))
            if wrong.size:
                one = int(wrong[0])
                element = tuple(int(axis[at[one]]) for axis in every.coordinates)
                self._report(element, int(stored.lane[start + one]), registers, found[one], wanted[one])
                return

    def _tag_sources(self) -> TagSources:
        launch = self.launch
        if launch.tag_sources is None:
            written = {*launch.written, *launch.prepared.product_claims}
            read = {b: launch.tensors[b] for b in launch.prepared.kernel.parameters if b not in written}
            launch.tag_sources = TagSources.of(read, launch.records.size)
        return launch.tag_sources

    def _factors(self, sources: TagSources, a: IntArray, b: IntArray) -> tuple[int, int] | None:
        """The input that each operand's values come from; for an operand without values, the remaining input.

        None if an operand's values come from several inputs, or the remaining input is ambiguous.
        """
        owners = [np.unique(sources.owner[marks[marks >= 0]]) for marks in (a, b)]
        if max(each.size for each in owners) > 1:
            return None
        ranks = {len(place) for pair in self.claim.products for place in pair}
        taken = {int(each[0]) for each in owners if each.size}
        fitting = [n for n, buffer in enumerate(sources.tensors) if len(buffer.shape) in ranks and n not in taken]
        if len(taken) == 2:
            return int(owners[0][0]), int(owners[1][0])
        if len(taken) != 1 or len(fitting) != 1 or all(each.size for each in owners):
            return None
        one, other = next(iter(taken)), fitting[0]
        return (one, other) if owners[0].size else (other, one)

    def _found(
        self, sources: TagSources, a: IntArray, b: IntArray, tensors: tuple[Buffer, Buffer], *, swapped: bool
    ) -> IntArray:
        """The products in each sum, (element, product), sorted; -1 for none."""
        one, other = sources.cell[np.maximum(a, 0)], sources.cell[np.maximum(b, 0)]
        codes = self._codes(one, other, tensors, swapped=swapped)
        return np.sort(np.where((a >= 0) & (b >= 0), codes, -1), axis=1)

    def _codes(self, a: IntArray, b: IntArray, tensors: tuple[Buffer, Buffer], *, swapped: bool) -> IntArray:
        """Pairs of cells of the two inputs, in parameter order, encoded as one number."""
        marks = self.launch.tensors[tensors[0] if swapped else tensors[1]].marks
        assert marks is not None
        return b * marks.size + a if swapped else a * marks.size + b

    def _wanted(self, coordinates: Sequence[IntArray], tensors: tuple[Buffer, Buffer], *, swapped: bool) -> IntArray:
        """The claimed products of each element, (element, product), sorted; -1 for none."""
        factors = (tensors[1], tensors[0]) if swapped else tensors
        over = [number(self.launch, size) for _, size in self.claim.over]
        names = dict(zip((symbol for symbol, _ in self.claim.over), grid(over), strict=True)) if over else {}
        env = {**self.launch.sizes, **{symbol: values[None] for symbol, values in names.items()}}
        at = [axis[:, None] for axis in coordinates]
        shape = len(coordinates[0]), prod(over)
        parts: list[IntArray] = []
        for places in self.claim.products:
            sides = [self._cells(place, buffer, env, at, shape) for place, buffer in zip(places, factors, strict=True)]
            marks = self.launch.tensors[factors[1]].marks
            assert marks is not None
            inside = sides[0][1] & sides[1][1]
            parts.append(np.where(inside, sides[0][0] * marks.size + sides[1][0], -1))
        return np.sort(np.concatenate(parts, axis=1), axis=1)

    def _cells(
        self,
        place: tuple[Index, ...],
        buffer: Buffer,
        env: Mapping[Symbol, int | IntArray],
        at: Sequence[IntArray],
        shape: tuple[int, int],
    ) -> tuple[IntArray, BoolArray]:
        """The cells at the given coordinates of a factor, and which of them are inside it."""
        assert isinstance(buffer.layout, Strided), buffer.name
        cell, inside = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
        for node, extent, stride in zip(place, buffer.shape, buffer.layout.strides, strict=True):
            value = np.broadcast_to(np.asarray(evaluate(node, env, at)), shape)
            inside &= (value >= 0) & (value < number(self.launch, extent))
            cell += value * number(self.launch, stride)
        return cell, inside

    def _report(self, element: tuple[int, ...], lane: int, registers: int, found: IntArray, wanted: IntArray) -> None:
        thread, value = divmod(lane, registers)
        missing = np.setdiff1d(wanted, found).size
        more = int((found >= 0).sum() - (wanted >= 0).sum()) + missing
        name = self.claim.view.buffer.name
        self.block.report(
            "I3",
            f"element {list(element)} of `{name}` is not the sum of its products: {missing} of "
            f"{int((wanted >= 0).sum())} are missing, {more} others were added",
            Event(self.stmt, *_rest(self.event)),
            thread=self.wave.first + thread,
            value=value,
            element=element,
            buffer=name,
            other=self.event,
            other_thread=self.wave.first + thread,
        )


def _rest(event: Event) -> tuple[tuple[int, ...], int, tuple[int, ...], tuple[tuple[str, int], ...], int]:
    return event.block, event.wave, event.path, event.iteration, event.epoch


def _rows_differ(found: IntArray, wanted: IntArray) -> BoolArray:
    """Which rows differ as multisets, ignoring -1."""
    width = max(found.shape[1], wanted.shape[1])
    sides = (np.pad(side, ((0, 0), (width - side.shape[1], 0)), constant_values=-1) for side in (found, wanted))
    one, other = (np.sort(side, axis=1) for side in sides)
    return cast(BoolArray, (one != other).any(axis=1))
