"""Random right products without TMA: MFMA from global memory or LDS, and wgmma of slots filled by ordinary copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Swizzle,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    buffer_load,
    ceil_div,
    copy,
    cp_async,
    eq,
    f16,
    f32,
    fence,
    lds,
    load,
    loop,
    maximum,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    shared,
    spread,
    sync,
    tag,
    vmem,
    wgmma,
    when,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import TARGETS, fits, narrowed, one_by_one, trace

_ATOMS = {16: mfma_f32_16x16x16_bf16, 32: mfma_f32_32x32x8_bf16}
Shape = tuple[int, int, int]


@frozen
class Multiplying:
    """C = f(A B^T) by tiles of `shape` (m, n, k of a step).

    waves: along m and n. side: of the MFMA. how: "direct" loads fragments from global memory; "staged" goes through
    shared memory, "ahead" the same with the next step's loads under this step's product (cp.async on sm_90a). slots:
    of shared memory. span, swizzle: of the slots. epilogue: of the sums. batched: the tensors have a first axis.
    buffered: through buffer loads.
    """

    target: str
    dtype: DType
    result: DType
    shape: Shape
    waves: tuple[int, int]
    side: int
    how: str
    slots: int
    span: int
    swizzle: Swizzle | None
    epilogue: str
    batched: bool
    buffered: bool

    @property
    def threads(self) -> int:
        return 128 if self.target == "sm_90a" else 64 * self.waves[0] * self.waves[1]

    def kernel(self) -> Kernel:
        first = "L " if self.batched else ""
        tensors = {"A": (f"{first}M K", self.dtype), "B": (f"{first}N K", self.dtype), "V": ("N", f32)}
        return trace(_body(self), self.target, self.threads, **tensors, C=(f"{first}M N", self.result))


def draw(choose: Choose) -> Multiplying:
    target = choose(TARGETS)
    batched, epilogue = choose((False, False, True)), choose(("", "", "scaled", "relu", "bias", "bias relu", "square"))
    common: dict[str, Any] = {"target": target, "batched": batched, "epilogue": epilogue}
    if target == "sm_90a":
        deep = choose((16, 32, 64))
        how = choose(("staged", "ahead", "ahead"))
        return Multiplying(
            **common,
            dtype=choose((bf16, f16)),
            result=choose((bf16, f16, f32)),
            shape=(64, choose((16, 32, 64) if deep > 16 else (32, 64)), deep),
            waves=(1, 1),
            side=16,
            how=how,
            slots=choose((2, 3, 4)) if how == "ahead" else 1,
            span=choose(tuple(s for s in (32, 64, 128) if deep * 2 % s == 0)),
            swizzle=None,
            buffered=False,
        )
    side, waves = choose((16, 32)), choose(((1, 1), (1, 2), (2, 1), (2, 2)))
    grown = choose((1, 1, 2)) if side == 16 else 1
    deep, how = choose((32, 64)), choose(("direct", "staged", "ahead"))
    return Multiplying(
        **common,
        dtype=bf16,
        result=choose((bf16, f32)),
        shape=(side * waves[0] * grown, side * waves[1], deep),
        waves=waves,
        side=side,
        how=how,
        slots=2 if how == "ahead" else choose((1, 2, 3)),
        span=0,
        swizzle=choose((None, Swizzle(2, 3, 3), Swizzle(1, 3, 3))),
        buffered=choose((False, True)),
    )


def _body(cfg: Multiplying) -> Callable[..., None]:
    rows, columns, deep = cfg.shape

    def multiplying(A: Tensor, B: Tensor, V: Tensor, C: Tensor) -> None:
        M, K, N = A.shape[-2], A.shape[-1], C.shape[-1]
        assume(K >= 1, K % 8 == 0)
        assume(N % 8 == 0) if cfg.target == "sm_90a" else None
        counts = (ceil_div(M, rows), ceil_div(N, columns))
        if cfg.batched:
            tag(A, lambda b, m, k: dict(b=b, m=m, k=k))
            tag(B, lambda b, n, k: dict(b=b, n=n, k=k))
            L = A.shape[0]
            assume(L * M * K <= 1 << 28, L * N * K <= 1 << 28, L * M * N <= 1 << 28)
            b, m, n = block_id((L, *counts))
            left, right, out = A[b], B[b], C[b]
        else:
            tag(A, lambda m, k: dict(m=m, k=k))
            tag(B, lambda n, k: dict(n=n, k=k))
            assume(M * K <= 1 << 28, N * K <= 1 << 28)
            (m, n), left, right, out = block_id(counts), A, B, C
        acc = (_by_wgmma if cfg.target == "sm_90a" else _by_mfma)(cfg, left, right, (m, n), ceil_div(K, deep))
        assert_covers(acc.tag.k, 0, K)
        copy(narrowed(_finished(cfg, acc, V, n), cfg.result), out.tile((rows, columns), (m, n)), edge=0)
        if cfg.batched:
            assert_written_once(C, lambda b, m, n: dict(b=b, m=m, n=n))
        else:
            assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return multiplying


def _finished(cfg: Multiplying, acc: Fragment, V: Tensor, n: Any) -> Fragment:  # noqa: ANN401 reason: an integer of the kernel
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
                v = load(V.tile((cfg.shape[1],), (n,)), acc.layout.axis(1), via=one_by_one(f32), edge=0)
                if cfg.target == "gfx942":
                    vmem.wait(0)
                y = y + v
    return y


def _by_wgmma(cfg: Multiplying, A: Tensor, B: Tensor, at: tuple[Any, Any], depth: Any) -> Fragment:  # noqa: ANN401 reason: as above
    rows, columns, deep = cfg.shape
    mm, slots = wgmma(cfg.dtype, n=columns), cfg.slots
    by_a, by_b = (
        spread((extent, deep), threads=128, vector=8 if fits((extent, deep), 128, 8) else 4)
        for extent in (rows, columns)
    )
    a, b = (shared(cfg.dtype, (slots, extent, deep), swizzle=cfg.span) for extent in (rows, columns))
    acc = registers(f32, mm.C)
    ahead = slots - 1

    def start(k: Any) -> None:  # noqa: ANN401 reason: as above
        copy(A.tile((rows, deep), (at[0], k)), a[k % slots], via=cp_async, by=by_a, edge=0)
        copy(B.tile((columns, deep), (at[1], k)), b[k % slots], via=cp_async, by=by_b, edge=0)

    for k in range(ahead):
        with when(k < depth):
            start(k)
        cp_async.commit()
    for k in loop(depth):
        if cfg.how == "staged":
            copy(load(A.tile((rows, deep), (at[0], k)), by_a, edge=0), a[0])
            copy(load(B.tile((columns, deep), (at[1], k)), by_b, edge=0), b[0])
        else:
            cp_async.wait(ahead - 1)
        fence("async proxy")
        sync()
        mma(mm, acc, a[k % slots], b[k % slots], init=eq(k, 0))
        wgmma.wait(0)
        if cfg.how == "staged":
            sync()
        else:
            sync()
            with when(k + ahead < depth):
                start(k + ahead)
            cp_async.commit()
    return acc


def _by_mfma(cfg: Multiplying, A: Tensor, B: Tensor, at: tuple[Any, Any], depth: Any) -> Fragment:  # noqa: ANN401 reason: as above
    rows, columns, deep = cfg.shape
    mm = mfma(_ATOMS[cfg.side]).over(waves=cfg.waves, tile=(rows, columns), k=deep, k_run=8)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    via = buffer_load if cfg.buffered else None
    if cfg.how == "direct":
        for k in loop(depth):
            copy(A.tile((rows, deep), (at[0], k)), a, via=via, edge=0)
            copy(B.tile((columns, deep), (at[1], k)), b, via=via, edge=0)
            vmem.wait(0)
            mma(mm, acc, a, b, init=eq(k, 0))
        return acc
    held = [shared(bf16, (cfg.slots, extent, deep), swizzle=cfg.swizzle) for extent in (rows, columns)]
    moved = [
        registers(bf16, spread((extent, deep), threads=cfg.threads, vector=_vector(cfg, extent)))
        for extent in (rows, columns)
    ]

    def fetch(k: Any) -> None:  # noqa: ANN401 reason: as above
        copy(A.tile((rows, deep), (at[0], k)), moved[0], via=via, edge=0)
        copy(B.tile((columns, deep), (at[1], k)), moved[1], via=via, edge=0)

    def stage(k: Any) -> None:  # noqa: ANN401 reason: as above
        vmem.wait(0)
        for source, target in zip(moved, held, strict=True):
            copy(source, target[k % cfg.slots])
        lds.wait(0)

    def multiply(k: Any) -> None:  # noqa: ANN401 reason: as above
        copy(held[0][k % cfg.slots], a)
        copy(held[1][k % cfg.slots], b)
        lds.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))

    if cfg.how == "ahead":
        fetch(0)
        stage(0)
        sync()
    for k in loop(depth):
        if cfg.how == "ahead":
            with when(k + 1 < depth):
                fetch(k + 1)
            multiply(k)
            with when(k + 1 < depth):
                stage(k + 1)
            sync()
        else:
            fetch(k)
            stage(k)
            sync()
            multiply(k)
            sync()
    return acc


def _vector(cfg: Multiplying, extent: int) -> int:
    return next(v for v in (8, 4, 2) if fits((extent, cfg.shape[2]), cfg.threads, v))
