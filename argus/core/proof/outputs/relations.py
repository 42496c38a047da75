"""Asserted relations between tags (I39): element by element, from iteration to iteration, and between any two blocks.

A component is a table of integers with few symbolic parts, so a relation is one query per distinct row of the
components that it names. Between executions, the query has two copies of the variables, and the offsets of the
elements are abstracted to their ranges: what holds for the ranges holds for the elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import And, Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.ir import Assert, Distinct, TagOf
from argus.core.layout import TV
from argus.core.proof.dataflow.access import sequential_tv
from argus.core.proof.dataflow.affine import coordinate_axes
from argus.core.proof.dataflow.separable_index import FragmentIndex, Piecewise, Separable, cases_of, distinct_columns
from argus.core.proof.dataflow.timeline import Shift, Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.content import (
    COUNTED,
    BoolArray,
    Content,
    Data,
    Inside,
    content_error,
    nonempty,
    shift_content,
)
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import IntArray, substitute, symbols

_CASES = 4096
"""Maximal number of distinct rows of one relation; a solver would not decide larger queries."""
_PIECES = 16


@frozen(eq=False)
class Case:
    """Elements with known components: under `context`, at `mask`, where all of `inside` hold.

    summed: some component ranges over the contributions of a sum.
    """

    mask: BoolArray
    context: tuple[Cond, ...]
    components: Mapping[Symbol, FragmentIndex]
    inside: tuple[Inside, ...]
    summed: bool = False


def equality_obligations(flow: ValueFlow, step: Step, stmt: Assert, left: TagOf, right: TagOf) -> Iterator[Obligation]:
    what = f"`{left.view.buffer.name}.{left.name}` equals `{right.view.buffer.name}.{right.name}`"
    one, two = Symbol("left", "fresh"), Symbol("right", "fresh")
    cond = algebra.eq(algebra.sym(one), algebra.sym(two))
    yield from _of_elements(flow, step, stmt, ((one, left), (two, right)), cond, what)


def relation_obligations(
    flow: ValueFlow, step: Step, stmt: Assert, names: tuple[tuple[Symbol, TagOf], ...], cond: Cond
) -> Iterator[Obligation]:
    """A relation may also be between a sum and its scale (I35): a summed name then ranges over the contributions."""
    yield from _of_elements(flow, step, stmt, names, cond, f"{show(cond)} for every element")


def _of_elements(
    flow: ValueFlow, step: Step, stmt: Assert, names: Sequence[tuple[Symbol, TagOf]], cond: Cond, what: str
) -> Iterator[Obligation]:
    cases = _cases(flow, step, names)
    several = len({of.view.buffer for _, of in names}) > 1
    if isinstance(cases, str):
        yield _unknown(step, stmt, what, cases)
        return
    trivial = cond is algebra.TRUE or len({(of.view, of.name, of.back) for _, of in names}) < len(names)
    for case in cases:
        goal = _goal(case, cond)
        if isinstance(goal, str):
            yield _unknown(step, stmt, what, goal)
            continue
        yield Obligation(
            "I35" if case.summed and several else "I39",
            what,
            stmt,
            goal,
            (*case.context, *nonempty(case.inside)),
            minimise=minimisation_order(goal),
            compared=0 if trivial else int(case.mask.sum()),
            help="correct the relation, or the copies that bring other elements here",
        )


def _unknown(step: Step, stmt: Assert, what: str, reason: str) -> Obligation:
    return Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=reason)


def _goal(case: Case, cond: Cond) -> Cond | str:
    """The relation, conjunct by conjunct, since each may name few components."""
    goals: list[Cond] = []
    for part in cond.parts if isinstance(cond, And) else (cond,):
        goal = _goal_of_part(case, part)
        if isinstance(goal, str):
            return goal
        goals.append(goal)
    return algebra.all_of(goals)


def _goal_of_part(case: Case, cond: Cond) -> Cond | str:
    """The relation for each distinct row of the components that it names.

    Where that is not trivially true, elements outside their tensor are exempt. A relation that is the same for all
    elements is asked without exemption, as some element lies inside.
    """
    named = symbols(cond)
    case = evolve(case, components={symbol: part for symbol, part in case.components.items() if symbol in named})
    if not case.components:
        return cond
    plain = _for_each(case, case.components, cond)
    if plain is algebra.TRUE or not case.inside or not _differs(case):
        return plain
    bounds = [(bound, Symbol(f"place_{n}", "fresh")) for n, bound in enumerate(case.inside)]
    outside = [algebra.negate(bound.of(algebra.sym(symbol))) for bound, symbol in bounds]
    columns = dict(case.components) | {symbol: bound.coordinate for bound, symbol in bounds}
    return _for_each(case, columns, algebra.any_of((*outside, cond)))


def _differs(case: Case) -> bool:
    """Whether components differ from element to element."""
    tables = [table[case.mask] for _, table in map(cases_of, case.components.values())]
    return any(bool((table != table[0]).any()) for table in tables)


def _for_each(case: Case, columns: Mapping[Symbol, FragmentIndex], cond: Cond) -> Cond | str:
    """The condition for each distinct row of columns."""
    known = {symbol: cases_of(column) for symbol, column in columns.items()}
    tables = [table[case.mask] for _, table in known.values()]
    rows, _ = distinct_columns(tables, [len(cases) for cases, _ in known.values()])
    if rows.shape[1] > _CASES:
        return f"more than {_CASES} different elements to compare"
    goals: list[Cond] = []
    for row in rows.T:
        values = {symbol: cases[int(at)] for (symbol, (cases, _)), at in zip(known.items(), row, strict=True)}
        goals.append(substitute(cond, values))
    return algebra.all_of(goals)


# -- what the tiles hold -----------------------------------------------------------------------------------------


def _cases(flow: ValueFlow, step: Step, names: Sequence[tuple[Symbol, TagOf]]) -> tuple[Case, ...] | str:
    """The components in every case of the tiles' contents, or why they are not known."""
    contents: list[tuple[Symbol, TagOf, Content]] = []
    context = step.context
    for symbol, of in names:
        content = flow.tile(step, of.view, of.by)
        if of.back:
            if step.loop is None:
                return "an earlier iteration, outside a loop or in an unrolled one"
            before = step.loop.back(of.back)
            content = shift_content(content, before)
            context = (*context, step.loop.has_earlier(of.back), substitute(step.guard, before))
        contents.append((symbol, of, content))
    shapes = {piece.mask.shape for _, _, content in contents for piece in content}
    if len(shapes) != 1:
        return "the tiles have different shapes"
    found: list[Case] = []
    for pieces in product(*(content for _, _, content in contents)):
        case = _case(contents, pieces, context)
        if isinstance(case, str):
            return case
        if case.mask.any():
            found.append(case)
        if len(found) > _PIECES:
            return "the tiles' contents differ in too many cases"
    return tuple(found)


