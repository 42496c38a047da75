"""Sums in another order: what only one factor of a product depends on is summed before the product.

    sum over n, k of x[m, k] w[n, k] = sum over k of x[m, k] s[k], with s[k] = sum over n of w[n, k]

A sum of sums is one sum, sums of sums and differences are apart, and factors that do not depend on the axes of a sum
are outside of it. So the mean of the outputs of a product of matrices is a product with one column, and the mean of a
convolution over space is one of the filters with sums of the inputs. The mean of a few neighbouring outputs is a
convolution with sums of filters, if that takes less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from math import prod

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Index, Sym, Symbol
from argus.core.walk import symbols
from argus.nests.affine import computed
from argus.nests.linear import Term, product, terms_of, total, value_of
from argus.nests.nest import Axis, Coordinate, Expr, Nest, Read, Reduce, TensorType
from argus.nests.reindexed import counted_from_inputs, grouped, joined, read_of, symbols_in, with_read
from argus.nests.rewrite import expressions, indices, placed, with_reduction
from argus.nests.simplify import apply

FACTORS, WINDOWS = "factors summed before products", "windows of outputs as sums of filters"
"""The rules, by name."""
_LESS = 1.5
"""How many times fewer additions and products there must be."""
Values = Mapping[str, int]
"""Of sizes, by name."""


@frozen
class Exchanged:
    """A nest in other sums, by a rule. before: the nests that it reads. old, new: its sum, and what is in its place."""

    rule: str
    before: tuple[Nest, ...]
    nest: Nest
    old: Expr
    new: Expr


def exchanged(nest: Nest, types: Mapping[str, TensorType], values: Values) -> Exchanged | None:
    """The nest with its sum of sums in an order that takes less; None where there is no such one.

    types: of the tensors that it reads. values: of sizes.
    """
    single = {axis.symbol: algebra.const(0) for axis in nest.domain if axis.extent is algebra.const(1)}
    nest = evolve(nest, body=placed(nest.body, single))
    sums = next((each for each in expressions(nest.body) if isinstance(each, Reduce)), None)
    if sums is None or sums.op != "add" or nest.dtype != "f32":
        return None
    tried = [_Exchange(nest, types, values, rule).of(sums) for rule in (FACTORS, WINDOWS)]
    found = [each for each in tried if each is not None]
    return min(found, key=lambda each: each[0])[1] if found else None


@define
class _Exchange:
    """axes: by symbol, those of the nest and all that sums have. before: the nests that have been made."""

    nest: Nest
    types: Mapping[str, TensorType]
    values: Values
    rule: str
    axes: dict[Symbol, Axis] = field(factory=dict[Symbol, Axis])
    before: list[Nest] = field(factory=list[Nest])
    numbers: count[int] = field(factory=count)
    applied: bool = False

    def of(self, sums: Reduce) -> tuple[float, Exchanged] | None:
        """The nest in other sums, and what it takes; None where that is not less."""
        self.axes |= {axis.symbol: axis for axis in self.nest.domain}
        terms = terms_of(sums, self._fresh)
        if terms is None or not any(len(each.axes) > len(sums.axes) for each in terms):
            return None
        work = self._work(self.nest.domain, terms)
        new = total([self._value(each) for each in terms], [each.negative for each in terms])
        less = sum(self._work(each.domain, terms_of(each.body, self._fresh) or ()) for each in self.before)
        less += self._work(self.nest.domain, terms_of(new, self._fresh) or ())
        if not self.applied or less * _LESS > work:
            return None
        nest = evolve(self.nest, body=with_reduction(self.nest.body, sums, new))
        return less, Exchanged(self.rule, tuple(self.before), nest, sums, new)

    def _fresh(self, axis: Axis) -> Axis:
        made = Axis(f"{axis.name}_{next(self.numbers)}", axis.extent)
        self.axes[made.symbol] = made
        return made

    def _work(self, domain: Iterable[Axis], terms: Iterable[Term]) -> int:
        """The additions and products of terms for each element of the domain that they depend on."""
        found = 0
        for each in terms:
            used = set[Symbol]().union(*map(symbols_in, each.factors)) | {axis.symbol for axis in each.axes}
            own = [axis for axis in (*domain, *each.axes) if axis.symbol in used]
            found += prod(int(computed(axis.extent, self.values)) for axis in own)
        return found

    # -- terms ---

    def _value(self, term: Term) -> Expr:
        """The term with each factor that alone depends on some axes summed over them, as long as there are any."""
        if self.rule == WINDOWS:
            term = self._grouped(term)
        while True:
            alone = _alone(term)
            if not alone:
                break
            kept = tuple(axis for axis in term.axes if not any(axis in each for each in alone.values()))
            factors = [
                self._summed(each, alone[k], kept) if k in alone else each for k, each in enumerate(term.factors)
            ]
            if not kept:
                return _divided(product(factors), term.divisors)
            term = evolve(term, axes=kept, factors=tuple(factors))
        term = self._with_channels(term)
        times = [Coordinate(axis.extent) for axis in term.axes if not _uses(term, axis)]
        axes = tuple(axis for axis in term.axes if _uses(term, axis))
        own = {axis.symbol for axis in axes}
        inside = tuple(each for each in term.factors if symbols_in(each) & own)
        outside = [each for each in term.factors if not symbols_in(each) & own]
        sums = [value_of(Term(axes, inside))] if axes else []
        return _divided(product((*sums, *outside, *times)), term.divisors)

    def _with_channels(self, term: Term) -> Term:
        """The term with neighbouring axes of sums, of which others are places of a window, as one: as of channels."""
        made = {each.output: number for number, each in enumerate(self.before)}
        for one, other in ((0, 1), (1, 0)) if len(term.factors) > 1 else ():
            x, f = term.factors[one], term.factors[other]
            if not isinstance(x, Read) or not isinstance(f, Read) or x.outside is None or x.tensor not in made:
                continue
            name = f"{self.nest.output}_s{len(self.before)}"
            found = joined(self.before[made[x.tensor]], x, f, term.axes, self.axes, name)
            if found is not None:
                sums, filters, inputs, weights, axes = found
                self.axes |= {axis.symbol: axis for axis in axes}
                self.before[made[x.tensor]] = sums
                self.before.append(filters)
                changed = {one: inputs, other: weights}
                factors = tuple(changed.get(k, each) for k, each in enumerate(term.factors))
                return evolve(term, axes=axes, factors=factors)
        return term

    def _grouped(self, term: Term) -> Term:
        """The term with places of windows and taps that read the same inputs as one tap; else itself."""
        found = grouped(term, f"{self.nest.output}_s{len(self.before)}", self.nest.domain, self._fresh)
        if found is None:
            return term
        self.applied = True
        self.before.append(found[0])
        return found[1]

    def _summed(self, factor: Expr, axes: tuple[Axis, ...], kept: tuple[Axis, ...]) -> Expr:
        """The factor summed over axes: for itself if it is within another sum, or less than the nest's elements."""
        types = {**self.types, **{each.output: each.type for each in self.before}}
        factor, axes = counted_from_inputs(factor, axes, types, self._fresh, self.axes)
        own = {axis.symbol for axis in axes}
        read = read_of(factor)
        places = self._places(factor, read, own, kept, types)
        if not kept and {axis for axis, _ in places} >= {
            a for a in self.nest.domain if a.extent is not algebra.const(1)
        }:
            return Reduce("add", axes, factor)
        body = factor
        if read is not None:
            moved = {place: axis.index for axis, place in places}
            body = with_read(factor, evolve(read, index=tuple(moved.get(each, each) for each in read.index)))
        domain = tuple(axis for axis, _ in places)
        made = Nest(f"{self.nest.output}_s{len(self.before)}", "f32", domain, Reduce("add", axes, body))
        self.before.append(made)
        self.applied = True
        beyond = any(not isinstance(place, Sym) for _, place in places)
        outside = read.outside if read is not None and beyond else None
        return Read(made.output, tuple(place for _, place in places), "f32", outside)

    def _places(
        self,
        factor: Expr,
        read: Read | None,
        own: set[Symbol],
        kept: tuple[Axis, ...],
        types: Mapping[str, TensorType],
    ) -> list[tuple[Axis, Index]]:
        """The axes of a sum over `own` axes, and the place along each that is read.

        What the sum does not run over stays as it is in a tensor that is read. Axes of a sum around come before those
        of space, unless one of them is the last in memory.
        """
        found: dict[Index, Axis] = {}
        fixed = own | (symbols_in(factor) if read is None else set[Symbol]().union(*map(symbols, indices(factor))))
        for place, extent in () if read is None else zip(read.index, types[read.tensor].shape, strict=True):
            here = symbols(place) & set(self.axes)
            if here and not here & fixed and not isinstance(place, Sym):
                found[place] = self._fresh(Axis("u", extent))
            else:
                found |= {algebra.sym(each): self.axes[each] for each in self._ordered(here - own)}
        found |= {algebra.sym(each): self.axes[each] for each in self._ordered(fixed - own)}
        places = [(axis, place) for place, axis in found.items()]
        last = None if read is None else next((a for a in kept if read.index and read.index[-1] is a.index), None)
        if last is not None:
            return places
        before = list[Axis]()
        for axis in self.nest.domain:
            if axis not in found.values():
                break
            before.append(axis)
        return sorted(places, key=lambda each: 0 if each[0] in before else 1 if each[0] in kept else 2)

    def _ordered(self, found: Iterable[Symbol]) -> list[Symbol]:
        order = list(self.axes)
        return sorted((each for each in found if each in self.axes), key=order.index)


def _alone(term: Term) -> dict[int, tuple[Axis, ...]]:
    """By the number of a factor, the axes on which it depends and no other does; of products, or of less than all."""
    used = [symbols_in(each) for each in term.factors]
    found: dict[int, list[Axis]] = {}
    for axis in term.axes:
        having = [k for k, each in enumerate(used) if axis.symbol in each]
        if len(having) == 1:
            found.setdefault(having[0], []).append(axis)
    return {k: tuple(axes) for k, axes in found.items()}


def _uses(term: Term, axis: Axis) -> bool:
    return any(axis.symbol in symbols_in(each) for each in term.factors)


def _divided(value: Expr, divisors: Iterable[Expr]) -> Expr:
    for each in divisors:
        value = apply("div", value, each)
    return value
