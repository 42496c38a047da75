"""Hopper atomic reductions to global memory (`red`): adds each element, in no defined order, and returns nothing.

Source: NVIDIA PTX ISA, `red`; vectors of 32-bit elements since sm_90. Each element is atomic by itself.
"""

from __future__ import annotations

from argus.core.atom import Atom, Completion, Operand
from argus.core.dtype import f32


def _red(count: int) -> Atom:
    bits = 32 * count
    vector = "" if count == 1 else f".v{count}"
    return Atom(
        name=f"red_global_add_f32_b{bits}",
        targets=frozenset({"sm_90a"}),
        unit=32,
        operands={
            "source": Operand("register", f32, vector_bits=bits),
            "target": Operand("global", f32, vector_bits=bits, align=bits // 8),
        },
        completion=Completion(),
        combine="add",
        issue_cycles=float(count),
        spelling={"sm_90a": f"red.relaxed.gpu.global.add{vector}.f32 [{{target}}], {{source}};"},
    )


red_global_add = tuple(_red(count) for count in (1, 2, 4))

ATOMS: tuple[Atom, ...] = red_global_add
