"""The prelude of every emitted CUDA file: types and device functions.

Source: PTX ISA 8.x, data movement, mbarrier, and asynchronous warpgroup instructions.
"""

from __future__ import annotations

from argus.emit.c_expr import LONG_HELPERS

_PRELUDE = r"""#define HELPER [[maybe_unused]] static __device__ __forceinline__
#define __builtin_inff() __int_as_float(0x7F800000)
#define __builtin_nanf(text) __int_as_float(0x7FC00000)
using u32 = unsigned int;
using u64 = unsigned long long;
using f32 = float;
using i32 = int;
struct bf16 {
    unsigned short bits;
    HELPER_MEMBER bf16() {}
    HELPER_MEMBER explicit bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    HELPER_MEMBER operator float() const {  // the high half, in one instruction
        float x;
        asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((unsigned short)0), "h"(bits));
        return x;
    }
};
struct f16 {
    unsigned short bits;
    HELPER_MEMBER f16() {}
    HELPER_MEMBER explicit f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    HELPER_MEMBER operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};
struct alignas(64) TensorMap { char bytes[128]; };

// Approximate special functions: errors of 1 to 2 ulp.
HELPER f32 exp2_near(f32 x) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
HELPER f32 tanh_near(f32 x) { f32 y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
HELPER f32 reciprocal(f32 x) { f32 y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

// Vector loads and stores through generic addresses.
using b16 = unsigned short;
using b32 = unsigned int;
using b64 = uint2;
using b128 = uint4;
#define MOVES(bits) \
    HELPER void load_b##bits(void* to, const void* from) { *(b##bits*)to = *(const b##bits*)from; } \
    HELPER void store_b##bits(void* to, const void* from) { *(b##bits*)to = *(const b##bits*)from; }
MOVES(16) MOVES(32) MOVES(64) MOVES(128)
HELPER void fill_b16(void* to, u32 word) { *(b16*)to = (b16)word; }
HELPER void fill_b32(void* to, u32 word) { *(b32*)to = word; }
HELPER void fill_b64(void* to, u32 word) { *(b64*)to = make_uint2(word, word); }
HELPER void fill_b128(void* to, u32 word) { *(b128*)to = make_uint4(word, word, word, word); }
HELPER void* in_shared(u32 at) { return __cvta_shared_to_generic(at); }

HELPER u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
HELPER int floor_div(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
HELPER int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }
LONG_HELPERS// mbarriers: phases complete by arrivals and transaction bytes.
HELPER void barrier_init(u32 at, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count));
}
HELPER void arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
HELPER void arrive(u32 at, u32 count) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
HELPER void arrive_expect(u32 at, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
HELPER void await_parity(u32 at, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\nbra again;\nover:\n}" ::"r"(at), "r"(parity) : "memory");
}
// Remote mbarriers of the cluster, by the rank of their block. The variants `_of_all` (a fence with the arrivals after
// it, and waits) order generic-proxy accesses at cluster scope; the others need no fence.
HELPER void fence_for_all() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
#define ARRIVES_AT(name, order) \
    HELPER void name(u32 at, u32 rank, u32 count) { \
        asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n" \
                "mbarrier.arrive" order ".shared::cluster.b64 _, [there], %2;\n}" :: \
                "r"(at), "r"(rank), "r"(count) : "memory"); \
    }
ARRIVES_AT(arrive_at, "") ARRIVES_AT(arrive_at_of_all, ".relaxed.cluster")
HELPER void await_parity_of_all(u32 at, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\nbra again;\nover:\n}" ::"r"(at), "r"(parity) : "memory");
}
HELPER void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
HELPER void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
// Makes a warp-uniform value uniform for the compiler: lane 0 broadcasts it.
HELPER int same_in_warp(int x) { return __shfl_sync(~0u, x, 0); }
HELPER void meet(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
HELPER void meet_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// Programmatic dependent launch: wait for the previous grid and its stores; let the next grid start.
HELPER void await_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
HELPER void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }

// cp.async and TMA.
HELPER void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"((u64)map)); }
HELPER void cp_async_4(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
HELPER void cp_async_8(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
HELPER void cp_async_16(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
HELPER void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> HELPER_T void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
HELPER void bulk_load(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
HELPER void bulk_store(void* to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::
            "l"(to), "r"(from), "r"(bytes) : "memory");
}
HELPER void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> HELPER_T void bulk_wait_reads() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int N> HELPER_T void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
HELPER void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
HELPER void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// wgmma.
HELPER void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
HELPER void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> HELPER_T void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Matrix descriptors. K-major: rows of one swizzle span, stride of 8 rows between core matrices. `_mn`: MN-major, SLAB
// bytes between swizzle tiles along M or N.
template <int SPAN> HELPER_T u64 descriptor(u32 at) {
    const u64 kind = SPAN == 128 ? 1 : SPAN == 64 ? 2 : SPAN == 32 ? 3 : 0;
    return (u64)((at & 0x3FFFF) >> 4) | 1ull << 16 | (u64)(8 * SPAN >> 4) << 32 | kind << 62;
}
template <int SPAN, int SLAB = 8 * SPAN> HELPER_T u64 descriptor_mn(u32 at) {
    return (descriptor<SPAN>(at) & ~(0xFFFFull << 16)) | (u64)(SLAB >> 4) << 16;
}
// Pins registers: the compiler must not move them while a wgmma on them is in flight.
template <int N> HELPER_T void hold(f32 (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <typename T, int N> HELPER_T void hold(T (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N * sizeof(T) / 4; ++i) asm volatile("" : "+r"(((u32*)d)[i])::"memory");
}

// Register reallocation (setmaxnreg) and swizzled addresses.
template <int N> HELPER_T void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> HELPER_T void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int BITS, int BASE, int SHIFT> HELPER_T u32 swizzled(u32 at) {
    return at ^ (at >> SHIFT & (1u << BITS) - 1 << BASE);
}
"""

PRELUDE = (
    _PRELUDE.replace("LONG_HELPERS", LONG_HELPERS)
    .replace("HELPER_MEMBER", "__device__ __forceinline__")
    .replace("HELPER_T", "static __device__ __forceinline__")
)
