"""Long rows that several passes need: the shared memory of a cluster of blocks holds a row, so it is read once.

What a nest reduces is computed from the held elements, in order; so is what it stores of each element.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal

from attrs import define, field

from argus.kernels.nests.bodies import FOLDS
from argus.kernels.nests.fragments import TYPES, Body
from argus.kernels.nests.reduction_shapes import Shape, shape_of
from argus.kernels.nests.tiles import may_be_in_order, power_of_two, vector_for
from argus.kernels.schedules.rows import Block, Chunks, Rows
from argus.language import Fragment, Int, IntLike, Tensor, assume, f32, replicated, where
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import Axis, Expr, Nest, Read, Reduce
from argus.nests.rewrite import reads
from argus.nests.terms import names_in

_LARGEST, _MOST_ROWS = 1 << 40, 1 << 27
"""Elements of a tensor, so that offsets in bytes fit 64 bits; rows, of which a grid has a cluster each."""
_SHORTEST = 1 << 15
"""Elements that the registers of one block hold."""
_BYTES, _BYTES_OF_SEVERAL = 220 << 10, 36 << 10
"""Of the shared memory of a block, and of each of six that a multiprocessor has."""
_MOST_BLOCKS, _MOST_THREADS = 8, 512
_EACH, _TOGETHER = 32, 16
"""Elements of a thread, at least, and those that it computes at a time."""
Kind = Literal["row", "column", "one"]
"""What a read is of: elements of the rows in their places, numbers of the columns, or one number for a row."""


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Rows | None:
    """The configuration for reductions along long rows and what is computed of each element; None for other nests."""
    shape = shape_of(form.nests)
    if shape is None or not _is_of_rows(form, shape):
        return None
    found = _reads(form.nests)
    rows = {each.tensor: each.dtype for each in found if _kind(each, form, shape) == "row"}
    if not rows or not {each.dtype for each in found} <= set(TYPES):
        return None
    *outer, length = [int(computed(axis.extent, sizes)) for axis in form.nests[0].domain]
    if length * len(rows) <= _SHORTEST or outer[-1] > _MOST_ROWS or not may_be_in_order(outer):
        return None
    widest = max(TYPES[each.dtype].bits // 8 for each in found)
    return _config(length, widest, sum(TYPES[each].bits // 8 for each in rows.values()))


def _reads(nests: Sequence[Nest]) -> list[Read]:
    return reads(*(nest.body for nest in nests))


def _is_of_rows(form: Canonical, shape: Shape) -> bool:
    """Whether all is along rows, the last axis, and each read of one of the kinds."""
    domain = form.nests[0].domain
    if shape.along != domain[-1:] or not domain[:-1] or not {each.op for each in shape.of} <= set(FOLDS):
        return False
    if any(len(of.axes) != 1 or of.axes[0].extent is not domain[-1].extent for of in shape.of):
        return False
    return all(_kind(each, form, shape) for each in _reads(form.nests))


def _kind(read: Read, form: Canonical, shape: Shape) -> Kind | None:
    """The kind of a read; None for one of another."""
    *outer, last = form.nests[0].domain
    along = (last, *(axis for of in shape.of for axis in of.axes))
    if read.outside is not None:
        return None
    if not {axis.name for axis in along} & {name for index in read.index for name in names_in(index)}:
        return "one"
    lengths = {each.type.name: each.type.shape[-1] for each in form.parameters}
    if lengths[read.tensor] is not last.extent or read.index[-1] not in [axis.index for axis in along]:
        return None
    before = list(read.index[:-1])
    return "row" if before == [axis.index for axis in outer] else None if before else "column"


def _config(length: int, wide: int, bytes_of: int) -> Rows | None:
    """As many blocks as leave room for others beside them, or as a cluster has; None if these do not hold a row.

    wide: bytes of the widest element. bytes_of: of one element of each tensor whose rows are held.
    """
    vector = vector_for(length, wide)
    fitting = (n for n in (1, 2, 4, 8) if -(-length // n) * bytes_of <= _BYTES_OF_SEVERAL)
    blocks = next(fitting, _MOST_BLOCKS)
    own = -(-length // blocks)
    threads = min(_MOST_THREADS, max(128, power_of_two(-(-own // _EACH))))
    vectors = -(-own // (threads * vector))
    parts = -(-vectors * vector // _TOGETHER)
    together = -(-vectors // parts)
    whole = length == blocks * threads * vector * together * parts
    found = Rows(threads, 1, vector, parts * together, staged=True, blocks=blocks, whole=whole, together=together)
    return found if found.width * bytes_of <= _BYTES else None


def long_rows(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Rows) -> None:
    """Store the outputs, each computed from reductions along its row."""
    for tensor in tensors.values():
        assume(prod(tensor.shape, start=1) <= _LARGEST)
    extents = [computed(axis.extent, sizes) for axis in form.nests[0].domain]
    *around, rows, length = extents
    assume(rows <= _MOST_ROWS)
    block = Block(cfg, rows, length, around=around)
    shape = shape_of(form.nests)
    assert shape is not None
    made = _Rows(form, shape, tensors, sizes, block)
    for each in shape.of:
        made.find(each)
    block.each(made.store)


@define(eq=False)
class _Rows:
    """The row of a cluster. found: what its reductions are, in all threads."""

    form: Canonical
    shape: Shape
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, Any]
    block: Block
    found: dict[Expr, Fragment] = field(factory=dict[Expr, Fragment], init=False)
    held: dict[str, Chunks] = field(factory=dict[str, Chunks], init=False)
    loaded: dict[Read, Fragment] = field(factory=dict[Read, Fragment], init=False)

    def __attrs_post_init__(self) -> None:
        for each in _reads(self.form.nests):
            kind, tensor = _kind(each, self.form, self.shape), self.tensors[each.tensor]
            if kind == "row" and each.tensor not in self.held:
                self.held[each.tensor] = self.block.rows(self._rows(tensor))
            elif kind == "column":
                self.held[each.tensor] = self.block.columns(tensor)

    def _rows(self, tensor: Tensor) -> Tensor:
        """The rows of a tensor at the block's place along the axes around them."""
        return tensor[tuple(self.block.outer)] if self.block.outer else tensor

    def find(self, of: Reduce) -> None:
        """Compute a reduction, in all threads."""
        combine, neutral = FOLDS[of.op]

        def part(chunk: IntLike) -> Fragment:
            value: Fragment = self._body(of.axes[0], chunk).of(of.body)
            return value if self.block.cfg.whole else where(self.block.within(value, chunk), value, neutral)

        self.found[of] = self.block.of_held(part, combine)

    def store(self, chunk: IntLike) -> None:
        for nest in self.form.nests:
            value = self._body(nest.domain[-1], chunk).of(nest.body)
            self.block.store(value, self._rows(self.tensors[nest.output]), chunk)

    def _body(self, along: Axis, chunk: IntLike) -> Body:
        """The values of a chunk of the row, by the coordinate of its elements."""
        tile = next(iter(self.held.values()))(chunk)
        numbers = {**self._outer, along.name: self.block.tile(chunk) * self.block.width + tile.index[1]}
        return Body(lambda read: self._load(read, chunk), {**self.sizes, **numbers}, self.found.__getitem__)

    @property
    def _outer(self) -> dict[str, Int]:
        at = (*self.block.outer, self.block.at)
        return {axis.name: number for axis, number in zip(self.form.nests[0].domain, at, strict=False)}

    def _load(self, read: Read, chunk: IntLike) -> Fragment:
        if read.tensor in self.held:
            return self.held[read.tensor](chunk)
        if read not in self.loaded:
            at = tuple(computed(each, {**self.sizes, **self._outer}) for each in read.index)
            element = self.tensors[read.tensor][at]
            self.loaded[read] = self.block.load(element, replicated(self.block.cfg.threads)).to(f32)
        return self.loaded[read]
