"""The text of the kernels that order assignments by expert: a counting sort, in one launch or two."""

from __future__ import annotations

from collections.abc import Mapping

THREADS, EXPERTS, AT_ONCE = 512, 512, 4
"""Threads of a block; the most experts; the ids that a thread loads at once."""
COUNT, PLACE = "count_experts", "place_by_expert"
"""The entry points, each followed by the bits of an id."""

PRELUDES: Mapping[str, str] = {
    "sm_90a": r"""
#define HELPER static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define WARP 32
using lanes_t = unsigned;
HELPER int own_thread() { return threadIdx.x; }
HELPER int own_block() { return blockIdx.x; }
HELPER lanes_t vote(bool x) { return __ballot_sync(~0u, x); }
HELPER int bits_of(lanes_t x) { return __popc(x); }
HELPER int from_lane_below(int x, int by) { return __shfl_up_sync(~0u, x, by); }
HELPER void meet() { __syncthreads(); }
HELPER void meet_warp() { __syncwarp(); }
HELPER void add_shared(int* to, int x) { atomicAdd(to, x); }
HELPER void await_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
HELPER void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
""",
    "gfx942": r"""
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define HELPER static __device__ inline __attribute__((always_inline))
#define KERNEL extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(THREADS, THREADS))) void
#define WARP 64
using lanes_t = unsigned long;
HELPER int own_thread() { return (int)__builtin_amdgcn_workitem_id_x(); }
HELPER int own_block() { return (int)__builtin_amdgcn_workgroup_id_x(); }
HELPER lanes_t vote(bool x) { return __builtin_amdgcn_ballot_w64(x); }
HELPER int bits_of(lanes_t x) { return __builtin_popcountl(x); }
HELPER int from_lane_below(int x, int by) {
    return __builtin_amdgcn_ds_bpermute(((own_thread() % WARP - by) & (WARP - 1)) * 4, x);
}
HELPER void meet() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
HELPER void meet_warp() {  // lanes run in step: only the compiler must not reorder
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
HELPER void add_shared(int* to, int x) { __atomic_fetch_add(to, x, __ATOMIC_RELAXED); }
HELPER int min(int a, int b) { return a < b ? a : b; }
HELPER void await_launch_before() {}
HELPER void let_next_begin() {}
""",
}

