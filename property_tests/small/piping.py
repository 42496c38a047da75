"""Random right products on sm_90a: a ring of slots filled by TMA, read by wgmma of one warpgroup or two."""

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
    barrier,
    bf16,
    block_id,
    bulk,
    ceil_div,
    copy,
    e4m3,
    elected,
    eq,
    f16,
    f32,
    fence,
    load,
    loop,
    maximum,
    mma,
    persistent,
    registers,
    role,
    shared,
    stmatrix,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import narrowed, one_by_one, trace


@frozen
class Piping:
    """C = f(A B^T), by tiles of 64 rows per consumer and `columns`, `deep` elements of k per slot.

    spans: of the swizzles of the operands' slots, in bytes. by_hand: mbarriers instead of a `Ring`. blocks: of a
    persistent kernel, None for a block per tile. turned: B is K x N. batched: the tensors have a first axis. epilogue:
    what is done to the sums. boxed: they are stored by TMA. single: element by element, for N of any size.
    """

    dtype: DType
    result: DType
    stages: int
    consumers: int
    columns: int
    deep: int
    spans: tuple[int, int]
    by_hand: bool = False
    blocks: int | None = None
    turned: bool = False
    batched: bool = False
    epilogue: str = ""
    boxed: bool = False
    single: bool = False

    @property
    def rows(self) -> int:
        return 64 * self.consumers

    def kernel(self) -> Kernel:
        first = "L " if self.batched else ""
        tensors = {
            "A": (f"{first}M K", self.dtype),
            "B": (first + ("K N" if self.turned else "N K"), self.dtype),
            "V": ("N", f32),
            "C": (f"{first}M N", self.result),
        }
        return trace(_body(self), "sm_90a", 128 * (1 + self.consumers), **tensors)


