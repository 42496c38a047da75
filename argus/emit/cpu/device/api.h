// What a kernel's unit and the runtime share. `line` is the line of the emitted file, for findings.
#pragma once
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;
using f32 = float;
#define HERE int line = __builtin_LINE()

#define LDS_GUARD 16384  // bytes ahead of the arrays in LDS, and behind each: an access there is out of bounds
struct LdsArray { u8* start; u64 bytes; u8* guard; };

enum ElementKind { KIND_BF16, KIND_F16, KIND_E4M3, KIND_E5M2FNUZ, KIND_I8 };

extern "C" {
// Where the thread is.
int cpu_thread_index();
int cpu_block_index(int axis);
int cpu_grid_extent(int axis);
// Memory. `cpu_load` and `cpu_store` move between a thread's registers and shared or global memory.
u32 cpu_shared_base();
void* cpu_in_shared(u32 at, u32 rank, int line);
u32 cpu_own_rank();
void cpu_load(void* to, const void* from, int bytes, int line);
void cpu_store(void* to, const void* from, int bytes, int line);
void cpu_touch(const void* at, int bytes, int writes, int line);
f32 cpu_atomic_add(f32* at, f32 value, int line);
int cpu_atomic_add_i32(int* at, int value, int line);
// mbarriers. rank -1: of this block.
void cpu_barrier_init(u32 at, u32 count, int line);
void cpu_arrive(u32 at, int rank, u32 count, u32 bytes, int relaxed, int line);
void cpu_await(u32 at, u32 parity, int line);
// Other synchronisation.
void cpu_meet(int id, int threads, int waits, int line);
void cpu_meet_block(int line);
void cpu_cluster(int arrives, int line);
void cpu_fence(int kind, int line);
void cpu_launch_before(int line);
void cpu_set_registers(int count, int up, int line);
// Asynchronous copies.
void cpu_cp_async(u32 to, const void* from, int size, int bytes, int line);
void cpu_commit(int queue, int line);
void cpu_wait(int queue, int pending, int reads, int line);
void cpu_tma_load(u32 mask, u32 to, const void* map, u32 barrier, int axes, const int* at, int line);
void cpu_tma_store(const void* map, u32 from, int axes, const int* at, int line);
void cpu_bulk_load(u32 to, const void* from, u32 bytes, u32 barrier, int line);
void cpu_bulk_store(void* to, u32 from, u32 bytes, int line);
// Collective instructions.
void cpu_wgmma(f32* d, int n, int kind, u64 a, const void* fragment, u64 b, int keep, int a_mn, int b_mn, int line);
void cpu_matrices(u32 at, void** registers, int count, int transposed, int loads, int line);
void cpu_mma(f32* d, const void* a, const void* b, int kind, int line);
u32 cpu_shuffle(u32 value, int lane, int line);
void cpu_meet_warp(int line);
// gfx942.
void cpu_waitcnt(int immediate, int line);
void cpu_buffer_load(void* to, const void* base, u32 limit, u32 offset, int bytes, int line);
void cpu_buffer_store(void* base, u32 limit, u32 offset, const void* from, int bytes, int line);
void cpu_load_lds(void* to, const void* base, u32 limit, u32 offset, int line);
void cpu_mfma(int rows, int depth, int left_kind, int right_kind, const void* a, const void* b, void* c, int line);
// Numbers.
f32 cpu_exp(f32), cpu_exp2(f32), cpu_log(f32), cpu_log2(f32), cpu_tanh(f32), cpu_fma(f32, f32, f32);
f32 cpu_erf(f32), cpu_expm1(f32), cpu_log1p(f32), cpu_sine(f32, int), cpu_pow(f32, f32), cpu_floor(f32), cpu_round(f32), cpu_scaled(f32, int);
f32 cpu_from_f16(u16), cpu_from_e4m3(u8, int fnuz), cpu_from_e5m2fnuz(u8);
u16 cpu_to_f16(f32);
u8 cpu_to_e4m3(f32, int fnuz);
}
enum { QUEUE_CP_ASYNC, QUEUE_BULK, QUEUE_WGMMA };
enum { FENCE_ASYNC_PROXY, FENCE_BARRIER_INIT, FENCE_CLUSTER, FENCE_WGMMA, FENCE_DEVICE };

inline f32 cpu_from_bf16(u16 bits) { return __builtin_bit_cast(f32, (u32)bits << 16); }
inline u16 cpu_to_bf16(f32 x) {
    const u32 bits = __builtin_bit_cast(u32, x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
    return (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
struct bf16 {
    u16 bits;
    bf16() = default;
    explicit bf16(f32 x) : bits(cpu_to_bf16(x)) {}
    operator f32() const { return cpu_from_bf16(bits); }
};
struct f16 {
    u16 bits;
    f16() = default;
    explicit f16(f32 x) : bits(cpu_to_f16(x)) {}
    operator f32() const { return cpu_from_f16(bits); }
};
using b16 = u16 __attribute__((may_alias));
using b32 = u32 __attribute__((may_alias));
using b64 = u32 __attribute__((vector_size(8), may_alias));
using b128 = u32 __attribute__((vector_size(16), may_alias));

// Calls the kernel with arguments given by address: what `entry` of a unit expands to.
template <u64... I> struct Places {};
template <class T, T... I> struct Sequence { using Of = Places<(u64)I...>; };
template <class... A, u64... I> inline void cpu_apply(void (*kernel)(A...), void** given, Places<I...>) {
    kernel(*(__remove_cv(A)*)given[I]...);
}
template <class... A> inline void cpu_call(void (*kernel)(A...), void** given) {
    cpu_apply(kernel, given, typename __make_integer_seq<Sequence, u64, sizeof...(A)>::Of{});
}
// What a kernel's unit consists of beside its text. On sm_90a, `cpu_memory` is what `extern __shared__` redeclares in the
// namespace; its address does not count. On gfx942, LDS arrays lie in a section of their own, between two guard zones.
struct CpuKernel { void (*entry)(void**); u8 *section_start, *section_end, *lds_before, *lds_behind; LdsArray *arrays, *arrays_end; };
#define CPU_ENTRY(kernel) \
    static void cpu_entry(void** given) { cpu_call(kernel, given); }