def _case(contents: Sequence[tuple[Symbol, TagOf, Content]], pieces: Content, context: tuple[Cond, ...]) -> Case | str:
    mask = np.logical_and.reduce([piece.mask for piece in pieces])
    components: dict[Symbol, FragmentIndex] = {}
    inside: dict[tuple[int, int], Inside] = {}
    summed = False
    for (symbol, of, _), piece in zip(contents, pieces, strict=True):
        context = (*context, piece.guard)
        if not isinstance(piece.value, Data):
            return content_error(piece.value)
        member = _member(piece.value, symbol, of.name)
        if member is not None:
            summed, context = True, (*context, member)
            components[symbol] = Separable(algebra.sym(symbol), np.zeros(piece.mask.shape, np.int64))
        elif of.name in piece.value.record:
            components[symbol] = piece.value.record[of.name]
        else:
            return f"`{of.view.buffer.name}` carries no tag `{of.name}`"
        for bound in piece.value.inside:
            inside[id(bound.coordinate), id(bound.extent)] = bound
    return Case(mask, context, components, tuple(inside.values()), summed)


def _member(value: Data, symbol: Symbol, name: str) -> Cond | None:
    """That the symbol is one of the contributions of a sum; None if the component is not that of a sum."""
    count = (value.sets or {}).get(name)
    if count is None or coordinate_axes(count):
        return None
    return algebra.le(1, substitute(count, {COUNTED: algebra.sym(symbol)}))


# -- distinctness ------------------------------------------------------------------------------------------------


