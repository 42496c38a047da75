"""All gradients on Hopper by one pass over the keys: those of queries are added up in memory.

Each of two warpgroups holds 64 keys and goes through the queries, as for the gradients of keys and values alone. The
changes dS of both are stored in shared memory as well, in two buffers by turns, and after a barrier of both each adds
their product with half of the keys' columns to the gradients of the queries, in f32. So there are five products where
the launches for keys and for queries compute seven. The order of additions differs from run to run.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_backward import LN_2, ROWS, AttentionBackward, Place, by_heads, by_tiles
from argus.kernels.schedules.attention_backward_formulas import claim_keys
from argus.kernels.schedules.attention_backward_keys import BackwardKeys, Rings, Sums, Tile, load_tile, weights_of
from argus.kernels.schedules.stored_rows import BOX, store_rows
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    WarpgroupMma,
    add,
    assume,
    block_id,
    bulk,
    ceil_div,
    copy,
    elected,
    f32,
    fence,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    stmatrix,
    sync,
    warpgroup,
    warpgroups,
    wgmma,
    zeros,
)


@frozen
class BackwardSums:
    """The launches before and after. rows: of a block. wide: as of `BackwardAtOnce`."""

    wide: bool = True
    rows: int = 64
    target = sm_90a
    threads = 256


@frozen
class BackwardAtOnce(BackwardKeys):
    """As `BackwardKeys`, with the gradients of all three. wide: 16 bytes are added at a time, see `place_of`."""

    wide: bool = True

    @property
    def sums(self) -> BackwardSums:
        """The configuration of the launches before and after."""
        return BackwardSums(self.wide)


def place_of(row: Int, column: Int, width: int) -> Place:
    """The number of a half, and the row and column in it, at which an element of 64 gradients is added up.

    Registers of a thread follow each other: two columns of each of two rows.
    """
    half, c = column // (width // 2), column % (width // 2)
    number = 8 * width * (row // 16) + 128 * (c // 8) + 16 * (row % 8) + 4 * (c % 8 // 2) + 2 * (row // 8 % 2) + c % 2
    return half, number // width, number % width


def backward_at_once(problem: AttentionBackward, sums: Tensor, dK: Tensor, dV: Tensor, cfg: BackwardAtOnce) -> None:
    """The gradients of keys and values, and those of queries over s ln(2), which are added to `sums`."""
    (batch, groups, keys, depth), kind, bm, bn = problem.K.shape, problem.K.dtype, cfg.bm, cfg.bn
    width, counts = int(depth), (ceil_div(keys, bn), groups, batch)
    assume(batch * groups * counts[0] < 1 << 24, problem.group * ceil_div(problem.Q.shape[2], bm) < 1 << 24)
    assume(sums.shape[2] % bm == 0, sums.shape[2] >= problem.Q.shape[2])
    rings = Rings(
        Ring(1, k=shared(kind, (bn, width), swizzle=128), v=shared(kind, (bn, width), swizzle=128)),
        Ring(cfg.stages, q=shared(kind, (bm, width), swizzle=128), sums=shared(f32, (1, bm))),
        Ring(cfg.stages, do=shared(kind, (bm, width), swizzle=128), delta=shared(f32, (1, bm))),
    )
    boxes = shared(kind, (cfg.warpgroups, 1, ROWS, BOX), swizzle=128)
    changes = shared(kind, (2, bn, bm), swizzle=128)
    order = by_tiles if problem.causal and not cfg.heads else by_heads
    tiles = persistent(counts, order=order, zigzag=problem.causal)
    with role("load", warpgroup(0).elected, registers=24):
        for n, g, b in tiles:
            load_tile(problem, cfg, rings, (b, g, n))
    with role("math", warpgroups(1, 2), registers=240) as wg:
        own = _Warpgroup.of(problem, cfg, rings, wg, changes, sums)
        for n, g, b in tiles:
            own.tile((b, g, n), (dK, dV), boxes[wg])
        with elected():
            bulk.wait(0)
    claim_keys(problem, dK, dV)


@frozen
class _Warpgroup:
    """The registers of a warpgroup: scores, dO . V, and the gradients. changes: those of both warpgroups."""

    problem: AttentionBackward
    cfg: BackwardAtOnce
    rings: Rings
    number: Int
    inner: WarpgroupMma
    outer: WarpgroupMma
    last: WarpgroupMma
    scores: Fragment
    products: Fragment
    of_keys: Sums
    of_values: Sums
    of_queries: Fragment
    changes: Tensor
    sums: Tensor

    @classmethod
    def of(
        cls, problem: AttentionBackward, cfg: BackwardAtOnce, rings: Rings, number: Int, changes: Tensor, sums: Tensor
    ) -> _Warpgroup:
        kind, width = problem.Q.dtype, int(problem.Q.shape[3])
        inner, outer = wgmma(kind, n=cfg.bm), wgmma(kind, n=width, a="registers", b_major="n")
        last = wgmma(kind, n=width // 2, b_major="n")
        scores, products, of_queries = registers(f32, inner.C), registers(f32, inner.C), registers(f32, last.C)
        of_keys, of_values = (Sums.of(outer, kind, cfg.bm) for _ in range(2))
        return cls(
            *(problem, cfg, rings, number, inner, outer, last, scores, products),
            *(of_keys, of_values, of_queries, changes, sums),
        )

    def tile(self, at: Place, gradients: tuple[Tensor, Tensor], boxes: Tensor) -> None:
        """Compute and store the gradients of 64 keys and their values, and add to those of all queries that see one."""
        problem, cfg, (b, g, n), (dK, dV) = self.problem, self.cfg, at, gradients
        width, rows = int(problem.Q.shape[3]), cfg.warpgroups * n + self.number
        c = load(problem.scale.gather((ROWS,), lambda _: (0,)), self.inner.C.axis(0))
        for each in (self.of_keys, self.of_values):
            each.total[:] = 0.0
        sync("both", threads=2 * 128)  # what the other warpgroup stored for the tile before has been read
        held = self.rings.held.wait()
        k, v = (each.tile((ROWS, width), (self.number, 0)) for each in (held.k, held.v))
        seen = problem.seen(b)
        own = Tile(seen, n * cfg.bn + ROWS * self.number, seen.clear_queries(n * cfg.bn, cfg.bn, cfg.bm), k, v, c)
        first, count = seen.query_blocks(n * cfg.bn, cfg.bm)
        for i in loop(problem.group * count):
            self._step(own, (b, g * problem.group + i // count, first + i % count), held.k, self.changes[i % 2])
        self.rings.held.release()
        store_rows(self.of_values.total, dV[b, g].tile((ROWS, width), (rows, 0)), boxes)
        store_rows(self.of_keys.total * (c * LN_2), dK[b, g].tile((ROWS, width), (rows, 0)), boxes)

    def _step(self, own: Tile, at: Place, keys: Tensor, changes: Tensor) -> None:
        """Add what block m of queries contributes, and to its gradients what the keys do. keys: of both warpgroups."""
        columns, cfg, (b, h, m), width = self.inner.C.axis(1), self.cfg, at, int(self.problem.Q.shape[3])
        assert own.v is not None
        q = self.rings.q.wait()
        mma(self.inner, self.scores, own.k, q.q, init=True)
        do = self.rings.do.wait()
        mma(self.inner, self.products, own.v, do.do, init=True)
        sums, delta = load(q.sums[0], columns), load(do.delta[0], columns)
        wgmma.wait(1)
        weights = weights_of(self.problem, self.scores, own, (m, cfg.bm), sums)
        self.of_values.add(self.outer, weights, do.do)
        wgmma.wait(1)
        self.of_keys.factors[:] = (weights * (self.products - delta)).to(self.problem.Q.dtype)
        copy(self.of_keys.factors, changes.tile((ROWS, cfg.bm), (self.number, 0)), via=stmatrix.x4)
        fence("async proxy")
        sync("both", threads=2 * 128)
        mma(self.last, self.of_queries, changes.T, keys.tile((cfg.bn, width // 2), (0, self.number)), init=True)
        mma(self.outer, self.of_keys.total, self.of_keys.factors, q.q)
        wgmma.wait(1)
        self.rings.do.release(sync=False)  # all threads have met since they read Delta, and L
        copy(self.of_queries, self._target(b, h, m), combine=add)
        wgmma.wait(0)
        self.rings.q.release(sync=False)

    def _target(self, b: Int, h: Int, m: Int) -> Tensor:
        """Where a block's gradients are added, in half of the columns."""
        width, bm = int(self.problem.Q.shape[3]), self.cfg.bm
        rows = self.sums[b, h].tile((bm, width), (m, 0))
        if not self.cfg.wide:
            return rows.tile((bm, width // 2), (0, self.number))

        def place(r: Int, c: Int) -> tuple[Int, Int]:
            half, row, column = place_of(r, self.number * (width // 2) + c, width)
            return half * (bm // 2) + row, column

        return rows.gather((bm, width // 2), place)


def clear_sums(sums: Tensor, cfg: BackwardSums) -> None:
    """0 in all of sums."""
    i, h, b = block_id((ceil_div(sums.shape[2], cfg.rows), sums.shape[1], sums.shape[0]))
    tile = (cfg.rows, int(sums.shape[3]))
    copy(zeros(f32, spread(tile, threads=cfg.threads, vector=4)), sums[b, h].tile(tile, (i, 0)), edge=0)


def round_sums(sums: Tensor, scale: Tensor, dQ: Tensor, cfg: BackwardSums) -> None:
    """dQ = s ln(2) sums."""
    width = int(dQ.shape[3])
    i, h, b = block_id((ceil_div(dQ.shape[2], cfg.rows), dQ.shape[1], dQ.shape[0]))
    by = spread((cfg.rows, width), threads=cfg.threads, vector=2 if cfg.wide else 8)
    s = load(scale.gather((cfg.rows,), lambda _: (0,)), by.axis(0))
    source = sums[b, h].tile((cfg.rows, width), (i, 0))
    if cfg.wide:

        def place(r: Int, c: Int) -> tuple[Int, Int]:
            half, row, column = place_of(r, c, width)
            return half * (cfg.rows // 2) + row, column

        source = source.gather((cfg.rows, width), place)
    copy((load(source, by) * (s * LN_2)).to(dQ.dtype), dQ[b, h].tile((cfg.rows, width), (i, 0)), edge=0)
