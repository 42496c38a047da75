"""GEMM with fused epilogues: bias, bias and an activation, a scale from device memory."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import (
    Epilogue,
    Fetched,
    Tail,
    bounded,
    of_each,
    plainly,
    relu,
    scaled_by,
    silu,
    with_bias,
)
from argus.kernels.schedules.hopper import Hopper, hopper_cooperative, hopper_pingpong
from argus.language import Int, Tensor, Value, assert_equals, assume, bf16, elements, f32, kernel, maximum, tag, tanh

CDNA3: dict[str, Cdna3Interleaved] = {
    "interleaved_192": Cdna3Interleaved(bm=192),  # with 256 rows, the values of an epilogue spill
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, agprs=False),
    "interleaved_any": Cdna3Interleaved(bm=128, bn=128, wide=False, agprs=False),
}
"""Configurations of every family with an epilogue, on MI300X."""
CONFIGS: dict[str, Hopper | Cdna3Interleaved] = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
    **CDNA3,
}
Config = Hopper | Cdna3Interleaved
Formula = Callable[[Int, Int], Value]
"""An element of C by its row and column, in a formula."""


@kernel(configs=CONFIGS)
def gemm_bias(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = A @ B^T + bias."""
    problem = Contraction(A, B, C)
    fused(problem, cfg, with_bias(bias, lambda x: x, fetch_of(cfg)), biased(problem, bias))


@kernel(configs=CONFIGS)
def gemm_bias_relu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = max(A @ B^T + bias, 0)."""
    problem = Contraction(A, B, C)
    x = biased(problem, bias)
    fused(problem, cfg, with_bias(bias, relu, fetch_of(cfg)), lambda m, n: maximum(x(m, n), 0))


@kernel(configs=CONFIGS)
def gemm_bias_silu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = silu(A @ B^T + bias)."""
    problem = Contraction(A, B, C)
    x = biased(problem, bias)
    fused(problem, cfg, with_bias(bias, silu, fetch_of(cfg)), lambda m, n: gate_of(x(m, n)))


@kernel(configs=CONFIGS)
def gemm_scaled(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], alpha: Tensor["1", f32], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = alpha * (A @ B^T), with alpha in device memory."""
    problem = Contraction(A, B, C)
    fused(problem, cfg, scaled_by(alpha), lambda m, n: elements(alpha)(0) * problem.element(m, n))


def fetch_of(cfg: Config) -> Fetched:
    """How operands of an epilogue are loaded."""
    return bounded(single=not cfg.wide) if isinstance(cfg, Cdna3Interleaved) else plainly


def biased(problem: Contraction, bias: Tensor) -> Formula:
    """In a formula, an element of A @ B^T + bias."""
    tag(bias, lambda n: dict(n=n))
    assume(bias.shape[0] < 1 << 30)  # a descriptor's span
    return lambda m, n: problem.element(m, n) + elements(bias)(n)


def gate_of(x: Value) -> Value:
    """In a formula, silu(x) = x * sigmoid(x), where sigmoid(x) = (1 + tanh(x / 2)) / 2."""
    return x * 0.5 * (1 + tanh(x * 0.5))


def fused(problem: Contraction, cfg: Config, epilogue: Epilogue, formula: Formula) -> None:
    """Trace the schedule of a configuration with an epilogue, and claim the formula of the elements of C."""
    multiply_then(problem, cfg, of_each(epilogue))
    problem.finish()
    assert_equals(problem.C, formula)


def multiply_then(problem: Contraction, cfg: Config, tail: Tail) -> None:
    """Trace the schedule of a configuration with an epilogue, without a claim of C."""
    match cfg:
        case Cdna3Interleaved():
            cdna3_interleaved(problem, cfg, tail(()))
        case Hopper(pingpong=True):
            hopper_pingpong(problem, cfg, tail)
        case Hopper(cluster=(1,)):
            hopper_cooperative(problem, cfg, tail)
        case Hopper():
            hopper_clustered(problem, cfg, tail)
        case _:
            assert_never(cfg)
