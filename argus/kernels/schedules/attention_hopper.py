"""FlashAttention-3's schedule of attention on Hopper: two warpgroups alternate between products and exponentials.

One role loads Q, K and V through three rings, last key block first. Each of two or three warpgroups holds 64 queries.
While one computes exponentials, another multiplies; and within a warpgroup, the scores of a block are multiplied while
the values of the block after it are summed.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.kernels.schedules.attention import RAISED, Attention, Rows, Seen, of_scores, of_values
from argus.kernels.schedules.attention_packed import PackedAttention
from argus.kernels.schedules.stored_rows import BOX, store_rows
from argus.kernels.schedules.turned_values import key_at
from argus.language import (
    DType,
    Fragment,
    Int,
    IntLike,
    Order,
    Ring,
    Tensor,
    Turns,
    WarpgroupMma,
    assert_covers,
    bulk,
    by_rows,
    copy,
    elected,
    f32,
    load,
    longest_first,
    loop,
    minimum,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    sync,
    tanh,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

Problem = Attention | PackedAttention
_ROWS = 64
"""Queries of a warpgroup."""
_TOLERANCE = 0.01
"""A difference in evenness that a better use of the L2 cache outweighs."""
SECTION = 11
"""Heads at a time, a twelfth of the processors: rounds in a zigzag are then even for 16, 32 and 64 tiles of a head."""
REGISTERS = {2: (24, 240), 3: (32, 160)}
"""Registers a thread of the loading warpgroup and of those that compute, by the number of the latter."""


@frozen
class AttentionHopper:
    """bn keys a block. heads: the heads whose K and V share the L2 cache at a time, if causal; it also decides how
    evenly work is divided, as CTAs take tiles in rounds; 0: one, with its tiles in order. zigzag: every other round in
    reverse. boxes: the parts of O that are stored at a time; 0: none, O is stored from registers. warpgroups: those
    that compute, two or three. capped: the scores have a soft cap. tiles_ahead: tiles whose queries are loaded before
    those of the tile that is computed are released, so that its last product does not wait for the next one's loads.
    stages: blocks of K, and of V, in shared memory. by_segments: each packed sequence has as many tiles as its queries
    need, in an order of their own, and not as many as the longest one.

    Techniques that can be switched off: together, exponentials are computed before the products of the block after are
    waited for, which the compiler would otherwise wait for first; skip_mask, blocks that all rows see are not masked.
    """

    bn: int = 128
    causal: bool = True
    heads: int = 32
    zigzag: bool = False
    boxes: int = 2
    together: bool = False
    skip_mask: bool = True
    warpgroups: int = 2
    capped: bool = False
    tiles_ahead: int = 0
    stages: int = 2
    by_segments: bool = True
    target = sm_90a

    @property
    def masked_rows(self) -> bool:
        """Whether there may be more queries than keys, the first of which see none; not proved with `skip_mask`."""
        return self.causal and not self.skip_mask

    @property
    def threads(self) -> int:
        """A warpgroup to load, and those that compute."""
        return 128 * (1 + self.warpgroups)

    @property
    def bm(self) -> int:
        """Queries of a tile."""
        return self.warpgroups * _ROWS

    @property
    def order(self) -> Order:
        return longest_first(sections=self.heads) if self.causal and self.heads else _by_heads


def balance(cfg: AttentionHopper, tiles: int, pairs: int) -> float:
    """The work of all tiles, divided evenly among CTAs, over that of the CTA with the most; at most 1.

    tiles: of each of `pairs` pairs of a head and a sequence, as many queries as keys. A tile's work is its key blocks,
    and 2 for its beginning and end.
    """
    load = [0] * cfg.target.processors
    for number in range(tiles * pairs):
        section, inside = divmod(number, tiles * cfg.heads)
        row = inside // min(cfg.heads, pairs - section * cfg.heads)
        i, place = divmod(number, len(load))
        block = len(load) - 1 - place if cfg.zigzag and i % 2 else place
        load[block] += (tiles - row if cfg.causal else tiles) + 2
    return sum(load) / len(load) / max(load)


def choose(configs: Mapping[str, AttentionHopper], queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """The configuration for pairs of a head and a sequence, of those of one head dimension.

    Among those that divide work about as evenly as any: one that skips the mask where it can, which none does that
    takes more queries than keys; then the one with the fewest heads at a time in the L2 cache.
    """
    rows = causal and queries > keys
    fit = {name: cfg for name, cfg in configs.items() if cfg.causal == causal and (cfg.masked_rows or not rows)}
    evenness = {name: balance(cfg, -(-queries // cfg.bm), pairs) for name, cfg in fit.items()}
    best = max(evenness.values())
    even = [name for name in fit if evenness[name] >= best - _TOLERANCE]
    return min(even, key=lambda name: (not fit[name].skip_mask, fit[name].heads))


def _by_heads(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """All tiles of a head, one head after another."""
    tiles, heads, batch = counts
    b, h, i = by_rows(number, (batch, heads, tiles))
    return i, h, b


@frozen
class _Rings:
    """The blocks of Q, K and V in shared memory."""

    q: Ring
    k: Ring
    v: Ring


def attention_hopper(problem: Problem, cfg: AttentionHopper) -> None:
    Q, bm, bn, width = problem.Q, cfg.bm, cfg.bn, int(problem.Q.shape[-1])
    tiles = problem.work(bm, cfg.order, zigzag=cfg.zigzag, by_segments=cfg.by_segments)
    rings = _Rings(
        Ring(1 + cfg.tiles_ahead, q=_block(Q.dtype, bm, width)),
        Ring(cfg.stages, k=_block(Q.dtype, bn, width)),
        Ring(cfg.stages, v=_block(Q.dtype, bn, width) if problem.descale is None else _block(Q.dtype, width, bn)),
    )
    boxes = None
    if cfg.boxes:
        boxes = shared(problem.O.dtype, (cfg.warpgroups, min(cfg.boxes, width // BOX), _ROWS, BOX), swizzle=128)
    turns = Turns(cfg.warpgroups)
    with role("load", warpgroup(0).elected, registers=REGISTERS[cfg.warpgroups][0]):
        for i, h, b in tiles:
            with problem.where_seen(b, i * bm, bm):
                _load_tile(problem, cfg, rings, (b, h, i))
    with role("math", warpgroups(*range(1, 1 + cfg.warpgroups)), registers=REGISTERS[cfg.warpgroups][1]) as wg:
        own = _Warpgroup.of(problem, cfg, rings, turns, wg)
        for i, h, b in tiles:
            at = b, h, i
            rows = own.begin(at)
            with problem.where_seen(b, i * bm, bm):
                own.tile(at, rows)
            with problem.where_rows(b, i * bm):
                own.store(at, rows, None if boxes is None else boxes[wg])
        if boxes is not None and not problem.packed:
            with elected():
                bulk.wait(0)
    problem.finish()


def _block(kind: DType, rows: int, columns: int) -> Tensor:
    """A block in shared memory, for the matrix unit."""
    size = columns * kind.bits // 8
    return shared(kind, (rows, columns), swizzle=next(span for span in (128, 64, 32) if size % span == 0))


Place = tuple[Int, Int, Int]
"""Batch, head, and tile of queries."""


def _load_tile(problem: Problem, cfg: AttentionHopper, rings: _Rings, at: Place) -> None:
    """Load Q, and the blocks of K and V from the last on."""
    (b, h, i), width = at, int(problem.Q.shape[-1])
    head = problem.head(b, h)
    start, end, _ = head.seen.blocks(i * cfg.bm, cfg.bm, cfg.bn, some=problem.packed)
    with rings.q.fill() as slot:
        copy(head.Q.tile((cfg.bm, width), (i, 0)), slot.q, via=tma, edge=0)
    for n in loop(end - 1, start - 1, step=-1):
        with rings.k.fill() as slot:
            copy(head.K.tile((cfg.bn, width), (n, 0)), slot.k, via=tma, edge=0)
        with rings.v.fill() as slot:
            turned = problem.descale is not None
            block = head.V.tile((width, cfg.bn), (0, n)) if turned else head.V.tile((cfg.bn, width), (n, 0))
            copy(block, slot.v, via=tma, edge=0)


@frozen
class _Tile:
    """What a warpgroup needs of its tile: what its queries see, the first one, the queries, and what rows carry.

    inner: the factor of a score whose tanh is taken before it is scaled, if scores are capped.
    """

    seen: Seen
    row0: Int
    q: Tensor
    rows: Rows
    inner: Fragment | None


@frozen
class _Warpgroup:
    """The registers of a warpgroup: scores, weights, and for each row the sum of values, maximum and sum of weights."""

    problem: Problem
    cfg: AttentionHopper
    rings: _Rings
    turns: Turns
    number: Int
    qk: WarpgroupMma
    pv: WarpgroupMma
    scores: Fragment
    weights: Fragment
    out: Fragment
    high: Fragment
    sums: Fragment

    @classmethod
    def of(cls, problem: Problem, cfg: AttentionHopper, rings: _Rings, turns: Turns, number: Int) -> _Warpgroup:
        kind = problem.Q.dtype
        major = "n" if problem.descale is None else "k"
        qk, pv = wgmma(kind, n=cfg.bn), wgmma(kind, n=int(problem.Q.shape[-1]), a="registers", b_major=major)
        scores, weights, out = registers(f32, qk.C), registers(kind, pv.A.tiled(k=cfg.bn)), registers(f32, pv.C)
        high, sums = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))  # one partial sum per lane
        return cls(problem, cfg, rings, turns, number, qk, pv, scores, weights, out, high, sums)

    def begin(self, at: Place) -> Rows:
        """What the rows of a tile carry, before any key."""
        (b, h, _), problem = at, self.problem
        c = of_scores(problem, b, h, _ROWS, self.qk.C.axis(0))
        rows = Rows(self.high, self.sums, c, keys=1, raised=0.0 if problem.descale is None else RAISED)
        rows.begin()
        self.out[:] = 0.0
        return rows

    def tile(self, at: Place, state: Rows) -> None:
        """Sum the values that 64 rows see."""
        problem, rings, cfg, (b, h, i) = self.problem, self.rings, self.cfg, at
        head = problem.head(b, h)
        start, end, clear = head.seen.blocks(i * cfg.bm, cfg.bm, cfg.bn, some=problem.packed)
        width = int(problem.Q.shape[-1])
        inner = None
        if problem.inner is not None:
            inner = load(problem.inner.gather((_ROWS,), lambda _: (0,)), self.qk.C.axis(0))
        queries = rings.q.wait().q.tile((_ROWS, width), (self.number, 0))
        own = _Tile(head.seen, i * cfg.bm + _ROWS * self.number, queries, state, inner)

        mma(self.qk, self.scores, own.q, rings.k.wait().k, init=True)  # the scores of the last block
        wgmma.wait(0)
        rings.k.release()
        if problem.tagged:
            assert_covers(self.scores.tag.d, 0, width)  # each score is a whole product
        weights, _ = self._softmax(own, end - 1, masked=True)
        self.weights[:] = self._rounded(weights)
        if cfg.causal or not cfg.skip_mask:
            for n in loop(end - 2, clear - 1 if cfg.skip_mask else start - 1, step=-1):
                self._step(own, n, masked=True)
        if cfg.skip_mask:
            for n in loop((minimum(clear, end - 1) if cfg.causal else end - 1) - 1, -1, step=-1):
                self._step(own, n, masked=False)
        rings.q.release()  # the next tile's queries are loaded under the last product
        mma(self.pv, self.out, self.weights, rings.v.wait().v)  # of the first block
        wgmma.wait(0)
        rings.v.release()

    def store(self, at: Place, state: Rows, boxes: Tensor | None) -> None:
        """Store 64 rows."""
        problem, cfg, (b, h, i) = self.problem, self.cfg, at
        head, width = problem.head(b, h), int(problem.Q.shape[-1])
        row0 = i * cfg.bm + _ROWS * self.number
        z = self.sums.sum(1)  # over the lanes that share a row, once
        if problem.tagged:
            head.complete(self.out, row0)
            head.complete(z, row0)
        rows = cfg.warpgroups * i + self.number
        copy(state.lse(z), head.LSE.tile((_ROWS,), (rows,)), edge=0)
        out, target = self.out * of_values(problem, b, h, _ROWS, z), head.O.tile((_ROWS, width), (rows, 0))
        store_rows(out, target, boxes, ends=problem.packed)

    def _step(self, own: _Tile, n: Int, *, masked: bool) -> None:
        """The scores of block n, while the values of block n + 1 are summed."""
        with self.turns(self.number):
            mma(self.qk, self.scores, own.q, self.rings.k.wait().k, init=True)
            mma(self.pv, self.out, self.weights, self.rings.v.wait().v)
        wgmma.wait(1)  # the scores are ready; the other product still reads the weights
        self.rings.k.release()
        weights, rescale = self._softmax(own, n, masked=masked)
        if self.cfg.together:
            sync()
        wgmma.wait(0)
        self.rings.v.release()
        self.weights[:] = self._rounded(weights)
        self.out[:] = self.out * rescale  # after the product of block n + 1: both cover the same blocks

    def _rounded(self, weights: Fragment) -> Fragment:
        """The weights as the factor of a product: a thread's registers stay its own."""
        if self.problem.descale is None:
            return weights.to(self.problem.Q.dtype)
        turned = weights.gather(self.weights.layout, lambda row, place: (row, key_at(place)))
        return turned.to(self.problem.Q.dtype, saturate=True)  # none is beyond 2^8: no test whether one is

    def _softmax(self, own: _Tile, n: IntLike, *, masked: bool) -> tuple[Fragment, Fragment]:
        """The weights of a block, and the factor for what was summed before."""
        scores = self.scores if own.inner is None else tanh(self.scores * own.inner)
        stored = self.problem.tagged
        return own.seen.softmax(scores, own.rows, own.row0, n * self.cfg.bn, masked=masked, stored=stored)
