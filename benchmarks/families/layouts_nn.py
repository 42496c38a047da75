"""bf16 GEMM, NN, vs. torch.mm: C = A @ B, both row-major."""

from __future__ import annotations

from families.layouts import PEER, SHAPES, Layout

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"
_HERE = Layout("gemm_nn", a_transposed=False, b_transposed=True)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
