"""Grouped products by their configuration, which tells the target and the schedule."""

from __future__ import annotations

from collections.abc import Sequence

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import Grouped, GroupedContraction, hopper_grouped
from argus.kernels.schedules.grouped_cdna3 import (
    cdna3_grouped,
    cdna3_grouped_gated,
    cdna3_sum_of_halves,
    cdna3_two_halves,
)
from argus.kernels.schedules.grouped_few import GroupedFew, hopper_gated_few, hopper_grouped_few
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation, gated_element, hopper_grouped_gated
from argus.kernels.schedules.grouped_halves import GroupedHalves, grouped_sum_of_halves, grouped_two_halves
from argus.kernels.schedules.grouped_heights import GroupedHeights, hopper_grouped_heights
from argus.kernels.schedules.grouped_listed import ListedExperts
from argus.language import Tensor

Listed = Grouped | GroupedFew | Cdna3Interleaved
"""Configurations of products whose tiles are listed."""


def multiply(problem: GroupedContraction, cfg: Listed) -> None:
    """Each row times its own expert's matrix."""
    match cfg:
        case GroupedHeights():
            hopper_grouped_heights(problem, cfg)
        case Grouped():
            hopper_grouped(problem, cfg)
        case GroupedFew():
            hopper_grouped_few(ListedExperts(problem), cfg)
            problem.finish()
        case Cdna3Interleaved():
            cdna3_grouped(problem, cfg)


def multiply_gated(problem: GroupedContraction, up: Tensor, activation: Activation, cfg: Listed) -> None:
    """The activation of that product, times the product with a second matrix of the expert, of `up`."""
    match cfg:
        case Grouped():
            hopper_grouped_gated(problem, up, activation, cfg)
        case GroupedFew():
            activated, A, gate = ACTIVATIONS[activation], problem.A, problem.B
            hopper_gated_few(ListedExperts(problem), up, lambda gated, acc: activated(gated) * acc, cfg)
            problem.claim(lambda e, r, n: gated_element(A, gate, up, activation, (e, r, n)))
        case Cdna3Interleaved():
            cdna3_grouped_gated(problem, up, activation, cfg)


def multiply_halves(
    halves: Sequence[GroupedContraction], matrices: Tensor, made: Tensor, cfg: Grouped | Cdna3Interleaved
) -> None:
    """The products of rows with both matrices of their expert: made[i] that with matrices[:, i]."""
    match cfg:
        case Grouped():
            grouped_two_halves(halves, matrices, made, cfg)
        case Cdna3Interleaved():
            cdna3_two_halves(halves, matrices, made, cfg)


def add_halves(halves: Sequence[GroupedContraction], rows: Tensor, cfg: GroupedHalves | Cdna3Interleaved) -> None:
    """The sum of two products, which differ in A and B alone. rows: (2, rows, K), whose halves are their A."""
    match cfg:
        case GroupedHalves():
            grouped_sum_of_halves(halves, cfg)
        case Cdna3Interleaved():
            cdna3_sum_of_halves(halves, rows, cfg)
