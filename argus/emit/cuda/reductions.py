"""Device functions of sm_90a that add registers to global memory, atomically for each element."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Copy, Kernel, walk


def helpers(kernel: Kernel) -> Iterator[str]:
    """One function for each reduction instruction of the kernel."""
    used = {stmt.atom.name: stmt.atom for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.combine}
    for name, atom in sorted(used.items()):
        count = atom.vector_bits // 32
        group = f"{{{', '.join(f'%{place}' for place in range(1, count + 1))}}}" if count > 1 else "%1"
        text = atom.spelling["sm_90a"].format(target="%0", source=group)
        given = ", ".join(f'"f"(((const f32*)from)[{place}])' for place in range(count))
        yield f"""HELPER void {name}(void* to, const void* from) {{
    asm volatile("{text}" ::"l"(to), {given} : "memory");
}}
"""
