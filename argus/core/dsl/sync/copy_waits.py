"""The waits that copies ask for: `copy(..., wait=True)`, and `wait=False` among automatic waits."""

from __future__ import annotations

from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.tracer import Tracer
from argus.core.ir import Copy, Origin, Wait


def emit_copy(tracer: Tracer, copy: Copy, wait: bool | None) -> None:
    """Add a copy, and if asked a wait for it.

    wait: True waits for all operations on the copy's queue, or does nothing if the copy is complete at once; False
    leaves it out of automatic waits. Raises E106 for other values, E222 for a copy that no wait on a queue completes.
    """
    if wait is not None and not isinstance(wait, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`wait` is True or False, found {describe_value(wait)}", help="write `wait=True`")
    completion = copy.atom.completion
    if wait and completion.signal:
        fault(
            "E222",
            f"`{copy.atom}` completes on a barrier, not on a queue",
            help="leave `wait` out, and wait on the barrier: `done.wait(0)`, or `ring.wait()` for a slot",
        )
    if wait and completion.group == "commit":
        queue = completion.queue
        fault(
            "E222",
            f"`{copy.atom}` completes with its group on the queue `{queue}`, which is open",
            help=f"leave `wait` out, and write `{queue}.commit()` and `{queue}.wait(0)` after the copies of the group",
        )
    tracer.emit(copy)
    if wait is False:
        tracer.unwaited.add(copy)
    if wait and completion.queue is not None:
        tracer.emit(Wait(completion.queue, 0, span=copy.span, origin=Origin("waits", 0)))
