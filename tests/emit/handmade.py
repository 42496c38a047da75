"""Kernels built from the IR's constructors, for tests of the emitter that must not depend on the DSL."""

from __future__ import annotations

from argus.core import algebra
from argus.core.algebra import const, coord, sym
from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.dtype import DType, bf16, f32
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import (
    Alloc,
    Assume,
    Buffer,
    Cast,
    Copy,
    Elem,
    For,
    Get,
    If,
    Kernel,
    Map,
    Mma,
    Staged,
    Stmt,
    Strided,
    Sync,
    Tag,
    View,
    Wait,
    whole,
)
from argus.core.layout import TV, Layout, Swizzle, row_major
from argus.core.span import Frame, Span
from argus.core.target import gfx942
from argus.core.tiling import TiledMma, spread

THREADS = 256
M, N, K = (Symbol(name, "size", 0) for name in "MNK")
THREAD = Symbol("thread", "thread", 0, THREADS - 1)
BLOCK_M, BLOCK_N = Symbol("m", "block", 0), Symbol("n", "block", 0)
STEP = Symbol("k", "loop", 0)


def at(line: int) -> Span:
    return Span((Frame("examples/handmade.py", line, 4, 10, "kernel"),))


def tensor(name: str, rows: Index, columns: Index, dtype: DType = bf16) -> Buffer:
    return Buffer(name, "global", dtype, (rows, columns), Strided((columns, const(1))))


def shared(name: str, shape: tuple[int, ...], swizzle: Swizzle | None = None, dtype: DType = bf16) -> Buffer:
    return Buffer(name, "shared", dtype, tuple(const(e) for e in shape), Staged(row_major(shape), swizzle))


def registers(name: str, tv: TV, dtype: DType = bf16) -> Buffer:
    return Buffer(name, "register", dtype, tuple(const(e) for e in tv.tile), tv)


def tile(buffer: Buffer, shape: tuple[int, int], block: tuple[Index, Index]) -> View:
    starts = tuple(algebra.mul(extent, index) for extent, index in zip(shape, block, strict=True))
    return View(buffer, tuple(const(e) for e in shape), tuple(algebra.add(s, coord(a)) for a, s in enumerate(starts)))


def stage(buffer: Buffer, slot: Index) -> View:
    return View(buffer, buffer.shape[1:], (slot, *(coord(axis) for axis in range(len(buffer.shape) - 1))))


def kernel(name: str, parameters: tuple[Buffer, ...], body: tuple[Stmt, ...], threads: int = THREADS) -> Kernel:
    """A kernel on a grid of (ceil(M / 128), ceil(N / 128)) blocks."""
    grid = (algebra.ceil_div(sym(M), 128), algebra.ceil_div(sym(N), 128))
    thread = Symbol("thread", "thread", 0, threads - 1)
    return Kernel(name, gfx942, parameters, (M, N, K), threads, grid, (BLOCK_M, BLOCK_N), thread, body)


def gemm(mma: Atom = isa.mfma_f32_32x32x8_bf16, k: int = 16) -> Kernel:
    """C = A B^T with tiles of 128 x 128 x 32 and two stages of shared memory."""
    a_, b_, c_ = tensor("A", sym(M), sym(K)), tensor("B", sym(N), sym(K)), tensor("C", sym(M), sym(N))
    mm = TiledMma(mma, (2, 2), (128, 128), 8, 32)
    assert k in (16, 32)
    by = spread((128, 32), THREADS, 8)
    swizzle = Swizzle(2, 3, 2)
    lds = shared("lds_a", (2, 128, 32), swizzle), shared("lds_b", (2, 128, 32), swizzle)
    next_ = registers("next_a", by), registers("next_b", by)
    acc, a, b = registers("acc", mm.C, f32), registers("a", mm.A), registers("b", mm.B)
    out = registers("out", mm.C)
    step, depth = sym(STEP), algebra.ceil_div(sym(K), 32)
    more = algebra.lt(algebra.add(step, 1), depth)

    def fetch(which: Index, line: int) -> tuple[Stmt, ...]:
        return tuple(
            Copy(isa.buffer_load[3], tile(t, (128, 32), (sym(block), which)), whole(r), by, 0.0, span=at(line + i))
            for i, (t, block, r) in enumerate(((a_, BLOCK_M, next_[0]), (b_, BLOCK_N, next_[1])))
        )

    def stow(slot: Index, line: int) -> tuple[Stmt, ...]:
        return (
            Wait("vmem", 0, span=at(line)),
            *(
                Copy(isa.ds_write_b128, whole(r), stage(s, slot), by, span=at(line + 1))
                for r, s in zip(next_, lds, strict=True)
            ),
            Wait("lds", 0, span=at(line + 2)),
        )

    def when(cond: Cond, body: tuple[Stmt, ...], line: int) -> Stmt:
        return If(cond, body, span=at(line))

    now = algebra.mod(step, 2)
    loop = For(
        STEP,
        const(0),
        depth,
        1,
        (
            when(more, fetch(algebra.add(step, 1), 20), 19),
            Copy(isa.ds_read_b128, stage(lds[0], now), whole(a), mm.A, span=at(22)),
            Copy(isa.ds_read_b128, stage(lds[1], now), whole(b), mm.B, span=at(23)),
            Wait("lds", 0, span=at(24)),
            Mma(mma, mm.tiling, whole(acc), whole(a), whole(b), algebra.eq(step, 0), span=at(25)),
            when(more, stow(algebra.mod(algebra.add(step, 1), 2), 27), 26),
            Sync(span=at(30)),
        ),
        span=at(18),
    )
    value: Elem = Cast(bf16, Get(whole(acc), (coord(0), coord(1))))
    body: tuple[Stmt, ...] = (
        Tag(whole(a_), (("m", coord(0)), ("k", coord(1))), span=at(1)),
        Tag(whole(b_), (("n", coord(0)), ("k", coord(1))), span=at(2)),
        Assume(algebra.le(1, sym(K)), span=at(3)),
        Assume(algebra.eq(algebra.mod(sym(K), 8), 0), span=at(3)),
        *(Alloc(buffer, span=at(4 + i)) for i, buffer in enumerate((*lds, *next_, acc, a, b))),
        *fetch(const(0), 12),
        *stow(const(0), 14),
        Sync(span=at(17)),
        loop,
        Alloc(out, span=at(31)),
        Map(whole(out), value, span=at(31)),
        Copy(
            isa.global_store[0], whole(out), tile(c_, (128, 128), (sym(BLOCK_M), sym(BLOCK_N))), mm.C, 0.0, span=at(32)
        ),
    )
    return kernel("gemm", (a_, b_, c_), body)


def vector_tv(threads: int, values: int, columns: int) -> TV:
    """Thread t holds `values` neighbours of row t // (columns / values)."""
    across = columns // values
    rows = threads // across
    return TV(Layout((across, rows), (values * rows, 1)), Layout(values, rows), (rows, columns))
