"""Random right products of clusters of two blocks: operands sent to both by multicasts, and sums stored to the peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    barrier,
    bf16,
    block_id,
    ceil_div,
    cluster,
    copy,
    e4m3,
    elected,
    eq,
    f16,
    f32,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    spread,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import narrowed, trace_clustered


@frozen
class Clustering:
    """C = A B^T, by tiles of 64 rows per consumer and `columns`, `deep` elements of k per slot.

    how: the two blocks are neighbours along "rows" and share B, or along "columns" and share A: each loads a half of
    what is shared for both; "sums": each sums half of K, and stores half of its sums to the peer. blocks: of a
    persistent kernel, None for a block per tile. spans: of the swizzles of the operands, in bytes. lag: a slot is
    released a product later.
    """

    dtype: DType
    result: DType
    how: str
    stages: int
    consumers: int
    columns: int
    deep: int
    spans: tuple[int, int]
    blocks: int | None
    lag: bool

    @property
    def rows(self) -> int:
        return 64 * self.consumers

    def kernel(self) -> Kernel:
        tensors = {"A": ("M K", self.dtype), "B": ("N K", self.dtype), "C": ("M N", self.result)}
        shape = {"rows": (2, 1), "columns": (1, 2), "sums": (2, 1, 1)}[self.how]
        body = _summed(self) if self.how == "sums" else _shared(self)
        return trace_clustered(body, shape, 128 * (1 + self.consumers), **tensors)


def draw(choose: Choose) -> Clustering:
    dtype, how = choose((bf16, f16, e4m3, bf16)), choose(("rows", "columns", "sums"))
    size = dtype.bits // 8
    deep = choose((16, 32, 64)) * (2 // size)
    rows = tuple(s for s in (32, 64, 128) if deep * size % s == 0)
    return Clustering(
        dtype=dtype,
        result=choose((bf16, f16, f32)),
        how=how,
        stages=choose((2, 3, 4)),
        consumers=2 if how == "sums" else choose((1, 1, 2)),
        columns=choose((16, 32, 64)),
        deep=deep,
        spans=(choose(rows), choose(rows)),
        blocks=None if how == "sums" else choose((None, 4, 6)),
        lag=how != "sums" and choose((False, True)),
    )


def _state(A: Tensor, B: Tensor, dtype: DType) -> None:
    """Tags and assumptions: rows of 16 bytes for TMA, and indices and counters of 32 bits."""
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    (M, K), N = A.shape, B.shape[0]
    assume(K >= 1, K % (128 // dtype.bits) == 0, N % 8 == 0, M <= 1 << 14, N <= 1 << 14, K <= 1 << 14)


def _shared(cfg: Clustering) -> Callable[..., None]:
    def clustering(A: Tensor, B: Tensor, C: Tensor) -> None:
        counts = (ceil_div(A.shape[0], cfg.rows), ceil_div(B.shape[0], cfg.columns))
        _state(A, B, cfg.dtype)
        mm, depth = wgmma(cfg.dtype, n=cfg.columns), ceil_div(A.shape[1], cfg.deep)
        a, b = (
            shared(cfg.dtype, (extent, cfg.deep), swizzle=span)
            for extent, span in zip((cfg.rows, cfg.columns), cfg.spans, strict=True)
        )
        ring, tiles = Ring(cfg.stages, a=a, b=b), _tiles(cfg, counts)

        def send(tile: Tensor, slot: Tensor, *, both: bool) -> None:
            if both:
                part, mine = tile.part(0, cluster.rank, 2), slot.part(0, cluster.rank, 2)
                copy(part, mine, via=tma.multicast((0, 1)), edge=0)
            else:
                copy(tile, slot, via=tma, edge=0)

        with role("load", warpgroup(0).elected, registers=40):
            for m, n in tiles:
                for k in loop(depth):
                    with ring.fill() as slot:
                        send(A.tile((cfg.rows, cfg.deep), (m, k)), slot.a, both=cfg.how == "columns")
                        send(B.tile((cfg.columns, cfg.deep), (n, k)), slot.b, both=cfg.how == "rows")
            ring.finish()

        with role("math", warpgroups(*range(1, 1 + cfg.consumers)), registers=232) as wg:
            acc = registers(f32, mm.C)
            for m, n in tiles:
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a.tile((64, cfg.deep), (wg, 0)), slot.b, init=eq(k, 0))
                    wgmma.wait(1 if cfg.lag else 0)
                    if cfg.lag:
                        with when(k > 0):
                            ring.release()
                    else:
                        ring.release()
                if cfg.lag:
                    wgmma.wait(0)
                    ring.release()
                assert_covers(acc.tag.k, 0, A.shape[1])
                copy(narrowed(acc, cfg.result), C.tile((64, cfg.columns), (cfg.consumers * m + wg, n)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return clustering


def _tiles(cfg: Clustering, counts: tuple[Any, Any]) -> Any:  # noqa: ANN401 reason: pairs of the kernel's integers
    if cfg.blocks is not None:
        return persistent(counts, blocks=cfg.blocks)
    rows, columns = counts
    if cfg.how == "rows":
        rows = 2 * ceil_div(rows, 2)
    else:
        columns = 2 * ceil_div(columns, 2)
    m, n = block_id((rows, columns))
    return [(m, n)]


def _summed(cfg: Clustering) -> Callable[..., None]:
    half = cfg.columns // 2

    def clustering(A: Tensor, B: Tensor, C: Tensor) -> None:
        counts = (ceil_div(A.shape[0], cfg.rows), ceil_div(B.shape[0], cfg.columns))
        _state(A, B, cfg.dtype)
        mm, depth = wgmma(cfg.dtype, n=cfg.columns), ceil_div(A.shape[1], 2 * cfg.deep)
        a, b = (
            shared(cfg.dtype, (extent, cfg.deep), swizzle=span)
            for extent, span in zip((cfg.rows, cfg.columns), cfg.spans, strict=True)
        )
        ring = Ring(cfg.stages, a=a, b=b)
        sums, come = shared(f32, (cfg.consumers, 2, 64, half), swizzle=32), barrier(2, of=cfg.consumers)
        rank, m, n = block_id((2, *counts))

        with role("load", warpgroup(0).elected):
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((cfg.rows, cfg.deep), (m, rank * depth + k)), slot.a, via=tma, edge=0)
                    copy(B.tile((cfg.columns, cfg.deep), (n, rank * depth + k)), slot.b, via=tma, edge=0)

        with role("math", warpgroups(*range(1, 1 + cfg.consumers))) as wg:
            acc = registers(f32, mm.C)
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, cfg.deep), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            for to in range(2):
                copy(acc.tile((64, half), (0, to)), sums[wg, rank].of(to))
            sync()
            with elected():
                for to in range(2):
                    come[wg].of(to).arrive()
            come[wg].wait(0)
            by = spread((64, half), threads=128, vector=4)
            total = load(sums[wg, 0], by) + load(sums[wg, 1], by)
            assert_covers(total.tag.k, 0, A.shape[1])
            copy(narrowed(total, cfg.result), C.tile((64, half), (cfg.consumers * m + wg, 2 * n + rank)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return clustering
