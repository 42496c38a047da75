"""Attention, for any target: names, tags, what is visible, the softmax of a block of keys, and the claims."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from math import inf
from math import log as log_of
from typing import Protocol

from attrs import frozen

from argus.kernels.schedules.attention_rounds import in_rounds
from argus.kernels.schedules.turned_values import KEYS
from argus.language import (
    TV,
    Bool,
    Fragment,
    Int,
    IntLike,
    Order,
    Persistent,
    Tensor,
    Value,
    assert_covers,
    assert_equals,
    assert_written_once,
    assume,
    ceil_div,
    elements,
    exp2,
    fma,
    load,
    log,
    log2,
    maximum,
    minimum,
    reciprocal,
    tag,
    tanh,
    thread,
    total,
    where,
)

_LN_2 = log_of(2.0)
RAISED = 8.0
"""Weights of 8 bits are at most 2^8 instead of 1, so that fewer of them round to 0."""

LEAST_SCALE = 2.0**-100
"""Scales are above 0, so that a masked score stays -inf; `argus.attention` refuses lower ones."""


@frozen
class Rows:
    """For each row of a tile: its greatest score so far, the sum of its weights relative to that, and the scale.

    keys: the axis of the scores along which keys lie; the other one is that of rows. raised: the logarithm to base 2 of
    what weights are multiplied by; if not 0, they are rounded to 8 bits.
    """

    high: Fragment
    sums: Fragment
    scale: Fragment
    keys: int
    raised: float = 0.0

    def begin(self) -> None:
        self.high[:], self.sums[:] = -inf, 0.0

    def lse(self, total: Fragment) -> Fragment:
        """The logarithm of the sum of the weights. total: that sum, relative to the greatest score."""
        most = self.high * self.scale
        return (log2(total) + (most - self.raised if self.raised else most)) * _LN_2

    def weights(self, scores: Fragment, high: Fragment) -> Fragment:
        """The weights of a block, relative to a greatest score."""
        most = fma(high, -self.scale, self.raised) if self.raised else high * -self.scale
        return exp2(fma(scores, self.scale, most))


Factors = tuple[Tensor, Tensor, Tensor]
"""Of the elements of queries, (B, H), and of keys and values, (B, G)."""


class Scaled(Protocol):
    """What scores are scaled by, and values."""

    @property
    def group(self) -> Int: ...
    @property
    def scale(self) -> Tensor: ...
    @property
    def descale(self) -> Factors | None: ...


def of_scores(of: Scaled, b: Int, h: Int, rows: int, by: TV) -> Fragment:
    """The factor of the scores of a head, in powers of 2, for each row."""
    found = load(of.scale.gather((rows,), lambda _: (0,)), by)
    if of.descale is not None:
        q, k, _ = of.descale
        found = found * load(q.gather((rows,), lambda _: (b, h)), by)
        found = found * load(k.gather((rows,), lambda _: (b, h // of.group)), by)
    return maximum(found, LEAST_SCALE)


def of_values(of: Scaled, b: Int, h: Int, rows: int, total: Fragment) -> Fragment:
    """The factor of the sum of a head's weighted values, for each row. total: the sums of the weights."""
    found = reciprocal(where(total == 0, 1.0, total))
    if of.descale is None:
        return found
    return found * load(of.descale[2].gather((rows,), lambda _: (b, h // of.group)), total.layout)


@frozen
class Seen:
    """Which keys each query of a sequence sees, of so many queries and keys: all, or as `Attention` says."""

    queries: Int
    keys: Int
    causal: bool
    masked_rows: bool = False
    window: tuple[Int, Int] | None = None

    @property
    def offset(self) -> Int:
        """The number of keys that query 0 sees, less 1."""
        return self.keys - self.queries

    def first(self, q: Int) -> IntLike:
        """The first key that a query sees, if it sees any."""
        return 0 if self.window is None else maximum(0, q + self.offset - self.window[0])

    def visible(self, q: Int) -> Int:
        """The end of the keys that a query sees."""
        last = self._last(q)
        if last is None:
            return self.keys
        seen = minimum(self.keys, last + 1)
        return maximum(0, seen) if self.masked_rows else seen

    def _last(self, q: Int) -> Int | None:
        """The last key that a query may see, if it exists."""
        if self.window is not None:
            return q + self.offset + self.window[1]
        return q + self.offset if self.causal else None

    def sees(self, q: Int, t: Int) -> Bool:
        """Whether a query sees a key."""
        below, last = t < self.keys, self._last(q)
        seen = below if last is None else (t <= last) & below
        return seen if self.window is None else seen & (t >= q + self.offset - self.window[0])

    def blocks(self, first: Int, queries: int, keys: int, *, some: bool = False) -> tuple[IntLike, Int, Int]:
        """The key blocks that some query of a tile sees, and the end of those that all of its queries see.

        As the first block, the end of the blocks, and that end. Of a tile that sees none, one block, in which all is
        masked. some: some query of the tile sees a key.
        """
        last = self.visible(first + queries - 1)
        end = ceil_div(maximum(1, last) if self.masked_rows and not some else last, keys)
        return self.first(first) // keys, end, self.visible(first) // keys

    def softmax(
        self, scores: Fragment, rows: Rows, query: Int, key: IntLike, *, masked: bool, stored: bool = True
    ) -> tuple[Fragment, Fragment]:
        """The weights of a block, relative to the new greatest score, and the factor for what was summed before.

        query, key: the first ones of the block. masked: some query may not see some key. stored: rows beyond the last
        query have no weights of keys beyond the last, either; else one comparison masks a causal score.
        """
        x, c = scores, rows.scale
        if masked:
            at = x.index
            q, t = query + at[1 - rows.keys], key + at[rows.keys]
            last = None if stored or self.window is not None else self._last(q)
            x = where(self.sees(q, t) if last is None else t <= last, x, -inf)
        now = maximum(rows.high, x.max(rows.keys))
        unseen = self.causal or self.masked_rows
        guard = where(now == -inf, 0.0, now) if masked and unseen else now  # for subtractions only
        rescale = exp2((rows.high - guard) * c)
        weights = rows.weights(x, guard)
        rows.sums[:] = rows.sums * rescale + weights.sum(rows.keys, within=thread)
        rows.high[:] = now
        return weights, rescale


@frozen
class Head:
    """One head of one sequence: a row of each tensor for each query or key."""

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor
    seen: Seen

    def complete(self, of: Fragment, first: Int, *, axis: int = 0) -> None:
        """Claim that each row has been summed over the keys that it sees. axis: that of rows; first: row 0's query."""
        row, seen = first + of.index[axis], self.seen
        assert_covers(of.tag.t, seen.first(row), seen.visible(row), where=row < seen.queries)


@frozen
class Attention:
    """O[b, h, q] = sum over t of w[t] V[b, g, t] / sum over t of w[t], where w[t] = exp2(s Q[b, h, q] . K[b, g, t]).

    LSE[b, h, q] is ln(sum over t of w[t]). Head h of the queries shares keys and values with the others of its group
    g; each group has as many. scale holds s, log2(e) times the scale of the scores. Of S queries and T keys, all keys
    are visible; if `causal`, those with t <= q + T - S, so that the last query sees all. masked_rows: there may be more
    queries than keys; the first queries then see no key: O is 0 there, and LSE -inf. window: (left, right), query q
    sees the keys from q + T - S - left to q + T - S + right instead, of those that exist. inner: holds the factor of
    a score whose tanh is scaled in place of the score.

    descale: factors of the elements of Q for each of its heads, and of K and V for each of theirs, all of 8 bits. V is
    then V[b, g, e, p], the element e of key `key_at(p)`, as the launch of `turn_values` before makes it; the number of
    places is a multiple of `padded`, so that no block of keys reaches beyond them.
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
    descale: Factors | None = None
    padded: int = KEYS
    packed = False

    @property
    def tagged(self) -> bool:
        """Whether tags say what is computed, beside formulas; of e4m3 operands, formulas of a program say it alone."""
        return self.descale is None

    def __attrs_post_init__(self) -> None:
        (_, H, S, _), (_, G, T, _) = self.Q.shape, self.K.shape
        assume(G >= 1, H % G == 0, S >= 1, T >= 1, T < 1 << 28)
        assume(S < 1 << 28 if self.masked_rows or not self.causal else S <= T)
        if self.window is not None:
            assume(*(each < 1 << 28 for each in self.window))
        if self.descale is not None:
            places = self.V.shape[3]
            assume(places >= T, places < 1 << 29, places % self.padded == 0)
        if self.tagged:
            group = H // G
            tag(
                self.Q, lambda b, h, q, d: dict(b=b, g=h // group, h=h, q=q, d=d)
            )  # only this line maps heads to groups
            tag(self.K, lambda b, g, t, d: dict(b=b, g=g, t=t, d=d))
            tag(self.V, lambda b, g, t, e: dict(b=b, g=g, t=t, e=e))  # a product must agree on every shared name

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[1] // self.K.shape[1]

    @property
    def seen(self) -> Seen:
        """Which keys a query sees, in each head."""
        return Seen(self.Q.shape[2], self.K.shape[2], self.causal, self.masked_rows, self.window)

    def tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many queries, of heads, and of sequences."""
        batch, heads, queries, _ = self.Q.shape
        return ceil_div(queries, rows), heads, batch

    def work(self, rows: int, order: Order, *, zigzag: bool, by_segments: bool) -> Persistent:  # noqa: ARG002 reason: all have one length
        """The tiles of so many queries, heads and sequences, as each block takes them."""
        return in_rounds(self.tiles(rows), order, zigzag=zigzag)

    def where_rows(self, _b: Int, _first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a query: all."""
        return nullcontext()

    def where_seen(self, _b: Int, _first: Int, _queries: int) -> AbstractContextManager[None]:
        """The body for tiles of which some query sees a key, or that mask all."""
        return nullcontext()

    def head(self, b: Int, h: Int) -> Head:
        """Head h of sequence b."""
        g = h // self.group
        return Head(self.Q[b, h], self.K[b, g], self.V[b, g], self.O[b, h], self.LSE[b, h], self.seen)

    def finish(self) -> None:
        """Claim that each element of the outputs is written once, and its value."""
        if not self.tagged:
            return
        assert_written_once(self.O, lambda b, h, q, e: dict(b=b, h=h, q=q, e=e))
        assert_written_once(self.LSE, lambda b, h, q: dict(b=b, h=h, q=q))
        if self.descale is None:  # a program claims those of 8 bits
            claim_values(self, self.O, self.LSE, self.seen)


class Operands(Protocol):
    """The tensors that formulas are of, and whether queries may see no key."""

    @property
    def Q(self) -> Tensor: ...  # noqa: N802 reason: the name in every paper
    @property
    def K(self) -> Tensor: ...  # noqa: N802 reason: as above
    @property
    def V(self) -> Tensor: ...  # noqa: N802 reason: as above
    @property
    def scale(self) -> Tensor: ...
    @property
    def inner(self) -> Tensor | None: ...
    @property
    def descale(self) -> Factors | None: ...


@frozen
class Formulas:
    """The values of one head of one sequence. query, key: the leading coordinates of its queries, and of its keys.

    seen: which keys it sees. origin: the rows of query 0 and of key 0.
    """

    of: Operands
    query: tuple[Int, ...]
    key: tuple[Int, ...]
    seen: Seen
    origin: tuple[IntLike, IntLike] = (0, 0)

    def mean(self, q: Int, e: Int) -> Value:
        """The mean of the values that a query sees, by their weights; 0 where it sees none."""
        v = elements(self.of.V)

        def one(t: Int) -> Value:
            return self._weight(q, t) * v(*self.key, self.origin[1] + t, e)

        found = total(one, over=self._range(q)) / self._weights(q)
        if self.of.descale is not None:
            found = found * elements(self.of.descale[2])(*self.key)
        low, high = self._range(q)
        return where(low < high, found, 0) if self.seen.masked_rows else found

    def logarithm(self, q: Int) -> Value:
        """The logarithm of the sum of the weights that a query sees."""
        return log(self._weights(q))

    def _range(self, q: Int) -> tuple[IntLike, Int]:
        return self.seen.first(q), self.seen.visible(q)

    def _weights(self, q: Int) -> Value:
        def one(t: Int) -> Value:
            return self._weight(q, t)

        return total(one, over=self._range(q))

    def _weight(self, q: Int, t: Int) -> Value:
        queries, keys = elements(self.of.Q), elements(self.of.K)

        def product(d: Int) -> Value:
            return queries(*self.query, self.origin[0] + q, d) * keys(*self.key, self.origin[1] + t, d)

        score = total(product, over=self.of.Q.shape[-1])
        if self.of.inner is not None:
            score = tanh(score * elements(self.of.inner)(0))
        return exp2(score * maximum(self._scale(), LEAST_SCALE))

    def _scale(self) -> Value:
        """The factor of the scores."""
        found = elements(self.of.scale)(0)
        if self.of.descale is None:
            return found
        of_queries, of_keys, _ = self.of.descale
        return found * elements(of_queries)(*self.query) * elements(of_keys)(*self.key)


def claim_values(of: Operands, O: Tensor, LSE: Tensor, seen: Seen) -> None:  # noqa: E741 reason: as above
    """Claim the values of both outputs, of heads that share keys and values in groups."""
    group = of.Q.shape[1] // of.K.shape[1]

    def at(b: Int, h: Int) -> Formulas:
        return Formulas(of, (b, h), (b, h // group), seen)

    assert_equals(O, lambda b, h, q, e: at(b, h).mean(q, e))
    assert_equals(LSE, lambda b, h, q: at(b, h).logarithm(q))


@frozen
class Scores:
    """The tensors that formulas are of, where a program makes others of them for its launches."""

    Q: Tensor
    K: Tensor
    V: Tensor
    scale: Tensor
    descale: Factors | None = None
    inner: Tensor | None = None
