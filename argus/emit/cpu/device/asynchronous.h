// Asynchronous operations of sm_90a: TMA, bulk copies, cp.async and wgmma. Each reads its source at one moment and writes
// its target at a later one, both between its issue and what its waits enforce.
#pragma once
#include "barriers.h"

struct TensorMap {
    u8* base;
    u32 rank, bytes, swizzle, number;  // bytes of an element; swizzle: span in bytes, 0 for none
    i64 extents[5], strides[5];        // innermost axis first; strides in bytes
    u32 box[5];
};
static_assert(sizeof(TensorMap) <= 256);
static TensorMap* maps;  // by the number that the bytes of a map parameter hold

enum OpKind { TMA_LOAD, TMA_STORE, BULK_LOAD, BULK_STORE, CP_ASYNC, WGMMA_OP };
struct Wgmma;
struct Op {
    OpKind kind;
    Actor by;
    u32 *seen, *fenced, slot;
    u32 rank, mask;
    u32 at, barrier, bytes, size;  // shared address
    void* global;
    const TensorMap* map;
    int place[5];
    u8* held;     // bytes between the two moments
    bool read;
    bool done;
    u32 queue, owner, group;
    Wgmma* product;
};
static List<Op*> in_flight;
struct Queue { List<Op*> open; List<List<Op*>*> groups; };
static Queue* queues;  // of each thread: cp.async, bulk; of the first thread of a warpgroup: wgmma
static u32 async_slots, next_slot;
static u32* slot_clocks;

static Op* issue(OpKind kind, int line) {
    Thread& self = *running;
    self.line = line;
    Op* op = allocate_array<Op>(1);
    *op = Op{};
    op->kind = kind;
    op->rank = self.rank;
    op->slot = actors - async_slots + next_slot++ % async_slots;
    op->seen = allocate_array<u32>(actors);
    op->fenced = allocate_array<u32>(actors);
    memcpy(op->seen, self.seen, 4 * actors);
    memcpy(op->fenced, self.fenced, 4 * actors);
    op->seen[op->slot] = op->fenced[op->slot] = ++slot_clocks[op->slot];
    op->by = {op->slot, op->seen[op->slot], op->seen, op->fenced, true, (int)self.index, (int)self.rank, line};
    tick(self);
    return op;
}

