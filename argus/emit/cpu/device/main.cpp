// Runs one launch: reads a request, executes the unit's kernel on fibers, writes findings and the tensors.
#include "waves.h"

extern "C" const CpuKernel cpu_kernels[];

extern "C" int cpu_thread_index() { return (int)running->index; }
static u32 extents[3];  // of a cluster, in blocks
extern "C" int cpu_block_index(int axis) {
    const u32 rank = running->rank;
    const u32 at[3] = {rank % extents[0], rank / extents[0] % extents[1], rank / extents[0] / extents[1]};
    return (int)(cluster_at[axis] * extents[axis] + at[axis]);
}
extern "C" int cpu_grid_extent(int axis) { return (int)launch.grid[axis]; }
static u32 shared_base;
extern "C" u32 cpu_shared_base() { return shared_base; }
extern "C" u32 cpu_own_rank() { return running->rank; }
extern "C" void* cpu_in_shared(u32 at, u32 rank, int line) {
    if (rank >= launch.cluster) {
        finding("cluster", actor_of(*running, line), "addresses a block that its cluster does not have", nullptr, rank);
        rank = running->rank;
    }
    return windows[rank] + at;
}

// Findings: one JSON object a line; each kind of each line once.
static const char* told[64];
static int told_lines[64];
static u32 told_count;
static char output[1 << 16];
static void finding(const char* kind, const Actor& who, const char* what, const Region* region, i64 offset, i64 more, const Epoch other) {
    for (u32 n = 0; n < told_count; ++n)
        if (told[n] == what && told_lines[n] == who.line) return;
    if (told_count == 64) return;
    told[told_count] = what;
    told_lines[told_count++] = who.line;
    Text text{output, 0, sizeof output};
    text << "{\"kind\":\"" << kind << "\",\"what\":\"" << what << "\",\"line\":" << who.line << ",\"thread\":" << who.thread;
    text << ",\"block\":[" << (cluster_at[0] * extents[0] + (u32)who.block % extents[0]) << "," << cluster_at[1] << "," << cluster_at[2] << "]";
    if (region) text << ",\"space\":\"" << (region->kind == REGION_TENSOR ? "tensor" : "shared") << "\",\"number\":" << region->number;
    text << ",\"offset\":" << offset << ",\"bytes\":" << more;
    if (other) {
        const u32 by = who_of(other), per = launch.threads / launch.unit;
        text << ",\"other\":\"" << (era_of(other) != (era & 0x1FFF) ? "another block" : (other & EPOCH_ASYNC) || by >= per * launch.cluster ? "an asynchronous operation" : launch.unit == 1 ? "thread " : "wave ");
        if (era_of(other) == (era & 0x1FFF) && !(other & EPOCH_ASYNC) && by < per * launch.cluster) text << by % per;
        text << "\"";
    }
    text << "}\n";
    write_all(1, output, (u64)text.size);
}

// What `-fsanitize=thread` calls at each load and store of the unit.
static void touched(void* at, u32 bytes, Access how) {
    if (!region_of(at)) return;
    check_launched(at, running->line);
    access(at, bytes, how, actor_of(*running, running->line));
}
#define TOUCH(bytes) \
    extern "C" void __tsan_read##bytes(void* at) { touched(at, bytes, READS); } \
    extern "C" void __tsan_write##bytes(void* at) { touched(at, bytes, WRITES); } \
    extern "C" void __tsan_unaligned_read##bytes(void* at) { touched(at, bytes, READS); } \
    extern "C" void __tsan_unaligned_write##bytes(void* at) { touched(at, bytes, WRITES); } \
    extern "C" void __tsan_volatile_read##bytes(void* at) { touched(at, bytes, READS); } \
    extern "C" void __tsan_volatile_write##bytes(void* at) { touched(at, bytes, WRITES); } \
    extern "C" void __tsan_read_write##bytes(void* at) { touched(at, bytes, READS), touched(at, bytes, WRITES); } \
    extern "C" void __tsan_unaligned_read_write##bytes(void* at) { touched(at, bytes, READS), touched(at, bytes, WRITES); }
TOUCH(1) TOUCH(2) TOUCH(4) TOUCH(8) TOUCH(16)
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
extern "C" void* __tsan_memcpy(void* to, const void* from, u64 size) {
    if (size) touched((void*)from, (u32)size, READS), touched(to, (u32)size, WRITES);
    return memcpy(to, from, size);
}
extern "C" void* __tsan_memmove(void* to, const void* from, u64 size) {
    if (size) touched((void*)from, (u32)size, READS), touched(to, (u32)size, WRITES);
    return memmove(to, from, size);
}
extern "C" void* __tsan_memset(void* to, int value, u64 size) {
    if (size) touched(to, (u32)size, WRITES);
    return memset(to, value, size);
}

