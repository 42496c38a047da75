# verdict: refuted I19
"""TMA boxes begin 8 bytes into a 16-byte chunk: misaligned."""

from argus.language import (
    Ring, Tensor, assert_written_once, assume, ceil_div, copy, eq, f32, kernel, load, loop, role, shared, sm_90a,
    spread, tag, tma, warpgroup,
)


@kernel(target=sm_90a, threads=256)
def shifted(X: Tensor["M K", f32], Y: Tensor["N", f32]):
    (M, K), (N,) = X.shape, Y.shape
    tag(X, lambda m, k: dict(m=m, k=k))
    assume(M >= 1, N >= 1, N % 128 == 0, eq(K, N + 4), N < 1 << 20)
    ring = Ring(2, x=shared(f32, (1, 128)))
    with role("load", warpgroup(0).elected, registers=40):
        for n in loop(ceil_div(N, 128)):
            with ring.fill() as slot:
                copy(X.gather((1, 128), lambda i, j, n=n: (i, 128 * n + j + 2)), slot.x, via=tma, edge=0)
        ring.finish()
    with role("math", warpgroup(1)):
        for n in loop(ceil_div(N, 128)):
            slot = ring.wait()
            held = load(slot.x[0], spread((128,), threads=128, vector=1))
            ring.release()
            copy(held, Y.tile((128,), (n,)), edge=0)
    assert_written_once(Y, lambda n: dict(m=0, k=n + 2))
