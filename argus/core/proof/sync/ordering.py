"""Happens-before by waits and barriers: when an asynchronous operation completes, and for which threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from argus.core.atom import Queue
from argus.core.index import Cond
from argus.core.ir import Commit, Stmt, Sync, Wait
from argus.core.ir.queues import completes_in_order, queue_of
from argus.core.proof.dataflow.executions import Execution, steps_between
from argus.core.proof.dataflow.timeline import Shift, Step, Timeline
from argus.core.proof.prover import Prover
from argus.core.proof.sync.epochs import SINGLE_GROUP, Epochs, Pair
from argus.core.walk import substitute

Relation = Literal["ordered", "undrained", "unordered", "unknown"]
_WORST_FIRST: tuple[Relation, ...] = ("unknown", "unordered", "undrained", "ordered")


_GROUPED: frozenset[Queue] = frozenset({"cp_async"})
"""Queues whose entries are groups: an operation is counted once its group has been committed."""


def _is_entry(stmt: Stmt, operation: Stmt, queue: Queue) -> bool:
    """Whether a statement adds an entry to the queue that never completes before the operation."""
    if queue in _GROUPED:
        return isinstance(stmt, Commit) and stmt.queue == queue
    return queue_of(stmt) == queue and completes_in_order(operation, stmt)


def _executed_by_all(passed: Step, operation: Step) -> bool:
    """Whether every wave that executes the operation also executes this step."""
    if passed.waves is None:
        return True
    return operation.waves is not None and not operation.waves & ~passed.waves


@frozen(eq=False)
class Ordering:
    """Decides happens-before between executions of steps of one timeline."""

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]
    epochs: Epochs

    def certain(self, guard: Cond, context: Sequence[Cond]) -> bool:
        return self.prover.follows([*self.facts, *context], guard)

    def completed(self, execution: Execution, step: Step, context: Sequence[Cond]) -> int | None:
        """The position, on the path from the earlier execution to `step`, of a wait that covers it.

        0: nothing to wait for. n: just after the n-th step of the path. None: no wait certainly covers it.
        """
        queue = queue_of(execution.step.stmt)
        if queue is None:
            return 0
        younger = 0 if queue not in _GROUPED else -1
        for place, (passed, shift) in enumerate(steps_between(self.timeline, execution, step)):
            stmt = passed.stmt
            if not _executed_by_all(passed, execution.step):
                continue
            if isinstance(stmt, Wait) and stmt.queue == queue:
                if stmt.pending <= younger and self._happens(passed, shift, context):
                    return place + 1
            elif _is_entry(stmt, execution.step.stmt, queue) and self._happens(passed, shift, context):
                younger += 1
        return None

    def _happens(self, passed: Step, shift: Shift, context: Sequence[Cond]) -> bool:
        return self.certain(substitute(passed.guard, shift), context)

    def relation(
        self, execution: Execution, step: Step, context: Sequence[Cond], pairs: Sequence[Pair] = SINGLE_GROUP
    ) -> Relation:
        """Whether a barrier orders the two executions for threads of different waves, for each pair of groups.

        "undrained": there is a barrier between them, but the earlier operation need not be complete when it is passed.
        "unknown": the lead between the groups varies between iterations.
        """
        path = list(steps_between(self.timeline, execution, step))
        done = self.completed(execution, step, context)
        completion = None if not done else path[done - 1][0]
        barriers = [(place, passed) for place, passed in enumerate(path) if isinstance(passed[0].stmt, Sync)]
        passed_at = {
            group: [place for place, passed in barriers if self._passes(passed, group, context)]
            for group in {later for _, later in pairs}
        }
        found = {self._group_relation(pair, execution, passed_at[pair[1]], done, completion) for pair in pairs}
        return next(worst for worst in _WORST_FIRST if worst in found)

    def _group_relation(
        self, pair: Pair, execution: Execution, barriers: Sequence[int], done: int | None, completion: Step | None
    ) -> Relation:
        """The relation for an earlier execution by the first group of waves and a later one by the second.

        The later group's epoch is its lead where the earlier operation completes, plus the barriers it passes from
        there. barriers: the positions on the path of the barriers that the later group passes.
        """
        first, last = self.epochs.lead(execution.step, pair), self.epochs.lead(completion or execution.step, pair)
        if first is None or last is None:
            return "unknown"
        if done is not None and last + sum(place >= done for place in barriers) >= 1:
            return "ordered"
        return "undrained" if first + len(barriers) >= 1 else "unordered"

    def _passes(self, passed: tuple[Step, Shift], group: int, context: Sequence[Cond]) -> bool:
        step, shift = passed
        return self.certain(substitute(self.epochs.guard(step, group), shift), context)
