"""What a kernel stores to an output, as an expression over the coordinates of the element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import product
from typing import cast

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Sym, Symbol
from argus.core.ir import Buffer, Copy, rewrite
from argus.core.ir.rewrite import NodeMap
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.ended_copies import element_conditions
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.values.held import fractions
from argus.core.proof.values.held.additions import total_of_executions
from argus.core.proof.values.held.cells import Cells, Rounding
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.joined import of_numbers
from argus.core.proof.values.held.loops import Loops
from argus.core.proof.values.held.rounded_integers import unrounded
from argus.core.proof.values.held.roundings import roundings
from argus.core.proof.values.held.table_forms import layout_in
from argus.core.proof.values.held.tables import affine_in
from argus.core.proof.values.held.terms import all_symbols, heads, plus, reasons, replaced
from argus.core.proof.values.held.whole_numbers import exact_up_to
from argus.core.values.expr import Expr
from argus.core.values.rewriting import mapped
from argus.core.walk import IntArray, substitute, symbols

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
    flow: Flow,
    tensor: Buffer,
    coordinates: Sequence[Index],
    before: Mapping[Buffer, Expr] | None = None,
    *,
    rounded: bool = False,
) -> Held | str:
    """The same, or why it is not modelled.

    before: what tensors hold before the kernel, over the coordinates of an element; by default, elements of their own.
    rounded: with the roundings of what later launches decide by.
    """
    stores = [
        access
        for step in flow.timeline.steps
        for access in flow.accesses.of(step)
        if access.mode == "write" and access.view.buffer is tensor
    ]
    cells, loops = _evaluated(flow, before or {})
    cases: list[Stored] = []
    adds = {isinstance(store.step.stmt, Copy) and store.step.stmt.combine is not None for store in stores}
    if len(adds) != 1:
        return "it is not stored, or stored and added to"
    for store in stores:
        found = _stored(cells, loops, store, coordinates, adds=True in adds, rounded=rounded)
        if isinstance(found, str):
            return found
        cases += found
    infinite = cells.casts.infinite(flow, cells.questions, partial(loops.solved, cells))
    if infinite:
        return infinite
    if adds == {True}:
        if len(stores) != 1:
            return "several additions to one tensor"
        earlier = cells.element(tensor, coordinates)
        cases = [evolve(case, value=plus(earlier, case.value)) for case in cases]
    return Held(
        tuple(dict.fromkeys(cases)), frozenset(roundings(cells, [store.step for store in stores])), adds == {True}
    )


def _evaluated(flow: Flow, before: Mapping[Buffer, Expr]) -> tuple[Cells, Loops]:
    """What is known of the cells and the loops of a flow: outputs share most of it. All that may be asked is left."""
    key = frozenset(before.items())
    if key not in flow.evaluations:
        loops = Loops()
        flow.evaluations[key] = Cells(flow, loops.at_head, loops.after_loop, before), loops
    cells, loops = cast("tuple[Cells, Loops]", flow.evaluations[key])
    cells.questions = cells.questions.renewed()
    return cells, loops


def _stored(
    cells: Cells, loops: Loops, store: Access, coordinates: Sequence[Index], *, adds: bool, rounded: bool
) -> list[Stored] | str:
    """What a store puts at the element, in cases. adds: what all its executions add to it."""
    places = store.places
    if places is None or not isinstance(store.step.stmt, Copy):
        return "its address is not a sum of a symbolic part and a number"
    most = exact_up_to(cells.flow.timeline.kernel)
    value = unrounded(loops.resolved(cells, cells.written(store.step)), most, decided=rounded)
    blocks = _blocks(places, coordinates)
    value = _at_element(replaced(value, blocks), places, coordinates)
    given = tuple(substitute(cond, blocks) for cond in _given(cells, store, places, coordinates))
    found: list[Stored] = []
    for one in _over_coordinates(cells, store, places, coordinates, value):
        if one is None:
            return "elements of a tile hold unlike values"
        cases: list[tuple[dict[Symbol, Index], Stored]] = []
        for agent in _agents(one):
            here = tuple(substitute(cond, agent) for cond in given)
            known = Known(cells.flow, here, cells.questions)
            plain = fractions.simplified(known.simplified(replaced(one, agent)), known)
            lost = reasons(plain)
            if lost or heads(plain):
                return lost[0] if lost else "a tile that a loop carries"
            cases.append((agent, Stored(plain, here)))
        if not adds:
            found += [case for _, case in cases]
            continue
        for agent, case in _of_any_agent(cases, given):
            added = _added(cells, store, case, coordinates, agent)
            if isinstance(added, str):
                return added
            found.append(added)
    return found


def _of_any_agent(
    cases: list[tuple[dict[Symbol, Index], Stored]], given: tuple[Cond, ...]
) -> list[tuple[dict[Symbol, Index], Stored]]:
    """The values of one agent's numbers as one value over the number, where there is one."""
    if len(cases) < 2 or len(cases[0][0]) != 1:
        return cases
    (agent,) = cases[0][0]
    assert agent.low is not None
    one = of_numbers([case.value for _, case in cases], agent, agent.low)
    return cases if one is None else [({}, Stored(one, given))]


