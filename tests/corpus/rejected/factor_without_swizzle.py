# verdict: rejected E218
"""A shared-memory operand has rows of 128 bytes and no swizzle, a layout that wgmma cannot describe."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    mm = wgmma(bf16, n=64)
    tile = shared(bf16, (64, 64))
    with role("math", warpgroup(0)):
        acc = registers(f32, mm.C)
        mma(mm, acc, tile, tile, init=True)
        wgmma.wait(0)
