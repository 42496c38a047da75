# verdict: rejected E216
"""A role assigns a register tile that belongs to the whole block."""

from argus.language import (
    Ring, Tensor, bf16, bulk, copy, elected, f32, kernel, mma, registers, role, shared, sm_90a, spread, sync, tag,
    tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=256)
def probe(A: Tensor["M K", bf16], C: Tensor["M N", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    x = registers(f32, spread((256, 64), threads=256, vector=8))
    with role("math", warpgroups(0, 1)):
        x[:] = 0.0
