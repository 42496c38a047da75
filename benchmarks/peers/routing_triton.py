"""A routing kernel in Triton as a peer: softmax or sigmoid of a token's scores and k rounds of its largest one."""

# ruff: noqa: ANN001, ANN401 reason: arguments of a Triton kernel, and torch's, have no types
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportIndexIssue=false
# Reason: neither package is installed where types are checked.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _routed(
    x,
    bias,
    w,
    ids,
    tokens,
    experts,
    K: tl.constexpr,
    E: tl.constexpr,
    ROWS: tl.constexpr,
    SIGMOID: tl.constexpr,
    BIASED: tl.constexpr,
    RENORM: tl.constexpr,
    P: tl.constexpr,
) -> None:
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, E)
    inside = (row < tokens)[:, None] & (column < experts)[None, :]
    scores = tl.load(x + row[:, None] * experts + column[None, :], mask=inside, other=float("-inf")).to(tl.float32)
    if SIGMOID:
        weights = tl.sigmoid(scores)
    else:
        weights = tl.exp(scores - tl.max(scores, 1)[:, None])
        weights = weights / tl.sum(weights, 1)[:, None]
    keys = weights
    if BIASED:
        keys = weights + tl.load(bias + column, mask=column < experts, other=0.0)[None, :]
    keys = tl.where(inside, keys, float("-inf"))
    slots = tl.arange(0, P)
    found = tl.zeros((ROWS, P), tl.float32)
    chosen = tl.zeros((ROWS, P), tl.int32)
    for each in tl.static_range(K):
        best = tl.argmax(keys, 1)
        here = column[None, :] == best[:, None]
        weight = tl.sum(tl.where(here, weights, 0.0), 1)
        found = tl.where(slots[None, :] == each, weight[:, None], found)
        chosen = tl.where(slots[None, :] == each, best[:, None], chosen)
        keys = tl.where(here, float("-inf"), keys)
    if RENORM:
        found = found / tl.sum(found, 1)[:, None]
    at = row[:, None] * K + slots[None, :]
    stored = (row < tokens)[:, None] & (slots < K)[None, :]
    tl.store(w + at, found, mask=stored)
    tl.store(ids + at, chosen, mask=stored)


def routed(
    x: Any, k: int, scoring: str, bias: Any, *, renormalize: bool, rows: int, warps: int
) -> Callable[[], object]:
    """A call on these scores. rows: of a program."""
    (tokens, experts), power = x.shape, triton.next_power_of_2

    def call() -> object:
        w = torch.empty((tokens, k), device=x.device, dtype=torch.float32)
        ids = torch.empty((tokens, k), device=x.device, dtype=torch.int32)
        of = (x, x if bias is None else bias, w, ids, tokens, experts)
        _routed[(triton.cdiv(tokens, rows),)](
            *of,
            K=k,
            E=power(experts),
            ROWS=rows,
            SIGMOID=scoring == "sigmoid",
            BIASED=bias is not None,
            RENORM=renormalize,
            P=power(k),
            num_warps=warps,
        )
        return w, ids

    return call
