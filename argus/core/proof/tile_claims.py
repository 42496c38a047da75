"""Obligations about what tiles hold and what is claimed of it: by formulas, by rules for tags, by expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from argus.core.ir import Buffer, Mma
from argus.core.proof.dataflow import reads
from argus.core.proof.dataflow.loop_invariants import LoopCarried
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, equality_claims, product_formulas, programs
from argus.core.proof.outputs.program_context import ProgramContext
from argus.core.proof.outputs.program_tags import tags_of
from argus.core.proof.values import elementwise
from argus.core.proof.values.content import TensorContent
from argus.core.proof.values.held.terms import unknown
from argus.core.proof.values.parts_left import parts_left
from argus.core.proof.values.recognisers import scales
from argus.core.proof.values.sums import Accumulator
from argus.core.proof.values.value_flow import ValueFlow, factor_obligations, value_flow
from argus.core.values.expr import Expr


@frozen(eq=False)
class TileClaims:
    """Obligations about what tiles hold on one control path, and the claims.

    flow: the one that says what tiles hold. left: what the launch leaves in the tensors that it writes, if the
    obligations are proved. It comes from what they are about: nothing is passed on that nothing proves.
    """

    flow: Flow
    obligations: tuple[Obligation, ...]
    left: Mapping[Buffer, TensorContent]


def tile_claims(flow: Flow, sums: tuple[Accumulator, ...], tiles: LoopCarried, others: ProgramContext) -> TileClaims:
    """The obligations about what tiles hold: by formulas, or by rules, or by expressions where rules do not decide."""
    proofs = equality_claims.formula_proofs(flow)
    if equality_claims.decided_by_values(flow, proofs, others.followed):
        return _read_off(flow, _by_values(flow, sums, proofs), others)
    first = tuple(_by_rules(flow, sums, tiles, proofs))
    found = _by_expressions(flow, sums, proofs, others) if any(each.unknown for each in first) else None
    return TileClaims(flow, first, programs.tensors_after(flow, others)) if found is None else found


def _read_off(flow: Flow, obligations: Iterable[Obligation], others: ProgramContext) -> TileClaims:
    """What a launch leaves is read off values, where no rules are asked what tiles hold."""
    left = {buffer: parts_left(flow, buffer, value, others.tags or {}) for buffer, value in others.left.items()}
    if not others.alone and not isinstance(flow, ValueFlow):
        flow = value_flow(flow, _values(flow, others), others.tags)
    return TileClaims(flow, tuple(obligations), left)


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


def _by_values(flow: Flow, sums: tuple[Accumulator, ...], proofs: equality_claims.Proofs) -> Iterator[Obligation]:
    """Where claims that are proved give the values of all outputs: that what is read has arrived, and the claims."""
    yield from reads.arrival_obligations(flow)
    yield from claims.assertion_obligations(flow, sums, proofs, masked=False)


def _by_rules(
    flow: Flow, sums: tuple[Accumulator, ...], tiles: LoopCarried, proofs: equality_claims.Proofs
) -> Iterator[Obligation]:
    """What tiles hold on the way to the outputs, and the claims, by rules for tags."""
    yield from reads.read_obligations(flow)
    yield from _content_obligations(flow, sums, tiles)
    yield from claims.assertion_obligations(flow, sums, proofs, masked=True)


def _by_expressions(
    flow: Flow, sums: tuple[Accumulator, ...], proofs: equality_claims.Proofs, others: ProgramContext
) -> TileClaims | None:
    """The same by the expressions of what tiles hold; None where those leave something unknown too."""
    proofs = {**proofs, **product_formulas.product_proofs(flow)}
    read_off = value_flow(flow, _values(flow, others), others.tags)
    if equality_claims.decided_by_values(flow, proofs):
        return _read_off(flow, _by_values(flow, sums, proofs), others)
    if not read_off.outputs_said_by_tags(equality_claims.proved_outputs(flow, proofs)):
        return None
    found: list[Obligation] = []
    for each in _read_off_obligations(read_off, sums, proofs):
        if each.unknown:
            return None
        found.append(each)
    return _read_off(read_off, found, others)


def _read_off_obligations(
    flow: ValueFlow, sums: tuple[Accumulator, ...], proofs: equality_claims.Proofs
) -> Iterator[Obligation]:
    mine = tuple(Accumulator(flow, each.buffer) for each in sums)
    yield from claims.assertion_obligations(flow, mine, proofs, masked=True)
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Mma):
            a, b, *_ = flow.accesses.of(step)
            yield from claims.meeting_obligations(flow, step, step.stmt, flow.read(a), flow.read(b))
    yield from factor_obligations(flow)
    yield from scales.obligations(flow)
    yield from reads.arrival_obligations(flow)


def _content_obligations(flow: Flow, sums: tuple[Accumulator, ...], tiles: LoopCarried) -> Iterator[Obligation]:
    """What tiles hold on the way to the outputs, by their tags."""
    for accumulator in sums:
        yield from accumulator.obligations()
    yield from tiles.obligations()
    yield from claims.operand_obligations(flow, (*sums, *tiles.sums.values()))
    yield from elementwise.map_obligations(flow)
    yield from scales.obligations(flow)
