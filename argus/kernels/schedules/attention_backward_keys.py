"""The gradients of keys and values on Hopper: each warpgroup holds 64 keys and goes through the queries.

One role loads K and V of a tile, and through two rings Q with L, and dO with Delta, for all heads of a group. Scores
are computed with keys as rows: the weights are then the left factor of the product with dO, register for register.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.kernels.schedules.attention_backward import LN_2, ROWS, Place, SeenBlocks, by_heads, by_tiles
from argus.kernels.schedules.attention_backward_formulas import Problem, claim_keys
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
    ld_global_b32,
    load,
    loop,
    maximum,
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
class Rings:
    """K and V of a tile; and by blocks of queries, Q with L, and dO with Delta. V and Delta for those of keys alone."""

    held: Ring
    q: Ring
    do: Ring


def backward_keys(problem: Problem, dK: Tensor | None, dV: Tensor | None, cfg: BackwardKeys) -> None:
    """The gradients of keys and values, or of one of them."""
    kind, bm, bn, width = problem.K.dtype, cfg.bm, cfg.bn, int(problem.K.shape[-1])
    counts = problem.key_tiles(bn)
    number, groups, batch = counts
    assume(batch * groups * number < 1 << 24, problem.group * ceil_div(problem.most_queries, bm) < 1 << 24)
    held = {name: shared(kind, (bn, width), swizzle=128) for name in ("k", *(("v",) if cfg.keys else ()))}
    numbers = () if problem.packed else ("sums", *(("delta",) if cfg.keys else ()))
    sums, delta = ({name: shared(f32, (1, bm)) for name in numbers if name == wanted} for wanted in ("sums", "delta"))
    rings = Rings(
        Ring(1, **held),
        Ring(cfg.stages, q=shared(kind, (bm, width), swizzle=128), **sums),
        Ring(cfg.stages, do=shared(kind, (bm, width), swizzle=128), **delta),
    )
    boxes = None if problem.packed else shared(kind, (cfg.warpgroups, 1, ROWS, BOX), swizzle=128)
    order = by_tiles if problem.causal and not cfg.heads else by_heads
    tiles = persistent(counts, order=order, zigzag=problem.causal)
    with role("load", warpgroup(0).elected, registers=24):
        for n, g, b in tiles:
            with problem.where_keys(b, n * bn):
                load_tile(problem, cfg, rings, (b, g, n))
    with role("math", warpgroups(1, 2), registers=240) as wg:
        own = _Warpgroup.of(problem, cfg, rings, wg)
        for n, g, b in tiles:
            with problem.where_keys(b, n * bn):
                own.tile((b, g, n), (dK, dV), None if boxes is None else boxes[wg])
        if boxes is not None:
            with elected():
                bulk.wait(0)
    claim_keys(problem, dK, dV)


def load_tile(problem: Problem, cfg: BackwardKeys, rings: Rings, at: Place) -> None:
    """Load K and V, then the blocks of queries of all heads of the group."""
    (b, g, n), width, bm = at, int(problem.Q.shape[-1]), cfg.bm
    with rings.held.fill() as slot:
        copy(problem.of_key_head(problem.K, b, g).tile((cfg.bn, width), (n, 0)), slot.k, via=tma, edge=0)
        if cfg.keys:
            copy(problem.of_key_head(problem.V, b, g).tile((cfg.bn, width), (n, 0)), slot.v, via=tma, edge=0)
    first, count = problem.seen(b).query_blocks(n * cfg.bn, bm)
    each = maximum(1, count) if problem.packed else count  # a divisor; a sequence may have no queries
    for i in loop(problem.group * count):
        h, m = g * problem.group + i // each, first + i % each
        with rings.q.fill() as slot:
            copy(problem.of_query_head(problem.Q, b, h).tile((bm, width), (m, 0)), slot.q, via=tma, edge=0)
            if not problem.packed:
                copy(problem.L[b].tile((1, bm), (h, m)), slot.sums, via=tma, edge=0)
        with rings.do.fill() as slot:
            copy(problem.of_query_head(problem.dO, b, h).tile((bm, width), (m, 0)), slot.do, via=tma, edge=0)
            if cfg.keys and not problem.packed:
                copy(problem.Delta[b].tile((1, bm), (h, m)), slot.delta, via=tma, edge=0)


@frozen
class Tile:
    """What a warpgroup needs of its tile: what is seen, its first key, keys and values, and the scale for each row.

    clear: the first block of queries that all see all of its keys.
    """

    seen: SeenBlocks
    key0: Int
    clear: Int
    k: Tensor
    v: Tensor | None
    scale: Fragment


@frozen
class Sums:
    """Gradients, and the left factors of the products that are added to them, in the type of the operands."""

    total: Fragment
    factors: Fragment

    @classmethod
    def of(cls, outer: WarpgroupMma, kind: DType, queries: int) -> Sums:
        return cls(registers(f32, outer.C), registers(kind, outer.A.tiled(k=queries)))

    def add(self, outer: WarpgroupMma, factors: Fragment, rows: Tensor) -> None:
        """Add the product of factors, rounded, and rows."""
        self.factors[:] = factors.to(self.factors.dtype)  # C layout to A layout: register for register
        mma(outer, self.total, self.factors, rows)


@frozen
class _Warpgroup:
    """The registers of a warpgroup: scores, dO . V, and the gradients."""

    problem: Problem
    cfg: BackwardKeys
    rings: Rings
    number: Int
    inner: WarpgroupMma
    outer: WarpgroupMma
    scores: Fragment
    products: Fragment | None
    of_keys: Sums | None
    of_values: Sums | None

    @classmethod
    def of(cls, problem: Problem, cfg: BackwardKeys, rings: Rings, number: Int) -> _Warpgroup:
        kind, width = problem.Q.dtype, int(problem.Q.shape[-1])
        inner, outer = wgmma(kind, n=cfg.bm), wgmma(kind, n=width, a="registers", b_major="n")
        scores = registers(f32, inner.C)
        products = registers(f32, inner.C) if cfg.keys else None
        of_keys, of_values = (Sums.of(outer, kind, cfg.bm) if each else None for each in (cfg.keys, cfg.values))
        return cls(problem, cfg, rings, number, inner, outer, scores, products, of_keys, of_values)

    def tile(self, at: Place, gradients: tuple[Tensor | None, Tensor | None], boxes: Tensor | None) -> None:
        """Compute and store the gradients of 64 keys and their values."""
        problem, cfg, (b, g, n), (dK, dV) = self.problem, self.cfg, at, gradients
        width, rows = int(problem.Q.shape[-1]), cfg.warpgroups * n + self.number
        c = load(problem.scale.gather((ROWS,), lambda _: (0,)), self.inner.C.axis(0))
        for sums in (self.of_keys, self.of_values):
            if sums is not None:
                sums.total[:] = 0.0
        held = self.rings.held.wait()
        k = held.k.tile((ROWS, width), (self.number, 0))
        v = held.v.tile((ROWS, width), (self.number, 0)) if cfg.keys else None
        seen = problem.seen(b)
        own = Tile(seen, n * cfg.bn + ROWS * self.number, seen.clear_queries(n * cfg.bn, cfg.bn, cfg.bm), k, v, c)
        first, count = seen.query_blocks(n * cfg.bn, cfg.bm)
        each = maximum(1, count) if problem.packed else count
        for i in loop(problem.group * count):
            self._step(own, (b, g * problem.group + i // each, first + i % each))
        self.rings.held.release()
        if self.of_values is not None and dV is not None:
            store_rows(self.of_values.total, problem.stored_keys(dV, b, g).tile((ROWS, width), (rows, 0)), boxes)
        if self.of_keys is not None and dK is not None:
            store_rows(
                self.of_keys.total * (c * LN_2), problem.stored_keys(dK, b, g).tile((ROWS, width), (rows, 0)), boxes
            )

    def _step(self, own: Tile, at: Place) -> None:
        """Add what a block of queries contributes."""
        packed = self.problem.packed
        sums = self._numbers(self.problem.L, at) if packed else None
        delta = self._numbers(self.problem.Delta, at) if packed and self.products is not None else None
        q = self.rings.q.wait()
        mma(self.inner, self.scores, own.k, q.q, init=True)
        do = self.rings.do.wait()
        if self.products is not None and own.v is not None:
            mma(self.inner, self.products, own.v, do.do, init=True)
        columns = self.inner.C.axis(1)
        sums = load(q.sums[0], columns) if sums is None else sums
        if not packed and self.products is not None:
            delta = load(do.delta[0], columns)
        wgmma.wait(0 if self.products is None else 1)
        weights = weights_of(self.problem, self.scores, own, (at[2], self.cfg.bm), sums)
        if self.of_values is not None:
            self.of_values.add(self.outer, weights, do.do)
        if self.products is not None and self.of_keys is not None and delta is not None:
            wgmma.wait(0 if self.of_values is None else 1)
            self.of_keys.add(self.outer, weights * (self.products - delta), q.q)
        wgmma.wait(0)
        self.rings.do.release()
        self.rings.q.release()

    def _numbers(self, tensor: Tensor, at: Place) -> Fragment:
        """L, or Delta, of a block of queries from global memory: its first row is anywhere, unlike that of a box."""
        b, h, m = at
        rows = self.problem.of_query_head(tensor, b, h)
        return load(rows.tile((self.cfg.bm,), (m,)), self.inner.C.axis(1), via=ld_global_b32, edge=0)


def weights_of(problem: Problem, scores: Fragment, own: Tile, at: tuple[Int, int], sums: Fragment) -> Fragment:
    """The weights of a block of queries, in place of their scores. at: the block's number and size."""
    (m, bm), weights = at, scores
    weights[:] = exp2(fma(weights, own.scale, -sums))
    t, r = weights.index
    q, key = m * bm + r, own.key0 + t
    if problem.causal:  # of rows beyond the queries, all other factors are zeros
        with when(m < own.clear):
            weights[:] = where(own.seen.sees(q, key), weights, 0.0)
    return weights
