"""Register tiles that a loop writes from what they held before: guess what they hold at the head of any iteration, and
check the guess (I3, I23).

The body is run on what the tiles hold on entry, with the loop's variable free; sets that grow by runs are summed as in
`sums`, everything else is what one iteration leaves, an iteration later. The body is then run on the guess, which holds
if it gives the guess of the next iteration, and what there was on entry is the guess of the first. How a guess was come
by does not matter. Tiles of one loop are guessed together.

A tile that is not set before the loop holds something from the second iteration on, if the first sets it: what it holds
comes with the condition that it is there. A product in a branch adds where the branch is taken.
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

_ROUNDS = 3


@frozen(eq=False)
class TileState:
    """What a tile holds where `there` is true; elsewhere it may never have been set."""

    value: Value
    there: Cond = algebra.TRUE

    def shifted(self, shift: Shift) -> TileState:
        value = self.value.shifted(shift) if isinstance(self.value, Data) else self.value
        return TileState(value, substitute(self.there, shift))


LoopState = Mapping[Buffer, TileState]


def loop_carried(line: Timeline) -> tuple[Buffer, ...]:
    """Register tiles that assignments in a loop write and that live on from one iteration to the next."""
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
    """Whether a loop assigns a tile something that was computed."""
    return step.loop is not None and bool(gets(stmt.elem))


@define(eq=False)
class LoopCarried:
    """The history of all carried tiles of one timeline. trial: what the tiles hold at the head of one loop, as is
    supposed for once.
    """

    flow: Flow
    buffers: tuple[Buffer, ...]
    trial: tuple[Segment, LoopState] | None = None
    sums: dict[Buffer, Accumulator] = field(factory=dict[Buffer, Accumulator], init=False)
    _heads: dict[Segment, LoopState] = field(factory=dict[Segment, LoopState], init=False)
    _asked: set[tuple[Segment, Buffer]] = field(factory=set[tuple[Segment, Buffer]], init=False)

    def __attrs_post_init__(self) -> None:
        for step in self.flow.timeline.steps:
            if isinstance(step.stmt, Mma) and step.stmt.target.buffer in self.buffers:
                buffer = step.stmt.target.buffer
                self.sums.setdefault(buffer, Accumulator(self.flow, buffer, weights=True))

    def content(self, buffer: Buffer, at: Step) -> Content:
        """What a tile holds just before a step."""
        segment = self.flow.timeline.segments[at.segment]
        before = [step for step in self._writes(segment, buffer) if step.position < at.position]
        tile = self._after(buffer, before[-1]) if before else self._start(segment, buffer)
        layout = buffer.layout
        assert isinstance(layout, TV)
        return self._seen(tile, at, (layout.threads.size(), layout.values.size()))

    def _seen(self, tile: TileState, at: Step, shape: tuple[int, int]) -> Content:
        """What a step finds of a tile: cases, where nothing tells whether it is there."""
        if tile.there is algebra.TRUE or self.flow.holds(at.context, tile.there):
            return uniform(shape, tile.value, algebra.TRUE)
        absent = algebra.negate(tile.there)
        if self.flow.holds(at.context, absent):
            return uniform(shape, Bottom(), algebra.TRUE)
        whole = np.ones(shape, np.bool_)
        return Piece(whole, tile.there, tile.value), Piece(whole, absent, Bottom())

    def _writes(self, segment: Segment, buffer: Buffer) -> list[Step]:
        """The steps of a segment that write a tile or make it anew."""
        return [step for step in segment.steps if self._touches(step, buffer)]

    def _touches(self, step: Step, buffer: Buffer) -> bool:
        if isinstance(step.stmt, Alloc | Reset):
            return step.stmt.buffer is buffer
        return any(a.mode == "write" and a.view.buffer is buffer for a in self.flow.accesses.of(step))

    def _after(self, buffer: Buffer, step: Step) -> TileState:
        """What a tile holds after a step that writes it."""
        if isinstance(step.stmt, Alloc | Reset):
            return TileState(Bottom())
        if isinstance(step.stmt, Mma) and (step.guard is algebra.TRUE or step.stmt.init is algebra.FALSE):
            return TileState(self._added(buffer, step, step.stmt)[0])
        if step.guard is not algebra.TRUE:
            return TileState(Top(f"`{buffer.name}` is assigned in a branch"))
        if not isinstance(step.stmt, Map | Fold) or not is_whole(step.stmt.target):
            return TileState(Top(f"`{buffer.name}` is written by more than assignments"))
        return TileState(single_value(self.flow.written(step)))

    def _added(self, buffer: Buffer, step: Step, stmt: Mma) -> tuple[Value, tuple[Owed, ...]]:
        """What a tile holds after a product, and the conditions that this presumes where the product takes place."""
        product = self.sums[buffer].product(step)
        if isinstance(product, str):
            return Top(product), ()
        before = Number(0.0) if stmt.init is algebra.TRUE else self._before(buffer, step)
        if stmt.init not in (algebra.TRUE, algebra.FALSE):
            return Top(f"`{buffer.name}` is set by a product in some iterations"), ()
        held, added = buffer.layout, product_sum(product, step.guard)
        assert isinstance(held, TV)
        rules = Rules(lambda cond: self.flow.holds(step.context, at_any_element(cond, held)))
        names = dict.fromkeys((*before.record, *added.record)) if isinstance(before, Data) else {}
        for name in names:
            what = f"each element of `{buffer.name}` sums products of one `{name}`"
            rules.owed.append(("I2", what, _one_name(before, added, name)))
        value = rules.op("add", (before, added))
        return value, tuple((code, what, at_any_element(goal, held)) for code, what, goal in rules.owed)

    def _before(self, buffer: Buffer, step: Step) -> Value:
        """What a product adds to; where a branch passes it by, this is what stays."""
        return single_value(
            self.content(buffer, step if step.guard is algebra.TRUE else evolve(step, guard=algebra.TRUE))
        )

    def _start(self, segment: Segment, buffer: Buffer) -> TileState:
        """What a tile holds where a segment begins, in an iteration of it if it is a loop."""
        if segment.loop is not None and self._writes(segment, buffer):
            self._asked.add((segment, buffer))
            return self.head(segment)[buffer]
        return self._entry(segment, buffer)

    def _entry(self, segment: Segment, buffer: Buffer) -> TileState:
        """What a tile holds before a segment is come to."""
        line = self.flow.timeline.segments
        for earlier in reversed(line[: line.index(segment)]):
            writes = self._writes(earlier, buffer)
            if not writes:
                continue
            if earlier.loop is None:
                return self._after(buffer, writes[-1])
            loop = earlier.loop
            return self.head(earlier)[buffer].shifted({loop.symbol: _end(loop)})
        return TileState(Bottom())

    # -- heads of loops ----------------------------------------------------------------------------------

    def head(self, segment: Segment) -> LoopState:
        """What the tiles that a loop writes hold at the start of iteration k, for every k."""
        if self.trial is not None and self.trial[0] is segment:
            return self.trial[1]
        if segment not in self._heads:
            assert segment.loop is not None
            own = [buffer for buffer in self.buffers if self._writes(segment, buffer)]
            self._heads[segment] = self._guessed(segment, segment.loop, own)
        return self._heads[segment]

    def _guessed(self, segment: Segment, loop: Loop, own: Sequence[Buffer]) -> LoopState:
        entry = {buffer: self._entry(segment, buffer) for buffer in own}
        guess: LoopState = entry
        for _ in range(_ROUNDS):
            after = self._supposing(segment, guess)
            known = {buffer: self._closed(entry[buffer], after[buffer], loop) for buffer in own}
            if all(isinstance(tile.value, Top) for tile in known.values()):
                return known
            broken = set(self._broken(segment, loop, entry, known))
            if not broken:
                return known
            # What rests on a tile that was not yet guessed is tried again from its entry: a sum keeps what was added.
            again = {buffer for buffer, tile in known.items() if isinstance(tile.value, Top)}
            again |= {buffer for buffer in broken if _is_sum(known[buffer].value)}
            guess = {buffer: entry[buffer] if buffer in again else tile for buffer, tile in known.items()}
        reason = "what it holds after an iteration does not follow from what it holds before, in a form that is known"
        broken = set(self._broken(segment, loop, entry, guess))
        return {b: TileState(Top(f"`{b.name}`: {reason}")) if b in broken else tile for b, tile in guess.items()}

    def _closed(self, entry: TileState, after: TileState, loop: Loop) -> TileState:
        """What is guessed of a tile: of one that need not be set before the loop, once an iteration has been."""
        late = isinstance(entry.value, Bottom) or not self.flow.holds((), entry.there)
        left = after.value
        if isinstance(left, Data) and left.inside and left.scales:  # scales of a block may be loaded up to an edge
            left = drop_loop_bounds(partial(self.flow.holds, loop.facts), left, loop)
        value = candidate_invariant(Bottom() if late else entry.value, left, loop)
        return TileState(value, loop.has_earlier(1) if late else algebra.TRUE)

    def _supposing(self, segment: Segment, state: LoopState) -> LoopState:
        """What the tiles hold after an iteration that begins with this state."""
        flow = self.flow.apart()
        other = LoopCarried(flow, self.buffers, (segment, state))
        other._heads = {s: heads for s, heads in self._heads.items() if s is not segment}
        connect_carried(flow, other)
        after = {buffer: other._after(buffer, other._writes(segment, buffer)[-1]) for buffer in state}
        return {buffer: evolve(tile, value=united(tile.value)) for buffer, tile in after.items()}

    def _broken(self, segment: Segment, loop: Loop, entry: LoopState, guess: LoopState) -> Iterator[Buffer]:
        """The tiles of which the guess is not shown to hold."""
        for buffer, goal, context in self._checks(segment, loop, entry, guess):
            if goal is None or not self.flow.holds(context, goal):
                yield buffer

    def _checks(
        self, segment: Segment, loop: Loop, entry: LoopState, guess: LoopState
    ) -> Iterator[tuple[Buffer, Cond | None, tuple[Cond, ...]]]:
        """Per tile, that the guess holds on entry, and after an iteration if before it."""
        after = self._supposing(segment, guess)
        ahead = algebra.add(algebra.sym(loop.symbol), loop.stmt.step)
        for buffer, tile in guess.items():
            first, next_one = tile.shifted({loop.symbol: loop.stmt.start}), tile.shifted({loop.symbol: ahead})
            yield buffer, _anywhere(_stands(first, entry[buffer]), buffer), ()
            yield buffer, _anywhere(_stands(next_one, after[buffer]), buffer), loop.facts

    def obligations(self) -> Iterator[Obligation]:
        """Base and step of each guess that was kept, and what products presume."""
        for step in self.flow.timeline.steps:
            if isinstance(step.stmt, Mma) and step.stmt.target.buffer in self.buffers:
                for invariant, what, goal in self._added(step.stmt.target.buffer, step, step.stmt)[1]:
                    yield Obligation(invariant, what, step.stmt, goal, step.context)
        for segment in self.flow.timeline.segments:
            own = [buffer for buffer in self.buffers if self._writes(segment, buffer)]
            if segment.loop is None or not own:
                continue
            entry = {buffer: self._entry(segment, buffer) for buffer in own}
            for buffer, goal, context in self._checks(segment, segment.loop, entry, self.head(segment)):
                value = self.head(segment)[buffer].value
                code = "I23" if any(_weighed(held.value) for held in self.head(segment).values()) else "I3"
                what = f"what `{buffer.name}` holds after {segment.loop.symbol.name} iterations has a closed form"
                stmt = self._writes(segment, buffer)[-1].stmt
                if goal is not None and not isinstance(value, Top | Bottom):
                    yield Obligation(code, what, stmt, goal, context)
                elif (segment, buffer) in self._asked:
                    reason = value.reason if isinstance(value, Top) else f"`{buffer.name}` is not set before the loop"
                    yield Obligation(code, what, stmt, algebra.FALSE, context, unknown=reason)


def _anywhere(goal: Cond | None, buffer: Buffer) -> Cond | None:
    """A goal about the elements of a tile, at any of them."""
    assert isinstance(buffer.layout, TV)
    return None if goal is None else at_any_element(goal, buffer.layout)


def _is_sum(value: Value) -> bool:
    return isinstance(value, Data) and value.sets is not None


def _weighed(value: Value) -> bool:
    return isinstance(value, Data) and bool(families(value.standing))


def connect_carried(flow: Flow, tiles: LoopCarried) -> None:
    """Let a flow look up carried tiles there."""
    for buffer in tiles.buffers:
        flow.carried[buffer] = _looked_up(tiles, buffer)


def _looked_up(tiles: LoopCarried, buffer: Buffer) -> Callable[[Step], Content]:
    return lambda step: tiles.content(buffer, step)


def _end(loop: Loop) -> Index:
    return algebra.add(loop.stmt.start, algebra.mul(loop.trips, loop.stmt.step))


def _stands(supposed: TileState, found: TileState) -> Cond | None:
    """The condition that a tile is there, and holds what is supposed, wherever it is supposed to be there."""
    if supposed.there is algebra.FALSE:
        return algebra.TRUE
    goal = equal_values(supposed.value, found.value)
    return None if goal is None else algebra.implies(supposed.there, algebra.all_of((goal, found.there)))


def _one_name(before: Value, added: Data, name: str) -> Cond:
    """The condition that a name is what it was; false where only one of the two has it."""
    if not isinstance(before, Data) or name not in before.record or name not in added.record:
        return algebra.FALSE
    return equal_indices(before.record[name], added.record[name])


def product_sum(product: Product, guard: Cond) -> Data:
    """What a product adds to each element, under the guard of its statement."""
    terms = [evolve(term, rest=algebra.all_of((term.rest, guard))) for term in product.terms]
    sets = {product.contracted: tally_of(terms)}
    form, root = (f"sum over {product.contracted} of {what}" for what in (product.form, product.root))
    plain = Data(product.record, product.inside, 0.0, sets, form, root=root, loose=product.loose)
    weight = product.weighed
    if weight is None:
        return plain
    return evolve(plain, standing=weight.standing, closed=weight.closed, needs=weight.needs, computed=True)
