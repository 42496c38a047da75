"""Random right products on sm_90a by mma.sync: fragments from global memory, or from shared memory by ldmatrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from argus.core.dtype import DType
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    cp_async,
    eq,
    f16,
    f32,
    ldmatrix,
    load,
    loop,
    maximum,
    mfma,
    mma,
    mma_m16n8k16_bf16,
    mma_m16n8k16_f16,
    registers,
    shared,
    spread,
    sync,
    tag,
    when,
)
from property_tests.small.choosing import Choose
from property_tests.small.tracing import fits, narrowed, one_by_one, trace

_ATOMS = {"bf16": mma_m16n8k16_bf16, "f16": mma_m16n8k16_f16}


@frozen
class Warping:
    """C = f(A B^T) by tiles of `shape` (m, n, k of a step), by `waves` warps along m and n.

    how: "direct" loads fragments from global memory; "staged" goes through shared memory, "ahead" the same with the
    next steps' cp.async under this step's product. slots, span: of shared memory. matrices: read by ldmatrix. epilogue:
    of the sums.
    """

    dtype: DType
    result: DType
    shape: tuple[int, int, int]
    waves: tuple[int, int]
    how: str
    slots: int
    span: int
    matrices: bool
    epilogue: str

    @property
    def threads(self) -> int:
        return 32 * self.waves[0] * self.waves[1]

    def kernel(self) -> Kernel:
        tensors = {"A": ("M K", self.dtype), "B": ("N K", self.dtype), "V": ("N", f32), "C": ("M N", self.result)}
        return trace(_body(self), "sm_90a", self.threads, **tensors)


def draw(choose: Choose) -> Warping:
    waves, deep = choose(((1, 1), (1, 2), (2, 1), (2, 2))), choose((16, 32, 64))
    how = choose(("staged", "direct", "ahead", "ahead"))
    return Warping(
        dtype=choose((bf16, f16)),
        result=choose((bf16, f16, f32)),
        shape=(16 * waves[0] * choose((1, 2)), 8 * waves[1] * choose((1, 2, 4)), deep),
        waves=waves,
        how=how,
        slots=choose((2, 3, 4)) if how == "ahead" else 1,
        span=choose(tuple(s for s in (32, 64, 128) if deep * 2 % s == 0)),
        matrices=choose((True, True, False)),
        epilogue=choose(("", "", "scaled", "relu", "bias", "bias relu", "square")),
    )


def _body(cfg: Warping) -> Callable[..., None]:
    rows, columns, deep = cfg.shape

    def warping(A: Tensor, B: Tensor, V: Tensor, C: Tensor) -> None:
        (M, K), N = A.shape, B.shape[0]
        tag(A, lambda m, k: dict(m=m, k=k))
        tag(B, lambda n, k: dict(n=n, k=k))
        assume(K >= 1, K % 8 == 0, N % 8 == 0, M * K <= 1 << 28, N * K <= 1 << 28)
        m, n = block_id((ceil_div(M, rows), ceil_div(N, columns)))
        acc = (_direct if cfg.how == "direct" else _staged)(cfg, A, B, (m, n), ceil_div(K, deep))
        assert_covers(acc.tag.k, 0, K)
        copy(narrowed(_finished(cfg, acc, V, n), cfg.result), C.tile((rows, columns), (m, n)), edge=0)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return warping


def _tiled(cfg: Warping) -> Any:  # noqa: ANN401 reason: a tiled instruction
    return mfma(_ATOMS[cfg.dtype.name]).over(waves=cfg.waves, tile=cfg.shape[:2], k=cfg.shape[2])


def _direct(cfg: Warping, A: Tensor, B: Tensor, at: tuple[Any, Any], depth: Any) -> Fragment:  # noqa: ANN401 reason: an integer of the kernel
    rows, columns, deep = cfg.shape
    mm = _tiled(cfg)
    a, b, acc = registers(cfg.dtype, mm.A), registers(cfg.dtype, mm.B), registers(f32, mm.C)
    for k in loop(depth):
        copy(A.tile((rows, deep), (at[0], k)), a, edge=0)
        copy(B.tile((columns, deep), (at[1], k)), b, edge=0)
        mma(mm, acc, a, b, init=eq(k, 0))
    return acc


def _staged(cfg: Warping, A: Tensor, B: Tensor, at: tuple[Any, Any], depth: Any) -> Fragment:  # noqa: ANN401 reason: as above
    rows, columns, deep = cfg.shape
    mm, ahead = _tiled(cfg), cfg.slots - 1
    a, b, acc = registers(cfg.dtype, mm.A), registers(cfg.dtype, mm.B), registers(f32, mm.C)
    by_a, by_b = (spread((e, deep), threads=cfg.threads, vector=_vector(cfg, e)) for e in (rows, columns))
    held_a, held_b = (shared(cfg.dtype, (cfg.slots, e, deep), swizzle=cfg.span) for e in (rows, columns))

    def start(k: Any) -> None:  # noqa: ANN401 reason: as above
        copy(A.tile((rows, deep), (at[0], k)), held_a[k % cfg.slots], via=cp_async, by=by_a, edge=0)
        copy(B.tile((columns, deep), (at[1], k)), held_b[k % cfg.slots], via=cp_async, by=by_b, edge=0)

    for k in range(ahead):
        with when(k < depth):
            start(k)
        cp_async.commit()
    for k in loop(depth):
        if cfg.how == "staged":
            copy(load(A.tile((rows, deep), (at[0], k)), by_a, edge=0), held_a[0])
            copy(load(B.tile((columns, deep), (at[1], k)), by_b, edge=0), held_b[0])
        else:
            cp_async.wait(ahead - 1)
        sync()
        copy(held_a[k % cfg.slots], a, via=ldmatrix.x4 if cfg.matrices else None)
        copy(held_b[k % cfg.slots], b, via=ldmatrix.x2 if cfg.matrices else None)
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()
        if cfg.how == "ahead":
            with when(k + ahead < depth):
                start(k + ahead)
            cp_async.commit()
    return acc


def _vector(cfg: Warping, extent: int) -> int:
    return next(v for v in (8, 4, 2) if fits((extent, cfg.shape[2]), cfg.threads, v))


def _finished(cfg: Warping, acc: Fragment, V: Tensor, n: Any) -> Fragment:  # noqa: ANN401 reason: as above
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
                y = y + load(V.tile((cfg.shape[1],), (n,)), acc.layout.axis(1), via=one_by_one(f32), edge=0)
    return y