def distinctness_obligations(flow: ValueFlow, step: Step, stmt: Assert, claim: Distinct) -> Iterator[Obligation]:
    named = ", ".join(f"`{of.name}`" for of in claim.components)
    what = f"no two elements have equal {named}"
    names = [(Symbol(f"component_{n}", "fresh"), of) for n, of in enumerate(claim.components)]
    first = claim.components[0]
    if any(not _same_tile(of, first) for of in claim.components):
        yield _unknown(step, stmt, what, "the components belong to different tiles")
        return
    cases = _cases(flow, step, names)
    if isinstance(cases, str):
        yield _unknown(step, stmt, what, cases)
        return
    if len(cases) != 1 or not cases[0].mask.all():
        yield _unknown(step, stmt, what, "the tile's content differs from case to case")
        return
    (case,) = cases
    goal = _all_distinct(case, _elements(first))
    if isinstance(goal, str):
        yield _unknown(step, stmt, what, goal)
        return
    context = (*case.context, *nonempty(case.inside))
    yield Obligation("I39", what, stmt, goal, context, minimise=minimisation_order(goal), compared=case.mask.size)
    if claim.over:
        yield _between(flow, step, stmt, claim, case, f"{what} across {', '.join(s.name for s in claim.over)}")


def _same_tile(one: TagOf, two: TagOf) -> bool:
    return (one.view.buffer, one.view.at, one.by, one.back) == (two.view.buffer, two.view.at, two.by, two.back)


def _elements(of: TagOf) -> IntArray:
    """The element of the tile that each register holds; replicas hold the same one."""
    layout = of.by or of.view.buffer.layout
    return layout.elements() if isinstance(layout, TV) else sequential_tv(of.view).elements()


def _all_distinct(case: Case, elements: IntArray) -> Cond | str:
    """That no two elements have equal components: by the tables, or else by the symbolic parts."""
    plain = [part.table for part in case.components.values() if isinstance(part, Separable)]
    mixed = [part for part in case.components.values() if isinstance(part, Piecewise)]
    _, element = np.unique(elements, return_inverse=True)
    tables = [*plain, *(part.table for part in mixed), element.reshape(elements.shape)]
    rows, _ = distinct_columns([table - table.min() for table in tables], [int(np.ptp(table)) + 1 for table in tables])
    values = rows[:-1]
    equal_rows = np.unique(values, axis=1).shape[1] < values.shape[1]
    if equal_rows:
        return algebra.FALSE
    if not mixed:
        return algebra.TRUE
    return _pairs(values, len(plain), mixed)


def _pairs(rows: IntArray, plain: int, mixed: Sequence[Piecewise]) -> Cond | str:
    """That elements with equal table rows differ in some symbolic part."""
    _, group = np.unique(rows[:plain], axis=1, return_inverse=True) if plain else (None, np.zeros(rows.shape[1], int))
    goals: list[Cond] = []
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        for place, i in enumerate(members):
            for j in members[place + 1 :]:
                if len(goals) >= _CASES:
                    return f"more than {_CASES} pairs of elements to compare"
                same = [
                    algebra.eq(part.cases[int(rows[plain + n, i])], part.cases[int(rows[plain + n, j])])
                    for n, part in enumerate(mixed)
                ]
                goals.append(algebra.negate(algebra.all_of(same)))
    return algebra.all_of(goals)


def _between(flow: ValueFlow, step: Step, stmt: Assert, claim: Distinct, case: Case, what: str) -> Obligation:
    """Elements of two executions that differ in the named variables have different components."""
    other: Shift = {s: algebra.sym(evolve(s, name=f"{s.name}'")) for s in claim.over}
    parts = list(case.components.values())
    if not all(isinstance(part, Separable) for part in parts):
        return _unknown(step, stmt, what, "between executions, tags that combine symbols and coordinates")
    equal: list[Cond] = [*case.context, *(substitute(cond, other) for cond in (*flow.facts, *case.context))]
    for axis, part in enumerate(parts):
        assert isinstance(part, Separable)
        mine = algebra.add(part.base, _offset(axis, part, ""))
        theirs = algebra.add(substitute(part.base, other), _offset(axis, part, "'"))
        equal.append(algebra.eq(mine, theirs))
        for bound in case.inside:
            where = bound.coordinate
            if isinstance(where, Separable) and where.base is part.base and np.array_equal(where.table, part.table):
                equal += [bound.of(mine), evolve(bound, extent=substitute(bound.extent, other)).of(theirs)]
    goal = algebra.all_of(algebra.eq(algebra.sym(symbol), other[symbol]) for symbol in claim.over)
    return Obligation(
        "I39",
        what,
        stmt,
        goal,
        tuple(equal),
        minimise=minimisation_order(algebra.all_of(equal)),
        compared=case.mask.size,
        help="no two iterations or blocks may take the same elements",
    )


def _offset(axis: int, part: Separable, mark: str) -> Index:
    """An arbitrary entry of a table, as a symbol within its range."""
    return algebra.sym(Symbol(f"offset_{axis}{mark}", "fresh", part.low, part.high))
