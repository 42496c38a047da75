"""Nests that are convolutions in their canonical form, in which axes of one element and of groups are distinct.

The canonical form leaves out the axis of a single input, and has an axis of its own for groups of channels.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.walk import substitute, symbols
from argus.nests.convolution import Convolution, convolution_of
from argus.nests.nest import Apply, Axis, Nest, Read, Reduce, Select, TensorType
from argus.nests.rewrite import with_reads


@frozen
class ConvolutionForm:
    """Outputs (n, g, o, *places) of inputs (n, g channels + c, *places) and filters (g, o, c, *taps).

    Filters of a transposed one are (g, c, o, *taps).

    conv: of one group. x, f: names of tensors. batched: whether outputs have the axis n. grouped: whether they and the
    filters have the axis g.
    """

    conv: Convolution
    x: str
    f: str
    batched: bool = True
    grouped: bool = False


def convolution_form(nest: Nest, tensors: Mapping[str, TensorType]) -> ConvolutionForm | None:
    """The convolution that a nest in canonical form is; None for other nests."""
    operands = _operands(nest)
    if operands is None or len(operands[0].index) < len(("n", "c", "y")) or not nest.domain:
        return None
    x, f, channel = operands
    batched = x.index[0] is nest.domain[0].index
    domain = nest.domain if batched else (_ONE, *nest.domain)
    grouped = len(domain) == len(x.index) + 1
    places = {id(x): evolve(x, index=(domain[0].index, *x.index[1:]))}
    types = dict(tensors)
    if grouped:
        group = domain[1]
        own = substitute(x.index[1], {group.symbol: algebra.const(0)})
        moved = algebra.add(own, algebra.mul(group.index, channel.extent))
        if own is not channel.index or moved is not x.index[1] or f.index[0] is not group.index:
            return None
        if any(group.symbol in symbols(each) for each in (*x.index[2:], *f.index[1:])):
            return None
        places[id(x)] = evolve(places[id(x)], index=(domain[0].index, own, *x.index[2:]))
        places[id(f)] = evolve(f, index=f.index[1:])
        types[f.tensor] = evolve(types[f.tensor], shape=types[f.tensor].shape[1:])
        domain = (domain[0], *domain[2:])
    if len(domain) != len(x.index):
        return None
    changed = {x: places[id(x)], f: places.get(id(f), f)}
    body = with_reads(nest.body, lambda read: changed.get(read, read))
    found = convolution_of(evolve(nest, domain=domain, body=body), types)
    return None if found is None else ConvolutionForm(*found, batched=batched, grouped=grouped)


_ONE = Axis("n", algebra.const(1))


def _operands(nest: Nest) -> tuple[Read, Read, Axis] | None:
    """The inputs and filters that are multiplied, and the axis of channels."""
    match nest.body:
        case Reduce(op="add", axes=(channel, *_), body=Apply(op="mul", args=(left, Read() as filters))):
            inputs = left.then if isinstance(left, Select) else left
            return (inputs, filters, channel) if isinstance(inputs, Read) else None
        case _:
            return None
