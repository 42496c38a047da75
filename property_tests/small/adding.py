"""Random right programs of two launches: an output is set to 0, then splits of a product are added to it atomically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Program
from argus.language import (
    Fragment,
    Tensor,
    add,
    assert_covers,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f16,
    f32,
    fence,
    load,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_bf16,
    minimum,
    mma,
    registers,
    shared,
    span,
    spread,
    sync,
    tag,
    vmem,
    wgmma,
    zeros,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import TARGETS, declared, trace_program

_ATOMS = {16: mfma_f32_16x16x16_bf16, 32: mfma_f32_32x32x8_bf16}


@frozen
class Adding:
    """C = A B^T: K is shared out among `splits` blocks of each tile of `shape` (m, n, k of a step).

    waves: along m and n, side: of the MFMA, both on gfx942. outer: the splits are the last axis of the grid, else the
    first.
    """

    target: str
    dtype: DType
    shape: tuple[int, int, int]
    waves: tuple[int, int]
    side: int
    splits: int
    outer: bool

    @property
    def threads(self) -> int:
        return 128 if self.target == "sm_90a" else 64 * self.waves[0] * self.waves[1]

    def kernel(self) -> Program:
        a, b, c = ("M K", self.dtype), ("N K", self.dtype), ("M N", f32)
        clear = declared(_clear(self), self.target, self.threads, C=c)
        gather = declared(_gather(self), self.target, self.threads, A=a, B=b, C=c)

        def added(A: Tensor, B: Tensor, C: Tensor) -> None:
            clear(C)
            gather(A, B, C)

        return trace_program(added, A=a, B=b, C=c)


def draw(choose: Choose) -> Adding:
    target, waves, side = choose(TARGETS), choose(((1, 1), (1, 2), (2, 1), (2, 2))), choose((16, 32))
    hopper, deep = target == "sm_90a", choose((32, 64))
    rows, columns = (64, choose((32, 64))) if hopper else (side * waves[0], side * waves[1])
    return Adding(
        target=target,
        dtype=choose((bf16, f16)) if hopper else bf16,
        shape=(rows, columns, deep),
        waves=waves,
        side=side,
        splits=choose((2, 3, 4, 5)),
        outer=choose((False, True)),
    )


def _clear(cfg: Adding) -> Callable[..., None]:
    tile = (16, 64)

    def clear(C: Tensor) -> None:
        M, N = C.shape
        assume(N % 8 == 0)
        at = block_id((ceil_div(M, tile[0]), ceil_div(N, tile[1])))
        copy(zeros(f32, spread(tile, threads=cfg.threads, vector=4)), C.tile(tile, at), edge=0)

    return clear


def _gather(cfg: Adding) -> Callable[..., None]:
    rows, columns, deep = cfg.shape

    def gather(A: Tensor, B: Tensor, C: Tensor) -> None:
        (M, K), N = A.shape, B.shape[0]
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % 8 == 0, N % 8 == 0, M * K <= 1 << 28, N * K <= 1 << 28)
        counts = (ceil_div(M, rows), ceil_div(N, columns))
        if cfg.outer:
            m, n, part = block_id((*counts, cfg.splits))
        else:
            part, m, n = block_id((cfg.splits, *counts))
        low, high = span(part, cfg.splits, ceil_div(K, deep))
        acc = (_by_wgmma if cfg.target == "sm_90a" else _by_mfma)(cfg, A, B, (m, n), (low, high))
        assert_covers(acc.tag.k, low * deep, minimum(K, high * deep))
        copy(acc, C.tile((rows, columns), (m, n)), combine=add, edge=0)

    return gather


def _by_mfma(cfg: Adding, A: Tensor, B: Tensor, at: tuple[Any, Any], steps: tuple[Any, Any]) -> Fragment:
    rows, columns, deep = cfg.shape
    mm = mfma(_ATOMS[cfg.side]).over(waves=cfg.waves, tile=(rows, columns), k=deep, k_run=8)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), zeros(f32, mm.C)
    for k in loop(*steps):
        copy(A.tile((rows, deep), (at[0], k)), a, edge=0)
        copy(B.tile((columns, deep), (at[1], k)), b, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b)
    return acc


def _by_wgmma(cfg: Adding, A: Tensor, B: Tensor, at: tuple[Any, Any], steps: tuple[Any, Any]) -> Fragment:
    rows, columns, deep = cfg.shape
    mm = wgmma(cfg.dtype, n=columns)
    by_a, by_b = (spread((extent, deep), threads=128, vector=4) for extent in (rows, columns))
    a, b = (shared(cfg.dtype, (extent, deep), swizzle=64) for extent in (rows, columns))
    acc = zeros(f32, mm.C)
    for k in loop(*steps):
        copy(load(A.tile((rows, deep), (at[0], k)), by_a, edge=0), a)
        copy(load(B.tile((columns, deep), (at[1], k)), by_b, edge=0), b)
        fence("async proxy")
        sync()
        mma(mm, acc, a, b)
        wgmma.wait(0)
        sync()
    return acc
