"""GEMM of f32 by plain FMAs: one launch, for matrices too small to be split into parts.

Rows have any length. A kernel's name gives the layouts, as in `argus.kernels.layouts`.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.schedules.contraction import is_transposed
from argus.language import (
    TV,
    IntLike,
    Layout,
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
    shared,
    sm_90a,
    spread,
    sync,
    total,
    when,
    zeros,
)

_ACROSS = 16
"""Threads along each axis of a tile."""
_PITCH = 4
"""Elements between rows of K in shared memory, so that their elements do not meet in one bank."""


@frozen
class Fma:
    """Tiles of 16 rows x 16 columns of elements each, `each` x `each` a thread; bk of K per stage."""

    each: int = 4
    bk: int = 16
    stages: int = 4
    target = sm_90a
    threads = _ACROSS * _ACROSS

    @property
    def rows(self) -> int:
        """Rows, and columns, of a tile."""
        return _ACROSS * self.each

    @property
    def layout(self) -> TV:
        """The elements of a tile of C: neighbouring threads have neighbouring columns, four of each."""
        rows, each = self.rows, self.each
        return TV(
            Layout((_ACROSS, _ACROSS), (each * rows, each)),
            Layout((each, each), (rows, 1)),
            (rows, rows),
        )


CONFIGS = {"fma": Fma(), "fma_each2": Fma(each=2)}


def multiply_by_fmas(A: Tensor, B: Tensor, C: Tensor, cfg: Fma) -> None:
    """C = A @ B^T of matrices (M, K) and (N, K)."""
    (M, K), N, rows, bk, stages = A.shape, B.shape[0], cfg.rows, cfg.bk, cfg.stages
    assume(K >= 1, ceil_div(M, rows) * ceil_div(N, rows) < 1 << 24)
    m, n = block_id((ceil_div(M, rows), ceil_div(N, rows)))
    depth = ceil_div(K, bk)
    held = [shared(f32, (stages, bk, rows + _PITCH)) for _ in (A, B)]
    by = [
        spread((bk, rows), threads=cfg.threads, vector=1) if is_transposed(each) else _along_k(cfg) for each in (A, B)
    ]

    def start(k: IntLike) -> None:
        for given, place, to, how in zip((A, B), (m, n), held, by, strict=True):
            box = to[k % stages].tile((bk, rows), (0, 0))
            copy(given.T.tile((bk, rows), (k, place)), box, via=cp_async, by=how, edge=0)

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
            a = load(held[0][k % stages][j].tile((rows,), (0,)), cfg.layout.axis(0))
            b = load(held[1][k % stages][j].tile((rows,), (0,)), cfg.layout.axis(1))
            acc[:] = fma(a, b, acc)
        with when(k + stages - 1 < depth):
            start(k + stages - 1)
        cp_async.commit()
    stores = tuple(each for each in global_store if each.vector_bits == f32.bits)
    copy(acc, C.tile((rows, rows), (m, n)), via=stores, edge=0)
    left, right = elements(A), elements(B)
    assert_equals(C, lambda m, n: total(lambda k: left(m, k) * right(n, k), over=K))


def _along_k(cfg: Fma) -> TV:
    """The elements (k, row) of a tile that threads copy: neighbours have neighbouring k."""
    return spread((cfg.rows, cfg.bk), threads=cfg.threads, vector=1).T


def gemm_fma(*, a_transposed: bool, b_transposed: bool) -> Template:
    """C = op(A) op(B)."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", f32], Tensor["K N" if b_transposed else "N K", f32]

    @kernel(configs=CONFIGS)
    def gemm_by_fmas(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: Fma) -> None:
        multiply_by_fmas(A.T if a_transposed else A, B.T if b_transposed else B, C, cfg)

    return gemm_by_fmas


FAMILIES: dict[str, Template] = {
    f"gemm_{'t' if a else 'n'}{'n' if b else 't'}_f32": gemm_fma(a_transposed=a, b_transposed=b)
    for a in (False, True)
    for b in (False, True)
}


def configuration(name: str) -> Fma | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Fma,))