def draw(choose: Choose) -> Piping:
    dtype = choose((bf16, f16, e4m3, bf16))
    size = dtype.bits // 8
    turned = dtype != e4m3 and choose((False, False, False, True))
    deep = choose((16, 32, 64)) * (2 // size)
    boxed = choose((False, True))
    columns = choose((16, 32, 64) if boxed or turned else (8, 16, 24, 32, 40, 64))
    rows = tuple(s for s in (32, 64, 128) if deep * size % s == 0)
    across = tuple(s for s in (32, 64, 128) if columns * size % s == 0)
    batched = choose((False, False, True))
    result = choose((bf16, f16) if boxed else (bf16, f16, f32))
    return Piping(
        dtype=dtype,
        result=result,
        stages=choose((2, 3, 4)),
        consumers=choose((1, 1, 2)),
        columns=columns,
        deep=deep,
        spans=(choose(rows), choose(across if turned else rows)),
        by_hand=choose((False, False, True)),
        blocks=None if batched else choose((None, None, 2, 3)),
        turned=turned,
        batched=batched,
        epilogue=choose(("", "", "scaled", "relu", "bias", "bias relu", "square")),
        boxed=boxed,
        single=not boxed and not turned and choose((False, True)),
    )


def _body(cfg: Piping) -> Callable[..., None]:
    def piping(A: Tensor, B: Tensor, V: Tensor, C: Tensor) -> None:
        _state(cfg, A, B, C)
        M, K, N = A.shape[-2], A.shape[-1], C.shape[-1]
        counts = (ceil_div(M, cfg.rows), ceil_div(N, cfg.columns))
        tiles: Any = [()]
        if cfg.batched:
            b, m, n = block_id((A.shape[0], *counts))
            left, right, out, tiles = A[b], B[b], C[b], [(m, n)]
        else:
            left, right, out = A, B, C
            tiles = [block_id(counts)] if cfg.blocks is None else persistent(counts, blocks=cfg.blocks)
        mm = wgmma(cfg.dtype, n=cfg.columns, b_major="n" if cfg.turned else "k")
        pipe: Any = (_ByHand if cfg.by_hand and cfg.blocks is None else _ByRing)(cfg)
        box = shared(cfg.result, (cfg.consumers, 64, cfg.columns), swizzle=32) if cfg.boxed else None
        depth = ceil_div(K, cfg.deep)

        with role("load", warpgroup(0).elected, registers=40):
            for m, n in tiles:
                for k in loop(depth):
                    across = (cfg.deep, cfg.columns), (k, n)
                    along = (cfg.columns, cfg.deep), (n, k)
                    pipe.fill(
                        k, left.tile((cfg.rows, cfg.deep), (m, k)), right.tile(*(across if cfg.turned else along))
                    )
            pipe.finish()

        with role("math", warpgroups(*range(1, 1 + cfg.consumers)), registers=232) as wg:
            acc = registers(f32, mm.C)
            for m, n in tiles:
                for k in loop(depth):
                    a, b = pipe.wait(k)
                    mma(mm, acc, a.tile((64, cfg.deep), (wg, 0)), b, init=eq(k, 0))
                    wgmma.wait(0)
                    pipe.release(k)
                assert_covers(acc.tag.k, 0, K)
                y = narrowed(_finished(cfg, acc, V, n), cfg.result)
                _store(
                    cfg, y, None if box is None else box[wg], out.tile((64, cfg.columns), (cfg.consumers * m + wg, n))
                )
        _claim(cfg, C)

    return piping


def _state(cfg: Piping, A: Tensor, B: Tensor, C: Tensor) -> None:
    """Tags and assumptions: rows of 16 bytes for TMA, and indices of 32 bits."""
    N, K = C.shape[-1], A.shape[-1]
    if cfg.batched:
        tag(A, lambda b, m, k: dict(b=b, m=m, k=k))
        tag(B.mT if cfg.turned else B, lambda b, n, k: dict(b=b, n=n, k=k))
        assume(A.shape[0] * A.shape[1] * K <= 1 << 28, A.shape[0] * N * K <= 1 << 28)
        assume(A.shape[0] * A.shape[1] * N <= 1 << 28)
    else:
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B.T if cfg.turned else B, lambda n, k: dict(n=n, k=k))
        assume(A.shape[0] <= 1 << 14, N <= 1 << 14, K <= 1 << 14)
    assume(K >= 1, K % (128 // cfg.dtype.bits) == 0)
    if not cfg.single:
        assume(N % 8 == 0)


def _claim(cfg: Piping, C: Tensor) -> None:
    if cfg.batched:
        assert_written_once(C, lambda b, m, n: dict(b=b, m=m, n=n))
    else:
        assert_written_once(C, lambda m, n: dict(m=m, n=n))


class _ByRing:
    """The slots as a `Ring`."""

    def __init__(self, cfg: Piping) -> None:
        self.cfg, (a, b) = cfg, _slots(cfg)
        self.ring = Ring(cfg.stages, a=a, b=b)

    def fill(self, _k: Any, a: Tensor, b: Tensor) -> None:  # noqa: ANN401 reason: an integer of the kernel
        with self.ring.fill() as slot:
            copy(a, slot.a, via=tma, edge=0)
            copy(b, slot.b, via=tma, edge=0)

    def finish(self) -> None:
        self.ring.finish()

    def wait(self, _k: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 reason: as above
        slot = self.ring.wait()
        return slot.a, slot.b

    def release(self, _k: Any) -> None:  # noqa: ANN401 reason: as above
        self.ring.release()


def _slots(cfg: Piping, *stages: int) -> tuple[Tensor, Tensor]:
    other = (cfg.deep, cfg.columns) if cfg.turned else (cfg.columns, cfg.deep)
    a = shared(cfg.dtype, (*stages, cfg.rows, cfg.deep), swizzle=cfg.spans[0])
    return a, shared(cfg.dtype, (*stages, *other), swizzle=cfg.spans[1])


class _ByHand:
    """The slots with a pair of mbarriers each."""

    def __init__(self, cfg: Piping) -> None:
        self.cfg, (self.a, self.b) = cfg, _slots(cfg, cfg.stages)
        self.full, self.empty = barrier(1, of=cfg.stages), barrier(cfg.consumers, of=cfg.stages)

    def fill(self, k: Any, a: Tensor, b: Tensor) -> None:  # noqa: ANN401 reason: as above
        slot, use = k % self.cfg.stages, k // self.cfg.stages
        self.empty[slot].wait(use - 1)
        self.full[slot].arrive(bytes=(self.cfg.rows + self.cfg.columns) * self.cfg.deep * self.cfg.dtype.bits // 8)
        copy(a, self.a[slot], via=tma, signal=self.full[slot], edge=0)
        copy(b, self.b[slot], via=tma, signal=self.full[slot], edge=0)

    def finish(self) -> None:
        pass

    def wait(self, k: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 reason: as above
        slot = k % self.cfg.stages
        self.full[slot].wait(k // self.cfg.stages)
        return self.a[slot], self.b[slot]

    def release(self, k: Any) -> None:  # noqa: ANN401 reason: as above
        with elected():
            self.empty[k % self.cfg.stages].arrive()


def _finished(cfg: Piping, acc: Fragment, V: Tensor, n: Any) -> Fragment:  # noqa: ANN401 reason: as above
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


def _store(cfg: Piping, y: Fragment, box: Tensor | None, target: Tensor) -> None:
    if box is None:
        copy(y, target, via=one_by_one(cfg.result) if cfg.single else None, edge=0)
        return
    with elected():
        bulk.wait(0, of="reads")
    sync()
    copy(y, box, via=stmatrix.x4)
    fence("async proxy")
    sync()
    with elected():
        copy(box, target, via=tma, edge=0)
        bulk.commit()
        bulk.wait(0)
