"""Attention on MI300X: S^T = K Q^T and O^T = V^T P^T, by two groups of four waves one phase apart.

While one group multiplies, the other computes exponentials. The sums of S^T lie in registers as the factor P^T does, so
that weights need no shuffle. Keys, and values transposed in registers, go through two buffers each in LDS; values are
summed one iteration after their scores.
"""

from __future__ import annotations

from math import gcd, prod

from attrs import frozen

from argus.kernels.schedules.attention import LEAST_SCALE, Attention, Rows
from argus.language import (
    TV,
    Fragment,
    Int,
    IntLike,
    Layout,
    Swizzle,
    Tensor,
    TiledMma,
    assert_covers,
    assume,
    bf16,
    block_id,
    buffer_load,
    ceil_div,
    copy,
    ds_read_b64,
    ds_read_b128,
    ds_write_b64,
    ds_write_b128,
    eq,
    f32,
    gfx942,
    interleave,
    lds,
    load,
    loop,
    maximum,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_16x16x16_f16,
    mfma_f32_32x32x8_bf16,
    mfma_f32_32x32x8_f16,
    mma,
    priority,
    registers,
    rescale,
    sched_barrier,
    shared,
    spread,
    sync,
    vmem,
    wave,
    when,
    where,
)

_WAVES = 8
_PHASE = 16
"""Consecutive lanes that write 8 bytes each at once, to as many pairs of banks."""
_VECTOR = 8
"""Elements of keys that a lane reads at once."""
_RUN = 4
"""Consecutive keys that a lane holds of S^T, and reads and writes at once of V^T."""


@frozen
class AttentionCdna3:
    """bn keys a block. mfma: rows of the instruction, 16 or 32, which are also the queries of a wave.

    slices: parts of a block's keys, by their elements, of which each is read from LDS between the products of the one
    before. branch: a wave rescales its sums only where one of its maxima has moved.
    """

    bn: int = 64
    causal: bool = True
    mfma: int = 32
    slices: int = 1
    branch: bool = False
    masked_rows = False
    target = gfx942
    threads = 64 * _WAVES

    @property
    def bm(self) -> int:
        """Queries of a tile."""
        return _WAVES * self.mfma


def attention_cdna3(problem: Attention, cfg: AttentionCdna3) -> None:
    batch, H, S, _ = problem.Q.shape
    tiles = ceil_div(S, cfg.bm)
    assume(batch * H < 1 << 24)  # indices then fit 32 bits
    (_, G, T, width) = problem.K.shape
    assume(batch * G * T * (int(width) * 2) <= (1 << 32) - 16)  # a descriptor's span
    h, i, b = block_id((H, tiles, batch))  # blocks of a head share an L2 cache, if 8 divides the number of heads
    if cfg.causal:
        i = tiles - 1 - i  # longest first
    _Block.of(problem, cfg, (b, h, i)).run()
    problem.finish()


@frozen
class _Stage:
    """Blocks of keys and values that are copied to two buffers each in LDS, through registers."""

    k: Tensor
    v: Tensor
    keys: Tensor
    values: Tensor
    next_k: Fragment
    next_v: Fragment
    turned: Fragment

    @classmethod
    def of(cls, problem: Attention, cfg: AttentionCdna3, b: Int, g: Int) -> _Stage:
        kind, keys, width = problem.Q.dtype, cfg.bn, int(problem.Q.shape[3])
        loaded, stored = _columns(cfg, width)
        return cls(
            problem.K[b, g],
            problem.V[b, g],
            shared(kind, (2, keys, width), swizzle=Swizzle(3, 3, _bits(width) - 3), banks=1),
            shared(kind, (2, width, keys), swizzle=Swizzle(4, 2, max(4, _bits(keys) - 2)), banks=1),
            registers(kind, spread((keys, width), threads=cfg.threads, vector=8)),
            registers(kind, loaded),
            registers(kind, stored),
        )

    def fetch_keys(self, n: IntLike) -> None:
        copy(self.k.tile(self.next_k.shape, (n, 0)), self.next_k, via=buffer_load, edge=0)

    def fetch_values(self, n: IntLike) -> None:
        copy(self.v.tile(self.next_v.shape, (n, 0)), self.next_v, via=buffer_load, edge=0)

    def arrive(self) -> None:
        """Wait for what was fetched, and order values by columns."""
        vmem.wait(0)
        self.turned[:] = self.next_v

    def store_keys(self, n: IntLike) -> None:
        copy(self.next_k, self.keys[n % 2], via=ds_write_b128)

    def store_values(self, n: IntLike) -> None:
        copy(self.turned.T, self.values[n % 2], via=ds_write_b64)