def _blocks(places: Sequence[Separable], coordinates: Sequence[Index]) -> dict[Symbol, Index]:
    """Blocks and iterations that store one coordinate each, by that coordinate."""
    found: dict[Symbol, Index] = {}
    for place, at in zip(places, coordinates, strict=True):
        base = place.least
        if place.uniform and isinstance(base, Sym) and base.symbol.kind in ("block", "loop"):
            found.setdefault(base.symbol, at)
    return found


def _at_element(value: Expr, places: Sequence[Separable], coordinates: Sequence[Index]) -> Expr:
    """The value with what blocks and iterations compute of a coordinate that a tile's elements share, by that one."""
    names: dict[Node, Index] = {
        place.least: at
        for place, at in zip(places, coordinates, strict=True)
        if place.uniform and isinstance(place.least, Bin) and any(s.kind in _TILES for s in symbols(place.least))
    }
    if not names:
        return value
    of = NodeMap(names)
    return mapped(value, lambda at: rewrite.substitute(at, of), lambda cond: rewrite.substitute(cond, of))


_TILES = ("block", "loop")
"""The symbols that number tiles."""


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
    path = cells.flow.timeline.path_condition  # in the facts, too, but in terms of the block
    conds = [cond for cond in (*path, *store.step.context) if cells.thread not in symbols(cond)]
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
    numbers: list[IntArray] = []
    names: list[Index] = []
    for place, at in varying:
        table = place.table[active]
        falls = bool(table[-1] < table[0])  # of a tile whose elements go from the end on
        numbers.append(place.high - table if falls else table - place.low)
        name = algebra.sub(place.most, at) if falls else algebra.sub(at, place.least)
        names.append(substitute(name, _blocks(places, coordinates)))
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


def _added(
    cells: Cells, store: Access, case: Stored, coordinates: Sequence[Index], agent: Mapping[Symbol, Index]
) -> Stored | str:
    """What all executions of an addition add to the element, and what is known of the element."""
    if adds_in_every_block(cells.flow, store):
        return evolve(case, value=_over_blocks(cells.flow, store, case.value))
    mine = frozenset[Symbol]().union(*map(symbols, coordinates))
    given = tuple(cond for cond in case.given if all(s.kind == "size" or s in mine for s in symbols(cond)))
    total = total_of_executions(Known(cells.flow, given, cells.questions), store, case.value, coordinates, agent)
    return total if isinstance(total, str) else Stored(total[0], (*given, *total[1]))


def adds_in_every_block(flow: Flow, store: Access) -> bool:
    """Whether each block executes an addition once; that it adds to each element is for other obligations."""
    return store.step.loop is None and store.step.guard is algebra.TRUE and not flow.timeline.path_condition


def _over_blocks(flow: Flow, store: Access, value: Expr) -> Expr:
    """The sum over the blocks that add to one element: those that differ in symbols its place does not mention.

    All of them add the same case to it: which thread of which agent does follows from its place.
    """
    assert store.places is not None
    kernel = flow.timeline.kernel
    own = frozenset[Symbol]().union(*(symbols(place.base) for place in store.places))
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
