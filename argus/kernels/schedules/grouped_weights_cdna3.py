"""The MI300X schedule of the gradients of experts' matrices: a block takes a tile of an expert's, over all its rows.

Loads by a wave end with the expert's rows, so that what is behind them is 0 in registers, and nothing has to be copied
ahead, as `argus.kernels.schedules.grouped_weights` does for TMA.
"""

from __future__ import annotations

from argus.kernels.schedules.attention_packed import ends_of
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Operands, assume_descriptors
from argus.kernels.schedules.grouped_weights_claims import assume_rows, claim_weights
from argus.language import (
    Tensor,
    block_id,
    ceil_div,
    copy,
    free_order,
    global_store,
    minimum,
    remap_xcd,
    vmem,
)


def cdna3_grouped_weights(X: Tensor, G: Tensor, starts: Tensor, D: Tensor, cfg: Cdna3Interleaved) -> None:
    """D[e] = X^T G over the rows of expert e, zeros where it has none. Operands as in `ExpertRows`."""
    (experts, high, wide), rows = D.shape, X.shape[0]
    assume_rows(X, G, starts, experts)
    assume_descriptors(X, G)
    if cfg.free:
        free_order()
    counts = ceil_div(high, cfg.bm), ceil_div(wide, cfg.bn), experts
    i, j, e = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    first, end = ends_of(starts, e)
    operands = Operands.of(X.rows(first, end).mT, (G.rows(first, end).mT,), cfg)
    blocks = minimum(ceil_div(end - first, cfg.bk), ceil_div(rows, cfg.bk))  # the lesser, but bounded by a size
    acc = operands.multiply((i, j), 0, blocks)
    vmem.wait(0)  # of the block that was loaded last, and is not used
    for half, sums in enumerate(acc):
        tile = D[e].tile((cfg.bm, cfg.bn // len(acc)), (i, len(acc) * j + half))
        copy(sums.T.to(D.dtype), tile, via=global_store, edge=0)
    claim_weights(X, G, starts, D)
