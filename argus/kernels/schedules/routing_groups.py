"""The schedule of routing within groups of experts: which experts a token may choose, from the scores of groups."""

from __future__ import annotations

from math import inf

from attrs import frozen

from argus.kernels.schedules.routing import EXPERTS, sigmoid
from argus.kernels.schedules.routing_claims import group_score, is_kept
from argus.language import (
    TV,
    Int,
    Layout,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    load,
    loop,
    sm_90a,
    where,
    zeros,
)


@frozen
class GroupRows:
    """A warp has a group, of at most 32 * steps experts, and a block four of one token."""

    steps: int = 1
    threads: int = 128
    target = sm_90a

    @property
    def rows(self) -> int:
        """The groups of a block."""
        return self.threads // self.target.unit

    @property
    def layout(self) -> TV:
        """The experts (group, number in it) of a block."""
        lanes, rows = self.target.unit, self.rows
        return TV(Layout((lanes, rows), (rows, 1)), Layout(self.steps, rows * lanes), (rows, lanes * self.steps))


def _blocks(X: Tensor, cfg: GroupRows) -> tuple[Int, Int]:
    """The block's token, and its number among those of a token."""
    tokens, groups, size = X.shape
    assume(tokens < 1 << 28, groups >= 1, groups <= EXPERTS, size >= 1, size <= cfg.layout.tile[1])
    n, t = block_id((ceil_div(groups, cfg.rows), tokens))
    return t, n


def score_groups(X: Tensor, B: Tensor | None, S: Tensor, cfg: GroupRows) -> None:
    """S[t, g] is the score of a token's group: the largest of its experts, or with biases the sum of the two."""
    (t, n), by = _blocks(X, cfg), cfg.layout
    loaded = load(X[t].tile(by.tile, (n, 0)), by, edge=-inf).to(f32)
    own = loaded if B is None else sigmoid(loaded) + load(B.tile(by.tile, (n, 0)), by, edge=0)
    within = own.index[1] < X.shape[2]
    key = where(within, own, -inf)
    best = key.max(1)
    if B is None:
        found = best
    else:
        equal = where(within, where(key == best, 1.0, 0.0), 0.0).sum(1)
        below = where(key < best, key, -inf).max(1)
        found = best + where(equal > 1.0, best, below)
    copy(found, S[t].tile((cfg.rows,), (n,)), edge=0)
    assert_equals(S, group_score(X, B))


def keep_groups(S: Tensor, M: Tensor, top: Int, cfg: GroupRows) -> None:
    """M[t, g, i] is 1 for the experts of the `top` groups with the largest scores, of equal ones the first; else 0."""
    (t, n), by, groups = _blocks(M, cfg), cfg.layout, S.shape[1]
    assume(top <= EXPERTS)
    own, before = load(S[t].tile((cfg.rows,), (n,)), by.axis(0), edge=0), zeros(f32, by.axis(0))
    for h in loop(groups):
        other = load(S[t, h], by.axis(0).axis())
        earlier = h < cfg.rows * n + own.index[0]
        before[:] = before + where((other > own) | ((other == own) & earlier), 1.0, 0.0)
    copy(zeros(f32, by) + where(before < top, 1.0, 0.0), M[t].tile(by.tile, (n, 0)), edge=0)
    assert_equals(M, is_kept(S, top))
