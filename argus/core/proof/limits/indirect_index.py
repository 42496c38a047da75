"""Integers from memory are elements of their tensors (I37), and choose elements of others that there are (I27).

A term is computed where the statement is that speaks of it, whether or not what it chooses is then used. What tags and
claims say of terms is computed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Cond, Coord, Held, Read
from argus.core.ir import Buffer, Copy, If, Stmt, View
from argus.core.proof.dataflow.timeline import EvaluatedExprs, Timeline
from argus.core.proof.limits.integers import width_obligations
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.data_contracts import index_in_bounds
from argus.core.walk import mentions, show, topological


def indirect_index_obligations(line: Timeline) -> Iterator[Obligation]:
    """For every statement that speaks of integers from memory, each term once."""
    tensors = {buffer.name: buffer for buffer in line.kernel.parameters}
    for each in line.computed:
        for term in topological(each.roots):
            if isinstance(term, Read):
                yield _exists(each, term, tensors[term.array])
        match each.stmt:
            case If(cond=cond):
                yield from width_obligations((cond,), each.stmt, each.context, "a condition")
            case _:
                pass
    for step in line.steps:
        if isinstance(step.stmt, Copy):
            for view in (step.stmt.source, step.stmt.target):
                yield from _chosen(step.stmt, view, step.context)


def _exists(each: EvaluatedExprs, term: Read, buffer: Buffer) -> Obligation:
    """The index is in range wherever the statement is executed."""
    rows = mentions(term, (Coord, Held))
    goal = algebra.FALSE if rows else index_in_bounds(buffer, term)
    return Obligation(
        "I37",
        f"`{show(term)}` is an element of `{buffer.name}`",
        each.stmt,
        goal,
        each.context,
        unknown="an integer for each row of a tile is not built yet in the verifier" if rows else "",
        minimise=minimisation_order(goal),
        compared=1,
        help=f"read `{buffer.name}` only where its index is known to be inside",
    )


def _chosen(stmt: Stmt, view: View, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """Where an integer from memory is the coordinate itself, a sentinel would be followed like any other."""
    buffer = view.buffer
    for axis, (at, extent) in enumerate(zip(view.at, buffer.shape, strict=True)):
        if not mentions(at, (Read,)) or mentions(at, (Coord, Held)):
            continue
        goal = algebra.all_of((algebra.le(0, at), algebra.lt(at, extent)))
        yield Obligation(
            "I27",
            f"`{show(at)}` is a number of `{buffer.name}` along axis {axis}, no sentinel",
            stmt,
            goal,
            context,
            minimise=minimisation_order(goal),
            compared=1,
            help=f"copy only where `{show(at)}` is known to lie in [0, {show(extent)}): "
            "a `promise` of its range, and `when(x >= 0)` around what a sentinel leaves out",
        )
