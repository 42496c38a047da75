"""Split-K and stream-K of scaled 8-bit products on MI300X, for tiles that do not fill the GPU.

As `argus.kernels.streamk_cdna3`: partial sums in a workspace, then their sum, which is scaled once.
"""

# ruff: noqa: UP037
# Reason: a number in quotes is an extent.

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.cdna3_interleaved import MOST_INTEGERS, assume_descriptors
from argus.kernels.schedules.contraction import element_of
from argus.kernels.schedules.epilogues import bounded, scaled_by, scaled_by_vectors
from argus.kernels.schedules.stream_cdna3 import CDNA3, Cdna3Stream, stream_parts
from argus.kernels.schedules.stream_k import Reduction, reduce_parts
from argus.language import (
    Int,
    Tensor,
    assert_equals,
    assume,
    bf16,
    e4m3fnuz,
    elements,
    f32,
    i8,
    i32,
    kernel,
    program,
    tag,
    workspace,
)

_MOST = 16
"""Parts of a tile of which the sum is proved to be the formula; of 32 it is not."""
_DEEP = {name: evolve(each, bk=128) for name, each in CDNA3.items() if not each.agprs and each.chunks <= _MOST}
CONFIGS: dict[str, Cdna3Stream] = _DEEP | {f"{name}_any": evolve(each, wide=False) for name, each in _DEEP.items()}
"""As those of 16-bit products; `_any`: columns of C are no whole vectors of four elements."""


@kernel
def fnuz_parts(
    A: Tensor["M K", e4m3fnuz], B: Tensor["N K", e4m3fnuz], part: Tensor["P S R W", f32], *, cfg: Cdna3Stream
) -> None:
    stream_parts(A, B, part, cfg)


@kernel
def fnuz_sum(
    part: Tensor["P S R W", f32],
    scale_a: Tensor["1", f32],
    scale_b: Tensor["1", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Reduction,
    depth: Int,
) -> None:
    reduce_parts(part, C, cfg, depth, scaled_by(scale_a, scale_b))


@program(configs=CONFIGS)
def gemm_fp8_fnuz_streams(
    A: Tensor["M K", e4m3fnuz],
    B: Tensor["N K", e4m3fnuz],
    scale_a: Tensor["1", f32],
    scale_b: Tensor["1", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Stream,
) -> None:
    """C = scale_a * scale_b * (A @ B^T)."""
    part = workspace(f32, cfg.runs.parts(A.shape[0], B.shape[0]))
    fnuz_parts(A, B, part, cfg=cfg)
    fnuz_sum(part, scale_a, scale_b, C, cfg=cfg.reduction, depth=A.shape[1])
    of_a, of_b = elements(scale_a), elements(scale_b)
    assert_equals(C, lambda m, n: of_a(0) * of_b(0) * element_of(A, B, m, n))


# -- 8-bit integers --------------------------------------------------------------------------------------------


def longest_sum(cfg: Cdna3Stream) -> int:
    """The greatest K of which i32 holds every sum: the parts of a tile together have K rounded up to whole chunks."""
    return MOST_INTEGERS - cfg.bk * cfg.chunks


@kernel
def i8_parts(A: Tensor["M K", i8], B: Tensor["N K", i8], part: Tensor["P S R W", i32], *, cfg: Cdna3Stream) -> None:
    assume(A.shape[-1] <= longest_sum(cfg))
    stream_parts(A, B, part, cfg)


@kernel
def i8_sum(
    part: Tensor["P S R W", i32],
    scale_a: Tensor["M", f32],
    scale_b: Tensor["N", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Reduction,
    depth: Int,
) -> None:
    tag(scale_a, lambda m: dict(m=m))
    tag(scale_b, lambda n: dict(n=n))
    assume_descriptors(scale_a, scale_b)
    reduce_parts(part, C, cfg, depth, scaled_by_vectors(scale_a, scale_b, bounded(single=not cfg.vectors)))


@program(configs=CONFIGS)
def gemm_i8_scaled_streams(
    A: Tensor["M K", i8],
    B: Tensor["N K", i8],
    scale_a: Tensor["M", f32],
    scale_b: Tensor["N", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Stream,
) -> None:
    """C[m, n] = scale_a[m] * scale_b[n] * (A @ B^T)[m, n], of exact sums."""
    part = workspace(i32, cfg.runs.parts(A.shape[0], B.shape[0]))
    i8_parts(A, B, part, cfg=cfg)
    i8_sum(part, scale_a, scale_b, C, cfg=cfg.reduction, depth=A.shape[1])
    of_a, of_b = elements(scale_a), elements(scale_b)
    assert_equals(C, lambda m, n: of_a(m) * of_b(n) * element_of(A, B, m, n))
