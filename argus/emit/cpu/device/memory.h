// Memory with shadows: bounds with guard zones, initialised bytes, and races by vector clocks.
//
// Every tensor and every block's shared memory is a region: it lies in the middle of a slot of one arena, so an address
// tells its region, and an access beside it is in the region's guard zone.
#pragma once
#include "system.h"

// An access's time: whose, when, and of which cluster. Clusters run one after another; unless atomics order them they
// are concurrent.
using Epoch = u64;
enum : u64 { EPOCH_ATOMIC = 1ull << 61, EPOCH_ASYNC = 1ull << 62, EPOCH_MANY = 1ull << 63 };
static Epoch epoch_of(u32 era, u32 who, u32 clock) { return (u64)(era & 0x1FFF) << 48 | (u64)(who & 0xFFFF) << 32 | clock; }
static u32 who_of(Epoch e) { return (u32)(e >> 32) & 0xFFFF; }
static u32 era_of(Epoch e) { return (u32)(e >> 48) & 0x1FFF; }

struct Readers { List<Epoch> all; };
struct Cell { Epoch write, read; };

enum RegionKind { REGION_TENSOR, REGION_SHARED };
struct Region {
    RegionKind kind;
    int number;      // the tensor's, or the block's rank in its cluster
    u8* start;
    u64 bytes;
    u32 grain;       // bytes of a cell
    bool written;    // whether the launch declares that the kernel writes it
    Cell* cells;     // null: not shadowed
    u8* known;       // per byte: whether it holds data; null: all do
};

// Who accesses memory: a thread, or an asynchronous operation.
struct Actor {
    u32 who, clock;
    const u32* seen;      // vector clock
    const u32* fenced;    // vector clock of generic writes that the async proxy sees
    bool async;
    int thread, block, line;
};

static u32 era = 1, actors = 0;  // the cluster that runs; entries of a vector clock
static u8* arena;
static int slot_bits;
static Region slots[64];
static u32 slot_count;
static u8 *lds_start, *lds_end;  // without the guard zones around them
static Region lds_region;
static LdsArray *lds_arrays, *lds_arrays_end;
// The arrays in shared memory of a block of sm_90a: places from the base here, and on the GPU.
struct SharedArray { i64 at, size, planned; };
static SharedArray* shared_arrays;
static u32 shared_array_count;
static i64 shared_slack;  // bytes of a block's shared memory ahead of the base

static void finding(const char* kind, const Actor& who, const char* format, const Region* region = nullptr, i64 offset = 0,
                    i64 more = 0, const Epoch other = 0);

static Region* region_of(const void* at) {
    const u64 distance = (u64)((u8*)at - arena);
    if (distance < (u64)slot_count << slot_bits) return &slots[distance >> slot_bits];
    if (lds_start && (u8*)at >= lds_start - LDS_GUARD && (u8*)at < lds_end + LDS_GUARD) return &lds_region;
    return nullptr;
}
static void shadow(Region& region, u32 grain, bool known, bool races) {
    region.grain = grain;
    region.cells = races ? (Cell*)pages(region.bytes / grain * sizeof(Cell) + 4096) : nullptr;
    region.known = known ? nullptr : pages(region.bytes + 4096);
}
static void forget(Region& region) {
    if (region.cells) memset(region.cells, 0, region.bytes / region.grain * sizeof(Cell));
    if (region.known) memset(region.known, 0, region.bytes);
}
// A pattern that is a NaN in every float type of 16 bits or more, and an odd large integer.
static void poison(void* at, u64 bytes) { memset(at, 0xFF, bytes); }

static bool ordered(Epoch before, const u32* clocks) {
    return era_of(before) == (era & 0x1FFF) && (u32)before <= clocks[who_of(before)];
}
static void check_reads(Cell& cell, const Actor& by, Region* region, i64 offset, bool atomic) {
    if (!cell.read) return;
    if (!(cell.read & EPOCH_MANY)) {
        if (who_of(cell.read) != by.who && !ordered(cell.read, by.seen) && !(atomic && (cell.read & EPOCH_ATOMIC)))
            finding("race", by, "writes what another reads at the same time", region, offset, 0, cell.read);
        return;
    }
    Readers* readers = (Readers*)(cell.read & ~EPOCH_MANY);
    for (u32 n = 0; n < readers->all.count; ++n) {
        const Epoch each = readers->all[n];
        if (who_of(each) != by.who && !ordered(each, by.seen)) {
            finding("race", by, "writes what another reads at the same time", region, offset, 0, each);
            return;
        }
    }
    readers->all.count = 0;
}
static void note_read(Cell& cell, Epoch now, const Actor& by) {
    if (!cell.read || (!(cell.read & EPOCH_MANY) && (who_of(cell.read) == by.who || ordered(cell.read, by.seen)))) {
        cell.read = now;
        return;
    }
    if (!(cell.read & EPOCH_MANY)) {
        Readers* readers = allocate_array<Readers>(1);
        readers->all = {};
        readers->all.add(cell.read);
        readers->all.add(now);
        cell.read = (u64)readers | EPOCH_MANY;
        return;
    }
    Readers* readers = (Readers*)(cell.read & ~EPOCH_MANY);
    for (u32 n = 0; n < readers->all.count; ++n)
        if (who_of(readers->all[n]) == by.who) {
            readers->all[n] = now;
            return;
        }
    readers->all.add(now);
}

