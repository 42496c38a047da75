// mbarriers, named barriers, the block's barrier, the cluster's barrier, fences.
#pragma once
#include "threads.h"

struct MBarrier {
    u32 rank, at, count;
    i64 pending, bytes;
    u32 phase;
    Epoch made;
    Clocks gathering, reached;
};
static List<MBarrier*> mbarriers;
static u8** windows;  // shared memory of each block of the cluster

static MBarrier* find_barrier(u32 rank, u32 at) {
    for (u32 n = 0; n < mbarriers.count; ++n)
        if (mbarriers[n]->rank == rank && mbarriers[n]->at == at) return mbarriers[n];
    return nullptr;
}
static MBarrier* barrier_for(u32 rank, u32 at, const Actor& by) {
    MBarrier* barrier = find_barrier(rank, at);
    if (!barrier) finding("barrier", by, "uses an mbarrier that nothing has initialised", nullptr, (i64)at);
    else if (!ordered(barrier->made, by.seen) && who_of(barrier->made) != by.who)
        finding("race", by, "uses an mbarrier whose initialisation it has not seen", nullptr, (i64)at);
    else if (by.async && !ordered(barrier->made, by.fenced))
        finding("proxy", by, "signals an mbarrier whose initialisation no fence made visible", nullptr, (i64)at);
    return barrier;
}
static void maybe_complete(MBarrier* barrier, const Actor& by) {
    if (barrier->pending < 0) finding("barrier", by, "arrives at an mbarrier more often than it expects", nullptr, (i64)barrier->at);
    if (barrier->pending > 0 || barrier->bytes != 0) return;
    barrier->pending = barrier->count;
    ++barrier->phase;
    barrier->reached.take(barrier->gathering);
    barrier->gathering.clear();
    wake_all(barrier);
}
static void land_bytes(u32 rank, u32 at, u32 bytes, const Actor& by) {
    MBarrier* barrier = barrier_for(rank, at, by);
    if (!barrier) return;
    barrier->gathering.join_from(by.seen, by.fenced);
    barrier->bytes -= bytes;
    maybe_complete(barrier, by);
}
extern "C" void cpu_barrier_init(u32 at, u32 count, int line) {
    Thread& self = *running;
    self.line = line;
    const Actor by = actor_of(self, line);
    if (at % 8) finding("alignment", by, "initialises an mbarrier that is not aligned to 8 bytes", nullptr, (i64)at);
    access(windows[self.rank] + at, 8, WRITES, by);
    if (MBarrier* old = find_barrier(self.rank, at)) {
        if (old->phase || old->pending != old->count) finding("barrier", by, "initialises an mbarrier that is in use", nullptr, (i64)at);
    }
    MBarrier* barrier = find_barrier(self.rank, at);
    if (!barrier) mbarriers.add(barrier = allocate_array<MBarrier>(1));
    *barrier = MBarrier{self.rank, at, count, count, 0, 0, epoch_of(era, self.who, self.seen[self.who]), {}, {}};
    tick(self);
}
extern "C" void cpu_arrive(u32 at, int rank, u32 count, u32 bytes, int relaxed, int line) {
    Thread& self = *running;
    self.line = line;
    const Actor by = actor_of(self, line);
    if (rank >= (int)launch.cluster) {
        finding("cluster", by, "arrives at a block that its cluster does not have", nullptr, rank);
        return;
    }
    MBarrier* barrier = barrier_for(rank < 0 ? self.rank : (u32)rank, at, by);
    if (!barrier) return;
    barrier->bytes += bytes;
    barrier->pending -= count;
    barrier->gathering.join_from(relaxed ? self.released : self.seen, self.fenced);
    tick(self);
    maybe_complete(barrier, by);
    maybe_yield();
}
extern "C" void cpu_await(u32 at, u32 parity, int line) {
    Thread& self = *running;
    self.line = line;
    MBarrier* barrier = barrier_for(self.rank, at, actor_of(self, line));
    if (!barrier) return;
    maybe_yield();
    while ((barrier->phase & 1) == parity) block_on(barrier, "waits for a phase of an mbarrier");
    barrier->reached.join_into(self);
}

