// Loads, stores and counters of gfx942. A load's registers hold a poison, and a store is not in memory, until a wait.
#pragma once
#include "matrices.h"

struct Pending {
    void *to, *from;  // of a store, `from` is null and `held` has the data
    int bytes, line;
    bool store, read;
    u64 held[2];
};
static bool is_local(const void* at) { return (u8*)at >= lds_start && (u8*)at < lds_end; }
static void read_load(Thread& thread, Pending& op) {
    if (op.read || op.store) return;
    op.read = true;
    if (access(op.from, (u64)op.bytes, READS, actor_of(thread, op.line))) memcpy(op.held, op.from, (u64)op.bytes);
    else poison(op.held, 16);
}
static void complete(Thread& thread, Pending& op) {
    if (!op.bytes) return;
    if (op.store) {
        if (!access(op.to, (u64)op.bytes, WRITES, actor_of(thread, op.line), op.held)) return;
    } else read_load(thread, op);
    memcpy(op.to, op.held, (u64)op.bytes);
}
static void pend_all(Thread& thread, bool local, u32 left) {
    List<Pending*>& queue = local ? thread.local_queue : thread.vector_queue;
    u32 done = 0;
    for (; queue.count - done > left && done < queue.count; ++done) complete(thread, *queue[done]);
    for (u32 n = done; n < queue.count; ++n) queue[n - done] = queue[n];
    queue.count -= done;
}
static Pending* pend(void* to, void* from, int bytes, bool store, int line, bool local) {
    Pending* op = allocate_array<Pending>(1);
    *op = {to, from, bytes, line, store, false, {0, 0}};
    Thread& self = *running;
    List<Pending*>& queue = local ? self.local_queue : self.vector_queue;
    queue.add(op);
    return op;
}
// Whether an operation takes its first moment at its issue.
static bool at_once() { return launch.moments == EARLIEST || (launch.moments == ANY && dice.one_in(2)); }

