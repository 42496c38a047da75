"""The problem of attention's gradients of packed sequences: the rows of each are those between two offsets."""

from __future__ import annotations

from contextlib import AbstractContextManager

from attrs import frozen

from argus.kernels.schedules.attention_backward import Elements, Formula, SeenBlocks
from argus.kernels.schedules.attention_packed import ends_of, of_row, where_below
from argus.language import Int, Tensor, assert_equals, assume, ceil_div, elements, eq, promise


@frozen
class PackedBackward:
    """`AttentionBackward` of each sequence b: its queries are rows starts_q[b] to starts_q[b + 1], its keys likewise.

    Q, dO: (heads, rows, elements). K, V: (groups, rows, elements). The gradients: (rows, heads, elements). L, Delta:
    (heads, at least as many numbers as rows). sequences: how many there are; longest_q, longest_k: upper bounds of the
    numbers of queries and of keys of one. Sequences may be empty.
    """

    Q: Tensor
    K: Tensor
    V: Tensor
    dO: Tensor  # noqa: N815 reason: the name in every paper
    L: Tensor
    Delta: Tensor
    scale: Tensor
    starts_q: Tensor
    starts_k: Tensor
    sequences: Int
    longest_q: Int
    longest_k: Int
    causal: bool
    packed = True

    def __attrs_post_init__(self) -> None:
        (H, S, _), (G, T, _), R = self.Q.shape, self.K.shape, self.L.shape[1]
        promise(self.starts_q, ascending=True, first=0, last=S, most=self.longest_q)
        promise(self.starts_k, ascending=True, first=0, last=T, most=self.longest_k)
        assume(G >= 1, H % G == 0, H // G >= 1, S >= 1, T >= 1, S < 1 << 28, T < 1 << 28, R >= S, R < 1 << 29)
        assume(self.longest_q < 1 << 28, self.longest_k < 1 << 28, eq(self.starts_q.shape[0], self.sequences + 1))
        assume(self.sequences * H < 1 << 24, self.sequences * G < 1 << 24)  # indices then fit 32 bits

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[0] // self.K.shape[0]

    @property
    def most_queries(self) -> Int:
        """An upper bound of the number of queries of a sequence."""
        return self.longest_q

    def query_tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many queries in the longest sequence, of heads, and of sequences."""
        return ceil_div(self.longest_q, rows), self.Q.shape[0], self.sequences

    def key_tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many keys in the longest sequence, of their heads, and of sequences."""
        return ceil_div(self.longest_k, rows), self.K.shape[0], self.sequences

    def where_queries(self, b: Int, first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a query of the sequence. first: the tile's first one."""
        return where_below(self.starts_q, b, first)

    def where_keys(self, b: Int, first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a key of the sequence. first: the tile's first one."""
        return where_below(self.starts_k, b, first)

    def seen(self, b: Int) -> SeenBlocks:
        """Which keys a query of a sequence sees."""
        (q, q_end), (k, k_end) = ends_of(self.starts_q, b), ends_of(self.starts_k, b)
        return SeenBlocks(q_end - q, k_end - k, self.causal)

    def of_query_head(self, tensor: Tensor, b: Int, h: Int) -> Tensor:
        """The rows of Q, dO, L or Delta for one head of a sequence; zeros follow: 0 times a neighbour's NaN is NaN."""
        return tensor[h].rows(*ends_of(self.starts_q, b))

    def of_key_head(self, tensor: Tensor, b: Int, g: Int) -> Tensor:
        """The rows of K, or V, for one head of a sequence, followed by zeros."""
        return tensor[g].rows(*ends_of(self.starts_k, b))

    def stored_queries(self, dQ: Tensor, b: Int, h: Int) -> Tensor:
        """The rows of the gradients of queries for one head of a sequence."""
        return dQ[:, h].rows(*ends_of(self.starts_q, b))

    def stored_keys(self, gradients: Tensor, b: Int, g: Int) -> Tensor:
        """The rows of the gradients of keys, or of values, for one head of a sequence."""
        return gradients[:, g].rows(*ends_of(self.starts_k, b))

    def elements(self, b: Int, h: Int, g: Int) -> Elements:
        """The elements of one head of a sequence, in a formula. g: its head of keys and values."""
        (first, _), (key, _) = ends_of(self.starts_q, b), ends_of(self.starts_k, b)
        q, k, v, do, sums, delta = map(elements, (self.Q, self.K, self.V, self.dO, self.L, self.Delta))
        return Elements(
            lambda row, d: q(h, first + row, d),
            lambda row, d: k(g, key + row, d),
            lambda row, e: v(g, key + row, e),
            lambda row, e: do(h, first + row, e),
            lambda row: sums(h, first + row),
            lambda row: delta(h, first + row),
        )

    def claim_queries(self, dQ: Tensor, formula: Formula) -> None:
        """Claim the gradient of each query: that of the sequence which holds it."""
        assert_equals(
            dQ, lambda row, h, d: of_row(self.starts_q, self.sequences, row, lambda b, q: formula(b, h, q, d))
        )

    def claim_keys(self, gradients: Tensor, formula: Formula) -> None:
        """Claim the gradient of each key, or of each value: that of the sequence which holds it."""
        assert_equals(
            gradients, lambda row, g, d: of_row(self.starts_k, self.sequences, row, lambda b, t: formula(b, g, t, d))
        )
