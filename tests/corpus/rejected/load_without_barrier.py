# verdict: rejected E208
"""A TMA load names no mbarrier to signal, so nothing could wait for it."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    tile = shared(bf16, (64, 64), swizzle=128)
    with role("load", warpgroup(0).elected):
        copy(A.tile((64, 64), (0, 0)), tile, via=tma, edge=0)
