"""The gradients of queries on Hopper: each warpgroup holds 64 queries and goes through the keys that they see.

One role loads Q and dO of a tile, and through two rings blocks of K and V, the last first.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_backward import LN_2, ROWS, Place, SeenBlocks, by_heads
from argus.kernels.schedules.attention_backward_formulas import Problem, claim_queries
from argus.kernels.schedules.stored_rows import BOX, store_rows
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    WarpgroupMma,
    assume,
    bulk,
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
    where,
)


@frozen
class BackwardQueries:
    """bn keys a block. stages: blocks of keys in shared memory."""

    bn: int = 64
    stages: int = 4
    target = sm_90a
    warpgroups = 2
    threads = 384

    @property
    def bm(self) -> int:
        """Queries of a tile."""
        return self.warpgroups * ROWS


@frozen
class _Rings:
    """Q and dO of a tile; K and V by blocks of keys."""

    held: Ring
    k: Ring
    v: Ring


def backward_queries(problem: Problem, dQ: Tensor, cfg: BackwardQueries) -> None:
    """The gradients of queries."""
    kind, bm, bn, width = problem.Q.dtype, cfg.bm, cfg.bn, int(problem.Q.shape[-1])
    counts = problem.query_tiles(bm)
    number, heads, batch = counts
    assume(batch * heads * number < 1 << 24)
    rings = _Rings(
        Ring(1, q=shared(kind, (bm, width), swizzle=128), do=shared(kind, (bm, width), swizzle=128)),
        Ring(cfg.stages, k=shared(kind, (bn, width), swizzle=128)),
        Ring(cfg.stages, v=shared(kind, (bn, width), swizzle=128)),
    )
    boxes = None if problem.packed else shared(kind, (cfg.warpgroups, 1, ROWS, BOX), swizzle=128)
    tiles = persistent(counts, order=by_heads, zigzag=problem.causal)
    with role("load", warpgroup(0).elected, registers=24):
        for i, h, b in tiles:
            with problem.where_queries(b, i * bm):
                _load_tile(problem, cfg, rings, (b, h, i))
    with role("math", warpgroups(1, 2), registers=240) as wg:
        own = _Warpgroup.of(problem, cfg, rings, wg)
        for i, h, b in tiles:
            with problem.where_queries(b, i * bm):
                own.tile((b, h, i), dQ, None if boxes is None else boxes[wg])
        if boxes is not None:
            with elected():
                bulk.wait(0)
    claim_queries(problem, dQ)


def _load_tile(problem: Problem, cfg: BackwardQueries, rings: _Rings, at: Place) -> None:
    """Load Q and dO, and the blocks of K and V from the last on."""
    (b, h, i), width = at, int(problem.Q.shape[-1])
    k, v = (problem.of_key_head(each, b, h // problem.group) for each in (problem.K, problem.V))
    with rings.held.fill() as slot:
        copy(problem.of_query_head(problem.Q, b, h).tile((cfg.bm, width), (i, 0)), slot.q, via=tma, edge=0)
        copy(problem.of_query_head(problem.dO, b, h).tile((cfg.bm, width), (i, 0)), slot.do, via=tma, edge=0)
    count, _ = problem.seen(b).key_blocks(i * cfg.bm, cfg.bm, cfg.bn)
    for n in loop(count - 1, -1, step=-1):
        with rings.k.fill() as slot:
            copy(k.tile((cfg.bn, width), (n, 0)), slot.k, via=tma, edge=0)
        with rings.v.fill() as slot:
            copy(v.tile((cfg.bn, width), (n, 0)), slot.v, via=tma, edge=0)


@frozen
class _Tile:
    """What a warpgroup needs of its tile: what is seen, the first query, the rows, and numbers for each of them."""

    seen: SeenBlocks
    row0: Int
    q: Tensor
    do: Tensor
    scale: Fragment
    sums: Fragment
    delta: Fragment


@frozen
class _Warpgroup:
    """The registers of a warpgroup: scores and dO . V, the latter's weighted changes, and the gradients."""

    problem: Problem
    cfg: BackwardQueries
    rings: _Rings
    number: Int
    inner: WarpgroupMma
    outer: WarpgroupMma
    scores: Fragment
    products: Fragment
    changes: Fragment
    out: Fragment

    @classmethod
    def of(cls, problem: Problem, cfg: BackwardQueries, rings: _Rings, number: Int) -> _Warpgroup:
        kind, width = problem.Q.dtype, int(problem.Q.shape[-1])
        inner, outer = wgmma(kind, n=cfg.bn), wgmma(kind, n=width, a="registers", b_major="n")
        scores, products = registers(f32, inner.C), registers(f32, inner.C)
        changes, out = registers(kind, outer.A.tiled(k=cfg.bn)), registers(f32, outer.C)
        return cls(problem, cfg, rings, number, inner, outer, scores, products, changes, out)

    def tile(self, at: Place, dQ: Tensor, boxes: Tensor | None) -> None:
        """Compute and store the gradients of 64 queries."""
        problem, cfg, (b, h, i) = self.problem, self.cfg, at
        width, rows = int(problem.Q.shape[-1]), cfg.warpgroups * i + self.number
        each_row = self.inner.C.axis(0)
        c = load(problem.scale.gather((ROWS,), lambda _: (0,)), each_row)
        numbers = (problem.of_query_head(each, b, h) for each in (problem.L, problem.Delta))
        sums, delta = (load(each.tile((ROWS,), (rows,)), each_row, edge=0) for each in numbers)
        self.out[:] = 0.0
        held = self.rings.held.wait()
        q, do = (each.tile((ROWS, width), (self.number, 0)) for each in (held.q, held.do))
        seen = problem.seen(b)
        own = _Tile(seen, i * cfg.bm + ROWS * self.number, q, do, c, sums, delta)
        count, clear = seen.key_blocks(i * cfg.bm, cfg.bm, cfg.bn)
        for n in loop(count - 1, clear - 1, step=-1):
            self._step(own, n, masked=True)
        for n in loop(clear - 1, -1, step=-1):
            self._step(own, n, masked=False)
        self.rings.held.release()
        store_rows(self.out * (c * LN_2), problem.stored_queries(dQ, b, h).tile((ROWS, width), (rows, 0)), boxes)

    def _step(self, own: _Tile, n: Int, *, masked: bool) -> None:
        """Add what block n of keys contributes."""
        k = self.rings.k.wait().k
        mma(self.inner, self.scores, own.q, k, init=True)
        v = self.rings.v.wait().v
        mma(self.inner, self.products, own.do, v, init=True)
        wgmma.wait(1)
        weights = exp2(fma(self.scores, own.scale, -own.sums))
        if masked:
            r, t = weights.index
            weights = where(own.seen.sees(own.row0 + r, n * self.cfg.bn + t), weights, 0.0)
        wgmma.wait(0)
        self.rings.v.release()
        self.changes[:] = (weights * (self.products - own.delta)).to(self.problem.Q.dtype)  # C layout to A layout
        mma(self.outer, self.out, self.changes, k)
        wgmma.wait(0)
        self.rings.k.release()
