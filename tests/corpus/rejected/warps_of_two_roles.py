# verdict: rejected E202
"""Two roles claim warpgroup 0."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    with role("load", warpgroup(0).elected, registers=40):
        pass
    with role("math", warpgroups(0, 1), registers=232):
        pass
