"""What every GEMM claims, whatever the machine: C = A @ B^T, each product once, each element written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul

from attrs import frozen

from argus.language import (
    Fragment,
    Int,
    IntLike,
    Order,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    block_id,
    by_rows,
    ceil_div,
    shared,
    tag,
)

_AXES = 2
_SPAN, _CHUNK = 128, 16
"""Bytes: the widest rows of a matrix in shared memory, and what rows in memory begin at multiples of."""


@frozen
class Contraction:
    """C[m, n] = sum over k of A[m, k] * B[n, k]: names, tags and the final claim.

    A is (M, K) and B (N, K), each as it lies in memory or turned: `A.mT` of a tensor (K, M) is read where it lies. With
    an axis of C ahead of these, C[z] is the product of A[z] and B[z]; of an operand without that axis, always of it.
    """

    A: Tensor
    B: Tensor
    C: Tensor

    def __attrs_post_init__(self) -> None:
        _named(self.A, lambda m, k: dict(m=m, k=k))
        _named(self.B, lambda n, k: dict(n=n, k=k))

    def aligned(self, *, stores: bool = True) -> None:
        """There is a k, and rows in memory begin at multiples of 16 bytes, as the copy engine wants them.

        stores: whether rows of C do, too.
        """
        assume(self.A.shape[-1] >= 1)
        tensors = (self.A, self.B, self.C)[: 3 if stores else 2]
        rows = {(str(each.shape[each.fastest]), each.dtype.bits): each for each in tensors}
        assume(*(each.shape[each.fastest] % (_CHUNK * 8 // bits) == 0 for (_, bits), each in rows.items()))

    def addressed(self) -> None:
        """Bytes of many matrices are counted in 64 bits, as two extents of one matrix are by themselves."""
        for tensor in (self.A, self.B, self.C):
            if len(tensor.shape) > _AXES:
                first, *others = tensor.shape
                assume(reduce(mul, others, first) < 1 << 60)

    def tiles(self, bm: int, bn: int) -> tuple[Int, ...]:
        """Along the rows and columns of C, and in how many products."""
        *batch, rows, columns = self.C.shape
        return ceil_div(rows, bm), ceil_div(columns, bn), *batch

    def count(self, bm: int, bn: int) -> Int:
        first, *others = self.tiles(bm, bn)
        return reduce(mul, others, first)

    def order(self, inner: Order = by_rows) -> Order:
        """That order of the tiles of a product; one product after the other."""
        return inner if len(self.C.shape) == _AXES else _one_by_one(inner)

    def tile_of_block(self, bm: int, bn: int, order: Order) -> tuple[Int, ...]:
        """The tile that this block has alone, of as many blocks as there are tiles."""
        count = self.count(bm, bn)
        assume(count < 1 << 24)
        (number,) = block_id((count,))
        return tuple(0 * number + each for each in order(number, self.tiles(bm, bn)))

    def bounded(self, tiles: Int, depth: Int, stages: int) -> None:
        """Uses of a ring are counted in 32 bits: slots that are no power of two lose their order where that wraps."""
        if stages & (stages - 1):
            assume(tiles * (depth + 1) < 1 << 32)  # as often filled, and given back once more

    def complete(self, acc: Fragment) -> None:
        """Every product is in the sum, once."""
        assert_covers(acc.tag.k, 0, self.A.shape[-1])

    def finish(self) -> None:
        """Element (m, n) holds row m of A against row n of B."""
        if len(self.C.shape) == _AXES:
            assert_written_once(self.C, lambda m, n: dict(m=m, n=n))
        else:
            assert_written_once(self.C, lambda z, m, n: dict(z=z, m=m, n=n))


def _named(tensor: Tensor, names: Callable[[Int, Int], dict[str, Int]]) -> None:
    """The tags of an operand, with the number of the product if each has one of its own."""
    if len(tensor.shape) == _AXES:
        tag(tensor, names)
    else:
        tag(tensor, lambda z, row, k: dict(z=z) | names(row, k))


def one_of(tensor: Tensor, z: Sequence[Int]) -> Tensor:
    """The matrix of product z; of a matrix for all products, that."""
    return tensor if len(tensor.shape) == _AXES else tensor[tuple(z)]


def _one_by_one(inner: Order) -> Order:
    """The tiles of each product in the order given, product after product."""

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[IntLike, ...]:
        rows, columns, _ = counts
        return *inner(number % (rows * columns), (rows, columns)), number // (rows * columns)

    return order


def slot_for(tensor: Tensor, rows: int, bk: int) -> Tensor:
    """Shared memory for a tile (rows, bk) of A or B, its elements side by side as they are in the tensor."""
    turned = is_turned(tensor)
    span = min(_SPAN, (rows if turned else bk) * tensor.dtype.bits // 8)
    made = shared(tensor.dtype, (bk, rows) if turned else (rows, bk), swizzle=span)
    return made.T if turned else made


def is_turned(tensor: Tensor) -> bool:
    """Whether neighbours in memory are neighbours along the last axis but one."""
    return tensor.fastest != len(tensor.shape) - 1


def part(tile: Tensor, i: Int, of: int) -> Tensor:
    """Part i of a tile (rows, bk), in whole spans where its rows in memory are rows of the operand's K."""
    across = is_turned(tile) and int(tile.shape[0]) // of % (_SPAN * 8 // tile.dtype.bits)
    return tile.part(1 if across else 0, i, of)
