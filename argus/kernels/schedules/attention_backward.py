"""The problem of attention's gradients: names, and what is visible."""

from __future__ import annotations

from math import log

from attrs import frozen

from argus.language import (
    Bool,
    Int,
    Tensor,
    assume,
    by_rows,
    ceil_div,
    maximum,
    minimum,
)

LN_2 = log(2.0)
LOG2_E = 1 / LN_2
ROWS = 64
"""Queries, or keys, of a warpgroup."""
Place = tuple[Int, Int, Int]
"""Batch, head, and tile."""


def by_heads(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """All tiles of a head, one head after another."""
    tiles, heads, batch = counts
    b, h, i = by_rows(number, (batch, heads, tiles))
    return i, h, b


def by_tiles(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """The first tile of all heads, then the second: if causal, the tiles of keys that most queries see come first."""
    tiles, heads, batch = counts
    i, b, h = by_rows(number, (tiles, batch, heads))
    return i, h, b


@frozen
class AttentionBackward:
    """The gradients of `Attention`, from those of its output.

    Query q of head h gives key t of its group g the weight

        P = exp2(s Q[b, h, q] . K[b, g, t] - L[b, h, q]) where q sees t, else 0,

    the forward's over its sum, as L is the log-sum-exp over ln(2). With dS = P (dO[b, h, q] . V[b, g, t] - Delta[b, h,
    q]), where Delta is dO . O of a row, dV[b, g, t] is the sum of P dO[b, h, q] over the queries of all heads of group
    g, dK[b, g, t] that of s ln(2) dS Q[b, h, q], and dQ[b, h, q] that of s ln(2) dS K[b, g, t] over the keys.

    scale holds s. Keys are visible as in `Attention`; where a query sees none, L may be -inf. L and Delta have R >= S
    numbers for each head; those beyond S are finite, and multiplied by 0.
    """

    Q: Tensor
    K: Tensor
    V: Tensor
    dO: Tensor  # noqa: N815 reason: the name in every paper
    L: Tensor
    Delta: Tensor
    scale: Tensor
    causal: bool

    def __attrs_post_init__(self) -> None:
        (batch, H, S, _), (_, G, T, _), R = self.Q.shape, self.K.shape, self.L.shape[2]
        assume(G >= 1, H % G == 0, S >= 1, T >= 1, S < 1 << 28, T < 1 << 28, R >= S, R < 1 << 29, R % 4 == 0)
        assume(batch * H < 1 << 24, batch * G < 1 << 24)  # indices then fit 32 bits

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[1] // self.K.shape[1]

    @property
    def offset(self) -> Int:
        """The number of keys that query 0 sees, less 1."""
        return self.K.shape[2] - self.Q.shape[2]

    def sees(self, q: Int, t: Int) -> Bool:
        """Whether a query sees a key."""
        below = t < self.K.shape[2]
        return (t <= q + self.offset) & below if self.causal else below

    def key_blocks(self, first: Int, queries: int, keys: int) -> tuple[Int, Int]:
        """The number of key blocks that some query of a tile sees, and how many of them all of its queries see."""
        T = self.K.shape[2]
        if not self.causal:
            return ceil_div(T, keys), T // keys
        least = maximum(0, first + self.offset + 1)
        return ceil_div(minimum(T, least + queries - 1), keys), least // keys

    def query_blocks(self, first: Int, queries: int) -> tuple[Int, Int]:
        """The first block of queries of which some see the first key of a tile, and the number of blocks from there."""
        end = ceil_div(self.Q.shape[2], queries)
        start = maximum(0, first - self.offset) // queries if self.causal else 0 * first
        return start, end - start

    def clear_queries(self, first: Int, keys: int, queries: int) -> Int:
        """A number of blocks of queries, from which on all see all keys of a tile, if causal."""
        return ceil_div(maximum(0, first - self.offset) + keys - 1, queries)
