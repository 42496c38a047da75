# verdict: refuted I39
"""The gradient of attention's keys, with the log-sum-exp scaled as the scores are."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp2, f32, kernel, load, loop, registers, sm_90a, spread,
    total, where,
)

BY = spread((64,), threads=64, vector=1)


def number(of, *at):
    """An element of a tensor, in every thread."""
    return load(of.gather((64,), lambda _: at), BY)


@kernel(target=sm_90a, threads=64)
def gradient_of_keys_scaled_within(
    Q: Tensor["H S 2", f32], K: Tensor["G T 2", f32], V: Tensor["G T 2", f32], dO: Tensor["H S 2", f32],
    L: Tensor["H S", f32], Delta: Tensor["H S", f32], scale: Tensor["1", f32], dK: Tensor["G T 2", f32],
):
    (H, S, _), (G, T, _) = Q.shape, K.shape
    assume(G >= 1, H % G == 0, S >= 1, H >= 1, H < 1 << 10, S < 1 << 10, T < 1 << 10)
    n, g, column = block_id((ceil_div(T, 64), G, 2))
    c = number(scale, 0)
    out, score, product = registers(f32, BY), registers(f32, BY), registers(f32, BY)
    out[:] = 0.0
    for i in loop(H // G * S):
        h, q = g * (H // G) + i // S, i % S
        score[:], product[:] = 0.0, 0.0
        for d in range(2):
            score[:] = score + load(K[g].T[d].tile((64,), (n,)), BY, edge=0) * number(Q, h, q, d)
            product[:] = product + load(V[g].T[d].tile((64,), (n,)), BY, edge=0) * number(dO, h, q, d)
        (t,) = score.index
        weight = where(64 * n + t <= q + T - S, exp2((score - number(L, h, q)) * c), 0.0)
        out[:] = out + weight * (product - number(Delta, h, q)) * number(Q, h, q, column)
    copy(out * c, dK[g].T[column].tile((64,), (n,)), edge=0)

    def change(h, g, q, t):
        score = total(lambda d: K[g, t, d] * Q[h, q, d], over=2)
        product = total(lambda d: V[g, t, d] * dO[h, q, d], over=2)
        return where(t <= q + T - S, exp2(score * scale[0] - L[h, q]), 0) * (product - Delta[h, q])

    def head(g, j):
        return g * (H // G) + j

    assert_equals(
        dK,
        lambda g, t, d: scale[0]
        * total(lambda j, q: change(head(g, j), g, q, t) * Q[head(g, j), q, d], over=(H // G, S)),
    )
