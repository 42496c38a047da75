"""The MI300X schedules of grouped products: a block takes one tile, of a single expert, by the interleaved mainloop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.kernels.schedules.cdna3_blocks import add_scaled, block_scales
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Operands, assume_descriptors
from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation, gated_element
from argus.kernels.schedules.grouped_halves_claims import claim_sum_of_halves, claim_two_halves
from argus.language import (
    Fragment,
    Int,
    Tensor,
    block_id,
    buffer_store,
    ceil_div,
    copy,
    free_order,
    lds,
    remap_xcd,
    scalar,
    sync,
    vmem,
)


def cdna3_grouped(problem: GroupedContraction, cfg: Cdna3Interleaved) -> None:
    """As `cdna3_interleaved`; rows that a tile loads beyond its own are not stored. Blocks without rows do nothing."""
    A, C = problem.A, problem.C
    assume_descriptors(A, C, *(() if cfg.far else (problem.B,)))
    t, n = _tile(problem, cfg.bn, cfg)
    with problem.where_rows(t):
        a, b = problem.operands(t)
        operands, scales = Operands.of(a, (b,), cfg), None
        if problem.scales is not None:
            of_a, of_b = problem.scales
            first, e = scalar(problem.tile_starts[t]), scalar(problem.tile_experts[t])
            mm = operands.instruction
            scales = block_scales(lambda k: of_a[k].rows(first), of_b[e], (0, n), mm, cfg, add_scaled)
        acc = operands.multiply((0, n), 0, ceil_div(A.shape[1], cfg.bk), scales)
        vmem.wait(0)  # of the tile that was loaded last, and is not used
        for i, sums in enumerate(acc):
            _store(sums.T, problem.result(t), len(acc) * n + i)
    problem.finish()


def cdna3_grouped_gated(problem: GroupedContraction, up: Tensor, activation: Activation, cfg: Cdna3Interleaved) -> None:
    """activation(A @ B[e]^T) * (A @ up[e]^T): half of a tile's columns are sums with B, half with `up`."""

    def store(gated: Fragment, acc: Fragment, t: Int, n: Int) -> None:
        _store(ACTIVATIONS[activation](gated) * acc, problem.result(t), n)

    _pair(problem, up, cfg, store)
    A, gate = problem.A, problem.B
    problem.claim(lambda e, r, n: gated_element(A, gate, up, activation, (e, r, n)))


def cdna3_two_halves(
    halves: Sequence[GroupedContraction], matrices: Tensor, made: Tensor, cfg: Cdna3Interleaved
) -> None:
    """As `grouped_two_halves`: both products of rows, made[i] that with matrices[:, i]."""
    one, other = halves
    assume_descriptors(made)

    def store(first: Fragment, second: Fragment, t: Int, n: Int) -> None:
        _store(first, one.result(t), n)
        _store(second, other.result(t), n)

    _pair(one, other.B, cfg, store)
    claim_two_halves(one, matrices, made)


def cdna3_sum_of_halves(halves: Sequence[GroupedContraction], rows: Tensor, cfg: Cdna3Interleaved) -> None:
    """As `grouped_sum_of_halves`: the sum of two products, which differ in A and B alone, one after the other.

    rows: (2, rows, K), whose halves are their A.
    """
    problem, other = halves
    assume_descriptors(rows, problem.C, *(() if cfg.far else (problem.B,)))
    depth = ceil_div(problem.A.shape[1], cfg.bk)
    t, n = _tile(problem, cfg.bn, cfg)
    with problem.where_rows(t):
        (a, b), (c, d) = problem.operands(t), other.operands(t)
        operands = Operands.of(a, (b,), cfg)
        first = operands.multiply((0, n), 0, depth)
        vmem.wait(0)
        lds.wait(0)
        sync()  # the last tile is in the registers of all waves
        acc = operands.on(c, d).multiply((0, n), 0, depth, more=first)
        vmem.wait(0)  # of the tile that was loaded last, and is not used
        for i, sums in enumerate(acc):
            _store(sums.T, problem.result(t), len(acc) * n + i)
    claim_sum_of_halves(halves)


Store = Callable[[Fragment, Fragment, Int, Int], None]
"""What is done with both products of a tile: its number, and its number along the columns."""


def _pair(problem: GroupedContraction, up: Tensor, cfg: Cdna3Interleaved, store: Store) -> None:
    """The products of rows with two matrices of their expert, those of the problem and `up`."""
    assume_descriptors(problem.A, problem.C, *(() if cfg.far else (problem.B, up)))
    t, n = _tile(problem, cfg.bn // 2, cfg)
    with problem.where_rows(t):
        a, b = problem.operands(t)
        operands = Operands.of(a, (b, problem.of_expert(up, t)), cfg)
        gated, acc = operands.multiply((0, n), 0, ceil_div(problem.A.shape[1], cfg.bk))
        vmem.wait(0)  # of the tile that was loaded last, and is not used
        store(gated.T, acc.T, t, n)


def _tile(problem: GroupedContraction, columns: int, cfg: Cdna3Interleaved) -> tuple[Int, Int]:
    """The block's tile, and its number along the columns."""
    if cfg.free:
        free_order()
    counts = problem.tiles, ceil_div(problem.C.shape[1], columns)
    t, n = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    return t, n


def _store(values: Fragment, target: Tensor, n: Int) -> None:
    """Store a tile's columns, those that are n-th among as many."""
    copy(values.to(target.dtype), target.tile(values.shape, (0, n)), via=buffer_store, edge=0)
