"""What the gradients of attention need of each query: dO . O, and the log-sum-exp over ln(2)."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_backward import LOG2_E
from argus.kernels.schedules.attention_backward_formulas import claim_rows
from argus.language import Tensor, assume, block_id, copy, f32, load, sm_90a, spread


@frozen
class BackwardRows:
    """rows: of a block."""

    rows: int = 64
    target = sm_90a
    threads = 256


def backward_rows(
    O: Tensor,  # noqa: E741 reason: the output's name in every paper
    dO: Tensor,
    LSE: Tensor,
    L: Tensor,
    Delta: Tensor,
    cfg: BackwardRows,
) -> None:
    """Delta[b, h, q] = dO[b, h, q] . O[b, h, q] and L[b, h, q] = LSE[b, h, q] / ln(2) of S queries, 0 of others."""
    (batch, heads, queries, depth), padded = O.shape, L.shape[2]
    width, count = int(depth), padded // cfg.rows
    assume(queries >= 1, queries < 1 << 28, padded >= queries, padded < 1 << 29, padded % cfg.rows == 0)
    assume(batch * heads < 1 << 24, batch * heads * count < 1 << 24, batch < 1 << 16, heads < 1 << 16)  # of the grid
    i, h, b = block_id((count, heads, batch))
    by = spread((cfg.rows, width), threads=cfg.threads, vector=8)
    x, y = (load(each[b, h].tile((cfg.rows, width), (i, 0)), by, edge=0).to(f32) for each in (O, dO))
    sums = load(LSE[b, h].tile((cfg.rows,), (i,)), by.axis(0), edge=0)
    copy((x * y).sum(1), Delta[b, h].tile((cfg.rows,), (i,)), edge=0)
    copy(sums * LOG2_E, L[b, h].tile((cfg.rows,), (i,)), edge=0)
    claim_rows(O, dO, LSE, L, Delta)
