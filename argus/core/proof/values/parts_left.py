"""What a launch leaves in a tensor as tags and sets, read off its value.

Only of values of which tags say what they are, so that a later launch that trusts the tags trusts no more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Symbol
from argus.core.ir import Buffer
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.alike_terms import not_said_by_tags
from argus.core.proof.values.content import Number, TensorContent, TensorData, Top
from argus.core.proof.values.held.between import Left, coordinate
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.in_words import in_words
from argus.core.proof.values.made_of import MadeOf, Reading, common_guards, single, without_guards
from argus.core.proof.values.named_parts import Part, Tags, common_context
from argus.core.proof.values.padding import number
from argus.core.proof.values.part_counts import count
from argus.core.values.rewriting import elements
from argus.core.values.rewriting import substitute as substitute_value
from argus.core.walk import substitute, symbols


def parts_left(flow: Flow, tensor: Buffer, left: Left | str, tags: Tags) -> TensorContent:
    """The content of a tensor after a launch. tags: those of the program's tensors."""
    if isinstance(left, str):
        return Top(left)
    literal = number(left.value)
    if literal is not None:
        return Number(literal)
    if not elements(left.value):
        return Top("it is computed from literals and indices")
    return _Between(flow, tensor, tags).content(left)


class _Between:
    """One tensor between launches; its coordinates are symbols while its value is read."""

    def __init__(self, flow: Flow, tensor: Buffer, tags: Tags) -> None:
        self._flow, self._tensor, self._tags = flow, tensor, tags
        self._at = tuple(map(coordinate, range(len(tensor.shape))))
        self._own: dict[Symbol, Index] = {at.symbol: algebra.coord(axis) for axis, at in enumerate(self._at)}
        pairs = tuple(zip(self._at, tensor.shape, strict=True))
        self._inside = tuple(cond for at, extent in pairs for cond in (algebra.le(0, at), algebra.lt(at, extent)))

    def content(self, left: Left) -> TensorContent:
        value = substitute_value(left.value, {}, self._at)
        reason = not_said_by_tags(value, self._tags, Known(self._flow, self._inside))
        if reason:
            return Top(reason)
        made = Reading(self._tags, self._agree).of(value)
        if made.lost or made.closed:
            return Top(made.lost or f"`{self._tensor.name}` is computed from complete sums")
        guards = common_guards(made)
        bounds = self._bounds(guards)
        if bounds is None:
            return Top(f"where `{self._tensor.name}` holds padding is not a bound of its coordinates")
        parts = self._record_and_sets(without_guards(made, guards))
        if isinstance(parts, str):
            return Top(parts)
        fills = {made.pads.get(cond, nan) for cond in guards}
        fill = 0.0 if not bounds else fills.pop() if len(fills) == 1 else nan
        return TensorData(*parts, in_words(value, self._tags), bounds, fill)

    def _agree(self, one: Part, two: Part) -> bool:
        equal = algebra.eq(one.value, two.value)
        given = (*self._inside, *common_context(one, two))
        return equal is not algebra.FALSE and self._flow.holds(given, equal)

    def _record_and_sets(self, made: MadeOf) -> tuple[Mapping[str, Index], Mapping[str, Index]] | str:
        record: dict[str, Index] = {}
        sets: dict[str, Index] = {}
        for name, parts in made.names.items():
            one = single(parts)
            if one is not None and not one[1]:
                record[name] = substitute(one[0], self._own)
                continue
            counted = count(parts, made.op or "sum")
            if counted is None:
                return f"how often `{self._tensor.name}` sums each `{name}` has no closed form"
            sets[name] = substitute(counted, self._own)
        return record, sets

    def _bounds(self, conds: Iterable[Cond]) -> tuple[tuple[Index, Index], ...] | None:
        """The conditions as bounds below extents, without those that always hold; None if one is none."""
        found: list[tuple[Index, Index]] = []
        for cond in conds:
            if self._flow.holds(self._inside, cond):
                continue
            bound = _below(cond, self._at_symbols)
            if bound is None or not self._flow.holds(self._inside, algebra.le(0, bound[0])):
                return None
            found.append((substitute(bound[0], self._own), bound[1]))
        return tuple(found)

    @property
    def _at_symbols(self) -> Sequence[Symbol]:
        return [at.symbol for at in self._at]


def _below(cond: Cond, at: Sequence[Symbol]) -> tuple[Index, Index] | None:
    """(place, extent) of a condition `place < extent` of a place by coordinates and an extent by sizes."""
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return None
    terms, constant = linear_terms(algebra.sub(cond.right, cond.left))
    sizes = [(atom, factor) for atom, factor in terms if symbols(atom).isdisjoint(at)]
    places = [(atom, -factor) for atom, factor in terms if not symbols(atom).isdisjoint(at)]
    if not places or any(each.kind != "size" for atom, _ in sizes for each in symbols(atom)):
        return None
    return algebra.linear(places, -constant - 1 if sizes else 0), algebra.linear(sizes, 0 if sizes else constant + 1)
