"""The Hopper schedule of grouped products for few rows of each expert: C^T = B A^T, so that columns fill wgmma's M.

The time is that of reading the matrices of experts that have rows. A block takes tiles of columns of one expert after
another, and experts without rows are passed over, so that nothing but the experts' numbers of rows is read ahead of the
product. The ring of stages goes on from one tile to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from attrs import frozen

from argus.kernels.schedules.attention_packed import ends_of, of_row
from argus.kernels.schedules.contraction import slot_for
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Ring,
    Segments,
    Tensor,
    Value,
    assert_equals,
    assume,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    loop,
    mma,
    own_checks,
    promise,
    registers,
    role,
    scalar,
    segments,
    sm_90a,
    st_global_b16,
    tma,
    total,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

COLUMNS = 64
"""Columns of C of a warpgroup."""


@frozen
class GroupedFew:
    """Tiles of bm rows of an expert (a multiple of 8) by bn columns (64 or 128); bk of K per stage.

    resident: blocks of which a processor has room. checks: whether blocks check the numbers of rows, in place of a
    guard, where the kernel is launched on its own.
    """

    bm: int = 8
    bk: int = 128
    stages: int = 8
    bn: int = COLUMNS
    resident: int = 1
    checks: bool = False
    target = sm_90a

    @property
    def threads(self) -> int:
        """The warpgroups that multiply, and one that loads."""
        return 128 + 2 * self.bn


Formula = Callable[[tuple[Int, ...], Int, Int], Value]
"""In a formula, an element of C by the coordinates of a row of A, the expert and the column."""


class Tiles(Protocol):
    """A configuration's tiles of bm rows by bn columns, and how many blocks share a processor."""

    @property
    def bm(self) -> int: ...
    @property
    def bn(self) -> int: ...
    @property
    def resident(self) -> int: ...


class Experts(Protocol):
    """Rows of experts, each with its own matrix. B: (experts, N, K), or a transposed view of (experts, K, N).

    Tiles are (m, n, e): of rows and of columns of an expert, or of what else has tiles of rows.
    """

    @property
    def A(self) -> Tensor: ...  # noqa: N802 reason: the operand's name in every paper
    @property
    def B(self) -> Tensor: ...  # noqa: N802 reason: as above
    @property
    def C(self) -> Tensor: ...  # noqa: N802 reason: as above

    def tiles(self, cfg: Tiles) -> Iterable[tuple[Int, ...]]:
        """The tiles of a block."""
        ...

    def place(self, *at: Int) -> tuple[IntLike, Int, Int]:
        """(m, n, e) of what `tiles` gives."""
        ...

    def where_rows(self, e: Int) -> AbstractContextManager[None]:
        """The body for tiles that have rows."""
        ...

    def rows(self, e: Int) -> Tensor:
        """A from the first row of an expert on."""
        ...

    def of_expert(self, matrices: Tensor, e: Int) -> Tensor:
        """Of one matrix for each expert, that of an expert."""
        ...

    def of_rows(self, factors: Tensor, e: Int, k: IntLike) -> Tensor:
        """The factors of rows from the first row of an expert on, of block k of K."""
        ...

    def result(self, e: Int) -> Tensor:
        """The rows of C that an expert has."""
        ...

    def claim(self, value: Formula) -> None:
        """Claim the value of C."""
        ...


class Segmented:
    """Experts whose tiles are met expert by expert."""

    def place(self, *at: Int) -> tuple[IntLike, Int, Int]:
        m, n, e = at
        return m, n, e

    def where_rows(self, e: Int) -> AbstractContextManager[None]:
        del e
        return nullcontext()

    def of_expert(self, matrices: Tensor, e: Int) -> Tensor:
        return matrices[e]


@frozen
class PackedExperts(Segmented):
    """C[r, n] = sum over k of A[r, k] * B[e, n, k], for the expert e that has row r: starts[e] <= r < starts[e + 1].

    A: (rows, K). C: (rows, N). starts: from 0 to the number of rows. Experts may have no rows.
    """

    A: Tensor
    B: Tensor
    C: Tensor
    starts: Tensor

    def __attrs_post_init__(self) -> None:
        rows = self.A.shape[0]
        promise(self.starts, ascending=True, first=0, last=rows, most=rows)  # most: what the others imply, as a bound
        assume(eq(self.starts.shape[0], self.B.shape[0] + 1), rows < 1 << 20)
        _assume_aligned(self.A, self.B)

    def tiles(self, cfg: Tiles) -> Segments:
        return tiles_of(self.B, self.A.shape[0], self.count, cfg)

    def count(self, e: Int) -> Int:
        first, end = ends_of(self.starts, e)
        return end - first

    def rows(self, e: Int) -> Tensor:
        return self.A.rows(scalar(self.starts[e]))

    def of_rows(self, factors: Tensor, e: Int, k: IntLike) -> Tensor:
        return factors[k].rows(scalar(self.starts[e]))

    def result(self, e: Int) -> Tensor:
        return self.C.rows(*ends_of(self.starts, e))

    def claim(self, value: Formula) -> None:
        experts = self.B.shape[0]
        assert_equals(self.C, lambda r, n: of_row(self.starts, experts, r, lambda e, _: value((r,), e, n)))


