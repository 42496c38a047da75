"""Functions of torch in captured graphs that have other definitions here: dropout, attention and cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from math import sqrt
from typing import Any

import torch
from torch import Tensor
from torch.nn import attention as of_torch
from torch.nn import functional

from argus.ops.attention import FAMILIES
from argus.torch.calls import CALLS, dropout
from argus.torch.calls import attention as own_attention

F: Any = functional
_choice: Any = of_torch
_ATTENTION = F.scaled_dot_product_attention
"""Torch's own."""
_AXES = 4


def with_own_functions(graph: Any) -> None:  # noqa: ANN401 reason: a graph of torch.fx
    """Put the definitions of this module in the place of torch's."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is functional.dropout:
            _with_own_dropout(node)
        elif node.target is _ATTENTION:
            node.target = attention
        elif node.target is F.cross_entropy:
            node.target = cross_entropy


@contextmanager
def own_attention_in_functions() -> Generator[None]:
    """Meanwhile functions of torch that call its attention, as that of several heads does, call the one below."""
    F.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        F.scaled_dot_product_attention = _ATTENTION


def _with_own_dropout(node: Any) -> None:  # noqa: ANN401 reason: a node
    """Put `argus.dropout` in place of torch's in training: same numbers, and a gradient that keeps no mask."""
    given = dict(zip(("input", "p", "training", "inplace"), node.args, strict=False)) | dict(node.kwargs)
    if given.get("training", True) is True and not given.get("inplace", False):
        node.target, node.args, node.kwargs = dropout, (given["input"], given.get("p", 0.5)), {}


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Scaled dot-product attention as torch defines it: by `argus.attention`, or by two products around a softmax.

    Products, softmax and scores are those of f32 where the operands are narrower and `argus.attention` has no kernel
    for them. With dropout, and under autocast, it is torch's: of f32 by products, a softmax and a mask; of shorter
    floats one operation, which eager torch runs, as scores in memory cost more than that.
    """
    if dropout_p or torch.is_autocast_enabled(query.device.type):
        short = query.dtype in (torch.bfloat16, torch.float16)
        with nullcontext() if short else _choice.sdpa_kernel(_choice.SDPBackend.MATH):
            return _ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if attn_mask is None and _has_kernel(query, key, value, is_causal, enable_gqa):
        found: Any = own_attention(*map(_in_rows, (query, key, value)), causal=is_causal, scale=scale)
        return found
    return _by_products(query, key, value, attn_mask, is_causal, scale)


def _has_kernel(query: Tensor, key: Tensor, value: Tensor, causal: bool, shared: bool) -> bool:
    """Whether `argus.attention` takes the operands, and means the same."""
    if query.ndim != _AXES or not query.dtype == key.dtype == value.dtype or key.shape != value.shape:
        return False
    heads, groups = query.shape[1], key.shape[1]
    if heads != groups and not (shared and groups and heads % groups == 0):
        return False
    widths: Any = FAMILIES.get(str(query.dtype), ())
    same = query.shape[0] == key.shape[0] and query.shape[3] == key.shape[3]
    # The last query sees all keys here, and the first sees the first alone in torch.
    return same and query.shape[3] in widths and (not causal or query.shape[2] == key.shape[2])


def _in_rows(x: Tensor) -> Tensor:
    """The tensor, copied where its rows do not begin at multiples of 16 bytes."""
    fits = x.stride(-1) == 1 and all(each % 8 == 0 for each in x.stride()[:-1])
    return x if fits else x.contiguous()


def _by_products(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> Tensor:
    """Attention by two products around a softmax of the scores of each query, which are kept in memory."""
    q, k, v = (each.float() for each in (query, key, value))
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = (_repeated(each, q.shape[-3] // k.shape[-3]) for each in (k, v))
    scores = (q @ k.transpose(-1, -2)) * (1 / sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        rows, keys = (torch.arange(n, device=q.device) for n in scores.shape[-2:])
        scores = torch.where(keys <= rows[:, None], scores, float("-inf"))
    weights: Callable[..., Tensor] = torch.softmax
    if mask is not None and mask.dtype == torch.bool:
        scores, weights = torch.where(mask, scores, float("-inf")), torch.ops.aten._safe_softmax
    elif mask is not None:
        scores = scores + mask.float()
    return (weights(scores, -1) @ v).to(query.dtype)


def _repeated(x: Tensor, times: int) -> Tensor:
    """Each head so many times, one beside another."""
    return x.unsqueeze(-3).expand(*x.shape[:-2], times, *x.shape[-2:]).flatten(-4, -3)


def cross_entropy(
    input: Tensor,  # noqa: A002 reason: torch's name
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy as torch defines it, of rows by `argus.cross_entropy`; with other options it is torch's.

    So it is where it needs a gradient, which that has not, and under autocast.
    """
    rows = input.ndim == 2 and target.ndim == 1 and target.dtype == torch.int64
    plain = weight is None and size_average is None and reduce is None and label_smoothing == 0
    if not (rows and plain) or input.requires_grad or torch.is_autocast_enabled(input.device.type):
        return F.cross_entropy(
            input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing=label_smoothing
        )
    counted = target != ignore_index
    losses = torch.where(counted, CALLS["cross_entropy"](input, target), 0.0)
    if reduction == "sum":
        losses = losses.sum()
    elif reduction == "mean":
        losses = losses.sum() / counted.float().sum()
    return losses.to(input.dtype)
