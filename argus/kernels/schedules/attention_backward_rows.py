"""What the gradients of attention need of each query: dO . O, and the log-sum-exp over ln(2)."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_backward import LOG2_E
from argus.kernels.schedules.attention_backward_formulas import claim_rows, is_packed
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
    """Delta[b, h, q] = dO[b, h, q] . O[b, h, q] and L[b, h, q] = LSE[b, h, q] / ln(2) of S queries, 0 of others.

    Of packed sequences, O and dO are (rows, heads, elements), and all have one batch.
    """
    packed, width, padded = is_packed(O), int(O.shape[-1]), L.shape[-1]
    queries, heads, batch = (O.shape[0], O.shape[1], 1) if packed else (O.shape[2], O.shape[1], O.shape[0])
    count = padded // cfg.rows
    assume(queries >= 1, queries < 1 << 28, padded >= queries, padded < 1 << 29, padded % cfg.rows == 0)
    assume(batch * heads < 1 << 24, batch * heads * count < 1 << 24, batch < 1 << 16, heads < 1 << 16)  # of the grid
    i, h, b = (*block_id((count, heads)), 0) if packed else block_id((count, heads, batch))
    by = spread((cfg.rows, width), threads=cfg.threads, vector=8)
    o, d_o = (each[:, h] if packed else each[b, h] for each in (O, dO))
    lse, logarithms, products = (each[h] if packed else each[b, h] for each in (LSE, L, Delta))
    x, y = (load(each.tile((cfg.rows, width), (i, 0)), by, edge=0).to(f32) for each in (o, d_o))
    sums = load(lse.tile((cfg.rows,), (i,)), by.axis(0), edge=0)
    copy((x * y).sum(1), products.tile((cfg.rows,), (i,)), edge=0)
    copy(sums * LOG2_E, logarithms.tile((cfg.rows,), (i,)), edge=0)
    claim_rows(O, dO, LSE, L, Delta)
