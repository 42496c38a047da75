"""Conversions between f32 and e4m3 (OCP) in C, for both targets: gfx942 converts to another 8-bit format in hardware.

e4m3 has 4 exponent bits with bias 7, 3 mantissa bits, and no infinities. What rounds beyond 448, infinities and NaN
become NaN, as in NumPy with `ml_dtypes` [OCP 8-bit floating point specification, 1.0].
"""

from __future__ import annotations

from argus.core.dtype import e4m3
from argus.core.ir import Cast, Kernel, Map, walk
from argus.core.ir.element_walk import gets, nodes

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


def converts_fp8(kernel: Kernel) -> bool:
    """Whether element-wise statements of the kernel compute with 8-bit floats."""
    maps = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Map)]
    return any(
        stmt.target.buffer.dtype == e4m3
        or any(get.view.buffer.dtype == e4m3 for get in gets(stmt.elem))
        or any(isinstance(node, Cast) and node.dtype == e4m3 for node in nodes(stmt.elem))
        for stmt in maps
    )
