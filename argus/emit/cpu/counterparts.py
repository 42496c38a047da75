"""The CPU's definitions of helpers whose names carry parameters: matrix instructions, TMA boxes, reductions."""

from __future__ import annotations

import re

_KINDS = {"bf16": "KIND_BF16", "f16": "KIND_F16", "e4m3": "KIND_E4M3"}


def counterpart(name: str) -> str:
    """C++ of the helper for the CPU; empty for a name without parameters, which the header of the target defines."""
    if found := re.fullmatch(r"wgmma_m64n(\d+)k\d+_f32_([a-z0-9]+)_(ss|rs)(_a_mn)?(_b_mn)?", name):
        return _wgmma(name, int(found[1]), found[2], found[3] == "rs", (int(bool(found[4])), int(bool(found[5]))))
    if found := re.fullmatch(r"red_global_add_f32_b(\d+)", name):
        return (
            f"inline void {name}(void* to, const void* from, HERE) {{ for (int n = 0; n < {int(found[1]) // 32}; ++n) "
            "cpu_atomic_add((f32*)to + n, ((const f32*)from)[n], line); }"
        )
    if found := re.fullmatch(r"mma_m16n8k16_(\w+)", name):
        return (
            f"inline void {name}(f32* d, const void* a, const void* b, HERE) {{ "
            f"cpu_mma(d, a, b, {_KINDS[found[1]]}, line); }}"
        )
    if found := re.fullmatch(r"(ld|st)matrix_x(\d)(_trans)?", name):
        return _matrices(name, found[1] == "ld", int(found[2]), int(bool(found[3])))
    if found := re.fullmatch(r"tma_(load|store)_(\d)d(_to)?", name):
        return _tma(name, found[1], int(found[2]), multicast=bool(found[3]))
    return ""


def _wgmma(name: str, columns: int, dtype: str, in_registers: bool, major: tuple[int, int]) -> str:
    left, operand = ("const void* a", "0, a") if in_registers else ("u64 a", "a, nullptr")
    return (
        f"inline void {name}(f32 (&d)[{columns // 2}], {left}, u64 b, int keep, HERE) {{ "
        f"cpu_wgmma(d, {columns}, {_KINDS[dtype]}, {operand}, b, keep, {major[0]}, {major[1]}, line); }}"
    )


def _matrices(name: str, loads: bool, count: int, transposed: int) -> str:
    registers = [f"{'void*' if loads else 'const void*'} r{place}" for place in range(count)]
    given = [*registers, "u32 at"] if loads else ["u32 at", *registers]
    held = ", ".join(f"(void*)r{place}" for place in range(count))
    return (
        f"inline void {name}({', '.join(given)}, HERE) {{ void* held[] = {{{held}}}; "
        f"cpu_matrices(at, held, {count}, {transposed}, {int(loads)}, line); }}"
    )


def _tma(name: str, how: str, axes: int, *, multicast: bool) -> str:
    names = "xyzuv"[:axes]
    at = ", ".join(f"int {each}" for each in names)
    held = f"const int at[] = {{{', '.join(names)}}};"
    if how == "store":
        given, call = f"const TensorMap* map, u32 from, {at}", f"cpu_tma_store(map, from, {axes}, at, line);"
    else:
        given = f"{'u32 blocks, ' if multicast else ''}u32 to, const TensorMap* map, u32 barrier, {at}"
        call = f"cpu_tma_load({'blocks' if multicast else '0'}, to, map, barrier, {axes}, at, line);"
    return f"inline void {name}({given}, HERE) {{ {held} {call} }}"
