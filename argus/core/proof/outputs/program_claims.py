"""Obligations of a program's claims that a tensor equals a formula after all launches (I39)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Sym
from argus.core.ir import Assert, Buffer, Equals, WrittenOnce, whole
from argus.core.ir.pretty import claim_in_brief
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs.claimed_values import claimed_left
from argus.core.proof.outputs.equality_claims import difference, stated, undecided
from argus.core.proof.outputs.stored import is_claimed_whole, is_reduction_store, stores_of
from argus.core.proof.outputs.writes import written_once_obligations
from argus.core.proof.values.held.between import coordinate, renamed_integers
from argus.core.proof.values.held.cells import Rounding
from argus.core.proof.values.held.outputs import Held, Stored, interpreted
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.values.expr import Expr
from argus.core.values.rewriting import substitute


@frozen(eq=False)
class Claimed:
    """A program's claim at the last launch that writes the tensor.

    output: the parameter of that launch. before: what its parameters hold before it. roundings: those of earlier
    launches. renamed: names of tensors of integers that mean others in the launch, or that a launch writes.
    """

    stmt: Assert
    claim: Equals
    output: Buffer
    before: Mapping[Buffer, Expr]
    roundings: frozenset[Rounding]
    renamed: frozenset[str] = frozenset()


def program_equality_obligations(flows: Sequence[ValueFlow], claimed: Claimed) -> Iterator[Obligation]:
    """That each element is stored once by the last launch that writes it, and then equals the formula.

    flows: those of the launch, one for each control path; none if it is not modelled. A tensor that is added to is
    stored completely by an earlier launch, and added to by each block once: both are obligations of the launches (I34).
    """
    stmt, claim = claimed.stmt, claimed.claim
    if not flows:
        yield undecided(stmt, claim, "the last launch that writes it is not modelled")
    for flow in flows:
        stores = stores_of(flow, claimed.output)
        if stores and not any(map(is_reduction_store, stores)) and not is_claimed_whole(flow, claimed.output):
            once = WrittenOnce(whole(claimed.output), (), claim.where)
            yield from written_once_obligations(flow, stores[0].step, stmt, once, records=False, others=True)
        yield _equality(flow, claimed)


def _equality(flow: ValueFlow, claimed: Claimed) -> Obligation:
    claim, at = claimed.claim, tuple(map(coordinate, range(len(claimed.output.shape))))
    if reason := renamed_integers(claim.formula, claimed.renamed):
        return undecided(claimed.stmt, claim, reason)
    held = interpreted(flow, claimed.output, at, claimed.before)
    if not isinstance(held, str):
        held = evolve(held, roundings=held.roundings | claimed.roundings)
    reason = held if isinstance(held, str) else difference(flow, held, claim, at, range(len(at)))
    if reason and (left := _left_by_claim(flow, claimed, at)) and not difference(flow, left, claim, at, range(len(at))):
        held, reason = left, ""
    if reason or isinstance(held, str):
        return undecided(claimed.stmt, claim, reason)
    note = stated(claim, held.roundings, held.cases)
    return Obligation("I39", f"`{claim_in_brief(claim)}` holds", claimed.stmt, algebra.TRUE, note=note, compared=1)


def _left_by_claim(flow: ValueFlow, claimed: Claimed, at: Sequence[Sym]) -> Held | None:
    """What the launch leaves by its own kernel's claim, which is an obligation of its own; None if that is not known.

    The formula of a kernel is mostly shorter than what its stores hold, whose parts each hold what others left.
    """
    output = claimed.output
    if any(map(is_reduction_store, stores_of(flow, output))):
        return None
    left = claimed_left(flow, output, claimed.before, claimed.renamed)
    if left is None:
        return None
    ends = zip(at, output.shape, strict=True)
    inside = [cond for each, end in ends for cond in (algebra.le(0, each), algebra.lt(each, end))]
    return Held((Stored(substitute(left.value, {}, tuple(at)), tuple(inside)),), left.roundings | claimed.roundings)
