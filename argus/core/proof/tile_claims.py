"""Obligations about what tiles hold and what is claimed of it: by formulas, or by the tags of expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from argus.core.ir import Buffer
from argus.core.proof.dataflow import reads
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, equality_claims, product_formulas
from argus.core.proof.outputs.program_context import ProgramContext
from argus.core.proof.outputs.program_tags import tags_of
from argus.core.proof.values.content import TensorContent
from argus.core.proof.values.held.terms import unknown
from argus.core.proof.values.integer_sums import integer_sum_obligations
from argus.core.proof.values.parts_left import parts_left
from argus.core.proof.values.value_flow import ValueFlow, factor_obligations, value_flow
from argus.core.values.expr import Expr


@frozen(eq=False)
class TileClaims:
    """Obligations about what tiles hold on one control path, and the claims.

    flow: the one that says what tiles hold. left: what the launch leaves in the tensors that it writes, if the
    obligations are proved.
    """

    flow: ValueFlow
    obligations: tuple[Obligation, ...]
    left: Mapping[Buffer, TensorContent]


def tile_claims(flow: Flow, others: ProgramContext) -> TileClaims:
    """The obligations about what tiles hold: by formulas where those decide, else by tags of expressions."""
    read_off = value_flow(flow, _values(flow, others), others.tags)
    left = {buffer: parts_left(flow, buffer, value, others.tags or {}) for buffer, value in others.left.items()}
    return TileClaims(read_off, tuple(_obligations(read_off, others)), left)


def _obligations(flow: ValueFlow, others: ProgramContext) -> Iterator[Obligation]:
    proofs = equality_claims.formula_proofs(flow)
    by_formulas = equality_claims.decided_by_values(flow, proofs, others.followed)
    if not by_formulas:
        proofs = {**proofs, **product_formulas.product_proofs(flow)}
        by_formulas = equality_claims.decided_by_values(flow, proofs)
    if not by_formulas:
        yield from flow.said_obligations(equality_claims.proved_outputs(flow, proofs))
        yield from claims.operand_obligations(flow)
        yield from factor_obligations(flow)
    yield from integer_sum_obligations(flow, others.integers)
    yield from claims.assertion_obligations(flow, proofs, masked=not by_formulas)
    yield from reads.arrival_obligations(flow)


def _values(flow: Flow, others: ProgramContext) -> Mapping[Buffer, Expr] | None:
    """What tensors hold before the launch; not those of earlier launches to which it gives tags of its own."""
    if others.values is None:
        return None
    kernel = flow.timeline.kernel
    own = {buffer for buffer in others.before if tags_of(kernel, buffer)}
    return {
        buffer: unknown(f"`{buffer.name}` is tagged again by a launch after the one that wrote it")
        if buffer in own
        else value
        for buffer, value in others.values.items()
    }
