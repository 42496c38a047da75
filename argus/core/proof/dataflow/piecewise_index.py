"""Evaluates an index expression over a fragment as a table of distinct expressions, where it is not separable.

Each operator is applied once per distinct combination of its operands, not once per element: `(k // 8) ^ (m % 8)` on a
64 x 32 tile has 32 combinations for 2,048 elements. With numbers in place of coordinates most bits of `^`, `&` and `|`
are constant, so no solver query combines a swizzle with a loop variable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from argus.core.index import Cond, Coord, Held, Index, Node, Symbol
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Separable,
    cases_of,
    distinct_columns,
    evaluate_node,
    from_cases,
)
from argus.core.walk import IntArray, children, rebuild, within

MAX_CASES = 1024
"""Maximum number of distinct expressions in one component; solvers do not decide larger queries."""


@frozen(eq=False)
class _Cases:
    """`nodes[table]`, where nodes are indices or the conditions of a choice."""

    nodes: tuple[Node, ...]
    table: IntArray


_Part = Separable | _Cases | None


def evaluate_piecewise(
    expression: Index, coords: Sequence[FragmentIndex], thread: Symbol, shape: tuple[int, int]
) -> FragmentIndex | None:
    """The expression at each element of a fragment; None if it is undefined or has too many distinct values.

    coords: coordinates of the elements, per axis. thread: symbol of the thread number. shape: (threads, values).
    """
    values: dict[Node, _Part] = {}
    for node in within(expression):
        parts = [values[child] for child in children(node)]
        values[node] = _evaluate(node, parts, coords, thread, shape)
    match values[expression]:
        case _Cases(nodes=nodes, table=table):
            return from_cases([node for node in nodes if not isinstance(node, Cond)], table)
        case found:
            return found


def _evaluate(
    node: Node, parts: Sequence[_Part], coords: Sequence[FragmentIndex], thread: Symbol, shape: tuple[int, int]
) -> _Part:
    if isinstance(node, Coord):
        place = coords[node.axis]
        return place if isinstance(place, Separable) else _Cases(*cases_of(place))
    plain = [part for part in parts if isinstance(part, Separable)]
    found = evaluate_node(node, plain, (), thread, shape) if len(plain) == len(parts) else None
    return found if found is not None else _evaluate_by_case(node, parts)


def _evaluate_by_case(node: Node, parts: Sequence[_Part]) -> _Part:
    if isinstance(node, Held) or not parts:
        return None
    known = [_as_cases(part) for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    columns, table = distinct_columns([each.table for each in known], [len(each.nodes) for each in known])
    if columns.shape[1] > MAX_CASES:
        return None
    try:
        made = [
            rebuild(node, [each.nodes[int(at)] for each, at in zip(known, column, strict=True)]) for column in columns.T
        ]
    except ZeroDivisionError:
        return None
    place = {each: number for number, each in enumerate(dict.fromkeys(made))}
    return _Cases(tuple(place), np.array([place[each] for each in made], np.int64)[table])


def _as_cases(part: Separable | _Cases) -> _Cases:
    return part if isinstance(part, _Cases) else _Cases(*cases_of(part))
