"""Obligations on tags: matrix operands agree (I1, I2), asserted coverage (I3) and asserted relations (I39) hold."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import assert_never

from attrs import evolve

from argus.core import algebra
from argus.core.check import ends_rows, has_masks, indirect_tags, unended_rows, unlike_ends
from argus.core.index import Index
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Covers,
    Distinct,
    Equal,
    Equals,
    Kernel,
    Mma,
    Order,
    Products,
    Relation,
    Stmt,
    View,
    WrittenOnce,
)
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import at_any_element, coordinate_axes
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs import relations
from argus.core.proof.outputs.equality_claims import Proofs, equality_obligations, proved_outputs
from argus.core.proof.outputs.product_claims import product_claim_obligations
from argus.core.proof.outputs.sum_order import sum_order_obligations
from argus.core.proof.outputs.writes import written_once_obligations
from argus.core.proof.values.content import Content, Data, content_error, holds_once, nonempty
from argus.core.proof.values.products import Multiplication
from argus.core.proof.values.value_flow import ValueFlow


def operand_obligations(flow: ValueFlow) -> Iterator[Obligation]:
    """I1 and I2 at each matrix instruction: elements that are multiplied agree in every tag name that both carry."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Mma):
            a, b, *_ = flow.accesses.of(step)
            yield from _meeting_obligations(flow, step, step.stmt, flow.read(a), flow.read(b))


def _meeting_obligations(flow: ValueFlow, step: Step, stmt: Mma, a: Content, b: Content) -> Iterator[Obligation]:
    """I1 and I2 at one matrix instruction with these operands."""
    names = f"`{stmt.a.buffer.name}` and `{stmt.b.buffer.name}`"
    assert stmt.atom.mnk is not None
    compared = prod(stmt.tiling.repeat) * stmt.tiling.threads * prod(stmt.atom.mnk)
    for one in a:
        for two in b:
            context = (*step.context, one.guard, two.guard)
            if not isinstance(one.value, Data) or not isinstance(two.value, Data):
                reason = content_error(one.value) or content_error(two.value)
                yield Obligation(
                    "I1",
                    f"{names} are multiplied where their tags are equal",
                    stmt,
                    algebra.FALSE,
                    context,
                    unknown=reason,
                )
                continue
            for clash in Multiplication(stmt, one.value, two.value).clashes():
                weighed = one.value.closed or two.value.closed
                uncontracted = (
                    "I27" if clash.name in indirect_tags(flow.timeline.kernel) else "I26" if weighed else "I2"
                )
                yield Obligation(
                    ("I24" if weighed else "I1") if clash.contracted else uncontracted,
                    f"{names} are multiplied where `{clash.name}` is equal",
                    stmt,
                    clash.goal,
                    context,
                    minimise=minimisation_order(clash.goal),
                    compared=compared,
                    help=_operand_help(clash.name),
                    related=lambda: _origins(flow, step),
                )


def _origins(flow: ValueFlow, step: Step) -> tuple[tuple[Stmt, str], ...]:
    """The loads from global memory that produced the two operands."""
    found: list[tuple[Stmt, str]] = []
    for access in flow.accesses.of(step)[:2]:
        origin = flow.origin(access)
        if origin is not None:
            found.append((origin, f"`{access.view.buffer.name}` is loaded here"))
    return tuple(found)


def _operand_help(name: str) -> str:
    return (
        f"the two operands must bring the same `{name}` to every product: compare the tiles' numbers, the swizzles "
        "on both sides of shared memory, and the fragments' layouts"
    )


# -- assertions ----------------------------------------------------------------------------------------------


def assertion_obligations(flow: ValueFlow, proofs: Proofs, *, masked: bool) -> Iterator[Obligation]:
    """The obligations of every assertion in the program.

    proofs: those of formulas. masked: whether a masked kernel must assert its coverage (I25).
    """
    masks = False
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Assert):
            for each in _claim(flow, proofs, step, step.stmt):
                masks |= each.invariant == "I25"
                yield evolve(each, asserted=True)
    if masked and has_masks(flow.timeline.kernel) and not masks:
        yield Obligation(
            "I25",
            "what a mask leaves out is claimed",
            flow.timeline.kernel.body[0],
            algebra.FALSE,
            unknown="elements are masked by their coordinates, and neither a formula nor `assert_covers` says which",
            instead="claim the stored elements by `assert_equals(Y, lambda i, j: where(j < n, ..., ...))`, or the "
            "range of a masked sum by `assert_covers`",
        )
    yield from _own_rows_obligations(flow.timeline.kernel)


