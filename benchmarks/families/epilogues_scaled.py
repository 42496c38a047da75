"""bf16 GEMM with a scale in device memory vs. torch: C = alpha * (A @ B^T)."""

from __future__ import annotations

from typing import Any

from families.epilogues import PEER, SHAPES, Epilogue, Given
from families.gemm import Shape

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"


def _more(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    del shape
    return {"alpha": torch.full((1,), 0.125, device="cuda")}


def _result(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    del torch
    return given["alpha"] * (given["A"] @ given["B"].T)


def _eager(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return torch.mm(given["A"], given["B"].T) * given["alpha"].bfloat16()


_HERE = Epilogue(("epilogues", "gemm_scaled"), _more, _result, _eager)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
