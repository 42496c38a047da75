// GPU threads as fibers under a seeded scheduler: a thread runs until it blocks, and warps take turns in a seeded order.
#pragma once
#include "memory.h"

enum State : u8 { READY, BLOCKED, DONE };
struct Pending;  // an instruction of gfx942 in flight
struct Thread {
    void* top;  // saved stack pointer
    u8* stack;
    State state;
    u32 number, rank, index;  // in the cluster; of its block; in its block
    u32 warp, lane, who;
    u32 clock_dirty;
    u32 *seen, *fenced, *released;  // vector clocks: of itself; visible to the async proxy; at its last cluster fence
    const void* waits_on;
    const char* waits_for;
    int line;
    bool launched;
    List<Pending*> vector_queue, local_queue;
};
struct Warp {
    u64 ready;
    u32 first, lanes;  // threads
    u32 rank;          // of two ready warps the one with the higher rank runs, if ranks decide
};

struct Launch {
    u32 grid[3], cluster, threads, unit, target;  // unit: threads that share a vector clock; target: 0 sm_90a, 1 gfx942
    u32 shared_bytes, grain, early;
    u64 seed;
    u32 moments, order;  // of asynchronous operations; of warps
};
enum Moments { EARLIEST, LATEST, ANY };
enum Order { RANDOMLY, LOWEST, HIGHEST, RANKED };
static Launch launch;
static Random dice;

static Thread* threads;
static u32 thread_count;
static Warp* warps;
static u32 warp_count, warp_size;
static Thread* running;
static void* scheduler_top;
static u32 current_warp;
static u32 cluster_at[3], blocks_done;
static void (*entry)(void**);
static void** given;

extern "C" void cpu_switch(void** save, void* load);
asm(R"(
.text
.globl cpu_switch
cpu_switch:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret
)");

static Actor actor_of(Thread& thread, int line) {
    return {thread.who, thread.seen[thread.who], thread.seen, thread.fenced, false, (int)thread.index, (int)thread.rank, line};
}
static void join(u32* into, const u32* from) {
    for (u32 n = 0; n < actors; ++n) into[n] = into[n] > from[n] ? into[n] : from[n];
}
// A pair of vector clocks: what was seen, and what of it the async proxy sees.
struct Clocks {
    u32 *seen = nullptr, *fenced = nullptr;
    void join_from(const u32* s, const u32* f) {
        if (!seen) seen = allocate_array<u32>(actors), fenced = allocate_array<u32>(actors), clear();
        join(seen, s);
        join(fenced, f);
    }
    void clear() { if (seen) memset(seen, 0, 4 * actors), memset(fenced, 0, 4 * actors); }
    void join_into(Thread& thread) const {
        if (seen) join(thread.seen, seen), join(thread.fenced, fenced);
    }
    void take(Clocks& other) {
        if (other.seen) join_from(other.seen, other.fenced);
    }
};
// A release: later accesses of the thread are not covered by what was published.
static void tick(Thread& thread) { ++thread.seen[thread.who]; }

static void to_scheduler() {
    Thread* self = running;
    cpu_switch(&self->top, scheduler_top);
}
static void block_on(const void* what, const char* why) {
    running->state = BLOCKED;
    running->waits_on = what;
    running->waits_for = why;
    warps[running->warp].ready &= ~(1ull << running->lane);
    to_scheduler();
}
static void wake(Thread& thread) {
    thread.state = READY;
    thread.waits_on = nullptr;
    warps[thread.warp].ready |= 1ull << thread.lane;
}
static void wake_all(const void* what) {
    for (u32 n = 0; n < thread_count; ++n)
        if (threads[n].state == BLOCKED && threads[n].waits_on == what) wake(threads[n]);
}
// At times, lets another warp go first.
static void maybe_yield() {
    if (launch.order != RANDOMLY || !dice.one_in(6)) return;
    current_warp = ~0u;
    to_scheduler();
}

static void pend_all(Thread& thread, bool local, u32 left);
static void thread_main() {
    entry(given);
    pend_all(*running, false, 0);
    pend_all(*running, true, 0);
    running->state = DONE;
    warps[running->warp].ready &= ~(1ull << running->lane);
    to_scheduler();
    __builtin_unreachable();
}
// Ranks hold warps back for long: orders that a fair choice hardly draws. They change at times.
static void choose_by_rank() {
    if (dice.one_in(32)) warps[dice.below(warp_count)].rank = dice.below(1 << 20);
    current_warp = ~0u;
    for (u32 n = 0; n < warp_count; ++n)
        if (warps[n].ready && (current_warp == ~0u || warps[n].rank > warps[current_warp].rank)) current_warp = n;
}
static Thread* next_thread() {
    if (launch.order == RANKED) choose_by_rank();
    if (current_warp >= warp_count || !warps[current_warp].ready) {
        u32 ready = 0;
        for (u32 n = 0; n < warp_count; ++n) ready += warps[n].ready != 0;
        if (!ready) return nullptr;
        u32 skip = launch.order == RANDOMLY ? dice.below(ready) : launch.order == LOWEST ? 0 : ready - 1;
        for (u32 n = 0; n < warp_count; ++n)
            if (warps[n].ready && skip-- == 0) {
                current_warp = n;
                break;
            }
    }
    const u64 ready = warps[current_warp].ready;
    const u32 lane = launch.order == HIGHEST ? 63 - (u32)__builtin_clzll(ready) : (u32)__builtin_ctzll(ready);
    return &threads[warps[current_warp].first + lane];
}

// A meeting of the lanes of a group, each with an operand. The last to come acts for all.
struct Meeting {
    u32 come = 0;
    int what = 0, line = 0;
    void* operands[128];
};
static Meeting* meetings;  // of each warp
static bool* group_fenced;  // of each warpgroup: whether wgmma.fence came since its last commit or wait
static Meeting* group_meetings;  // of each warpgroup
static u32 live_lanes(Warp& warp) {
    u32 live = 0;
    for (u32 n = 0; n < warp.lanes; ++n) live += threads[warp.first + n].state != DONE;
    return live;
}
template <class F> static void meet_lanes(Meeting& meeting, u32 lane, u32 wanted, int what, void* operand, int line, const char* why, F act) {
    if (meeting.come && meeting.what != what)
        finding("divergence", actor_of(*running, line), "executes one collective instruction while lanes of its group execute another");
    meeting.what = what;
    meeting.line = line;
    meeting.operands[lane] = operand;
    if (++meeting.come < wanted) {
        block_on(&meeting, why);
        return;
    }
    meeting.come = 0;
    act(meeting);
    wake_all(&meeting);
}
template <class F> static void meet_in_warp(int what, void* operand, int line, const char* why, F act) {
    Warp& warp = warps[running->warp];
    meet_lanes(meetings[running->warp], running->lane, warp.lanes, what, operand, line, why, act);
}
// The 128 threads of a warpgroup.
template <class F> static void meet_in_group(int what, void* operand, int line, const char* why, F act) {
    const u32 first = running->number - running->index % 128, lane = running->index % 128;
    meet_lanes(group_meetings[first / 32], lane, 128, what, operand, line, why, act);
}
enum Collective { SHUFFLE = 1, MATRICES, WARP_MMA, MFMA, WGMMA, WGMMA_COMMIT, WGMMA_WAIT, WAVE_WAIT, LDS_LOAD, WARP_SYNC };
