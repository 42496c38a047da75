"""C = A @ B^T on Hopper for rows of any length: loads and stores of single elements, so that nothing need be aligned.

The other schedules of sm_90a move boxes, whose rows begin at multiples of 16 bytes; this one takes every M, N and K.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, is_turned, one_of, slot_for
from argus.language import (
    Fragment,
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    fence,
    ld_global_b16,
    loop,
    mma,
    registers,
    sm_90a,
    spread,
    st_global_b16,
    sync,
    wgmma,
)


@frozen
class Narrow:
    """One warpgroup and one tile of 64 x bn a block; bk of K a step."""

    bn: int = 128
    bk: int = 64
    target = sm_90a
    threads = 128


def hopper_narrow(problem: Contraction, cfg: Narrow) -> None:
    """Global to registers, element by element, to shared memory, to the matrix unit; one step after the other."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = 64, cfg.bn, cfg.bk
    assume(A.shape[-1] >= 1)
    problem.addressed()
    mm = wgmma(A.dtype, n=bn)
    slot_a, slot_b = slot_for(A, bm, bk), slot_for(B, bn, bk)
    a, b = _on_the_way(slot_a, cfg), _on_the_way(slot_b, cfg)
    acc = registers(f32, mm.C)
    m, n, *z = block_id(problem.tiles(bm, bn))
    for k in loop(ceil_div(A.shape[-1], bk)):
        copy(_stored(one_of(A, z).tile((bm, bk), (m, k))), a, via=ld_global_b16, edge=0)
        copy(_stored(one_of(B, z).tile((bn, bk), (n, k))), b, via=ld_global_b16, edge=0)
        copy(a, _stored(slot_a))
        copy(b, _stored(slot_b))
        fence("async proxy")  # by every writer, then the meeting
        sync()
        mma(mm, acc, slot_a, slot_b, init=eq(k, 0))
        wgmma.wait(0)  # the slots have been read ...
        sync()  # ... whole, also if each warp's wait speaks for this warp alone
    problem.complete(acc)
    copy(acc.to(C.dtype), one_of(C, z).tile((bm, bn), (m, n)), via=st_global_b16, edge=0)


def _stored(tile: Tensor) -> Tensor:
    """The tile with neighbours in memory along its rows."""
    return tile.T if is_turned(tile) else tile


def _on_the_way(slot: Tensor, cfg: Narrow) -> Fragment:
    """Registers from which a warp stores 128 bytes of a slot at a time: a row, no conflict."""
    rows, columns = (int(extent) for extent in _stored(slot).shape)
    return registers(slot.dtype, spread((rows, columns), threads=cfg.threads, vector=2))
