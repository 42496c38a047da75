"""Scheduling advice: its kinds, their arguments, and the kinds of instructions that it groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

PolicyName = Literal[
    "registers",
    "priority",
    "remap_xcd",
    "sched_barrier",
    "sched_group_barrier",
    "no_pdl",
    "early_reads",
    "own_checks",
    "skip_one",
    "free_order",
]
ADVICE: Mapping[PolicyName, int] = {
    "registers": 1,
    "priority": 1,
    "remap_xcd": 1,
    "sched_barrier": 1,
    "sched_group_barrier": 2,
    "no_pdl": 0,
    "early_reads": 0,
    "own_checks": 0,
    "skip_one": 0,
    "free_order": 0,
}
"""The number of arguments of each kind of scheduling advice."""
SCHEDULED: Mapping[str, int] = {
    name: 1 << bit
    for name, bit in (("mfma", 3), ("global_read", 5), ("global_write", 6), ("lds_read", 8), ("lds_write", 9))
}
"""Kinds of instructions that LLVM's scheduler groups: bits of a mask [LLVM AMDGPU usage, sched_group_barrier]."""
