"""The prelude of every emitted HIP file: types and device functions, without ROCm headers."""

from __future__ import annotations

from argus.core.target import DESCRIPTOR_BYTES
from argus.emit.c_expr import LONG_HELPERS

_PRELUDE = """\
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define HELPER static __device__ inline __attribute__((always_inline))
// launch_bounds has no effect on this target; these two attributes set the register budget.
#define THREADS(n, waves) __attribute__((amdgpu_flat_work_group_size(n, n), amdgpu_waves_per_eu(waves)))

using bf16 = __bf16;
using f16 = _Float16;
using f32 = float;
using i32 = int;
using s16x4 = short __attribute__((vector_size(8)));
using f16x4 = _Float16 __attribute__((vector_size(8)));
using f32x4 = float __attribute__((vector_size(16)));
using f32x16 = float __attribute__((vector_size(64)));
using b16 = unsigned short __attribute__((may_alias));
using b32 = unsigned __attribute__((may_alias));
using b64 = unsigned __attribute__((vector_size(8), may_alias));
using b128 = unsigned __attribute__((vector_size(16), may_alias));

// Vector loads and stores. An out-of-range buffer offset replaces a predicate: the hardware then reads 0.
#define MOVES(bits) \\
    HELPER void load_b##bits(void* to, const void* from) { *(b##bits*)to = *(const b##bits*)from; } \\
    HELPER void store_b##bits(void* to, const void* from) { *(b##bits*)to = *(const b##bits*)from; } \\
    HELPER void fill_b##bits(void* to, unsigned word) { *(b##bits*)to = (b##bits)(b##bits{} + word); } \\
    HELPER void buffer_load_b##bits(void* to, __amdgpu_buffer_rsrc_t from, unsigned offset) { \\
        *(b##bits*)to = __builtin_amdgcn_raw_buffer_load_b##bits(from, offset, 0, 0); } \\
    HELPER void buffer_store_b##bits(__amdgpu_buffer_rsrc_t to, unsigned offset, const void* from) { \\
        __builtin_amdgcn_raw_buffer_store_b##bits(*(const b##bits*)from, to, offset, 0, 0); }
MOVES(16) MOVES(32) MOVES(64) MOVES(128)
HELPER unsigned guard(bool inside, unsigned offset) { return inside ? offset : DESCRIPTOR_BYTES; }
HELPER __amdgpu_buffer_rsrc_t descriptor(const void* base, long bytes) {
    const unsigned most = bytes > DESCRIPTOR_BYTES ? DESCRIPTOR_BYTES : (unsigned)bytes;
    return __builtin_amdgcn_make_buffer_rsrc((void*)base, 0, most, 0x00020000);
}
HELPER s16x4 operand(const bf16* first) { return *(const s16x4*)first; }
HELPER long operand(const unsigned char* first) { return *(const long __attribute__((may_alias))*)first; }
HELPER f16x4 operand(const f16* first) { return *(const f16x4*)first; }
HELPER int floor_div(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
HELPER int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }
HELPER int min(int a, int b) { return a < b ? a : b; }
HELPER int max(int a, int b) { return a > b ? a : b; }
LONG_HELPERS#define HOLDS 1  // whether the compiler moves nothing across a wait or a barrier
HELPER void fenced() {
    if (!HOLDS) return;
    __builtin_amdgcn_sched_barrier(0);
    asm volatile("" : : : "memory");
}
template <int COUNTS> HELPER void wait() {  // until the counters are as s_waitcnt encodes them
    if (!HOLDS) {
        asm volatile("// wait %0" : : "n"(COUNTS));
        __builtin_amdgcn_s_waitcnt(COUNTS);
        return;
    }
    __builtin_amdgcn_sched_barrier(0);
    asm volatile("// wait %0" : : "n"(COUNTS) : "memory");
    __builtin_amdgcn_s_waitcnt(COUNTS);
    asm volatile("" : : : "memory");
    __builtin_amdgcn_sched_barrier(0);
}
HELPER void meet() {  // workgroup barrier; the compiler moves no LDS access across it
    fenced();
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
    fenced();
}
template <class T> HELPER void held(T& x) {  // x, computed before and used after
    if (HOLDS) { asm volatile("" : "+v"(x)); }
}
"""

PRELUDE = _PRELUDE.replace("LONG_HELPERS", LONG_HELPERS).replace("DESCRIPTOR_BYTES", f"0x{DESCRIPTOR_BYTES:X}u")


def loosened(text: str) -> str:
    """A text in which the compiler may move instructions across waits and barriers, which takes fewer registers."""
    return text.replace("#define HOLDS 1 ", "#define HOLDS 0 ", 1)
