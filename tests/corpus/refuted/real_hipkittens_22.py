# verdict: refuted I4
"""After HipKittens#22: the block-to-head map is a bijection only if there are as many groups as heads per group."""

from argus.language import (
    Tensor, assert_written_once, bf16, block_id, ceil_div, copy, gfx942, global_load, global_store, kernel, registers,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def move(X: Tensor["8 M 64", bf16], Y: Tensor["8 M 64", bf16]):
    (_, M, _), by = X.shape, spread((8, 64), threads=64, vector=8)
    tag(X, lambda h, m, d: dict(h=h, m=m, d=d))
    x, m = block_id((8, ceil_div(M, 8)))
    head = x % 2 * 2 + x // 2  # two groups of four heads
    rows = registers(bf16, by)
    copy(X[head].tile((8, 64), (m, 0)), rows, via=global_load, edge=0)
    vmem.wait(0)
    copy(rows, Y[head].tile((8, 64), (m, 0)), via=global_store, edge=0)
    assert_written_once(Y, lambda h, m, d: dict(h=h, m=m, d=d))
