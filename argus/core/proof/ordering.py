"""Waits and barriers: when an asynchronous operation is over, and whether another thread can rely on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from argus.core.atom import Queue
from argus.core.index import Cond
from argus.core.ir import Copy, Stmt, Sync, Wait
from argus.core.proof.moments import Moment, between
from argus.core.proof.prover import Prover
from argus.core.proof.timeline import Shift, Step, Timeline
from argus.core.query import Unsat
from argus.core.walk import substitute


def queue_of(stmt: Stmt) -> Queue | None:
    """The completion queue that an operation is an entry of, if it is untracked."""
    if isinstance(stmt, Copy) and not stmt.atom.moments.tracked:
        return stmt.atom.moments.queue
    return None


def _in_order(older: Stmt, younger: Stmt) -> bool:
    """Whether the younger of two operations on one queue never completes first: loads and stores may."""
    return queue_of(older) == "lds" or _stores(older) == _stores(younger)


def _stores(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "global"


@frozen(eq=False)
class Ordering:
    """Decides order between executions of steps of one timeline."""

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]

    def certain(self, guard: Cond, context: Sequence[Cond]) -> bool:
        return isinstance(self.prover.prove([*self.facts, *context], guard), Unsat)

    def completed(self, moment: Moment, step: Step, context: Sequence[Cond]) -> int | None:
        """The place, on the path from the earlier execution to `step`, of a wait that covers it.

        0: nothing to wait for. n: just after the n-th step of the path. None: no wait is certain to cover it.
        """
        queue = queue_of(moment.step.stmt)
        if queue is None:
            return 0
        younger = 0
        for place, (passed, shift) in enumerate(between(self.timeline, moment, step)):
            stmt = passed.stmt
            if isinstance(stmt, Wait) and stmt.queue == queue:
                if stmt.pending <= younger and self._happens(passed, shift, context):
                    return place + 1
            elif (
                queue_of(stmt) == queue and _in_order(moment.step.stmt, stmt) and self._happens(passed, shift, context)
            ):
                younger += 1
        return None

    def _happens(self, passed: Step, shift: Shift, context: Sequence[Cond]) -> bool:
        return self.certain(substitute(passed.guard, shift), context)

    def relation(
        self, moment: Moment, step: Step, context: Sequence[Cond]
    ) -> Literal["ordered", "undrained", "unordered"]:
        """Whether a barrier separates the two executions for threads of different waves.

        "undrained": a barrier stands between, but the earlier operation need not be over when it is passed.
        """
        path = list(between(self.timeline, moment, step))
        done = self.completed(moment, step, context)
        barriers = [
            place
            for place, (passed, shift) in enumerate(path)
            if isinstance(passed.stmt, Sync) and self._happens(passed, shift, context)
        ]
        if done is not None and any(place >= done for place in barriers):
            return "ordered"
        return "undrained" if barriers else "unordered"
