"""GEMM of rows that are no multiples of 16 bytes: a launch copies the operands into rows that are, others multiply.

TMA reads rows that begin at multiples of 16 bytes. The copies end in zeros, so that the products of the longer rows are
those of the given ones.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import frozen

from argus.kernels.gemm import Config, multiply
from argus.kernels.layouts import configs_of
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.stream_k import Reduction, reduce_parts
from argus.kernels.streamk import CONFIGS as STREAMS
from argus.kernels.streamk import Stream, partial_sums
from argus.language import (
    DType,
    Int,
    ProgramTemplate,
    Tensor,
    assert_equals,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f16,
    f32,
    kernel,
    ld_global_b16,
    maximum,
    program,
    registers,
    sm_90a,
    spread,
    tag,
    workspace,
)

_CHUNK = 8
"""Elements of two bytes in 16 bytes."""


@frozen
class Copying:
    """The first launch: each block copies a tile of each operand; a warp reads 64 neighbours, and stores 128 bytes."""

    tile: tuple[int, int] = (16, 256)
    target = sm_90a
    threads = 256


def whole_chunks(length: Int) -> Int:
    """The least length of rows that is not below this one, and is a multiple of 16 bytes."""
    return _CHUNK * ceil_div(length, _CHUNK)


Product = Config | Stream
"""How copies are multiplied."""
SHARES = {name: each for name, each in STREAMS.items() if each.run == 1}
"""Split-K in a workspace: of other runs the result is not proved to be the sum of all products."""
_SPAN = 64
"""16-bit elements in 128 bytes, the box width of tiles whose rows lie along M or N."""


def shares_of(*, a_transposed: bool, b_transposed: bool) -> Mapping[str, Stream]:
    """The split-K configurations whose tiles of an M-major A, and of an N-major B, are whole spans."""
    return {
        name: each
        for name, each in SHARES.items()
        for of_a, of_b in ((each.bn, each.bm) if each.swap_ab else (each.bm, each.bn),)
        if not (a_transposed and of_a % _SPAN) and not (b_transposed and of_b % _SPAN)
    }


def _configs(*, a_transposed: bool, b_transposed: bool) -> Mapping[str, Product]:
    known = configs_of(a_transposed=a_transposed, b_transposed=b_transposed)
    taken = {name: each for name, each in known.items() if each.target is sm_90a and not isinstance(each, Narrow)}
    return {**taken, **shares_of(a_transposed=a_transposed, b_transposed=b_transposed)}


def padded(dtype: DType, *, a_transposed: bool, b_transposed: bool) -> ProgramTemplate:
    """C = op(A) op(B) by way of copies with longer rows, for the layouts of `argus.kernels.layouts`."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", dtype], Tensor["K N" if b_transposed else "N K", dtype]
    of_p, of_q = Tensor["L U" if a_transposed else "U L", dtype], Tensor["L V" if b_transposed else "V L", dtype]
    of_c, of_parts = Tensor["M N", dtype], Tensor["Z S R W", f32]

    def as_rows(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The operands as (M, K) and (N, K)."""
        return a.T if a_transposed else a, b.T if b_transposed else b

    @kernel
    def copy_operands(A: of_a, B: of_b, P: of_p, Q: of_q, *, cfg: Copying) -> None:
        """P = A and Q = B, and zeros beyond them."""
        by = spread(cfg.tile, threads=cfg.threads, vector=2)
        a, b = as_rows(A, B)
        tag(a, lambda m, k: dict(m=m, k=k))
        tag(b, lambda n, k: dict(n=n, k=k))
        assume(a.shape[1] >= 1, *(x % _CHUNK == 0 for x in (P.shape[1], Q.shape[1])))
        high, wide = (maximum(P.shape[axis], Q.shape[axis]) for axis in (0, 1))
        i, j = block_id((ceil_div(high, cfg.tile[0]), ceil_div(wide, cfg.tile[1])))
        held = [registers(dtype, by) for _ in (A, B)]
        for given, one in zip((A, B), held, strict=True):  # all loads first: none waits for a store
            copy(given.tile(cfg.tile, (i, j)), one, via=ld_global_b16, edge=0)
        for one, made in zip(held, (P, Q), strict=True):
            copy(one, made.tile(cfg.tile, (i, j)), edge=0)

    @kernel
    def multiply_copies(P: of_p, Q: of_q, C: of_c, *, cfg: Config, depth: Int) -> None:
        """C = op(P) op(Q), summed below `depth`, from where the copies are 0."""
        multiply(Contraction(*as_rows(P, Q), C, depth), cfg)

    @kernel
    def multiply_shares(P: of_p, Q: of_q, part: of_parts, *, cfg: Stream, rows: Int, columns: Int, depth: Int) -> None:
        """The partial sums of op(P) op(Q) within these extents, as in `argus.kernels.streamk`."""
        partial_sums(*as_rows(P, Q), part, cfg, (rows, columns, depth))

    @kernel
    def add_shares(part: of_parts, C: of_c, *, cfg: Reduction, depth: Int) -> None:
        """C = the sums of the partial sums."""
        reduce_parts(part, C, cfg, depth)

    @program(configs=_configs(a_transposed=a_transposed, b_transposed=b_transposed))
    def gemm_padded(A: of_a, B: of_b, C: of_c, *, cfg: Product) -> None:
        (M, K), (N, _) = (each.shape for each in as_rows(A, B))
        L = whole_chunks(K)
        P = workspace(dtype, (L, whole_chunks(M)) if a_transposed else (M, L))
        Q = workspace(dtype, (L, whole_chunks(N)) if b_transposed else (N, L))
        copy_operands(A, B, P, Q, cfg=Copying())
        if isinstance(cfg, Stream):
            part = workspace(f32, cfg.runs.parts(M, N))
            multiply_shares(P, Q, part, cfg=cfg, rows=M, columns=N, depth=K)
            add_shares(part, C, cfg=Reduction(cfg.runs), depth=K)
        else:
            multiply_copies(P, Q, C, cfg=cfg, depth=K)
        of_whole = Contraction(*as_rows(A, B), C, K)
        assert_equals(C, of_whole.element)

    return gemm_padded


FAMILIES: dict[str, ProgramTemplate] = {
    f"gemm_{'t' if a else 'n'}{'n' if b else 't'}{suffix}": padded(dtype, a_transposed=a, b_transposed=b)
    for dtype, suffix in ((bf16, ""), (f16, "_f16"))
    for a in (False, True)
    for b in (False, True)
}
"""By the names of the kernels for aligned rows."""
