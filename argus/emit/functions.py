"""Element functions that a target's compiler does not have, in C: they stand in a file whose text calls them.

gfx942 has no library of functions here. The polynomials are least-squares fits on Chebyshev nodes, weighted to the
greatest error, with coefficients rounded to f32 one after the other; `benchmarks/element_functions.py` measures the
errors of all functions on f32 numbers of every exponent. sm_90a takes CUDA's own functions, which torch calls, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from argus.core.philox import MULTIPLIERS, ROUNDS, WEYL

_BYTE = "*(unsigned char*)to = "
_BYTES: Mapping[str, str] = {
    "load_b8": f"HELPER void load_b8(void* to, const void* from) {{ {_BYTE}*(const unsigned char*)from; }}\n",
    "store_b8": f"HELPER void store_b8(void* to, const void* from) {{ {_BYTE}*(const unsigned char*)from; }}\n",
    "fill_b8": f"HELPER void fill_b8(void* to, unsigned word) {{ {_BYTE}(unsigned char)word; }}\n",
}
_SIGN_OF = "HELPER f32 sign_of(f32 x) { return (f32)((x > 0.0f) - (x < 0.0f)); }\n"
_PHILOX = f"""\
HELPER int philox(int first, int step, int thread, int word, int key_low, int key_high) {{
    const unsigned long long counter = (unsigned long long)(unsigned)first + (unsigned)step;
    unsigned x0 = (unsigned)counter, x1 = (unsigned)(counter >> 32), x2 = thread, x3 = 0, k0 = key_low, k1 = key_high;
    #pragma unroll
    for (int round = 0; round < {ROUNDS}; ++round) {{
        const unsigned long long one = {MULTIPLIERS[0]}ull * x0, two = {MULTIPLIERS[1]}ull * x2;
        x0 = (unsigned)(two >> 32) ^ x1 ^ k0;
        x2 = (unsigned)(one >> 32) ^ x3 ^ k1;
        x1 = (unsigned)two;
        x3 = (unsigned)one;
        k0 += {WEYL[0]}u;
        k1 += {WEYL[1]}u;
    }}
    const unsigned found = word & 2 ? (word & 1 ? x3 : x2) : word & 1 ? x1 : x0;
    return (int)(found ^ 0x80000000u);
}}
"""
_GFX942: Mapping[str, str] = {
    **_BYTES,
    "philox": _PHILOX,
    "max_nan": """\
HELPER f32 max_nan(f32 a, f32 b) { return a == a && b == b ? __builtin_fmaxf(a, b) : __builtin_nanf(""); }
""",
    "min_nan": """\
HELPER f32 min_nan(f32 a, f32 b) { return a == a && b == b ? __builtin_fminf(a, b) : __builtin_nanf(""); }
""",
    "sign_of": _SIGN_OF,
    "tanh_of": """\
HELPER f32 tanh_of(f32 x) {
    const f32 size = __builtin_fabsf(x), t = x * x;
    f32 p = 0.0020057817455381155f;
    p = __builtin_fmaf(p, t, -0.00802320335060358f);
    p = __builtin_fmaf(p, t, 0.021636752411723137f);
    p = __builtin_fmaf(p, t, -0.05393484979867935f);
    p = __builtin_fmaf(p, t, 0.13333110511302948f);
    p = __builtin_fmaf(p, t, -0.333333283662796f);
    const f32 near = __builtin_fmaf(p * t, x, x);
    const f32 rest = 2.0f * __builtin_amdgcn_rcpf(__builtin_elementwise_exp(2.0f * size) + 1.0f);
    const f32 far = 1.0f - rest;  // 1 once the exponential is infinite
    return size < 0.65f ? near : x < 0.0f ? -far : x != x ? x : far;
}
""",
    "erf_of": """\
HELPER f32 erf_of(f32 x) {
    const f32 size = __builtin_fabsf(x), t = x * x;
    f32 p = -1.3859042837793822e-06f;
    p = __builtin_fmaf(p, t, 8.375915058422834e-05f);
    p = __builtin_fmaf(p, t, -0.0008088098838925362f);
    p = __builtin_fmaf(p, t, 0.00519415270537138f);
    p = __builtin_fmaf(p, t, -0.0268560778349638f);
    p = __builtin_fmaf(p, t, 0.11283627897500992f);
    p = __builtin_fmaf(p, t, -0.3761262893676758f);
    p = __builtin_fmaf(p, t, 0.12837916612625122f);
    const f32 near = __builtin_fmaf(p, x, x);
    f32 q = -3.1284936994779855e-05f;  // log2(1 - erf) from 1 to 4
    q = __builtin_fmaf(q, size, 0.0006366888410411775f);
    q = __builtin_fmaf(q, size, -0.006065798923373222f);
    q = __builtin_fmaf(q, size, 0.03636760264635086f);
    q = __builtin_fmaf(q, size, -0.15641465783119202f);
    q = __builtin_fmaf(q, size, -0.9135434031486511f);
    q = __builtin_fmaf(q, size, -1.6296371221542358f);
    q = __builtin_fmaf(q, size, 0.0002712785790208727f);
    const f32 far = size < 4.0f ? 1.0f - __builtin_amdgcn_exp2f(q) : 1.0f;
    return size < 1.0f ? near : x < 0.0f ? -far : x != x ? x : far;
}
""",
    "expm1_of": """\