// Barriers that count threads. The threads that wait leave with the clocks of all that came.
struct Gathering {
    u32 come = 0, wanted = 0, laps = 0;
    Clocks clocks, past;
    void add(Thread& thread) {
        clocks.join_from(thread.seen, thread.fenced);
        tick(thread);
        ++come;
    }
    // Whether the thread comes after all that met last. If not, it could as well have been counted among those.
    bool follows(const Thread& thread) const {
        for (u32 n = 0; past.seen && n < actors; ++n)
            if (past.seen[n] > thread.seen[n]) return false;
        return true;
    }
    bool complete(u32 count) {
        if (come < count) return false;
        come = 0;
        ++laps;
        past.clear();
        past.take(clocks);
        clocks.clear();
        wake_all(this);
        return true;
    }
    void wait(Thread& thread, u32 lap, const char* why) {
        while (laps == lap) block_on(this, why);
        past.join_into(thread);
    }
};
static Gathering *named, cluster_gathering;  // 16 for each block
static u32* cluster_laps;                    // of each thread

extern "C" void cpu_meet(int id, int count, int waits, int line) {
    Thread& self = *running;
    self.line = line;
    const Actor by = actor_of(self, line);
    if (id < 0 || id > 15 || count <= 0 || count % (int)warp_size || (u32)count > launch.threads) {
        finding("barrier", by, "meets at a named barrier that is not one of 16, or for threads that are not whole warps", nullptr, id);
        return;
    }
    Gathering& barrier = named[16 * self.rank + (u32)id];
    if (barrier.come && barrier.wanted != (u32)count)
        finding("barrier", by, "meets at a named barrier for another number of threads than others do", nullptr, id);
    if (!barrier.follows(self))
        finding("barrier", by, "meets at a named barrier without having seen its last meeting end", nullptr, id);
    barrier.wanted = (u32)count;
    const u32 lap = barrier.laps;
    barrier.add(self);
    barrier.complete((u32)count);
    if (waits) barrier.wait(self, lap, "waits at a named barrier");
    else maybe_yield();
}
extern "C" void cpu_meet_block(int line) { cpu_meet(0, (int)launch.threads, 1, line); }
extern "C" void cpu_cluster(int arrives, int line) {
    Thread& self = *running;
    self.line = line;
    u32& lap = cluster_laps[self.number];
    if (arrives) {
        if (lap != ~0u) finding("barrier", actor_of(self, line), "arrives twice at the cluster's barrier without a wait");
        lap = cluster_gathering.laps;
        cluster_gathering.add(self);
        cluster_gathering.complete(thread_count);
        return;
    }
    if (lap == ~0u) {
        finding("barrier", actor_of(self, line), "waits at the cluster's barrier without having arrived");
        return;
    }
    const u32 arrived = lap;
    lap = ~0u;
    cluster_gathering.wait(self, arrived, "waits at the cluster's barrier");
}
extern "C" void cpu_fence(int kind, int line) {
    Thread& self = *running;
    self.line = line;
    if (kind == FENCE_ASYNC_PROXY || kind == FENCE_BARRIER_INIT) {
        memcpy(self.fenced, self.seen, 4 * actors);
        tick(self);
    } else if (kind == FENCE_CLUSTER) {
        memcpy(self.released, self.seen, 4 * actors);
        tick(self);
    } else if (kind == FENCE_WGMMA) {
        group_fenced[(self.number - self.index % 128) / 32] = true;
    }
}
extern "C" void cpu_launch_before(int line) { running->launched = true; }
extern "C" void cpu_set_registers(int count, int up, int line) {
    if (count % 8 || count < 24 || count > 256)
        finding("registers", actor_of(*running, line), "asks for registers that are no multiple of 8 from 24 to 256", nullptr, count);
}
