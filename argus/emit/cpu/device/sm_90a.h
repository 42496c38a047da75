// What the prelude of sm_90a takes from the machine, for the CPU. Helpers of pure C++ come from the emitted text itself.
#pragma once
#include "api.h"
#define HELPER [[maybe_unused]] static inline
#define HELPER_T static inline
#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
struct CpuThread { struct { operator int() const { return cpu_thread_index(); } } x; };
template <int N> struct CpuBlock { operator int() const { return cpu_block_index(N); } };
template <int N> struct CpuGrid { operator int() const { return cpu_grid_extent(N); } };
inline constexpr CpuThread threadIdx{};
inline constexpr struct { CpuBlock<0> x; CpuBlock<1> y; CpuBlock<2> z; } blockIdx{};
inline constexpr struct { CpuGrid<0> x; CpuGrid<1> y; CpuGrid<2> z; } gridDim{};
#define memory cpu_memory
#define CPU_UNIT(n) [[maybe_unused]] static unsigned char cpu_memory[1];
#define CPU_UNIT_END(n)
#define CPU_KERNEL(n) {unit_##n::cpu_entry, nullptr, nullptr, nullptr, nullptr}

struct alignas(64) TensorMap { char bytes[128]; };
using uint2 = b64;
using uint4 = b128;
inline uint2 make_uint2(u32 x, u32 y) { return uint2{x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return uint4{x, y, z, w}; }
inline f32 __int_as_float(int x) { return __builtin_bit_cast(f32, x); }
inline f32 __uint_as_float(u32 x) { return __builtin_bit_cast(f32, x); }
inline int __float_as_int(f32 x) { return __builtin_bit_cast(int, x); }
inline u32 __float_as_uint(f32 x) { return __builtin_bit_cast(u32, x); }
inline int computed(int x) { return x; }
inline f32 exp2_near(f32 x) { return cpu_exp2(x); }
inline f32 tanh_near(f32 x) { return cpu_tanh(x); }
inline f32 reciprocal(f32 x) { return 1.0f / x; }
inline u32 e4m3_four(f32 a, f32 b, f32 c, f32 d) {
    return cpu_to_e4m3(a, 0) | cpu_to_e4m3(b, 0) << 8 | cpu_to_e4m3(c, 0) << 16 | (u32)cpu_to_e4m3(d, 0) << 24;
}
inline void* memcpy(void* to, const void* from, u64 size) { return __builtin_memcpy(to, from, size); }
inline f32 expf(f32 x) { return cpu_exp(x); }
inline f32 exp2f(f32 x) { return cpu_exp2(x); }
inline f32 logf(f32 x) { return cpu_log(x); }
inline f32 log2f(f32 x) { return cpu_log2(x); }
inline f32 tanhf(f32 x) { return cpu_tanh(x); }
inline f32 erff(f32 x) { return cpu_erf(x); }
inline f32 expm1f(f32 x) { return cpu_expm1(x); }
inline f32 log1pf(f32 x) { return cpu_log1p(x); }
inline f32 sinf(f32 x) { return cpu_sine(x, 0); }
inline f32 cosf(f32 x) { return cpu_sine(x, 1); }
inline f32 powf(f32 x, f32 y) { return cpu_pow(x, y); }
inline f32 floorf(f32 x) { return cpu_floor(x); }
inline f32 ceilf(f32 x) { return -cpu_floor(-x); }
inline f32 rintf(f32 x) { return cpu_round(x); }
inline f32 max_nan(f32 a, f32 b) { return a != a ? a : b != b ? b : a > b ? a : b; }
inline f32 min_nan(f32 a, f32 b) { return a != a ? a : b != b ? b : a < b ? a : b; }
inline f32 sqrtf(f32 x) { return __builtin_sqrtf(x); }
inline f32 fabsf(f32 x) { return __builtin_fabsf(x); }
inline f32 fmaxf(f32 a, f32 b) { return a != a ? b : b != b ? a : a > b ? a : b; }
inline f32 fminf(f32 a, f32 b) { return a != a ? b : b != b ? a : a < b ? a : b; }
inline f32 __fmaf_rn(f32 a, f32 b, f32 c) { return cpu_fma(a, b, c); }
template <class T, class U> inline auto min(T a, U b) -> decltype(a + b) { return a < b ? a : b; }
template <class T, class U> inline auto max(T a, U b) -> decltype(a + b) { return a > b ? a : b; }

#define MOVES(bits) \
    inline void load_b##bits(void* to, const void* from, HERE) { cpu_load(to, from, bits / 8, line); } \
    inline void store_b##bits(void* to, const void* from, HERE) { cpu_store(to, from, bits / 8, line); }
MOVES(16) MOVES(32) MOVES(64) MOVES(128)
#undef MOVES
inline void load_b8(void* to, const void* from, HERE) { cpu_load(to, from, 1, line); }
inline void store_b8(void* to, const void* from, HERE) { cpu_store(to, from, 1, line); }
inline void* in_shared(u32 at, HERE) { return cpu_in_shared(at, cpu_own_rank(), line); }
inline void* in_shared_of(u32 at, u32 rank, HERE) { return cpu_in_shared(at, rank, line); }
inline u32 shared_address(const void* p) { return cpu_shared_base(); }

inline void barrier_init(u32 at, u32 count, HERE) { cpu_barrier_init(at, count, line); }
struct Count { u32 value; Count(u32 value) : value(value) {} };
inline void arrive(u32 at, Count count = 1u, HERE) { cpu_arrive(at, -1, count.value, 0, 0, line); }
inline void arrive_expect(u32 at, u32 bytes, HERE) { cpu_arrive(at, -1, 1, bytes, 0, line); }
inline void await_parity(u32 at, u32 parity, HERE) { cpu_await(at, parity, line); }
inline void await_parity_of_all(u32 at, u32 parity, HERE) { cpu_await(at, parity, line); }
inline void fence_for_all(HERE) { cpu_fence(FENCE_CLUSTER, line); }
inline void arrive_at(u32 at, u32 rank, u32 count, HERE) { cpu_arrive(at, (int)rank, count, 0, 0, line); }
inline void arrive_at_of_all(u32 at, u32 rank, u32 count, HERE) { cpu_arrive(at, (int)rank, count, 0, 1, line); }
inline void arrive_if(bool go, u32 at, u32 count, HERE) { if (go) cpu_arrive(at, -1, count, 0, 0, line); }
inline void arrive_at_if(bool go, u32 at, u32 rank, u32 count, HERE) { if (go) cpu_arrive(at, (int)rank, count, 0, 0, line); }
inline void cluster_arrive(HERE) { cpu_cluster(1, line); }
inline void cluster_wait(HERE) { cpu_cluster(0, line); }
inline void meet(int id, int threads, HERE) { cpu_meet(id, threads, 1, line); }
inline void meet_arrive(int id, int threads, HERE) { cpu_meet(id, threads, 0, line); }
inline void __syncthreads(HERE) { cpu_meet_block(line); }
inline void __syncwarp(u32 mask = ~0u, HERE) { cpu_meet_warp(line); }
inline void __threadfence(HERE) { cpu_fence(FENCE_DEVICE, line); }
inline void __threadfence_system(HERE) { cpu_fence(FENCE_DEVICE, line); }
inline void await_launch_before(HERE) { cpu_launch_before(line); }
inline void let_next_begin() {}

template <class T> inline T cpu_shuffled(T value, int lane, int line) {
    static_assert(sizeof(T) == 4, "shuffles move 32 bits");
    return __builtin_bit_cast(T, cpu_shuffle(__builtin_bit_cast(u32, value), lane, line));
}
inline int cpu_lane() { return cpu_thread_index() % 32; }
// Source lanes outside a segment of `width` lanes: the lane's own value.
inline int cpu_within(int lane, int wanted, int width) { return wanted / width == lane / width && wanted >= 0 ? wanted : lane; }
template <class T> inline T __shfl_sync(u32 mask, T value, int lane, int width = 32, HERE) {
    return cpu_shuffled(value, cpu_lane() / width * width + lane % width, line);
}
template <class T> inline T __shfl_xor_sync(u32 mask, T value, int bits, int width = 32, HERE) {
    return cpu_shuffled(value, cpu_within(cpu_lane(), cpu_lane() ^ bits, width), line);
}
template <class T> inline T __shfl_up_sync(u32 mask, T value, int by, int width = 32, HERE) {
    return cpu_shuffled(value, cpu_within(cpu_lane(), cpu_lane() - by, width), line);
}
template <class T> inline T __shfl_down_sync(u32 mask, T value, int by, int width = 32, HERE) {
    return cpu_shuffled(value, cpu_within(cpu_lane(), cpu_lane() + by, width), line);
}
inline f32 atomicAdd(f32* at, f32 value, HERE) { return cpu_atomic_add(at, value, line); }
inline int atomicAdd(int* at, int value, HERE) { return cpu_atomic_add_i32(at, value, line); }

inline void prefetch_map(const TensorMap* map) {}
inline void cp_async_4(u32 to, const void* from, int bytes, HERE) { cpu_cp_async(to, from, 4, bytes, line); }
inline void cp_async_8(u32 to, const void* from, int bytes, HERE) { cpu_cp_async(to, from, 8, bytes, line); }
inline void cp_async_16(u32 to, const void* from, int bytes, HERE) { cpu_cp_async(to, from, 16, bytes, line); }
inline void cp_async_commit(HERE) { cpu_commit(QUEUE_CP_ASYNC, line); }
template <int N> inline void cp_async_wait(HERE) { cpu_wait(QUEUE_CP_ASYNC, N, 0, line); }
inline void bulk_load(u32 to, const void* from, u32 bytes, u32 barrier, HERE) { cpu_bulk_load(to, from, bytes, barrier, line); }
inline void bulk_store(void* to, u32 from, u32 bytes, HERE) { cpu_bulk_store(to, from, bytes, line); }
inline void bulk_commit(HERE) { cpu_commit(QUEUE_BULK, line); }
template <int N> inline void bulk_wait_reads(HERE) { cpu_wait(QUEUE_BULK, N, 1, line); }
template <int N> inline void bulk_wait(HERE) { cpu_wait(QUEUE_BULK, N, 0, line); }
inline void fence_async_proxy(HERE) { cpu_fence(FENCE_ASYNC_PROXY, line); }
inline void fence_barrier_init(HERE) { cpu_fence(FENCE_BARRIER_INIT, line); }
inline void wgmma_fence(HERE) { cpu_fence(FENCE_WGMMA, line); }
inline void wgmma_commit(HERE) { cpu_commit(QUEUE_WGMMA, line); }
template <int N> inline void wgmma_wait(HERE) { cpu_wait(QUEUE_WGMMA, N, 0, line); }
template <class T, int N> inline void hold(T (&d)[N]) {}
template <int N> inline void registers_up(HERE) { cpu_set_registers(N, 1, line); }
template <int N> inline void registers_down(HERE) { cpu_set_registers(N, 0, line); }
