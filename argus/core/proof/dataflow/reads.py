"""Nothing is read before it is there: written at all (I38, I5 for shared memory) and arrived (I31)."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core import algebra
from argus.core.atom import Queue
from argus.core.index import Cond
from argus.core.ir import Assert, Copy, Stmt
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.executions import Execution, Horizon
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.ordering import queue_of
from argus.core.proof.values.content import Bottom, Piece, Top


def read_obligations(flow: Flow) -> Iterator[Obligation]:
    """For each read of registers or shared memory; accumulators answer for themselves."""
    for step in flow.timeline.steps:
        for access in flow.accesses.of(step):
            if access.mode == "write" and access.view.buffer.space == "register":
                yield from _landed(flow, step, access)
        if isinstance(step.stmt, Assert):
            continue
        for access in flow.accesses.of(step):
            buffer = access.view.buffer
            if access.mode == "read" and buffer.space != "global" and buffer not in flow.sums:
                yield from _of_read(flow, step, access)


def _of_read(flow: Flow, step: Step, access: Access) -> Iterator[Obligation]:
    content = flow.written(step) if isinstance(step.stmt, Copy) else flow.read(access)
    name = access.view.buffer.name
    shared = access.view.buffer.space == "shared"
    written = "I5" if shared else "I38"
    faults = [piece for piece in content if isinstance(piece.value, Bottom | Top)]
    for piece in faults:
        yield _fault(step, access, piece, written)
    if not faults:
        size = access.shape[0] * access.shape[1]
        what = f"`{name}` is filled before it is read" if shared else f"`{name}` is written before it is used"
        yield Obligation(written, what, step.stmt, algebra.TRUE, step.context, compared=size)
        if not shared:
            what = f"`{name}` has arrived before it is used"
            yield Obligation("I31", what, step.stmt, algebra.TRUE, step.context, compared=size)


def _landed(flow: Flow, step: Step, write: Access) -> Iterator[Obligation]:
    """No load into the same registers is still in flight when they are written: it would land later.

    Loads on one queue land in order.
    """
    queue = queue_of(step.stmt)
    drained: set[Step] = set()
    for moment in flow.history.before(step):
        if isinstance(moment, Horizon):
            yield from _landed_long_ago(flow, step, write, moment, drained)
            continue
        if not _loads(flow, moment.step, write, queue) or flow.impossible(step.context, moment.exists):
            continue
        context = [*step.context, moment.exists]
        done = flow.ordering.completed(moment, step, context) is not None
        yield _overwritten(step, write, moment.step, (*step.context, moment.exists), done=done)
        if done and _always_drained(flow, moment, step):
            drained.add(moment.step)


def _loads(flow: Flow, earlier: Step, write: Access, queue: Queue | None) -> bool:
    """Whether a step is a load of the same registers that does not land in order with the write."""
    if queue_of(earlier.stmt) in (None, queue):
        return False
    return any(a.mode == "write" and a.view.buffer is write.view.buffer for a in flow.accesses.of(earlier))


def _always_drained(flow: Flow, moment: Execution, step: Step) -> bool:
    """Whether the load is waited for whatever the iteration: the wait rests on no guard but its own loop's facts."""
    context = () if step.loop is None else step.loop.facts
    return moment.lap + (moment.distance or 0) > 0 and flow.ordering.completed(moment, step, context) is not None


def _landed_long_ago(
    flow: Flow, step: Step, write: Access, horizon: Horizon, drained: set[Step]
) -> Iterator[Obligation]:
    """Loads older than is looked at are known to have landed only if every newer one certainly had."""
    queue = queue_of(step.stmt)
    loads = [s for s in horizon.segment.steps if _loads(flow, s, write, queue) and s not in drained]
    if not loads or flow.impossible(step.context, horizon.reached):
        return
    yield evolve(
        _overwritten(step, write, loads[0], step.context, done=False),
        unknown="the load may have been issued more iterations ago than is modelled",
    )


def _overwritten(step: Step, write: Access, load: Step, context: tuple[Cond, ...], *, done: bool) -> Obligation:
    return Obligation(
        "I31",
        f"no load of `{write.view.buffer.name}` is in flight when it is written again",
        step.stmt,
        algebra.TRUE if done else algebra.FALSE,
        context,
        other=load.stmt,
        help="wait for the load before its registers are written again",
    )


def _fault(step: Step, access: Access, piece: Piece, written: str) -> Obligation:
    name = access.view.buffer.name
    context = (*step.context, piece.guard)
    if isinstance(piece.value, Top):
        what = f"what `{name}` holds is known"
        return Obligation(written, what, step.stmt, algebra.FALSE, context, unknown=piece.value.reason)
    flight = piece.value.in_flight if isinstance(piece.value, Bottom) else None
    if flight is not None and access.view.buffer.space == "register":
        return _unwaited(step.stmt, flight, name, context)
    return Obligation(
        written,
        f"`{name}` is {'filled' if written == 'I5' else 'written'} before it is read",
        step.stmt,
        algebra.FALSE,
        context,
        help=f"fill `{name}` on every path to this line",
    )


def _unwaited(stmt: Stmt, flight: Stmt, name: str, context: tuple[Cond, ...]) -> Obligation:
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
