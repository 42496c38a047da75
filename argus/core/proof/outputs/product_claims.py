"""Claims that each element of a tensor is the sum of given products (I3), independently of tags."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.ir import Assert, Products, WrittenOnce, whole
from argus.core.proof.dataflow.flattened_views import in_place_of
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs.product_formulas import finite_factors
from argus.core.proof.outputs.writes import written_once_obligations
from argus.core.proof.values.held.outputs import Held
from argus.core.proof.values.value_flow import ValueFlow


def product_claim_obligations(
    flow: ValueFlow, step: Step, stmt: Assert, claim: Products, proof: Held | str
) -> Iterator[Obligation]:
    """I3: each element of a tensor is the sum of the claimed products, and is stored once.

    proof: what the tensor holds, which is the claimed sum; or why that is not known.
    """
    said = f"`{claim.view.buffer.name}` is the sum of the claimed products, each once"
    what = f"each element of {said}"
    if isinstance(proof, str):
        yield Obligation("I3", what, stmt, algebra.FALSE, step.context, unknown=proof, help=_ADVICE)
        return
    output, _ = in_place_of(flow.replaced, claim.view.buffer)
    others = (each.stmt.claim for each in flow.timeline.steps if isinstance(each.stmt, Assert))
    if not any(isinstance(o, WrittenOnce) and o.view.buffer is output and _is_of_all(o) for o in others):
        yield from written_once_obligations(flow, step, stmt, WrittenOnce(whole(output), ()), records=False)
    presumed = finite_factors(proof)
    yield Obligation("I3", what, stmt, algebra.TRUE, step.context, presumed=presumed, compared=1, note=said)


_ADVICE = "compare the loaded indices with those of the claim: strides, offsets, order of the axes"


def _is_of_all(claim: WrittenOnce) -> bool:
    return is_whole(claim.view) and claim.where is algebra.TRUE
