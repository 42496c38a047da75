"""Emitted HIP on the CPU: the same text, with stand-ins for the builtins, with every lane as a coroutine.

Checks what the text computes: addresses, predicates, operand order. Not timing, nor what waits are for.
"""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.algebra import const
from argus.core.ir import Kernel
from argus.core.walk import evaluate
from argus.emit.hip.text import hip_text
from argus.emit.names import assign_names

Array = npt.NDArray[Any]

# Lanes synchronise in groups (a wave, the block); a waiting lane lets the others run.
_MACHINE = """
extern "C" {
struct context { unsigned long flags; context* link; struct { void* first; int flags; unsigned long size; } stack;
                 char rest[2048]; };
int getcontext(context*); void makecontext(context*, void (*)(), int, ...); int swapcontext(context*, const context*);
void* malloc(unsigned long); void free(void*); void abort(void);
float __truncsfbf2(float x) {  // the library call behind (bf16)x: its 16 bits are the low ones of the result
    unsigned bits = __builtin_bit_cast(unsigned, x);
    return __builtin_bit_cast(float, x != x ? 0x7FC0u : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
}
struct group { int size, arrived, round; };
static context scheduler, lanes[1024];
static group waves[16], block;
static bool done[1024];
static int lane_now, block_now[3];
static void rendezvous(group& all) {
    int mine = all.round;
    if (++all.arrived == all.size) { all.arrived = 0; ++all.round; return; }
    while (all.round == mine) swapcontext(&lanes[lane_now], &scheduler);
}
struct mfma_row { short a[4], b[4]; };
static mfma_row exchange[16][64];
static float widen(short x) { return __builtin_bit_cast(float, (unsigned)(unsigned short)x << 16); }
template <int rows, int values, typename V> static V mfma(
    short __attribute__((vector_size(8))) a, short __attribute__((vector_size(8))) b, V c) {
    int lane = lane_now % 64;
    mfma_row* shared = exchange[lane_now / 64];
    for (int i = 0; i < 4; ++i) { shared[lane].a[i] = a[i]; shared[lane].b[i] = b[i]; }
    rendezvous(waves[lane_now / 64]);
    for (int v = 0; v < values; ++v) {  // row and column of C, by the manual of the instruction
        int row = v % 4 + 4 * (lane / rows) + v / 4 * 8, column = lane % rows;
        for (int k = 0; k < 4 * (64 / rows); ++k)
            c[v] += widen(shared[k / 4 * rows + row].a[k % 4]) * widen(shared[k / 4 * rows + column].b[k % 4]);
    }
    rendezvous(waves[lane_now / 64]);
    return c;
}
static int words[16][64];
static int from_lane(int word, int lane) {
    words[lane_now / 64][lane_now % 64] = word;
    rendezvous(waves[lane_now / 64]);
    int found = words[lane_now / 64][lane & 63];
    rendezvous(waves[lane_now / 64]);
    return found;
}
static int dpp_lane(int control) {  // [AMD CDNA3 ISA, DPP controls]
    int lane = lane_now % 64;
    if (control < 0x100) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    if (control >= 0x121 && control < 0x130) return (lane & ~15) | (lane - (control - 0x120) & 15);
    if (control == 0x140) return lane ^ 15;
    if (control == 0x141) return lane ^ 7;
    abort();
}
#define __builtin_amdgcn_ds_bpermute(address, word) from_lane(word, (address) / 4)
static int swizzled_lane(int mask) { return (lane_now & mask & 31) ^ mask >> 10 | (lane_now & 32); }
#define __builtin_amdgcn_ds_swizzle(word, mask) from_lane(word, swizzled_lane(mask))
#define __builtin_amdgcn_update_dpp(old, word, control, rows, banks, bound) from_lane(word, dpp_lane(control))
struct resource { char* base; unsigned bytes; };
#define __amdgpu_buffer_rsrc_t resource
static resource make_resource(void* base, unsigned bytes) { return {(char*)base, bytes}; }
template <typename V> static V load_raw(resource from, unsigned offset) {
    return offset >= from.bytes ? V{} : *(V*)(from.base + offset);
}
template <typename V> static void store_raw(V value, resource to, unsigned offset) {
    if (offset < to.bytes) *(V*)(to.base + offset) = value;
}
#define __builtin_amdgcn_make_buffer_rsrc(base, stride, bytes, flags) make_resource(base, bytes)
#define __builtin_amdgcn_raw_buffer_load_b16(r, o, s, f) load_raw<b16>(r, o)
#define __builtin_amdgcn_raw_buffer_load_b32(r, o, s, f) load_raw<b32>(r, o)
#define __builtin_amdgcn_raw_buffer_load_b64(r, o, s, f) load_raw<b64>(r, o)
#define __builtin_amdgcn_raw_buffer_load_b128(r, o, s, f) load_raw<b128>(r, o)
#define __builtin_amdgcn_raw_buffer_store_b16(v, r, o, s, f) store_raw<b16>(v, r, o)
#define __builtin_amdgcn_raw_buffer_store_b32(v, r, o, s, f) store_raw<b32>(v, r, o)
#define __builtin_amdgcn_raw_buffer_store_b64(v, r, o, s, f) store_raw<b64>(v, r, o)
#define __builtin_amdgcn_raw_buffer_store_b128(v, r, o, s, f) store_raw<b128>(v, r, o)
#define __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, x, y, z) mfma<32, 16>(a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, x, y, z) mfma<16, 4>(a, b, c)
#define __builtin_amdgcn_workitem_id_x() lane_now
#define __builtin_amdgcn_workgroup_id_x() block_now[0]
#define __builtin_amdgcn_workgroup_id_y() block_now[1]
#define __builtin_amdgcn_readfirstlane(x) (x)
#define __builtin_amdgcn_s_waitcnt(x) ((void)0)
#define __builtin_amdgcn_s_setprio(x) ((void)0)
#define __builtin_amdgcn_sched_barrier(x) ((void)0)
#define __builtin_amdgcn_sched_group_barrier(x, y, z) ((void)0)
#define __builtin_amdgcn_fence(order, ...) ((void)0)
#define __builtin_amdgcn_s_barrier() rendezvous(block)
#define __builtin_amdgcn_global_atomic_fadd_f32(at, x) (*(at) += (x))
"""

