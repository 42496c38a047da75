"""Obligations that each read sees data that has been written (I38; I5 in shared memory) and has arrived (I31)."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core import algebra
from argus.core.atom import Queue
from argus.core.index import Cond
from argus.core.ir import Buffer, Mma, Stmt
from argus.core.ir.queues import queue_of
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.executions import Execution, Horizon
from argus.core.proof.dataflow.lookup import agent_symbol_of_cells, substitute_agent
from argus.core.proof.dataflow.reaching import Flow, ReachingWrite
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation


def arrival_obligations(flow: Flow) -> Iterator[Obligation]:
    """I38, I5 and I31 for each access of registers or shared memory, whatever the elements are."""
    for step in flow.timeline.steps:
        for access in flow.accesses.of(step):
            if access.mode == "write" and access.view.buffer.space == "register":
                yield from _no_load_in_flight(flow, step, access)
            elif access.mode == "read" and access.view.buffer.space != "global":
                own = _of_own_agent(flow, access)
                if own is not None:
                    yield from _arrives(flow, step, own)


def _of_own_agent(flow: Flow, access: Access) -> Access | None:
    """The read, of another agent of the block as if it were this one's: all do alike. None for another block's."""
    if access.view.peer is None:
        return access
    alone = flow.timeline.kernel.peers == 1 and access.by is not None
    return flow.accesses.with_view(access, evolve(access.view, peer=None)) if alone else None


def _arrives(flow: Flow, step: Step, access: Access) -> Iterator[Obligation]:
    buffer = access.view.buffer
    shared = buffer.space == "shared"
    read = _is_read(step, access)
    if (access.places is None and not shared) or read is algebra.FALSE:
        return
    written, size = "I5" if shared else "I38", access.shape[0] * access.shape[1]
    what = f"`{buffer.name}` is {'filled before it is read' if shared else 'written before it is used'}"
    loaded = not shared and _loaded(flow, buffer)
    for source in _sources(flow, access):
        context = (*step.context, source.guard, read)
        if source.unknown:
            yield Obligation(written, what, step.stmt, algebra.FALSE, context, unknown=source.unknown)
        elif source.moment is None and not flow.impossible((*step.context, source.guard), read):
            yield _unwritten(step, access, written, context)
        elif source.moment is not None and loaded and not flow.has_arrived(source.moment, access, source.guard):
            yield _missing_wait(step.stmt, source.moment.step.stmt, buffer.name, context)
    yield Obligation(written, what, step.stmt, algebra.TRUE, step.context, compared=size)
    if loaded:
        what = f"`{buffer.name}` has arrived before it is used"
        yield Obligation("I31", what, step.stmt, algebra.TRUE, step.context, compared=size)


def _is_read(step: Step, access: Access) -> Cond:
    """When the step uses what it accesses: not the accumulator of a product that starts anew."""
    stmt = step.stmt
    if isinstance(stmt, Mma) and access.view.buffer is stmt.target.buffer:
        return algebra.negate(stmt.init)
    return algebra.TRUE


def _loaded(flow: Flow, buffer: Buffer) -> bool:
    """Whether registers are filled by an asynchronous load."""
    return any(
        queue_of(step.stmt) is not None and any(a.mode == "write" and a.view.buffer is buffer for a in accesses)
        for step in flow.timeline.steps
        if (accesses := flow.accesses.of(step))
    )


def _sources(flow: Flow, access: Access) -> Iterator[ReachingWrite]:
    """The reaching definitions of a read, of each agent if its cells depend on the agent's number."""
    agent = agent_symbol_of_cells(access)
    if agent is None or agent.low is None or agent.high is None:
        yield from flow.sources(access)
        return
    for number in range(agent.low, agent.high + 1):
        yield from flow.sources(substitute_agent(access, {agent: algebra.const(number)}))


def _no_load_in_flight(flow: Flow, step: Step, write: Access) -> Iterator[Obligation]:
    """I31: no load into the same registers is in flight when a step writes them, because it would arrive later.

    Loads on one queue arrive in order.
    """
    queue = queue_of(step.stmt)
    drained: set[Step] = set()
    for moment in flow.history.before(step):
        if isinstance(moment, Horizon):
            yield from _no_load_beyond_horizon(flow, step, write, moment, drained)
            continue
        if not _loads_same_registers(flow, moment.step, write, queue) or flow.impossible(step.context, moment.exists):
            continue
        context = [*step.context, moment.exists]
        done = flow.ordering.completed(moment, step, context) is not None
        yield _in_flight_obligation(step, write, moment.step, (*step.context, moment.exists), done=done)
        if done and _always_drained(flow, moment, step):
            drained.add(moment.step)


def _loads_same_registers(flow: Flow, earlier: Step, write: Access, queue: Queue | None) -> bool:
    """Whether a step loads the same registers through a queue that is not ordered with the write."""
    if queue_of(earlier.stmt) in (None, queue):
        return False
    return any(a.mode == "write" and a.view.buffer is write.view.buffer for a in flow.accesses.of(earlier))


def _always_drained(flow: Flow, moment: Execution, step: Step) -> bool:
    """Whether a wait completes the load in every iteration, using no guard except the facts of its loop."""
    context = () if step.loop is None else step.loop.facts
    return moment.from_last + (moment.distance or 0) > 0 and flow.ordering.completed(moment, step, context) is not None


def _no_load_beyond_horizon(
    flow: Flow, step: Step, write: Access, horizon: Horizon, drained: set[Step]
) -> Iterator[Obligation]:
    """I31 for loads beyond the horizon: they have arrived only if every modelled, newer one certainly has."""
    queue = queue_of(step.stmt)
    loads = [s for s in horizon.segment.steps if _loads_same_registers(flow, s, write, queue) and s not in drained]
    if not loads or flow.impossible(step.context, horizon.reached):
        return
    yield evolve(
        _in_flight_obligation(step, write, loads[0], step.context, done=False),
        unknown="the load may have been issued more iterations ago than is modelled",
    )


def _in_flight_obligation(
    step: Step, write: Access, load: Step, context: tuple[Cond, ...], *, done: bool
) -> Obligation:
    return Obligation(
        "I31",
        f"no load of `{write.view.buffer.name}` is in flight when it is written again",
        step.stmt,
        algebra.TRUE if done else algebra.FALSE,
        context,
        other=load.stmt,
        help="wait for the load before its registers are written again",
    )


def _unwritten(step: Step, access: Access, written: str, context: tuple[Cond, ...]) -> Obligation:
    name = access.view.buffer.name
    return Obligation(
        written,
        f"`{name}` is {'filled' if written == 'I5' else 'written'} before it is read",
        step.stmt,
        algebra.FALSE,
        context,
        help=f"fill `{name}` on every path to this line",
    )


def _missing_wait(stmt: Stmt, flight: Stmt, name: str, context: tuple[Cond, ...]) -> Obligation:
    return Obligation(
        "I31",
        f"`{name}` has arrived before it is used",
        stmt,
        algebra.FALSE,
        context,
        other=flight,
        help="wait for the load before its registers are used: `vmem.wait(0)` or `lds.wait(0)`, "
        "or a smaller `pending` count",
    )
