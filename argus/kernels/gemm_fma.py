"""GEMM of f32 by plain FMAs: one launch, for matrices too small to be split into parts, or two, with chunks of K.

Rows have any length. A kernel's name gives the layouts, as in `argus.kernels.layouts`.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.gemm_f32 import Adding, add_chunks
from argus.kernels.schedules.contraction import is_transposed, matrix_of
from argus.kernels.schedules.epilogues import Tail, apply
from argus.language import (
    TV,
    IntLike,
    Layout,
    ProgramTemplate,
    Template,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    cp_async,
    elements,
    f32,
    fma,
    global_store,
    kernel,
    load,
    loop,
    minimum,
    program,
    shared,
    sm_90a,
    spread,
    sync,
    total,
    when,
    workspace,
    zeros,
)

_ACROSS = 16
"""Threads along each axis of a tile."""
_PITCH = 4
"""Elements between rows of K in shared memory, so that their elements do not meet in one bank."""


@frozen
class Fma:
    """Tiles of 16 x 16 threads, which have `each` rows and `across` columns of elements, 0: as many; bk of K per stage.

    chunk: K of a chunk, a multiple of bk, for tiles that do not fill the GPU; a launch of its own adds the sums
    of the chunks; 0: one for all of K. vector: 4 if rows are multiples of 16 bytes, which copies and stores then move.
    """

    each: int = 4
    across: int = 0
    bk: int = 16
    stages: int = 4
    chunk: int = 0
    vector: int = 1
    target = sm_90a
    threads = _ACROSS * _ACROSS

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return _ACROSS * self.each

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return _ACROSS * (self.across or self.each)

    @property
    def layout(self) -> TV:
        """The elements of a tile of C: neighbouring threads have neighbouring columns, up to four of each."""
        rows, each, wide = self.rows, self.each, self.across or self.each
        near = min(wide, 4)
        return TV(
            Layout((_ACROSS, _ACROSS), (near * rows, each)),
            Layout((near, wide // near, each), (rows, _ACROSS * near * rows, 1)),
            (rows, self.columns),
        )


CONFIGS = {"fma": Fma(), "fma_each2": Fma(each=2), "fma_vector4": Fma(vector=4)}
IN_CHUNKS = {
    "fma_chunk128": Fma(chunk=128),
    "fma_chunk128_vector4": Fma(chunk=128, vector=4),
    "fma_low": Fma(each=1, across=8, chunk=256, vector=4),
}


def multiply_by_fmas(A: Tensor, B: Tensor, C: Tensor, cfg: Fma, tail: Tail | None = None) -> None:
    """C = A @ B^T of matrices (M, K) and (N, K); with chunks, C[s] is the sum over the s-th chunk of K.

    tail: what becomes of the sums before they are stored.
    """
    (M, K), N, bk, stages = A.shape, B.shape[0], cfg.bk, cfg.stages
    counts = ceil_div(M, cfg.rows), ceil_div(N, cfg.columns)
    assume(K >= 1, counts[0] * counts[1] < 1 << 24)
    whole = cfg.vector > 1
    if whole:
        assume(*(each.shape[-1 if not is_transposed(each) else 0] % cfg.vector == 0 for each in (A, B)))
        assume(C.shape[-1] % cfg.vector == 0)
    m, n, *z = block_id((*counts, ceil_div(K, cfg.chunk)) if cfg.chunk else counts)
    first = z[0] * (cfg.chunk // bk) if cfg.chunk else 0
    depth = minimum(cfg.chunk // bk, ceil_div(K, bk) - first) if cfg.chunk else ceil_div(K, bk)
    high = cfg.rows, cfg.columns
    held = [shared(f32, (stages, bk, each + _PITCH)) for each in high]
    by = [
        spread((bk, each), threads=cfg.threads, vector=min(cfg.vector, bk * each // cfg.threads))
        if is_transposed(of)
        else spread((each, bk), threads=cfg.threads, vector=1).T
        for of, each in zip((A, B), high, strict=True)
    ]

    def start(k: IntLike) -> None:
        for given, place, to, how, each in zip((A, B), (m, n), held, by, high, strict=True):
            box = to[k % stages].tile((bk, each), (0, 0))
            copy(given.T.tile((bk, each), (first + k, place)), box, via=cp_async, by=how, edge=0)

    acc = zeros(f32, cfg.layout)
    for k in range(stages - 1):
        with when(k < depth):
            start(k)
    cp_async.commit()
    cp_async.wait(0)
    for k in loop(depth):
        cp_async.wait(stages - 2)
        sync()
        for j in range(bk):
            a, b = (
                load(each[k % stages][j].tile((extent,), (0,)), cfg.layout.axis(axis))
                for axis, (each, extent) in enumerate(zip(held, high, strict=True))
            )
            acc[:] = fma(a, b, acc)
        with when(k + stages - 1 < depth):
            start(k + stages - 1)
        cp_async.commit()
    stores = None if whole else tuple(each for each in global_store if each.vector_bits == f32.bits)
    found = acc if tail is None else apply(tail, acc, (m, n))
    copy(found.to(C.dtype), matrix_of(C, z).tile(high, (m, n)), via=stores, edge=0)


def gemm_fma(*, a_transposed: bool, b_transposed: bool) -> Template:
    """C = op(A) op(B)."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", f32], Tensor["K N" if b_transposed else "N K", f32]

    @kernel(configs=CONFIGS)
    def gemm_by_fmas(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: Fma) -> None:
        a, b = A.T if a_transposed else A, B.T if b_transposed else B
        multiply_by_fmas(a, b, C, cfg)
        _claim_product(a, b, C)

    return gemm_by_fmas


def gemm_fma_chunks(*, a_transposed: bool, b_transposed: bool) -> ProgramTemplate:
    """C = op(A) op(B), of sums over chunks of K."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", f32], Tensor["K N" if b_transposed else "N K", f32]

    @kernel
    def multiply_chunks(A: of_a, B: of_b, C: Tensor["D M N", f32], *, cfg: Fma) -> None:
        multiply_by_fmas(A.T if a_transposed else A, B.T if b_transposed else B, C, cfg)

    @program(configs=IN_CHUNKS)
    def gemm_by_chunks(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: Fma) -> None:
        a, b = A.T if a_transposed else A, B.T if b_transposed else B
        part = workspace(f32, (ceil_div(a.shape[1], cfg.chunk), *C.shape))
        multiply_chunks(A, B, part, cfg=cfg)
        add_chunks(part, C, cfg=Adding(cfg.vector > 1))
        _claim_product(a, b, C)

    return gemm_by_chunks


def _claim_product(A: Tensor, B: Tensor, C: Tensor) -> None:
    left, right = elements(A), elements(B)
    assert_equals(C, lambda m, n: total(lambda k: left(m, k) * right(n, k), over=A.shape[1]))


_LAYOUTS = {f"gemm_{'t' if a else 'n'}{'n' if b else 't'}_f32": (a, b) for a in (False, True) for b in (False, True)}
FAMILIES: dict[str, Template] = {name: gemm_fma(a_transposed=a, b_transposed=b) for name, (a, b) in _LAYOUTS.items()}
CHUNKED: dict[str, ProgramTemplate] = {
    name: gemm_fma_chunks(a_transposed=a, b_transposed=b) for name, (a, b) in _LAYOUTS.items()
}


def configuration(name: str) -> Fma | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or IN_CHUNKS.get(name) or config_of(name, (Fma,))
