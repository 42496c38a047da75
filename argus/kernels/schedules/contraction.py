"""The claims of every GEMM, for any target: C = A @ B^T, each product once, each element written once."""

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
    Value,
    assert_covers,
    assert_written_once,
    assume,
    block_id,
    by_rows,
    ceil_div,
    elements,
    shared,
    tag,
    total,
)

_AXES = 2
_SPAN, _CHUNK = 128, 16
"""In bytes: the widest swizzle span, and the alignment of rows for TMA."""


@frozen
class Contraction:
    """C[m, n] = sum over k of A[m, k] * B[n, k]: names, tags and the final claim.

    A is (M, K) and B is (N, K); either may be a transposed view, such as `A.mT` of a tensor (K, M), which is read in
    place. If C has a leading batch axis, C[z] is the product of A[z] and B[z]; an operand without that axis is shared
    by all products. depth: A and B are
    copies with longer rows, which have the tags of what was copied and are 0 from k = depth on; by default, they are
    not. tagged: sums and results are claimed by tags; else a formula of the caller's is all that is claimed.
    """

    A: Tensor
    B: Tensor
    C: Tensor
    depth: IntLike | None = None
    tagged: bool = True

    def __attrs_post_init__(self) -> None:
        if self.depth is None and self.tagged:
            _named(self.A, lambda m, k: dict(m=m, k=k))
            _named(self.B, lambda n, k: dict(n=n, k=k))

    def assume_aligned(self, *, stores: bool = True, align: int = _CHUNK) -> None:
        """Assume K >= 1, and that rows in memory begin at multiples of `align` bytes: 16, as TMA requires, or fewer.

        stores: also assume it of C.
        """
        assume(self.A.shape[-1] >= 1)
        tensors = (self.A, self.B, self.C)[: 3 if stores else 2]
        rows = {(str(each.shape[each.fastest]), each.dtype.bits): each for each in tensors}
        assume(*(each.shape[each.fastest] % (align * 8 // bits) == 0 for (_, bits), each in rows.items()))

    def assume_addressable(self) -> None:
        """Assume that addresses within a batch of matrices fit 64 bits; within one matrix they always do."""
        for tensor in (self.A, self.B, self.C):
            if len(tensor.shape) > _AXES:
                first, *others = tensor.shape
                assume(reduce(mul, others, first) < 1 << 60)

    def tiles(self, bm: int, bn: int) -> tuple[Int, ...]:
        """Number of tiles along the rows and columns of C, and number of products."""
        *batch, rows, columns = self.C.shape
        return ceil_div(rows, bm), ceil_div(columns, bn), *batch

    def count(self, bm: int, bn: int) -> Int:
        first, *others = self.tiles(bm, bn)
        return reduce(mul, others, first)

    def order(self, inner: Order = by_rows) -> Order:
        """The given order of tiles within a product, extended to a batch: one product after the other."""
        return inner if len(self.C.shape) == _AXES else _one_by_one(inner)

    def tile_of_block(self, bm: int, bn: int, order: Order) -> tuple[Int, ...]:
        """The tile of this block, in a grid with one block per tile."""
        count = self.count(bm, bn)
        assume(count < 1 << 24)
        (number,) = block_id((count,))
        return tuple(0 * number + each for each in order(number, self.tiles(bm, bn)))

    def assume_ring_bounds(self, tiles: Int, depth: Int, stages: int) -> None:
        """Assume that the 32-bit use count of a ring does not wrap, unless the number of stages is a power of two."""
        if stages & (stages - 1):
            assume(tiles * (depth + 1) < 1 << 32)  # fills, and one more release per tile

    def complete(self, acc: Fragment) -> None:
        """Claim that the accumulator sums every product along K exactly once."""
        if self.tagged:
            assert_covers(acc.tag.k, 0, self.A.shape[-1] if self.depth is None else self.depth)

    def element(self, m: Int, n: Int) -> Value:
        """In a formula, what C[m, n] is in a product of matrices."""
        return element_of(self.A, self.B, m, n)

    def finish(self) -> None:
        """Claim that each element (m, n) of C is written once, with row m of A and row n of B."""
        if not self.tagged:
            return
        if len(self.C.shape) == _AXES:
            assert_written_once(self.C, lambda m, n: dict(m=m, n=n))
        else:
            assert_written_once(self.C, lambda z, m, n: dict(z=z, m=m, n=n))


def _named(tensor: Tensor, names: Callable[[Int, Int], dict[str, Int]]) -> None:
    """Set the tags of an operand; with its batch index z if it has a batch axis."""
    if len(tensor.shape) == _AXES:
        tag(tensor, names)
    else:
        tag(tensor, lambda z, row, k: dict(z=z) | names(row, k))


def element_of(a: Tensor, b: Tensor, m: Int, n: Int) -> Value:
    """In a formula, an element of the product of matrices (M, K) and (N, K): sum over k of a[m, k] * b[n, k]."""
    left, right = elements(a), elements(b)
    return total(lambda k: left(m, k) * right(n, k), over=a.shape[-1])


def matrix_of(tensor: Tensor, z: Sequence[Int]) -> Tensor:
    """The matrix of product z; the tensor itself if all products share it."""
    return tensor if len(tensor.shape) == _AXES else tensor[tuple(z)]


def _one_by_one(inner: Order) -> Order:
    """Order tiles of a batch product by product, within each product as given."""

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[IntLike, ...]:
        rows, columns, _ = counts
        return *inner(number % (rows * columns), (rows, columns)), number // (rows * columns)

    return order


def staggered(k: IntLike, depth: IntLike, super_tile: IntLike, starts: int) -> IntLike:
    """The tile of K of iteration k of `depth`: super-tiles of C begin at `starts` different ones, and wrap around.

    Blocks of one super-tile begin together: what they share is loaded once into their L2 cache. Without starts, all
    blocks begin at tile 0.
    """
    return (k + super_tile % starts) % depth if starts else k


def slot_for(tensor: Tensor, rows: int, bk: int) -> Tensor:
    """Shared memory for a tile (rows, bk) of A or B, contiguous along the same axis as the tensor."""
    transposed = is_transposed(tensor)
    span = min(_SPAN, (rows if transposed else bk) * tensor.dtype.bits // 8)
    made = shared(tensor.dtype, (bk, rows) if transposed else (rows, bk), swizzle=span)
    return made.T if transposed else made


def is_transposed(tensor: Tensor) -> bool:
    """Whether the matrix is column-major: contiguous along the last axis but one."""
    return tensor.fastest != len(tensor.shape) - 1


def part(tile: Tensor, i: Int, of: int) -> Tensor:
    """Part i of a tile (rows, bk); along K if a column-major tile's parts of rows were not whole swizzle spans."""
    across = is_transposed(tile) and int(tile.shape[0]) // of % (_SPAN * 8 // tile.dtype.bits)
    return tile.part(1 if across else 0, i, of)
