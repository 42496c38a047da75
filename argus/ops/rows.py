"""Operators along the last axis of torch tensors: softmax, norms, sums, cumulative sums, cross entropy.

Each kernel is built and verified on first use.
"""

from __future__ import annotations

from typing import TypeVar, overload

from argus.kernels.rows import group_norm as group_norms
from argus.kernels.rows import norms, scans, sums
from argus.kernels.rows import softmax as softmaxes
from argus.ops.row_calls import Array, Operator, epsilon, groups_of, launched, weights_of
from argus.ops.traced import traceable
from argus.runtime.launch_gate import Unproved

T = TypeVar("T", bound=Array)
_ROWS, _SUMS = {"X": "rows"}, {"X": "rows", "Z": "rows"}
_RMS, _LAYER = {"G": "columns", "eps": "one"}, {"G": "columns", "B": "columns", "eps": "one"}
_BOTH = {"S": "rows", "Y": "rows"}
_SOFTMAX = Operator("softmax", softmaxes, _ROWS, {"Y": "rows"})
_LOG_SOFTMAX = Operator("log_softmax", softmaxes, _ROWS, {"Y": "rows"})
_RMS_NORM = Operator("rms_norm", norms, _ROWS | _RMS, {"Y": "rows"}, reads="squared")
_RMS_NORM_OF_SUM = Operator("rms_norm", norms, _SUMS | _RMS, _BOTH, family="rms_norm_of_sum", reads="two")
_LAYER_NORM = Operator("layer_norm", norms, _ROWS | _LAYER, {"Y": "rows"}, reads="thrice")
_LAYER_NORM_OF_SUM = Operator("layer_norm", norms, _SUMS | _LAYER, _BOTH, family="layer_norm_of_sum", reads="two")
_GROUP = {"W": "channels", "B": "channels", "eps": "one"}
_GROUP_NORM = Operator("group_norm", group_norms, _ROWS | _GROUP, {"Y": "rows"}, reads="thrice")
_SUM = Operator("row_sum", sums, _ROWS, {"Y": "each row"}, reads="summed")
_MEAN = Operator("row_mean", sums, _ROWS, {"Y": "each row"}, reads="summed")
_CUMSUM = Operator("cumsum", scans, _ROWS, {"Y": "rows"}, reads="in order")
_CROSS_ENTROPY = Operator(
    "cross_entropy", sums, _ROWS | {"target": "pairs"}, {"Y": "each row"}, single=True, reads="once"
)


@traceable
def softmax(x: T, *, unproved: Unproved = "refuse") -> T:
    """exp(x) / sum of exp(x) along the last axis; sums in fp32, a result of the type of `x`.

    x: of any shape, in bf16, f16 or f32; copied first unless it is row-major and 16 divides its address. No gradients.
    It is for an H100, H200 or MI300X, runs on the current stream and may be captured in a CUDA graph. The kernel for a
    length of rows is built and verified on first use. unproved: "allow" also runs a kernel that is neither proved nor
    refuted.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E405 for sizes beyond those that the kernel's proof
            assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E303 without a compiler.
    """
    return launched(_SOFTMAX, (x,), unproved)


@traceable
def log_softmax(x: T, *, unproved: Unproved = "refuse") -> T:
    """x - log(sum of exp(x)) along the last axis; operands and errors as `softmax`."""
    return launched(_LOG_SOFTMAX, (x,), unproved)


@overload
def rms_norm(
    x: T, weight: Array | None = None, *, eps: float = 1e-5, residual: None = None, unproved: Unproved = "refuse"
) -> T: ...
@overload
def rms_norm(
    x: T, weight: Array | None = None, *, eps: float = 1e-5, residual: Array, unproved: Unproved = "refuse"
) -> tuple[T, T]: ...
@traceable
def rms_norm(
    x: T,
    weight: Array | None = None,
    *,
    eps: float = 1e-5,
    residual: Array | None = None,
    unproved: Unproved = "refuse",
) -> T | tuple[T, T]:
    """x / sqrt(mean of x^2 + eps) along the last axis, times `weight`; operands and errors as `softmax`.

    weight: one number for each column, of the type of `x`; by default 1. residual: of the shape and type of `x`; the
    result is then the norm of s = x + residual, as it is rounded, with s itself. A first call with another `eps`, or
    without a weight of another length, may not be captured.
    """
    least = epsilon("rms_norm", x, eps)
    weights = (weights_of("rms_norm", x, weight, 1.0),)
    if residual is None:
        return launched(_RMS_NORM, (x, *weights, least), unproved)
    return launched(_RMS_NORM_OF_SUM, (x, residual, *weights, least), unproved)


@overload
def layer_norm(
    x: T,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-5,
    residual: None = None,
    unproved: Unproved = "refuse",
) -> T: ...
@overload
def layer_norm(
    x: T,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-5,
    residual: Array,
    unproved: Unproved = "refuse",
) -> tuple[T, T]: ...
@traceable
def layer_norm(
    x: T,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-5,
    residual: Array | None = None,
    unproved: Unproved = "refuse",
) -> T | tuple[T, T]:
    """(x - mean) / sqrt(variance + eps) along the last axis, times `weight`, plus `bias`; otherwise as `rms_norm`.

    The variance is the mean of squared deviations from the mean. weight, bias: by default 1 and 0.
    """
    least = epsilon("layer_norm", x, eps)
    weights = (weights_of("layer_norm", x, weight, 1.0), weights_of("layer_norm", x, bias, 0.0))
    if residual is None:
        return launched(_LAYER_NORM, (x, *weights, least), unproved)
    return launched(_LAYER_NORM_OF_SUM, (x, residual, *weights, least), unproved)


@traceable
def group_norm(
    x: T,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-5,
    unproved: Unproved = "refuse",
) -> T:
    """(x - mean) / sqrt(variance + eps) over each group of channels, times `weight`, plus `bias`; else as `layer_norm`.

    x: (N, C, ...), where `groups` divides C: channel c is of group c // (C / groups), and mean and variance are of all
    elements of a group in one sample. weight, bias: one number for each channel.

    Raises:
        ArgusError: as `softmax`, and E401 for `x` without channels, or groups that do not divide them.
    """
    rows = groups_of("group_norm", x, groups)
    least = epsilon("group_norm", x, eps)
    weights = (weights_of("group_norm", x, weight, 1.0, axis=1), weights_of("group_norm", x, bias, 0.0, axis=1))
    return launched(_GROUP_NORM, (x, *weights, least), unproved, rows)


@traceable
def row_sum(x: T, *, unproved: Unproved = "refuse") -> T:
    """The sums along the last axis; operands and errors as `softmax`."""
    return launched(_SUM, (x,), unproved)


@traceable
def row_mean(x: T, *, unproved: Unproved = "refuse") -> T:
    """The means along the last axis; operands and errors as `softmax`."""
    return launched(_MEAN, (x,), unproved)


@traceable
def cumsum(x: T, *, unproved: Unproved = "refuse") -> T:
    """The sum of the elements up to each, itself included, along the last axis; operands and errors as `softmax`."""
    return launched(_CUMSUM, (x,), unproved)


@traceable
def cross_entropy(x: T, target: Array, *, unproved: Unproved = "refuse") -> T:
    """log(sum of exp(x)) - x[target] along the last axis, in fp32; operands and errors as `softmax`.

    target: a column for each row, as 64-bit integers; for one that is no column, the nearest is taken.
    """
    return launched(_CROSS_ENTROPY, (x, target), unproved)
