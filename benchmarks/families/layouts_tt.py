"""C = A^T @ B^T: A with K down its columns, B with K along its rows. Beside torch.mm."""

from __future__ import annotations

from families.layouts import PEER, SHAPES, Layout

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

OUTPUT = "C"
_HERE = Layout("gemm_tt", a_turned=True, b_turned=False)
variants, sizes, tensors, exact = _HERE.variants, _HERE.sizes, _HERE.tensors, _HERE.exact
peers, checked, select = _HERE.peers, _HERE.checked, _HERE.select
