"""Computes the reaching definitions of each read and the abstract value of each cell.

A definition is found in two steps. Time: slots and guards decide which execution of which write was last. Space: a
table of cells decides which elements of that write are read. Neither needs an inverse layout. That a read sees the last
write in program order presumes the absence of races and missing waits, for which there are separate obligations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import define, evolve, field

from argus.core import algebra
from argus.core.index import And, Cond, Index, Sym, Symbol
from argus.core.ir import Alloc, Assert, Buffer, Copy, Fold, Map, Products, Reset, Stmt, Tag, View
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access, Accesses, overlap, sequential_tv
from argus.core.proof.dataflow.executions import HORIZON, Execution, History, Horizon
from argus.core.proof.dataflow.flattened_views import FlattenedView
from argus.core.proof.dataflow.footprints import Writers
from argus.core.proof.dataflow.join import merge_pieces
from argus.core.proof.dataflow.lookup import (
    agent_symbol_of_cells,
    in_view_coordinates,
    read_written,
    restrict_to_access,
    substitute_agent,
)
from argus.core.proof.dataflow.piecewise_index import evaluate_piecewise
from argus.core.proof.dataflow.separable_index import FragmentIndex
from argus.core.proof.dataflow.timeline import Segment, Step, Timeline, is_shuffle, is_whole
from argus.core.proof.limits.gathers import load_bounds
from argus.core.proof.prover import Prover
from argus.core.proof.sync.epochs import Epochs, epochs_of
from argus.core.proof.sync.ordering import Ordering, queue_of
from argus.core.proof.values.content import (
    BoolArray,
    Bottom,
    Content,
    Data,
    ElementProduct,
    Inside,
    Names,
    Piece,
    Top,
    Value,
    drop_terms,
    guard_content,
    shift_content,
    uniform,
    unify_agents,
)
from argus.core.proof.values.shuffles import shuffle_content
from argus.core.walk import substitute

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

    sums, carried: contents of accumulators and loop-carried tiles just before a step.
    launch_contents, launch_records: contents and tags of tensors that earlier launches wrote. path_accesses: those of
    all control paths, this one included. replaced: what `flattened_views` replaced.
    """

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]
    accesses: Accesses
    map_rule: Callable[[Flow, Step, Map], Content]
    fold_rule: Callable[[Flow, Step, Fold], Content]
    sums: dict[Buffer, Callable[[Step], Content]] = field(factory=dict[Buffer, Callable[[Step], Content]])
    carried: dict[Buffer, Callable[[Step], Content]] = field(factory=dict[Buffer, Callable[[Step], Content]])
    launch_contents: dict[Buffer, Callable[[Access], Content]] = field(
        factory=dict[Buffer, Callable[[Access], Content]]
    )
    launch_records: dict[Buffer, Names] = field(factory=dict[Buffer, Names])
    path_accesses: tuple[Accesses, ...] = ()
    replaced: tuple[FlattenedView, ...] = ()
    history: History = field(init=False)
    epochs: Epochs = field(init=False)
    _tracks_products: bool = field(init=False)
    _written: dict[Step, Content] = field(factory=dict[Step, Content], init=False)
    _in_progress: set[Step] = field(factory=set[Step], init=False)

    def __attrs_post_init__(self) -> None:
        self.history = History(self.timeline)
        self.epochs = epochs_of(self.timeline)
        claims = [step.stmt.claim for step in self.timeline.steps if isinstance(step.stmt, Assert)]
        self._tracks_products = any(isinstance(claim, Products) and not claim.over for claim in claims)

    def without_results(self) -> Flow:
        """A copy without cached results and carried tiles, to evaluate a hypothesis about tiles."""
        return evolve(self, sums=dict(self.sums), carried={})

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

    def read(self, access: Access) -> Content:
        """The content of a read, with equal cases merged."""
        buffer = access.view.buffer
        if access.view.peer is not None:
            return self._read_from_peer(access, access.view.peer)
        if buffer.space == "register" and access.places is None:
            return uniform(access.shape, Top("a register tile whose elements another thread holds"), algebra.TRUE)
        for contents in (self.sums, self.carried):
            if buffer in contents:
                return restrict_to_access(drop_terms(contents[buffer](access.step)), access)
        if buffer.space == "global":
            return self.launch_contents[buffer](access) if buffer in self.launch_contents else self._load_global(access)
        agent = agent_symbol_of_cells(access)
        if agent is not None:
            return self._read_per_agent(access, agent)
        pieces: list[Piece] = []
        for source in self.sources(access):
            pieces += self._pieces_of(access, source)
        return merge_pieces(tuple(pieces), access.step.context, self.holds)

    def _read_per_agent(self, access: Access, agent: Symbol) -> Content:
        """A read whose cells depend on the agent number: one content per agent, unified to a form over the number."""
        assert agent.low is not None
        assert agent.high is not None
        found: list[Data] = []
        for number in range(agent.low, agent.high + 1):
            content = self.read(substitute_agent(access, {agent: algebra.const(number)}))
            if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
                return uniform(access.shape, Top("what an agent reads differs from case to case"), algebra.TRUE)
            value = content[0].value
            if not isinstance(value, Data):
                return uniform(access.shape, value, algebra.TRUE)
            found.append(value)
        return uniform(access.shape, unify_agents(found, agent), algebra.TRUE)

    def _read_from_peer(self, access: Access, sender: Index) -> Content:
        """A read of registers of the block with rank `sender` in the same cluster, at the part that it sends here.

        The content of this block's registers holds for every block; it is computed per destination rank and unified.
        """
        rank = self.timeline.kernel.rank
        always = not self.timeline.path_condition and access.step.loop is None and access.step.guard is algebra.TRUE
        if not isinstance(rank, Sym) or not always or access.by is None:
            return uniform(access.shape, Top("a conditional exchange between blocks"), algebra.TRUE)
        found: list[Data] = []
        for to in range(self.timeline.kernel.peers):
            at = tuple(substitute(each, {rank.symbol: algebra.const(to)}) for each in access.view.at)
            own = evolve(access.view, at=at, peer=None)
            content = self.read(self.accesses.with_view(access, own))
            value = content[0].value
            if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
                return uniform(access.shape, Top("what a block sends differs from case to case"), algebra.TRUE)
            if not isinstance(value, Data):
                return uniform(access.shape, value, algebra.TRUE)
            if value.axes:
                return uniform(access.shape, Top("a block sends rows that differ in their sets"), algebra.TRUE)
            found.append(value.shifted({rank.symbol: sender}))
        return uniform(access.shape, unify_agents(found, rank.symbol), algebra.TRUE)

    def _pieces_of(self, access: Access, source: ReachingWrite) -> list[Piece]:
        if source.moment is None or source.writers is None:
            value = Top(source.unknown) if source.unknown else Bottom()
            return [Piece(source.mask, source.guard, value)]
        moment = source.moment
        if access.view.buffer.space == "register" and not self.has_arrived(moment, access, source.guard):
            return [Piece(source.mask, source.guard, Bottom(moment.step.stmt))]
        wrote = next(a for a in self.accesses.of(moment.step) if a.mode == "write")
        content = guard_content(shift_content(self.written(moment.step), moment.shift), source.guard)
        return read_written(content, wrote, access, source.mask, source.writers)

    def has_arrived(self, moment: Execution, access: Access, guard: Cond) -> bool:
        """Whether what an execution loads is there when a read takes place."""
        context = [*access.step.context, guard]
        return queue_of(moment.step.stmt) is None or self.ordering.completed(moment, access.step, context) is not None

    def written(self, step: Step) -> Content:
        """The content that a step writes, by (thread, value) of the step."""
        if step in self._written:
            return self._written[step]
        if step in self._in_progress:
            return self._uniform_content(step, Top("it depends on itself through a loop without an initial value"))
        self._in_progress.add(step)
        self._written[step] = self._evaluate_write(step)
        self._in_progress.discard(step)
        return self._written[step]

    def _uniform_content(self, step: Step, value: Value) -> Content:
        return uniform(self.accesses.of(step)[-1].shape, value, algebra.TRUE)

    def _evaluate_write(self, step: Step) -> Content:
        stmt = step.stmt
        match stmt:
            case Copy() if is_shuffle(stmt):
                return shuffle_content(stmt, self.read(self.accesses.of(step)[0]), self.timeline.kernel.target.unit)
            case Copy():
                return in_view_coordinates(self.read(self.accesses.of(step)[0]), stmt.source)
            case Map():
                return self.map_rule(self, step, stmt)
            case Fold():
                return drop_terms(self.fold_rule(self, step, stmt))
            case _:
                return self._uniform_content(step, Top(f"`{type(stmt).__name__}` has no tag rule in the verifier yet"))

    def _load_global(self, access: Access) -> Content:
        stmt = access.step.stmt
        places = access.gathered if access.places is None else access.places
        if places is None:
            return uniform(access.shape, Top("its address mixes symbols and coordinates"), algebra.TRUE)
        record: dict[str, FragmentIndex] = {}
        for name, expression in self.names(access.view.buffer):
            found = self.fragment_index(expression, places, access.shape)
            if found is None:
                return uniform(access.shape, Top(f"tag `{name}` has too many different values"), algebra.TRUE)
            record[name] = found
        inside: tuple[Inside, ...] = ()
        fill, name = 0.0, access.view.buffer.name
        if isinstance(stmt, Copy) and stmt.edge is not None:
            fill = stmt.edge
            if not access.view.buffer.dtype.holds(fill):
                reason = f"padding of {fill:g}, which is not a value of {access.view.buffer.dtype}"
                return uniform(access.shape, Top(reason), algebra.TRUE)
            found = load_bounds(self.accesses, access, places)
            if found is None:
                return uniform(access.shape, Top("a view's condition that is not a coordinate bound"), algebra.TRUE)
            inside = found
        product = ElementProduct((access.view.buffer,), (tuple(places),), inside)
        terms = (product,) if self._tracks_products and fill == 0 else ()
        loaded = Data(record, inside, fill, form=name, root=name, factors=(access.view.buffer,), terms=terms)
        return uniform(access.shape, loaded, algebra.TRUE)

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

    def tile(self, step: Step, view: View, by: TV | None = None) -> Content:
        """The content of a tile at an assertion. by: layout of the elements, for a part of a register tile."""
        layout = view.buffer.layout
        if isinstance(layout, TV):
            for known in (self.sums, self.carried):
                if view.buffer in known and is_whole(view) and by in (None, layout):
                    return known[view.buffer](step)
            return self.read(self.accesses.register_read(step, view, by or layout))
        kernel = self.timeline.kernel
        if view.buffer.space == "shared" and "lds" in kernel.target.queues and kernel.threads > kernel.target.unit:
            return self.read(self.accesses.register_read(step, view, sequential_tv(view)))
        return uniform(
            (1, 1), Top("an assertion on tags of this memory is not supported by the verifier yet"), algebra.TRUE
        )

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
