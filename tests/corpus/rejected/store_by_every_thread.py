# verdict: rejected E215
"""All threads of a warpgroup issue one bulk store: it needs an elected thread."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    box = shared(bf16, (64, 64), swizzle=128)
    with role("math", warpgroup(1)):
        copy(box, C.tile((64, 64), (0, 0)), via=tma, edge=0)
        bulk.commit()
        bulk.wait(0)
