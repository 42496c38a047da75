"""The stores of a kernel to its tensors."""

from __future__ import annotations

from argus.core import algebra
from argus.core.ir import Assert, Buffer, Copy, Equals, WrittenOnce
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import is_whole


def stored_tensors(flow: Flow) -> tuple[Buffer, ...]:
    """The tensors that the kernel writes."""
    accesses = (access for step in flow.timeline.steps for access in flow.accesses.of(step))
    written = (a.view.buffer for a in accesses if a.mode == "write" and a.view.buffer.space == "global")
    return tuple(dict.fromkeys(written))


def stores_of(flow: Flow, buffer: Buffer) -> tuple[Access, ...]:
    """The writes to a tensor, in program order."""
    return stores_in(flow.accesses, buffer)


def stores_in(way: Accesses, buffer: Buffer) -> tuple[Access, ...]:
    """Those of one control path."""
    return tuple(
        access
        for step in way.timeline.steps
        for access in way.of(step)
        if access.mode == "write" and access.view.buffer is buffer
    )


def is_reduction_store(store: Access) -> bool:
    """Whether a store adds to the element's previous value."""
    return isinstance(store.step.stmt, Copy) and store.step.stmt.combine is not None


def stored_elsewhere(flow: Flow, buffer: Buffer) -> bool:
    """Whether only blocks on other control paths write to a tensor."""
    return not stores_of(flow, buffer) and any(stores_in(way, buffer) for way in flow.path_accesses)


def says_what_was_before(flow: Flow, buffer: Buffer) -> bool:
    """Whether a claimed formula of a tensor names what it held before the kernel."""
    claims = [step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return any(isinstance(c, Equals) and c.view.buffer is buffer and buffer.name in c.before for c in claims)


def is_claimed_whole(flow: Flow, buffer: Buffer) -> bool:
    """Whether the kernel claims that all of a tensor is written: without padding, or as a formula of other data.

    A formula that says what was before has the same obligations, which are of the kernel (I4): with those towards later
    launches (I34), which are asked here too, a run of the program shows what it lacks.
    """
    claims = [step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return any(
        isinstance(c, WrittenOnce | Equals)
        and not (isinstance(c, Equals) and buffer.name in c.before)
        and c.view.buffer is buffer
        and c.where is algebra.TRUE
        and is_whole(c.view)
        for c in claims
    )
