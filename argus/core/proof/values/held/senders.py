"""What others hold that store into this block's or this agent's memory: other blocks of a cluster, or other agents."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from argus.core import algebra
from argus.core.index import Index, Sym
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.held.terms import chosen, heads, replaced, unknown
from argus.core.values.expr import Expr
from argus.core.walk import substitute, symbols

Read = Callable[[Access], Expr]


def sent(flow: Flow, access: Access, sender: Index, read: Read) -> Expr:
    """What a read of another's registers finds: of the block with rank `sender`, or of the agent with that number.

    read: what one of its own finds.
    """
    return (
        _from_agent(flow, access, sender, read)
        if flow.timeline.kernel.peers == 1
        else _from_block(flow, access, sender, read)
    )


def _from_block(flow: Flow, access: Access, sender: Index, read: Read) -> Expr:
    """The part of a tile that the block with rank `sender` sends here: what holds of one rank holds of any."""
    kernel, step = flow.timeline.kernel, access.step
    rank = kernel.rank
    always = not flow.timeline.path_condition and step.loop is None and step.guard is algebra.TRUE
    if not isinstance(rank, Sym) or not always or access.by is None:
        return unknown("a conditional exchange between blocks")
    found: Expr | None = None
    for to in range(kernel.peers):
        at = tuple(substitute(each, {rank.symbol: algebra.const(to)}) for each in access.view.at)
        own = flow.accesses.with_view(access, evolve(access.view, at=at, peer=None))
        one = replaced(read(own), {rank.symbol: sender})
        found = one if found is None else chosen(algebra.eq(rank, to), one, found)
    return unknown("a cluster of no blocks") if found is None else found


def _from_agent(flow: Flow, access: Access, sender: Index, read: Read) -> Expr:
    """What the agent with this number holds, at the same step of the same iteration of the same tile."""
    line, step = flow.timeline, access.step
    number = next((block for block in line.kernel.blocks if block.kind == "agent"), None)
    if number is None or access.by is None or number in symbols(*line.path_condition, *step.context):
        return unknown("a conditional exchange between agents")
    own = read(flow.accesses.with_view(access, evolve(access.view, peer=None)))
    return unknown("an exchange of a tile that a loop carries") if heads(own) else replaced(own, {number: sender})
