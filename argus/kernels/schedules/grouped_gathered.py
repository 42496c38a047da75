"""Few rows of experts that are gathered by token within the product, so that no launch copies them before.

As `grouped_few`, with the matrices in a ring that TMA fills. Each thread that multiplies copies its part of the rows
(`cp.async`) into boxes of shared memory of its own, some steps ahead: rows of single tokens are no box of TMA.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_few import COLUMNS
from argus.kernels.schedules.grouped_gated import Activation, activated
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Ring,
    Tensor,
    Value,
    assume,
    ceil_div,
    copy,
    cp_async,
    elements,
    eq,
    f32,
    fence,
    loop,
    minimum,
    mma,
    persistent,
    promise,
    registers,
    role,
    scalar,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    sync,
    tma,
    total,
    warpgroup,
    wgmma,
    when,
)


@frozen
class GatheredFew:
    """Tiles of bm rows of an expert (16 or more) by 64 columns; bk of K per stage of the matrices, and per box of rows.

    boxes: of rows, of which all but one are on the way.
    """

    bm: int = 16
    bk: int = 64
    stages: int = 8
    boxes: int = 4
    target = sm_90a
    threads = 256


def rows_of_tokens(X: Tensor, tokens: Tensor) -> Tensor:
    """X[tokens[r], k] at (r, k); beyond the last row that of the last."""
    (count, depth), rows = X.shape, tokens.shape[0]
    promise(tokens, lambda t: (t >= 0) & (t < count))
    assume(count < 1 << 28, rows >= 1)
    return X.gather((rows, depth), lambda r, k: (scalar(tokens[minimum(r, rows - 1)]), k))


def hopper_gated_gathered(
    problem: GroupedContraction,
    X: Tensor,
    tokens: Tensor,
    up: Tensor,
    of: Callable[[Fragment, Fragment], Fragment],
    cfg: GatheredFew,
) -> None:
    """C = of(A B^T, A up^T), element by element, in f32, where A is `rows_of_tokens(X, tokens)`."""
    bm, bk, matrices, last = cfg.bm, cfg.bk, (problem.B, up), tokens.shape[0] - 1
    counts, depth = (problem.tiles, ceil_div(problem.C.shape[1], COLUMNS)), ceil_div(problem.B.shape[2], bk)
    assume(counts[0] * counts[1] < 1 << 24)  # coordinates of tiles then fit 32 bits
    mm = wgmma(problem.B.dtype, n=bm)
    ring = Ring(cfg.stages, **{f"b{i}": slot_for(b, COLUMNS, bk) for i, b in enumerate(matrices)})
    boxes = shared(problem.A.dtype, (cfg.boxes, bm, bk), swizzle=2 * bk)
    by = spread((bm, bk), threads=128, vector=128 // problem.A.dtype.bits)
    tiles = persistent(counts)

    with role("load", warpgroup(0).elected):
        for t, n in tiles:
            with problem.where_rows(t):
                for k in loop(depth):
                    with ring.fill() as slot:
                        for i, b in enumerate(matrices):
                            own = problem.of_expert(b, t)
                            copy(own.tile((COLUMNS, bk), (n, k)), getattr(slot, f"b{i}"), via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1)):
        sums = [registers(f32, mm.C) for _ in matrices]

        def start(t: Int, k: IntLike) -> None:
            """Let the rows of a step of K come, if there is one; each step has a group, be it empty."""
            first = scalar(problem.tile_starts[t])
            with when(k < depth):
                rows = X.gather((bm, bk), lambda i, c: (scalar(tokens[minimum(first + i, last)]), bk * k + c))
                copy(rows, boxes[k % cfg.boxes], via=cp_async, by=by, edge=0)
            cp_async.commit()

        for t, n in tiles:
            with problem.where_rows(t):
                for k in range(cfg.boxes - 1):
                    start(t, k)
                for k in loop(depth):
                    slot = ring.wait()
                    cp_async.wait(cfg.boxes - 2)
                    fence("async proxy")
                    sync()  # all threads' copies are there, and the box to be filled next has been read
                    for i, acc in enumerate(sums):
                        mma(mm, acc, getattr(slot, f"b{i}"), boxes[k % cfg.boxes], init=eq(k, 0))
                    start(t, k + cfg.boxes - 1)
                    wgmma.wait(pending=0)
                    ring.release()
                cp_async.wait(0)
                sync()  # the last box has been read, by all warps, before the next tile's rows come
                out = problem.result(t).T.tile((COLUMNS, bm), (n, 0))
                copy(of(*sums).to(problem.C.dtype), out, via=st_global_b16, edge=0)


def gated_row_of_token(
    X: Tensor, tokens: Tensor, matrices: tuple[Tensor, Tensor], activation: Activation, at: tuple[Int, Int, Int]
) -> Value:
    """In a formula, activation(gate[e] X[tokens[r]]) * (up[e] X[tokens[r]]) at an expert, a row and a column."""
    (e, r, n), x = at, elements(X)

    def product(weights: Tensor) -> Value:
        of_b = elements(weights)
        return total(lambda k: x(scalar(tokens[r]), k) * of_b(e, n, k), over=X.shape[1])

    gate, up = matrices
    return activated(activation, product(gate)) * product(up)
