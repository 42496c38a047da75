"""bf16 GEMM, TT, vs. torch.mm: C = A^T @ B^T, A stored as (K, M) and B as (N, K), both row-major."""

from __future__ import annotations

from families.layouts import PEER, SHAPES, Layout

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"
_HERE = Layout("gemm_tt", a_transposed=True, b_transposed=False)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
