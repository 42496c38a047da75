"""Device functions of gfx942 that add registers to global memory, atomically for each element."""

from __future__ import annotations

from argus.core.ir import Copy, Kernel, walk

REDUCTIONS = """\
HELPER void global_atomic_add_f32(void* to, const void* from) {
    __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) f32*)to, *(const f32*)from);
}
"""


def uses_reductions(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Copy) and stmt.combine for stmt in walk(kernel.body))