SUMS = r"""
// The sum of x over the threads before, and its own, or `most`; `sums` has one place for each warp.
HELPER int sum_up_to(int x, int* sums, int most) {
    const int lane = own_thread() % WARP, warp = own_thread() / WARP;
    for (int by = 1; by < WARP; by *= 2) {
        const int added = from_lane_below(x, by);
        x = min(most, x + (lane >= by ? added : 0));
    }
    if (lane == WARP - 1) sums[warp] = x;
    meet();
    for (int each = 0; each < warp; each++) x = min(most, x + sums[each]);
    meet();
    return x;
}

// The first row and the expert of each tile; `ends` are the numbers of tiles up to those of each expert.
HELPER void list_tiles(
    int* tile_starts, int* tile_experts, const int* firsts, const int* ends, int experts, int tiles, int height,
    int rows, int blocks
) {
    if (height && own_block() == 0 && own_thread() == 0) tile_starts[tiles] = rows;
    for (int tile = own_block() * THREADS + own_thread(); tile < tiles; tile += blocks * THREADS) {
        int low = 0, high = experts - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (ends[middle] > tile) high = middle; else low = middle + 1;
        }
        tile_experts[tile] = low;
        tile_starts[tile] = tile < ends[low] ? firsts[low] + (tile - (low ? ends[low - 1] : 0)) * height : rows;
    }
}
"""
"""Sums over a block's threads, and lists of tiles."""
_BODY = r"""
// The expert of an assignment; ids that are none are placed at the nearest, so that nothing is accessed outside.
template <class Id> HELPER int expert_of(const Id* ids, int at, int experts) {
    const Id id = ids[at];
    return id < 0 ? 0 : id < experts ? (int)id : experts - 1;
}

// The experts of several assignments, `step` apart, before any is used; -1 beyond the last.
template <class Id>
HELPER void load_experts(int (&held)[AT_ONCE], const Id* ids, int at, int step, int last, int experts) {
#pragma unroll
    for (int each = 0; each < AT_ONCE; each++)
        held[each] = at + each * step < last ? expert_of(ids, at + each * step, experts) : -1;
}

// Counts them.
template <class Id> HELPER void add_experts(int* numbers, const Id* ids, int first, int step, int last, int experts) {
    int held[AT_ONCE];
    for (int at = first; at < last; at += AT_ONCE * step) {
        load_experts(held, ids, at, step, last, experts);
#pragma unroll
        for (int each = 0; each < AT_ONCE; each++) if (held[each] >= 0) add_shared(&numbers[held[each]], 1);
    }
}

// How many assignments of its chunk each block has of each expert: counts[block][expert].
template <class Id> HELPER void count(const Id* ids, int* counts, int pairs, int experts, int chunk) {
    __shared__ int numbers[EXPERTS];
    const int own = own_thread(), first = own_block() * chunk, last = min(pairs, first + chunk);
    if (own < experts) numbers[own] = 0;
    meet();
    await_launch_before();
    let_next_begin();
    add_experts(numbers, ids, first + own, THREADS, last, experts);
    meet();
    if (own < experts) counts[own_block() * experts + own] = numbers[own];
}

// Places each assignment. A warp has consecutive ones; those of a lower number are before it within their expert.
// With one block, nothing was counted before. bits: of the number of the last expert.
template <class Id> HELPER void place(
    const Id* ids, const int* counts, int* ids32, int* starts, int* order, int* tokens, int* inverse, int* tile_starts,
    int* tile_experts, int pairs, int choices, int experts, int bits, int chunk, int blocks, int tiles, int height
) {
    constexpr int warps = THREADS / WARP;
    __shared__ int places[warps * EXPERTS], all[EXPERTS], before[EXPERTS], firsts[EXPERTS], ends[EXPERTS], sums[warps];
    const int own = own_thread(), lane = own % WARP, warp = own / WARP, block = own_block(), part = chunk / warps;
    const int first = block * chunk + warp * part, last = min(pairs, first + part);
    for (int at = own; at < warps * experts; at += THREADS) places[at] = 0;
    if (own < experts) all[own] = before[own] = 0;
    meet();
    int* const own_places = places + warp * experts;
    if (blocks == 1) await_launch_before();  // else the launch before has waited for what wrote the ids
    add_experts(own_places, ids, first + lane, WARP, last, experts);
    if (blocks > 1) {
        await_launch_before();
        const int width = 1 << bits, expert = own % width, step = THREADS / width;
        int total = 0, earlier = 0;
        if (expert < experts) {
            for (int of = own / width; of < blocks; of += BLOCKS_AT_ONCE * step) {
                int held[BLOCKS_AT_ONCE];
#pragma unroll
                for (int each = 0; each < BLOCKS_AT_ONCE; each++)
                    held[each] = of + each * step < blocks ? counts[(of + each * step) * experts + expert] : 0;
#pragma unroll
                for (int each = 0; each < BLOCKS_AT_ONCE; each++) {
                    total += held[each];
                    earlier += of + each * step < block ? held[each] : 0;
                }
            }
            if (step == 1) {
                all[expert] = total;
                before[expert] = earlier;
            } else {
                add_shared(&all[expert], total);
                add_shared(&before[expert], earlier);
            }
        }
    }
    meet();
    int total = 0;
    if (own < experts) {
        if (blocks == 1) for (int each = 0; each < warps; each++) total += places[each * experts + own];
        else total = all[own];
    }
    const int end = sum_up_to(total, sums, pairs), start = end - total;
    const int numbers = height ? (total + height - 1) / height : 0;
    const int end_tile = height ? sum_up_to(numbers, sums, tiles) : 0;
    if (own < experts) {
        int next = start + before[own];
        for (int each = 0; each < warps; each++) {
            const int number = places[each * experts + own];
            places[each * experts + own] = next;
            next += number;
        }
        firsts[own] = start;
        ends[own] = end_tile;
        if (block == 0) starts[own] = start;
    }
    if (block == 0 && own == 0) starts[experts] = pairs;
    meet();
    int held[AT_ONCE];
    for (int round = 0, pair = first + lane; pair - lane < last; pair += WARP, round = (round + 1) % AT_ONCE) {
        if (round == 0) load_experts(held, ids, pair, WARP, last, experts);
        const bool here = pair < last;
        const int expert = here ? held[0] : 0;
#pragma unroll
        for (int each = 0; each + 1 < AT_ONCE; each++) held[each] = held[each + 1];
        lanes_t same = vote(here);
        for (int bit = 0; bit < bits; bit++) {
            const bool set = expert >> bit & 1;
            const lanes_t with = vote(set);
            same &= set ? with : ~with;
        }
        const int rank = bits_of(same & (((lanes_t)1 << lane) - 1)), row = own_places[expert] + rank;
        meet_warp();
        if (here && rank == 0) own_places[expert] = row + bits_of(same);
        meet_warp();
        if (here) {
            order[row] = pair;
            tokens[row] = pair / choices;
            inverse[pair] = row;
            if (ids32) ids32[pair] = (int)ids[pair];
        }
    }
    list_tiles(tile_starts, tile_experts, firsts, ends, experts, tiles, height, pairs, blocks);
}
"""

_ENTRIES = """
KERNEL count_experts_{bits}(const {id}* ids, int* counts, int pairs, int experts, int chunk) {{
    count(ids, counts, pairs, experts, chunk);
}}
KERNEL place_by_expert_{bits}(
    const {id}* ids, const int* counts, int* ids32, int* starts, int* order, int* tokens, int* inverse,
    int* tile_starts, int* tile_experts, int pairs, int choices, int experts, int bits, int chunk, int blocks,
    int tiles, int height
) {{
    place(ids, counts, ids32, starts, order, tokens, inverse, tile_starts, tile_experts, pairs, choices, experts, bits,
        chunk, blocks, tiles, height);
}}
"""


def text(target: str) -> str:
    """The kernels for a target, of ids in 32 and in 64 bits."""
    numbers = {"THREADS": THREADS, "EXPERTS": EXPERTS, "AT_ONCE": AT_ONCE, "BLOCKS_AT_ONCE": 4 * AT_ONCE}
    constants = "".join(f"#define {name} {number}\n" for name, number in numbers.items())
    entries = (_ENTRIES.format(bits=bits, id=name) for bits, name in ((32, "int"), (64, "long long")))
    return "".join([constants, PRELUDES[target], SUMS, _BODY, *entries])
