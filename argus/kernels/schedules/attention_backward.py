"""The problem of attention's gradients: names, and what is visible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import log

from attrs import frozen

from argus.kernels.schedules.attention import Seen
from argus.language import (
    Int,
    Tensor,
    Value,
    assert_equals,
    assume,
    by_rows,
    ceil_div,
    elements,
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
class SeenBlocks(Seen):
    """Which blocks of keys a tile of queries sees, and which blocks of queries see a tile of keys."""

    def key_blocks(self, first: Int, queries: int, keys: int) -> tuple[Int, Int]:
        """The number of key blocks that some query of a tile sees, and how many of them all of its queries see."""
        if not self.causal:
            return ceil_div(self.keys, keys), self.keys // keys
        least = maximum(0, first + self.offset + 1)
        return ceil_div(minimum(self.keys, least + queries - 1), keys), least // keys

    def query_blocks(self, first: Int, queries: int) -> tuple[Int, Int]:
        """The first block of queries of which some see the first key of a tile, and the number of blocks from there."""
        end = ceil_div(self.queries, queries)
        start = maximum(0, first - self.offset) // queries if self.causal else 0 * first
        return start, end - start

    def clear_queries(self, first: Int, keys: int, queries: int) -> Int:
        """A number of blocks of queries, from which on all see all keys of a tile, if causal."""
        return ceil_div(maximum(0, first - self.offset) + keys - 1, queries)


Formula = Callable[[Int, Int, Int, Int], Value]
"""A gradient as a function of sequence, head, row within the sequence, and element."""


@frozen
class Elements:
    """The elements of one head of one sequence, by row and element, in a formula; of sums and delta, by row."""

    q: Callable[[Int, Int], Value]
    k: Callable[[Int, Int], Value]
    v: Callable[[Int, Int], Value]
    do: Callable[[Int, Int], Value]
    sums: Callable[[Int], Value]
    delta: Callable[[Int], Value]


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
    packed = False

    def __attrs_post_init__(self) -> None:
        (batch, H, S, _), (_, G, T, _), R = self.Q.shape, self.K.shape, self.L.shape[2]
        assume(G >= 1, H % G == 0, S >= 1, T >= 1, S < 1 << 28, T < 1 << 28, R >= S, R < 1 << 29, R % 4 == 0)
        assume(batch * H < 1 << 24, batch * G < 1 << 24)  # indices then fit 32 bits

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[1] // self.K.shape[1]

    def query_tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many queries, of heads, and of sequences."""
        batch, heads, queries, _ = self.Q.shape
        return ceil_div(queries, rows), heads, batch

    def key_tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many keys, of their heads, and of sequences."""
        batch, groups, keys, _ = self.K.shape
        return ceil_div(keys, rows), groups, batch

    @property
    def most_queries(self) -> Int:
        """An upper bound of the number of queries of a sequence."""
        return self.Q.shape[2]

    def where_queries(self, _b: Int, _first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a query of the sequence: all."""
        return nullcontext()

    def where_keys(self, _b: Int, _first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a key of the sequence: all."""
        return nullcontext()

    def seen(self, _b: Int) -> SeenBlocks:
        """Which keys a query of a sequence sees."""
        return SeenBlocks(self.Q.shape[2], self.K.shape[2], self.causal)

    def of_query_head(self, tensor: Tensor, b: Int, h: Int) -> Tensor:
        """The rows of Q, dO, L or Delta for one head of a sequence."""
        return tensor[b, h]

    def of_key_head(self, tensor: Tensor, b: Int, g: Int) -> Tensor:
        """The rows of K, or V, for one head of a sequence."""
        return tensor[b, g]

    def stored_queries(self, dQ: Tensor, b: Int, h: Int) -> Tensor:
        """The rows of the gradients of queries for one head of a sequence."""
        return dQ[b, h]

    def stored_keys(self, gradients: Tensor, b: Int, g: Int) -> Tensor:
        """The rows of the gradients of keys, or of values, for one head of a sequence."""
        return gradients[b, g]

    def elements(self, b: Int, h: Int, g: Int) -> Elements:
        """The elements of one head of a sequence, in a formula. g: its head of keys and values."""
        q, k, v, do, sums, delta = map(elements, (self.Q, self.K, self.V, self.dO, self.L, self.Delta))
        return Elements(
            lambda row, d: q(b, h, row, d),
            lambda row, d: k(b, g, row, d),
            lambda row, e: v(b, g, row, e),
            lambda row, e: do(b, h, row, e),
            lambda row: sums(b, h, row),
            lambda row: delta(b, h, row),
        )

    def claim_queries(self, dQ: Tensor, formula: Formula) -> None:
        """Claim the gradient of each query."""
        assert_equals(dQ, formula)

    def claim_keys(self, gradients: Tensor, formula: Formula) -> None:
        """Claim the gradient of each key, or of each value."""
        assert_equals(gradients, formula)
