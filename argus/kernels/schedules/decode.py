"""Decode attention on Hopper: few queries per sequence on keys and values in pages, split over blocks.

A part is some consecutive blocks of one sequence's keys. A loading warp reads the page table and fetches pages by TMA;
each warpgroup holds 64 rows, the queries of a group's heads, so that keys and values are read once per group. A second
launch merges the parts of a sequence.
"""

from __future__ import annotations

from math import inf, log

from attrs import frozen

from argus.kernels.schedules.attention import LEAST_SCALE
from argus.language import (
    Int,
    Ring,
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    eq,
    exp2,
    f32,
    fma,
    load,
    log2,
    loop,
    maximum,
    minimum,
    mma,
    registers,
    role,
    scalar,
    shared,
    sm_90a,
    spread,
    thread,
    tma,
    warp,
    warpgroups,
    wgmma,
    where,
)

_LN_2 = log(2.0)
_ROWS = 64
"""Rows of a warpgroup."""


@frozen
class Decode:
    """Parts of `blocks` blocks of bn keys, of heads of `width` elements in pages of `page` keys.

    heads: query heads of a group, at most; rows of one token. warpgroups: each holds 64 rows. stages: blocks in shared
    memory at a time. causal: token s of S sees all keys but the last S - 1 - s.
    """

    heads: int = 8
    blocks: int = 8
    page: int = 16
    width: int = 128
    bn: int = 64
    warpgroups: int = 1
    stages: int = 3
    causal: bool = True
    target = sm_90a

    @property
    def threads(self) -> int:
        """The warpgroups, and a warp to load."""
        return 128 * self.warpgroups + 32

    @property
    def tokens(self) -> int:
        """Tokens of a sequence, at most."""
        return _ROWS * self.warpgroups // self.heads

    def parts(self, pages: Int) -> Int:
        """The number of parts that so many pages are."""
        return ceil_div(pages * self.page, self.bn * self.blocks)


@frozen
class Merge:
    """Merges the parts of one token's heads."""

    of: Decode
    target = sm_90a

    @property
    def threads(self) -> int:
        """Four elements of a row a thread, one row of each of `rows` at a time."""
        return self.rows * self.of.width // 4

    @property
    def rows(self) -> int:
        """Rows that the threads hold at a time."""
        return min(self.of.heads, 8)


@frozen
class Cache:
    """Keys and values in pages: key t of sequence b is slot t % size of page table[b, t // size].

    K, V: (pages, groups, size, elements). table: (sequences, pages). lengths: of each sequence. Numbers of pages and
    lengths outside of what the cache holds are taken to be the nearest ones that it does.
    """

    K: Tensor
    V: Tensor
    table: Tensor
    lengths: Tensor
    size: int

    def length(self, b: Int) -> Int:
        """The number of keys of a sequence."""
        return length_of(self.lengths, b, self.table.shape[1] * self.size)

    def page(self, b: Int, i: Int) -> Int:
        """The page of keys from i * size on."""
        return minimum(maximum(scalar(self.table[b, i]), 0), self.K.shape[0] - 1)


def length_of(lengths: Tensor, b: Int, most: Int) -> Int:
    """The number of keys of a sequence, of at most so many that its pages hold."""
    return minimum(maximum(scalar(lengths[b]), 0), most)


def seen(cfg: Decode, length: Int, tokens: Int, s: Int) -> Int:
    """The number of keys that token s of a sequence sees: the first ones."""
    return length - (tokens - 1 - s) if cfg.causal else length


