"""Obligations of integers read from memory: their own index is in bounds (I37), and so is what they index (I27).

The obligations of a term hold wherever a statement evaluates it, even if the result is not used. Tags and claims
evaluate nothing, so terms that only they mention have no obligations.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Cond, Coord, Held, Read
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, If, Stmt, View
from argus.core.proof.dataflow.timeline import EvaluatedExprs, Timeline
from argus.core.proof.limits.gathers import ROW_GATHER
from argus.core.proof.limits.integers import arbitrary_element, read_width_obligations, width_obligations
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.data_contracts import index_in_bounds
from argus.core.walk import mentions, substitute, topological


def indirect_index_obligations(line: Timeline) -> Iterator[Obligation]:
    """I37, I27 and I28 for every statement that evaluates integers from memory, once per term."""
    tensors = {buffer.name: buffer for buffer in line.kernel.parameters}
    for each in line.computed:
        for term in topological(each.roots):
            if isinstance(term, Read):
                yield _index_in_bounds_obligation(each, term, tensors[term.array])
                yield from read_width_obligations(each.stmt, term, tensors[term.array], each.context)
        match each.stmt:
            case If(cond=cond):
                yield from width_obligations((cond,), each.stmt, each.context, "a condition")
            case _:
                pass
    for step in line.steps:
        if isinstance(step.stmt, Copy):
            for view in (step.stmt.source, step.stmt.target):
                yield from _coordinate_obligations(step.stmt, view, step.context)


def _index_in_bounds_obligation(each: EvaluatedExprs, term: Read, buffer: Buffer) -> Obligation:
    """I37: the index of the read is in bounds wherever the statement is executed, at every element of a tile."""
    view = _view_of(each.stmt, term)
    rows = mentions(term, (Held,)) or (view is None and mentions(term, (Coord,)))
    goal = algebra.FALSE if rows else index_in_bounds(buffer, term)
    if view is not None:
        goal = substitute(goal, {}, arbitrary_element(view))
    return Obligation(
        "I37",
        f"`{show(term)}` is an element of `{buffer.name}`",
        each.stmt,
        goal,
        each.context,
        unknown="an integer for each element of a tile, other than of a view that is copied" if rows else "",
        minimise=minimisation_order(goal),
        compared=1,
        help=f"read `{buffer.name}` only where its index is known to be inside",
        instead=ROW_GATHER if rows else "",
    )


def _view_of(stmt: Stmt, term: Read) -> View | None:
    """The view of a copy whose coordinates the term mentions; None if there is none, or several of different shapes."""
    if not isinstance(stmt, Copy) or not mentions(term, (Coord,)):
        return None
    shapes = {view.shape: view for view in (stmt.source, stmt.target)}
    return stmt.source if len(shapes) == 1 else None


def _coordinate_obligations(stmt: Stmt, view: View, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """I27: an integer from memory that is a coordinate is in bounds; a sentinel such as -1 would be out of bounds."""
    buffer = view.buffer
    for axis, (at, extent) in enumerate(zip(view.at, buffer.shape, strict=True)):
        if not mentions(at, (Read,)) or mentions(at, (Coord, Held)):
            continue
        goal = algebra.all_of((algebra.le(0, at), algebra.lt(at, extent)))
        yield Obligation(
            "I27",
            f"`{show(at)}` is an index of `{buffer.name}` along axis {axis}, not a sentinel",
            stmt,
            goal,
            context,
            minimise=minimisation_order(goal),
            compared=1,
            help=f"copy only where `{show(at)}` is known to lie in [0, {show(extent)}): "
            "a `promise` of its range, and `when(x >= 0)` around what a sentinel leaves out",
        )
