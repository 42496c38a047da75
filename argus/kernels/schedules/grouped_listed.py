"""Few rows of experts in tiles that are listed ahead of the launch, as those of `grouped` are.

A block finds its tiles by their numbers, where without a list it would run through all experts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from attrs import frozen

from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_few import Formula, Tiles
from argus.language import Int, IntLike, Tensor, assume, ceil_div, persistent, scalar, sm_90a


@frozen
class ListedExperts:
    """The `Experts` of a grouped product: in place of an expert, `e` is the number of a tile of its rows."""

    of: GroupedContraction

    @property
    def A(self) -> Tensor:  # noqa: N802 reason: the operand's name in every paper
        return self.of.A

    @property
    def B(self) -> Tensor:  # noqa: N802 reason: as above
        return self.of.B

    @property
    def C(self) -> Tensor:  # noqa: N802 reason: as above
        return self.of.C

    def tiles(self, cfg: Tiles) -> Iterable[tuple[Int, ...]]:
        counts = self.of.tiles, ceil_div(self.C.shape[1], cfg.bn)
        assume(counts[0] * counts[1] < 1 << 24)  # coordinates of tiles then fit 32 bits
        return persistent(counts, blocks=None if cfg.resident == 1 else cfg.resident * sm_90a.processors)

    def place(self, *at: Int) -> tuple[IntLike, Int, Int]:
        t, n = at
        return 0, n, t

    def where_rows(self, e: Int) -> AbstractContextManager[None]:
        return self.of.where_rows(e)

    def rows(self, e: Int) -> Tensor:
        return self.A.rows(scalar(self.of.tile_starts[e]))

    def of_expert(self, matrices: Tensor, e: Int) -> Tensor:
        return self.of.of_expert(matrices, e)

    def of_rows(self, factors: Tensor, e: Int, k: IntLike) -> Tensor:
        return factors[k].rows(scalar(self.of.tile_starts[e]))

    def result(self, e: Int) -> Tensor:
        return self.of.result(e)

    def claim(self, value: Formula) -> None:
        self.of.claim(lambda e, r, n: value((r,), e, n))
