"""The laws of the layout algebra as data: statement, source, and a decision procedure for concrete operands.

The documentation lists them, property tests draw operands for each, and solvers prove a few for symbolic sizes. `law`
defines the types, `tabulated` has the oracles.
"""

from __future__ import annotations

from argus.testing.laws import composing, dividing, inverting, shaping
from argus.testing.laws.implementation import ARGUS, Implementation
from argus.testing.laws.law import KINDS, Breach, Kind, Law, Operand

LAWS: tuple[Law, ...] = (*shaping.LAWS, *composing.LAWS, *dividing.LAWS, *inverting.LAWS)

__all__ = ["ARGUS", "KINDS", "LAWS", "Breach", "Implementation", "Kind", "Law", "Operand"]
