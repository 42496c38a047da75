"""The gradients of keys and values on Hopper: each warpgroup holds 64 keys and goes through the queries.

One role loads K and V of a tile, and through two rings Q with L, and dO with Delta, for all heads of a group. Scores
are computed with keys as rows: the weights are then the left factor of the product with dO, register for register.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.kernels.schedules.attention_backward import LN_2, ROWS, AttentionBackward, Place, by_heads, by_tiles
from argus.kernels.schedules.attention_backward_formulas import claim_keys
from argus.kernels.schedules.stored_rows import BOX, store_rows
from argus.language import (
    DType,
    Fragment,
    Int,
    Ring,
    Tensor,
    WarpgroupMma,
    assume,
    bulk,
    ceil_div,
    copy,
    elected,
    exp2,
    f32,
    fma,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    where,
)


@frozen
class BackwardKeys:
    """bm queries a block. stages: blocks of queries in shared memory. of: the gradients that are computed.

    heads: tiles of one head follow each other if causal, too, so that its queries stay in the L2 cache.
    """

    bm: int = 64
    stages: int = 2
    of: Literal["keys", "values", "both"] = "both"
    heads: bool = False
    target = sm_90a
    warpgroups = 2
    threads = 384

    @property
    def bn(self) -> int:
        """Keys of a tile."""
        return self.warpgroups * ROWS

    @property
    def keys(self) -> bool:
        """Whether the gradients of keys are computed, for which V and Delta are needed."""
        return self.of != "values"

    @property
    def values(self) -> bool:
        """Whether the gradients of values are computed."""
        return self.of != "keys"


@frozen
class _Rings:
    """K and V of a tile; and by blocks of queries, Q with L, and dO with Delta. V and Delta for those of keys alone."""

    held: Ring
    q: Ring
    do: Ring


def backward_keys(problem: AttentionBackward, dK: Tensor | None, dV: Tensor | None, cfg: BackwardKeys) -> None:
    """The gradients of keys and values, or of one of them."""
    (batch, groups, keys, depth), kind, bm, bn = problem.K.shape, problem.K.dtype, cfg.bm, cfg.bn
    width, counts = int(depth), (ceil_div(keys, bn), groups, batch)
    assume(batch * groups * counts[0] < 1 << 24, problem.group * ceil_div(problem.Q.shape[2], bm) < 1 << 24)
    held = {name: shared(kind, (bn, width), swizzle=128) for name in ("k", *(("v",) if cfg.keys else ()))}
    delta = {"delta": shared(f32, (1, bm))} if cfg.keys else {}
    rings = _Rings(
        Ring(1, **held),
        Ring(cfg.stages, q=shared(kind, (bm, width), swizzle=128), sums=shared(f32, (1, bm))),
        Ring(cfg.stages, do=shared(kind, (bm, width), swizzle=128), **delta),
    )
    boxes = shared(kind, (cfg.warpgroups, 1, ROWS, BOX), swizzle=128)
    order = by_tiles if problem.causal and not cfg.heads else by_heads
    tiles = persistent(counts, order=order, zigzag=problem.causal)
    with role("load", warpgroup(0).elected, registers=24):
        for n, g, b in tiles:
            _load_tile(problem, cfg, rings, (b, g, n))
    with role("math", warpgroups(1, 2), registers=240) as wg:
        own = _Warpgroup.of(problem, cfg, rings, wg)
        for n, g, b in tiles:
            own.tile((b, g, n), (dK, dV), boxes[wg])
        with elected():
            bulk.wait(0)
    claim_keys(problem, dK, dV)


def _load_tile(problem: AttentionBackward, cfg: BackwardKeys, rings: _Rings, at: Place) -> None:
    """Load K and V, then the blocks of queries of all heads of the group."""
    (b, g, n), width, bm = at, int(problem.Q.shape[3]), cfg.bm
    with rings.held.fill() as slot:
        copy(problem.K[b, g].tile((cfg.bn, width), (n, 0)), slot.k, via=tma, edge=0)
        if cfg.keys:
            copy(problem.V[b, g].tile((cfg.bn, width), (n, 0)), slot.v, via=tma, edge=0)
    first, count = problem.query_blocks(n * cfg.bn, bm)
    for i in loop(problem.group * count):
        h, m = g * problem.group + i // count, first + i % count
        with rings.q.fill() as slot:
            copy(problem.Q[b, h].tile((bm, width), (m, 0)), slot.q, via=tma, edge=0)
            copy(problem.L[b].tile((1, bm), (h, m)), slot.sums, via=tma, edge=0)
        with rings.do.fill() as slot:
            copy(problem.dO[b, h].tile((bm, width), (m, 0)), slot.do, via=tma, edge=0)
            if cfg.keys:
                copy(problem.Delta[b].tile((1, bm), (h, m)), slot.delta, via=tma, edge=0)


@frozen
class _Tile:
    """What a warpgroup needs of its tile: its first key, keys and values, and the scale for each row."""

    key0: Int
    clear: Int
    k: Tensor
    v: Tensor | None
    scale: Fragment


@frozen
class _Sums:
    """Gradients, and the left factors of the products that are added to them, in the type of the operands."""

    total: Fragment
    factors: Fragment

    @classmethod
    def of(cls, outer: WarpgroupMma, kind: DType, queries: int) -> _Sums:
        return cls(registers(f32, outer.C), registers(kind, outer.A.tiled(k=queries)))

    def add(self, outer: WarpgroupMma, factors: Fragment, rows: Tensor) -> None:
        """Add the product of factors, rounded, and rows."""
        self.factors[:] = factors.to(self.factors.dtype)  # C layout to A layout: register for register
        mma(outer, self.total, self.factors, rows)


@frozen
class _Warpgroup:
    """The registers of a warpgroup: scores, dO . V, and the gradients."""

    problem: AttentionBackward
    cfg: BackwardKeys
    rings: _Rings
    number: Int
    inner: WarpgroupMma
    outer: WarpgroupMma
    scores: Fragment
    products: Fragment | None
    of_keys: _Sums | None
    of_values: _Sums | None

    @classmethod
    def of(cls, problem: AttentionBackward, cfg: BackwardKeys, rings: _Rings, number: Int) -> _Warpgroup:
        kind, width = problem.Q.dtype, int(problem.Q.shape[3])
        inner, outer = wgmma(kind, n=cfg.bm), wgmma(kind, n=width, a="registers", b_major="n")
        scores = registers(f32, inner.C)
        products = registers(f32, inner.C) if cfg.keys else None
        of_keys, of_values = (_Sums.of(outer, kind, cfg.bm) if each else None for each in (cfg.keys, cfg.values))
        return cls(problem, cfg, rings, number, inner, outer, scores, products, of_keys, of_values)

    def tile(self, at: Place, gradients: tuple[Tensor | None, Tensor | None], boxes: Tensor) -> None:
        """Compute and store the gradients of 64 keys and their values."""
        problem, cfg, (b, g, n), (dK, dV) = self.problem, self.cfg, at, gradients
        width, rows = int(problem.Q.shape[3]), cfg.warpgroups * n + self.number
        c = load(problem.scale.gather((ROWS,), lambda _: (0,)), self.inner.C.axis(0))
        for sums in (self.of_keys, self.of_values):
            if sums is not None:
                sums.total[:] = 0.0
        held = self.rings.held.wait()
        k = held.k.tile((ROWS, width), (self.number, 0))
        v = held.v.tile((ROWS, width), (self.number, 0)) if cfg.keys else None
        clear = problem.clear_queries(n * cfg.bn, cfg.bn, cfg.bm)
        own = _Tile(n * cfg.bn + ROWS * self.number, clear, k, v, c)
        first, count = problem.query_blocks(n * cfg.bn, cfg.bm)
        for i in loop(problem.group * count):
            self._step(own, first + i % count)
        self.rings.held.release()
        if self.of_values is not None and dV is not None:
            store_rows(self.of_values.total, dV[b, g].tile((ROWS, width), (rows, 0)), boxes)
        if self.of_keys is not None and dK is not None:
            store_rows(self.of_keys.total * (c * LN_2), dK[b, g].tile((ROWS, width), (rows, 0)), boxes)

    def _step(self, own: _Tile, m: Int) -> None:
        """Add what block m of queries contributes."""
        columns = self.inner.C.axis(1)
        q = self.rings.q.wait()
        mma(self.inner, self.scores, own.k, q.q, init=True)
        do = self.rings.do.wait()
        if self.products is not None and own.v is not None:
            mma(self.inner, self.products, own.v, do.do, init=True)
        sums = load(q.sums[0], columns)
        delta = None if self.products is None else load(do.delta[0], columns)
        wgmma.wait(0 if self.products is None else 1)
        weights = self._weights(own, m, sums)
        if self.of_values is not None:
            self.of_values.add(self.outer, weights, do.do)
        if self.products is not None and self.of_keys is not None and delta is not None:
            wgmma.wait(0 if self.of_values is None else 1)
            self.of_keys.add(self.outer, weights * (self.products - delta), q.q)
        wgmma.wait(0)
        self.rings.do.release()
        self.rings.q.release()

    def _weights(self, own: _Tile, m: Int, sums: Fragment) -> Fragment:
        """The weights of block m of queries, in place of their scores."""
        weights = self.scores
        weights[:] = exp2(fma(weights, own.scale, -sums))
        if self.problem.causal:
            with when(m < own.clear):
                t, r = weights.index
                weights[:] = where(self.problem.sees(m * self.cfg.bm + r, own.key0 + t), weights, 0.0)
        return weights
