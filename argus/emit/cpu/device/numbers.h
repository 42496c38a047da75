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
extern "C" f32 cpu_round(f32 x) {
    const f32 near = (f32)rint(x);
    return near == 0 ? __builtin_copysignf(0, x) : near;
}
extern "C" f32 cpu_floor(f32 x) {
    const f32 near = cpu_round(x);
    return near > x ? near - 1 : near;
}
extern "C" f32 cpu_scaled(f32 x, int power) { return (f32)(x * to_double((u64)(1023 + power) << 52)); }
// The series of erf, whose terms are positive: erf(x) = 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...).
extern "C" f32 cpu_erf(f32 x) {
    if (x != x) return x;
    if (x >= 4 || x <= -4) return x < 0 ? -1 : 1;
    double term = x, sum = x;
    for (int n = 1; n < 100; ++n) sum += term *= 2.0 * x * x / (2 * n + 1);
    return (f32)(1.1283791670955125739 * exp2_of(-LOG2_E * x * x) * sum);
}
extern "C" f32 cpu_expm1(f32 x) {
    if (x > -0.5f && x < 0.5f) {
        double term = x, sum = x;
        for (int n = 2; n < 18; ++n) sum += term *= (double)x / n;
        return (f32)sum;
    }
    return (f32)(exp2_of(x * LOG2_E) - 1);
}
extern "C" f32 cpu_log1p(f32 x) {
    if (x > -0.25f && x < 0.25f) {  // twice the inverse hyperbolic tangent of x / (x + 2)
        const double z = (double)x / ((double)x + 2);
        double sum = 0, term = z;
        for (int n = 1; n < 40; n += 2, term *= z * z) sum += term / n;
        return x == 0 ? x : (f32)(2 * sum);
    }
    return (f32)(log2_of(1.0 + x) / LOG2_E);
}
// x in [-pi/4, pi/4] less quarters of a turn. From 2^15 on by those bits of 2/pi that count, as an integer product.
static double turned_of(f32 x, int& quarters) {
    const f32 size = x < 0 ? -x : x;
    if (size < 32768) {
        const double n = rint(x * 0.63661977236758134308);
        quarters += (int)n;
        return x - n * 1.57079632673412561417 - n * 6.07710050650619224932e-11;
    }
    static const u32 words[] = {0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041};
    const u32 bits = __builtin_bit_cast(u32, size), scaled = bits << 8 | 0x80000000;
    const int power = (int)(bits >> 23) - 128, at = power >> 5, shift = power & 31;
    u64 carry = 0, parts[4];
    for (int n = 3; n >= 0; --n) parts[n] = carry = (u64)scaled * words[at + n] + (carry >> 32);
    const u64 high = parts[0] << 32 | (u32)parts[1], low = parts[2] << 32 | (u32)parts[3];
    const u64 found = high << shift | low >> 1 >> (63 - shift);
    const long long rest = (long long)(found << 2);
    const int whole = (int)(found >> 62) + (rest < 0);
    quarters += x < 0 ? -whole : whole;
    return (x < 0 ? -1.5707963267948966 : 1.5707963267948966) * (double)rest / 18446744073709551616.0;
}
extern "C" f32 cpu_sine(f32 x, int quarters) {
    if (x - x != 0) return x - x;
    if (x == 0 && quarters == 0) return x;
    const double r = turned_of(x, quarters);
    double term = quarters & 1 ? 1 : r, sum = term;
    for (int n = quarters & 1 ? 1 : 2; n < 24; n += 2) sum += term *= -r * r / (n * (n + 1));
    return (f32)(quarters & 2 ? -sum : sum);
}
extern "C" f32 cpu_pow(f32 x, f32 y) {
    if (x == 1 || y == 0) return 1;
    if (x != x || y != y) return x + y;
    const bool whole = y >= 16777216 || y <= -16777216 || rint(y) == y;
    const bool odd = whole && y < 16777216 && y > -16777216 && rint(y / 2.0) * 2 != y;
    const f32 sign = odd && (__builtin_bit_cast(u32, x) >> 31) ? -1 : 1, size = x < 0 ? -x : x;
    const double infinity = to_double(0x7FF0000000000000);
    if (size == 0 || size == infinity) return (size > 1) == (y > 0) ? sign * (f32)infinity : sign * 0.0f;
    if (x < 0 && !whole) return (f32)to_double(0x7FF8000000000000);
    return sign * (f32)exp2_of(y * log2_of(size));
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
