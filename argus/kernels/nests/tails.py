"""What a nest computes of the sums of a product, on parts of an accumulator: the body of an epilogue.

A read is held once for those axes of a part that it depends on, such as the columns of a product, and one that depends
on none of them is a number.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from argus.kernels.nests.fragments import Body
from argus.kernels.schedules.epilogues import Deferred
from argus.language import (
    Fragment,
    IntLike,
    Tensor,
    bf16,
    copy,
    f16,
    f32,
    ld_global_b16,
    ld_global_b32,
    registers,
)
from argus.nests.affine import computed
from argus.nests.nest import Axis, Expr, Read, Reduce
from argus.nests.rewrite import reads, symbols_of
from argus.nests.terms import names_in

EpilogueOfTile = Callable[[Fragment, Sequence[IntLike]], Deferred]
"""An epilogue of parts with any number of axes."""
_ONE_ELEMENT = {f32: ld_global_b32, bf16: ld_global_b16, f16: ld_global_b16}


@frozen
class NestTail:
    """What becomes of sums. body: of a nest whose one reduction is `sums`.

    axes, others: of the nest's domain, those of a part and those around. wide: rows of matrices are multiples of 16
    bytes.
    """

    body: Expr
    sums: Reduce
    axes: tuple[Axis, ...]
    others: tuple[Axis, ...]
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, Any]
    wide: bool = True

    def __call__(self, around: Sequence[IntLike] = ()) -> EpilogueOfTile:
        """The epilogue at these coordinates along the other axes."""
        inner = {axis.symbol for axis in self.sums.axes}
        loaded = [each for each in reads(self.body) if not symbols_of(each) & inner]
        numbers = {**self.sizes, **{axis.name: at for axis, at in zip(self.others, around, strict=True)}}

        def epilogue(acc: Fragment, at: Sequence[IntLike]) -> Deferred:
            part = _Part(self, acc, at, numbers)
            held = {each: part.load(each) for each in loaded}
            return lambda: part.value(held)

        return epilogue


@frozen
class _Part:
    """A part of the sums. at: its coordinates among parts of its shape."""

    of: NestTail
    acc: Fragment
    at: Sequence[IntLike]
    numbers: Mapping[str, Any]

    def value(self, held: Mapping[Read, Fragment]) -> Fragment:
        parts = zip(self.of.axes, self.at, self.acc.shape, self.acc.index, strict=True)
        places = {axis.name: place * extent + own for axis, place, extent, own in parts}
        body = Body(lambda read: held[read].to(f32), {**self.numbers, **places}, lambda _: self.acc)
        return body.of(self.of.body)

    def load(self, read: Read) -> Fragment:
        """The elements of a read that the part needs."""
        tensor, used = self.of.tensors[read.tensor], {each.name for each in symbols_of(read)}
        axes = [k for k, axis in enumerate(self.of.axes) if axis.name in used]
        named, whole = [self.of.axes[k] for k in axes], len(axes) == len(self.of.axes)
        held = registers(tensor.dtype, self.acc.layout if whole else self.acc.layout.axis(*axes))
        if not axes:
            at = tuple(computed(each, self.numbers) for each in read.index)
            copy(tensor[at], held)
            return held
        view = self._view(read, named, tensor)
        shape, at = tuple(self.acc.shape[k] for k in axes), tuple(self.at[k] for k in axes)
        edge = 0.0 if read.outside is None else read.outside
        copy(view.tile(shape, at), held, via=self._load(read, named), edge=edge)
        return held

    def _view(self, read: Read, axes: Sequence[Axis], tensor: Tensor) -> Tensor:
        """The elements along these axes of the nest, at the coordinates along the others."""
        own = [axis.index for axis in axes]
        others = [each for each in read.index if each not in own]
        apart = not any(names_in(each) & {axis.name for axis in axes} for each in others)
        if read.outside is None and apart and [each for each in read.index if each in own] == own:
            return tensor[tuple(slice(None) if each in own else computed(each, self.numbers) for each in read.index)]

        def place(*at: IntLike) -> tuple[Any, ...]:
            numbers = {**self.numbers, **{axis.name: each for axis, each in zip(axes, at, strict=True)}}
            return tuple(computed(each, numbers) for each in read.index)

        return tensor.gather(tuple(computed(axis.extent, self.numbers) for axis in axes), place, outside=read.outside)

    def _load(self, read: Read, axes: Sequence[Axis]) -> Any:  # noqa: ANN401 reason: an instruction
        """One element at a time unless the read runs through rows that begin at multiples of 16 bytes."""
        plain = read.outside is None and read.index[-len(axes) :] == tuple(axis.index for axis in axes)
        tensor = self.of.tensors[read.tensor]
        return None if plain and self.of.wide and tensor.dtype == f32 else _ONE_ELEMENT[tensor.dtype]
