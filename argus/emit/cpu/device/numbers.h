// Conversions and functions, correctly rounded or within an f32 ulp of it.
#pragma once
#include "api.h"

static double to_double(u64 bits) { return __builtin_bit_cast(double, bits); }
static double exp2_of(double x) {
    if (x != x) return x;
    if (x > 1100) return to_double(0x7FF0000000000000);
    if (x < -1100) return 0;
    const double whole = __builtin_rint(x), rest = (x - whole) * 0.69314718055994530942;
    double sum = 1, term = 1;
    for (int n = 1; n < 18; ++n) sum += term *= rest / n;
    int power = (int)whole;
    for (; power < -1000; power += 500) sum *= to_double((u64)(1023 - 500) << 52);
    for (; power > 1000; power -= 500) sum *= to_double((u64)(1023 + 500) << 52);
    return sum * to_double((u64)(1023 + power) << 52);
}
static double log2_of(double x) {
    if (x != x || x < 0) return to_double(0x7FF8000000000000);
    if (x == 0) return -to_double(0x7FF0000000000000);
    u64 bits = __builtin_bit_cast(u64, x);
    if (bits == 0x7FF0000000000000) return x;
    int power = (int)(bits >> 52) - 1023;
    double part = to_double((bits & 0xFFFFFFFFFFFFF) | 1023ull << 52);
    if (part > 1.4142135623730951) part /= 2, ++power;
    const double z = (part - 1) / (part + 1);
    double sum = 0, term = z;
    for (int n = 1; n < 40; n += 2, term *= z * z) sum += term / n;
    return power + 2 * sum * 1.4426950408889634074;
}
extern "C" double rint(double x) {
    const double big = 4503599627370496.0;
    if (!(x < big && x > -big)) return x;
    volatile double moved = x < 0 ? x - big : x + big;
    return x < 0 ? moved + big : moved - big;
}
static constexpr double LOG2_E = 1.4426950408889634074;
extern "C" f32 cpu_exp2(f32 x) { return (f32)exp2_of(x); }
extern "C" f32 cpu_exp(f32 x) { return (f32)exp2_of(x * LOG2_E); }
extern "C" f32 cpu_log2(f32 x) { return (f32)log2_of(x); }
extern "C" f32 cpu_log(f32 x) { return (f32)(log2_of(x) / LOG2_E); }
extern "C" f32 cpu_tanh(f32 x) {
    if (x > 20) return 1;
    if (x < -20) return -1;
    if (x > -1e-4f && x < 1e-4f) return (f32)(x - (double)x * x * x / 3);
    const double e = exp2_of(2.0 * x * LOG2_E);
    return (f32)((e - 1) / (e + 1));
}
// Rounds once: the sum in double is rounded to odd before it is rounded to f32.
extern "C" f32 cpu_fma(f32 a, f32 b, f32 c) {
    const double product = (double)a * b, sum = product + c;
    const double back = sum - product, rest = (product - (sum - back)) + (c - back);
    u64 bits = __builtin_bit_cast(u64, sum);
    if (rest != 0 && rest == rest && (bits & 1) == 0) bits += (rest > 0) == (sum > 0) ? 1 : -1;
    return (f32)to_double(bits);
}
extern "C" f32 cpu_from_f16(u16 bits) {
    const u32 sign = (u32)(bits >> 15) << 31, power = bits >> 10 & 31, part = bits & 1023;
    if (power == 31) return __builtin_bit_cast(f32, sign | 0x7F800000 | part << 13);
    if (power) return __builtin_bit_cast(f32, sign | (power + 112) << 23 | part << 13);
    const f32 small = (f32)part * 0x1p-24f;
    return sign ? -small : small;
}
// Rounds |x| to `digits` bits after the leading one, ties to even, with exponents from `lowest` on.
static f32 rounded(f32 size, int digits, int lowest) {
    int power = (int)(__builtin_bit_cast(u32, size) >> 23) - 127;
    if (power < lowest) power = lowest;
    const double unit = to_double((u64)(1023 + power - digits) << 52);
    return (f32)(rint(size / unit) * unit);
}
extern "C" u16 cpu_to_f16(f32 x) {
    const u32 bits = __builtin_bit_cast(u32, x), sign = bits >> 31 << 15;
    if (x != x) return 0x7FFF;
    const f32 size = rounded(__builtin_fabsf(x), 10, -14);
    if (!(size < 65520.0f)) return (u16)(sign | 0x7C00);
    if (size < 0x1p-14f) return (u16)(sign | (u32)(size * 0x1p24f));
    const u32 made = __builtin_bit_cast(u32, size);
    return (u16)(sign | ((made >> 23) - 112) << 10 | (made >> 13 & 1023));
}
// fnuz: exponent bias 8, no negative zero, one NaN (0x80); else OCP: bias 7, NaN 0x7F and 0xFF.
extern "C" f32 cpu_from_e4m3(u8 bits, int fnuz) {
    const int power = bits >> 3 & 15, part = bits & 7, bias = fnuz ? 8 : 7;
    if (fnuz ? bits == 0x80 : (bits & 0x7F) == 0x7F) return __builtin_nanf("");
    const double size = power ? (8 + part) * to_double((u64)(1023 + power - bias - 3) << 52)
                              : part * to_double((u64)(1023 + 1 - bias - 3) << 52);
    return (f32)(bits >> 7 ? -size : size);
}
// The FNUZ format of 5 exponent bits: bias 16, no negative zero, one NaN (0x80).
extern "C" f32 cpu_from_e5m2fnuz(u8 bits) {
    const int power = bits >> 2 & 31, part = bits & 3;
    if (bits == 0x80) return __builtin_nanf("");
    const double size = (power ? 4 + part : part) * to_double((u64)(1023 + (power ? power : 1) - 16 - 2) << 52);
    return (f32)(bits >> 7 ? -size : size);
}
extern "C" u8 cpu_to_e4m3(f32 x, int fnuz) {
    const u8 sign = (u8)(__builtin_bit_cast(u32, x) >> 31 << 7), nan = fnuz ? 0x80 : 0x7F;
    const f32 most = fnuz ? 240.0f : 448.0f;
    if (x != x) return nan;
    f32 size = rounded(__builtin_fabsf(x), 3, fnuz ? -7 : -6);
    if (!(size <= most)) size = most;
    for (int code = 0; code < 128; ++code)
        if (cpu_from_e4m3((u8)code, fnuz) == size) return (u8)(code | (fnuz && code == 0 ? 0 : sign));
    return nan;
}
