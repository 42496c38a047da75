"""Register tiles that a loop writes from what they held before: guess what they hold at the head of any iteration, and
check the guess (I3, I23).

The body is run on what the tiles hold on entry, with the loop's variable free; sets that grow by runs are summed as in
`sums`, everything else is what one iteration leaves, an iteration later. The body is then run on the guess, which holds
if it gives the guess of the next iteration, and what there was on entry is the guess of the first. How a guess was come
by does not matter. Tiles of one loop are guessed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.elements import gets
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Buffer, Fold, Map, Mma, Reset
from argus.core.layout import TV
from argus.core.proof import ratios
from argus.core.proof.affine import anywhere
from argus.core.proof.content import Bottom, Content, Data, Number, Top, Value, everywhere
from argus.core.proof.elementwise import single
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.products import Product, tally_of
from argus.core.proof.separate import same, symbolic_of
from argus.core.proof.softmax import Owed, Rules
from argus.core.proof.standing import Maximum, Statistic, agreeing, changed, families
from argus.core.proof.statistics import united
from argus.core.proof.sums import Accumulator
from argus.core.proof.tally import Run, Sets, Tally, alike, merged, telescoped
from argus.core.proof.timeline import Loop, Segment, Step, Timeline, is_whole
from argus.core.walk import substitute, symbols

_ROUNDS = 3

State = Mapping[Buffer, Value]


def carried(line: Timeline) -> tuple[Buffer, ...]:
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
class Carried:
    """The history of all carried tiles of one timeline. trial: what the tiles hold at the head of one loop, as is
    supposed for once.
    """

    flow: Flow
    buffers: tuple[Buffer, ...]
    trial: tuple[Segment, State] | None = None
    sums: dict[Buffer, Accumulator] = field(factory=dict[Buffer, Accumulator], init=False)
    _heads: dict[Segment, State] = field(factory=dict[Segment, State], init=False)
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
        value = self._after(buffer, before[-1]) if before else self._start(segment, buffer)
        layout = buffer.layout
        assert isinstance(layout, TV)
        return everywhere((layout.threads.size(), layout.values.size()), value, algebra.TRUE)

    def _writes(self, segment: Segment, buffer: Buffer) -> list[Step]:
        """The steps of a segment that write a tile or make it anew."""
        return [step for step in segment.steps if self._touches(step, buffer)]

    def _touches(self, step: Step, buffer: Buffer) -> bool:
        if isinstance(step.stmt, Alloc | Reset):
            return step.stmt.buffer is buffer
        return any(a.mode == "write" and a.view.buffer is buffer for a in self.flow.accesses.of(step))

    def _after(self, buffer: Buffer, step: Step) -> Value:
        """What a tile holds after a step that writes it."""
        if isinstance(step.stmt, Alloc | Reset):
            return Bottom()
        if step.guard is not algebra.TRUE:
            return Top(f"`{buffer.name}` is assigned in a branch")
        if isinstance(step.stmt, Mma):
            return self._added(buffer, step, step.stmt)[0]
        if not isinstance(step.stmt, Map | Fold) or not is_whole(step.stmt.target):
            return Top(f"`{buffer.name}` is written by more than assignments")
        return single(self.flow.written(step))

    def _added(self, buffer: Buffer, step: Step, stmt: Mma) -> tuple[Value, tuple[Owed, ...]]:
        """What a tile holds after a product, and the conditions that this presumes."""
        product = self.sums[buffer].product(step)
        if isinstance(product, str):
            return Top(product), ()
        before: Value = Number(0.0) if stmt.init is algebra.TRUE else single(self.content(buffer, step))
        if stmt.init not in (algebra.TRUE, algebra.FALSE):
            return Top(f"`{buffer.name}` is set by a product in some iterations"), ()
        held, added = buffer.layout, _summed(product)
        assert isinstance(held, TV)
        rules = Rules(lambda cond: self.flow.holds(step.context, anywhere(cond, held)))
        names = dict.fromkeys((*before.record, *added.record)) if isinstance(before, Data) else {}
        for name in names:
            what = f"each element of `{buffer.name}` sums products of one `{name}`"
            rules.owed.append(("I2", what, _one_name(before, added, name)))
        value = rules.op("add", (before, added))
        return value, tuple((code, what, anywhere(goal, held)) for code, what, goal in rules.owed)

    def _start(self, segment: Segment, buffer: Buffer) -> Value:
        """What a tile holds where a segment begins, in an iteration of it if it is a loop."""
        if segment.loop is not None and self._writes(segment, buffer):
            self._asked.add((segment, buffer))
            return self.head(segment)[buffer]
        return self._entry(segment, buffer)

    def _entry(self, segment: Segment, buffer: Buffer) -> Value:
        """What a tile holds before a segment is come to."""
        line = self.flow.timeline.segments
        for earlier in reversed(line[: line.index(segment)]):
            writes = self._writes(earlier, buffer)
            if not writes:
                continue
            if earlier.loop is None:
                return self._after(buffer, writes[-1])
            return _shifted(self.head(earlier)[buffer], earlier.loop, _end(earlier.loop))
        return Bottom()

    # -- heads of loops ----------------------------------------------------------------------------------

    def head(self, segment: Segment) -> State:
        """What the tiles that a loop writes hold at the start of iteration k, for every k."""
        if self.trial is not None and self.trial[0] is segment:
            return self.trial[1]
        if segment not in self._heads:
            assert segment.loop is not None
            own = [buffer for buffer in self.buffers if self._writes(segment, buffer)]
            self._heads[segment] = self._guessed(segment, segment.loop, own)
        return self._heads[segment]

    def _guessed(self, segment: Segment, loop: Loop, own: Sequence[Buffer]) -> State:
        entry = {buffer: self._entry(segment, buffer) for buffer in own}
        guess: State = entry
        for _ in range(_ROUNDS):
            after = self._supposing(segment, guess)
            known = {buffer: _closed(entry[buffer], after[buffer], loop) for buffer in own}
            if all(isinstance(value, Top) for value in known.values()):
                return known
            if not any(self._broken(segment, loop, entry, known)):
                return known
            # What rests on a tile that was not yet guessed is tried again from its entry.
            guess = {buffer: entry[buffer] if isinstance(value, Top) else value for buffer, value in known.items()}
        reason = "what it holds after an iteration does not follow from what it holds before, in a form that is known"
        broken = set(self._broken(segment, loop, entry, guess))
        return {b: Top(f"`{b.name}`: {reason}") if b in broken else value for b, value in guess.items()}

    def _supposing(self, segment: Segment, state: State) -> State:
        """What the tiles hold after an iteration that begins with this state."""
        flow = self.flow.apart()
        other = Carried(flow, self.buffers, (segment, state))
        other._heads = {s: heads for s, heads in self._heads.items() if s is not segment}
        connect(flow, other)
        return {buffer: united(other._after(buffer, other._writes(segment, buffer)[-1])) for buffer in state}

    def _broken(self, segment: Segment, loop: Loop, entry: State, guess: State) -> Iterator[Buffer]:
        """The tiles of which the guess is not shown to hold."""
        for buffer, goal, context in self._checks(segment, loop, entry, guess):
            if goal is None or not self.flow.holds(context, goal):
                yield buffer

    def _checks(
        self, segment: Segment, loop: Loop, entry: State, guess: State
    ) -> Iterator[tuple[Buffer, Cond | None, tuple[Cond, ...]]]:
        """Per tile, that the guess holds on entry, and after an iteration if before it."""
        after = self._supposing(segment, guess)
        ahead = algebra.add(algebra.sym(loop.symbol), loop.stmt.step)
        for buffer, value in guess.items():
            yield buffer, _anywhere(_equal(_shifted(value, loop, loop.stmt.start), entry[buffer]), buffer), ()
            yield buffer, _anywhere(_equal(_shifted(value, loop, ahead), after[buffer]), buffer), loop.facts

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
                value = self.head(segment)[buffer]
                code = "I23" if any(_weighed(held) for held in self.head(segment).values()) else "I3"
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
    return None if goal is None else anywhere(goal, buffer.layout)


def _weighed(value: Value) -> bool:
    return isinstance(value, Data) and bool(families(value.standing))


def connect(flow: Flow, tiles: Carried) -> None:
    """Let a flow look up carried tiles there."""
    for buffer in tiles.buffers:
        flow.carried[buffer] = _looked_up(tiles, buffer)


def _looked_up(tiles: Carried, buffer: Buffer) -> Callable[[Step], Content]:
    return lambda step: tiles.content(buffer, step)


def _end(loop: Loop) -> Index:
    return algebra.add(loop.stmt.start, algebra.mul(loop.trips, loop.stmt.step))


def _shifted(value: Value, loop: Loop, to: Index) -> Value:
    return value.shifted({loop.symbol: to}) if isinstance(value, Data) else value


def _one_name(before: Value, added: Data, name: str) -> Cond:
    """The condition that a name is what it was; false where only one of the two has it."""
    if not isinstance(before, Data) or name not in before.record or name not in added.record:
        return algebra.FALSE
    return same(before.record[name], added.record[name])


def _summed(product: Product) -> Data:
    """What a product adds to each element."""
    assert product.contracted is not None
    sets = {product.contracted: tally_of(product.terms)}
    form, root = f"sum over {product.contracted}", f"sum over {product.contracted} of {product.root}"
    plain = Data(product.record, product.inside, 0.0, sets, form, root=root, loose=product.loose)
    weight = product.weighed
    if weight is None:
        return plain
    return evolve(plain, standing=weight.standing, closed=weight.closed, needs=weight.needs, computed=True)


# -- guesses -------------------------------------------------------------------------------------------------


def _closed(entry: Value, after: Value, loop: Loop) -> Value:
    """What is held before iteration k if an iteration on what was held on entry leaves `after`."""
    if not isinstance(after, Data):
        return after
    if loop.symbol in symbols(*after.needs):
        return Top("what a tile holds presumes something of every iteration")
    after = _without_scales(after, loop)
    names = {loop.symbol} & symbols(*(case for part in after.record.values() for case in symbolic_of(part)))
    grows = not names and not isinstance(entry, Bottom)

    def guess(tally: Tally) -> Tally:
        return _grown(tally, loop) if grows else tally.shifted(loop.back(1))

    sets = None if after.sets is None else {name: guess(tally) for name, tally in after.sets.items()}
    standing = changed(after.standing, guess)
    record = {name: sep.shifted(loop.back(1)) for name, sep in after.record.items()}
    inside = tuple(bound.shifted(loop.back(1)) for bound in after.inside)
    loose = tuple(bound.shifted(loop.back(1)) for bound in after.loose)
    return evolve(after, sets=sets, standing=standing, record=record, inside=inside, loose=loose)


def _without_scales(after: Data, loop: Loop) -> Data:
    """Of a sum over iterations, the names in which its summands' scales differ are no longer names of it."""
    if not after.plain or not after.sets:
        return after
    gone = {n for n, part in after.record.items() if n in after.scales and loop.symbol in symbols(*symbolic_of(part))}
    return evolve(after, record={name: part for name, part in after.record.items() if name not in gone})


