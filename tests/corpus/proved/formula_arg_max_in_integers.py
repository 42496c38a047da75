# verdict: proved
"""The lowest place of the greatest element of each row, as an integer: a great one stands for no place."""

from math import inf

from argus.language import (
    Tensor, all_to_each, argmax, assert_equals, assume, block_id, ceil_div, copy, f32, first_lane, first_thread, i32,
    kernel, load, loop, maximum_nan, minimum, registers, shared, sm_90a, spread, sync, thread, warp, where,
)

THREADS, CHUNK = 64, 256
NONE = 2147483647


def across_block(x, op, dtype):
    """The fold of one value per thread; every thread gets the result."""
    box = shared(dtype, (THREADS // 32,))
    copy(x.fold(0, op, within=warp), box, by=first_lane)
    sync()
    return load(box, all_to_each(THREADS)).fold(0, op, within=thread)


@kernel(target=sm_90a, threads=THREADS)
def arg_max_in_integers(X: Tensor["R N", f32], I: Tensor["R", i32]):
    R, N = X.shape
    assume(N % 4 == 0)
    assume(N >= 1)
    (row,) = block_id((R,))
    x = X[row]
    by = spread((CHUNK,), threads=THREADS, vector=4)
    best, at, place = registers(f32, by.partial(0)), registers(i32, by.partial(0)), registers(i32, by)
    best[:], at[:] = -inf, NONE
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        best[:] = maximum_nan(best, v.fold(0, maximum_nan, within=thread))
    top = across_block(best, maximum_nan, f32)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        (col,) = v.index
        place[:] = i * CHUNK + col
        at[:] = minimum(at, where((v == top) | (v != v), place, NONE).min(0, within=thread))
    first = across_block(at, minimum, i32)
    copy(first, I[row], by=first_thread, edge=0)
    assert_equals(I, lambda r: argmax(lambda j: X[r, j], over=N))
