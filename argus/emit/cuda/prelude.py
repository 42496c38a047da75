"""The text at the head of every emitted CUDA file, and the matrix instruction that it uses.

Source: PTX ISA 8.x, data movement, mbarrier, and asynchronous warpgroup instructions.
"""

from __future__ import annotations

PRELUDE = r"""#define HELPER [[maybe_unused]] static __device__ __forceinline__
using u32 = unsigned int;
using u64 = unsigned long long;
using f32 = float;
using i32 = int;
struct bf16 {
    unsigned short bits;
    HELPER_MEMBER bf16() {}
    HELPER_MEMBER explicit bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    HELPER_MEMBER operator float() const { return __uint_as_float((u32)bits << 16); }
};
struct alignas(64) TensorMap { char bytes[128]; };

HELPER u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
HELPER int floor_div(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
HELPER int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }

// Barriers that count arrivals and bytes.
HELPER void barrier_init(u32 at, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count));
}
HELPER void arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
HELPER void arrive_expect(u32 at, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
HELPER void await_parity(u32 at, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\nbra again;\nover:\n}" ::"r"(at), "r"(parity) : "memory");
}
HELPER void meet(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
HELPER void meet_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// The copy engine.
HELPER void tma_load_2d(u32 to, const TensorMap* map, u32 barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"((u64)map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
HELPER void tma_store_2d(const TensorMap* map, u32 from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::
            "l"((u64)map), "r"(from), "r"(x), "r"(y) : "memory");
}
HELPER void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> HELPER_T void bulk_wait_reads() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int N> HELPER_T void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
HELPER void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
HELPER void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// The matrix unit.
HELPER void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
HELPER void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> HELPER_T void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// A K-major tile of 128-byte rows under the 128-byte swizzle: 8 rows are 1024 bytes; a step along k adds bytes / 16.
HELPER u64 descriptor_128(u32 at) { return (u64)((at & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
// The compiler must keep the accumulator where it is while a product is under way.
template <int N> HELPER_T void hold(f32 (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Registers and shared memory.
template <int N> HELPER_T void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> HELPER_T void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
HELPER u32 pair(bf16 low, bf16 high) { return (u32)low.bits | (u32)high.bits << 16; }
HELPER void stmatrix_x4(u32 to, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::
            "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
""".replace("HELPER_MEMBER", "__device__ __forceinline__").replace("HELPER_T", "static __device__ __forceinline__")


def matrix_helper(n: int, k: int, kind: str) -> str:
    """The warpgroup's product of 64 by n by k with both operands in shared memory; `keep` 0 begins a sum anew.

    kind: the types as in the instruction's name, such as `f32.bf16.bf16`.
    """
    count = n // 2
    sums = ", ".join(f"%{place}" for place in range(count))
    operands = ", ".join(f'"+f"(d[{place}])' for place in range(count))
    return f"""HELPER void wgmma_m64n{n}k{k}(f32 (&d)[{count}], u64 a, u64 b, int keep) {{
    asm volatile(
        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{kind} {{{sums}}}, %{count}, %{count + 1}, p, 1, 1, 0, 0;\\n}}"
        : {operands}
        : "l"(a), "l"(b), "r"(keep));
}}
"""