HELPER f32 expm1_of(f32 x) {
    if (!(x < 88.8f)) return x * __builtin_inff();  // NaN stays
    if (x < -18.0f) return -1.0f;
    const f32 n = __builtin_elementwise_roundeven(x * 1.44269504f);
    const f32 r = __builtin_fmaf(n, -1.42860677e-06f, __builtin_fmaf(n, -0.693145752f, x));  // x - n ln(2)
    f32 p = 2.4981969545478933e-05f;
    p = __builtin_fmaf(p, r, 0.00019974980386905372f);
    p = __builtin_fmaf(p, r, 0.0013888608664274216f);
    p = __builtin_fmaf(p, r, 0.008333174511790276f);
    p = __builtin_fmaf(p, r, 0.0416666679084301f);
    p = __builtin_fmaf(p, r, 0.1666666716337204f);
    p = __builtin_fmaf(__builtin_fmaf(p, r, 0.5f), r * r, r);
    const f32 half = __builtin_amdgcn_ldexpf(0.5f, (int)n);  // 2^n itself may lie beyond f32
    return 2.0f * __builtin_fmaf(p, half, half - 0.5f);
}
""",
    "pow_of": """\
HELPER f32 pow_of(f32 x, f32 y) {  // 2 to the power of y log2(|x|), in double precision
    if (x == 1.0f || y == 0.0f) return 1.0f;
    if (x != x || y != y) return x + y;
    const double size = x < 0.0f ? -(double)x : (double)x, magic = 6755399441055744.0;
    const double half = 0.5 * y, whole = y + magic - magic;
    const bool odd = y < 16777216.0f && y > -16777216.0f && whole == y && half + magic - magic != half;
    const f32 sign = odd && (x < 0.0f || (x == 0.0f && 1.0f / x < 0.0f)) ? -1.0f : 1.0f;
    const bool grows = (size > 1.0) == (y > 0.0f);
    if (size == 0.0 || size == (double)__builtin_inff()) return grows ? sign * __builtin_inff() : sign * 0.0f;
    if (x < 0.0f && whole != y && y < 16777216.0f && y > -16777216.0f) return __builtin_nanf("");
    unsigned long long bits;
    __builtin_memcpy(&bits, &size, 8);
    int power = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double part;
    __builtin_memcpy(&part, &bits, 8);
    if (part > 1.4142135623730951) { part *= 0.5; ++power; }
    const double z = (part - 1.0) / (part + 1.0), t = z * z;
    const double series = z * (2.0 + t * (2.0 / 3 + t * (2.0 / 5 + t * (2.0 / 7 + t * (2.0 / 9
        + t * (2.0 / 11 + t * (2.0 / 13 + t * (2.0 / 15))))))));  // the logarithm of `part`
    const double wanted = y * (power + series * 1.4426950408889634);
    if (wanted > 129.0) return sign * __builtin_inff();
    if (wanted < -151.0) return sign * 0.0f;
    const double n = wanted + magic - magic, r = (wanted - n) * 0.6931471805599453;
    double p = 1.0 + r * (1.0 / 10);
    p = 1.0 + p * r * (1.0 / 9);
    p = 1.0 + p * r * (1.0 / 8);
    p = 1.0 + p * r * (1.0 / 7);
    p = 1.0 + p * r * (1.0 / 6);
    p = 1.0 + p * r * (1.0 / 5);
    p = 1.0 + p * r * (1.0 / 4);
    p = 1.0 + p * r * (1.0 / 3);
    p = 1.0 + p * r * (1.0 / 2);
    p = 1.0 + p * r;
    bits = (unsigned long long)((long long)n + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &bits, 8);
    return sign * (f32)(p * scale);
}
""",
    "sin_of": "HELPER f32 sin_of(f32 x) { return x == 0.0f ? x : sine(x, 0); }\n",
    "cos_of": "HELPER f32 cos_of(f32 x) { return sine(x, 1); }\n",
    "log1p_of": """\
