"""GEMM of f32 matrices as products of bf16 parts, split where they are multiplied; the claim is that of `gemm_f32`."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.config_names import config_of
from argus.kernels.gemm_f32 import Adding, add_chunks, by_layout, claim_product, matrix_types
from argus.kernels.schedules.parts_at_once import AtOnce, split_and_multiply
from argus.language import (
    ProgramTemplate,
    Template,
    Tensor,
    ceil_div,
    f32,
    kernel,
    program,
    workspace,
)

CONFIGS = {"at_once": AtOnce(), "at_once_any": AtOnce(wide=False), "at_once_high": AtOnce(products=3)}
IN_CHUNKS = {"at_once_chunk4096": AtOnce(chunk=4096), "at_once_chunk128": AtOnce(chunk=128, compensated=True)}


def at_once(*, a_transposed: bool, b_transposed: bool, batched: bool = False, shared: bool = False) -> Template:
    """C = op(A) op(B) of f32, for the layouts of `argus.kernels.layouts`, and of `argus.kernels.batched`."""
    of_a, of_b, of_c = matrix_types(
        a_transposed=a_transposed, b_transposed=b_transposed, batched=batched, shared=shared
    )

    @kernel(configs=CONFIGS)
    def gemm_f32_at_once(A: of_a, B: of_b, C: of_c, *, cfg: AtOnce) -> None:
        a, b = A.mT if a_transposed else A, B.mT if b_transposed else B
        split_and_multiply(a, b, C, cfg)
        claim_product(a, b, C, cfg.products)

    return gemm_f32_at_once


def chunks_at_once(*, a_transposed: bool, b_transposed: bool) -> ProgramTemplate:
    """C = op(A) op(B), of sums over chunks of K."""
    of_a, of_b = Tensor["K M" if a_transposed else "M K", f32], Tensor["K N" if b_transposed else "N K", f32]

    @kernel
    def multiply_chunks(A: of_a, B: of_b, C: Tensor["D M N", f32], *, cfg: AtOnce) -> None:
        split_and_multiply(A.T if a_transposed else A, B.T if b_transposed else B, C, cfg)

    @program(configs=IN_CHUNKS)
    def gemm_f32_chunks_at_once(A: of_a, B: of_b, C: Tensor["M N", f32], *, cfg: AtOnce) -> None:
        a, b = A.T if a_transposed else A, B.T if b_transposed else B
        part = workspace(f32, (ceil_div(a.shape[1], cfg.chunk), *C.shape))
        multiply_chunks(A, B, part, cfg=cfg)
        add_chunks(part, C, cfg=Adding(cfg.wide))
        claim_product(a, b, C, cfg.products)

    return gemm_f32_chunks_at_once


FAMILIES: dict[str, Template] = by_layout(at_once)
CHUNKED: dict[str, ProgramTemplate] = {
    f"gemm_{'t' if a else 'n'}{'n' if b else 't'}_f32": chunks_at_once(a_transposed=a, b_transposed=b)
    for a in (False, True)
    for b in (False, True)
}


def configuration(name: str) -> AtOnce | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or IN_CHUNKS.get(name) or config_of(name, (AtOnce,))
