"""What every GEMM claims, whatever the machine: C = A @ B^T, each product once, each element written once."""

from __future__ import annotations

from attrs import frozen

from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    ceil_div,
    shared,
    tag,
)

_SPAN, _CHUNK = 128, 16
"""Bytes: the widest rows of a matrix in shared memory, and what rows in memory begin at multiples of."""


@frozen
class Contraction:
    """C[m, n] = sum over k of A[m, k] * B[n, k]: names, tags and the final claim.

    A is (M, K) and B (N, K), each as it lies in memory or turned: `A.T` of a tensor (K, M) is read where it lies.
    """

    A: Tensor
    B: Tensor
    C: Tensor

    def __attrs_post_init__(self) -> None:
        tag(self.A, lambda m, k: dict(m=m, k=k))
        tag(self.B, lambda n, k: dict(n=n, k=k))

    def aligned(self, *, stores: bool = True) -> None:
        """There is a k, and rows in memory begin at multiples of 16 bytes, as the copy engine wants them.

        stores: whether rows of C do, too.
        """
        assume(self.A.shape[1] >= 1)
        tensors = (self.A, self.B, self.C)[: 3 if stores else 2]
        rows = {(str(each.shape[each.fastest]), each.dtype.bits): each for each in tensors}
        assume(*(each.shape[each.fastest] % (_CHUNK * 8 // bits) == 0 for (_, bits), each in rows.items()))

    def tiles(self, bm: int, bn: int) -> tuple[Int, Int]:
        rows, columns = self.C.shape
        return ceil_div(rows, bm), ceil_div(columns, bn)

    def bounded(self, tiles: Int, depth: Int, stages: int) -> None:
        """Uses of a ring are counted in 32 bits: slots that are no power of two lose their order where that wraps."""
        if stages & (stages - 1):
            assume(tiles * (depth + 1) < 1 << 32)  # as often filled, and given back once more

    def complete(self, acc: Fragment) -> None:
        """Every product is in the sum, once."""
        assert_covers(acc.tag.k, 0, self.A.shape[1])

    def finish(self) -> None:
        """Element (m, n) holds row m of A against row n of B."""
        assert_written_once(self.C, lambda m, n: dict(m=m, n=n))


def slot_for(tensor: Tensor, rows: int, bk: int) -> Tensor:
    """Shared memory for a tile (rows, bk) of A or B, its elements side by side as they are in the tensor."""
    turned = tensor.fastest == 0
    span = min(_SPAN, (rows if turned else bk) * tensor.dtype.bits // 8)
    made = shared(tensor.dtype, (bk, rows) if turned else (rows, bk), swizzle=span)
    return made.T if turned else made


def part(tile: Tensor, i: Int, of: int) -> Tensor:
    """Part i of a tile (rows, bk), in whole spans where its rows in memory are rows of the operand's K."""
    across = tile.fastest == 0 and int(tile.shape[0]) // of % (_SPAN * 8 // tile.dtype.bits)
    return tile.part(1 if across else 0, i, of)
