"""Split-K and stream-K on MI300X, for tiles that do not fill the GPU: every layout of operands, bf16 and f16, batches.

A program of two launches: partial sums in a workspace, then their sum (`schedules.stream_k`). One text serves all
families, which are named as in `argus.kernels.layouts` and `argus.kernels.batched`.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.config_names import config_of
from argus.kernels.schedules.stream_cdna3 import CDNA3, Cdna3Stream, stream_parts
from argus.kernels.schedules.stream_k import Reduction, reduce_parts
from argus.language import DType, Int, ProgramTemplate, Tensor, bf16, f16, f32, kernel, program, workspace

CONFIGS: dict[str, Cdna3Stream] = CDNA3


def streams(family: str, dtype: DType) -> ProgramTemplate:
    """C = op(A) op(B), or a batch of such products, by way of f32 partial sums in a workspace.

    family: `gemm` or `bmm` and the layouts of A and B, such as `gemm_tn`; `bmm_nt_shared`: one A for all products.
    """
    kind, layouts, *shared = family.removesuffix("_f16").split("_")
    batch = "Z " if kind == "bmm" else ""
    a_transposed, b_transposed = layouts[0] == "t", layouts[1] == "n"
    of_a = Tensor[("" if shared else batch) + ("K M" if a_transposed else "M K"), dtype]
    of_b = Tensor[batch + ("K N" if b_transposed else "N K"), dtype]
    of_c, of_parts = Tensor[batch + "M N", dtype], Tensor[batch + "P S R W", f32]

    def as_rows(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The operands as (M, K) and (N, K)."""
        return a.mT if a_transposed else a, b.mT if b_transposed else b

    @kernel(name=f"{family}_parts")
    def partial_sums(A: of_a, B: of_b, part: of_parts, *, cfg: Cdna3Stream) -> None:
        stream_parts(*as_rows(A, B), part, cfg)

    @kernel(name=f"{family}_sum")
    def add_parts(part: of_parts, C: of_c, *, cfg: Reduction, depth: Int) -> None:
        reduce_parts(part, C, cfg, depth)

    @program(configs=CONFIGS, name=f"{family}_streams")
    def gemm_streams(A: of_a, B: of_b, C: of_c, *, cfg: Cdna3Stream) -> None:
        a, b = as_rows(A, B)
        part = workspace(f32, (*C.shape[:-2], *cfg.runs.parts(a.shape[-2], b.shape[-2])))
        partial_sums(A, B, part, cfg=cfg)
        add_parts(part, C, cfg=cfg.reduction, depth=a.shape[-1])

    return gemm_streams


gemm_nt_streams, gemm_nt_f16_streams = streams("gemm_nt", bf16), streams("gemm_nt_f16", f16)
gemm_nn_streams, gemm_nn_f16_streams = streams("gemm_nn", bf16), streams("gemm_nn_f16", f16)
gemm_tn_streams, gemm_tn_f16_streams = streams("gemm_tn", bf16), streams("gemm_tn_f16", f16)
gemm_tt_streams, gemm_tt_f16_streams = streams("gemm_tt", bf16), streams("gemm_tt_f16", f16)
bmm_nt_streams, bmm_nt_f16_streams = streams("bmm_nt", bf16), streams("bmm_nt_f16", f16)
bmm_nn_streams, bmm_nn_f16_streams = streams("bmm_nn", bf16), streams("bmm_nn_f16", f16)
bmm_tn_streams, bmm_tn_f16_streams = streams("bmm_tn", bf16), streams("bmm_tn_f16", f16)
bmm_tt_streams, bmm_tt_f16_streams = streams("bmm_tt", bf16), streams("bmm_tt_f16", f16)
bmm_nt_shared_streams = streams("bmm_nt_shared", bf16)
bmm_nn_shared_streams = streams("bmm_nn_shared", bf16)
bmm_nt_shared_f16_streams = streams("bmm_nt_shared_f16", f16)
bmm_nn_shared_f16_streams = streams("bmm_nn_shared_f16", f16)

FAMILIES: dict[str, ProgramTemplate] = {
    each.name.removesuffix("_streams"): each for each in tuple(vars().values()) if isinstance(each, ProgramTemplate)
}
"""By the family of single kernels for the same operands."""


def configuration(name: str) -> Cdna3Stream | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Cdna3Stream,))
