"""Attention's gradients on Hopper of sequences of any lengths, stored back to back: three kernels, in this order."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`: those that name a width and a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import evolve, frozen

from argus.kernels.schedules.attention_backward_keys import BackwardKeys, backward_keys
from argus.kernels.schedules.attention_backward_packed import PackedBackward
from argus.kernels.schedules.attention_backward_queries import BackwardQueries, backward_queries
from argus.kernels.schedules.attention_backward_rows import BackwardRows, backward_rows
from argus.language import DType, Int, Template, Tensor, bf16, f16, f32, i32, kernel


@frozen
class PackedKeys(BackwardKeys):
    """The configuration of the gradients of keys and values."""

    causal: bool = False


@frozen
class PackedQueries(BackwardQueries):
    """The configuration of the gradients of queries."""

    causal: bool = False


ROWS_CONFIGS = {"packed": BackwardRows()}
MASKS = ("full", "causal")
"""The configurations of the other kernels, by name."""


@frozen
class PackedGradients:
    """The kernels of one head dimension and type: L and Delta of each query, then the gradients from these.

    rows: pads L and Delta to a multiple of `BackwardRows.rows` numbers for each head. keys: gives the gradients of keys
    and of values, or those of values are given by `values`, of 256 elements a head, as the registers do not hold both.
    """

    rows: Template
    keys: Template
    queries: Template
    values: Template | None = None

    @property
    def gradients(self) -> tuple[tuple[Template, tuple[str, ...]], ...]:
        """The kernels after the first one, and the tensors that each gives."""
        if self.values is None:
            return (self.keys, ("dK", "dV")), (self.queries, ("dQ",))
        return (self.keys, ("dK",)), (self.values, ("dV",)), (self.queries, ("dQ",))


def _masks(of: PackedKeys | PackedQueries) -> Mapping[str, PackedKeys | PackedQueries]:
    return {name: evolve(of, causal=name == "causal") for name in MASKS}


def family(width: int, dtype: DType) -> PackedGradients:
    """The kernels for heads of so many elements of this type."""
    suffix = f"{width}{'' if dtype is bf16 else f'_{dtype}'}"
    of_queries, of_keys = Tensor[f"H S {width}", dtype], Tensor[f"G T {width}", dtype]
    sums, number, starts = Tensor["H R", f32], Tensor["1", f32], Tensor["N", i32]

    @kernel(configs=ROWS_CONFIGS, name=f"packed_backward_rows_{suffix}")
    def rows(
        O: Tensor[f"S H {width}", dtype],  # noqa: E741 reason: the output's name in every paper
        dO: Tensor[f"S H {width}", dtype],
        LSE: Tensor["H S", f32],
        L: sums,
        Delta: sums,
        *,
        cfg: BackwardRows,
    ) -> None:
        backward_rows(O, dO, LSE, L, Delta, cfg)

    @kernel(configs=_masks(PackedKeys()), name=f"packed_backward_keys_{suffix}")
    def keys(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: sums,
        Delta: sums,
        scale: number,
        starts_q: starts,
        starts_k: starts,
        dK: Tensor[f"T G {width}", dtype],
        dV: Tensor[f"T G {width}", dtype],
        *,
        sequences: Int,
        longest_q: Int,
        longest_k: Int,
        cfg: PackedKeys,
    ) -> None:
        given = Q, K, V, dO, L, Delta, scale, starts_q, starts_k, sequences, longest_q, longest_k
        backward_keys(PackedBackward(*given, cfg.causal), dK, dV, cfg)

    @kernel(configs=_masks(PackedKeys(bm=32, of="keys")), name=f"packed_backward_keys_{suffix}")
    def keys_alone(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: sums,
        Delta: sums,
        scale: number,
        starts_q: starts,
        starts_k: starts,
        dK: Tensor[f"T G {width}", dtype],
        *,
        sequences: Int,
        longest_q: Int,
        longest_k: Int,
        cfg: PackedKeys,
    ) -> None:
        given = Q, K, V, dO, L, Delta, scale, starts_q, starts_k, sequences, longest_q, longest_k
        backward_keys(PackedBackward(*given, cfg.causal), dK, None, cfg)

    @kernel(configs=_masks(PackedKeys(of="values")), name=f"packed_backward_values_{suffix}")
    def values(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: sums,
        Delta: sums,
        scale: number,
        starts_q: starts,
        starts_k: starts,
        dV: Tensor[f"T G {width}", dtype],
        *,
        sequences: Int,
        longest_q: Int,
        longest_k: Int,
        cfg: PackedKeys,
    ) -> None:
        given = Q, K, V, dO, L, Delta, scale, starts_q, starts_k, sequences, longest_q, longest_k
        backward_keys(PackedBackward(*given, cfg.causal), None, dV, cfg)

    wide = width > 128

    @kernel(
        configs=_masks(PackedQueries(bn=32, stages=2) if wide else PackedQueries()),
        name=f"packed_backward_queries_{suffix}",
    )
    def queries(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: sums,
        Delta: sums,
        scale: number,
        starts_q: starts,
        starts_k: starts,
        dQ: Tensor[f"S H {width}", dtype],
        *,
        sequences: Int,
        longest_q: Int,
        longest_k: Int,
        cfg: PackedQueries,
    ) -> None:
        given = Q, K, V, dO, L, Delta, scale, starts_q, starts_k, sequences, longest_q, longest_k
        backward_queries(PackedBackward(*given, cfg.causal), dQ, cfg)

    return PackedGradients(rows, keys_alone, queries, values) if wide else PackedGradients(rows, keys, queries)


FAMILIES: Mapping[DType, Mapping[int, PackedGradients]] = {
    dtype: {width: family(width, dtype) for width in (64, 128, 256)} for dtype in (bf16, f16)
}
"""The kernels by type and head dimension."""
