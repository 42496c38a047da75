# verdict: rejected E219
"""The load role, which issues no wgmma, waits for one."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    ring = Ring(2, a=shared(bf16, (64, 64), swizzle=128))
    with role("load", warpgroup(0).elected):
        with ring.fill() as slot:
            copy(A.tile((64, 64), (0, 0)), slot.a, via=tma, edge=0)
        wgmma.wait(0)
    with role("math", warpgroup(1)):
        ring.wait()
        ring.release()
