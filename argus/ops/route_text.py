"""The text of the kernels that choose a token's experts: those of the largest scores, of equal ones the first.

Scores become integers of the same order, with the expert's number in the low bits, so that all are different. A thread
sorts its own; then the group of threads that has a token takes the largest, k times.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.kernels.schedules.routing import MOST

THREADS = 128
SYMBOL = "choose_experts"
_BITS = {"bf16": 16, "f16": 16, "f32": 32}
_INFINITE = {"bf16": "0x7F80u", "f16": "0x7C00u", "f32": "0x7F800000u"}

_PRELUDES: Mapping[str, str] = {
    "sm_90a": r"""
#define HELPER static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
using word_t = unsigned;
using wide_t = unsigned long long;
HELPER int own_thread() { return threadIdx.x; }
HELPER int own_block() { return blockIdx.x; }
HELPER word_t of_lane(word_t x, int by) { return __shfl_xor_sync(~0u, x, by); }
HELPER float exp2_near(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
HELPER float reciprocal(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
HELPER float from_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
HELPER float from_f16(unsigned short x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
HELPER word_t bits_of(float x) { return __float_as_uint(x); }
HELPER void await_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
HELPER void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
#if LANES == 32
HELPER word_t most_of(word_t x) { return __reduce_max_sync(~0u, x); }
HELPER wide_t most_of(wide_t x) {
    const word_t high = most_of((word_t)(x >> 32));
    return (wide_t)high << 32 | most_of((word_t)(x >> 32) == high ? (word_t)x : 0u);
}
#define HAS_REDUCTION
#endif
""",
    "gfx942": r"""
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define HELPER static __device__ inline __attribute__((always_inline))
#define KERNEL extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(THREADS, THREADS))) void
using word_t = unsigned;
using wide_t = unsigned long;
HELPER int own_thread() { return (int)__builtin_amdgcn_workitem_id_x(); }
HELPER int own_block() { return (int)__builtin_amdgcn_workgroup_id_x(); }
HELPER word_t of_lane(word_t x, int by) {
    return (word_t)__builtin_amdgcn_ds_bpermute((own_thread() % 64 ^ by) * 4, (int)x);
}
HELPER float exp2_near(float x) { return __builtin_amdgcn_exp2f(x); }
HELPER float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
HELPER float from_bf16(unsigned short x) { return __builtin_bit_cast(float, (word_t)x << 16); }
HELPER float from_f16(unsigned short x) { return (float)__builtin_bit_cast(_Float16, x); }
HELPER word_t bits_of(float x) { return __builtin_bit_cast(word_t, x); }
HELPER int min(int a, int b) { return a < b ? a : b; }
HELPER void await_launch_before() {}
HELPER void let_next_begin() {}
""",
}

_BODY = r"""
HELPER wide_t of_lane(wide_t x, int by) {
    return (wide_t)of_lane((word_t)(x >> 32), by) << 32 | of_lane((word_t)x, by);
}
#ifndef HAS_REDUCTION
template <class T> HELPER T most_of(T x) {
#pragma unroll
    for (int by = LANES / 2; by > 0; by /= 2) {
        const T other = of_lane(x, by);
        x = other > x ? other : x;
    }
    return x;
}
#endif

struct alignas(sizeof(score_t) * VECTOR) Scores { score_t at[VECTOR]; };

// Integers of the order of floats; both zeros are one, and what is not a number is the largest.
HELPER word_t ordered(float x) {
    const word_t bits = x == x ? bits_of(x + 0.0f) : 0x7FFFFFFFu;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
HELPER key_t key_of(score_t x, int expert, const float* biases) {
#if BIASED
    const float score = reciprocal(exp2_near(AS_FLOAT(x) * -1.442695f) + 1.0f) + biases[expert];
    return (key_t)ordered(score) << 32 | (0xFFFFFFFFu - expert);
#elif WIDE
    return (key_t)ordered(x) << 32 | (0xFFFFFFFFu - expert);
#else
    const word_t bits = x == 0x8000u ? 0u : (x & 0x7FFFu) > INFINITE ? 0x7FFFu : x;
    return (bits >> 15 ? 0xFFFFu - bits : bits | 0x8000u) << 16 | (word_t)(0xFFFF - expert);
#endif
}
HELPER int expert_of(key_t key) {
    const word_t low = WIDE ? 0xFFFFFFFFu : 0xFFFFu;
    return (int)(low - ((word_t)key & low));
}

// flags: which experts a token may choose, if not all of them.
KERNEL choose_experts(
    const score_t* scores, const float* biases, const float* flags, int* ids, int tokens, int experts, int choices
) {
    await_launch_before();
    let_next_begin();
    const int lane = own_thread() % LANES, token = own_block() * (THREADS / LANES) + own_thread() / LANES;
    const long long start = (long long)min(token, tokens - 1) * experts;
    const score_t* const row = scores + start;
    key_t held[HELD];
#pragma unroll
    for (int part = 0; part < HELD / VECTOR; part++) {
        const int first = (part * LANES + lane) * VECTOR;
        Scores some = {};
        if (first < experts) some = *(const Scores*)(row + first);
#pragma unroll
        for (int each = 0; each < VECTOR; each++)
            held[part * VECTOR + each] = first < experts && (!GROUPED || flags[start + first + each] > 0.0f)
                ? key_of(some.at[each], first + each, biases)
                : 0;
    }
    // a bitonic sort of a thread's own, the largest first
#pragma unroll
    for (int size = 2; size <= HELD; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2)
#pragma unroll
            for (int one = 0; one < HELD; one++) {
                const int other = one ^ step;
                if (other < one) continue;
                const key_t a = held[one], b = held[other];
                const bool swaps = one & size ? a > b : a < b;
                held[one] = swaps ? b : a;
                held[other] = swaps ? a : b;
            }
    int own = 0;
    for (int choice = 0; choice < choices; choice++) {
        const key_t best = most_of(held[0]);
        if (held[0] == best) {
#pragma unroll
            for (int each = 0; each + 1 < HELD; each++) held[each] = held[each + 1];
            held[HELD - 1] = 0;
        }
        own = lane == choice ? expert_of(best) : own;
    }
    if (lane < choices && token < tokens) ids[(long long)token * choices + lane] = own;
}
"""


@frozen
class Selection:
    """The kernel for scores of a type, of which each of so many lanes holds some, a vector at a time.

    biased: a token's experts have the largest sums of the score's sigmoid and the expert's bias. grouped: flags tell
    which experts it may choose.
    """

    kind: str
    lanes: int
    held: int
    vector: int
    biased: bool
    grouped: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of a block."""
        return THREADS // self.lanes

    def text(self, target: str) -> str:
        """The kernel for a target: of scores, biases, flags, the ids, numbers of tokens, experts and choices."""
        assert self.lanes >= MOST
        wide = self.biased or _BITS[self.kind] > 16
        defined = {
            "THREADS": THREADS,
            "LANES": self.lanes,
            "HELD": self.held,
            "VECTOR": self.vector,
            "BIASED": int(self.biased),
            "WIDE": int(wide),
            "GROUPED": int(self.grouped),
            "INFINITE": _INFINITE[self.kind],
            "AS_FLOAT(x)": {"bf16": "from_bf16(x)", "f16": "from_f16(x)", "f32": "(x)"}[self.kind],
        }
        types = f"using score_t = {'float' if self.kind == 'f32' else 'unsigned short'};\n"
        types += f"using key_t = {'wide_t' if wide else 'word_t'};\n"
        lines = "".join(f"#define {name} {value}\n" for name, value in defined.items())
        return f"{lines}{_PRELUDES[target]}{types}{_BODY}"
