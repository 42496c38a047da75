"""Conversions between f32 and e4m3 (OCP) in C, for both targets: gfx942 converts to another 8-bit format in hardware.

e4m3 has 4 exponent bits with bias 7, 3 mantissa bits, and no infinities. What rounds beyond 448, infinities and NaN
become NaN, as in NumPy with `ml_dtypes` [OCP 8-bit floating point specification, 1.0]. The other format, e4m3fnuz, has
a bias of 8, and one NaN in place of a negative zero; what rounds beyond 240 becomes NaN. It is converted to in C, too:
the instruction's result beyond 240 depends on a mode of the wave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core.dtype import e4m3, e4m3fnuz, f32
from argus.core.ir import Cast, Get, Kernel, Lit, Map, Op, walk, whole
from argus.core.ir.element_walk import gets, nodes
from argus.emit.scope import Scope, is_whole, layout_of

_AT_ONCE = 4
"""Registers that are converted together."""

CONVERSIONS = """\
HELPER f32 of_e4m3(unsigned char x) {
    const unsigned rest = x & 0x7Fu;
    f32 size = (f32)(int)rest * 0x1p-9f;  // subnormal numbers are multiples of 2^-9
    const unsigned bits = (rest << 20) + (120u << 23);
    if (rest >= 8) __builtin_memcpy(&size, &bits, 4);
    if (rest == 0x7Fu) size = __builtin_nanf("");
    return x & 0x80u ? -size : size;
}
HELPER unsigned char to_e4m3(f32 x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    const unsigned sign = bits >> 24 & 0x80u;
    unsigned size = bits & 0x7FFFFFFFu;
    if (size > 0x43E80000u) return (unsigned char)(sign | 0x7Fu);  // beyond 464, which is halfway to the next number
    if (size < 0x3C800000u) {  // below 2^-6: adding 2^14 rounds to a multiple of 2^-9
        f32 shifted;
        __builtin_memcpy(&shifted, &size, 4);
        shifted += 16384.0f;
        __builtin_memcpy(&size, &shifted, 4);
        return (unsigned char)(sign | (size & 0xFu));
    }
    size += 0x7FFFFu + (size >> 20 & 1u);
    return (unsigned char)(sign | ((size >> 20) - (120u << 3)));
}
"""

CONVERSIONS_FNUZ = """\
HELPER unsigned char to_e4m3fnuz(f32 x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    const unsigned sign = bits >> 24 & 0x80u;
    unsigned size = bits & 0x7FFFFFFFu;
    if (size >= 0x43780000u) return 0x80u;  // from 248 on, which is halfway to what would be the next number: NaN
    if (size < 0x3C000000u) {  // below 2^-7: adding 2^13 rounds to a multiple of 2^-10
        f32 shifted;
        __builtin_memcpy(&shifted, &size, 4);
        shifted += 8192.0f;
        __builtin_memcpy(&size, &shifted, 4);
        return (unsigned char)(size & 0xFu ? sign | (size & 0xFu) : 0u);
    }
    size += 0x7FFFFu + (size >> 20 & 1u);
    return (unsigned char)(sign | ((size >> 20) - (119u << 3)));
}
"""

IN_HARDWARE = """\
// Four numbers as e4m3, the first in the low byte; what lies beyond 448 is 448.
HELPER unsigned e4m3_four(f32 a, f32 b, f32 c, f32 d) {
    unsigned four;
    asm("{ .reg .b16 low, high;\\n\\t"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\\n\\t"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\\n\\t"
        "mov.b32 %0, {low, high}; }"
        : "=r"(four) : "f"(a), "f"(b), "f"(c), "f"(d));
    return four;
}
template <int N> HELPER void to_e4m3_saturated(unsigned char (&to)[N], const f32 (&from)[N]) {
    #pragma unroll
    for (int n = 0; n < N; n += 4) {
        const unsigned four = e4m3_four(from[n], from[n + 1], from[n + 2], from[n + 3]);
        memcpy(to + n, &four, 4);
    }
}
template <int N> HELPER void to_e4m3_all(unsigned char (&to)[N], const f32 (&from)[N]) {
    unsigned fours[N / 4], beyond = 0;
    #pragma unroll
    for (int n = 0; n < N; n += 4) {
        fours[n / 4] = e4m3_four(from[n], from[n + 1], from[n + 2], from[n + 3]);
        beyond |= (fours[n / 4] & 0x7F7F7F7Fu) + 0x02020202u;  // bit 7 of a byte: of 448 and NaN
    }
    if (beyond & 0x80808080u) {
        #pragma unroll
        for (int n = 0; n < N; ++n)
            if (!(fabsf(from[n]) <= 464.0f)) {
                const unsigned nan = __float_as_uint(from[n]) >> 24 & 0x80u | 0x7Fu;
                fours[n / 4] = fours[n / 4] & ~(0xFFu << n % 4 * 8) | nan << n % 4 * 8;
            }
    }
    #pragma unroll
    for (int n = 0; n < N; n += 4) memcpy(to + n, &fours[n / 4], 4);
}
"""
"""Hopper's conversion of a thread's registers, a multiple of 4. What lies beyond 448 is 448, or NaN as by `to_e4m3`."""


def conversion_lines(stmt: Map, scope: Scope) -> list[str] | None:
    """Lines for a statement that only rounds an f32 tile to e4m3, where the target does so in hardware; else None."""
    match stmt.elem:
        case Cast(dtype=dtype, arg=Op(name="clamp", args=(Get() as get, Lit(value=low), Lit(value=high)))) if (
            dtype == e4m3 and -low == high == e4m3.greatest
        ):
            helper = "to_e4m3_saturated"
        case Cast(dtype=dtype, arg=Get() as get) if dtype == e4m3:
            helper = "to_e4m3_all"
        case _:
            return None
    view, target = get.view, stmt.target.buffer
    layout = layout_of(target)
    alike = view.buffer.dtype == f32 and is_whole(view, layout) and get.at == whole(view.buffer).at
    if scope.target != "sm_90a" or not alike or layout.values.size() % _AT_ONCE:
        return None
    return [f"{helper}({scope.names.buffers[target]}, {scope.names.buffers[view.buffer]});"]


def converts_fp8(kernel: Kernel) -> bool:
    """Whether element-wise statements of the kernel compute with 8-bit floats."""
    maps = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    return any(
        stmt.target.buffer.dtype == e4m3
        or any(get.view.buffer.dtype == e4m3 for get in gets(stmt.elem))
        or any(isinstance(node, Cast) and node.dtype == e4m3 for node in nodes(stmt.elem))
        for stmt in maps
    )


def converts_to_fnuz(kernel: Kernel) -> bool:
    """Whether element-wise statements of the kernel round to e4m3fnuz."""
    maps = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    return any(isinstance(node, Cast) and node.dtype == e4m3fnuz for stmt in maps for node in nodes(stmt.elem))


def cuda_helpers(kernel: Kernel, lines: Sequence[str]) -> Iterator[str]:
    """The helpers that lines of a kernel for sm_90a use."""
    if converts_fp8(kernel):
        yield CONVERSIONS.replace("__builtin_memcpy", "memcpy")  # NVRTC has no such builtin
    if converts_to_fnuz(kernel):
        yield CONVERSIONS_FNUZ.replace("__builtin_memcpy", "memcpy")
    if any(f"{name}(" in line for line in lines for name in ("to_e4m3_all", "to_e4m3_saturated")):
        yield IN_HARDWARE
