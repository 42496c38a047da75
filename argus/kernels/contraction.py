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
    tag,
)


@frozen
class Contraction:
    """C[m, n] = sum over k of A[m, k] * B[n, k]: names, tags and the final claim; says nothing of any machine."""

    A: Tensor
    B: Tensor
    C: Tensor

    def __attrs_post_init__(self) -> None:
        tag(self.A, lambda m, k: dict(m=m, k=k))
        tag(self.B, lambda n, k: dict(n=n, k=k))

    @property
    def aligned(self) -> int:
        """Elements of K in 16 bytes, of which the copy engine takes rows to be multiples."""
        return 128 // self.A.dtype.bits

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
