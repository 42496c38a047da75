# verdict: refuted I39
"""The places of a block in integers of 64 bits, where those of the whole row are claimed."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, i8, i32, i64, kernel, load, registers, scalar, sm_90a, spread,
    where,
)

BY = spread((512,), threads=128, vector=1)


@kernel(target=sm_90a, threads=128)
def masks_and_places_of_a_block(X: Tensor["N", f32], L: Tensor["N", i64], B: Tensor["N", i8], P: Tensor["N", i64]):
    (N,) = X.shape
    (block,) = block_id((ceil_div(N, 512),))
    x, labels = (load(each.tile((512,), (block,)), BY, edge=0) for each in (X, L))
    place = registers(i32, BY)
    (n,) = x.index
    place[:] = n
    copy(where(x > 0.25, 1, 0, dtype=i8), B.tile((512,), (block,)), edge=0)
    copy(where(x > 0.25, place.to(i64), labels), P.tile((512,), (block,)), edge=0)
    assert_equals(B, lambda n: where(X[n] > 0.25, 1, 0))
    assert_equals(P, lambda n: where(X[n] > 0.25, n, scalar(L[n])))
