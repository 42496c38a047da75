"""Scales of blocks on MI300X, per 1 x 128 of A and 128 x 128 of B: a tile of K is one block.

Its sums are scaled and added in f32, as in `argus.kernels.fp8_blocks`.
"""

from __future__ import annotations

from collections.abc import Callable

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Scales
from argus.language import (
    Fragment,
    IntLike,
    Tensor,
    TiledMma,
    assert_relation,
    buffer_load,
    copy,
    eq,
    f32,
    fma,
    registers,
)

BLOCK = 128
"""Elements of k, and rows of B, that share a scale."""
_HALVES = 2


def block_scales(
    of_rows: Callable[[IntLike], Tensor],
    of_columns: Tensor,
    at: tuple[IntLike, IntLike],
    mm: TiledMma,
    cfg: Cdna3Interleaved,
    add: Callable[[Fragment, Fragment, Fragment], None],
) -> Scales:
    """The factors of the transposed sums of tile `at`.

    of_rows: (M,), of A, as a function of the block of K. of_columns: (N / 128, K / 128) of B, rounded up. mm: of the
    mainloop. add: as of `Scales`.
    """
    assert cfg.bk == BLOCK
    assert cfg.bn in (BLOCK, _HALVES * BLOCK)
    m, n = at
    blocks = cfg.bn // BLOCK
    rows = registers(f32, mm.C.axis(1))
    columns = [registers(f32, mm.C.axis()) for _ in range(blocks)]

    def load(k: IntLike) -> None:
        copy(of_rows(k).tile((cfg.bm,), (m,)), rows, via=buffer_load[:2], edge=0)
        for i, each in enumerate(columns):
            copy(of_columns[n * blocks + i, k], each, edge=0)

    return Scales(load, lambda: [rows * columns[i * blocks // _HALVES] for i in range(_HALVES)], add)


def add_scaled(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """acc += part * scale."""
    acc[:] = fma(part, scale, acc)


def add_related(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """acc += part * scale; claims that each k in `part` lies in the blocks of both scales."""
    assert_relation(part, scale, lambda p, s: eq(s.kb, p.k // BLOCK) & eq(s.nb, p.n // BLOCK))
    add_scaled(acc, part, scale)
