"""Computes the reaching definitions of each read.

A definition is found in two steps. Time: slots and guards decide which execution of which write was last. Space: a
table of cells decides which elements of that write are read. Neither needs an inverse layout. That a read sees the last
write in program order presumes the absence of races and missing waits, for which there are separate obligations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from argus.core import algebra
from argus.core.index import And, Cond, Index
from argus.core.ir import Alloc, Buffer, Copy, Reset, Stmt, Tag
from argus.core.ir.queues import queue_of
from argus.core.proof.dataflow.access import Access, Accesses, overlap
from argus.core.proof.dataflow.executions import HORIZON, Execution, History, Horizon
from argus.core.proof.dataflow.flattened_views import FlattenedView
from argus.core.proof.dataflow.footprints import Writers
from argus.core.proof.dataflow.piecewise_index import evaluate_piecewise
from argus.core.proof.dataflow.separable_index import FragmentIndex
from argus.core.proof.dataflow.timeline import Segment, Timeline
from argus.core.proof.prover import Prover
from argus.core.proof.sync.epochs import Epochs, epochs_of
from argus.core.proof.sync.ordering import Ordering
from argus.core.proof.values.content import BoolArray, Names
from argus.core.values.expr import Expr

_PIECE_LIMIT = 8
_Pending = list[tuple[BoolArray, Cond]]
"""Elements without a reaching definition so far, each mask with its condition."""


@define(eq=False)
class ReachingWrite:
    """A definition that reaches the elements `mask` of a read under the condition `guard`.

    moment: the execution of the write; None if nothing wrote them, or if that is unknown.
    writers: the writer of each element. unknown: why the definition is unknown; empty if it is known.
    """

    mask: BoolArray
    guard: Cond
    moment: Execution | None
    writers: Writers | None
    unknown: str = ""


@define(eq=False)
class Flow:
    """The data flow of one timeline.

    launch_records: tags of tensors that earlier launches wrote. path_accesses: those of all control paths, this one
    included. replaced: what `flattened_views` replaced. decided: the tensors by whose numbers later launches of a
    program decide something. evaluations: what `held.outputs` has found of it, by what tensors hold before.
    """

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]
    accesses: Accesses
    launch_records: dict[Buffer, Names] = field(factory=dict[Buffer, Names])
    path_accesses: tuple[Accesses, ...] = ()
    replaced: tuple[FlattenedView, ...] = ()
    decided: frozenset[Buffer] = frozenset()
    evaluations: dict[frozenset[tuple[Buffer, Expr]], object] = field(
        factory=dict["frozenset[tuple[Buffer, Expr]]", object], init=False
    )
    history: History = field(init=False)
    epochs: Epochs = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.history = History(self.timeline)
        self.epochs = epochs_of(self.timeline)

    @property
    def ordering(self) -> Ordering:
        """The completion order of asynchronous operations."""
        return Ordering(self.timeline, self.prover, self.facts, self.epochs)

    def holds(self, context: Sequence[Cond], goal: Cond, *, steps: int | None = None) -> bool:
        """Whether the goal provably follows from the facts and `context`. steps: a lower limit than the budget's."""
        return self.prover.follows([*self.facts, *context], goal, steps=steps)

    def impossible(self, context: Sequence[Cond], cond: Cond) -> bool:
        """Whether the condition provably contradicts the facts and `context`."""
        return self.holds(context, algebra.negate(cond))

    def sources(self, read: Access) -> tuple[ReachingWrite, ...]:
        """The reaching definitions of the elements of a read, each with its condition."""
        pending: _Pending = [(read.active, algebra.TRUE)]
        found: list[ReachingWrite] = []
        done = 0
        for moment in self.history.before(read.step):
            if not pending:
                break
            if self._before_first_iteration(read, moment, pending, done):
                done = done or (moment.distance if isinstance(moment, Execution) and moment.distance else HORIZON)
                continue
            if isinstance(moment, Horizon):
                pending = self._drop_beyond_horizon(read, moment, pending, found)
            elif isinstance(moment.step.stmt, Alloc | Reset):
                if moment.step.stmt.buffer is read.view.buffer:
                    break
            else:
                for write in self.accesses.of(moment.step):
                    if write.mode == "write" and write.view.buffer is read.view.buffer:
                        pending = self._match(read, write, moment, pending, found)
            if len(found) > _PIECE_LIMIT:
                unknown = "too many writes may have written it"
                return (ReachingWrite(np.ones(read.shape, np.bool_), algebra.TRUE, None, None, unknown),)
        found += [ReachingWrite(mask, guard, None, None) for mask, guard in pending]
        return tuple(found)

    def _before_first_iteration(self, read: Access, moment: Execution | Horizon, pending: _Pending, done: int) -> bool:
        """Whether the moment would lie before the first iteration of the read's loop, in every pending case.

        done: a distance for which that is known, 0 if none; it then also holds for all greater distances.
        """
        loop = read.step.loop
        if loop is None or (isinstance(moment, Horizon) and moment.segment.loop is not loop):
            return False
        distance = HORIZON + 1 if isinstance(moment, Horizon) else moment.distance
        if not distance:
            return False
        if done:
            return distance >= done
        came = loop.has_earlier(distance)
        return all(self.impossible([*read.step.context, guard], came) for _, guard in pending)

    def _drop_beyond_horizon(
        self, read: Access, horizon: Horizon, pending: _Pending, found: list[ReachingWrite]
    ) -> _Pending:
        """Report as unknown the elements that an execution beyond the horizon may have written; return the others."""
        if not self._writes(horizon.segment, read.view.buffer):
            return pending
        remaining: _Pending = []
        for mask, guard in pending:
            if self.impossible([*read.step.context, guard], horizon.reached):
                remaining.append((mask, guard))
            else:
                found.append(ReachingWrite(mask, guard, None, None, "written more iterations ago than is modelled"))
        return remaining

    def _writes(self, segment: Segment, buffer: Buffer) -> bool:
        """Whether some step of the segment writes, allocates or resets the buffer."""
        for step in segment.steps:
            if isinstance(step.stmt, Alloc | Reset) and step.stmt.buffer is buffer:
                return True
            if any(a.mode == "write" and a.view.buffer is buffer for a in self.accesses.of(step)):
                return True
        return False

    def _match(
        self,
        read: Access,
        write: Access,
        moment: Execution,
        pending: _Pending,
        found: list[ReachingWrite],
    ) -> _Pending:
        return [left for mask, guard in pending for left in self._match_one(read, write, moment, mask, guard, found)]

    def _match_one(
        self, read: Access, write: Access, moment: Execution, mask: BoolArray, guard: Cond, found: list[ReachingWrite]
    ) -> _Pending:
        context = [*read.step.context, guard]
        common = overlap(read, write, moment.shift)
        if common is None:
            if self.impossible(context, moment.exists):
                return [(mask, guard)]
            found.append(ReachingWrite(mask, guard, None, None, "its address does not separate into slot and cell"))
            return []
        writers = common.cells.writers
        covered = writers.covered
        hit = mask & covered
        cond = algebra.all_of((common.slots, moment.exists))
        if not hit.any() or cond is algebra.FALSE or self.impossible(context, cond):
            return [(mask, guard)]
        rest = [(mask & ~covered, guard)] if (mask & ~covered).any() else []
        split = self._undecided(context, cond)
        found.append(ReachingWrite(hit, algebra.all_of((guard, split)), moment, writers))
        if split is not algebra.TRUE:
            rest.append((hit, algebra.all_of((guard, algebra.negate(split)))))
        return rest

    def _undecided(self, context: Sequence[Cond], cond: Cond) -> Cond:
        """The conjuncts of a condition that do not follow from the context."""
        parts = cond.parts if isinstance(cond, And) else (cond,)
        return algebra.all_of(part for part in parts if not self.holds(context, part))

    def has_arrived(self, moment: Execution, access: Access, guard: Cond) -> bool:
        """Whether what an execution loads is there when a read takes place."""
        context = [*access.step.context, guard]
        return queue_of(moment.step.stmt) is None or self.ordering.completed(moment, access.step, context) is not None

    def origin(self, access: Access) -> Stmt | None:
        """The load from global memory from which the nearest definition of a read's elements comes; None if unknown."""
        for _ in range(len(self.timeline.segments) + _PIECE_LIMIT):
            moments = [source.moment for source in self.sources(access) if source.moment is not None]
            step = moments[0].step if moments else None
            if step is None or not isinstance(step.stmt, Copy):
                return None
            access = self.accesses.of(step)[0]
            if access.view.buffer.space == "global":
                return step.stmt
        return None

    def fragment_index(
        self, expression: Index, places: Sequence[FragmentIndex], shape: tuple[int, int]
    ) -> FragmentIndex | None:
        """An expression over a buffer's coordinates at `places`; None if it has too many distinct values."""
        return evaluate_piecewise(expression, places, self.timeline.kernel.thread, shape)

    def names(self, buffer: Buffer) -> tuple[tuple[str, Index], ...]:
        """The tag record of a tensor's elements; a name that several tags define is left out."""
        tags = [s.stmt.names for s in self.timeline.steps if isinstance(s.stmt, Tag) and s.stmt.view.buffer is buffer]
        names = [name for record in tags for name, _ in record]
        return tuple((name, e) for record in tags for name, e in record if names.count(name) == 1)