static void report_hang() {
    for (u32 n = 0; n < thread_count; ++n) {
        if (threads[n].state != BLOCKED) continue;
        finding("hang", actor_of(threads[n], threads[n].line), threads[n].waits_for);
    }
}
static constexpr u64 STACK = 256 << 10;
static void begin_thread(Thread& thread, u32 number) {
    thread.number = number;
    thread.rank = number / launch.threads;
    thread.index = number % launch.threads;
    const u32 warps_each = (launch.threads + warp_size - 1) / warp_size;
    thread.warp = thread.rank * warps_each + thread.index / warp_size;
    thread.lane = thread.index % warp_size;
    thread.who = thread.rank * (launch.threads / launch.unit) + thread.index / launch.unit;
    memset(thread.seen, 0, 4 * actors), memset(thread.fenced, 0, 4 * actors), memset(thread.released, 0, 4 * actors);
    thread.seen[thread.who] = 1;
    thread.line = 0;
    thread.launched = false;
    thread.vector_queue.count = thread.local_queue.count = 0;
    cluster_laps[number] = ~0u;
    u64* top = (u64*)(thread.stack + STACK) - 2;
    *top = (u64)thread_main;
    thread.top = top - 6;
    wake(thread);
}
static bool run_cluster() {
    for (u32 rank = 0; rank < launch.cluster; ++rank) {
        Region* region = region_of(windows[rank] + shared_base);
        forget(*region);
        poison(region->start, region->bytes);
    }
    if (lds_end > lds_start) forget(lds_region), poison(lds_start, (u64)(lds_end - lds_start));
    mbarriers.count = in_flight.count = 0;
    memset(queues, 0, sizeof(Queue) * 3 * thread_count);
    for (u32 n = 0; n < 16 * launch.cluster; ++n) named[n].come = 0, named[n].clocks.clear(), named[n].past.clear();
    cluster_gathering.come = 0;
    cluster_gathering.clocks.clear(), cluster_gathering.past.clear();
    memset(slot_clocks, 0, 4 * actors);
    for (u32 n = 0; n < warp_count; ++n) meetings[n].come = group_meetings[n].come = 0, live_sums[n].count = 0, group_fenced[n] = false;
    for (u32 n = 0; n < warp_count; ++n) warps[n].ready = 0, warps[n].rank = dice.below(1 << 20);
    for (u32 n = 0; n < thread_count; ++n) begin_thread(threads[n], n);
    for (;;) {
        running = next_thread();
        if (!running) {
            if (!advance(true)) break;
            continue;
        }
        cpu_switch(&scheduler_top, running->top);
        running = &threads[0];
        advance(false);
    }
    for (u32 n = 0; n < thread_count; ++n)
        if (threads[n].state != DONE) return report_hang(), false;
    ++era;
    return true;
}
static i64* words;
static i64 take() { return *words++; }
struct TensorData { u8* start; u64 bytes; bool written; };