// Whether an access lies in one of the arrays of LDS. skipped: the guard zones ahead of it, which the GPU does not have.
static bool in_lds_array(const u8* at, u64 bytes, i64& skipped) {
    bool inside = false;
    skipped = 0;
    for (LdsArray* each = lds_arrays; each < lds_arrays_end; ++each) {
        inside = inside || (at >= each->start && at + bytes <= each->start + each->bytes);
        if (at >= each->guard + LDS_GUARD) skipped += LDS_GUARD;
    }
    return inside;
}

static bool in_shared_array(i64 offset, u64 bytes, i64& skipped) {
    bool inside = false;
    skipped = 0;
    for (SharedArray* each = shared_arrays; each < shared_arrays + shared_array_count; ++each) {
        const i64 start = shared_slack + each->at;
        inside = inside || (offset >= start && offset + (i64)bytes <= start + each->size);
        if (offset >= start) skipped = each->at - each->planned;
    }
    return inside;
}

enum Access { READS, WRITES, ADDS };
// Checks an access and records it. Returns whether it is inside a region. value: what is written, if known: threads that
// write equal values do not race.
static bool access(const void* at, u64 bytes, Access how, const Actor& by, const void* value = nullptr) {
    Region* region = region_of(at);
    if (!region) return true;
    const i64 offset = (u8*)at - region->start;
    if (offset < 0 || (u64)offset + bytes > region->bytes) {
        finding("bounds", by, how == READS ? "reads outside of" : "writes outside of", region, offset, (i64)bytes);
        return false;
    }
    i64 skipped = 0;
    const bool apart = region == &lds_region || (region->kind == REGION_SHARED && shared_array_count);
    if (apart && !(region == &lds_region ? in_lds_array((const u8*)at, bytes, skipped) : in_shared_array(offset, bytes, skipped))) {
        finding("bounds", by, how == READS ? "reads outside of an array in" : "writes outside of an array in", region, offset - skipped, (i64)bytes);
        return false;
    }
    if (offset % (i64)bytes && (bytes & bytes - 1) == 0 && bytes <= 16 && ((u64)at & bytes - 1))
        finding("alignment", by, "is not aligned to its size", region, offset, (i64)bytes);
    if (region->kind == REGION_TENSOR && !region->written && how != READS)
        finding("written", by, "writes a tensor that the launch does not write", region, offset);
    if (region->known) {
        if (how == WRITES) memset(region->known + offset, 1, bytes);
        else
            for (u64 n = 0; n < bytes; ++n)
                if (!region->known[offset + n]) {
                    finding("uninitialised", by, "reads what nothing has written", region, offset + (i64)n);
                    break;
                }
    }
    if (!region->cells) return true;
    const Epoch now = epoch_of(era, by.who, by.clock) | (by.async ? EPOCH_ASYNC : 0) | (how == ADDS ? EPOCH_ATOMIC : 0);
    for (u64 n = offset / region->grain; n <= (offset + bytes - 1) / region->grain; ++n) {
        Cell& cell = region->cells[n];
        const i64 where = (i64)(n * region->grain);
        const Epoch last = cell.write;
        if (last && last != now && !(how == ADDS && (last & EPOCH_ATOMIC))) {
            if (who_of(last) != by.who || era_of(last) != (era & 0x1FFF)) {
                const bool equal = how == WRITES && value && !differ((u8*)at, (const u8*)value, bytes);
                if (!ordered(last, by.seen) && !equal)
                    finding("race", by, how == READS ? "reads what another writes at the same time"
                                                     : "writes what another writes at the same time", region, where, 0, last);
            }
            if (by.async && !(last & EPOCH_ASYNC) && how == READS && region->kind == REGION_SHARED && ordered(last, by.seen) &&
                !ordered(last, by.fenced))
                finding("proxy", by, "reads through the async proxy an ordinary write without a proxy fence between", region, where, 0, last);
        }
        if (how == READS) {
            if (cell.read != now) note_read(cell, now, by);
        } else {
            check_reads(cell, by, region, where, how == ADDS);
            cell.write = now;
            if (!(cell.read & EPOCH_MANY)) cell.read = 0;
        }
    }
    return true;
}
