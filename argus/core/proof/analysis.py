"""All that must be proved of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond
from argus.core.ir import Buffer, Copy, Kernel, Mma, Sync
from argus.core.proof import budgets, claims, divisors, elementwise, integers, memory, outputs, races, reads
from argus.core.proof.access import Accesses
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.prover import Prover
from argus.core.proof.sums import Accumulator
from argus.core.proof.timeline import NotModelled, Timeline, timeline
from argus.core.walk import symbols


@frozen(eq=False)
class Analysis:
    """What was found. unmodelled: constructs that leave every flow-based invariant open.

    assumptions: the kernel's own. facts: those, and that the block lies in the grid.
    """

    timeline: Timeline
    obligations: tuple[Obligation, ...]
    unmodelled: tuple[NotModelled, ...]
    assumptions: tuple[Cond, ...]
    facts: tuple[Cond, ...]


def analyse(kernel: Kernel, prover: Prover) -> Analysis:
    """Abstractly interpret the kernel and list what must hold; `prover` answers the questions on the way."""
    line = timeline(kernel)
    accesses = Accesses(line)
    known = (line.assumptions, line.facts)
    if line.unmodelled:
        return Analysis(line, tuple(budgets.obligations(line, accesses)), line.unmodelled, *known)
    return Analysis(line, tuple(_obligations(line, accesses, prover)), (), *known)


def _obligations(line: Timeline, accesses: Accesses, prover: Prover) -> Iterator[Obligation]:
    flow = Flow(line, prover, line.facts, accesses, elementwise.content)
    sums = tuple(Accumulator(flow, buffer) for buffer in _accumulators(line))
    for accumulator in sums:
        flow.sums[accumulator.buffer] = accumulator.content
    yield from budgets.obligations(line, accesses)
    yield from divisors.obligations(line)
    yield from integers.of_control(line)
    yield from memory.obligations(line, accesses)
    yield from _barriers(line)
    yield from _global_order(line)
    yield from reads.obligations(flow)
    yield from races.obligations(flow)
    for accumulator in sums:
        yield from accumulator.obligations()
    yield from claims.products(flow, sums)
    yield from elementwise.agreements(flow)
    yield from claims.asserted(flow)
    yield from outputs.unclaimed(flow)


def _accumulators(line: Timeline) -> tuple[Buffer, ...]:
    found: dict[Buffer, None] = {}
    for step in line.steps:
        if isinstance(step.stmt, Mma):
            found[step.stmt.target.buffer] = None
    return tuple(found)


def _barriers(line: Timeline) -> Iterator[Obligation]:
    """I32: every wave arrives equally often, for no barrier stands under a condition that waves see differently."""
    for step in line.steps:
        if isinstance(step.stmt, Sync):
            uniform = line.kernel.thread not in symbols(step.guard)
            plain = step.stmt.barrier == "cta" and step.stmt.how == "meet" and step.stmt.threads is None
            yield Obligation(
                "I32",
                "every wave arrives at this barrier equally often",
                step.stmt,
                algebra.TRUE if uniform and plain else algebra.FALSE,
                step.context,
                unknown="" if uniform and plain else "only barriers of the whole block, met by all waves, are modelled",
            )


def _global_order(line: Timeline) -> Iterator[Obligation]:
    """Tensors that are both read and written would need an order between blocks, which is not modelled."""
    read = {s.stmt.source.buffer for s in line.steps if isinstance(s.stmt, Copy)}
    for step in line.steps:
        if not isinstance(step.stmt, Copy) or step.stmt.target.buffer.space != "global":
            continue
        name = step.stmt.target.buffer.name
        both = step.stmt.target.buffer in read
        yield Obligation(
            "I38" if not both else "I5",
            f"`{name}` is not read by the kernel that writes it",
            step.stmt,
            algebra.FALSE if both else algebra.TRUE,
            step.context,
            unknown="reads and writes of one global tensor are not modelled" if both else "",
        )
