// What the prelude of gfx942 takes from the machine, for the CPU. Helpers of pure C++ come from the emitted text itself.
#pragma once
#include "api.h"
#define HELPER [[maybe_unused]] static inline
#define __device__
#define __global__
#define IN_LDS __attribute__((used, section(LDS_SECTION)))
#define __shared__ static __attribute__((section(LDS_SECTION)))
// A guard zone behind an array, and where both lie.
#define CPU_LDS_ARRAY(name) \
    IN_LDS static u8 cpu_behind_##name[LDS_GUARD]; \
    __attribute__((used, section(LDS_ARRAYS))) static LdsArray cpu_array_##name = {(u8*)name, sizeof name, cpu_behind_##name};
#define CPU_UNIT(n) \
    extern "C" u8 __start_lds_##n[], __stop_lds_##n[]; \
    extern "C" __attribute__((weak)) LdsArray __start_lds_arrays_##n[], __stop_lds_arrays_##n[]; \
    IN_LDS __attribute__((aligned(1024))) static u8 lds_before[LDS_GUARD];
#define CPU_UNIT_END(n) IN_LDS static u8 lds_behind[LDS_GUARD];
#define CPU_KERNEL(n) \
    {unit_##n::cpu_entry, unit_##n::__start_lds_##n, unit_##n::__stop_lds_##n, unit_##n::lds_before, unit_##n::lds_behind, \
     unit_##n::__start_lds_arrays_##n, unit_##n::__stop_lds_arrays_##n}
#define THREADS(n, waves)
#define UNWRITTEN
using s16x4 = short __attribute__((vector_size(8), may_alias));
struct f16x4 { f16 values[4]; };
using f32x4 = f32 __attribute__((vector_size(16)));
using f32x16 = f32 __attribute__((vector_size(64)));
using i32x4 = int __attribute__((vector_size(16)));
using i32x16 = int __attribute__((vector_size(64)));

struct CpuBuffer { char* base; u32 limit; };
#define __amdgpu_buffer_rsrc_t CpuBuffer
inline CpuBuffer __builtin_amdgcn_make_buffer_rsrc(void* base, int stride, u32 limit, int flags) { return {(char*)base, limit}; }
#define MOVES(bits) \
    inline void load_b##bits(void* to, const void* from, HERE) { cpu_load(to, from, bits / 8, line); } \
    inline void store_b##bits(void* to, const void* from, HERE) { cpu_store(to, from, bits / 8, line); } \
    inline void fill_b##bits(void* to, u32 word) { for (int at = 0; at < bits / 16; ++at) ((b16*)to)[at] = (u16)(word >> 16 * (at % 2)); } \
    inline void buffer_load_b##bits(void* to, CpuBuffer from, u32 offset, HERE) { \
        cpu_buffer_load(to, from.base, from.limit, offset, bits / 8, line); } \
    inline void buffer_store_b##bits(CpuBuffer to, u32 offset, const void* from, HERE) { \
        cpu_buffer_store(to.base, to.limit, offset, from, bits / 8, line); }
MOVES(16) MOVES(32) MOVES(64) MOVES(128)
#undef MOVES
inline void load_b8(void* to, const void* from, HERE) { cpu_load(to, from, 1, line); }
inline void store_b8(void* to, const void* from, HERE) { cpu_store(to, from, 1, line); }
inline void buffer_load_lds_b32(void* to, CpuBuffer from, u32 offset, HERE) { cpu_load_lds(to, from.base, from.limit, offset, line); }
inline int opaque(int x) { return x; }
template <class T> inline void accumulated(T& sum) {}

