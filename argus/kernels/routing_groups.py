"""Which experts tokens may choose where these are in groups, by the groups' scores, in bf16, f16 and f32."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.schedules.routing import EXPERTS
from argus.kernels.schedules.routing_groups import GroupRows, keep_groups, score_groups
from argus.language import DType, Int, Template, Tensor, bf16, f16, f32, kernel

CONFIGS = {f"groups_of_{32 << n}": GroupRows(1 << n) for n in range((EXPERTS // 32).bit_length())}
"""The configurations, by the most experts of a group."""


def _kept() -> Template:
    @kernel(configs=CONFIGS)
    def keep_groups_of(S: Tensor["T G", f32], M: Tensor["T G D", f32], *, top: Int, cfg: GroupRows) -> None:
        """M[t, g, i]: 1 where group g is among the best of token t, else 0."""
        keep_groups(S, M, top, cfg)

    return keep_groups_of


def _plain(dtype: DType) -> Template:
    @kernel(configs=CONFIGS, name=f"score_groups_{dtype}")
    def made(X: Tensor["T G D", dtype], S: Tensor["T G", f32], *, cfg: GroupRows) -> None:
        score_groups(X, None, S, cfg)

    return made


def _biased(dtype: DType) -> Template:
    @kernel(configs=CONFIGS, name=f"score_groups_biased_{dtype}")
    def made(X: Tensor["T G D", dtype], B: Tensor["G D", f32], S: Tensor["T G", f32], *, cfg: GroupRows) -> None:
        score_groups(X, B, S, cfg)

    return made


SCORES: dict[tuple[str, bool], Template] = {
    (str(dtype), biased): (_biased if biased else _plain)(dtype)
    for dtype in (bf16, f16, f32)
    for biased in (False, True)
}
"""The kernels of groups' scores, by element type and whether there are biases."""
KEPT = _kept()
"""The kernel of the selected groups."""


def choose(size: int) -> str:
    """The configuration for groups of so many experts."""
    return next(name for name, each in CONFIGS.items() if size <= each.layout.tile[1])
