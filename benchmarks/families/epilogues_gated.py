"""Gated bf16 GEMM vs. torch: C = silu(A @ W^T) * (A @ V^T)."""

from __future__ import annotations

from typing import Any

from families.epilogues import PEER, SHAPES, Epilogue, Given, normal
from families.gemm import Shape

__all__ = [
    "OUTPUT",
    "PEER",
    "SHAPES",
    "checked",
    "exact",
    "peers",
    "products",
    "select",
    "sizes",
    "tensors",
    "variants",
]

OUTPUT = "C"


def _more(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    return {name: normal(torch, shape[1], shape[2]) * shape[2] ** -0.5 for name in ("W", "V")}


def _result(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.silu(given["A"] @ given["W"].T) * (given["A"] @ given["V"].T)


def _eager(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.silu(given["A"] @ given["W"].T) * (given["A"] @ given["V"].T)


def products(shape: Shape) -> int:
    del shape
    return 2


_HERE = Epilogue(("gated", "gemm_gated_silu"), _more, _result, _eager)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