static void check_launched(const void* at, int line) {
    if (!launch.early || running->launched) return;
    Region* region = region_of(at);
    if (region && region->kind == REGION_TENSOR)
        finding("launch", actor_of(*running, line), "uses memory before it waits for the launch before", region, (u8*)at - region->start);
}
extern "C" void cpu_load(void* to, const void* from, int bytes, int line) {
    running->line = line;
    check_launched(from, line);
    if (launch.target == 0 || !region_of(from)) {
        if (access(from, (u64)bytes, READS, actor_of(*running, line))) memcpy(to, from, (u64)bytes);
        else poison(to, (u64)bytes);
        return;
    }
    const bool local = is_local(from);
    if (!local && at_once()) {  // what the queue holds comes first
        List<Pending*>& queue = running->vector_queue;
        for (u32 n = 0; n < queue.count; ++n)
            if (queue[n]->store) complete(*running, *queue[n]), queue[n]->bytes = 0;
            else read_load(*running, *queue[n]);
        read_load(*running, *pend(to, (void*)from, bytes, false, line, local));
    } else pend(to, (void*)from, bytes, false, line, local);
    poison(to, (u64)bytes);
}
extern "C" void cpu_store(void* to, const void* from, int bytes, int line) {
    running->line = line;
    check_launched(to, line);
    if (launch.target == 0 || !region_of(to)) {
        if (access(to, (u64)bytes, WRITES, actor_of(*running, line), from)) memcpy(to, from, (u64)bytes);
        return;
    }
    Pending* op = pend(to, nullptr, bytes, true, line, is_local(to));
    memcpy(op->held, from, (u64)bytes);
    if (launch.moments == EARLIEST && !is_local(to)) pend_all(*running, false, 0);
}
extern "C" void cpu_waitcnt(int immediate, int line) {
    const u32 vector = (u32)(immediate & 15) | (u32)(immediate >> 14 & 3) << 4, local = (u32)(immediate >> 8 & 15);
    running->line = line;
    meet_in_warp(WAVE_WAIT, nullptr, line, "waits for its wave at s_waitcnt", [&](Meeting&) {
        Thread* lanes = &threads[warps[running->warp].first];
        // An operation of all lanes before the next: the wave's order.
        for (int which = 0; which < 2; ++which) {
            // LDS operations of a wave happen in order, so those of all lanes complete here, at times all of them.
            const bool all = which && (launch.moments == EARLIEST || (launch.moments == ANY && dice.one_in(2)));
            const u32 left = all ? 0 : which ? local : vector;
            u32 most = 0;
            for (u32 n = 0; n < warps[running->warp].lanes; ++n) {
                const u32 held = which ? lanes[n].local_queue.count : lanes[n].vector_queue.count;
                most = held > most ? held : most;
            }
            for (u32 rest = most; rest-- > left;)
                for (u32 n = 0; n < warps[running->warp].lanes; ++n) {
                    Thread* self = running;
                    running = &lanes[n];
                    pend_all(lanes[n], which, rest);
                    running = self;
                }
        }
    });
}
// The part of an access that lies within the buffer, dword by dword; out of range, loads give 0 and stores vanish.
static int within(u32 limit, u32 offset, int bytes) {
    if ((u64)offset + (u64)bytes <= limit) return bytes;
    return offset >= limit ? 0 : (int)((limit - offset) / 4 * 4);
}
extern "C" void cpu_buffer_load(void* to, const void* base, u32 limit, u32 offset, int bytes, int line) {
    const int inside = within(limit, offset, bytes);
    running->line = line;
    if (inside == bytes) return cpu_load(to, (const u8*)base + offset, bytes, line);
    Pending* op = pend(to, (u8*)base + offset, bytes, false, line, false);
    op->read = true;
    if (inside && access(op->from, (u64)inside, READS, actor_of(*running, line))) memcpy(op->held, op->from, (u64)inside);
    poison(to, (u64)bytes);
}
extern "C" void cpu_buffer_store(void* base, u32 limit, u32 offset, const void* from, int bytes, int line) {
    const int inside = within(limit, offset, bytes);
    running->line = line;
    if (inside) cpu_store((u8*)base + offset, from, inside, line);
    else pend(running, nullptr, 0, true, line, false)->bytes = 0;
}
struct Direct { void* to; };
extern "C" void cpu_load_lds(void* to, const void* base, u32 limit, u32 offset, int line) {
    Direct own{to};
    running->line = line;
    void* first = to;
    meet_in_warp(LDS_LOAD, &own, line, "waits for its wave at a load to LDS", [&](Meeting& meeting) {
        void* shared = ((Direct*)meeting.operands[0])->to;
        for (u32 n = 0; n < warps[running->warp].lanes; ++n) {
            Direct& each = *(Direct*)meeting.operands[n];
            if (each.to != shared) finding("divergence", actor_of(*running, line), "gives a load to LDS another address than its wave does");
            each.to = shared;
        }
    });
    first = own.to;
    Pending* op = pend((u8*)first + 4 * running->lane, nullptr, 4, true, line, false);
    if (within(limit, offset, 4) && access((const u8*)base + offset, 4, READS, actor_of(*running, line)))
        memcpy(op->held, (const u8*)base + offset, 4);
    if (launch.moments == EARLIEST) pend_all(*running, false, 0);
}
extern "C" f32 cpu_atomic_add(f32* at, f32 value, int line) {
    running->line = line;
    if (!access(at, 4, ADDS, actor_of(*running, line))) return 0;
    const f32 old = *at;
    *at = old + value;
    return old;
}
extern "C" int cpu_atomic_add_i32(int* at, int value, int line) {
    running->line = line;
    if (!access(at, 4, ADDS, actor_of(*running, line))) return 0;
    const int old = *at;
    *at = old + value;
    return old;
}
