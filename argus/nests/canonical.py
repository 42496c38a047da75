"""The canonical form of nests, by which kernels are made and found again: few axes, sizes as symbols, plain names.

Axes that all reads run through together become one. A read that runs through all of a tensor gets a parameter of just
the axes it runs through; other reads keep the tensor's shape. Parameters of several shapes may be the same memory,
which is only read. Extents become sizes of the kernel, unless the bounds of a read depend on their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.target import LARGEST_SIZE
from argus.core.walk import substitute, symbols, within
from argus.nests.affine import Extents, count_quotients, extents_of, flattened, product_of, stride
from argus.nests.axes_of_one import without_axes_of_one
from argus.nests.nest import Axis, Nest, Read, TensorType, size
from argus.nests.rewrite import indices, placed, reads, reductions, with_axes, with_reads

MOST_AXES = 3
"""Domains keep so many axes at most: those of a grid."""
_SHORT = 256
"""Elements along the last axis of elementwise nests below which most threads of a block are idle."""
_MOST_OF_WINDOW = 64
"""Elements up to which the extents of a reduction over several axes stay numbers."""
_ZERO, _ONE = algebra.const(0), algebra.const(1)


@frozen
class Parameter:
    """A tensor of a kernel. source: the tensor of the graph whose memory it is."""

    type: TensorType
    source: str


@frozen
class Canonical:
    """Nests of one domain in canonical form.

    parameters: what they read, then the outputs, one for each nest, in order. sizes: the kernel's sizes by name, over
    those of the graph; some are the extent of no parameter. ties: numbers over the kernel's sizes that are equal.
    """

    nests: tuple[Nest, ...]
    parameters: tuple[Parameter, ...]
    sizes: Mapping[str, Index] = field(factory=dict[str, Index])
    ties: tuple[tuple[Index, Index], ...] = ()


def canonical(
    nests: Sequence[Nest],
    tensors: Mapping[str, TensorType],
    values: Mapping[str, int] | None = None,
    most_axes: int = MOST_AXES,
    *,
    join: bool = True,
    ones: bool = False,
) -> Canonical:
    """The canonical form of nests with equal extents of their domains. tensors: those they read, by name.

    values: of sizes, which decide how many elements one axis may have. join: axes that all reads run through together
    become one, and short last ones of elementwise nests; else tensors keep their axes. ones: axes of one element stay,
    those of the domain with sizes as other axes have.
    """
    split = _split(_one_domain(nests))
    form = _flat_reads(split if ones else _without_ones(split), tensors)
    joined = _merged(form, values or {}) if join else form
    while (pair := _pair_of(joined, most_axes, short=join)) is not None:
        joined = _merged(_one_axis(joined, *pair), values or {})
    if not joined.domain:
        joined = evolve(joined, domain=(Axis("i", _ONE),))
    return _Namer(joined, tensors, ones=ones).canonical()


# -- working form --------------------------------------------------------------------------------------------


@frozen
class _Form:
    """Nests with one domain. A read without a value outside has one index more: its element's row-major number."""

    nests: tuple[Nest, ...]
    domain: tuple[Axis, ...]

    @property
    def groups(self) -> list[tuple[Axis, ...]]:
        """The lists of axes: the domain, and those of each reduction."""
        return [self.domain, *(each.axes for each in reductions(*(nest.body for nest in self.nests)))]

    @property
    def extents(self) -> Extents:
        return extents_of(axis for group in self.groups for axis in group)

    def changed(self, change: Callable[[Nest], Nest], domain: tuple[Axis, ...] | None = None) -> _Form:
        return evolve(self, nests=tuple(map(change, self.nests)), domain=self.domain if domain is None else domain)


def _one_domain(nests: Sequence[Nest]) -> _Form:
    """All nests over the axes of the first."""
    domain = nests[0].domain

    def moved(nest: Nest) -> Nest:
        places = {old.symbol: new.index for old, new in zip(nest.domain, domain, strict=True)}
        return evolve(nest, body=placed(nest.body, places))

    return _Form(tuple(map(moved, nests)), domain)


