"""Folds under the domain: what names run along the axis becomes the set of a sum, or what a maximum is over.

The elements that one target takes are a table, from layouts alone; sums must be of weights with one reference (I23).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Fold
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import affine, at_any_element
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, Piecewise, Separable
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.values.content import (
    BoolArray,
    Content,
    Data,
    Inside,
    Number,
    Top,
    Value,
    drop_padding,
    drop_proved_bounds,
    uniform,
)
from argus.core.proof.values.elementwise import single_value
from argus.core.proof.values.multiset_count import COUNTED, Multiset, Run, make_run
from argus.core.proof.values.recognisers import statistics
from argus.core.proof.values.recognisers.standing import (
    PLAIN,
    Maximum,
    Plain,
    Statistic,
    Weight,
    families,
    guards,
    one_along,
)
from argus.core.proof.values.recognisers.taking import Takes, takes
from argus.core.walk import IntArray

_KNOWN = (("total", "add"), ("total", "max"), ("total", "last"), ("prefix", "add"))


def content(flow: Flow, step: Step, stmt: Fold) -> Content:
    """What a fold writes."""
    shape = flow.accesses.of(step)[-1].shape
    return uniform(shape, _folded(flow, step, stmt), algebra.TRUE)


def _folded(flow: Flow, step: Step, stmt: Fold) -> Value:
    value = single_value(flow.read(flow.accesses.of(step)[0]))
    if stmt.op == "add" and stmt.source.buffer.dtype.family != "float":
        return Top("a sum of integers, which may overflow, has no rule in the verifier")
    if isinstance(value, Number) and value.value == (0.0 if stmt.op == "add" else -inf) and stmt.op in ("add", "max"):
        return value
    if not isinstance(value, Data):
        whole = stmt.op == "last" and isinstance(value, Number)
        return value if whole or isinstance(value, Top) else Top("a number is folded")
    if (stmt.keep, stmt.op) not in _KNOWN:
        return Top(f"a fold by `{stmt.op}` that keeps its {stmt.keep} has no tag rule yet in the verifier")
    found = takes(stmt, flow.timeline.kernel.target.unit)
    if found is None:
        return Top("a thread folds nothing")
    return Folding(flow, step, stmt, value, found).value()


class Folding:
    """One fold of one value."""

    def __init__(self, flow: Flow, step: Step, stmt: Fold, data: Data, found: Takes) -> None:
        self.flow, self.step, self.stmt, self.data, self.takes = flow, step, stmt, data, found

    def value(self) -> Value:
        moved = self._moved()
        if moved is None:
            return Top("elements that are folded together differ in the sets that they speak of")
        data, op = moved, self.stmt.op
        self.data = moved
        if not all(self.takes.replicated(table) for table in self._tables()):
            return Top("threads that hold one element of a row hold different things")
        if op == "last":
            return data.at(self.takes.first)
        if not all(self._of_targets(bound.coordinate.table) for bound in data.loose):
            return Top(f"padding of another number than the mask's goes into a fold by `{op}`")
        kept: dict[str, FragmentIndex] = {}
        run_along: dict[str, Separable] = {}
        for name, sep in data.record.items():
            table = self.takes.table(sep.table)
            if bool((table == table[:, :1]).all()):
                kept[name] = sep.at(self.takes.first)
            elif isinstance(sep, Piecewise):
                return Top(f"the `{name}` folded has no one form over the elements of a tile")
            else:
                run_along[name] = sep
        if guards(data.standing):
            return Top(f"a fold by `{op}` of a guard, which is another number than what it guards (I23)")
        if isinstance(data.standing, Statistic):
            return self._of_statistics(data.standing, kept, run_along)
        if op == "max" and isinstance(data.standing, Maximum):
            return self._again(kept, run_along)
        if op == "add" and data.sets and isinstance(data.standing, Plain | Weight):
            return self._again(kept, run_along)
        if op == "max" and isinstance(data.standing, Plain):
            neutral = -inf
        elif op == "add" and isinstance(data.standing, Plain | Weight) and not data.sets:
            neutral = 0.0
        else:
            return Top(f"a fold by `{op}` of {data.form} has no tag rule in the verifier")
        if len(run_along) != 1:
            return Top(f"{len(run_along)} names vary along the axis of the fold, one is expected")
        if data.inside and data.fill != neutral:
            data = self.data = drop_padding(
                drop_proved_bounds(lambda cond: self.flow.holds(self.step.context, cond), data)
            )
        if not all(self._of_targets(bound.coordinate.table) for bound in data.loose):
            return Top(f"padding of {data.fill:g} goes into a fold by `{op}`, to which it is not neutral")
        ((name, sep),) = run_along.items()
        tally = self._tally(sep)
        return tally if isinstance(tally, Top) else self._started(name, tally, kept)

    def _of_statistics(
        self, standing: Statistic, kept: dict[str, FragmentIndex], run_along: dict[str, Separable]
    ) -> Value:
        """Sums of means, distances from them and the like: of elements that differ, or of sets."""
        data, op = statistics.united(self.data), self.stmt.op
        assert isinstance(data, Data)
        holds = partial(self.flow.holds, self.step.context)
        if op != "add" or len(run_along) > 1 or (data.inside and data.fill != 0):
            return Top(f"a fold by `{op}` of {statistics.told(standing, data.root)} has no tag rule in the verifier")
        assert isinstance(data.standing, Statistic)
        standing = data.standing
        if run_along:
            if not self.alike_in_each(data):
                return Top("elements that are folded together differ in the sets that they speak of")
            ((name, sep),) = run_along.items()
            if not statistics.sets_of(standing) <= {name, statistics.PLACE}:
                return Top(f"a fold along `{name}` of what differs along it by sums over other names")
            tally = self._tally(sep)
            if isinstance(tally, Top):
                return tally
            base = evolve(data.at(self.takes.first), record=kept, inside=(), fill=0.0)
            assert isinstance(base.standing, Statistic)
            made = statistics.started(base.standing, name, tally, holds)
            return (
                Top("powers above squares are summed, or elements of no name")
                if made is None
                else evolve(base, standing=made)
            )
        for number in statistics.summed_set(standing):
            others = tuple(each for at, each in enumerate(standing.sets) if at != number)
            if data.inside or not self.alike_in_each(evolve(data, standing=evolve(standing, sets=others))):
                continue
            base = evolve(data.at(self.takes.first), record=kept)
            assert isinstance(base.standing, Statistic)
            sets = list(base.standing.sets)
            sets[number] = (sets[number][0], self._together(standing.sets[number][1]))
            whole = statistics.merged(Statistic(standing.value, tuple(sets)), holds)
            return evolve(base, standing=whole)
        return Top(f"a fold by `{op}` of {statistics.told(standing, data.root)} has no tag rule in the verifier")

    def _moved(self) -> Data | None:
        """What is folded, its sets in terms of the target's coordinates; None if they have no such form."""
        source = self.stmt.source.buffer.layout
        assert isinstance(source, TV)
        places: list[Index] = []
        for axis, coordinate in enumerate(source.coordinates()):
            shape = source.threads.size(), source.values.size()
            table = self.takes.table(np.broadcast_to(coordinate, shape))
            alike = bool((table == table[:, :1]).all())
            place = affine(table[:, 0].reshape(self.takes.shape), self.takes.held) if alike else None
            if place is None and axis in self.data.axes:
                return None
            places.append(algebra.const(0) if place is None else place)
        return self.data.at_coordinates(places)

    def _of_targets(self, table: IntArray) -> bool:
        """Whether all elements of each target have one number in a table."""
        own = self.takes.table(table)
        return bool((own == own[:, :1]).all())

    def _tables(self) -> Iterator[IntArray]:
        """All that the value says of its elements by tables."""
        data = self.data
        yield from (sep.table for sep in data.record.values())
        yield from (bound.coordinate.table for bound in (*data.inside, *data.loose))
        own = [*(data.sets or {}).values(), *(tally for _, tally in data.closed)]
        for tally in (*own, *(tally for family in families(data.standing) for tally in family.values())):
            yield from (each.which for each in tally.runs if each.which is not None)

    def _started(self, name: str, tally: Multiset, kept: dict[str, FragmentIndex]) -> Value:
        data, first = self.data, self.takes.first
        told = "maximum" if self.stmt.op == "max" else "sum"
        if not self.alike_in_each(data) or not one_along(data.standing, name):
            return Top("weights with different references are folded")
        base = evolve(
            data.at(first), record=kept, inside=(), fill=0.0, form=f"{told} of {data.form} over {name}", computed=True
        )
        if self.stmt.op == "max":
            closed = (*base.closed, *(base.sets or {}).items())
            return evolve(base, standing=Maximum({name: tally.support}), closed=closed, sets=None)
        return evolve(base, sets={name: tally}, root=f"sum of {data.root}")

    def alike_in_each(self, data: Data) -> bool:
        """Whether the elements of each target have one reference, and closed one set."""
        sets = [tally for family in families(data.standing) for tally in family.values()]
        sets += [] if data.sets is None else list(data.sets.values())
        tables = [e.which for t in (*sets, *(t for _, t in data.closed)) for e in t.runs if e.which is not None]
        return all(bool((own == own[:, :1]).all()) for own in map(self.takes.table, tables))

    def _again(self, kept: dict[str, FragmentIndex], run_along: dict[str, Separable]) -> Value:
        """A fold of folds: sets of the parts, together."""
        data = self.data
        if run_along:
            return Top(f"a fold of {data.form} along what it has not summed yet")
        if data.inside:
            chosen = self._chosen(data)
            if chosen is None or not self.alike_in_each(evolve(data, sets=None)):
                return Top(f"a fold of {data.form}, some of which is padding")
            data = evolve(data, inside=(), fill=0.0)
            self.takes = evolve(self.takes, cells=np.where(chosen[self.takes.cells], self.takes.cells, -1))
            self.data = data
        if isinstance(data.standing, Maximum):
            over = {name: self._together(tally).support for name, tally in data.standing.over.items()}
            return evolve(evolve(data, standing=PLAIN).at(self.takes.first), record=kept, standing=Maximum(over))
        if not self.alike_in_each(evolve(data, sets=None)):
            return Top("sums of weights with different references are folded")
        sets = {name: self._together(tally) for name, tally in (data.sets or {}).items()}
        return evolve(evolve(data, sets=None).at(self.takes.first), record=kept, sets=sets)

    def _chosen(self, data: Data) -> BoolArray | None:
        """The elements of the source, one after another, that are no zeros of a mask; None if numbers do not tell."""
        if data.fill != 0 or isinstance(data.standing, Maximum):
            return None
        chosen = np.ones(self.takes.twins.size, np.bool_)
        for bound in data.inside:
            place, extent = bound.coordinate, bound.extent
            if isinstance(place, Piecewise) or place.base is not algebra.const(0) or not isinstance(extent, Const):
                return None
            shape = place.table.shape[0], self.takes.values
            table = np.broadcast_to(place.table, shape).reshape(-1)
            chosen &= (table < extent.value) & (bound.open | (table >= 0))
        return chosen

    def _together(self, tally: Multiset) -> Multiset:
        """The sets of all elements of each target: counts add up."""
        many = (self.takes.cells >= 0).sum(axis=1)
        runs: list[Run] = []
        for each in tally.runs:
            if each.which is None:
                times = many[:, None]
            else:
                own = each.which.reshape(-1)[np.maximum(self.takes.cells, 0)]
                times = np.zeros((len(own), len(each.patterns)), np.int64)
                np.add.at(times, (np.arange(len(own))[:, None], own), self.takes.cells >= 0)
            mixes, back = np.unique(times, axis=0, return_inverse=True)
            patterns = np.rint(mixes.astype(np.float64) @ each.patterns.astype(np.float64)).astype(np.int64)
            made = make_run(each.low, each.high, each.rest, patterns, back.reshape(self.takes.shape))
            runs += [] if made is None else [made]
        if tally.other is not algebra.const(0):
            assert bool((many == many[0]).all())
            return Multiset(tuple(runs), algebra.mul(tally.other, int(many[0])))
        return Multiset(tuple(runs))

    def _tally(self, sep: Separable) -> Multiset | Top:
        """The numbers of one name that each target takes."""
        table, there = self.takes.table(sep.table), self.takes.cells >= 0
        low, high = int(table.min()), int(table.max()) + 1
        rest = self._rest(sep)
        if rest is None:
            return Top("an edge that depends on places of the fold in another way than its name")
        rows, back = np.unique(np.where(there, table, -1 + low), axis=0, return_inverse=True)
        patterns = np.zeros((len(rows), high - low), np.int64)
        for kind, row in enumerate(rows):
            np.add.at(patterns[kind], row[row >= low] - low, 1)
        first, last = algebra.add(sep.base, low), algebra.add(sep.base, high)
        made = make_run(first, last, rest, patterns, back.reshape(self.takes.shape))
        return Multiset(() if made is None else (made,))

    def _rest(self, sep: Separable) -> Cond | None:
        """The bounds of the elements, as conditions on the counted x and the target's coordinates."""
        conds = [self._bound(sep, bound) for bound in self.data.inside]
        known = [cond for cond in conds if cond is not None]
        return algebra.all_of(known) if len(known) == len(conds) else None

    def _bound(self, sep: Separable, bound: Inside) -> Cond | None:
        x = algebra.sym(COUNTED)
        if isinstance(bound.coordinate, Piecewise):
            return None
        for factor in (1, 0, -1):
            difference = self.takes.table(bound.coordinate.table - factor * sep.table)
            if not bool((difference == difference[:, :1]).all()):
                continue
            own = affine(difference[:, 0].reshape(self.takes.shape), self.takes.held)
            if own is None:
                return None
            base = algebra.sub(bound.coordinate.base, algebra.mul(sep.base, factor))
            place = algebra.add(algebra.mul(x, factor), base, own)
            cond = bound.of(place)
            settled = factor == 0 and self.flow.holds(self.step.context, at_any_element(cond, self.takes.held))
            return algebra.TRUE if settled else cond
        return None