static u32 new_slot(RegionKind kind, int number, u64 bytes, u32 grain, bool known, bool races, bool written) {
    Region& region = slots[slot_count];
    region = {kind, number, arena + ((u64)slot_count << slot_bits) + (1ull << (slot_bits - 2)), bytes, grain, written, nullptr, nullptr};
    shadow(region, grain, known, races);
    return slot_count++;
}
extern "C" [[noreturn]] void cpu_main(i64* stack) {
    char** argv = (char**)(stack + 1);
    const i64 file = call_kernel(2, (i64)argv[1], 0, 0);
    if (stack[0] != 3 || file < 0) leave(100);
    i64 count;
    read_all((int)file, &count, 8);
    words = (i64*)pages((u64)count * 8 + 4096);
    read_all((int)file, words, (u64)count * 8);
    const CpuKernel& own = cpu_kernels[take()];
    launch.target = (u32)take();
    for (u32& each : launch.grid) each = (u32)take();
    for (u32& each : extents) each = (u32)take();
    launch.cluster = extents[0] * extents[1] * extents[2];
    launch.threads = (u32)take();
    launch.shared_bytes = (u32)take(), launch.grain = (u32)take(), launch.early = (u32)take();
    limit_resource(RLIMIT_AS, (u64)take());
    limit_resource(RLIMIT_CORE, 0);
    launch.seed = (u64)take(), launch.moments = (u32)take(), launch.order = (u32)take();
    dice.state = launch.seed * 0x9E3779B97F4A7C15ull | 1;
    for (int n = 0; n < 8; ++n) dice.next();
    warp_size = launch.target ? 64 : 32;
    launch.unit = launch.target ? 64 : 1;
    shared_array_count = (u32)take();
    shared_arrays = (SharedArray*)words;
    words += 3 * shared_array_count;
    slot_bits = (int)take();
    const u32 tensors = (u32)take(), map_count = (u32)take(), arguments = (u32)take();
    arena = pages((u64)(tensors + launch.cluster) << slot_bits);
    TensorData* data = allocate_array<TensorData>(tensors);
    for (u32 n = 0; n < tensors; ++n) {
        const u64 bytes = (u64)take();
        const u32 grain = (u32)take();
        const bool written = take(), known = take();
        new_slot(REGION_TENSOR, (int)n, bytes, grain, known, written, written);
        data[n] = {slots[n].start, bytes, written};
        if (known) continue;
        poison(slots[n].start, bytes);
    }
    maps = allocate_array<TensorMap>(map_count + 1);
    for (u32 n = 0; n < map_count; ++n) {
        TensorMap& map = maps[n];
        map.base = data[take()].start;
        map.rank = (u32)take(), map.bytes = (u32)take(), map.swizzle = (u32)take();
        for (i64& each : map.extents) each = take();
        for (i64& each : map.strides) each = take();
        for (u32& each : map.box) each = (u32)take();
    }
    given = allocate_array<void*>(arguments + 1);
    for (u32 n = 0; n < arguments; ++n) {
        const i64 kind = take(), value = take();
        u64* held = (u64*)allocate(128);
        *held = kind == 1 ? (u64)data[value].start : (u64)value;
        given[n] = held;
    }
    for (u32 n = 0; n < tensors; ++n) {
        i64 known = take();
        if (known) read_all((int)file, data[n].start, data[n].bytes);
        if (known == 2) read_all((int)file, slots[n].known, data[n].bytes);
    }
    windows = allocate_array<u8*>(launch.cluster);
    shared_base = 16 * (1 + dice.below(63));  // CUDA aligns dynamic shared memory to 16 bytes
    shared_slack = (shared_base + 1023 & ~1023u) - shared_base;
    for (u32 rank = 0; rank < launch.cluster; ++rank)
        windows[rank] = slots[new_slot(REGION_SHARED, (int)rank, launch.shared_bytes, launch.grain, false, true, true)].start - shared_base;
    if (own.section_start) {
        const bool first = own.lds_before == own.section_start, last = own.lds_behind + LDS_GUARD == own.section_end;
        if (!first || !last) leave(105);  // the compiler chose another order of the section
        lds_start = own.lds_before + LDS_GUARD, lds_end = own.lds_behind;
        lds_arrays = own.arrays, lds_arrays_end = own.arrays_end;
        const u8* end = lds_start;
        for (LdsArray* each = lds_arrays; each < lds_arrays_end; ++each) {
            if (each->start < end || each->guard < each->start + each->bytes) leave(105);
            end = each->guard + LDS_GUARD;
        }
    }
    if (lds_end > lds_start) {
        lds_region = {REGION_SHARED, 0, lds_start, (u64)(lds_end - lds_start), launch.grain, true, nullptr, nullptr};
        shadow(lds_region, launch.grain, false, true);
    }
    thread_count = launch.threads * launch.cluster;
    async_slots = launch.target ? 1 : 64;
    actors = launch.cluster * (launch.threads / launch.unit) + async_slots;
    actors = actors + 7 & ~7u;
    threads = allocate_array<Thread>(thread_count);
    u8* stacks = pages(STACK * thread_count);
    for (u32 n = 0; n < thread_count; ++n) {
        threads[n].stack = stacks + STACK * n;
        threads[n].seen = allocate_array<u32>(actors);
        threads[n].fenced = allocate_array<u32>(actors);
        threads[n].released = allocate_array<u32>(actors);
    }
    const u32 warps_each = (launch.threads + warp_size - 1) / warp_size;
    warp_count = warps_each * launch.cluster;
    warps = allocate_array<Warp>(warp_count);
    for (u32 n = 0; n < warp_count; ++n) {
        const u32 first = n % warps_each * warp_size;
        warps[n] = {0, n / warps_each * launch.threads + first, launch.threads - first < warp_size ? launch.threads - first : warp_size, 0};
    }
    meetings = allocate_array<Meeting>(warp_count);
    group_meetings = allocate_array<Meeting>(thread_count / 32 + 4);
    live_sums = allocate_array<List<Accumulator*>>(thread_count / 32 + 4);
    group_fenced = allocate_array<bool>(thread_count / 32 + 4);
    named = allocate_array<Gathering>(16 * launch.cluster);
    cluster_laps = allocate_array<u32>(thread_count);
    queues = allocate_array<Queue>(3 * thread_count);
    slot_clocks = allocate_array<u32>(actors);
    entry = own.entry;
    u32 shape[3], total = 1;
    for (int axis = 0; axis < 3; ++axis) total *= shape[axis] = (launch.grid[axis] + extents[axis] - 1) / extents[axis];
    const u32 first = launch.order == RANDOMLY && total ? dice.below(total) : 0;
    for (u32 n = 0; n < total; ++n) {
        const u32 at = launch.order == HIGHEST ? total - 1 - n : (n + first) % total;
        cluster_at[0] = at % shape[0], cluster_at[1] = at / shape[0] % shape[1], cluster_at[2] = at / shape[0] / shape[1];
        if (!run_cluster()) leave(3);
    }
    const i64 made = call_kernel(2, (i64)argv[2], 0x241, 0600);
    if (made < 0) leave(104);
    for (u32 n = 0; n < tensors; ++n) {
        if (!data[n].written) continue;
        write_all((int)made, data[n].start, data[n].bytes);
        if (slots[n].known) write_all((int)made, slots[n].known, data[n].bytes);
        else {
            u8* all = pages(data[n].bytes + 1);
            memset(all, 1, data[n].bytes);
            write_all((int)made, all, data[n].bytes);
        }
    }
    leave(0);
}
asm(R"(
.text
.globl _start
_start:
    movq %rsp, %rdi
    andq $-16, %rsp
    call cpu_main
)");
