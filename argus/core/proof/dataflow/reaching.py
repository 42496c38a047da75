"""Which write each read sees, and what the cell then holds: abstract interpretation of the data flow.

Reading back is two questions. Time: which execution of which write was last, decided from slots and guards. Space:
which of its elements, decided by a table from cells. Neither needs an inverse layout. That the last write in program
order is the one seen presumes that races and waits are in order, which is proved apart (`races`, `waits`).
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


@define(eq=False)
class ReachingWrite:
    """Where some elements of a read come from. taken: who wrote each element read."""

    mask: BoolArray
    guard: Cond
    moment: Execution | None
    taken: Writers | None
    unknown: str = ""


@define(eq=False)
class Flow:
    """The data flow of one timeline. ways: the accesses of all lines that blocks of the kernel run, this one's too.
    seen: what stands for tensors that the kernel sees through one view.
    """

    timeline: Timeline
    prover: Prover
    facts: tuple[Cond, ...]
    accesses: Accesses
    map_rule: Callable[[Flow, Step, Map], Content]
    fold_rule: Callable[[Flow, Step, Fold], Content]
    sums: dict[Buffer, Callable[[Step], Content]] = field(factory=dict[Buffer, Callable[[Step], Content]])
    carried: dict[Buffer, Callable[[Step], Content]] = field(factory=dict[Buffer, Callable[[Step], Content]])
    given: dict[Buffer, Callable[[Access], Content]] = field(factory=dict[Buffer, Callable[[Access], Content]])
    ways: tuple[Accesses, ...] = ()
    seen: tuple[FlattenedView, ...] = ()
    history: History = field(init=False)
    epochs: Epochs = field(init=False)
    _by_place: bool = field(init=False)
    _written: dict[Step, Content] = field(factory=dict[Step, Content], init=False)
    _open: set[Step] = field(factory=set[Step], init=False)

    def __attrs_post_init__(self) -> None:
        self.history = History(self.timeline)
        self.epochs = epochs_of(self.timeline)
        claims = [step.stmt.claim for step in self.timeline.steps if isinstance(step.stmt, Assert)]
        self._by_place = any(isinstance(claim, Products) and not claim.over for claim in claims)

    def apart(self) -> Flow:
        """The same questions with nothing answered yet, for a trial of what tiles may hold."""
        return evolve(self, sums=dict(self.sums), carried={})

    @property
    def ordering(self) -> Ordering:
        return Ordering(self.timeline, self.prover, self.facts, self.epochs)

    def holds(self, context: Sequence[Cond], goal: Cond) -> bool:
        return self.prover.follows([*self.facts, *context], goal)

    def impossible(self, context: Sequence[Cond], cond: Cond) -> bool:
        return self.holds(context, algebra.negate(cond))

    # -- time --------------------------------------------------------------------------------------------

    def sources(self, read: Access) -> tuple[ReachingWrite, ...]:
        """The writes that the elements of a read come from, under which condition each."""
        pending: list[tuple[BoolArray, Cond]] = [(read.moved, algebra.TRUE)]
        found: list[ReachingWrite] = []
        done = 0
        for moment in self.history.before(read.step):
            if not pending:
                break
            if self._beginning_reached(read, moment, pending, done):
                done = done or (moment.distance if isinstance(moment, Execution) and moment.distance else HORIZON)
                continue
            if isinstance(moment, Horizon):
                pending = self._beyond(read, moment, pending, found)
            elif isinstance(moment.step.stmt, Alloc | Reset):
                if moment.step.stmt.buffer is read.view.buffer:
                    break
            else:
                for write in self.accesses.of(moment.step):
                    if write.mode == "write" and write.view.buffer is read.view.buffer:
                        pending = self._match(read, write, moment, pending, found)
            if len(found) > _PIECE_LIMIT:
                return (
                    ReachingWrite(
                        np.ones(read.shape, np.bool_), algebra.TRUE, None, None, "too many cases of who wrote it"
                    ),
                )
        found += [ReachingWrite(mask, guard, None, None) for mask, guard in pending]
        return tuple(found)

    def _beginning_reached(
        self, read: Access, moment: Execution | Horizon, pending: list[tuple[BoolArray, Cond]], done: int
    ) -> bool:
        """Whether the loop had not begun yet so many iterations ago, in every case that is still open.

        done: the distance from which that is known, 0 for none: what holds of one holds of all greater ones.
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

    def _beyond(
        self, read: Access, horizon: Horizon, pending: list[tuple[BoolArray, Cond]], found: list[ReachingWrite]
    ) -> list[tuple[BoolArray, Cond]]:
        """Elements that may have been written earlier than is looked at are unknown then."""
        if not self._writes(horizon.segment, read.view.buffer):
            return pending
        kept: list[tuple[BoolArray, Cond]] = []
        for mask, guard in pending:
            if self.impossible([*read.step.context, guard], horizon.reached):
                kept.append((mask, guard))
            else:
                found.append(ReachingWrite(mask, guard, None, None, "written more iterations ago than is modelled"))
        return kept

    def _writes(self, segment: Segment, buffer: Buffer) -> bool:
        """Whether some step of the segment writes the buffer or makes it anew."""
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
        pending: list[tuple[BoolArray, Cond]],
        found: list[ReachingWrite],
    ) -> list[tuple[BoolArray, Cond]]:
        left: list[tuple[BoolArray, Cond]] = []
        for mask, guard in pending:
            left += self._match_one(read, write, moment, mask, guard, found)
        return left

    def _match_one(
        self, read: Access, write: Access, moment: Execution, mask: BoolArray, guard: Cond, found: list[ReachingWrite]
    ) -> list[tuple[BoolArray, Cond]]:
        context = [*read.step.context, guard]
        met_at = overlap(read, write, moment.shift)
        if met_at is None:
            if self.impossible(context, moment.exists):
                return [(mask, guard)]
            found.append(ReachingWrite(mask, guard, None, None, "its address does not separate into slot and cell"))
            return []
        taken = met_at.cells.taken
        met = taken.covered
        hit = mask & met
        cond = algebra.all_of((met_at.slots, moment.exists))
        if not hit.any() or cond is algebra.FALSE or self.impossible(context, cond):
            return [(mask, guard)]
        rest = [(mask & ~met, guard)] if (mask & ~met).any() else []
        split = self._undecided(context, cond)
        found.append(ReachingWrite(hit, algebra.all_of((guard, split)), moment, taken))
        if split is not algebra.TRUE:
            rest.append((hit, algebra.all_of((guard, algebra.negate(split)))))
        return rest

    def _undecided(self, context: Sequence[Cond], cond: Cond) -> Cond:
        """The parts of a condition that the context does not settle."""
        parts = cond.parts if isinstance(cond, And) else (cond,)
        return algebra.all_of(part for part in parts if not self.holds(context, part))

    # -- content -----------------------------------------------------------------------------------------

    def read(self, access: Access) -> Content:
        """What the elements of a read hold, cases with one meaning merged."""
        buffer = access.view.buffer
        if access.view.peer is not None:
            return self._of_peer(access, access.view.peer)
        if buffer.space == "register" and access.places is None:
            return uniform(access.shape, Top("a register tile whose elements another thread holds"), algebra.TRUE)
        for held in (self.sums, self.carried):
            if buffer in held:
                return restrict_to_access(drop_terms(held[buffer](access.step)), access)
        if buffer.space == "global":
            return self.given[buffer](access) if buffer in self.given else self._global(access)
        agent = agent_symbol_of_cells(access)
        if agent is not None:
            return self._by_agent(access, agent)
        pieces: list[Piece] = []
        for source in self.sources(access):
            pieces += self._from(access, source)
        return merge_pieces(tuple(pieces), access.step.context, self.holds)

    def _by_agent(self, access: Access, agent: Symbol) -> Content:
        """A read whose cells depend on the agent's number: looked up for each, then one form over the number."""
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

    def _of_peer(self, access: Access, sender: Index) -> Content:
        """Registers of the block with that rank of the same cluster, the part that it sends to this one: what is known
        of any block's is known of its; looked up for each rank, then one form over the rank.
        """
        rank = self.timeline.kernel.rank
        told = not self.timeline.given and access.step.loop is None and access.step.guard is algebra.TRUE
        if not isinstance(rank, Sym) or not told or access.by is None:
            return uniform(access.shape, Top("what another block sends under a condition"), algebra.TRUE)
        found: list[Data] = []
        for to in range(self.timeline.kernel.peers):
            at = tuple(substitute(each, {rank.symbol: algebra.const(to)}) for each in access.view.at)
            own = evolve(access.view, at=at, peer=None)
            content = self.read(self.accesses.moved(access, own))
            value = content[0].value
            if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
                return uniform(access.shape, Top("what a block sends differs from case to case"), algebra.TRUE)
            if not isinstance(value, Data):
                return uniform(access.shape, value, algebra.TRUE)
            if value.axes:
                return uniform(access.shape, Top("a block sends rows that differ in their sets"), algebra.TRUE)
            found.append(value.shifted({rank.symbol: sender}))
        return uniform(access.shape, unify_agents(found, rank.symbol), algebra.TRUE)

    def _from(self, access: Access, source: ReachingWrite) -> list[Piece]:
        if source.moment is None or source.taken is None:
            value = Top(source.unknown) if source.unknown else Bottom()
            return [Piece(source.mask, source.guard, value)]
        moment = source.moment
        if access.view.buffer.space == "register" and not self._arrived(moment, access, source.guard):
            return [Piece(source.mask, source.guard, Bottom(moment.step.stmt))]
        wrote = next(a for a in self.accesses.of(moment.step) if a.mode == "write")
        content = guard_content(shift_content(self.written(moment.step), moment.shift), source.guard)
        return read_written(content, wrote, access, source.mask, source.taken)

    def _arrived(self, moment: Execution, access: Access, guard: Cond) -> bool:
        if queue_of(moment.step.stmt) is None:
            return True
        return self.ordering.completed(moment, access.step, [*access.step.context, guard]) is not None

    def written(self, step: Step) -> Content:
        """What a step writes, element by element of its own (thread, value)."""
        if step in self._written:
            return self._written[step]
        if step in self._open:
            return self._everywhere(step, Top("it is copied round a loop without a beginning"))
        self._open.add(step)
        self._written[step] = self._write(step)
        self._open.discard(step)
        return self._written[step]

    def _everywhere(self, step: Step, value: Value) -> Content:
        return uniform(self.accesses.of(step)[-1].shape, value, algebra.TRUE)

    def _write(self, step: Step) -> Content:
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
                return self._everywhere(step, Top(f"`{type(stmt).__name__}` has no tag rule yet in the verifier"))

    def _global(self, access: Access) -> Content:
        stmt = access.step.stmt
        places = access.gathered if access.places is None else access.places
        if places is None:
            return uniform(access.shape, Top("its address mixes symbols and coordinates"), algebra.TRUE)
        record: dict[str, FragmentIndex] = {}
        for name, expression in self.names(access.view.buffer):
            found = self.component(expression, places, access.shape)
            if found is None:
                return uniform(access.shape, Top(f"tag `{name}` has too many different values"), algebra.TRUE)
            record[name] = found
        inside: tuple[Inside, ...] = ()
        fill, name = 0.0, access.view.buffer.name
        if isinstance(stmt, Copy) and stmt.edge is not None:
            fill = stmt.edge
            if not access.view.buffer.dtype.holds(fill):
                return uniform(
                    access.shape, Top(f"padding of {fill:g}, which is no {access.view.buffer.dtype}"), algebra.TRUE
                )
            found = load_bounds(self.accesses, access, places)
            if found is None:
                return uniform(access.shape, Top("a view's condition that is no bound of a coordinate"), algebra.TRUE)
            inside = found
        terms = (
            (ElementProduct((access.view.buffer,), (tuple(places),), inside),) if self._by_place and fill == 0 else ()
        )
        loaded = Data(record, inside, fill, form=name, root=name, factors=(access.view.buffer,), terms=terms)
        return uniform(access.shape, loaded, algebra.TRUE)

    def origin(self, access: Access) -> Stmt | None:
        """The load from global memory that a read's elements come from, in the run of the loop if there is one."""
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
        """What a tile holds when an assertion looks at it; of registers, those that a layout says who holds."""
        held = view.buffer.layout
        if isinstance(held, TV):
            for known in (self.sums, self.carried):
                if view.buffer in known and is_whole(view) and by in (None, held):
                    return known[view.buffer](step)
            return self.read(self.accesses.held(step, view, by or held))
        kernel = self.timeline.kernel
        if view.buffer.space == "shared" and "lds" in kernel.target.queues and kernel.threads > kernel.target.unit:
            return self.read(self.accesses.held(step, view, sequential_tv(view)))
        return uniform((1, 1), Top("a claim on tags of this memory is not built yet in the verifier"), algebra.TRUE)

    def component(
        self, expression: Index, places: Sequence[FragmentIndex], shape: tuple[int, int]
    ) -> FragmentIndex | None:
        """An expression over a buffer's coordinates, at these places of it."""
        return evaluate_piecewise(expression, places, self.timeline.kernel.thread, shape)

    def names(self, buffer: Buffer) -> tuple[tuple[str, Index], ...]:
        """The record that the program gives the tensor's elements; names given twice count as not given."""
        given = [s.stmt.names for s in self.timeline.steps if isinstance(s.stmt, Tag) and s.stmt.view.buffer is buffer]
        names = [name for record in given for name, _ in record]
        return tuple((name, e) for record in given for name, e in record if names.count(name) == 1)
