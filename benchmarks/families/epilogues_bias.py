"""bf16 GEMM with bias vs. torch: C = A @ B^T + bias."""

from __future__ import annotations

from typing import Any

from families.epilogues import PEER, SHAPES, Epilogue, Given
from families.gemm import Shape

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"


def _more(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    return {"bias": torch.randn(shape[1], device="cuda")}


def _result(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    del torch
    return given["A"] @ given["B"].T + given["bias"]


def _eager(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.linear(given["A"], given["B"], given["bias"].bfloat16())


_HERE = Epilogue(("epilogues", "gemm_bias"), _more, _result, _eager)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
