"""Infers invariants of loop-carried register tiles and proves them by induction (I3, I23).

A candidate comes from one abstract execution of the body, started from the tiles' values on entry with the loop
variable free: sets that grow by runs are summed as in `sums`, other values are shifted by one iteration. Induction then
proves it: it holds on entry, and executing the body on it yields the candidate of the next iteration. Candidates need
no other justification. All tiles of a loop have one joint candidate.

A tile that is first set inside the loop is defined from the second iteration on; its state carries that condition. A
matrix instruction in a branch accumulates only where the branch is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Buffer, Fold, Map, Mma, Reset
from argus.core.ir.element_walk import gets
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import at_any_element
from argus.core.proof.dataflow.bounds import drop_loop_bounds
from argus.core.proof.dataflow.invariant_candidates import candidate_invariant, equal_values
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import equal_indices
from argus.core.proof.dataflow.timeline import Loop, Segment, Shift, Step, Timeline, is_whole
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.content import Bottom, Content, Data, Number, Piece, Top, Value, uniform
from argus.core.proof.values.elementwise import single_value
from argus.core.proof.values.recognisers.products import Product, tally_of
from argus.core.proof.values.recognisers.softmax import Owed, Rules
from argus.core.proof.values.recognisers.standing import families
from argus.core.proof.values.recognisers.statistics import united
from argus.core.proof.values.sums import Accumulator
from argus.core.walk import substitute

_MAX_ROUNDS = 3


@frozen(eq=False)
class TileState:
    """The value of a tile where `defined` is true; elsewhere the tile may be uninitialised."""

    value: Value
    defined: Cond = algebra.TRUE

    def shifted(self, shift: Shift) -> TileState:
        value = self.value.shifted(shift) if isinstance(self.value, Data) else self.value
        return TileState(value, substitute(self.defined, shift))


LoopState = Mapping[Buffer, TileState]


def loop_carried(line: Timeline) -> tuple[Buffer, ...]:
    """Register tiles that assignments in a loop write and that stay live from one iteration to the next."""
    products = {step.stmt.target.buffer for step in line.steps if isinstance(step.stmt, Mma)}
    rescaled = {s.stmt.target.buffer for s in line.steps if isinstance(s.stmt, Map) and _rescales(s, s.stmt)}
    found: dict[Buffer, None] = {}
    for segment in line.segments:
        if segment.loop is None:
            continue
        made = {step.stmt.buffer for step in segment.steps if isinstance(step.stmt, Alloc | Reset)}
        for step in segment.steps:
            if isinstance(step.stmt, Map | Fold):
                buffer = step.stmt.target.buffer
                if buffer.space == "register" and buffer not in made and buffer not in products - rescaled:
                    found[buffer] = None
    return tuple(found)


def _rescales(step: Step, stmt: Map) -> bool:
    """Whether a map in a loop computes the tile from other elements, as rescaling an accumulator does."""
    return step.loop is not None and bool(gets(stmt.elem))


@define(eq=False)
class LoopCarried:
    """The values of all loop-carried tiles of one timeline.

    trial: a hypothesis about the tiles at the head of one loop, instead of its inferred invariant.
    """

    flow: Flow
    buffers: tuple[Buffer, ...]
    trial: tuple[Segment, LoopState] | None = None
    sums: dict[Buffer, Accumulator] = field(factory=dict[Buffer, Accumulator], init=False)
    _heads: dict[Segment, LoopState] = field(factory=dict[Segment, LoopState], init=False)
    _queried: set[tuple[Segment, Buffer]] = field(factory=set[tuple[Segment, Buffer]], init=False)

    def __attrs_post_init__(self) -> None:
        for step in self.flow.timeline.steps:
            if isinstance(step.stmt, Mma) and step.stmt.target.buffer in self.buffers:
                buffer = step.stmt.target.buffer
                self.sums.setdefault(buffer, Accumulator(self.flow, buffer, weights=True))

    def content(self, buffer: Buffer, at: Step) -> Content:
        """The content of a tile just before a step."""
        segment = self.flow.timeline.segments[at.segment]
        before = [step for step in self._writing_steps(segment, buffer) if step.position < at.position]
        tile = self._state_after(buffer, before[-1]) if before else self._segment_start(segment, buffer)
        layout = buffer.layout
        assert isinstance(layout, TV)
        return self._cases_at(tile, at, (layout.threads.size(), layout.values.size()))

    def _cases_at(self, tile: TileState, at: Step, shape: tuple[int, int]) -> Content:
        """The content of a tile at a step, by cases if it is unknown whether the tile is defined."""
        if tile.defined is algebra.TRUE or self.flow.holds(at.context, tile.defined):
            return uniform(shape, tile.value, algebra.TRUE)
        absent = algebra.negate(tile.defined)
        if self.flow.holds(at.context, absent):
            return uniform(shape, Bottom(), algebra.TRUE)
        whole = np.ones(shape, np.bool_)
        return Piece(whole, tile.defined, tile.value), Piece(whole, absent, Bottom())

    def _writing_steps(self, segment: Segment, buffer: Buffer) -> list[Step]:
        """The steps of a segment that write, allocate or reset a tile."""
        return [step for step in segment.steps if self._writes_or_resets(step, buffer)]

    def _writes_or_resets(self, step: Step, buffer: Buffer) -> bool:
        if isinstance(step.stmt, Alloc | Reset):
            return step.stmt.buffer is buffer
        return any(a.mode == "write" and a.view.buffer is buffer for a in self.flow.accesses.of(step))

    def _state_after(self, buffer: Buffer, step: Step) -> TileState:
        """The state of a tile after a step that writes it."""
        if isinstance(step.stmt, Alloc | Reset):
            return TileState(Bottom())
        if isinstance(step.stmt, Mma) and (step.guard is algebra.TRUE or step.stmt.init is algebra.FALSE):
            return TileState(self._accumulated(buffer, step, step.stmt)[0])
        if step.guard is not algebra.TRUE:
            return TileState(Top(f"`{buffer.name}` is assigned in a branch"))
        if not isinstance(step.stmt, Map | Fold) or not is_whole(step.stmt.target):
            return TileState(Top(f"`{buffer.name}` is written by statements other than whole assignments"))
        return TileState(single_value(self.flow.written(step)))

    def _accumulated(self, buffer: Buffer, step: Step, stmt: Mma) -> tuple[Value, tuple[Owed, ...]]:
        """The value of a tile after a matrix instruction, and the obligations that the value presumes there."""
        product = self.sums[buffer].product(step)
        if isinstance(product, str):
            return Top(product), ()
        before = Number(0.0) if stmt.init is algebra.TRUE else self._value_before(buffer, step)
        if stmt.init not in (algebra.TRUE, algebra.FALSE):
            return Top(f"`{buffer.name}` is initialised by a matrix instruction in some iterations only"), ()
        layout, added = buffer.layout, product_sum(product, step.guard)
        assert isinstance(layout, TV)
        rules = Rules(lambda cond: self.flow.holds(step.context, at_any_element(cond, layout)))
        names = dict.fromkeys((*before.record, *added.record)) if isinstance(before, Data) else {}
        for name in names:
            what = f"each element of `{buffer.name}` sums products of one `{name}`"
            rules.owed.append(("I2", what, _same_name(before, added, name)))
        value = rules.op("add", (before, added))
        return value, tuple((code, what, at_any_element(goal, layout)) for code, what, goal in rules.owed)

    def _value_before(self, buffer: Buffer, step: Step) -> Value:
        """The value to which a matrix instruction adds; it stays if the branch of the instruction is not taken."""
        return single_value(
            self.content(buffer, step if step.guard is algebra.TRUE else evolve(step, guard=algebra.TRUE))
        )

    def _segment_start(self, segment: Segment, buffer: Buffer) -> TileState:
        """The state of a tile at the start of a segment; in a loop, at the start of an arbitrary iteration."""
        if segment.loop is not None and self._writing_steps(segment, buffer):
            self._queried.add((segment, buffer))
            return self.head(segment)[buffer]
        return self._segment_entry(segment, buffer)

    def _segment_entry(self, segment: Segment, buffer: Buffer) -> TileState:
        """The state of a tile before the first execution of a segment."""
        line = self.flow.timeline.segments
        for earlier in reversed(line[: line.index(segment)]):
            writes = self._writing_steps(earlier, buffer)
            if not writes:
                continue
            if earlier.loop is None:
                return self._state_after(buffer, writes[-1])
            loop = earlier.loop
            return self.head(earlier)[buffer].shifted({loop.symbol: _loop_end(loop)})
        return TileState(Bottom())

    # -- heads of loops ----------------------------------------------------------------------------------

    def head(self, segment: Segment) -> LoopState:
        """The states of the tiles that a loop writes, at the start of an arbitrary iteration k."""
        if self.trial is not None and self.trial[0] is segment:
            return self.trial[1]
        if segment not in self._heads:
            assert segment.loop is not None
            written = [buffer for buffer in self.buffers if self._writing_steps(segment, buffer)]
            self._heads[segment] = self._infer_invariant(segment, segment.loop, written)
        return self._heads[segment]

    def _infer_invariant(self, segment: Segment, loop: Loop, written: Sequence[Buffer]) -> LoopState:
        entry = {buffer: self._segment_entry(segment, buffer) for buffer in written}
        candidate: LoopState = entry
        for _ in range(_MAX_ROUNDS):
            after = self._after_iteration(segment, candidate)
            known = {buffer: self._candidate(entry[buffer], after[buffer], loop) for buffer in written}
            if all(isinstance(tile.value, Top) for tile in known.values()):
                return known
            unproved = set(self._unproved(segment, loop, entry, known))
            if not unproved:
                return known
            # Restart unknown tiles and unproved sums from entry: a sum retains what an unproved tile added to it.
            restarted = {buffer for buffer, tile in known.items() if isinstance(tile.value, Top)}
            restarted |= {buffer for buffer in unproved if _is_sum(known[buffer].value)}
            candidate = {buffer: entry[buffer] if buffer in restarted else tile for buffer, tile in known.items()}
        reason = "no known form of invariant describes its value from one iteration to the next"
        unproved = set(self._unproved(segment, loop, entry, candidate))
        return {b: TileState(Top(f"`{b.name}`: {reason}")) if b in unproved else tile for b, tile in candidate.items()}

    def _candidate(self, entry: TileState, after: TileState, loop: Loop) -> TileState:
        """The candidate for a tile; if the tile may be undefined on entry, only from the second iteration on."""
        maybe_undefined = isinstance(entry.value, Bottom) or not self.flow.holds((), entry.defined)
        left = after.value
        if isinstance(left, Data) and left.inside and left.scales:  # loads of block scales may be bounded at an edge
            left = drop_loop_bounds(partial(self.flow.holds, loop.facts), left, loop)
        value = candidate_invariant(Bottom() if maybe_undefined else entry.value, left, loop)
        return TileState(value, loop.has_earlier(1) if maybe_undefined else algebra.TRUE)

    def _after_iteration(self, segment: Segment, state: LoopState) -> LoopState:
        """The states of the tiles after one iteration that starts from `state`."""
        flow = self.flow.without_results()
        other = LoopCarried(flow, self.buffers, (segment, state))
        other._heads = {s: heads for s, heads in self._heads.items() if s is not segment}
        connect_carried(flow, other)
        after = {buffer: other._state_after(buffer, other._writing_steps(segment, buffer)[-1]) for buffer in state}
        return {buffer: evolve(tile, value=united(tile.value)) for buffer, tile in after.items()}

    def _unproved(self, segment: Segment, loop: Loop, entry: LoopState, candidate: LoopState) -> Iterator[Buffer]:
        """The tiles for which the induction proof of the candidate fails."""
        for buffer, goal, context in self._induction_goals(segment, loop, entry, candidate):
            if goal is None or not self.flow.holds(context, goal):
                yield buffer

    def _induction_goals(
        self, segment: Segment, loop: Loop, entry: LoopState, candidate: LoopState
    ) -> Iterator[tuple[Buffer, Cond | None, tuple[Cond, ...]]]:
        """Base case and induction step of the candidate of each tile: (tile, goal, context); goal None if unknown."""
        after = self._after_iteration(segment, candidate)
        next_iteration = algebra.add(algebra.sym(loop.symbol), loop.stmt.step)
        for buffer, tile in candidate.items():
            first, next_one = tile.shifted({loop.symbol: loop.stmt.start}), tile.shifted({loop.symbol: next_iteration})
            yield buffer, _at_arbitrary_element(_matches(first, entry[buffer]), buffer), ()
            yield buffer, _at_arbitrary_element(_matches(next_one, after[buffer]), buffer), loop.facts

    def obligations(self) -> Iterator[Obligation]:
        """Base case and induction step of each invariant, and the obligations that matrix instructions presume."""
        for step in self.flow.timeline.steps:
            if isinstance(step.stmt, Mma) and step.stmt.target.buffer in self.buffers:
                for invariant, what, goal in self._accumulated(step.stmt.target.buffer, step, step.stmt)[1]:
                    yield Obligation(invariant, what, step.stmt, goal, step.context)
        for segment in self.flow.timeline.segments:
            written = [buffer for buffer in self.buffers if self._writing_steps(segment, buffer)]
            if segment.loop is None or not written:
                continue
            entry = {buffer: self._segment_entry(segment, buffer) for buffer in written}
            for buffer, goal, context in self._induction_goals(segment, segment.loop, entry, self.head(segment)):
                value = self.head(segment)[buffer].value
                code = "I23" if any(_is_weighted(tile.value) for tile in self.head(segment).values()) else "I3"
                what = f"the value of `{buffer.name}` after {segment.loop.symbol.name} iterations has a closed form"
                stmt = self._writing_steps(segment, buffer)[-1].stmt
                if goal is not None and not isinstance(value, Top | Bottom):
                    yield Obligation(code, what, stmt, goal, context)
                elif (segment, buffer) in self._queried:
                    reason = value.reason if isinstance(value, Top) else f"`{buffer.name}` is not set before the loop"
                    yield Obligation(code, what, stmt, algebra.FALSE, context, unknown=reason)


def _at_arbitrary_element(goal: Cond | None, buffer: Buffer) -> Cond | None:
    """A goal about element coordinates at an arbitrary element of the tile; None stays None."""
    assert isinstance(buffer.layout, TV)
    return None if goal is None else at_any_element(goal, buffer.layout)


def _is_sum(value: Value) -> bool:
    return isinstance(value, Data) and value.sets is not None


def _is_weighted(value: Value) -> bool:
    return isinstance(value, Data) and bool(families(value.standing))


def connect_carried(flow: Flow, tiles: LoopCarried) -> None:
    """Make a flow read the loop-carried buffers from `tiles`."""
    for buffer in tiles.buffers:
        flow.carried[buffer] = _content_lookup(tiles, buffer)


def _content_lookup(tiles: LoopCarried, buffer: Buffer) -> Callable[[Step], Content]:
    return lambda step: tiles.content(buffer, step)


def _loop_end(loop: Loop) -> Index:
    return algebra.add(loop.stmt.start, algebra.mul(loop.trips, loop.stmt.step))


def _matches(supposed: TileState, found: TileState) -> Cond | None:
    """The condition that `found` is defined and equal to `supposed` wherever `supposed` is defined."""
    if supposed.defined is algebra.FALSE:
        return algebra.TRUE
    goal = equal_values(supposed.value, found.value)
    return None if goal is None else algebra.implies(supposed.defined, algebra.all_of((goal, found.defined)))


def _same_name(before: Value, added: Data, name: str) -> Cond:
    """The condition that a record name is equal in both values; false if only one of them has it."""
    if not isinstance(before, Data) or name not in before.record or name not in added.record:
        return algebra.FALSE
    return equal_indices(before.record[name], added.record[name])


def product_sum(product: Product, guard: Cond) -> Data:
    """The value that a matrix instruction adds to each element, under the guard of its statement."""
    terms = [evolve(term, rest=algebra.all_of((term.rest, guard))) for term in product.terms]
    sets = {product.contracted: tally_of(terms)}
    form, root = (f"sum over {product.contracted} of {what}" for what in (product.form, product.root))
    plain = Data(product.record, product.inside, 0.0, sets, form, root=root, loose=product.loose)
    weight = product.weighed
    if weight is None:
        return plain
    return evolve(plain, standing=weight.standing, closed=weight.closed, needs=weight.needs, computed=True)