// The swizzle of shared memory: bits 4 to 6 of an address are xored with bits 7 to 9.
static u32 swizzled_address(u32 at, u32 span) {
    return span < 32 ? at : at ^ (at >> 3 & (span / 16 - 1) << 4);
}
// Applies `act(shared offset from the box's start, global address or null, bytes)` to the runs of a box.
template <class F> static void each_run(const TensorMap& map, const int* place, u32 shared, F act) {
    u64 rows = 1;
    for (u32 axis = 1; axis < map.rank; ++axis) rows *= map.box[axis];
    const u32 width = map.box[0] * map.bytes;
    for (u64 row = 0; row < rows; ++row) {
        u64 rest = row;
        i64 offset = 0;
        bool inside = true;
        for (u32 axis = 1; axis < map.rank; ++axis) {
            const i64 at = place[axis] + (i64)(rest % map.box[axis]);
            rest /= map.box[axis];
            inside = inside && at >= 0 && at < map.extents[axis];
            offset = (i64)((u64)offset + (u64)at * (u64)map.strides[axis]);  // addresses wrap around
        }
        // Runs of 16 bytes, the unit of the swizzle; an element at the edge cuts them.
        for (u32 chunk = 0; chunk < width; chunk += 16) {
            const u32 there = swizzled_address(shared + (u32)row * width + chunk, map.swizzle);
            const u32 end = chunk + 16 < width ? chunk + 16 : width;
            for (u32 at = chunk; at < end;) {
                const i64 column = place[0] + (i64)(at / map.bytes);
                const bool here = inside && column >= 0 && column < map.extents[0];
                u32 stop = at + map.bytes;
                while (stop < end) {
                    const i64 next = place[0] + (i64)(stop / map.bytes);
                    if ((inside && next >= 0 && next < map.extents[0]) != here) break;
                    stop += map.bytes;
                }
                act(there + (at - chunk), here ? map.base + offset + column * map.bytes : nullptr, stop - at);
                at = stop;
            }
        }
    }
}
static u32 box_bytes(const TensorMap& map) {
    u32 bytes = map.bytes;
    for (u32 axis = 0; axis < map.rank; ++axis) bytes *= map.box[axis];
    return bytes;
}
static void run_product(Op& op);
static void read_source(Op& op) {
    if (op.read) return;
    op.read = true;
    u32 filled = 0;
    switch (op.kind) {
    case TMA_LOAD:
        op.held = allocate_array<u8>(box_bytes(*op.map));
        each_run(*op.map, op.place, op.at, [&](u32, u8* from, u32 bytes) {
            if (from && access(from, bytes, READS, op.by)) memcpy(op.held + filled, from, bytes);
            else memset(op.held + filled, 0, bytes);
            filled += bytes;
        });
        return;
    case TMA_STORE:
        op.held = allocate_array<u8>(box_bytes(*op.map));
        each_run(*op.map, op.place, op.at, [&](u32 at, u8* to, u32 bytes) {
            if (to && access(windows[op.rank] + at, bytes, READS, op.by)) memcpy(op.held + filled, windows[op.rank] + at, bytes);
            filled += bytes;
        });
        return;
    case BULK_STORE:
        op.held = allocate_array<u8>(op.bytes);
        if (access(windows[op.rank] + op.at, op.bytes, READS, op.by)) memcpy(op.held, windows[op.rank] + op.at, op.bytes);
        return;
    case BULK_LOAD: case CP_ASYNC:
        op.held = allocate_array<u8>(op.size);
        memset(op.held, 0, op.size);
        if (op.bytes && access(op.global, op.bytes, READS, op.by)) memcpy(op.held, op.global, op.bytes);
        return;
    case WGMMA_OP: return;
    }
}
static void finish(Op& op) {
    if (op.done) return;
    read_source(op);
    op.done = true;
    for (u32 n = 0; n < in_flight.count; ++n)
        if (in_flight[n] == &op) {
            in_flight.remove(n);
            break;
        }
    u32 taken = 0;
    switch (op.kind) {
    case TMA_LOAD:
        for (u32 rank = 0; rank < launch.cluster; ++rank) {
            if (!(op.mask >> rank & 1)) continue;
            taken = 0;
            each_run(*op.map, op.place, op.at, [&](u32 at, u8*, u32 bytes) {
                if (access(windows[rank] + at, bytes, WRITES, op.by)) memcpy(windows[rank] + at, op.held + taken, bytes);
                taken += bytes;
            });
            land_bytes(rank, op.barrier, taken, op.by);
        }
        return;
    case TMA_STORE:
        each_run(*op.map, op.place, op.at, [&](u32, u8* to, u32 bytes) {
            if (to && access(to, bytes, WRITES, op.by)) memcpy(to, op.held + taken, bytes);
            taken += bytes;
        });
        return;
    case BULK_STORE:
        if (access(op.global, op.bytes, WRITES, op.by)) memcpy(op.global, op.held, op.bytes);
        return;
    case BULK_LOAD:
        if (access(windows[op.rank] + op.at, op.bytes, WRITES, op.by)) memcpy(windows[op.rank] + op.at, op.held, op.bytes);
        land_bytes(op.rank, op.barrier, op.bytes, op.by);
        return;
    case CP_ASYNC:
        op.by.async = false;  // cp.async writes through the generic proxy
        if (access(windows[op.rank] + op.at, op.size, WRITES, op.by)) memcpy(windows[op.rank] + op.at, op.held, op.size);
        return;
    case WGMMA_OP: run_product(op); return;
    }
}
static void start(Op* op) {
    in_flight.add(op);
    if (launch.moments == EARLIEST) finish(*op);
    else if (launch.moments == ANY && dice.one_in(4)) read_source(*op);
    maybe_yield();
}
// Completes some operation, if one is in flight. forced: nothing else can run.
static bool advance(bool forced) {
    if (!in_flight.count) return false;
    if (!forced && (launch.moments != ANY || !dice.one_in(8))) return true;
    Op* op = in_flight[launch.moments == ANY ? dice.below(in_flight.count) : 0];
    if (op->kind == WGMMA_OP)  // in order within a warpgroup
        for (u32 n = 0; n < in_flight.count; ++n)
            if (in_flight[n]->kind == WGMMA_OP && in_flight[n]->owner == op->owner) {
                op = in_flight[n];
                break;
            }
    if (!forced && !op->read && dice.one_in(2)) read_source(*op);
    else finish(*op);
    return true;
}
static Queue& queue_of(u32 thread, int kind) { return queues[3 * thread + (u32)kind]; }
static void commit_group(Queue& queue) {
    List<Op*>* group = allocate_array<List<Op*>>(1);
    *group = queue.open;
    queue.open = {};
    queue.groups.add(group);
}
static void retire(Queue& queue, u32 pending, bool reads, Thread& thread) {
    for (u32 n = 0; n + pending < queue.groups.count; ++n) {
        List<Op*>& group = *queue.groups[n];
        for (u32 k = 0; k < group.count; ++k) {
            if (reads) read_source(*group[k]);
            else finish(*group[k]);
            join(thread.seen, group[k]->seen);
            if (group[k]->kind != CP_ASYNC) join(thread.fenced, group[k]->fenced);
        }
    }
    while (!reads && queue.groups.count > pending) queue.groups.remove(0);
}
extern "C" void cpu_cp_async(u32 to, const void* from, int size, int bytes, int line) {
    Op* op = issue(CP_ASYNC, line);
    op->at = to, op->global = (void*)from, op->size = (u32)size, op->bytes = (u32)bytes;
    if (to % (u32)size || (u64)from % (u64)size) finding("alignment", op->by, "copies with cp.async from or to an address that is not aligned to its size", nullptr, (i64)to);
    op->by.async = false;
    queue_of(running->number, QUEUE_CP_ASYNC).open.add(op);
    start(op);
}
static Op* tma(OpKind kind, u32 at, const void* map, int axes, const int* place, int line) {
    Op* op = issue(kind, line);
    op->map = &maps[*(const u32*)map];
    op->at = at;
    for (int n = 0; n < axes; ++n) op->place[n] = place[n];
    if ((u32)axes != op->map->rank) finding("map", op->by, "uses a tensor map of another number of axes", nullptr, axes);
    if (at % 128) finding("alignment", op->by, "uses TMA at a shared address that is not aligned to 128 bytes", nullptr, (i64)at);
    return op;
}
extern "C" void cpu_tma_load(u32 mask, u32 to, const void* map, u32 barrier, int axes, const int* at, int line) {
    Op* op = tma(TMA_LOAD, to, map, axes, at, line);
    op->mask = mask ? mask : 1u << running->rank;
    op->barrier = barrier;
    if (op->mask >> launch.cluster) finding("cluster", op->by, "sends to blocks that its cluster does not have", nullptr, (i64)op->mask);
    start(op);
}
extern "C" void cpu_tma_store(const void* map, u32 from, int axes, const int* at, int line) {
    Op* op = tma(TMA_STORE, from, map, axes, at, line);
    queue_of(running->number, QUEUE_BULK).open.add(op);
    start(op);
}
static void check_bulk(const Op& op, u32 at, const void* global, u32 bytes) {
    if (at % 16 || (u64)global % 16 || bytes % 16) finding("alignment", op.by, "copies in bulk what is not aligned to 16 bytes", nullptr, (i64)at);
}
extern "C" void cpu_bulk_load(u32 to, const void* from, u32 bytes, u32 barrier, int line) {
    Op* op = issue(BULK_LOAD, line);
    op->at = to, op->global = (void*)from, op->bytes = op->size = bytes, op->barrier = barrier;
    check_bulk(*op, to, from, bytes);
    start(op);
}
extern "C" void cpu_bulk_store(void* to, u32 from, u32 bytes, int line) {
    Op* op = issue(BULK_STORE, line);
    op->at = from, op->global = to, op->bytes = bytes;
    check_bulk(*op, from, to, bytes);
    queue_of(running->number, QUEUE_BULK).open.add(op);
    start(op);
}