_DRIVER = """
static void* arguments[16];
static void lane_main() {{ {call}; done[lane_now] = true; swapcontext(&lanes[lane_now], &scheduler); }}
extern "C" void run(int gx, int gy, void** given) {{
    const int threads = {threads}; const unsigned long stack = 65536;
    for (int i = 0; i < {count}; ++i) arguments[i] = given[i];
    char* stacks = (char*)malloc(threads * stack);
    for (block_now[1] = 0; block_now[1] < gy; ++block_now[1])
    for (block_now[0] = 0; block_now[0] < gx; ++block_now[0]) {{
        block = {{threads, 0, 0}};
        for (int w = 0; w < 16; ++w) waves[w] = {{64, 0, 0}};
        for (int t = 0; t < threads; ++t) {{
            getcontext(&lanes[t]);
            lanes[t].stack.first = stacks + t * stack; lanes[t].stack.size = stack; lanes[t].link = &scheduler;
            done[t] = false;
            makecontext(&lanes[t], lane_main, 0);
        }}
        for (bool running = true; running;) {{
            running = false;
            for (lane_now = 0; lane_now < threads; ++lane_now)
                if (!done[lane_now]) {{ running = true; swapcontext(&scheduler, &lanes[lane_now]); }}
        }}
    }}
    free(stacks);
}}
"""


def available() -> bool:
    """Whether this machine can run it: the layout of contexts is that of glibc on 64-bit Linux."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"


def run(
    text: str,
    symbol: str,
    threads: int,
    grid: tuple[int, int],
    arrays: Sequence[Array],
    sizes: Sequence[int],
    work: Path,
) -> None:
    """Run the kernel; the arrays it stores to are changed in place."""
    text = text.replace(f"THREADS({threads}, {max(1, threads // 256)})", "")
    library = compiled(text, _driver(text, symbol, threads, len(arrays), len(sizes)), work)
    held = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays] + [ctypes.c_void_p(size) for size in sizes]
    library.run(*grid, (ctypes.c_void_p * len(held))(*held))


def run_kernel(kernel: Kernel, arrays: Sequence[Array], sizes: Mapping[str, int], work: Path) -> None:
    """Emit a kernel of one or two grid axes and run it. arrays: in the order of its parameters."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    grid = [int(np.asarray(evaluate(extent, env))) for extent in (*kernel.grid, const(1))]
    values = [sizes[symbol.name] for symbol in kernel.sizes]
    run(hip_text(kernel), assign_names(kernel).kernel, kernel.threads, (grid[0], grid[1]), arrays, values, work)


def compiled(text: str, driver: str, work: Path) -> ctypes.CDLL:
    """A library of emitted text and of what calls it. work: a folder of its own for each library."""
    text = text.replace("__attribute__((shared))", "static").replace("__attribute__((global))", "")
    text = text.replace("__attribute__((address_space(1)))", "")
    text = re.sub(r"asm volatile\([^;]*\);", "", text.replace("__attribute__((device))", ""))
    (work / "host.cpp").write_text(f"{_MACHINE}\n{text}\n{driver}", encoding="utf-8")
    flags = ("-x", "c++", "-std=c++17", "-O1", "-fPIC", "-nostdinc", "-fno-stack-protector", "-ffp-contract=off", "-w")
    flags += ("-mf16c",) if platform.machine() == "x86_64" else ()  # else conversions of f16 are library calls
    _zig(("clang", *flags, "-c", "host.cpp", "-o", "host.o"), work)
    _zig(("ld.lld", "-shared", "host.o", "-o", "host.so"), work)
    return ctypes.CDLL(str(work / "host.so"))


def _driver(text: str, symbol: str, threads: int, arrays: int, sizes: int) -> str:
    signature = text[text.index(f"void {symbol}(") :].split("(", 1)[1].split(")", 1)[0].split(", ")
    kinds = [parameter.rsplit(" ", 1)[0] for parameter in signature]
    call = [f"({kind})arguments[{i}]" for i, kind in enumerate(kinds[:arrays])]
    call += [f"(int)(long)arguments[{arrays + i}]" for i in range(sizes)]
    return _DRIVER.format(call=f"{symbol}({', '.join(call)})", threads=threads, count=arrays + sizes)


def _zig(arguments: Sequence[str], work: Path) -> None:
    done = subprocess.run(  # noqa: S603 reason: our own text, without a shell
        (sys.executable, "-m", "ziglang", *arguments), cwd=work, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
