"""A layer of experts for few tokens, in two launches, which read the matrices of each choice where they are.

Or in four, where choices are added atomically.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from argus.kernels.moe_ends import claim_layer
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.moe_choices import (
    Choices,
    Dots,
    WholeRows,
    add_choices,
    clear,
    convert,
    first_of_choices,
    second_of_choices,
)
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace

CONFIGS = {
    f"{name}_{256 * steps}": Choices(Dots(1, 8, checks=True), Dots(1, steps, unroll=2 if steps <= 6 else 1), atomic)
    for name, atomic in (("choices", False), ("added", True))
    for steps in (3, 6, 8, 16)
}
"""The configurations, by the most elements between the products."""
_WHOLE = WholeRows()


def family(dtype: DType, activation: Activation) -> ProgramTemplate:
    """The program for elements of this type."""
    of_x, of_both, of_down = Tensor["T K", dtype], Tensor["E 2 N K", dtype], Tensor["E K N", dtype]
    of_sums = Tensor["T K", f32]
    of_hidden, of_choices, of_factors = Tensor["T J N", dtype], Tensor["T J", i32], Tensor["T J", f32]

    @kernel
    def moe_choices_first(X: of_x, W: of_both, ids: of_choices, H: of_hidden, *, cfg: Dots) -> None:
        """H[t, j] = activation(W[e, 0] X[t]) * (W[e, 1] X[t]), with e = ids[t, j]."""
        first_of_choices(X, W[:, 0], W[:, 1], ids, H, activation, cfg)

    @kernel
    def moe_choices_second(
        H: of_hidden, V: of_down, ids: of_choices, weights: of_factors, Y: of_x, *, cfg: Dots
    ) -> None:
        """Y[t] = sum over j of weights[t, j] * V[e] H[t, j], with e = ids[t, j]."""
        second_of_choices(H, V, ids, weights, Y, cfg)

    @kernel
    def moe_choices_clear(S: of_sums, *, cfg: WholeRows) -> None:
        """S = 0."""
        clear(S, cfg)

    @kernel
    def moe_choices_add(
        H: of_hidden, V: of_down, ids: of_choices, weights: of_factors, S: of_sums, *, cfg: Dots
    ) -> None:
        """S[t] += sum over j of weights[t, j] * V[e] H[t, j], with e = ids[t, j]."""
        add_choices(H, V, ids, weights, S, cfg)

    @kernel
    def moe_choices_convert(S: of_sums, Y: of_x, *, cfg: WholeRows) -> None:
        """Y = S."""
        convert(S, Y, cfg)

    @program(configs=CONFIGS)
    def moe(X: of_x, W: of_both, V: of_down, ids: of_choices, weights: of_factors, Y: of_x, *, cfg: Choices) -> None:
        """Y[t] = sum over j of weights[t, j] * V[e] (activation(W[e, 0] X[t]) * (W[e, 1] X[t])), with e = ids[t, j]."""
        (tokens, choices), (_, _, N, _) = ids.shape, W.shape
        H = workspace(dtype, (tokens, choices, N))
        moe_choices_first(X, W, ids, H, cfg=cfg.first)
        if cfg.atomic:
            S = workspace(f32, X.shape)
            moe_choices_clear(S, cfg=_WHOLE)
            moe_choices_add(H, V, ids, weights, S, cfg=cfg.second)
            moe_choices_convert(S, Y, cfg=_WHOLE)
        else:
            moe_choices_second(H, V, ids, weights, Y, cfg=cfg.second)

        claim_layer(X, (W, V), (ids, weights), Y, activation)

    return moe


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(dtype), activation): family(dtype, activation) for dtype in (bf16, f16) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