def _split(form: _Form) -> _Form:
    """With an axis in two where reads use its quotient by a number that divides its extent, as those of groups do."""
    for axis in form.domain:
        divisor = _divisor_of(form, axis)
        if divisor is not None:
            assert isinstance(axis.extent, Const)
            outer = Axis(f"{axis.name}_q", algebra.const(axis.extent.value // divisor))
            inner = Axis(f"{axis.name}_r", algebra.const(divisor))
            whole = {axis.symbol: algebra.add(algebra.mul(outer.index, divisor), inner.index)}
            at = form.domain.index(axis)
            domain = (*form.domain[:at], outer, inner, *form.domain[at + 1 :])
            return _split(form.changed(partial(_placed_nest, whole), domain))
    return form


def _placed_nest(places: Mapping[Symbol, Index], nest: Nest) -> Nest:
    return evolve(nest, body=placed(nest.body, places))


def _divisor_of(form: _Form, axis: Axis) -> int | None:
    """The least number by which some read divides the axis, that divides its extent."""
    found: set[int] = set()
    for read in reads(*(nest.body for nest in form.nests)):
        for node in (each for index in read.index for each in within(index)):
            match node:
                case Bin(op="//", left=left, right=Const(value=divisor)) if left is axis.index:
                    found.add(divisor)
                case _:
                    pass
    extent = axis.extent.value if isinstance(axis.extent, Const) else 0
    return min((each for each in found if 1 < each < extent and extent % each == 0), default=None)


def _without_ones(form: _Form) -> _Form:
    kept = tuple(axis for axis in form.domain if axis.extent is not _ONE)
    return form.changed(lambda nest: without_axes_of_one(evolve(nest, domain=form.domain)), kept)


def _flat_reads(form: _Form, tensors: Mapping[str, TensorType]) -> _Form:
    def numbered(read: Read) -> Read:
        if read.outside is not None:
            return read
        return evolve(read, index=(*read.index, flattened(read.index, tensors[read.tensor].shape)))

    return form.changed(lambda nest: evolve(nest, body=with_reads(nest.body, numbered)))


# -- merging of axes -----------------------------------------------------------------------------------------


def _merged(form: _Form, values: Mapping[str, int]) -> _Form:
    """With axes merged that all reads run through together, inner ones first, as one axis has not too many elements."""
    while True:
        pairs = [pair for group in form.groups for pair in reversed(list(pairwise(group)))]
        found = next((pair for pair in pairs if _together(form, values, *pair)), None)
        if found is None:
            return form
        form = _one_axis(form, *found)


def _together(form: _Form, values: Mapping[str, int], outer: Axis, inner: Axis) -> bool:
    """Whether every read runs through both axes as through one, or through neither."""
    bodies, both = [nest.body for nest in form.nests], {outer.symbol, inner.symbol}
    count = _value(algebra.mul(outer.extent, inner.extent), values)
    if count is not None and count > LARGEST_SIZE:
        return False
    if any(symbols(axis.extent) & both for group in form.groups for axis in group):
        return False
    if any(symbols(each) & both for each in indices(*bodies)):
        return False
    return all(_runs_together(read, outer, inner) for read in reads(*bodies))


def _pair_of(form: _Form, most_axes: int, *, short: bool) -> tuple[Axis, Axis] | None:
    """Axes that are to be one, though reads run through their parts: of too many, or, if short, with a short last."""
    pairs = list(pairwise(form.domain))
    if len(form.domain) > most_axes or not pairs or not short or len(form.groups) > 1:
        return pairs[0] if len(form.domain) > most_axes else None
    outer, last = (axis.extent.value if isinstance(axis.extent, Const) else 0 for axis in pairs[-1])
    return pairs[-1] if 0 < last < _SHORT and 0 < outer * last <= LARGEST_SIZE else None


def _runs_together(read: Read, outer: Axis, inner: Axis) -> bool:
    if not any(symbols(each) & {outer.symbol, inner.symbol} for each in read.index):
        return True
    if read.outside is not None:
        return False
    apart, step = stride(read.index[-1], outer.symbol), stride(read.index[-1], inner.symbol)
    return apart is not None and step is not None and apart is algebra.mul(step, inner.extent)


def _value(number: Index, values: Mapping[str, int]) -> int | None:
    given = {s: algebra.const(values[s.name]) for s in symbols(number) if s.name in values}
    found = substitute(number, given)
    return found.value if isinstance(found, Const) else None


def _one_axis(form: _Form, outer: Axis, inner: Axis) -> _Form:
    """With two adjacent axes of a group as one, from which reads that run through one of them compute it."""
    axis = Axis(f"{outer.name}_{inner.name}", algebra.mul(outer.extent, inner.extent))
    parts = {
        outer.symbol: algebra.floordiv(axis.index, inner.extent),
        inner.symbol: algebra.mod(axis.index, inner.extent),
    }

    def with_one(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        at = next((k for k, pair in enumerate(pairwise(axes)) if pair == (outer, inner)), None)
        return axes if at is None else (*axes[:at], axis, *axes[at + 2 :])

    def joined(read: Read) -> Read:
        apart = tuple(substitute(each, parts) for each in read.index)
        if read.outside is not None or not _runs_together(read, outer, inner):
            return evolve(read, index=apart)
        at_once = substitute(read.index[-1], {outer.symbol: _ZERO, inner.symbol: axis.index})
        return evolve(read, index=(*apart[:-1], at_once))

    def changed(nest: Nest) -> Nest:
        return evolve(nest, body=placed(with_axes(with_reads(nest.body, joined), with_one), parts))

    return form.changed(changed, with_one(form.domain))


def _is_window(axes: Sequence[Axis]) -> bool:
    """Whether a reduction is over several axes of few elements in all, as over windows that tile a tensor."""
    extents = [axis.extent.value for axis in axes if isinstance(axis.extent, Const)]
    return 1 < len(axes) == len(extents) and prod(extents) <= _MOST_OF_WINDOW


# -- parameters and names ------------------------------------------------------------------------------------


class _Namer:
    """Gives axes, sizes and tensors plain names, in the order of their first use."""

    def __init__(self, form: _Form, tensors: Mapping[str, TensorType], *, ones: bool) -> None:
        self._form = form
        self._ones = ones
        self._tensors = tensors
        self._sizes: dict[str, Index] = {}
        self._known: dict[Index, Index] = {}
        self._shared: dict[Index, Index] = {}
        self._ties: list[tuple[Index, Index]] = []
        self._axes: dict[Symbol, Axis] = {}
        self._parameters: dict[tuple[str, object], Parameter] = {}
        self._extents = form.extents
        self._bodies = [nest.body for nest in form.nests]
        self._orders = {read: self._order(read) for read in reads(*self._bodies)}

    def canonical(self) -> Canonical:
        pinned = {
            symbol
            for read, order in self._orders.items()
            if order is None and read.outside is None
            for each in read.index
            for symbol in symbols(each)
        }
        reduced = len(self._form.groups) > 1  # axes of equal extents are to read one parameter
        windows = {axis.symbol for group in self._form.groups[1:] for axis in group}
        pinned |= windows & {s for read in self._orders if read.outside is not None for s in _symbols_of(read)}
        pinned |= {axis.symbol for group in self._form.groups[1:] if _is_window(group) for axis in group}
        pinned |= {symbol for each in pinned & set(self._extents) for symbol in symbols(self._extents[each])}
        for group, letter in zip(self._form.groups, ("i", *("j" for _ in self._form.groups[1:])), strict=True):
            for axis in group:
                self._name_axis(axis, letter, free=axis.symbol not in pinned, shared=reduced)
        domain = tuple(self._axes[axis.symbol] for axis in self._form.domain)
        bodies = [
            with_axes(with_reads(body, self._read), lambda axes: tuple(self._axes[each.symbol] for each in axes))
            for body in self._bodies
        ]
        free = {s for each in indices(*bodies) for s in symbols(each) if s.kind == "size"} - self._own_sizes()
        places = self._places(free)
        nests = tuple(
            evolve(nest, output=f"Y{k}", domain=domain, body=placed(body, places))
            for k, (nest, body) in enumerate(zip(self._form.nests, bodies, strict=True))
        )
        outputs = [Parameter(new.type, old.output) for old, new in zip(self._form.nests, nests, strict=True)]
        return Canonical(nests, (*self._parameters.values(), *outputs), self._sizes, tuple(self._ties))

    def _own_sizes(self) -> set[Symbol]:
        return {symbol for name in self._sizes for symbol in symbols(size(name))}

    def _places(self, sizes: set[Symbol]) -> dict[Symbol, Index]:
        """The new names of axes, and of sizes of the graph."""
        found = {symbol: axis.index for symbol, axis in self._axes.items()}
        return found | {symbol: self._named(algebra.sym(symbol)) for symbol in sorted(sizes, key=lambda s: s.name)}

    def _name_axis(self, axis: Axis, letter: str, *, free: bool, shared: bool) -> None:
        if axis.symbol in self._axes:
            return
        count = sum(each.name.startswith(letter) for each in self._axes.values())
        if symbols(axis.extent) & set(self._extents):
            around = {s: self._axes[s].index for s in symbols(axis.extent) if s in self._axes}
            extent = substitute(self._in_own_sizes(axis.extent), around)
        else:
            fresh = self._shared_fresh if shared and axis.extent is not _ONE else self._fresh
            one = axis.extent is _ONE and not (self._ones and axis in self._form.domain)
            extent = fresh(axis.extent) if free and not one else self._named(axis.extent)
        self._axes[axis.symbol] = Axis(f"{letter}{count}", extent)

    # -- reads ---

    def _read(self, read: Read) -> Read:
        """The read of a parameter, over the same axes."""
        order = self._orders[read]
        given = self._tensors[read.tensor]
        if order is not None:
            shape = tuple(self._axes[symbol].extent for symbol in order) or (_ONE,)
            index = tuple(map(algebra.sym, order)) or (_ZERO,)
            return Read(self._parameter(read, shape, lambda: shape), index, read.dtype)
        if read.outside is not None:
            shape_of = lambda: tuple(map(self._fresh, given.shape)) or (_ONE,)  # noqa: E731 reason: made once at most
            return Read(self._parameter(read, "outside", shape_of), self._at(read.index), read.dtype, read.outside)
        *index, place = read.index
        if not index or count_quotients((place,)) < count_quotients(index):
            count = product_of(given.shape)
            return Read(self._parameter(read, "flat", lambda: (self._named(count),)), self._at((place,)), read.dtype)
        kept = [k for k, extent in enumerate(given.shape) if extent is not _ONE]
        shape_of = lambda: tuple(self._named(given.shape[k]) for k in kept)  # noqa: E731 reason: made once at most
        return Read(self._parameter(read, "whole", shape_of), self._at([index[k] for k in kept]), read.dtype)

    def _at(self, index: Sequence[Index]) -> tuple[Index, ...]:
        return tuple(map(self._in_own_sizes, index)) or (_ZERO,)

    def _parameter(self, read: Read, kind: object, shape: Callable[[], tuple[Index, ...]]) -> str:
        key = read.tensor, kind
        if key not in self._parameters:
            made = TensorType(f"X{len(self._parameters)}", shape(), read.dtype)
            self._parameters[key] = Parameter(made, read.tensor)
        return self._parameters[key].type.name

    def _order(self, read: Read) -> list[Symbol] | None:
        """The axes, last fastest, through all of whose elements the read runs in order; None if it runs otherwise."""
        place = read.index[-1] if read.index else _ZERO
        if read.outside is not None or substitute(place, dict.fromkeys(self._extents, _ZERO)) is not _ZERO:
            return None
        used = [symbol for symbol in self._extents if symbol in symbols(place)]
        strides = {symbol: stride(place, symbol) for symbol in used}
        order: list[Symbol] = []
        step: Index = _ONE
        while len(order) < len(used):
            fitting = [each for each in used if each not in order and strides[each] is step]
            ones = [each for each in fitting if self._ones and self._extents[each] is _ONE]
            found = next(iter((*reversed(ones), *fitting)), None)
            if found is None or symbols(self._extents[found]) & set(self._extents):
                return None
            order.insert(0, found)
            step = algebra.mul(step, self._extents[found])
        return order if step is product_of(self._tensors[read.tensor].shape) else None

    # -- sizes ---

    def _fresh(self, extent: Index) -> Index:
        """A size of its own, which no other is compared with."""
        name = f"N{len(self._sizes)}"
        self._sizes[name] = extent
        return size(name)

    def _shared_fresh(self, extent: Index) -> Index:
        """The same, one for all axes of an extent."""
        if extent not in self._shared:
            self._shared[extent] = self._fresh(extent)
        return self._shared[extent]

    def _named(self, extent: Index) -> Index:
        """A number or a size for an extent: the same for equal ones, related to others as they are."""
        if isinstance(extent, Const):
            return extent
        if extent not in self._known:
            made = self._known[extent] = self._fresh(extent)
            own = self._in_own_sizes(extent)
            if own is not made:
                self._ties.append((made, own))
        return self._known[extent]

    def _in_own_sizes(self, number: Index) -> Index:
        own = self._own_sizes()
        sizes = {s: self._named(algebra.sym(s)) for s in symbols(number) if s.kind == "size" and s not in own}
        return substitute(number, sizes)


def _symbols_of(read: Read) -> frozenset[Symbol]:
    return frozenset[Symbol]().union(*map(symbols, read.index))
