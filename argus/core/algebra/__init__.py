"""Normalising constructors of index expressions and conditions, the only ones that build such nodes.

Every rewrite is an identity of the integers under floor division, given the ranges of the symbols.
`integers` holds arithmetic; `conditions` holds comparisons, boolean operators and selection. Import from here.
"""

from __future__ import annotations

from argus.core.algebra.conditions import FALSE, TRUE, all_of, any_of, contradict, eq, implies, le, lt, negate, pick
from argus.core.algebra.integers import (
    IndexLike,
    add,
    bit_and,
    bit_or,
    bit_xor,
    ceil_div,
    const,
    coord,
    floordiv,
    held,
    index,
    linear,
    maximum,
    minimum,
    mod,
    mul,
    neg,
    read,
    shift_left,
    shift_right,
    sub,
    sym,
)

__all__ = [
    "FALSE",
    "TRUE",
    "IndexLike",
    "add",
    "all_of",
    "any_of",
    "bit_and",
    "bit_or",
    "bit_xor",
    "ceil_div",
    "const",
    "contradict",
    "coord",
    "eq",
    "floordiv",
    "held",
    "implies",
    "index",
    "le",
    "linear",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "negate",
    "pick",
    "read",
    "shift_left",
    "shift_right",
    "sub",
    "sym",
]
