"""The problem of attention, for any target: names, tags, what is visible, and the claims."""

from __future__ import annotations

from attrs import frozen

from argus.language import (
    Bool,
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    ceil_div,
    maximum,
    minimum,
    tag,
)

LEAST_SCALE = 2.0**-100
"""Scales are above 0, so that a masked score stays -inf; `argus.attention` refuses lower ones."""


@frozen
class Attention:
    """O[b, h, q] = sum over t of w[t] V[b, g, t] / sum over t of w[t], where w[t] = exp2(s Q[b, h, q] . K[b, g, t]).

    LSE[b, h, q] is ln(sum over t of w[t]). Head h of the queries shares keys and values with the others of its group
    g; each group has as many. scale holds s, log2(e) times the scale of the scores. Of S queries and T keys, all keys
    are visible; if `causal`, those with t <= q + T - S, so that the last query sees all. masked_rows: there may be more
    queries than keys; the first queries then see no key: O is 0 there, and LSE -inf.
    """

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor
    scale: Tensor
    causal: bool
    masked_rows: bool = False

    def __attrs_post_init__(self) -> None:
        (_, H, S, _), (_, G, T, _) = self.Q.shape, self.K.shape
        assume(G >= 1, H % G == 0, S >= 1, T >= 1, T < 1 << 28)
        assume(S < 1 << 28 if self.masked_rows or not self.causal else S <= T)
        group = H // G
        tag(self.Q, lambda b, h, q, d: dict(b=b, g=h // group, h=h, q=q, d=d))  # only this line maps heads to groups
        tag(self.K, lambda b, g, t, d: dict(b=b, g=g, t=t, d=d))
        tag(self.V, lambda b, g, t, e: dict(b=b, g=g, t=t, e=e))  # a product must agree on every shared name

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[1] // self.K.shape[1]

    @property
    def offset(self) -> Int:
        """The number of keys that query 0 sees, less 1."""
        return self.K.shape[2] - self.Q.shape[2]

    def visible(self, q: Int) -> Int:
        """The number of keys that a query sees: the first ones."""
        keys = self.K.shape[2]
        seen = minimum(keys, q + self.offset + 1) if self.causal else keys
        return maximum(0, seen) if self.masked_rows else seen

    def sees(self, q: Int, t: Int) -> Bool:
        """Whether a query sees a key."""
        below = t < self.K.shape[2]
        return (t <= q + self.offset) & below if self.causal else below

    def blocks(self, first: Int, queries: int, keys: int) -> tuple[Int, Int]:
        """The number of key blocks that some query of a tile sees, and how many of them all of its queries see.

        Of a tile that sees none, one block, in which all is masked.
        """
        last = self.visible(first + queries - 1)
        return ceil_div(maximum(1, last) if self.masked_rows else last, keys), self.visible(first) // keys

    def complete(self, of: Fragment, first: Int) -> None:
        """Claim that each row has been summed over the keys that it sees. first: the query of row 0."""
        row = first + of.index[0]
        assert_covers(of.tag.t, 0, self.visible(row), where=row < self.Q.shape[2])

    def finish(self) -> None:
        """Claim that each element of the outputs is written once."""
        assert_written_once(self.O, lambda b, h, q, e: dict(b=b, h=h, q=q, e=e))
        assert_written_once(self.LSE, lambda b, h, q: dict(b=b, h=h, q=q))