def _own_rows_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """I25: where a factor of a product is 0 for rows of others, so are these: 0 times a NaN that they hold is NaN."""
    if not has_masks(kernel) and not ends_rows(kernel):
        return
    for copy in unended_rows(kernel):
        name = copy.source.buffer.name
        yield Obligation(
            "I25",
            f"products sum over rows of `{name}` that belong together, or zeros",
            copy,
            algebra.FALSE,
            unknown=f"the rows of `{name}` that a product sums over have no end, and what follows is multiplied by 0, "
            "which is not 0 if it holds NaN",
            instead=f"give the rows of `{name}` an end, from where on zeros are read: `{name}.rows(start, stop)`",
        )
    for copy in unlike_ends(kernel):
        name = copy.source.buffer.name
        yield Obligation(
            "I25",
            f"both factors of products over rows of `{name}` end at the same row",
            copy,
            algebra.FALSE,
            unknown=f"the rows of `{name}` and those that they are multiplied by have unlike ends, and what one factor "
            "reads between both is multiplied by 0, which is not 0 if it holds NaN",
            instead=f"give both factors the same end: `{name}.rows(start, stop)`, and the other's rows up to `stop`",
        )


def _claim(flow: ValueFlow, proofs: Proofs, step: Step, stmt: Assert) -> Iterator[Obligation]:
    claim = stmt.claim
    match claim:
        case Covers():
            yield from _covers(flow, step, stmt, claim)
        case WrittenOnce():
            said = claim.view.buffer in proved_outputs(flow, proofs)
            yield from written_once_obligations(flow, step, stmt, claim, said=said)
        case Equal(left=left, right=right):
            yield from relations.equality_obligations(flow, step, stmt, left, right)
        case Distinct():
            yield from relations.distinctness_obligations(flow, step, stmt, claim)
        case Relation(names=names, cond=cond):
            yield from relations.relation_obligations(flow, step, stmt, names, cond)
        case Order(of=of):
            yield from sum_order_obligations(flow, step, stmt, of)
        case Products():
            yield from product_claim_obligations(flow, step, stmt, claim, proofs[stmt])
        case Equals():
            yield from equality_obligations(flow, step, stmt, claim, proofs[stmt])
        case _:
            assert_never(claim)


def _covers(flow: ValueFlow, step: Step, stmt: Assert, claim: Covers) -> Iterator[Obligation]:
    name = claim.of.name
    what = f"`{claim.of.view.buffer.name}` sums each {name} of [{show(claim.low)}, {show(claim.high)}) once"
    held = claim.of.view.buffer.layout
    assert isinstance(held, TV)
    products = {s.stmt.target.buffer for s in flow.timeline.steps if isinstance(s.stmt, Mma)}
    for piece in flow.tile(step, claim.of.view):
        context = (*step.context, piece.guard)
        counts = _counted(piece.value, name) if isinstance(piece.value, Data) else ()
        if not isinstance(piece.value, Data) or not counts:
            reason = content_error(piece.value) or f"the contributions over `{name}` are not known"
            yield Obligation("I3", what, stmt, algebra.FALSE, context, unknown=reason)
            continue
        known = [each for each in counts if each is not None]
        if len(known) < len(counts):
            reason = f"threads hold different parts of the sum over `{name}`"
            yield Obligation("I3", what, stmt, algebra.FALSE, context, unknown=reason)
            continue
        if not is_whole(claim.of.view) and coordinate_axes(*known, claim.low, claim.high, claim.where):
            reason = "a claim on part of a tile whose rows are sums over different ranges"
            yield Obligation("I3", what, stmt, algebra.FALSE, context, unknown=reason)
            continue
        goal = at_any_element(algebra.all_of(holds_once(count, claim.low, claim.high) for count in known), held)
        of_masked = bool(piece.value.closed) or claim.of.view.buffer not in products
        code = "I25" if of_masked and has_masks(flow.timeline.kernel) else "I3"
        yield Obligation(
            code,
            what,
            stmt,
            goal,
            (*context, at_any_element(claim.where, held), *nonempty(piece.value.inside)),
            minimise=minimisation_order(goal),
            compared=int(piece.mask.sum()),
            related=lambda: _summed(flow, claim.of.view),
            help=f"follow `{name}` through the loop: its trip count, the tile indices, and the number of accumulations",
        )


def _counted(value: Data, name: str) -> tuple[Index | None, ...]:
    """The sets over a name that a claim speaks of: those that are summed, and all of which the value was computed."""
    return tuple(each for other, each in value.counts if other == name)


def _summed(flow: ValueFlow, view: View) -> tuple[tuple[Stmt, str], ...]:
    """The statements that accumulate into a tile, at most three."""
    adding = [s.stmt for s in flow.timeline.steps if isinstance(s.stmt, Mma) and s.stmt.target.buffer is view.buffer]
    return tuple((stmt, "accumulated here") for stmt in dict.fromkeys(adding))[:3]
