// Collective instructions: wgmma, mma, mfma, ldmatrix, stmatrix, shuffles.
#pragma once
#include "asynchronous.h"
#include "numbers.h"

static f32 element(const void* at, int kind, int fnuz = 0) {
    if (kind == KIND_I8) return (f32) * (const signed char*)at;
    if (kind == KIND_E5M2FNUZ) return cpu_from_e5m2fnuz(*(const u8*)at);
    return kind == KIND_BF16 ? cpu_from_bf16(*(const u16*)at) : kind == KIND_F16 ? cpu_from_f16(*(const u16*)at)
                                                                               : cpu_from_e4m3(*(const u8*)at, fnuz);
}
static int element_bytes(int kind) { return kind == KIND_BF16 || kind == KIND_F16 ? 2 : 1; }

// Accumulators of a warpgroup while products on them are in flight: its registers hold a poison until the wait.
struct Accumulator {
    f32* d[128];
    int n;
    f32* values;  // rows of 64 x n
    u32 pending;
};
struct Wgmma {
    f32* d;
    int n, kind, keep, a_mn, b_mn;
    u64 a, b;
    const void* fragment;
    const void* fragments[128];
    Accumulator* sums;
};
static List<Accumulator*>* live_sums;  // of each warpgroup, by its first thread / 32

