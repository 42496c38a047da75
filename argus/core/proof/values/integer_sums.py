"""Obligations that sums of integers fit the type of their accumulator (I28): of products, and running ones.

Such sums wrap around, and addition modulo 2^n is associative: wherever the exact sum fits, what was added has its
value, in whatever order. So a sum is exact where it is read, whether or not parts of it would have fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argus.core import algebra
from argus.core.index import Cond
from argus.core.index_text import show
from argus.core.ir import Assert, Buffer, Copy, Equals, Map, Mma
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import at_any_element
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.data_contracts import promised_size
from argus.core.proof.values.held.running_sums import is_integer, is_running_sum
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.values.expr import Element
from argus.core.values.magnitudes import Magnitude, magnitude


def integer_sum_obligations(flow: ValueFlow, others: Sequence[Buffer] = ()) -> Iterator[Obligation]:
    """I28 wherever integer accumulators are read by statements that do not add to such.

    others: tensors of integers that earlier launches of a program read, by the names that values give to these.
    """
    statements = [step.stmt for step in flow.timeline.steps]
    products = {each.target.buffer for each in statements if isinstance(each, Mma) and is_integer(each.target.buffer)}
    sums = products | {each.target.buffer for each in statements if isinstance(each, Map) and is_running_sum(each)}
    bits = {each.name: each.dtype.bits for each in others} | dict(_widths(flow))
    for step in flow.timeline.steps if sums else ():
        if not (isinstance(step.stmt, Assert) or (isinstance(step.stmt, Map) and is_running_sum(step.stmt))):
            for access in flow.accesses.of(step):
                if access.mode == "read" and access.view.buffer in sums and not _accumulates(step, access):
                    exact = access.view.buffer in products or _is_claimed(flow, step)
                    yield _fits(flow, step, access, bits, refutable=exact)


def _is_claimed(flow: ValueFlow, step: Step) -> bool:
    """Whether a statement stores sums, as they are, to a tensor that a claim says a formula of: an exact sum."""
    claims = (each.stmt.claim for each in flow.timeline.steps if isinstance(each.stmt, Assert))
    of = {each.view.buffer for each in claims if isinstance(each, Equals)}
    return isinstance(step.stmt, Copy) and step.stmt.target.buffer in of


def _accumulates(step: Step, access: Access) -> bool:
    """Whether a read is that of the accumulator to which a product is added."""
    return isinstance(step.stmt, Mma) and access.view.buffer is step.stmt.target.buffer


def _widths(flow: ValueFlow) -> Iterator[tuple[str, int]]:
    """The widths of the elements of tensors of integers, by the names that values give to these tensors."""
    return ((name, each.dtype.bits) for name, each in _named(flow))


def _promised(flow: ValueFlow) -> Mapping[str, int]:
    """The greatest sizes of elements, of tensors whose contracts give both bounds as numbers."""
    found = {name: promised_size(each) for name, each in _named(flow)}
    return {name: size for name, size in found.items() if size is not None}


def _named(flow: ValueFlow) -> Iterator[tuple[str, Buffer]]:
    """The tensors of integers, by the names that values give to them."""
    for each in flow.timeline.kernel.parameters:
        held = flow.before.get(each)
        if each.dtype.family == "int" and (held is not None or not flow.before):
            name = each.name if held is None else held.tensor if isinstance(held, Element) else None
            if name is not None:
                yield name, each


def _fits(flow: ValueFlow, step: Step, access: Access, bits: Mapping[str, int], *, refutable: bool) -> Obligation:
    """refutable: whether a sum that does not fit is a fault; a running sum of any integers may be meant to wrap, unless
    a formula says what it is.
    """
    buffer, value = access.view.buffer, flow.contents.value(access)
    what = f"the sums in `{buffer.name}` fit {buffer.dtype}"
    if isinstance(value, str):
        return _unknown(step, what, f"what `{buffer.name}` sums is not known: {value}")
    found = magnitude(value, bits, _promised(flow))
    if found is None:
        return _unknown(step, what, f"`{buffer.name}` sums values of which no bound is known")
    assert access.by is not None
    fits = _within(found, buffer)
    goal = at_any_element(algebra.any_of((*map(algebra.negate, found.tests), fits)), access.by)
    most = show(found.most)
    reached = (
        refutable and found.sign and not _promises(flow) and all(flow.holds(step.context, each) for each in found.needs)
    )
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
