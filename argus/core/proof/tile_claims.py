"""Obligations about what tiles hold and what is claimed of it: by formulas, by rules for tags, by expressions."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Mma
from argus.core.proof.dataflow import reads
from argus.core.proof.dataflow.loop_invariants import LoopCarried
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, equality_claims, product_formulas
from argus.core.proof.outputs.program_context import ProgramContext
from argus.core.proof.values import elementwise
from argus.core.proof.values.recognisers import scales
from argus.core.proof.values.sums import Accumulator
from argus.core.proof.values.value_flow import ValueFlow, factor_obligations, value_flow


def tile_obligations(
    flow: Flow, sums: tuple[Accumulator, ...], tiles: LoopCarried, others: ProgramContext
) -> Iterator[Obligation]:
    """The obligations about what tiles hold on one control path, and the claims."""
    proofs = equality_claims.formula_proofs(flow)
    if equality_claims.decided_by_values(flow, proofs, others.followed):
        yield from _by_values(flow, sums, proofs)
        return
    first = tuple(_by_rules(flow, sums, tiles, proofs))
    undecided = others.alone and any(each.unknown for each in first)
    yield from _by_expressions(flow, sums, proofs, first) if undecided else first


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
    flow: Flow, sums: tuple[Accumulator, ...], proofs: equality_claims.Proofs, otherwise: tuple[Obligation, ...]
) -> tuple[Obligation, ...]:
    """The same by the expressions of what tiles hold; the others where those leave something unknown too."""
    proofs = {**proofs, **product_formulas.product_proofs(flow)}
    if equality_claims.decided_by_values(flow, proofs):
        return tuple(_by_values(flow, sums, proofs))
    read_off = value_flow(flow)
    if not read_off.outputs_said_by_tags(equality_claims.proved_outputs(flow, proofs)):
        return otherwise
    found: list[Obligation] = []
    for each in _read_off_obligations(read_off, sums, proofs):
        if each.unknown:
            return otherwise
        found.append(each)
    return tuple(found)


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
