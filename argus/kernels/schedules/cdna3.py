"""The GEMM schedules on MI300X: double buffer and ping-pong."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, staggered
from argus.language import (
    Int,
    RegisterFile,
    Swizzle,
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
    lds,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_bf16,
    mma,
    priority,
    registers,
    remap_xcd,
    shared,
    spread,
    sync,
    vmem,
    wave,
    when,
    zeros,
)


@frozen
class Cdna3:
    """MI300X: a bm x bn tile by four waves, bk of K per iteration, two LDS buffers, the next tile prefetched.

    agprs: accumulators are in AccVGPRs. stagger: as in `staggered`.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 32
    agprs: bool = False
    stagger: int = 0
    target = gfx942
    threads = 256


def cdna3_double_buffer(problem: Contraction, cfg: Cdna3) -> None:
    """One barrier per iteration: while the waves multiply from one LDS buffer, the other is refilled from registers."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    assume(A.shape[1] >= 1, A.shape[1] % 8 == 0)  # a product to sum; rows of 16-byte vectors
    assume(A.shape[0] * A.shape[1] <= (1 << 31) - 8, B.shape[0] * B.shape[1] <= (1 << 31) - 8)  # a descriptor's span
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
    acc = registers(f32, mm.C, file=register_file(cfg.agprs))

    def prefetch(iteration: Int | int) -> None:
        k = staggered(iteration, depth, m, cfg.stagger)
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


@frozen
class Cdna3PingPong:
    """MI300X: a bm x bn tile by two rows of four waves, bk of K per iteration, one LDS buffer.

    The second row runs one barrier behind the first, so that one multiplies while the other moves data.

    Techniques that can be switched off. group: rows of a super-tile that one XCD takes, 0 for the hardware's order.
    mfma: rows of the MFMA instruction, 16 or 32. skew: the second row runs behind. priority: raise the priority of
    waves that multiply. guarded: bounds are checked by the buffer descriptor instead of masks. agprs: accumulators are
    in AccVGPRs. stagger: as in `staggered`.
    """

    bm: int = 256
    bn: int = 256
    bk: int = 64
    group: int = 4
    mfma: int = 16
    skew: bool = True
    priority: bool = True
    guarded: bool = True
    agprs: bool = False
    stagger: int = 0
    target = gfx942
    threads = 512


def cdna3_pingpong(problem: Contraction, cfg: Cdna3PingPong) -> None:  # noqa: PLR0915 reason: a kernel reads from top to bottom
    """Four phases of loads and four of MFMAs per iteration, with barriers between them, alternate between the two rows.

    A wave multiplies two halves of bm / 2 rows, each by two slices of bk / 2: registers for one slice are enough.
    """
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk, half, deep = cfg.bm, cfg.bn, cfg.bk, cfg.bm // 2, cfg.bk // 2
    assume(A.shape[1] >= 1, A.shape[1] % 8 == 0)  # a product to sum; rows of 16-byte vectors
    assume(A.shape[0] * A.shape[1] <= (1 << 31) - 8, B.shape[0] * B.shape[1] <= (1 << 31) - 8)  # a descriptor's span
    atom, via = _INSTRUCTIONS[cfg.mfma], buffer_load if cfg.guarded else None
    mm = mfma(atom).over(waves=(2, 4), tile=(half, bn), k=deep, k_run=8)
    rows_of_128_bytes = Swizzle(3, 3, 3)  # 16-byte chunk ^= row % 8: free of conflicts for 16-row fragments
    lds_a = shared(bf16, (2, half, bk), swizzle=rows_of_128_bytes, banks=1)
    lds_b = shared(bf16, (bn, bk), swizzle=rows_of_128_bytes, banks=1)
    counts = problem.tiles(bm, bn)
    m, n = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    depth = ceil_div(A.shape[1], bk)
    next_a = registers(bf16, spread((bm, bk), threads=cfg.threads, vector=8))
    next_b = registers(bf16, spread((bn, bk), threads=cfg.threads, vector=8))
    acc = [zeros(f32, mm.C, file=register_file(cfg.agprs)) for _ in range(2)]
    a = [registers(bf16, mm.A) for _ in range(2)]
    b = registers(bf16, mm.B)

    def prefetch(iteration: Int | int) -> None:
        k = staggered(iteration, depth, m // max(1, cfg.group), cfg.stagger)
        copy(A.tile((bm, bk), (m, k)), next_a, via=via, edge=0)
        copy(B.tile((bn, bk), (n, k)), next_b, via=via, edge=0)

    def stage() -> None:
        vmem.wait(0)
        copy(next_a, lds_a.reshape(bm, bk), via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        lds.wait(0)

    def fetch_b(s: int) -> None:
        copy(lds_b.tile((bn, deep), (0, s)), b, via=ds_read_b128)

    def fetch_a(i: int, s: int) -> None:
        copy(lds_a[i].tile((half, deep), (0, s)), a[i], via=ds_read_b128)
        lds.wait(0)  # before the barrier that lets the other row overwrite what was read, not after it

    def multiply(i: int) -> None:
        sync()
        if cfg.priority:
            with priority(1):
                mma(mm, acc[i], a[i], b)
        else:
            mma(mm, acc[i], a[i], b)
        sync()

    prefetch(0)
    stage()
    sync()
    row = wave // 4
    if cfg.skew:
        with when(eq(row, 1)):
            sync()
    for k in loop(depth):
        fetch_b(0)
        fetch_a(0, 0)
        with when(k + 1 < depth):
            prefetch(k + 1)
        multiply(0)
        fetch_a(1, 0)
        multiply(1)
        fetch_b(1)
        fetch_a(0, 1)
        fetch_a(1, 1)  # the whole tile is now in registers
        multiply(0)
        with when(k + 1 < depth):
            stage()  # one barrier after both rows have read
        multiply(1)  # and one before either reads again
    if cfg.skew:
        with when(eq(row, 0)):
            sync()
    for i in range(2):
        problem.complete(acc[i])
        copy(acc[i].to(bf16), C.tile((half, bn), (2 * m + i, n)), edge=0)


def register_file(agprs: bool) -> RegisterFile:
    """The register file of the accumulators."""
    return "accumulation" if agprs else "any"


_INSTRUCTIONS = {16: mfma_f32_16x16x16_bf16, 32: mfma_f32_32x32x8_bf16}
