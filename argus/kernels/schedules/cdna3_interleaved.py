"""The GEMM schedule on MI300X of four waves, each with all registers of a SIMD: loads are issued between the MFMAs.

No second wave hides latency, so that the instructions of each wave are interleaved: in four phases of an iteration a
wave multiplies what it holds while it moves what it multiplies next. One LDS buffer is enough, as half of the next tile
and half of this one are in registers when LDS is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from attrs import evolve, frozen

from argus.kernels.schedules.cdna3 import register_file
from argus.kernels.schedules.contraction import Contraction, is_transposed, matrix_of, staggered
from argus.kernels.schedules.epilogues import Epilogue, TileCoord, identity
from argus.language import (
    TV,
    DType,
    Fragment,
    Int,
    IntLike,
    Layout,
    Swizzle,
    Tensor,
    TiledMma,
    assume,
    block_id,
    buffer_load,
    buffer_store,
    ceil_div,
    copy,
    ds_read_b128,
    f32,
    free_order,
    gfx942,
    global_load,
    i8,
    i32,
    interleave,
    lds,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_16x16x16_f16,
    mfma_f32_16x16x32_fp8_fp8,
    mfma_f32_32x32x8_bf16,
    mfma_f32_32x32x8_f16,
    mfma_f32_32x32x16_fp8_fp8,
    mfma_i32_16x16x32_i8,
    mfma_i32_32x32x16_i8,
    mma,
    registers,
    remap_xcd,
    sched_barrier,
    shared,
    spread,
    sync,
    vmem,
    zeros,
)

_CHUNK = 16
"""Bytes that a lane moves at once."""
_BITS = 3
"""A swizzle of 8 chunks, which span all banks."""
_HALVES = 2
MOST_INTEGERS = 1 << 17
"""Products of the least i8, -128, of which an i32 holds no sum."""


@frozen
class Cdna3Interleaved:
    """MI300X: a bm x bn tile by 2 x 2 waves, bk of K per iteration.

    group: rows of a super-tile that one XCD takes, 0 for the hardware's order. mfma: rows of the MFMA instruction.
    wide: rows of C begin at multiples of 16 bytes, and are stored in vectors. ordered: `sched_group_barrier`
    fixes the order of loads and MFMAs. agprs: accumulators are in AccVGPRs. align: of rows of A and B (columns, of a
    column-major one), in bytes: each load is of that many at most. stagger: as in `staggered`. far: B is loaded
    by 64-bit addresses, as it may take more than a descriptor spans. free: as `free_order`.
    """

    bm: int = 256
    bn: int = 256
    bk: int = 64
    group: int = 4
    mfma: int = 32
    wide: bool = True
    ordered: bool = True
    agprs: bool = True
    align: int = _CHUNK
    far: bool = False
    stagger: int = 0
    free: bool = False
    target = gfx942
    threads = 256


def cdna3_interleaved(
    problem: Contraction,
    cfg: Cdna3Interleaved,
    epilogue: Epilogue = identity,
    scales: Callable[[TileCoord, TiledMma], Scales] | None = None,
) -> None:
    """C^T = B @ A^T, as the sums of an MFMA lie in runs of four rows, which are then columns of C.

    scales: of a tile, for the sums of each tile of K.
    """
    acc, (m, n, *z) = _multiplied(problem, (problem.B,), cfg, scales)
    parts = [(m, _HALVES * n + i) for i in range(_HALVES)]
    deferred = [epilogue(sums.T, at) for sums, at in zip(acc, parts, strict=True)]
    vmem.wait(0)
    for sums, made, at in zip(acc, deferred, parts, strict=True):
        problem.complete(sums)
        _store_part(problem, cfg, made(), (at, z))


def cdna3_interleaved_pair(
    problem: Contraction, other: Tensor, cfg: Cdna3Interleaved, combine: Callable[[Fragment, Fragment], Fragment]
) -> None:
    """C = combine(A @ B^T, A @ other^T) of matrices: half of a tile's columns are sums with B, half with `other`.

    A tile of C has bn / 2 columns.
    """
    acc, (m, n, *z) = _multiplied(problem, (problem.B, other), cfg)
    for sums in acc:
        problem.complete(sums)
    _store_part(problem, cfg, combine(acc[0].T, acc[1].T), ((m, n), z))


def _store_part(
    problem: Contraction, cfg: Cdna3Interleaved, values: Fragment, place: tuple[TileCoord, Sequence[Int]]
) -> None:
    """Store a part of bm x bn / 2. place: its coordinate among such parts, and the product of a batch."""
    at, z = place
    shape = cfg.bm, cfg.bn // _HALVES
    by_elements = tuple(each for each in buffer_store if each.vector_bits == problem.C.dtype.bits)
    via = buffer_store if cfg.wide else by_elements
    copy(values.to(problem.C.dtype), matrix_of(problem.C, z).tile(shape, at), via=via, edge=0)


def _multiplied(
    problem: Contraction,
    weights: Sequence[Tensor],
    cfg: Cdna3Interleaved,
    scales: Callable[[TileCoord, TiledMma], Scales] | None = None,
) -> tuple[list[Fragment], tuple[Int, ...]]:
    """The sums of a tile, transposed and in two halves, and the coordinate of the tile.

    weights: of one, the halves are of its rows; of two, one half is of each.
    """
    _assume_bounds(problem, cfg)
    if cfg.free:
        free_order()
    counts = problem.tiles(cfg.bm, cfg.bn // len(weights))
    m, n, *z = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    operands = Operands.of(matrix_of(problem.A, z), [matrix_of(each, z) for each in weights], cfg)
    made = None if scales is None else scales((m, n), operands.instruction)
    return operands.multiply((m, n), 0, ceil_div(problem.A.shape[-1], cfg.bk), made), (m, n, *z)


@frozen
class Scales:
    """Factors of the sums of a tile of K.

    load: issue the loads of those of a tile. factors: of the tile that was loaded last, those of both halves of the
    columns. add: to the sums of all of K (the first), those of a tile times their factors.
    """

    load: Callable[[IntLike], None]
    factors: Callable[[], Sequence[Fragment]]
    add: Callable[[Fragment, Fragment, Fragment], None]


@frozen
class Operands:
    """Matrices A (M, K) and B (N, K), of which there may be two, with room in registers and LDS for a tile of each."""

    A: _Operand
    B: tuple[_Operand, ...]
    cfg: Cdna3Interleaved

    @classmethod
    def of(cls, A: Tensor, B: Sequence[Tensor], cfg: Cdna3Interleaved) -> Operands:
        right = (_Operand.of(each, cfg.bn // len(B), cfg, far=cfg.far) for each in B)
        return cls(_Operand.of(A, cfg.bm, cfg), tuple(right), cfg)

    @property
    def instruction(self) -> TiledMma:
        """The products of half a tile's columns, by half a tile of K."""
        cfg, kind = self.cfg, self.A.tensor.dtype
        half, deep = cfg.bn // _HALVES, cfg.bk // _HALVES
        return mfma(_INSTRUCTIONS[cfg.mfma, str(kind)]).over(
            waves=(2, 2), tile=(half, cfg.bm), k=deep, k_run=_CHUNK * 8 // kind.bits
        )

    def on(self, A: Tensor, *B: Tensor) -> Operands:
        """Other matrices with the same room, of the same type and as dense along the same axes."""
        right = (evolve(each, tensor=tensor) for each, tensor in zip(self.B, B, strict=True))
        return evolve(self, A=evolve(self.A, tensor=A), B=tuple(right))

    def multiply(
        self,
        at: tuple[IntLike, IntLike],
        low: IntLike,
        high: IntLike,
        scales: Scales | None = None,
        more: list[Fragment] | None = None,
    ) -> list[Fragment]:
        """The transposed sums of tile `at` of A @ B^T, over tiles of K from `low` to below `high`: zeros if there are
        none. Of one B they are in halves of its rows; of two, one half is of each.

        scales: the products of each tile of K have sums of their own, which are scaled and added in f32. more: sums to
        which the products are added, in place of zeros.

        LDS is still being read at the end: wait and `sync` before its next use.
        """
        cfg, left, right, mm = self.cfg, self.A, self.B, self.instruction
        half, deep, per = cfg.bn // _HALVES, cfg.bk // _HALVES, _HALVES // len(right)
        kind, bits = left.tensor.dtype, left.tensor.dtype.bits
        acc = more or [zeros(_sums(kind), mm.C, file=register_file(cfg.agprs)) for _ in range(_HALVES)]
        sums = acc if scales is None else [registers(f32, mm.C) for _ in range(_HALVES)]
        a = [registers(kind, mm.B) for _ in range(_HALVES)]
        b = [[registers(kind, mm.A) for _ in range(_HALVES)] for _ in range(_HALVES)]
        products = prod(mm.tiling.repeat)
        vectors = (cfg.bm + cfg.bn) * cfg.bk * bits // (8 * _CHUNK * cfg.threads)

        def fetch(s: int) -> None:
            copy(left.lds.tile((cfg.bm, deep), (0, s)), a[s], via=ds_read_b128)
            for i in range(_HALVES):
                copy(right[i // per].lds.tile((half, deep), (i % per, s)), b[s][i], via=ds_read_b128)

        def product(i: int, s: int, moved: str) -> None:
            """The products of half i of B's rows, while as many instructions of the kind `moved` are issued."""
            mma(mm, sums[i], b[s][i], a[s], init=scales is not None and s == 0)
            if cfg.ordered:
                interleave(vectors, **{moved: 1}, mfma=products // vectors)
                sched_barrier()

        operands = (left, *right)
        load_tiles = partial(_load, list(zip(operands, (at[0], *(at[1] for _ in right)), strict=True)), 8 * cfg.align)

        def load(iteration: IntLike) -> None:
            k = low + staggered(iteration - low, high - low, at[0] // max(1, cfg.group), cfg.stagger)
            load_tiles(k)
            if scales is not None:
                scales.load(k)

        load(low)
        vmem.wait(0)
        _store(operands)
        lds.wait(0)
        sync()
        fetch(0)
        for k in loop(low, high):
            lds.wait(0)
            factors: Sequence[Fragment] = () if scales is None else scales.factors()
            load(k + 1)  # unused after the last tile
            product(0, 0, "global_read")
            fetch(1)
            product(1, 0, "lds_read")
            lds.wait(0)
            sync()  # the whole tile is in registers
            vmem.wait(0)
            _store(operands)
            product(0, 1, "lds_write")
            lds.wait(0)
            sync()
            fetch(0)
            product(1, 1, "lds_read")
            if scales is not None:
                for each, part, factor in zip(acc, sums, factors, strict=True):
                    scales.add(each, part, factor)
        return acc


def _assume_bounds(problem: Contraction, cfg: Cdna3Interleaved) -> None:
    problem.assume_aligned(stores=False, align=cfg.align)
    if cfg.wide:
        assume(problem.C.shape[-1] % (_CHUNK * 8 // problem.C.dtype.bits) == 0)
    assume_descriptors(problem.A, problem.B, problem.C)
    if problem.A.dtype is i8:
        assume(problem.A.shape[-1] < MOST_INTEGERS)


def assume_descriptors(*tensors: Tensor) -> None:
    """Assume that a buffer descriptor spans each of the tensors."""
    for each in tensors:
        size = each.shape[0]
        for extent in each.shape[1:]:
            size = size * extent
        assume(size * (each.dtype.bits // 8) <= (1 << 32) - _CHUNK)


def _sums(kind: DType) -> DType:
    """The type in which products are summed."""
    return i32 if kind is i8 else f32


@frozen
class _Operand:
    """A tile of A or B that is copied to LDS, row by row. held: as loaded; turned: as stored. far: without a
    descriptor.
    """

    tensor: Tensor
    lds: Tensor
    held: Fragment
    turned: Fragment
    far: bool

    @classmethod
    def of(cls, tensor: Tensor, rows: int, cfg: Cdna3Interleaved, *, far: bool = False) -> _Operand:
        kind, shape = tensor.dtype, (rows, cfg.bk)
        vector = _CHUNK * 8 // kind.bits
        to = shared(kind, shape, swizzle=Swizzle(_BITS, vector.bit_length() - 1, _BITS), banks=1)
        if not is_transposed(tensor):
            held = registers(kind, spread(shape, threads=cfg.threads, vector=vector))
            return cls(tensor, to, held, held, far)
        loaded, stored = _patches(shape, cfg.threads, vector)
        return cls(tensor, to, registers(kind, loaded), registers(kind, stored), far)


def _patches(shape: tuple[int, int], threads: int, vector: int) -> tuple[TV, TV]:
    """How threads hold a tile that is contiguous along its rows' numbers: patches of a vector of rows by a run of k.

    Consecutive lanes hold consecutive runs of the same rows, so that they store whole rows of LDS.
    """
    rows, depth = shape
    run = min(vector, rows * depth // (vector * threads))
    runs = depth // run
    apart = threads // runs
    more = rows // (vector * apart)
    lanes = Layout((runs, apart), (run * rows, vector))
    loaded = Layout((vector, run, more), (1, rows, vector * apart))
    stored = Layout((run, vector, more), (rows, 1, vector * apart))
    return TV(lanes, loaded, shape), TV(lanes, stored, shape)


def _load(operands: Sequence[tuple[_Operand, IntLike]], bits: int, k: IntLike) -> None:
    """Load tile k of K of each operand, and of its rows the tile beside it. bits: that a load takes at most."""
    for each, at in operands:
        family = global_load if each.far else buffer_load
        via = tuple(atom for atom in family if atom.vector_bits <= bits)
        copy(each.tensor.tile(each.held.shape, (at, k)), each.held, via=via, edge=0)


def _store(operands: Sequence[_Operand]) -> None:
    for each in operands:
        if each.turned is not each.held:
            each.turned[:] = each.held
        copy(each.turned, each.lds)


_INSTRUCTIONS = {
    (16, "bf16"): mfma_f32_16x16x16_bf16,
    (32, "bf16"): mfma_f32_32x32x8_bf16,
    (16, "f16"): mfma_f32_16x16x16_f16,
    (32, "f16"): mfma_f32_32x32x8_f16,
    (16, "e4m3fnuz"): mfma_f32_16x16x32_fp8_fp8,
    (32, "e4m3fnuz"): mfma_f32_32x32x16_fp8_fp8,
    (16, "i8"): mfma_i32_16x16x32_i8,
    (32, "i8"): mfma_i32_32x32x16_i8,
}
"""By rows and type."""
