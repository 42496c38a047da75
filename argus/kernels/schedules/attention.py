"""Attention, for any target: names, tags, what is visible, the softmax of a block of keys, and the claims."""

from __future__ import annotations

from math import inf
from math import log as log_of
from typing import Any, cast

from attrs import frozen

from argus.language import (
    Bool,
    Fragment,
    Int,
    IntLike,
    Tensor,
    assert_covers,
    assert_equals,
    assert_written_once,
    assume,
    ceil_div,
    exp2,
    fma,
    log,
    log2,
    maximum,
    minimum,
    tag,
    tanh,
    thread,
    total,
    where,
)

_LN_2 = log_of(2.0)

LEAST_SCALE = 2.0**-100
"""Scales are above 0, so that a masked score stays -inf; `argus.attention` refuses lower ones."""


@frozen
class Rows:
    """For each row of a tile: its greatest score so far, the sum of its weights relative to that, and the scale.

    keys: the axis of the scores along which keys lie; the other one is that of rows.
    """

    high: Fragment
    sums: Fragment
    scale: Fragment
    keys: int

    def begin(self) -> None:
        self.high[:], self.sums[:] = -inf, 0.0

    def lse(self, total: Fragment) -> Fragment:
        """The logarithm of the sum of the weights. total: that sum, relative to the greatest score."""
        return (log2(total) + self.high * self.scale) * _LN_2


@frozen
class Attention:
    """O[b, h, q] = sum over t of w[t] V[b, g, t] / sum over t of w[t], where w[t] = exp2(s Q[b, h, q] . K[b, g, t]).

    LSE[b, h, q] is ln(sum over t of w[t]). Head h of the queries shares keys and values with the others of its group
    g; each group has as many. scale holds s, log2(e) times the scale of the scores. Of S queries and T keys, all keys
    are visible; if `causal`, those with t <= q + T - S, so that the last query sees all. masked_rows: there may be more
    queries than keys; the first queries then see no key: O is 0 there, and LSE -inf. window: (left, right), query q
    sees the keys from q + T - S - left to q + T - S + right instead, of those that exist. inner: holds the factor of
    a score whose tanh is scaled in place of the score.
    """

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor
    scale: Tensor
    causal: bool
    masked_rows: bool = False
    window: tuple[Int, Int] | None = None
    inner: Tensor | None = None

    def __attrs_post_init__(self) -> None:
        (_, H, S, _), (_, G, T, _) = self.Q.shape, self.K.shape
        assume(G >= 1, H % G == 0, S >= 1, T >= 1, T < 1 << 28)
        assume(S < 1 << 28 if self.masked_rows or not self.causal else S <= T)
        if self.window is not None:
            assume(*(each < 1 << 28 for each in self.window))
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

    def first(self, q: Int) -> IntLike:
        """The first key that a query sees, if it sees any."""
        return 0 if self.window is None else maximum(0, q + self.offset - self.window[0])

    def visible(self, q: Int) -> Int:
        """The end of the keys that a query sees."""
        keys = self.K.shape[2]
        last = self._last(q)
        seen = keys if last is None else minimum(keys, last + 1)
        return maximum(0, seen) if self.masked_rows else seen

    def _last(self, q: Int) -> Int | None:
        """The last key that a query may see, if it exists."""
        if self.window is not None:
            return q + self.offset + self.window[1]
        return q + self.offset if self.causal else None

    def sees(self, q: Int, t: Int) -> Bool:
        """Whether a query sees a key."""
        below, last = t < self.K.shape[2], self._last(q)
        seen = below if last is None else (t <= last) & below
        return seen if self.window is None else seen & (t >= q + self.offset - self.window[0])

    def blocks(self, first: Int, queries: int, keys: int) -> tuple[IntLike, Int, Int]:
        """The key blocks that some query of a tile sees, and the end of those that all of its queries see.

        As the first block, the end of the blocks, and that end. Of a tile that sees none, one block, in which all is
        masked.
        """
        last = self.visible(first + queries - 1)
        start = self.first(first) // keys
        end = ceil_div(maximum(1, last) if self.masked_rows else last, keys)
        return start, end, self.visible(first) // keys

    def softmax(
        self, scores: Fragment, rows: Rows, query: Int, key: IntLike, *, masked: bool
    ) -> tuple[Fragment, Fragment]:
        """The weights of a block, relative to the new greatest score, and the factor for what was summed before.

        query, key: the first ones of the block. masked: some query may not see some key.
        """
        x, c = scores, rows.scale
        if masked:
            at = x.index
            x = where(self.sees(query + at[1 - rows.keys], key + at[rows.keys]), x, -inf)
        now = maximum(rows.high, x.max(rows.keys))
        guard = where(now == -inf, 0.0, now) if masked and self.causal else now  # for subtractions only
        rescale = exp2((rows.high - guard) * c)
        weights = exp2(fma(x, c, guard * -c))
        rows.sums[:] = rows.sums * rescale + weights.sum(rows.keys, within=thread)
        rows.high[:] = now
        return weights, rescale

    def complete(self, of: Fragment, first: Int, *, axis: int = 0) -> None:
        """Claim that each row has been summed over the keys that it sees. axis: that of rows; first: row 0's query."""
        row = first + of.index[axis]
        assert_covers(of.tag.t, self.first(row), self.visible(row), where=row < self.Q.shape[2])

    def finish(self) -> None:
        """Claim that each element of the outputs is written once, and its value."""
        assert_written_once(self.O, lambda b, h, q, e: dict(b=b, h=h, q=q, e=e))
        assert_written_once(self.LSE, lambda b, h, q: dict(b=b, h=h, q=q))
        if self.window is None:  # of windows, no proof of the values is known
            self._equals()

    def _equals(self) -> None:
        """Claim the values of both outputs."""
        q_, k_, v_, scale, inner = cast("tuple[Any, ...]", (self.Q, self.K, self.V, self.scale, self.inner))

        def weight(b: Int, h: Int, q: Int, t: Int) -> Any:  # noqa: ANN401 reason: a value in a formula
            def product(d: Int) -> Any:  # noqa: ANN401 reason: as above
                return q_[b, h, q, d] * k_[b, h // self.group, t, d]

            score: Any = total(product, over=self.Q.shape[3])
            score = score if inner is None else tanh(score * inner[0])
            return exp2(score * maximum(scale[0], LEAST_SCALE))

        def weights(b: Int, h: Int, q: Int) -> Any:  # noqa: ANN401 reason: as above
            def one(t: Int) -> Any:  # noqa: ANN401 reason: as above
                return weight(b, h, q, t)

            return total(one, over=(self.first(q), self.visible(q)))

        def mean(b: Int, h: Int, q: Int, e: Int) -> Any:  # noqa: ANN401 reason: as above
            def one(t: Int) -> Any:  # noqa: ANN401 reason: as above
                return weight(b, h, q, t) * v_[b, h // self.group, t, e]

            found: Any = total(one, over=(self.first(q), self.visible(q))) / weights(b, h, q)
            seen = self.first(q) < self.visible(q)
            return cast("Any", where)(seen, found, 0) if self.masked_rows else found

        def logarithm(b: Int, h: Int, q: Int) -> Any:  # noqa: ANN401 reason: as above
            return log(weights(b, h, q))

        assert_equals(self.O, mean)
        assert_equals(self.LSE, logarithm)