def _columns(cfg: AttentionCdna3, width: int) -> tuple[TV, TV]:
    """How threads hold a block of values, runs of keys by v columns each: as it is loaded, and as it is stored.

    The lanes of a phase hold v runs of keys, and columns that a swizzle moves to different banks.
    """
    keys = cfg.bn
    v = keys * width // cfg.threads // _RUN
    apart = max(1, 64 // keys)  # rows of V^T that share 128 bytes
    columns, runs = _PHASE // v, v
    across, down = width // (v * apart * columns), keys // (_RUN * runs)
    threads = Layout(
        (columns, runs, apart, across, down),
        (apart * v * keys, _RUN, v * keys, columns * apart * v * keys, _RUN * runs),
    )
    shape = keys, width
    return TV(threads, Layout((v, _RUN), (keys, 1)), shape), TV(threads, Layout((_RUN, v), (1, keys)), shape)


def _bits(power: int) -> int:
    return power.bit_length() - 1


@frozen
class _Block:
    """The registers of a wave: queries, scores, weights, sums of values, and what rows carry over blocks of keys."""

    problem: Attention
    cfg: AttentionCdna3
    at: tuple[Int, Int, Int]
    stage: _Stage
    group: Int
    qk: TiledMma
    pv: TiledMma
    queries: list[Fragment]
    scores: Fragment
    weights: Fragment
    out: Fragment
    rows: Rows

    @classmethod
    def of(cls, problem: Attention, cfg: AttentionCdna3, at: tuple[Int, Int, Int]) -> _Block:
        (b, h, i), kind, width = at, problem.Q.dtype, int(problem.Q.shape[3])
        stage = _Stage.of(problem, cfg, b, h // problem.group)
        atom = mfma(_INSTRUCTIONS[cfg.mfma][0 if kind == bf16 else 1])
        deep = width // cfg.slices
        qk = atom.over(waves=(1, _WAVES), tile=(cfg.bn, cfg.bm), k=deep, k_run=_VECTOR)
        pv = atom.over(waves=(1, _WAVES), tile=(width, cfg.bm), k=cfg.bn, k_run=_RUN)
        row = qk.C.axis(1)
        queries = [load(problem.Q[b, h].tile((cfg.bm, deep), (i, s)), qk.B, edge=0) for s in range(cfg.slices)]
        scale = load(problem.scale.gather((cfg.bm,), lambda _: (0,)), row)
        vmem.wait(0)
        rows = Rows(registers(f32, row), registers(f32, qk.C.partial(0)), maximum(scale, LEAST_SCALE), keys=0)
        scores, weights, out = registers(f32, qk.C), registers(kind, pv.B), registers(f32, pv.C)
        return cls(problem, cfg, at, stage, wave // 4, qk, pv, queries, scores, weights, out, rows)

    def run(self) -> None:
        """Compute and store one tile. The second group runs one barrier behind."""
        problem, cfg, (b, h, i) = self.problem, self.cfg, self.at
        first, width = i * cfg.bm, int(problem.Q.shape[3])
        _, count, _ = problem.seen.blocks(first, cfg.bm, cfg.bn)
        self.rows.begin()
        self.out[:] = 0.0
        self._begin()
        with when(eq(self.group, 1)):
            sync()
        for n in loop(count):
            self._step(n, first)
        self._sum_values(count - 1)
        with when(eq(self.group, 0)):
            sync()
        z = self.rows.sums.sum(0)  # over the lanes that share a row, once
        head = problem.head(b, h)
        head.complete(self.out, first, axis=1)
        head.complete(z, first)
        copy(self.rows.lse(z), head.LSE.tile((cfg.bm,), (i,)), edge=0)
        out = (self.out * (1.0 / where(z == 0, 1.0, z))).T
        copy(out.to(problem.O.dtype), head.O.tile((cfg.bm, width), (i, 0)), edge=0)

    def _begin(self) -> None:
        """Store what `_step` presumes: the first keys, and what the second group stores a step ahead of the first."""
        stage = self.stage
        stage.fetch_keys(0)
        stage.fetch_values(0)
        stage.arrive()
        stage.store_keys(0)
        stage.fetch_keys(1)
        vmem.wait(0)
        with when(eq(self.group, 1)):
            stage.store_values(0)
            stage.store_keys(1)
        lds.wait(0)
        sync()

    def _step(self, n: Int, first: Int) -> None:
        """The values of the block before n and the scores of n, a barrier, and the weights of n.

        A group stores into a buffer while neither multiplies by what it holds: the first group values n and keys n + 1,
        the second one, a barrier later, those after them.
        """
        stage, ahead = self.stage, n + self.group
        stage.fetch_keys(ahead + 1)
        stage.fetch_values(ahead)
        with priority(1):
            ahead_of_values = self._read_keys(n, 0) if self.cfg.slices > 1 else None
            with when(n > 0):
                self._sum_values(n - 1)
            keys = self._read_keys(n, 0) if ahead_of_values is None else ahead_of_values
            for s, queries in enumerate(self.queries):
                lds.wait(0)
                following = self._read_keys(n, s + 1) if s + 1 < self.cfg.slices else None
                mma(self.qk, self.scores, keys, queries, init=s == 0)
                if following is not None:
                    _between_products(self.qk, following)
                    keys = following
        assert_covers(self.scores.tag.d, 0, int(self.problem.Q.shape[3]))  # each score is a whole product
        sync()
        weights, factor = self.problem.seen.softmax(self.scores, self.rows, first, n * self.cfg.bn, masked=True)
        self.weights[:] = weights.T.to(self.problem.Q.dtype)  # C layout to B layout: register for register
        if self.cfg.branch:
            rescale(self.out, factor)
        else:
            self.out[:] = self.out * factor
        stage.arrive()
        stage.store_keys(ahead + 1)
        stage.store_values(ahead)
        lds.wait(0)  # before the barrier that lets the other group read
        sync()

    def _sum_values(self, n: IntLike) -> None:
        values = load(self.stage.values[n % 2], self.pv.A, via=ds_read_b64)
        lds.wait(0)
        mma(self.pv, self.out, values, self.weights)
        if self.cfg.slices > 1:
            sched_barrier()

    def _read_keys(self, n: Int, s: int) -> Fragment:
        """Slice s of a block's keys, as it is loaded from LDS."""
        return load(self.stage.keys[n % 2].part(1, s, self.cfg.slices), self.qk.A, via=ds_read_b128)


def _between_products(mm: TiledMma, read: Fragment) -> None:
    """Have the reads of a fragment issued at even distances between the products of one slice."""
    products, reads = prod(mm.tiling.repeat), read.layout.values.size() // _VECTOR
    times = gcd(products, reads)
    interleave(times, lds_read=reads // times, mfma=products // times)
    sched_barrier()


_INSTRUCTIONS = {
    16: (mfma_f32_16x16x16_bf16, mfma_f32_16x16x16_f16),
    32: (mfma_f32_32x32x8_bf16, mfma_f32_32x32x8_f16),
}
"""By rows, for bf16 and f16."""
