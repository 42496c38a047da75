"""The MI300X schedules of grouped products: a block takes one tile, of a single expert, by the interleaved mainloop."""

from __future__ import annotations

from argus.kernels.schedules.cdna3_blocks import add_scaled, block_scales
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Operands, assume_descriptors
from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation, gated_element
from argus.language import (
    Fragment,
    Int,
    Tensor,
    block_id,
    buffer_store,
    ceil_div,
    copy,
    free_order,
    remap_xcd,
    scalar,
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
    A, gate = problem.A, problem.B
    assume_descriptors(A, problem.C, *(() if cfg.far else (gate, up)))
    t, n = _tile(problem, cfg.bn // 2, cfg)
    with problem.where_rows(t):
        a, b = problem.operands(t)
        operands = Operands.of(a, (b, problem.of_expert(up, t)), cfg)
        gated, acc = operands.multiply((0, n), 0, ceil_div(A.shape[1], cfg.bk))
        vmem.wait(0)  # of the tile that was loaded last, and is not used
        _store(ACTIVATIONS[activation](gated.T) * acc.T, problem.result(t), n)
    problem.claim(lambda e, r, n: gated_element(A, gate, up, activation, (e, r, n)))


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
