"""Obligations that sums of integer products fit the type of their accumulator (I28).

Such sums wrap around, and addition modulo 2^n is associative: wherever the exact sum fits, what was added has its
value, in whatever order. So a sum is exact where it is read, whether or not parts of it would have fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from argus.core import algebra
from argus.core.index import Cond
from argus.core.index_text import show
from argus.core.ir import Assert, Buffer, Mma
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import at_any_element
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.values.expr import Element
from argus.core.values.magnitudes import Magnitude, magnitude


def integer_sum_obligations(flow: ValueFlow) -> Iterator[Obligation]:
    """I28 wherever integer accumulators are read by other statements than products."""
    sums = {
        step.stmt.target.buffer
        for step in flow.timeline.steps
        if isinstance(step.stmt, Mma) and step.stmt.target.buffer.dtype.family == "int"
    }
    bits = dict(_widths(flow))
    for step in flow.timeline.steps if sums else ():
        if not isinstance(step.stmt, Mma | Assert):
            for access in flow.accesses.of(step):
                if access.mode == "read" and access.view.buffer in sums:
                    yield _fits(flow, step, access, bits)


def _widths(flow: ValueFlow) -> Iterator[tuple[str, int]]:
    """The widths of the elements of tensors of integers, by the names that values give to these tensors."""
    for each in flow.timeline.kernel.parameters:
        held = flow.before.get(each)
        if each.dtype.family == "int" and (held is not None or not flow.before):
            name = each.name if held is None else held.tensor if isinstance(held, Element) else None
            if name is not None:
                yield name, each.dtype.bits


def _fits(flow: ValueFlow, step: Step, access: Access, bits: Mapping[str, int]) -> Obligation:
    buffer, value = access.view.buffer, flow.contents.value(access)
    what = f"the sums in `{buffer.name}` fit {buffer.dtype}"
    if isinstance(value, str):
        return _unknown(step, what, f"what `{buffer.name}` sums is not known: {value}")
    found = magnitude(value, bits)
    if found is None:
        return _unknown(step, what, f"`{buffer.name}` sums values of which no bound is known")
    assert access.by is not None
    fits = _within(found, buffer)
    goal = at_any_element(algebra.any_of((*map(algebra.negate, found.tests), fits)), access.by)
    most = show(found.most)
    reached = found.sign and not _promises(flow) and all(flow.holds(step.context, each) for each in found.needs)
    if not reached and not flow.holds(step.context, goal):
        return _unknown(step, what, f"a size of at most {most} may not fit {buffer.dtype}")
    return Obligation(
        "I28",
        what,
        step.stmt,
        goal,
        step.context,
        fault=f"the sums in `{buffer.name}` may be as large as {most}, which may not fit {buffer.dtype}",
        minimise=minimisation_order(goal),
        help=f"`assume` that {most} is smaller than 2^{buffer.dtype.bits - 1}",
    )


def _within(found: Magnitude, buffer: Buffer) -> Cond:
    """Whether all values fit: the least number of a type is larger in size than the greatest."""
    return algebra.lt(found.most, buffer.dtype.integers.stop + (found.sign < 0))


def _promises(flow: ValueFlow) -> bool:
    """Whether a contract may exclude the least number of a tensor of integers."""
    return any(each.promise is not algebra.TRUE for each in flow.timeline.kernel.parameters)


def _unknown(step: Step, what: str, reason: str) -> Obligation:
    return Obligation("I28", what, step.stmt, algebra.FALSE, step.context, unknown=reason)
