"""A test kernel for each instruction of sm_90a, generated from its table entry, with inputs and expected results.

Operands come from global memory by ordinary loads, the instruction runs once, and ordinary stores write the result `C`.
"""

from __future__ import annotations

from argus.testing.instructions.catalogue import trials
from argus.testing.instructions.trial import Draw, Expected, Trial, drawn, expected

__all__ = ["Draw", "Expected", "Trial", "drawn", "expected", "trials"]