inline int __builtin_amdgcn_workitem_id_x() { return cpu_thread_index(); }
inline int __builtin_amdgcn_workgroup_id_x() { return cpu_block_index(0); }
inline int __builtin_amdgcn_workgroup_id_y() { return cpu_block_index(1); }
inline int __builtin_amdgcn_workgroup_id_z() { return cpu_block_index(2); }
inline int __builtin_amdgcn_readfirstlane(int x, HERE) { return (int)cpu_shuffle((u32)x, 0, line); }
inline int __builtin_amdgcn_ds_bpermute(int at, int x, HERE) { return (int)cpu_shuffle((u32)x, at / 4 % 64, line); }
inline u64 __builtin_amdgcn_ballot_w64(bool x, HERE) {
    const int lane = cpu_thread_index() % 64;
    u64 found = (u64)x << lane;
    for (int apart = 1; apart < 64; apart *= 2) {
        const u32 low = cpu_shuffle((u32)found, lane ^ apart, line);
        found |= (u64)cpu_shuffle((u32)(found >> 32), lane ^ apart, line) << 32 | low;
    }
    return found;
}
inline void __builtin_amdgcn_s_waitcnt(int immediate, HERE) { cpu_waitcnt(immediate, line); }
inline void __builtin_amdgcn_s_setprio(int) {}
inline void __builtin_amdgcn_sched_barrier(int) {}
inline void __builtin_amdgcn_sched_group_barrier(int, int, int) {}
inline void __builtin_amdgcn_s_barrier(HERE) { cpu_meet_block(line); }
inline void fenced() {}
inline void meet(HERE) { cpu_meet_block(line); }
template <int COUNTS> inline void wait(HERE) { cpu_waitcnt(COUNTS, line); }
template <class T> inline void held(T& x) {}
inline f32 __builtin_amdgcn_rcpf(f32 x) { return 1.0f / x; }
inline f32 cpu_max(f32 a, f32 b) { return a != a ? b : b != b ? a : a > b ? a : b; }
inline f32 cpu_min(f32 a, f32 b) { return a != a ? b : b != b ? a : a < b ? a : b; }
#define __builtin_fmaf cpu_fma
#define __builtin_fmaxf cpu_max
#define __builtin_fminf cpu_min
#define __builtin_elementwise_exp cpu_exp
#define __builtin_amdgcn_exp2f cpu_exp2
#define __builtin_elementwise_log cpu_log
#define __builtin_elementwise_log2 cpu_log2
#define __builtin_elementwise_sqrt __builtin_sqrtf
#define __builtin_elementwise_floor cpu_floor
#define __builtin_elementwise_ceil(x) (-cpu_floor(-(x)))
#define __builtin_elementwise_roundeven cpu_round
inline f32 __builtin_amdgcn_ldexpf(f32 x, int power) { return cpu_scaled(x, power); }
inline void global_atomic_add_f32(void* to, const void* from, HERE) { cpu_atomic_add((f32*)to, *(const f32*)from, line); }
// DPP within rows of 16 lanes: permutations of four, mirrors, rotations to the right, and shifts [AMD CDNA3 ISA, DPP].
inline int cpu_dpp_lane(int lane, int control) {
    const int row = lane / 16 * 16, at = lane % 16;
    if (control < 0x100) return lane / 4 * 4 + (control >> 2 * (lane % 4) & 3);
    if (control > 0x100 && control < 0x110) return at + (control & 15) < 16 ? lane + (control & 15) : -1;
    if (control > 0x110 && control < 0x120) return at >= (control & 15) ? lane - (control & 15) : -1;
    if (control > 0x120 && control < 0x130) return row + (at + 16 - (control & 15)) % 16;
    if (control == 0x140) return row + 15 - at;
    if (control == 0x141) return lane / 8 * 8 + 7 - lane % 8;
    return -1;
}
inline int __builtin_amdgcn_update_dpp(int old, int x, int control, int, int, bool, HERE) {
    const int from = cpu_dpp_lane(cpu_thread_index() % 64, control);
    const int found = (int)cpu_shuffle((u32)x, from < 0 ? 0 : from, line);
    return from < 0 ? old : found;
}
inline int __builtin_amdgcn_ds_swizzle(int x, int pattern, HERE) {
    const int lane = cpu_thread_index() % 64, in = lane % 32;
    const int bits = (in & (pattern & 31) | pattern >> 5 & 31) ^ (pattern >> 10 & 31);
    const int four = lane / 4 * 4 + (pattern >> 2 * (lane % 4) & 3);
    return (int)cpu_shuffle((u32)x, pattern >> 15 & 1 ? four : lane / 32 * 32 + bits, line);
}

template <class V> inline V cpu_matrix(int rows, int depth, int left, int right, const void* a, const void* b, V c, int line) {
    cpu_mfma(rows, depth, left, right, a, b, &c, line);
    return c;
}
#define MFMA(name, V, rows, depth, left, right) \
    template <class A, class C> inline V name(A a, A b, C c, int, int, int, HERE) { \
        return cpu_matrix<V>(rows, depth, left, right, &a, &b, c, line); }
MFMA(__builtin_amdgcn_mfma_f32_32x32x8bf16_1k, f32x16, 32, 8, KIND_BF16, KIND_BF16)
MFMA(__builtin_amdgcn_mfma_f32_16x16x16bf16_1k, f32x4, 16, 16, KIND_BF16, KIND_BF16)
MFMA(__builtin_amdgcn_mfma_f32_32x32x8f16, f32x16, 32, 8, KIND_F16, KIND_F16)
MFMA(__builtin_amdgcn_mfma_f32_16x16x16f16, f32x4, 16, 16, KIND_F16, KIND_F16)
#define BYTES(forms, left, right) \
    MFMA(__builtin_amdgcn_mfma_f32_32x32x16_##forms, f32x16, 32, 16, left, right) \
    MFMA(__builtin_amdgcn_mfma_f32_16x16x32_##forms, f32x4, 16, 32, left, right)
BYTES(fp8_fp8, KIND_E4M3, KIND_E4M3) BYTES(fp8_bf8, KIND_E4M3, KIND_E5M2FNUZ)
BYTES(bf8_fp8, KIND_E5M2FNUZ, KIND_E4M3) BYTES(bf8_bf8, KIND_E5M2FNUZ, KIND_E5M2FNUZ)
MFMA(__builtin_amdgcn_mfma_i32_32x32x16_i8, i32x16, 32, 16, KIND_I8, KIND_I8)
MFMA(__builtin_amdgcn_mfma_i32_16x16x32_i8, i32x4, 16, 32, KIND_I8, KIND_I8)
#undef MFMA
