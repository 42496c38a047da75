"""GEMM of f32 matrices as products of bf16 parts, split where they are multiplied; the claim is that of `gemm_f32`."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.config_names import config_of
from argus.kernels.gemm_f32 import Adding, add_chunks
from argus.kernels.schedules.parts_at_once import AtOnce, split_and_multiply
from argus.kernels.schedules.parts_claims import rounded_product
from argus.language import (
    ProgramTemplate,
    Template,
    Tensor,
    assert_equals,
    ceil_div,
    elements,
    f32,
    kernel,
    program,
    total,
    workspace,
)

CONFIGS = {"at_once": AtOnce(), "at_once_any": AtOnce(wide=False), "at_once_high": AtOnce(products=3)}
IN_CHUNKS = {"at_once_chunk4096": AtOnce(chunk=4096), "at_once_chunk128": AtOnce(chunk=128, compensated=True)}


def at_once(*, a_transposed: bool, b_transposed: bool) -> tuple[Template, ProgramTemplate]:
    """C = op(A) op(B): by one launch, and of sums over chunks of K."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", f32], Tensor["K N" if b_transposed else "N K", f32]

    def as_rows(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
        return A.T if a_transposed else A, B.T if b_transposed else B

    def claim_product(A: Tensor, B: Tensor, C: Tensor, cfg: AtOnce) -> None:
        (a, b), depth = as_rows(A, B), as_rows(A, B)[0].shape[1]
        left, right = elements(a), elements(b)
        assert_equals(
            C, lambda m, n: total(lambda k: rounded_product(left(m, k), right(n, k), cfg.products), over=depth)
        )

    @kernel(configs=CONFIGS)
    def gemm_f32_at_once(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: AtOnce) -> None:
        split_and_multiply(*as_rows(A, B), C, cfg)
        claim_product(A, B, C, cfg)

    @kernel
    def multiply_chunks(A: of_a, B: of_b, C: Tensor["D M N", f32], *, cfg: AtOnce) -> None:
        split_and_multiply(*as_rows(A, B), C, cfg)

    @program(configs=IN_CHUNKS)
    def gemm_f32_chunks_at_once(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: AtOnce) -> None:
        part = workspace(f32, (ceil_div(as_rows(A, B)[0].shape[1], cfg.chunk), *C.shape))
        multiply_chunks(A, B, part, cfg=cfg)
        add_chunks(part, C, cfg=Adding(cfg.wide))
        claim_product(A, B, C, cfg)

    return gemm_f32_at_once, gemm_f32_chunks_at_once


_MADE = {
    f"gemm_{'t' if a else 'n'}{'n' if b else 't'}_f32": at_once(a_transposed=a, b_transposed=b)
    for a in (False, True)
    for b in (False, True)
}
FAMILIES: dict[str, Template] = {name: one for name, (one, _) in _MADE.items()}
CHUNKED: dict[str, ProgramTemplate] = {name: chunked for name, (_, chunked) in _MADE.items()}


def configuration(name: str) -> AtOnce | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or IN_CHUNKS.get(name) or config_of(name, (AtOnce,))
