"""Random right products on sm_90a with A in registers: loaded by each thread, or read from a slot of a ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    e4m3,
    eq,
    f16,
    f32,
    ldmatrix,
    load,
    loop,
    maximum,
    mma,
    registers,
    role,
    shared,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import narrowed, one_by_one, trace


@frozen
class Holding:
    """C = f(A B^T), by tiles of 64 rows per consumer and `columns`, `deep` elements of k per slot.

    how: A comes "direct" from global memory, from a "slot" filled by TMA through ordinary reads, or from a slot by
    "matrices". spans: of the swizzles of A and B, in bytes. turned: B is K x N. epilogue: of the sums.
    """

    dtype: DType
    result: DType
    how: str
    stages: int
    consumers: int
    columns: int
    deep: int
    spans: tuple[int, int]
    turned: bool
    epilogue: str

    def kernel(self) -> Kernel:
        tensors = {
            "A": ("M K", self.dtype),
            "B": ("K N" if self.turned else "N K", self.dtype),
            "V": ("N", f32),
            "C": ("M N", self.result),
        }
        return trace(_body(self), "sm_90a", 128 * (1 + self.consumers), **tensors)


def draw(choose: Choose) -> Holding:
    dtype = choose((bf16, f16, e4m3, bf16))
    size = dtype.bits // 8
    turned = dtype != e4m3 and choose((False, False, True))
    deep = choose((16, 32, 64)) * (2 // size)
    columns = choose((16, 32, 64) if turned else (8, 16, 24, 32, 64))
    rows = tuple(s for s in (32, 64, 128) if deep * size % s == 0)
    across = tuple(s for s in (32, 64, 128) if columns * size % s == 0)
    return Holding(
        dtype=dtype,
        result=choose((bf16, f16, f32)),
        how=choose(("direct", "slot", "matrices") if dtype != e4m3 else ("direct", "slot")),
        stages=choose((1, 2, 3, 4)),
        consumers=choose((1, 1, 2)),
        columns=columns,
        deep=deep,
        spans=(choose(rows), choose(across if turned else rows)),
        turned=turned,
        epilogue=choose(("", "", "scaled", "relu", "bias", "bias relu", "square")),
    )


def _body(cfg: Holding) -> Callable[..., None]:
    rows = 64 * cfg.consumers

    def holding(A: Tensor, B: Tensor, V: Tensor, C: Tensor) -> None:
        (M, K), N = A.shape, C.shape[1]
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B.T if cfg.turned else B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % (128 // cfg.dtype.bits) == 0, N % 8 == 0, M <= 1 << 14, N <= 1 << 14, K <= 1 << 14)
        m, n = block_id((ceil_div(M, rows), ceil_div(N, cfg.columns)))
        mm: Any = wgmma(cfg.dtype, n=cfg.columns, a="registers", b_major="n" if cfg.turned else "k", k=cfg.deep)
        across = (cfg.deep, cfg.columns) if cfg.turned else (cfg.columns, cfg.deep)
        slots = {"b": shared(cfg.dtype, across, swizzle=cfg.spans[1])}
        if cfg.how != "direct":
            slots["a"] = shared(cfg.dtype, (rows, cfg.deep), swizzle=cfg.spans[0])
        ring, depth = Ring(cfg.stages, **slots), ceil_div(K, cfg.deep)

        with role("load", warpgroup(0).elected, registers=40):
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(B.tile(across, (k, n) if cfg.turned else (n, k)), slot.b, via=tma, edge=0)
                    if cfg.how != "direct":
                        copy(A.tile((rows, cfg.deep), (m, k)), slot.a, via=tma, edge=0)
            ring.finish()

        with role("math", warpgroups(*range(1, 1 + cfg.consumers)), registers=232) as wg:
            acc, a = registers(f32, mm.C), registers(cfg.dtype, mm.A)
            for k in loop(depth):
                slot = ring.wait()
                _fetch(cfg, A.tile((64, cfg.deep), (cfg.consumers * m + wg, k)), slot, wg, a)
                mma(mm, acc, a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            y = narrowed(_finished(cfg, acc, V, n), cfg.result)
            copy(y, C.tile((64, cfg.columns), (cfg.consumers * m + wg, n)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return holding


def _fetch(cfg: Holding, tile: Tensor, slot: Any, wg: Any, a: Fragment) -> None:  # noqa: ANN401 reason: handles of the kernel
    match cfg.how:
        case "direct":
            copy(tile, a, edge=0)
        case "slot":
            copy(slot.a.tile((64, cfg.deep), (wg, 0)), a)
        case _:
            copy(slot.a.tile((64, cfg.deep), (wg, 0)), a, via=ldmatrix.x4)


def _finished(cfg: Holding, acc: Fragment, V: Tensor, n: Any) -> Fragment:  # noqa: ANN401 reason: as above
    y = acc
    for step in cfg.epilogue.split():
        match step:
            case "scaled":
                y = y * 0.5
            case "relu":
                y = maximum(y, 0.0)
            case "square":
                y = y * y
            case _:
                y = y + load(V.tile((cfg.columns,), (n,)), acc.layout.axis(1), via=one_by_one(f32), edge=0)
    return y
