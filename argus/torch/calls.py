"""The public operators as torch's tracers record them: calls of registered operators, which they do not look into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from argus.ops.attention_fp8 import Descale
from argus.ops.attention_options import Window, ends
from argus.ops.expert_order import ExpertOrder
from argus.ops.received_order import ReceivedOrder
from argus.torch.attention import REGISTERED as ATTENTION
from argus.torch.dropout import REGISTERED as DROPOUT
from argus.torch.experts import REGISTERED as EXPERTS
from argus.torch.products import REGISTERED as PRODUCTS
from argus.torch.rows import REGISTERED as ROWS

_OPERATORS: Any = torch.ops.argus
Both = Tensor | tuple[Tensor, Tensor]
REGISTERED = (*ATTENTION, *DROPOUT, *EXPERTS, *PRODUCTS, *ROWS)
"""The names of all registered operators; the import of their modules registers them."""


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    window: Window = None,
    descale: Descale = None,
    return_lse: bool = False,
    **options: Any,
) -> Both:
    left, right = ends(window) or (None, None)
    factors = () if descale is None else descale
    out, lse = _OPERATORS.attention(q, k, v, *factors, left=left, right=right, **options)
    return (out, lse) if return_lse else out


def attention_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    return_lse: bool = False,
    **options: Any,
) -> Both:
    if max_seqlen_k is None and cu_seqlens_k is cu_seqlens_q:
        max_seqlen_k = max_seqlen_q
    longest = {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    out, lse = _OPERATORS.attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, **longest, **options)
    return (out, lse) if return_lse else out


def attention_decode(*operands: Tensor, return_lse: bool = False, **options: Any) -> Both:
    out, lse = _OPERATORS.attention_decode(*operands, **options)
    return (out, lse) if return_lse else out


def rms_norm(x: Tensor, weight: Tensor | None = None, *, residual: Tensor | None = None, **options: Any) -> Both:
    if residual is None:
        return _OPERATORS.rms_norm(x, weight, **options)
    return _OPERATORS.rms_norm_of_sum(x, residual, weight, **options)


def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    residual: Tensor | None = None,
    **options: Any,
) -> Both:
    if residual is None:
        return _OPERATORS.layer_norm(x, weight, bias, **options)
    return _OPERATORS.layer_norm_of_sum(x, residual, weight, bias, **options)


def grouped_matmul(a: Tensor, b: Tensor, offsets: Tensor | None = None, **options: Any) -> Tensor:
    given = (options.pop(name, None) for name in ("counts", "scale_a", "scale_b"))
    return _OPERATORS.grouped_matmul(a, b, offsets, *given, **options)


def route(logits: Tensor, k: int, *, bias: Tensor | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    return _OPERATORS.route(logits, k, bias, **options)


def expert_order(topk_ids: Tensor, experts: int, *, height: int | None = None) -> ExpertOrder:
    return ExpertOrder(topk_ids.int().contiguous(), *_OPERATORS.expert_order(topk_ids, experts, height))


def received_order(counts: Tensor, rows: int, *, height: int | None = None) -> ReceivedOrder:
    return ReceivedOrder(*_OPERATORS.received_order(counts, rows, height))


def dropout(x: Tensor, p: float = 0.5, **options: Any) -> Tensor:
    # Not of `x.new_empty`: torch's compiler takes two of these to be one, and with them two draws.
    state = torch.empty((4,), dtype=torch.int32, device=x.device)
    _OPERATORS.dropout_draw(state, x.numel(), p)
    return _OPERATORS.dropout(x, state, p, **options)


def moe(*operands: Tensor, scales: tuple[Tensor, Tensor, Tensor] | None = None, **options: Any) -> Tensor:
    return _OPERATORS.moe(*operands, *(scales or ()), **options)


_PLAIN = (
    *("matmul", "scaled_matmul", "softmax", "log_softmax", "group_norm", "row_sum", "row_mean", "cumsum"),
    "cross_entropy",
)
CALLS: dict[str, Callable[..., Any]] = {name: getattr(_OPERATORS, name) for name in _PLAIN} | {
    each.__name__: each
    for each in (
        *(attention, attention_varlen, attention_decode, rms_norm, layer_norm, grouped_matmul),
        *(route, expert_order, received_order, moe, dropout),
    )
}
"""By the names of public operators."""
