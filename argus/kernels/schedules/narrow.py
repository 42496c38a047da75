"""The Hopper schedule for rows of any length: it loads and stores single elements, which need no alignment.

The other schedules of sm_90a use TMA, whose rows must begin at multiples of 16 bytes; this one takes every M, N and K.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, is_transposed, matrix_of, slot_for
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    fence,
    ld_global_b16,
    load,
    loop,
    mma,
    registers,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    sync,
    wgmma,
)

_THREADS, _ROWS, _COLUMNS = 128, 64, 32


@frozen
class Narrow:
    """One warpgroup and one tile of 64 x bn per CTA; bk of K per iteration."""

    bn: int = 128
    bk: int = 64
    target = sm_90a
    threads = _THREADS


def hopper_narrow(problem: Contraction, cfg: Narrow) -> None:
    """Global memory to registers, element by element, to shared memory, to wgmma; no overlap between iterations."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = 64, cfg.bn, cfg.bk
    assume(A.shape[-1] >= 1)
    problem.assume_addressable()
    mm = wgmma(A.dtype, n=bn)
    slot_a, slot_b = slot_for(A, bm, bk), slot_for(B, bn, bk)
    a, b = _on_the_way(slot_a, cfg), _on_the_way(slot_b, cfg)
    acc = registers(f32, mm.C)
    m, n, *z = block_id(problem.tiles(bm, bn))
    for k in loop(ceil_div(A.shape[-1], bk)):
        copy(_stored(matrix_of(A, z).tile((bm, bk), (m, k))), a, via=ld_global_b16, edge=0)
        copy(_stored(matrix_of(B, z).tile((bn, bk), (n, k))), b, via=ld_global_b16, edge=0)
        copy(a, _stored(slot_a))
        copy(b, _stored(slot_b))
        fence("async proxy")  # by every writer, before the barrier
        sync()
        mma(mm, acc, slot_a, slot_b, init=eq(k, 0))
        wgmma.wait(0)  # the buffers have been read ...
        sync()  # ... by all warps, even if each warp's wait covers only that warp
    problem.complete(acc)
    if z:  # of a batch, addresses leave too few registers for the boxes
        copy(acc.to(C.dtype), matrix_of(C, z).tile((bm, bn), (m, n)), via=st_global_b16, edge=0)
    else:
        store_rows(acc, C, (m, n), row_boxes(bn))


def row_boxes(columns: int) -> Tensor:
    """Shared memory for 64 rows of so many columns, a multiple of 32, in boxes of 32."""
    return shared(f32, (columns // _COLUMNS, _ROWS, _COLUMNS), swizzle=4 * _COLUMNS)


def store_rows(acc: Fragment, target: Tensor, at: tuple[Int, Int], boxes: Tensor) -> None:
    """Store 64 rows of any length through shared memory, so that a warp stores 64 neighbouring bytes at a time.

    From the registers of a wgmma it would store 8 bytes of each of 8 rows. at: coordinate among tiles of this shape.
    """
    count, tile = int(boxes.shape[0]), (_ROWS, _COLUMNS)
    for j in range(count):
        copy(acc.tile(tile, (0, j)), boxes[j])
    sync()
    by = spread(tile, threads=_THREADS, vector=1)
    for j in range(count):
        place = at[0], at[1] * count + j
        copy(load(boxes[j], by).to(target.dtype), target.tile(tile, place), via=st_global_b16, edge=0)


def _stored(tile: Tensor) -> Tensor:
    """The tile, transposed if necessary, with contiguous rows."""
    return tile.T if is_transposed(tile) else tile


def _on_the_way(slot: Tensor, cfg: Narrow) -> Fragment:
    """Registers for a tile, laid out so that a warp stores 128 contiguous bytes: no bank conflict."""
    rows, columns = (int(extent) for extent in _stored(slot).shape)
    return registers(slot.dtype, spread((rows, columns), threads=cfg.threads, vector=2))