def decode_parts(Q: Tensor, cache: Cache, scale: Tensor, results: tuple[Tensor, Tensor, Tensor], cfg: Decode) -> None:
    """Each part's sum of values, maximum of scores, and sum of weights, the sums relative to that maximum.

    Q: (sequences, groups, heads, tokens, elements). results: (sequences, groups, tokens, parts, heads), the first with
    elements.
    """
    (B, G, R, S, _), (P, _, C, _), N = Q.shape, cache.K.shape, cache.table.shape[1]
    width, bn, kind, Z = cfg.width, cfg.bn, Q.dtype, results[0].shape[3]
    assume(R >= 1, cfg.heads >= R, S >= 1, cfg.tokens >= S, N >= 1, P >= 1, eq(C, cfg.page))
    assume(eq(results[0].shape[4], cfg.heads))
    assume(N < 1 << 20, G < 1 << 16, B < 1 << 16, P * G < 1 << 40, cfg.parts(N) <= Z)
    ring = Ring(cfg.stages, k=shared(kind, (bn, width), swizzle=128), v=shared(kind, (bn, width), swizzle=128))
    z, g, b = block_id((Z, G, B))
    length = cache.length(b)
    low, high = z * cfg.blocks, minimum((z + 1) * cfg.blocks, ceil_div(length, bn))

    with role("math", warpgroups(*range(cfg.warpgroups))) as wg:
        qk, pv = wgmma(kind, n=bn, a="registers"), wgmma(kind, n=width, a="registers", b_major="n")
        scores, weights, out = registers(f32, qk.C), registers(kind, pv.A.tiled(k=bn)), registers(f32, pv.C)
        top, sums = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))
        c = maximum(load(scale.gather((_ROWS,), lambda _: (0,)), qk.C.axis(0)), LEAST_SCALE)
        token = _ROWS // cfg.heads * wg  # the first of this warpgroup
        rows = Q[b, g].gather((_ROWS, width), lambda r, d: (r % cfg.heads, token + r // cfg.heads, d))
        q = load(rows, qk.A.tiled(k=width), edge=0)
        top[:], sums[:], out[:] = -inf, 0.0, 0.0
        for i in loop(low, high):
            slot = ring.wait()
            mma(qk, scores, q, slot.k, init=True)
            wgmma.wait(0)
            r, j = scores.index
            x = where(i * bn + j < seen(cfg, length, S, token + r // cfg.heads), scores, -inf)
            now = maximum(top, x.max(1))
            guard = where(now == -inf, 0.0, now) if cfg.causal else now  # for subtractions only
            rescale = exp2((top - guard) * c)
            e = exp2(fma(x, c, guard * -c))
            sums[:] = sums * rescale + e.sum(1, within=thread)
            top[:] = now
            weights[:] = e.to(kind)
            out[:] = out * rescale
            mma(pv, out, weights, slot.v)
            wgmma.wait(0)
            ring.release()
        whole = sums.sum(1)
        for held, result in ((top, results[1]), (whole, results[2])):
            at = result[b, g, :, z].gather((_ROWS,), lambda r: (token + r // cfg.heads, r % cfg.heads))
            copy(held, at, edge=0)
        at = results[0][b, g, :, z]
        copy(out, at.gather((_ROWS, width), lambda r, d: (token + r // cfg.heads, r % cfg.heads, d)), edge=0)

    fetched = min(bn, cfg.page)
    with role("load", warp(4 * cfg.warpgroups).elected):
        for i in loop(low, high):
            with ring.fill() as slot:
                for n in range(bn // fetched):
                    first = i * bn + n * fetched
                    page = cache.page(b, minimum(first // cfg.page, N - 1))
                    for held, tensor in ((slot.k, cache.K), (slot.v, cache.V)):
                        rows = tensor[page, g].tile((fetched, width), (first % cfg.page // fetched, 0))
                        copy(rows, held.tile((fetched, width), (n, 0)), via=tma, edge=0)


def decode_merge(
    parts: tuple[Tensor, Tensor, Tensor], lengths: Tensor, scale: Tensor, results: tuple[Tensor, Tensor], cfg: Merge
) -> None:
    """O = the values' sums of all parts over the weights' sums, and the logarithm of these.

    parts: as `decode_parts` leaves them. results: O, (sequences, groups, heads, tokens, elements), and LSE without the
    elements.
    """
    (values, tops, sums), (O, LSE) = parts, results  # noqa: E741 reason: the output's name in every paper
    (B, G, R, S, _), Z, of = O.shape, values.shape[3], cfg.of
    assume(R >= 1, of.heads >= R, S >= 1, of.tokens >= S, G < 1 << 16, B < 1 << 16, B * G < 1 << 24)
    assume(Z < 1 << 16, eq(values.shape[4], of.heads))
    s, g, b = block_id((S, G, B))
    by = spread((of.heads, of.width), threads=cfg.threads, vector=4)
    rows, row, tile = by.axis(0), ((of.heads,), (0,)), ((of.heads, of.width), (0, 0))
    top, weights, out = registers(f32, rows), registers(f32, rows), registers(f32, by)
    c = maximum(load(scale.gather((of.heads,), lambda _: (0,)), rows), LEAST_SCALE)
    count = ceil_div(ceil_div(length_of(lengths, b, Z * of.blocks * of.bn), of.bn), of.blocks)
    top[:], weights[:], out[:] = -inf, 0.0, 0.0
    for z in loop(count):
        high = load(tops[b, g, s, z].tile(*row), rows)
        now = maximum(top, high)
        guard = where(now == -inf, 0.0, now) if of.causal else now  # for subtractions only
        rescale, w = exp2((top - guard) * c), exp2((high - guard) * c)
        weights[:] = weights * rescale + w * load(sums[b, g, s, z].tile(*row), rows)
        out[:] = out * rescale + w * load(values[b, g, s, z].tile(*tile), by)
        top[:] = now
    copy((log2(weights) + top * c) * _LN_2, LSE[b, g, :, s].tile(*row), edge=0)
    whole = out * (1.0 / where(weights == 0, 1.0, weights))
    copy(whole.to(O.dtype), O[b, g, :, s].tile(*tile), edge=0)
