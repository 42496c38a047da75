"""What layers of experts share: the copy of rows in the order of experts, the sums of tokens, and the claim."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.grouped import CONFIGS as PRODUCTS
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped_gated import Activation, gated_element
from argus.kernels.schedules.moe_rows import Routing, RowCopies, RowSums, add_rows, gather_rows
from argus.language import (
    DType,
    Int,
    Template,
    Tensor,
    Value,
    assert_equals,
    elements,
    f32,
    i32,
    kernel,
    scalar,
    total,
)

CDNA3 = {name: each for name, each in PRODUCTS.items() if isinstance(each, Cdna3Interleaved) and each.bm <= 128}
"""The configurations of products on MI300X by which the registers hold the sums of two products, too."""


def ends(dtype: DType) -> tuple[Template, Template]:
    """The first launch of a layer, and the last."""
    of_x, of_rows, of_choices = Tensor["T K", dtype], Tensor["R K", dtype], Tensor["T J", i32]
    of_factors, of_starts, of_tokens = Tensor["T J", f32], Tensor["S", i32], Tensor["R", i32]

    @kernel
    def moe_gather(X: of_x, tokens: of_tokens, A: of_rows, *, cfg: RowCopies) -> None:
        """A[r] = X[tokens[r]]."""
        gather_rows(X, tokens, A, cfg)

    @kernel
    def moe_sum(
        D: of_rows,
        weights: of_factors,
        ids: of_choices,
        starts: of_starts,
        tokens: of_tokens,
        inverse: of_choices,
        Y: of_x,
        *,
        cfg: RowSums,
    ) -> None:
        """Y[t] = sum over j of weights[t, j] * D[inverse[t, j]]."""
        add_rows(D, weights, Routing(ids, starts, tokens, inverse), Y, cfg)

    return moe_gather, moe_sum


def claim_layer(
    X: Tensor, matrices: tuple[Tensor, Tensor], choices: tuple[Tensor, Tensor], Y: Tensor, activation: Activation
) -> None:
    """Claim Y[t] = sum over j of weights[t, j] * V[e] (activation(W[e, 0] X[t]) * (W[e, 1] X[t])), with e = ids[t, j].

    matrices: W (experts, 2, N, K) and V (experts, K, N). choices: ids and weights, (tokens, choices).
    """
    (W, V), (ids, weights) = matrices, choices
    gate, up, of_down, of_weights = W[:, 0], W[:, 1], elements(V), elements(weights)

    def value(t: Int, k: Int) -> Value:
        def chosen(j: Int) -> Value:
            def product(n: Int) -> Value:
                return gated_element(X, gate, up, activation, (e, t, n)) * of_down(e, k, n)

            e = scalar(ids[t, j])
            return of_weights(t, j) * total(product, over=W.shape[2])

        return total(chosen, over=ids.shape[1])

    assert_equals(Y, value)
