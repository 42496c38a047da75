"""Claims that list products, as formulas: the sum of these products of elements, with 0 for elements out of bounds.

The claim does not name the tensors. They are the two that the output is computed from, in the order of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Assert, Buffer, Equals, Products, whole
from argus.core.proof.dataflow.flattened_views import in_place_of
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import is_whole
from argus.core.proof.outputs.equality_claims import Proofs, difference
from argus.core.proof.outputs.stored import stored_elsewhere
from argus.core.proof.outputs.writes import conditional_claim_error
from argus.core.proof.values.held.between import coordinate
from argus.core.proof.values.held.outputs import Held, interpreted
from argus.core.proof.values.held.terms import chosen, plus
from argus.core.values.expr import Choose, Expr, element, expr, fn, reduce_
from argus.core.values.rewriting import elements, nodes
from argus.core.walk import substitute


def product_proofs(flow: Flow) -> Proofs:
    """The proof of each claim that lists products."""
    claims = [(step.stmt, step.stmt.claim) for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return {stmt: product_proof(flow, stmt, claim) for stmt, claim in claims if isinstance(claim, Products)}


def product_proof(flow: Flow, stmt: Assert, claim: Products) -> Held | str:
    """What the output holds, if that is proved to be the sum of the claimed products; else why not."""
    output, view = in_place_of(flow.replaced, claim.view.buffer)
    at = tuple(map(coordinate, range(len(output.shape))))
    reason = conditional_claim_error(flow, stmt)
    if reason or not is_whole(claim.view):
        return reason or "a claim on part of a tensor is not supported by the verifier yet"
    held = Held((), frozenset()) if stored_elsewhere(flow, output) else interpreted(flow, output, at)
    if isinstance(held, str):
        return held
    if held.adds:
        return "it is added to what the tensor held before"
    for case in held.cases:
        factors = _factors(flow, case.value)
        if isinstance(factors, str):
            return factors
        formula = _formula(claim, factors, view.at)
        if formula is None:
            return "a product of the claim has not as many coordinates as its factors"
        unlike = difference(flow, Held((case,), held.roundings), Equals(whole(output), formula), at, range(len(at)))
        if unlike:
            return "the stored value is not known to be the sum of the claimed products"
    return held


def finite_factors(held: Held) -> str:
    """The assumption by which 0 in place of an element contributes nothing; empty if there is no such element."""
    tests = [node for case in held.cases for node in nodes(case.value) if isinstance(node, Choose)]
    padded = {each.tensor for test in tests for branch in (test.then, test.other) for each in elements(branch)}
    names = {each.tensor for case in held.cases for each in elements(case.value)}
    if not padded:
        return ""
    finite = " and ".join(f"`{name}`" for name in sorted(names - padded or names))
    beyond = ", ".join(f"`{name}`" for name in sorted(padded))
    return f"finite-factors: the numbers in {finite} are finite, and are multiplied by 0 beyond the edge of {beyond}"


def _factors(flow: Flow, value: Expr) -> tuple[Buffer, Buffer] | str:
    """The two tensors that a value is computed from, as the kernel declares them."""
    names = {each.tensor for each in elements(value)}
    views = {each.flat: each.view.buffer for each in flow.replaced}
    declared = [views.get(each, each) for each in flow.timeline.kernel.parameters]
    found = [each for each in declared if each.name in names]
    if len(found) != 2 or len(names) != 2:
        return "the stored value is not known to be a sum of products of elements of two tensors"
    return found[0], found[1]


def _formula(claim: Products, factors: Sequence[Buffer], own: Sequence[Index]) -> Expr | None:
    """The sum over an element's coordinates; None if a product does not fit the factors."""
    if any(len(at) != len(buffer.shape) for pair in claim.products for at, buffer in zip(pair, factors, strict=True)):
        return None
    products = [
        fn("mul", *(_element(buffer, _placed(at, own)) for at, buffer in zip(pair, factors, strict=True)))
        for pair in claim.products
    ]
    found = reduce(plus, products, expr(0))
    for variable, extent in reversed(claim.over):
        found = reduce_("sum", variable, 0, substitute(extent, {}, tuple(own)), found)
    return found


def _placed(at: Sequence[Index], own: Sequence[Index]) -> tuple[Index, ...]:
    return tuple(substitute(each, {}, tuple(own)) for each in at)


def _element(buffer: Buffer, at: Sequence[Index]) -> Expr:
    """An element, or 0 where the tensor has none."""
    return chosen(algebra.all_of(_inside(buffer, at)), element(buffer.name, *at), expr(0))


def _inside(buffer: Buffer, at: Sequence[Index]) -> Iterator[Cond]:
    for place, extent in zip(at, buffer.shape, strict=True):
        yield algebra.le(0, place)
        yield algebra.lt(place, extent)
