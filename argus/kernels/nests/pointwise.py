"""Pointwise nests: each thread computes vectors of elements along the last axis, the fastest of the output.

A read that does not depend on the last axis is one number for the whole block; any other is a tile of a computed view,
which is loaded in vectors where it is a plain tile.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Mapping
from math import prod
from typing import Any

from attrs import frozen

from argus.kernels.nests.fragments import TYPES, Body
from argus.kernels.nests.tiles import blocks, may_be_in_order
from argus.language import (
    DType,
    Fragment,
    IntLike,
    Tensor,
    assume,
    bf16,
    ceil_div,
    copy,
    f16,
    f32,
    i8,
    i32,
    i64,
    ld_global_b16,
    ld_global_b32,
    load,
    replicated,
    sm_90a,
    spread,
    where,
    zeros,
)
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.integers import ARITHMETIC
from argus.nests.nest import Apply, Constant, Convert, Expr, Nest, Read
from argus.nests.rewrite import expressions, reads, reductions, symbols_of
from argus.nests.terms import literal_factors

_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "bool": 1}
_INTEGERS = ("i32", "i64")
_ONE_ELEMENT = {f32: ld_global_b32, bf16: ld_global_b16, f16: ld_global_b16}
_MOST_ELEMENTS = 1 << 40
"""The elements of a tensor of several axes, whose addresses then fit 64 bits."""
_LARGEST_PLACE = 1 << 30
"""Times the step of a coordinate, whose sums with numbers then fit 32 bits."""


@frozen
class Pointwise:
    """Blocks of `threads`, each of which computes `steps` vectors of `vector` elements along the last axis.

    in_order: blocks that start one after the other are neighbours along the last axis; else along the first.
    """

    threads: int = 256
    vector: int = 4
    steps: int = 1
    in_order: bool = True
    target = sm_90a

    @property
    def width(self) -> int:
        """The elements of a block."""
        return self.threads * self.vector * self.steps


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Pointwise | None:
    """The configuration at these sizes; None unless the nests are pointwise.

    Vectors have 16 bytes of the widest type at most, and divide the last axis.
    """
    kinds = {each.type.dtype for each in form.parameters}
    if any(reductions(nest.body) for nest in form.nests) or not kinds <= set(TYPES):
        return None
    read = [each for nest in form.nests for each in reads(nest.body)]
    if any(each.dtype in _INTEGERS for each in read) and not all(map(_is_of_integers, form.nests)):
        return None  # computed in f32, which does not hold all of them
    *outer, last = [int(computed(axis.extent, sizes)) for axis in form.nests[0].domain]
    if any(0 < most < extent for extent, most in zip((*outer, last), _most_of_axes(form), strict=True)):
        return None
    narrow = any(TYPES[each.dtype] not in _ONE_ELEMENT and not in_vectors(form, each) for each in read)
    vector = 1 if narrow else 16 // max(_BYTES[each] for each in kinds)
    while last % vector:
        vector //= 2
    threads = 256
    while threads > 32 and threads * vector >= 2 * last:
        threads //= 2
    return Pointwise(threads, vector, in_order=may_be_in_order([*outer, last]))


def pointwise(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Pointwise) -> None:
    """Compute each element of the outputs by itself."""
    block = _Block(form, tensors, sizes, cfg)
    body = Body(block.load, block.numbers, dtype=block.dtype)
    for nest in form.nests:
        block.store(body.of(nest.body), tensors[nest.output])


class _Block:
    """The elements of a block: a tile along the last axis, at one place along the others."""

    def __init__(
        self, form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Pointwise
    ) -> None:
        self._tensors, self._sizes, self._cfg = tensors, sizes, cfg
        self._domain = form.nests[0].domain
        self._form = form
        self._axes = [axis.name for axis in self._domain]
        self._extents: list[Any] = [computed(axis.extent, sizes) for axis in self._domain]
        *outer, last = self._extents
        assume(last % cfg.vector == 0)
        for extent, most in zip(self._extents, _most_of_axes(form), strict=True):
            if most:
                assume(extent <= most)
        for each in form.parameters:
            _assume_addresses(tensors[each.type.name])
        *self._at, self._number = blocks((*outer, ceil_div(last, cfg.width)), in_order=cfg.in_order)
        self._by = spread((cfg.width,), threads=cfg.threads, vector=cfg.vector)
        self.dtype = _computed_in(form)
        self._whole = zeros(self.dtype, self._by)
        (column,) = self._whole.index
        at = (*self._at, self._number * cfg.width + column)
        self.numbers: dict[str, Any] = {**sizes, **dict(zip(self._axes, at, strict=True))}

    def load(self, read: Read) -> Any:  # noqa: ANN401 reason: a register tile
        """The elements of a read: one for the block where the last axis does not matter."""
        tensor, places = self._tensors[read.tensor], dict(zip(self._axes, self._at, strict=False))
        if self.dtype is f32 and read.outside is None and not depends(read, self._axes[-1]):
            at = tuple(computed(each, {**self._sizes, **places}) for each in read.index)
            return load(tensor[at], replicated(self._cfg.threads)).to(f32)

        def place(*at: IntLike) -> tuple[Any, ...]:
            numbers = {**self._sizes, **dict(zip(self._axes, at, strict=True))}
            return tuple(computed(each, numbers) for each in read.index)

        view = tensor.gather(tuple(self._extents), place, outside=read.outside)
        narrow = None if in_vectors(self._form, read) else _ONE_ELEMENT.get(tensor.dtype)
        edge = 0.0 if read.outside is None else read.outside
        return load(self._tile(view), self._by, via=narrow, edge=edge).to(self.dtype)

    def store(self, value: Any, output: Tensor) -> None:  # noqa: ANN401 reason: a register tile or a number
        if not isinstance(value, Fragment) or value.shape != self._whole.shape:
            value = self._whole + value
        kept = where(value != 0.0, 1, 0, dtype=i8) if output.dtype == i8 else value.to(output.dtype)
        copy(kept, self._tile(output), edge=0)

    def _tile(self, view: Tensor) -> Tensor:
        return (view[tuple(self._at)] if self._at else view).tile((self._cfg.width,), (self._number,))


def _computed_in(form: Canonical) -> DType:
    """The type in which all is computed: f32, or the widest type of integers where tensors of integers are read."""
    read = {each.dtype for nest in form.nests for each in reads(nest.body)}
    if not read & set(_INTEGERS):
        return f32
    kinds = {each.type.dtype for each in form.parameters}
    kinds |= {each.dtype for nest in form.nests for each in expressions(nest.body) if isinstance(each, Convert)}
    return i64 if "i64" in kinds else i32


def _is_of_integers(nest: Nest) -> bool:
    """Whether a nest is computed of integers alone, by operations that they have."""
    kinds = {nest.dtype, *(each.dtype for each in reads(nest.body))}
    return kinds <= {*_INTEGERS, "bool"} and all(map(_is_integer, expressions(nest.body)))


def _is_integer(of: Expr) -> bool:
    match of:
        case Constant(value=value):
            return value.is_integer()
        case Apply(op=op):
            return op in ARITHMETIC
        case Convert(dtype=dtype):
            return dtype in _INTEGERS
        case _:
            return True


def in_vectors(form: Canonical, read: Read) -> bool:
    """Whether a read runs through axes of the domain alone, the last one last, in rows of its whole length."""
    domain = form.nests[0].domain
    lasts = {each.type.name: each.type.shape[-1] for each in form.parameters}
    places = [axis.index for axis in domain]
    within = read.outside is None and all(each in places for each in read.index)
    return within and read.index[-1] is places[-1] and lasts[read.tensor] is domain[-1].extent


def _most_of_axes(form: Canonical) -> list[int]:
    """The most elements along each axis with which coordinates that may lie outside of a tensor fit 32 bits.

    0 where all numbers of elements do.
    """
    padded = [each for nest in form.nests for each in reads(nest.body) if each.outside is not None]
    found: list[int] = []
    for axis in form.nests[0].domain:
        steps = (literal_factors(place, {axis.name}) for each in padded for place in each.index)
        most = max((abs(each.get(axis.name, 0)) for each in steps if each), default=0)
        found.append(_LARGEST_PLACE // most if most > 1 else 0)
    return found


def depends(read: Read, axis: str) -> bool:
    """Whether the place of a read depends on an axis."""
    return any(symbol.name == axis for symbol in symbols_of(read))


def _assume_addresses(tensor: Tensor) -> None:
    """The elements of a tensor are few enough that addresses fit 64 bits, as the launch checks."""
    if len(tensor.shape) > 1:
        assume(prod(tensor.shape) <= _MOST_ELEMENTS)
