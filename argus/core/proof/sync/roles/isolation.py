"""Isolation of agents (I5): outside rings, shared memory that one agent writes is accessed by no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Copy, Role
from argus.core.proof.dataflow.access import Access, Accesses, overlap
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation
from argus.core.walk import symbols


def isolation_obligations(ways: Sequence[Accesses], role: Role, rings: frozenset[Buffer]) -> Iterator[Obligation]:
    """I5 for each pair of accesses of which one writes; the other agent's access is in any iteration, tile and path."""
    if role.agents == 1:
        return
    touched = [
        access
        for accesses in ways
        for step in accesses.timeline.steps
        for access in accesses.of(step)
        if access.view.buffer.space == "shared" and access.view.buffer not in rings
    ]
    for one, two in combinations_with_replacement(touched, 2):
        if one.view.buffer is two.view.buffer and "write" in (one.mode, two.mode):
            yield _pair_obligation(one, two, role)


def disjoint_fill_obligations(accesses: Accesses, copies: Sequence[Copy]) -> Iterator[Obligation]:
    """I5: the copies that fill one stage, which complete in any order, write disjoint parts."""
    written = [accesses.of(Step(copy, algebra.TRUE, 0, 0, None))[-1] for copy in copies]
    for one, two in combinations(written, 2):
        if one.view.buffer is not two.view.buffer:
            continue
        common = overlap(one, two, {})
        disjoint = common is not None and (not common.cells.shared or common.slots is algebra.FALSE)
        what = f"the copies into one slot fill disjoint parts of `{one.view.buffer.name}`"
        goal = algebra.TRUE if disjoint else algebra.FALSE
        reason = "" if common is not None else "an address does not separate into slot and cell"
        yield Obligation("I5", what, two.step.stmt, goal, (), one.step.stmt, reason, compared=one.shape[1])


def _pair_obligation(one: Access, two: Access, role: Role) -> Obligation:
    shift = {symbol: _other(symbol) for at in two.view.at for symbol in symbols(at) if symbol.kind != "size"}
    name, number = two.view.buffer.name, algebra.sym(role.number)
    what = f"agents of `{role.name}` access disjoint parts of `{name}`"
    common = overlap(one, two, shift)
    if common is None:
        reason = "an address does not separate into slot and cell"
        return Obligation("I5", what, one.step.stmt, algebra.FALSE, (), two.step.stmt, reason)
    different = algebra.negate(algebra.eq(number, shift.get(role.number, number)))
    mine = (algebra.lt(number, role.agents), algebra.lt(shift.get(role.number, number), role.agents))
    return Obligation(
        "I5",
        what,
        one.step.stmt,
        algebra.negate(common.slots),
        (different, *mine) if role.number in shift else (),
        two.step.stmt,
        compared=common.cells.first.size,
        help="index the buffer by the agent's number",
    )


def _other(symbol: Symbol) -> Index:
    return algebra.sym(Symbol(f"{symbol.name}'", symbol.kind, symbol.low, symbol.high))