HELPER f32 log1p_of(f32 x) {  // the logarithm of what 1 + x is rounded to, corrected for that rounding
    const f32 y = 1.0f + x, d = y - 1.0f;
    if (d == 0.0f || x == __builtin_inff()) return x;
    return __builtin_elementwise_log(y) * (x / d);
}
""",
}

_TURNS = """\
// x as a number in [-pi/4, pi/4] and quarters of a turn, which are added to `quarters`. From 2^15 on, the product of
// the mantissa and those 128 bits of 2/pi that count, as an integer, whose overflow is whole turns.
HELPER f32 turned(f32 x, int& quarters) {
    const f32 size = __builtin_fabsf(x);
    if (size < 32768.0f) {
        const f32 n = __builtin_elementwise_roundeven(x * 0.636619747f);
        quarters += (int)n;
        const f32 first = __builtin_fmaf(n, 4.371138828673793e-08f, __builtin_fmaf(n, -1.5707963705062866f, x));
        return __builtin_fmaf(n, 1.7151245100058819e-15f, first);
    }
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    const unsigned scaled = (bits << 8) | 0x80000000u;
    const int power = (int)(bits >> 23 & 255u) - 128, at = power >> 5, shift = power & 31;
    const unsigned w0 = at == 0 ? 0u : at == 1 ? 0xA2F9836Eu : at == 2 ? 0x4E441529u : 0xFC2757D1u;
    const unsigned w1 = at == 0 ? 0xA2F9836Eu : at == 1 ? 0x4E441529u : at == 2 ? 0xFC2757D1u : 0xF534DDC0u;
    const unsigned w2 = at == 0 ? 0x4E441529u : at == 1 ? 0xFC2757D1u : at == 2 ? 0xF534DDC0u : 0xDB629599u;
    const unsigned w3 = at == 0 ? 0xFC2757D1u : at == 1 ? 0xF534DDC0u : at == 2 ? 0xDB629599u : 0x3C439041u;
    using wide = unsigned long long;
    const wide r0 = (wide)scaled * w3, r1 = (wide)scaled * w2 + (r0 >> 32), r2 = (wide)scaled * w1 + (r1 >> 32);
    const wide high = (wide)(unsigned)((unsigned)(r2 >> 32) + scaled * w0) << 32 | (unsigned)r2;
    const wide low = r1 << 32 | (unsigned)r0;
    const wide found = high << shift | low >> 1 >> (63 - shift);  // two bits of quarters, 62 of their fraction
    const long long rest = (long long)(found << 2);
    const int whole = (int)(found >> 62) + (rest < 0);
    quarters += x < 0.0f ? -whole : whole;
    const f32 angle = (f32)rest * 8.515303950216386e-20f;  // pi/2 2^-64
    return x < 0.0f ? -angle : angle;
}
HELPER f32 sine(f32 x, int quarters) {
    if (!(__builtin_fabsf(x) < __builtin_inff())) return __builtin_nanf("");
    const f32 r = turned(x, quarters), t = r * r;
    f32 p = 2.8374836347211385e-06f;
    p = __builtin_fmaf(p, t, -0.00019853509729728103f);
    p = __builtin_fmaf(p, t, 0.008333380334079266f);
    p = __builtin_fmaf(p, t, -0.1666666716337204f);
    const f32 odd = __builtin_fmaf(p * t, r, r);
    f32 q = -2.8976953103665437e-07f;
    q = __builtin_fmaf(q, t, 2.482298259565141e-05f);
    q = __builtin_fmaf(q, t, -0.001388898235745728f);
    q = __builtin_fmaf(q, t, 0.0416666679084301f);
    q = __builtin_fmaf(q, t, -0.5f);
    const f32 even = __builtin_fmaf(q, t, 1.0f), found = quarters & 1 ? even : odd;
    return quarters & 2 ? -found : found;
}
"""
_SM_90A: Mapping[str, str] = {
    **_BYTES,
    "philox": _PHILOX,
    "max_nan": """\
HELPER f32 max_nan(f32 a, f32 b) { f32 y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
""",
    "min_nan": """\
HELPER f32 min_nan(f32 a, f32 b) { f32 y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
""",
    "sign_of": _SIGN_OF,
}
TEXTS = {"gfx942": _GFX942, "sm_90a": _SM_90A}
"""The functions of each target by name."""


def function_texts(target: str, lines: Sequence[str]) -> Iterator[str]:
    """The functions that lines of a kernel call."""
    called = set(re.findall(r"\b(\w+)\(", "\n".join(lines)))
    if target == "gfx942" and called & {"sin_of", "cos_of"}:
        yield _TURNS
    for name, text in TEXTS[target].items():
        if name in called:
            yield text
