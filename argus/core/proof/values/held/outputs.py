"""What a kernel stores to an output, as an expression over the coordinates of the element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import product

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Sym, Symbol
from argus.core.ir import Buffer, Copy
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.store_ends import element_conditions
from argus.core.proof.values.held import fractions
from argus.core.proof.values.held.cells import Cells, Rounding
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.loops import Loops
from argus.core.proof.values.held.roundings import roundings
from argus.core.proof.values.held.table_forms import layout_in
from argus.core.proof.values.held.tables import affine_in
from argus.core.proof.values.held.terms import all_symbols, heads, plus, reasons, replaced
from argus.core.values.expr import Expr
from argus.core.walk import substitute, symbols

_CLASSES = 64
_PARTS = 16
"""Blocks along one axis of a grid whose parts of a sum are spelled out: their ranges adjoin where they are numbers."""


@frozen
class Stored:
    """What one store puts at the element, where it stores it.

    given: conditions that hold there, besides the facts of the flow: of the statement, that the element lies in the
    tensor and in the tile.
    """

    value: Expr
    given: tuple[Cond, ...]


@frozen
class Held:
    """What an output holds after the kernel: each of `cases` at the elements that its store writes.

    That every element is written, and how often, is for other obligations. roundings: those between inputs and output.
    before: the value is added to what the tensor held: each case is the sum over all blocks that add to one element.
    """

    cases: tuple[Stored, ...]
    roundings: frozenset[Rounding]
    adds: bool = False


def value_of_output(flow: Flow, tensor: Buffer, coordinates: Sequence[Index]) -> Held | None:
    """The value of the element of `tensor` at these coordinates on one control path; None if it is not modelled.

    coordinates: one expression for each axis, over symbols that the kernel does not use. The value presumes all other
    obligations of the kernel: no race, no missing wait, accesses in bounds.
    """
    found = interpreted(flow, tensor, coordinates)
    return found if isinstance(found, Held) else None


def interpreted(
    flow: Flow, tensor: Buffer, coordinates: Sequence[Index], before: Mapping[Buffer, Expr] | None = None
) -> Held | str:
    """The same, or why it is not modelled.

    before: what tensors hold before the kernel, over the coordinates of an element; by default, elements of their own.
    """
    stores = [
        access
        for step in flow.timeline.steps
        for access in flow.accesses.of(step)
        if access.mode == "write" and access.view.buffer is tensor
    ]
    loops = Loops()
    cells = Cells(flow, loops.at_head, loops.after_loop, before or {})
    cases: list[Stored] = []
    adds = {isinstance(store.step.stmt, Copy) and store.step.stmt.combine is not None for store in stores}
    if len(adds) != 1:
        return "it is not stored, or stored and added to"
    for store in stores:
        found = _stored(cells, loops, store, coordinates)
        if isinstance(found, str):
            return found
        cases += found
    infinite = cells.casts.infinite(flow, cells.questions, partial(loops.solved, cells))
    if infinite:
        return infinite
    if adds == {True}:
        if len(stores) != 1:
            return "several additions to one tensor"
        totals = [_over_blocks(flow, stores[0], case.value) for case in cases]
        lost = next((each for each in totals if isinstance(each, str)), "")
        if lost:
            return lost
        earlier = cells.element(tensor, coordinates)
        sums = (plus(earlier, each) for each in totals if not isinstance(each, str))
        cases = [evolve(case, value=each) for case, each in zip(cases, sums, strict=True)]
    return Held(
        tuple(dict.fromkeys(cases)), frozenset(roundings(cells, [store.step for store in stores])), adds == {True}
    )


def _stored(cells: Cells, loops: Loops, store: Access, coordinates: Sequence[Index]) -> list[Stored] | str:
    places = store.places
    if places is None or not isinstance(store.step.stmt, Copy):
        return "its address is not a sum of a symbolic part and a number"
    value = loops.resolved(cells, cells.written(store.step))
    blocks = _blocks(places, coordinates)
    value = replaced(value, blocks)
    given = tuple(substitute(cond, blocks) for cond in _given(cells, store, places, coordinates))
    found: list[Stored] = []
    for one in _over_coordinates(cells, store, places, coordinates, value):
        if one is None:
            return "elements of a tile hold unlike values"
        for agent in _agents(one):
            here = tuple(substitute(cond, agent) for cond in given)
            known = Known(cells.flow, here, cells.questions)
            plain = fractions.simplified(known.simplified(replaced(one, agent)), known)
            lost = reasons(plain)
            if lost or heads(plain):
                return lost[0] if lost else "a tile that a loop carries"
            found.append(Stored(plain, here))
    return found


def _blocks(places: Sequence[Separable], coordinates: Sequence[Index]) -> dict[Symbol, Index]:
    """Blocks and iterations that store one coordinate each, by that coordinate."""
    found: dict[Symbol, Index] = {}
    for place, at in zip(places, coordinates, strict=True):
        base = place.least
        if place.uniform and isinstance(base, Sym) and base.symbol.kind in ("block", "loop"):
            found.setdefault(base.symbol, at)
    return found


def _agents(value: Expr) -> Iterator[dict[Symbol, Index]]:
    """The number of each agent, of those in the value."""
    named = [each for each in sorted(all_symbols(value), key=lambda s: s.name) if each.kind == "agent"]
    ranges = [range(each.low, each.high + 1) for each in named if each.low is not None and each.high is not None]
    if len(ranges) < len(named):
        yield {}
        return
    for numbers in product(*ranges):
        yield {symbol: algebra.const(number) for symbol, number in zip(named, numbers, strict=True)}


def _given(cells: Cells, store: Access, places: Sequence[Separable], coordinates: Sequence[Index]) -> tuple[Cond, ...]:
    conds = [cond for cond in store.step.context if cells.thread not in symbols(cond)]
    for place, at, extent in zip(places, coordinates, store.view.buffer.shape, strict=True):
        conds += [algebra.le(place.least, at), algebra.le(at, place.most)]
        conds += [algebra.le(0, at), algebra.lt(at, extent)]
        if place.uniform:
            conds.append(algebra.eq(at, place.least))
    conds += element_conditions(store.ends, coordinates)
    return tuple(dict.fromkeys(cond for cond in conds if cond is not algebra.TRUE))


def _over_coordinates(
    cells: Cells, store: Access, places: Sequence[Separable], coordinates: Sequence[Index], value: Expr
) -> Iterator[Expr | None]:
    """The value with its tables expressed over the coordinates; by classes of elements where that is not possible."""
    active = store.active
    varying = [(place, at) for place, at in zip(places, coordinates, strict=True) if not place.uniform]
    numbers = [place.table[active] - place.low for place, _ in varying]
    names = [substitute(algebra.sub(at, place.least), _blocks(places, coordinates)) for place, at in varying]
    known: dict[Symbol, Index] = {}
    apart: list[Symbol] = []
    needed = cells.tables.needed(value)
    for symbol in cells.tables.of(value):
        table = np.broadcast_to(cells.tables.known[symbol], store.shape)[active]
        need = np.broadcast_to(needed[symbol], store.shape)[active]
        found = affine_in(table, numbers, names, need) or layout_in(table, numbers, names, need)
        if found is None:
            apart.append(symbol)
        else:
            known[symbol] = found
    value = replaced(value, known)
    if not apart:
        yield value
        return
    columns = np.stack([np.broadcast_to(cells.tables.known[each], store.shape)[active] for each in apart])
    classes = np.unique(columns, axis=1)
    if classes.shape[1] > _CLASSES:
        yield None
        return
    for column in classes.T:
        yield replaced(value, {s: algebra.const(int(n)) for s, n in zip(apart, column, strict=True)})


def _over_blocks(flow: Flow, store: Access, value: Expr) -> Expr | str:
    """The sum over the blocks that add to one element: those that differ in symbols its place does not mention.

    All of them add the same case to it: which thread of which agent does follows from its place.
    """
    assert store.places is not None
    kernel = flow.timeline.kernel
    own = frozenset[Symbol]().union(*(symbols(place.base) for place in store.places))
    if store.step.loop is not None or store.step.guard is not algebra.TRUE or flow.timeline.path_condition:
        return "an addition in a loop or a branch"
    ranges: list[Range] = []
    for block, extent in zip(kernel.blocks, kernel.grid, strict=True):
        if block in own:
            continue
        if isinstance(extent, Const) and 0 < extent.value <= _PARTS:
            value = reduce(plus, (replaced(value, {block: algebra.const(part)}) for part in range(extent.value)))
        else:
            ranges.append(Range(Symbol(f"~{block.name}", "fresh", 0), extent))
            value = replaced(value, {block: algebra.sym(ranges[-1].variable)})
    return reduction("sum", ranges, value) if ranges else value
