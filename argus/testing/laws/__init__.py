"""The laws of the layout algebra as values: stated, sourced, and decidable for concrete operands.

The documentation lists them, the property tests draw operands for each, and a few are proved by the solvers for
symbolic sizes. `law` says what a law is, `tabulated` holds the oracles.
"""

from __future__ import annotations

from argus.testing.laws import composing, dividing, inverting, shaping
from argus.testing.laws.law import KINDS, Breach, Kind, Law, Operand

LAWS: tuple[Law, ...] = (*shaping.LAWS, *composing.LAWS, *dividing.LAWS, *inverting.LAWS)

__all__ = ["KINDS", "LAWS", "Breach", "Kind", "Law", "Operand"]