def _grown(tally: Tally, loop: Loop) -> Tally:
    """Runs that follow each other from iteration to iteration, all of them before this one; others as they were."""
    runs: list[Run] = []
    for each in tally.runs:
        if loop.symbol not in symbols(each.low, each.high, each.rest):
            runs.append(each)
            continue
        grown = telescoped(each, loop)
        runs.append(each.shifted(loop.back(1)) if grown is None else grown)
    return Tally(merged(runs), substitute(tally.other, loop.back(1)))


# -- equality ------------------------------------------------------------------------------------------------


def _equal(one: Value, two: Value) -> Cond | None:
    """The condition that two values are the same; None if they differ in kind.

    A number may stand for what is summed, or maximised, over nothing.
    """
    if isinstance(two, Number):
        return _nothing(one, two.value)
    if not isinstance(one, Data) or not isinstance(two, Data):
        return None
    if one.record.keys() != two.record.keys() or len(one.inside) != len(two.inside) or not _alike_outside(one, two):
        return None
    if (one.root, one.times, one.sets is None, one.scales) != (two.root, two.times, two.sets is None, two.scales):
        return None
    if not set(two.needs) <= set(one.needs):
        return None
    if len(one.loose) != len(two.loose) or any(not a.like(b) for a, b in zip(one.loose, two.loose, strict=True)):
        return None
    standing = agreeing(one.standing, two.standing)
    if standing is None or [name for name, _ in one.closed] != [name for name, _ in two.closed]:
        return None
    if any(not a.like(b) for a, b in zip(one.inside, two.inside, strict=True)):
        return None
    closed = [alike({"": a}, {"": b}) for (_, a), (_, b) in zip(one.closed, two.closed, strict=True)]
    records = [same(one.record[name], two.record[name]) for name in one.record]
    bounds = ((*one.inside, *one.loose), (*two.inside, *two.loose))
    places = [same(a.coordinate, b.coordinate) for a, b in zip(*bounds, strict=True)]
    return algebra.all_of((standing, alike(one.sets or {}, two.sets or {}), *closed, *records, *places))


def _alike_outside(one: Data, two: Data) -> bool:
    """Whether two values have one padding, if any; a number that is not known is like none."""
    return one.fill == two.fill or not (one.inside or two.inside)


def _nothing(value: Value, number: float) -> Cond | None:
    """The condition that a value is this number because nothing has been folded into it."""
    if isinstance(value, Number):
        return algebra.TRUE if value.value == number else None
    if not isinstance(value, Data):
        return None
    if isinstance(value.standing, Maximum) and number == float("-inf") and not value.standing.guarded:
        return _empty(value.standing.over)
    if value.sets and number == 0:
        return _empty(value.sets)
    if isinstance(value.standing, Statistic) and ratios.value_of_nothing(value.standing.value) == number:
        return algebra.all_of(_empty({name: tally}) for name, tally in value.standing.sets)
    return None


def _empty(sets: Sets) -> Cond:
    """The condition on x that nothing is counted."""
    goals: list[Cond] = []
    for tally in sets.values():
        goals += [algebra.le(each.high, each.low) for each in tally.runs]
        goals.append(algebra.eq(tally.other, 0))
    return algebra.all_of(goals)
