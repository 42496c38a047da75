"""Tags in which symbols and coordinates do not come apart: one expression for each different element.

Each operator is applied to each different pair of what its operands are, and not to each element: of
`(k // 8) ^ (m % 8)` on a tile of 64 by 32 there are 32 pairs, of 2,048 elements. With numbers in the place of
coordinates most bits of `^`, `&` and `|` are settled, and a solver never meets a swizzle and a loop at once.
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
"""Different expressions in one component; more would be a query nobody answers."""


@frozen(eq=False)
class _Cases:
    """`nodes[table]`: conditions too, which a choice in a tag depends on."""

    nodes: tuple[Node, ...]
    table: IntArray


_Part = Separable | _Cases | None


def evaluate_piecewise(
    expression: Index, coords: Sequence[FragmentIndex], thread: Symbol, shape: tuple[int, int]
) -> FragmentIndex | None:
    """The expression over a fragment of this shape, at these coordinates; None where it has no meaning or too many
    different values.

    shape: (threads, values). thread: the symbol that counts threads.
    """
    values: dict[Node, _Part] = {}
    for node in within(expression):
        parts = [values[child] for child in children(node)]
        values[node] = _one(node, parts, coords, thread, shape)
    match values[expression]:
        case _Cases(nodes=nodes, table=table):
            return from_cases([node for node in nodes if not isinstance(node, Cond)], table)
        case found:
            return found


def _one(
    node: Node, parts: Sequence[_Part], coords: Sequence[FragmentIndex], thread: Symbol, shape: tuple[int, int]
) -> _Part:
    if isinstance(node, Coord):
        place = coords[node.axis]
        return place if isinstance(place, Separable) else _Cases(*cases_of(place))
    plain = [part for part in parts if isinstance(part, Separable)]
    found = evaluate_node(node, plain, (), thread, shape) if len(plain) == len(parts) else None
    return found if found is not None else _by_case(node, parts)


def _by_case(node: Node, parts: Sequence[_Part]) -> _Part:
    if isinstance(node, Held) or not parts:
        return None
    known = [_cases(part) for part in parts if part is not None]
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


def _cases(part: Separable | _Cases) -> _Cases:
    return part if isinstance(part, _Cases) else _Cases(*cases_of(part))
