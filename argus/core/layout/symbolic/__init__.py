"""Symbolic layouts: extents and strides are expressions over sizes, and operations return side conditions."""

from __future__ import annotations

from argus.core.layout.symbolic.compose import SymbolicTiler
from argus.core.layout.symbolic.operations import AnyLayout, Operations
from argus.core.layout.symbolic.side_conditions import Condition, NormalFormsOnly, Oracle
from argus.core.layout.symbolic.sizes import Claim, Size, SizeLike, node_of, symbols
from argus.core.layout.symbolic.values import Conditional, SizeTree, SymbolicLayout, to_symbolic

__all__ = [
    "AnyLayout",
    "Claim",
    "Condition",
    "Conditional",
    "NormalFormsOnly",
    "Operations",
    "Oracle",
    "Size",
    "SizeLike",
    "SizeTree",
    "SymbolicLayout",
    "SymbolicTiler",
    "node_of",
    "symbols",
    "to_symbolic",
]
