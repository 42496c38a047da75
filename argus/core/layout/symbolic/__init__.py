"""Layouts over symbols: extents and strides that stand for all sizes, and operations with their conditions."""

from __future__ import annotations

from argus.core.layout.symbolic.compose import SymbolicTiler
from argus.core.layout.symbolic.operations import AnyLayout, Operations
from argus.core.layout.symbolic.side_conditions import Condition, NormalFormsOnly, Oracle
from argus.core.layout.symbolic.sizes import Claim, Size, SizeLike, node_of, symbols
from argus.core.layout.symbolic.values import Conditional, SizeTree, SymbolicLayout, lifted

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
    "lifted",
    "node_of",
    "symbols",
]
