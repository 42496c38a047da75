"""GEMM of f32 matrices whose tiles come by TMA and are split where they are multiplied; claims as `gemm_f32`."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.config_names import config_of
from argus.kernels.gemm_f32 import by_layout, claim_product, matrix_types
from argus.kernels.schedules.parts_in_ring import InRing, split_in_ring
from argus.language import ProgramTemplate, Template, kernel

CONFIGS = {"in_ring": InRing(), "in_ring_high": InRing(products=3)}


def in_ring(*, a_transposed: bool, b_transposed: bool, batched: bool = False, shared: bool = False) -> Template:
    """C = A op(B) of f32, for the layouts of `argus.kernels.layouts`, and of `argus.kernels.batched`."""
    of_a, of_b, of_c = matrix_types(
        a_transposed=a_transposed, b_transposed=b_transposed, batched=batched, shared=shared
    )

    @kernel(configs=CONFIGS)
    def gemm_f32_in_ring(A: of_a, B: of_b, C: of_c, *, cfg: InRing) -> None:
        a, b = A.mT if a_transposed else A, B.mT if b_transposed else B
        split_in_ring(a, b, C, cfg)
        claim_product(a, b, C, cfg.products)

    return gemm_f32_in_ring


FAMILIES: dict[str, Template] = {
    name: made for name, made in by_layout(in_ring).items() if not name.partition("_")[2].startswith("t")
}
"""Where rows of A are contiguous: each warpgroup splits its own."""
CHUNKED: dict[str, ProgramTemplate] = {}


def configuration(name: str) -> InRing | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (InRing,))
