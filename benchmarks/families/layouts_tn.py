"""bf16 GEMM, TN, vs. torch.mm: C = A^T @ B, A stored as (K, M) and B as (K, N), both row-major."""

from __future__ import annotations

from families.layouts import PEER, SHAPES, Layout

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"
_HERE = Layout("gemm_tn", a_transposed=True, b_transposed=True)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
