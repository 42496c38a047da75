"""Waits and barriers: when an asynchronous operation is over, and whether another thread can rely on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from argus.core.atom import Queue
from argus.core.index import Cond
from argus.core.ir import Commit, Copy, Stmt, Sync, Wait
from argus.core.proof.dataflow.executions import Execution, steps_between
from argus.core.proof.dataflow.timeline import Shift, Step, Timeline
from argus.core.proof.prover import Prover
from argus.core.proof.sync.epochs import ALONE, Epochs, Pair
from argus.core.walk import substitute

Relation = Literal["ordered", "undrained", "unordered", "unknown"]
_WORST_FIRST: tuple[Relation, ...] = ("unknown", "unordered", "undrained", "ordered")


def queue_of(stmt: Stmt) -> Queue | None:
    """The completion queue that an operation is an entry of, if it is untracked."""
    if isinstance(stmt, Copy) and not stmt.atom.completion.tracked:
        return stmt.atom.completion.queue
    return None


def _in_order(older: Stmt, younger: Stmt) -> bool:
    """Whether the younger of two operations on one queue never completes first: loads and stores may."""
    return queue_of(older) == "lds" or _stores(older) == _stores(younger)


_GROUPED: frozenset[Queue] = frozenset({"cp_async"})
"""Queues whose entries are groups: an operation is on them once its own has been closed."""


def _is_entry(stmt: Stmt, operation: Stmt, queue: Queue) -> bool:
    """Whether a statement puts an entry on the queue that is never complete before the operation."""
    if queue in _GROUPED:
        return isinstance(stmt, Commit) and stmt.queue == queue
    return queue_of(stmt) == queue and _in_order(operation, stmt)


def _by_all(passed: Step, operation: Step) -> bool:
    """Whether every wave that executes the operation executes this step too."""
    if passed.waves is None:
        return True
    return operation.waves is not None and not operation.waves & ~passed.waves


def _stores(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "global"


@frozen(eq=False)
class Ordering:
    """Decides order between executions of steps of one timeline."""

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]
    epochs: Epochs

    def certain(self, guard: Cond, context: Sequence[Cond]) -> bool:
        return self.prover.follows([*self.facts, *context], guard)

    def completed(self, moment: Execution, step: Step, context: Sequence[Cond]) -> int | None:
        """The place, on the path from the earlier execution to `step`, of a wait that covers it.

        0: nothing to wait for. n: just after the n-th step of the path. None: no wait is certain to cover it.
        """
        queue = queue_of(moment.step.stmt)
        if queue is None:
            return 0
        younger = 0 if queue not in _GROUPED else -1
        for place, (passed, shift) in enumerate(steps_between(self.timeline, moment, step)):
            stmt = passed.stmt
            if not _by_all(passed, moment.step):
                continue
            if isinstance(stmt, Wait) and stmt.queue == queue:
                if stmt.pending <= younger and self._happens(passed, shift, context):
                    return place + 1
            elif _is_entry(stmt, moment.step.stmt, queue) and self._happens(passed, shift, context):
                younger += 1
        return None

    def _happens(self, passed: Step, shift: Shift, context: Sequence[Cond]) -> bool:
        return self.certain(substitute(passed.guard, shift), context)

    def relation(
        self, moment: Execution, step: Step, context: Sequence[Cond], pairs: Sequence[Pair] = ALONE
    ) -> Relation:
        """Whether a barrier separates the two executions for threads of different waves, of every one of these groups.

        "undrained": a barrier stands between, but the earlier operation need not be over when it is passed.
        "unknown": how far the waves are apart differs from iteration to iteration.
        """
        path = list(steps_between(self.timeline, moment, step))
        done = self.completed(moment, step, context)
        over = None if not done else path[done - 1][0]
        barriers = [(place, passed) for place, passed in enumerate(path) if isinstance(passed[0].stmt, Sync)]
        met = {
            group: [place for place, passed in barriers if self._meets(passed, group, context)]
            for group in {later for _, later in pairs}
        }
        found = {self._of_groups(pair, moment, met[pair[1]], done, over) for pair in pairs}
        return next(worst for worst in _WORST_FIRST if worst in found)

    def _of_groups(
        self, pair: Pair, moment: Execution, met: Sequence[int], done: int | None, over: Step | None
    ) -> Relation:
        """The same for an earlier execution by one group of waves and a later one by another.

        The later group's epoch is what it leads by where the earlier operation ends, and what it meets from there.
        met: the places on the path of the barriers that the later group meets.
        """
        first, last = self.epochs.lead(moment.step, pair), self.epochs.lead(over or moment.step, pair)
        if first is None or last is None:
            return "unknown"
        if done is not None and last + sum(place >= done for place in met) >= 1:
            return "ordered"
        return "undrained" if first + len(met) >= 1 else "unordered"

    def _meets(self, passed: tuple[Step, Shift], group: int, context: Sequence[Cond]) -> bool:
        step, shift = passed
        return self.certain(substitute(self.epochs.guard(step, group), shift), context)
