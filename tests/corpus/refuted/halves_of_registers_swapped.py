# verdict: refuted I4
"""The two halves of a register tile are stored at each other's position."""

from argus.language import Tensor, assert_written_once, bf16, copy, gfx942, kernel, load, spread, tag, vmem


@kernel(target=gfx942, threads=64)
def swapped(A: Tensor["64 64", bf16], C: Tensor["64 64", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    x = load(A, spread((64, 64), threads=64, vector=8))
    vmem.wait(0)
    for j in range(2):
        copy(x.tile((32, 64), (1 - j, 0)), C.tile((32, 64), (j, 0)))
    assert_written_once(C, lambda m, k: dict(m=m, k=k))