@frozen
class MaskedExperts(Segmented):
    """C[e, r, n] = sum over k of A[e, r, k] * B[e, n, k] for r < counts[e]; other rows of C are not written.

    A: (experts, rows, K). C: (experts, rows, N). counts: how many rows of each expert there are, the first ones.
    """

    A: Tensor
    B: Tensor
    C: Tensor
    counts: Tensor

    def __attrs_post_init__(self) -> None:
        experts, rows, _ = self.A.shape
        promise(self.counts, lambda count: (count >= 0) & (count <= rows))
        assume(experts * rows < 1 << 28, rows < 1 << 20)
        _assume_aligned(self.A, self.B)

    def tiles(self, cfg: Tiles) -> Segments:
        return tiles_of(self.B, self.A.shape[1], self.count, cfg)

    def count(self, e: Int) -> Int:
        return scalar(self.counts[e])

    def rows(self, e: Int) -> Tensor:
        return self.A[e]

    def of_rows(self, factors: Tensor, e: Int, k: IntLike) -> Tensor:
        return factors[e, k]

    def result(self, e: Int) -> Tensor:
        return self.C[e].rows(0, scalar(self.counts[e]))

    def claim(self, value: Formula) -> None:
        assert_equals(
            self.C,
            lambda e, r, n: value((e, r), e, n),
            where=lambda e, r, n: r < scalar(self.counts[e]),  # noqa: ARG005 reason: coordinates
        )


def _assume_aligned(A: Tensor, B: Tensor) -> None:
    """Rows of 16 bytes, for TMA, and addresses of 64 bits."""
    experts, columns, depth = B.shape
    assume(experts * columns * depth < 1 << 40, experts < 1 << 20, columns < 1 << 20)
    assume(depth >= 1, depth % (128 // A.dtype.bits) == 0)
    if B.fastest != len(B.shape) - 1:
        assume(columns % (128 // B.dtype.bits) == 0)


def product_of(A: Tensor, B: Tensor) -> Formula:
    """The sum of products of a row of A and a column of an expert."""
    a, b = elements(A), elements(B)
    return lambda row, e, n: total(lambda k: a(*row, k) * b(e, n, k), over=B.shape[2])


def tiles_of(B: Tensor, most: Int, count: Callable[[Int], Int], cfg: Tiles) -> Segments:
    """Tiles (of rows, of columns) of each expert, those of the same rows after each other.

    most: the most rows that an expert may have. count: the rows of one.
    """
    experts, columns, _ = B.shape
    wide = ceil_div(columns, cfg.bn)
    assume(ceil_div(most, cfg.bm) * wide < 1 << 21)  # numbers of tiles then fit 32 bits
    blocks = None if cfg.resident == 1 else cfg.resident * sm_90a.processors
    return segments(experts, lambda e: (ceil_div(count(e), cfg.bm), wide), blocks=blocks)


def hopper_grouped_few(problem: Experts, cfg: GroupedFew) -> None:
    """One producer, one or two consumer warpgroups; the epilogue stores single elements, as there are few."""
    _multiply(problem, (problem.B,), _alone, cfg)


def _alone(acc: Fragment) -> Fragment:
    return acc


def hopper_gated_few(
    problem: Experts, up: Tensor, of: Callable[[Fragment, Fragment], Fragment], cfg: GroupedFew
) -> None:
    """The same of two products with the same rows: C = of(A B^T, A up^T), element by element, in f32.

    up: the second product's matrices, of the shape of B. A tile has bn columns of both.
    """
    _multiply(problem, (problem.B, up), of, cfg)


def _multiply(problem: Experts, matrices: tuple[Tensor, ...], of: Callable[..., Fragment], cfg: GroupedFew) -> None:
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    agents, depth, count = bn // COLUMNS, ceil_div(problem.B.shape[2], bk), len(matrices)
    if cfg.checks:
        own_checks()
    mm = wgmma(problem.B.dtype, n=bm)
    ring = Ring(
        cfg.stages, a=slot_for(problem.A, bm, bk), **{f"b{i}": slot_for(b, bn, bk) for i, b in enumerate(matrices)}
    )
    tiles = problem.tiles(cfg)

    with role("load", warpgroup(0).elected):
        for at in tiles:
            m, n, e = problem.place(*at)
            with problem.where_rows(e):
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(problem.rows(e).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                        for i, b in enumerate(matrices):
                            own = problem.of_expert(b, e)
                            copy(own.tile((bn, bk), (n, k)), getattr(slot, f"b{i}"), via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, agents + 1))) as wg:
        sums = [registers(f32, mm.C) for _ in matrices]
        for at in tiles:
            m, n, e = problem.place(*at)
            with problem.where_rows(e):
                for k in loop(depth):
                    slot = ring.wait()
                    for i, acc in enumerate(sums):
                        mma(mm, acc, getattr(slot, f"b{i}").tile((COLUMNS, bk), (wg, 0)), slot.a, init=eq(k, 0))
                    wgmma.wait(pending=count)  # those of k - 1 have read their stage ...
                    with when(k > 0):
                        ring.release()  # ... so release that stage
                wgmma.wait(pending=0)
                ring.release()
                out = problem.result(e).T.tile((COLUMNS, bm), (agents * n + wg, m))
                copy(of(*sums).to(problem.C.dtype), out, via=st_global_b16, edge=0)
