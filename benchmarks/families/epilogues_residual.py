"""bf16 GEMM with a residual vs. torch: C = A @ B^T + R."""

from __future__ import annotations

from typing import Any

from families.epilogues import PEER, SHAPES, Epilogue, Given, normal
from families.gemm import Shape

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"


def _more(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    return {"R": normal(torch, shape[0], shape[1])}


def _result(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    del torch
    return given["A"] @ given["B"].T + given["R"]


def _eager(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return torch.addmm(given["R"], given["A"], given["B"].T)


_HERE = Epilogue(("residual", "gemm_residual"), _more, _result, _eager)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
