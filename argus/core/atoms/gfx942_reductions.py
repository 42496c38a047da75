"""CDNA3 atomic reductions to global memory: each lane adds one number, in no defined order, and nothing is returned.

Source: AMD Instinct MI300 ISA reference, global memory atomics.
"""

from __future__ import annotations

from argus.core.atom import Atom, Completion, Operand
from argus.core.dtype import f32

global_atomic_add = Atom(
    name="global_atomic_add_f32",
    targets=frozenset({"gfx942"}),
    unit=64,
    operands={
        "source": Operand("register", f32, vector_bits=32),
        "target": Operand("global", f32, vector_bits=32, align=4),
    },
    completion=Completion(),
    combine="add",
    issue_cycles=4.0,
    spelling={"gfx942": "global_atomic_add_f32({target}, {source})"},
)

ATOMS: tuple[Atom, ...] = (global_atomic_add,)
