"""Every divisor that is not a number is positive (I28): solvers, interpreter and target agree only there."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import views
from argus.core.index import Bin, Cond, Const, Index, Node
from argus.core.ir import Assert, Copy, Covers, For, If, Kernel, Mma, Stmt, Tag, View, WrittenOnce, walk
from argus.core.proof.obligation import Obligation
from argus.core.proof.timeline import Timeline
from argus.core.walk import show, topological


def obligations(timeline: Timeline) -> Iterator[Obligation]:
    """From the facts that divide by numbers alone, so that no divisor vouches for itself."""
    for stmt, roots in _expressions(timeline.kernel):
        known = timeline.assumptions if stmt is timeline.kernel.body[0] else timeline.facts
        solid = tuple(cond for cond in known if not any(_divisors([cond])))
        for divisor in dict.fromkeys(_divisors(roots)):
            yield Obligation(
                "I28",
                f"the divisor {show(divisor)} is positive",
                stmt,
                algebra.le(1, divisor),
                solid,
                given="nothing",
                fault=f"the divisor {show(divisor)} may be zero",
                measured=((show(divisor), divisor),),
                help=f"`assume({show(divisor)} >= 1)`",
            )


def _divisors(roots: list[Node]) -> Iterator[Index]:
    for node in topological(roots):
        if isinstance(node, Bin) and node.op in ("//", "%") and not isinstance(node.right, Const):
            yield node.right


def _expressions(kernel: Kernel) -> Iterator[tuple[Stmt, list[Node]]]:
    first = kernel.body[0] if kernel.body else None
    if first is not None:
        yield first, list(kernel.grid)
    for stmt in walk(kernel.body):
        roots: list[Node] = [at for view in (*views(stmt), *_named(stmt)) for at in view.at]
        roots += _own(stmt)
        if isinstance(stmt, Assert | Copy | For | If | Mma | Tag) and roots:
            yield stmt, roots


def _named(stmt: Stmt) -> tuple[View, ...]:
    return (stmt.view,) if isinstance(stmt, Tag) else ()


def _own(stmt: Stmt) -> list[Index | Cond]:
    match stmt:
        case For(start=start, stop=stop):
            return [start, stop]
        case If(cond=cond):
            return [cond]
        case Mma(init=init):
            return [init]
        case Tag(names=names):
            return [expression for _, expression in names]
        case Assert(claim=Covers(low=low, high=high)):
            return [low, high]
        case Assert(claim=WrittenOnce(record=record)):
            return [expression for _, expression in record]
        case _:
            return []
