"""Convolutions of one image, channel, filter, row or column, with the axes of one element that their nests leave out.

A graph reads a tensor at 0 along an axis of one element, or at the coordinate of an axis of one, which are the same
place. Templates of convolutions run through an axis for images, one for outputs' channels, one for each axis of space
and one for inputs' channels, however many elements there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from argus.core import algebra
from argus.core.index import Index
from argus.core.walk import symbols
from argus.nests.convolution import convolution_of
from argus.nests.nest import Apply, Axis, Nest, Read, Reduce, Select, TensorType
from argus.nests.rewrite import placed, reductions, with_axes, with_reads

_ONE, _ZERO = algebra.const(1), algebra.const(0)
_FIRST = len(("n", "c"))
"""Axes of inputs before those of space, and of filters before those of taps."""
Types = Mapping[str, TensorType]


def whole_convolution(nest: Nest, tensors: Types) -> Nest | None:
    """The same elements as a nest that computes each from one of a convolution without groups, over all of its axes.

    None for other nests, and for those that run through all axes, none of which has one element. The output's shape has
    the axes of one element, too. What is read beside the convolution at each of the nest's own elements is read at the
    coordinates of all axes.
    """
    plain = without_axes_of_one(nest)
    match reductions(plain.body):
        case [Reduce(op="add", body=Apply(op="mul", args=(left, Read() as f)))]:
            x = left.then if isinstance(left, Select) else left
        case _:
            return None
    if not isinstance(x, Read) or len(x.index) <= _FIRST or len(f.index) < _FIRST:
        return None
    for channels in ((0, 1), (1, 0)):  # of filters, and of those of transposed convolutions
        made = _with_axes(plain, x, f, channels)
        if made is None:
            continue
        if made == nest:
            return None
        (sums,) = reductions(made.body)
        found = convolution_of(evolve(made, body=sums), tensors)
        if found is not None and found[0].groups == 1:
            own = _at_all_axes(made, {x.tensor, f.tensor}, tensors)
            return None if own == nest else own
    return None


def without_axes_of_one(nest: Nest) -> Nest:
    """The nest without axes of one element, but for one of a reduction that has no others."""
    groups = (nest.domain, *(each.axes for each in reductions(nest.body)))
    zero = {axis.symbol: _ZERO for axes in groups for axis in axes if axis.extent is _ONE}

    def others(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(axis for axis in axes if axis.symbol not in zero) or axes[:1]

    kept = tuple(axis for axis in nest.domain if axis.symbol not in zero)
    return evolve(nest, domain=kept, body=placed(with_axes(nest.body, others), zero))


def _with_axes(nest: Nest, x: Read, f: Read, channels: tuple[int, int]) -> Nest | None:
    """The nest with an axis of one where neither the inputs nor the filters are read at one of its own.

    x, f: reads of inputs and filters. channels: the places of outputs' and inputs' channels in the filters. None where
    an axis of the domain is not one of a convolution's.
    """
    (sums,), left = reductions(nest.body), iter(nest.domain)
    outputs, inputs = channels
    of_x, of_f = list(x.index), list(f.index)
    domain: list[Axis] = []
    following = next(left, None)
    for number, at in enumerate(("n", "o", *range(len(x.index) - _FIRST))):
        uses = of_f[outputs : outputs + 1] if at == "o" else of_x[number : number + 1]
        if following is not None and following.symbol in _symbols(uses):
            domain.append(following)
            following = next(left, None)
            continue
        domain.append(Axis(f"one_{at}", _ONE))
        changed, place = (of_f, outputs) if at == "o" else (of_x, number)
        changed[place] = algebra.add(changed[place], domain[-1].index)
    if following is not None:
        return None
    axes = list(sums.axes)
    if axes[0].symbol not in _symbols(of_f[inputs : inputs + 1]):
        axes.insert(0, Axis("one_c", _ONE))
        of_x[1], of_f[inputs] = (algebra.add(each, axes[0].index) for each in (of_x[1], of_f[inputs]))
    changes = {x: evolve(x, index=tuple(of_x)), f: evolve(f, index=tuple(of_f))}
    body = with_axes(with_reads(nest.body, lambda read: changes.get(read, read)), lambda _: tuple(axes))
    return evolve(nest, domain=tuple(domain), body=body)


def _symbols(indices: Iterable[Index]) -> frozenset[object]:
    return frozenset[object]().union(*map(symbols, indices))


def _at_all_axes(nest: Nest, summed: set[str], tensors: Types) -> Nest:
    """With reads of tensors in the output's shape at the element's own coordinates, those of one element among them."""
    own, extents = tuple(axis.index for axis in nest.domain), tuple(axis.extent for axis in nest.domain)

    def whole(read: Read) -> Read:
        if read.tensor in summed or read.outside is not None or tensors[read.tensor].shape != extents:
            return read
        at = zip(read.index, own, extents, strict=True)
        fits = all(place is index or (extent is _ONE and place is _ZERO) for place, index, extent in at)
        return evolve(read, index=own) if fits else read

    return evolve(nest, body=with_reads(nest.body, whole))
