"""C = A @ B^T: bf16 in, fp32 accumulation, bf16 out, for every M, N and K."""

from __future__ import annotations

from attrs import frozen

from argus.language import (
    Fragment,
    Int,
    Swizzle,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    buffer_load,
    ceil_div,
    copy,
    ds_read_b128,
    ds_write_b128,
    eq,
    f32,
    gfx942,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    shared,
    spread,
    sync,
    tag,
    vmem,
    when,
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

    def tiles(self, bm: int, bn: int) -> tuple[Int, Int]:
        rows, columns = self.C.shape
        return ceil_div(rows, bm), ceil_div(columns, bn)

    def complete(self, acc: Fragment) -> None:
        """Every product is in the sum, once."""
        assert_covers(acc.tag.k, 0, self.A.shape[1])

    def finish(self) -> None:
        """Element (m, n) holds row m of A against row n of B."""
        assert_written_once(self.C, lambda m, n: dict(m=m, n=n))


@frozen
class Cdna3:
    """MI300X: a bm x bn tile by four waves, bk of K at a time, two LDS buffers, the next tile prefetched."""

    bm: int = 128
    bn: int = 128
    bk: int = 32
    target = gfx942
    threads = 256


def cdna3_double_buffer(problem: Contraction, cfg: Cdna3) -> None:
    """One barrier a step: while the waves multiply from one LDS buffer, the other is refilled from registers."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    assume(A.shape[1] >= 1, A.shape[1] % 8 == 0)  # a product to sum; rows of 16-byte vectors
    assume(A.shape[0] * A.shape[1] < 1 << 31, B.shape[0] * B.shape[1] < 1 << 31)  # a buffer descriptor spans 4 GiB
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(bm, bn), k=bk, k_run=8)
    rows_of_64_bytes = Swizzle(2, 3, 3)  # 16-byte chunk ^= row / 2 % 4: free of conflicts for 32-row fragments
    lds_a = shared(bf16, (2, bm, bk), swizzle=rows_of_64_bytes, banks=1)
    lds_b = shared(bf16, (2, bn, bk), swizzle=rows_of_64_bytes, banks=1)
    m, n = block_id(problem.tiles(bm, bn))
    depth = ceil_div(A.shape[1], bk)
    next_a = registers(bf16, spread((bm, bk), threads=cfg.threads, vector=8))
    next_b = registers(bf16, spread((bn, bk), threads=cfg.threads, vector=8))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)

    def prefetch(k: Int | int) -> None:
        copy(A.tile((bm, bk), (m, k)), next_a, via=buffer_load, edge=0)
        copy(B.tile((bn, bk), (n, k)), next_b, via=buffer_load, edge=0)

    def stage(k: Int | int) -> None:
        vmem.wait(0)
        copy(next_a, lds_a[k % 2], via=ds_write_b128)
        copy(next_b, lds_b[k % 2], via=ds_write_b128)
        lds.wait(0)

    prefetch(0)
    stage(0)
    sync()
    for k in loop(depth):
        with when(k + 1 < depth):
            prefetch(k + 1)
        copy(lds_a[k % 2], a, via=ds_read_b128)
        copy(lds_b[k % 2], b, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
        with when(k + 1 < depth):
            stage(k + 1)
        sync()
    problem.complete(acc)
    copy(acc.to(bf16), C.tile((bm, bn), (m, n)), edge=0)


@kernel(configs={"cdna3": Cdna3()})
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Cdna3) -> None:
    """The family: one claim, a schedule a configuration."""
    problem = Contraction(A, B, C)
    cdna3_double_buffer(problem, cfg)
    problem.finish()