static u32 register_of(u32 row, u32 column, u32& thread) {
    thread = row / 16 * 32 + row % 8 * 4 + column / 2 % 4;
    return column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
}
static void read_matrix(Op& op, u64 descriptor, int rows, int depth, int bytes, bool mn, int kind, f32* into) {
    const u32 start = (u32)(descriptor & 0x3FFF) << 4, leading = (u32)(descriptor >> 16 & 0x3FFF) << 4;
    const u32 stride = (u32)(descriptor >> 32 & 0x3FFF) << 4, mode = (u32)(descriptor >> 62);
    const u32 span = mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 16;
    u32 checked = ~0u;
    for (int r = 0; r < rows; ++r)
        for (int k = 0; k < depth; ++k) {
            const u32 along = (u32)((mn ? r : k) * bytes), across = (u32)(mn ? k : r);
            u32 at = start + across % 8 * span;
            at += mn ? along / span * leading + across / 8 * stride + along % span
                : span == 16 ? across / 8 * stride + along / 16 * leading + along % 16
                             : across / 8 * stride + along;
            at = swizzled_address(at, span);
            u8* place = windows[op.rank] + at;
            if (at / 16 != checked || mn) {
                if (!access(windows[op.rank] + at, (u64)bytes, READS, op.by)) { into[r * depth + k] = __builtin_nanf(""); continue; }
            }
            into[r * depth + k] = element(place, kind);
        }
}
// A sum as the tensor cores of sm_90a make it of FP8: exact products and the accumulator are aligned to the greatest
// exponent and cut to 13 bits after its binary point, their sum is exact, and 13 bits of its fraction are kept.
// [Xie et al. 2025, MMA-Sim; benchmarks/instructions.py compares it with the bits of a GPU]
static constexpr int FP8_FRACTION = 13;
static int exponent_of(f32 x, int lowest) {
    const int power = (int)(__builtin_bit_cast(u32, x) >> 23 & 255) - 127;
    return power < lowest ? lowest : power;
}
static double power_of_two(int power) { return to_double((u64)(1023 + power) << 52); }
static f32 fp8_sum(f32 start, const f32* left, const f32* right, int depth) {
    int most = start != 0 ? exponent_of(start, -126) : -200;
    bool finite = start - start == 0;
    for (int k = 0; k < depth; ++k) {
        finite &= left[k] == left[k] && right[k] == right[k];
        const int power = exponent_of(left[k], -6) + exponent_of(right[k], -6);
        if (left[k] * right[k] != 0 && power > most) most = power;
    }
    if (!finite) {
        for (int k = 0; k < depth; ++k) start += left[k] * right[k];
        return start;
    }
    const double scale = power_of_two(FP8_FRACTION - most), unit = power_of_two(most - FP8_FRACTION);
    i64 sum = (i64)(start * scale);
    for (int k = 0; k < depth; ++k) sum += (i64)((double)(left[k] * right[k]) * scale);
    const f32 made = (f32)((double)sum * unit);
    return __builtin_bit_cast(f32, __builtin_bit_cast(u32, made) & ~((1u << (23 - FP8_FRACTION)) - 1));
}
static void run_product(Op& op) {
    Wgmma& w = *op.product;
    const int bytes = element_bytes(w.kind), depth = 32 / bytes;
    static f32 left[64 * 32], right[256 * 32];
    if (w.fragment) {
        const int run = 4 / bytes;
        for (int thread = 0; thread < 128; ++thread)
            for (int value = 0; value < 4 * run; ++value) {
                const int e = value % run, i = value / run % 2, j = value / run / 2, lane = thread % 32;
                left[(16 * (thread / 32) + 8 * i + lane / 4) * depth + 4 * run * j + run * (lane % 4) + e] =
                    element((const u8*)w.fragments[thread] + value * bytes, w.kind);
            }
    } else read_matrix(op, w.a, 64, depth, bytes, w.a_mn, w.kind, left);
    read_matrix(op, w.b, w.n, depth, bytes, w.b_mn, w.kind, right);
    for (int m = 0; m < 64; ++m)
        for (int n = 0; n < w.n; ++n) {
            f32& sum = w.sums->values[m * w.n + n];
            f32 added = w.keep ? sum : 0;
            if (w.kind == KIND_E4M3) added = fp8_sum(added, left + m * depth, right + n * depth, depth);
            else
                for (int k = 0; k < depth; ++k) added += left[m * depth + k] * right[n * depth + k];
            sum = added;
        }
    --w.sums->pending;
}
extern "C" void cpu_wgmma(f32* d, int n, int kind, u64 a, const void* fragment, u64 b, int keep, int a_mn, int b_mn, int line) {
    Wgmma own{d, n, kind, keep, a_mn, b_mn, a, b, fragment, {}, nullptr};
    running->line = line;
    meet_in_group(WGMMA, &own, line, "waits for its warpgroup at a wgmma", [&](Meeting& meeting) {
        const u32 first = running->number - running->index % 128;
        Wgmma* made = allocate_array<Wgmma>(1);
        *made = *(Wgmma*)meeting.operands[0];
        Op* op = issue(WGMMA_OP, line);
        for (u32 lane = 0; lane < 128; ++lane) {
            const Wgmma& other = *(Wgmma*)meeting.operands[lane];
            if (other.a != made->a || other.b != made->b || other.keep != made->keep)
                finding("divergence", op->by, "gives a wgmma other descriptors than its warpgroup does");
            made->fragments[lane] = other.fragment;
            join(op->seen, threads[first + lane].seen);
            join(op->fenced, threads[first + lane].fenced);
        }
        op->seen[op->slot] = op->fenced[op->slot] = op->by.clock;
        if (!group_fenced[first / 32]) finding("fence", op->by, "starts a group of wgmma without `wgmma.fence` before it");
        List<Accumulator*>& live = live_sums[first / 32];
        for (u32 k = 0; k < live.count; ++k)
            if (live[k]->d[0] == made->d) made->sums = live[k];
        if (!made->sums) {
            Accumulator* sums = allocate_array<Accumulator>(1);
            sums->n = n;
            sums->pending = 0;
            sums->values = allocate_array<f32>(64 * (u64)n);
            for (u32 lane = 0; lane < 128; ++lane) sums->d[lane] = ((Wgmma*)meeting.operands[lane])->d;
            for (u32 row = 0; row < 64; ++row)
                for (u32 column = 0; column < (u32)n; ++column) {
                    u32 thread;
                    const u32 place = register_of(row, column, thread);
                    sums->values[row * n + column] = sums->d[thread][place];
                    poison(&sums->d[thread][place], 4);
                }
            live.add(made->sums = sums);
        }
        ++made->sums->pending;
        op->product = made;
        op->owner = first;
        queue_of(first, QUEUE_WGMMA).open.add(op);
        in_flight.add(op);
        if (launch.moments == EARLIEST) finish(*op);
    });
}
static void deliver_sums(u32 first) {
    List<Accumulator*>& live = live_sums[first / 32];
    for (u32 k = live.count; k-- > 0;) {
        Accumulator& sums = *live[k];
        if (sums.pending) continue;
        for (u32 row = 0; row < 64; ++row)
            for (u32 column = 0; column < (u32)sums.n; ++column) {
                u32 thread;
                const u32 place = register_of(row, column, thread);
                sums.d[thread][place] = sums.values[row * sums.n + column];
            }
        live.remove(k);
    }
}
// Finishes what is in flight of the accumulators of groups that a wait covers, in order.
extern "C" void cpu_wait(int kind, int pending, int reads, int line) {
    running->line = line;
    if (kind != QUEUE_WGMMA) {
        retire(queue_of(running->number, kind), (u32)pending, reads, *running);
        return;
    }
    meet_in_group(WGMMA_WAIT, nullptr, line, "waits for its warpgroup at a wait for wgmma", [&](Meeting&) {
        const u32 first = running->number - running->index % 128;
        Queue& queue = queue_of(first, QUEUE_WGMMA);
        retire(queue, (u32)pending, false, *running);
        deliver_sums(first);
        for (u32 lane = 0; lane < 128; ++lane) join(threads[first + lane].seen, running->seen), join(threads[first + lane].fenced, running->fenced);
        group_fenced[first / 32] = false;
    });
}
extern "C" void cpu_commit(int kind, int line) {
    running->line = line;
    if (kind != QUEUE_WGMMA) {
        commit_group(queue_of(running->number, kind));
        return;
    }
    meet_in_group(WGMMA_COMMIT, nullptr, line, "waits for its warpgroup at a commit of wgmma", [&](Meeting&) {
        const u32 first = running->number - running->index % 128;
        commit_group(queue_of(first, QUEUE_WGMMA));
        group_fenced[first / 32] = false;
    });
}
struct Matrices { u32 at; void** registers; };
extern "C" void cpu_matrices(u32 at, void** registers, int count, int transposed, int loads, int line) {
    Matrices own{at, registers};
    running->line = line;
    meet_in_warp(MATRICES, &own, line, "waits for its warp at ldmatrix or stmatrix", [&](Meeting& meeting) {
        Thread* lanes = &threads[warps[running->warp].first];
        for (int matrix = 0; matrix < count; ++matrix)
            for (int row = 0; row < 8; ++row) {
                Thread& owner = lanes[8 * matrix + row];
                const u32 there = ((Matrices*)meeting.operands[8 * matrix + row])->at;
                const Actor by = actor_of(owner, line);
                if (there % 16) finding("alignment", by, "gives a matrix row that is not aligned to 16 bytes", nullptr, (i64)there);
                u8* place = windows[owner.rank] + there;
                const bool inside = access(place, 16, loads ? READS : WRITES, by);
                for (int column = 0; column < 8; ++column) {
                    const int r = transposed ? column : row, c = transposed ? row : column;
                    Matrices& holder = *(Matrices*)meeting.operands[4 * r + c / 2];
                    u16& held = ((u16*)holder.registers[matrix])[c % 2];
                    if (loads) held = inside ? ((u16*)place)[column] : 0xFFFF;
                    else if (inside) ((u16*)place)[column] = held;
                }
            }
    });
}
struct Product { void* d; const void *a, *b; };
extern "C" void cpu_mma(f32* d, const void* a, const void* b, int kind, int line) {
    Product own{d, a, b};
    running->line = line;
    meet_in_warp(WARP_MMA, &own, line, "waits for its warp at mma", [&](Meeting& meeting) {
        f32 left[16][16], right[8][16];
        for (int lane = 0; lane < 32; ++lane) {
            const Product& p = *(Product*)meeting.operands[lane];
            for (int v = 0; v < 8; ++v)
                left[lane / 4 + v / 2 % 2 * 8][lane % 4 * 2 + v % 2 + v / 4 * 8] = element((const u16*)p.a + v, kind);
            for (int v = 0; v < 4; ++v) right[lane / 4][lane % 4 * 2 + v % 2 + v / 2 * 8] = element((const u16*)p.b + v, kind);
        }
        for (int lane = 0; lane < 32; ++lane)
            for (int v = 0; v < 4; ++v) {
                f32& sum = ((f32*)((Product*)meeting.operands[lane])->d)[v];
                const int m = lane / 4 + v / 2 * 8, n = lane % 4 * 2 + v % 2;
                for (int k = 0; k < 16; ++k) sum += left[m][k] * right[n][k];
            }
    });
}
// A sum of integers wraps around; f32 holds the products of one instruction and their sum exactly.
static void add_products(void* sum, const f32* left, const f32* right, int depth, bool integers) {
    f32 own = integers ? 0 : *(f32*)sum;
    for (int k = 0; k < depth; ++k) own += left[k] * right[k];
    if (integers) *(u32*)sum += (u32)(i32)own;
    else *(f32*)sum = own;
}
extern "C" void cpu_mfma(
    int rows, int depth, int left_kind, int right_kind, const void* a, const void* b, void* c, int line) {
    Product own{c, a, b};
    running->line = line;
    meet_in_warp(MFMA, &own, line, "waits for its wave at mfma", [&](Meeting& meeting) {
        static f32 left[32 * 64], right[32 * 64];
        const int parts = 64 / rows, values = rows * rows / 64, each = depth / parts, bytes = element_bytes(left_kind);
        for (int lane = 0; lane < 64; ++lane)
            for (int v = 0; v < each; ++v) {
                const Product& p = *(Product*)meeting.operands[lane];
                const int place = lane % rows * depth + lane / rows * each + v;
                left[place] = element((const u8*)p.a + v * bytes, left_kind, 1);
                right[place] = element((const u8*)p.b + v * bytes, right_kind, 1);
            }
        for (int lane = 0; lane < 64; ++lane)
            for (int v = 0; v < values; ++v) {
                const int m = v % 4 + lane / rows * 4 + v / 4 * 4 * parts, n = lane % rows;
                void* sum = (f32*)((Product*)meeting.operands[lane])->d + v;
                add_products(sum, left + m * depth, right + n * depth, depth, left_kind == KIND_I8);
            }
    });
}
struct Shuffled { u32 value; int from; u32 found; };
extern "C" u32 cpu_shuffle(u32 value, int lane, int line) {
    Shuffled own{value, lane, 0};
    running->line = line;
    meet_in_warp(SHUFFLE, &own, line, "waits for its warp at a shuffle", [&](Meeting& meeting) {
        for (u32 n = 0; n < warps[running->warp].lanes; ++n) {
            Shuffled& each = *(Shuffled*)meeting.operands[n];
            each.found = (u32)each.from < warps[running->warp].lanes ? ((Shuffled*)meeting.operands[each.from])->value : ~0u;
        }
    });
    return own.found;
}
extern "C" void cpu_meet_warp(int line) {
    running->line = line;
    meet_in_warp(WARP_SYNC, nullptr, line, "waits for its warp", [&](Meeting&) {
        Thread* lanes = &threads[warps[running->warp].first];
        Clocks all;
        for (u32 n = 0; n < warps[running->warp].lanes; ++n) all.join_from(lanes[n].seen, lanes[n].fenced), tick(lanes[n]);
        for (u32 n = 0; n < warps[running->warp].lanes; ++n) all.join_into(lanes[n]);
    });
}
