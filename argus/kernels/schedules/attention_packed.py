"""Attention of sequences of any lengths, stored back to back: the rows of each are those between two offsets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from attrs import frozen

from argus.kernels.schedules.attention import Formulas, Head, Seen
from argus.kernels.schedules.attention_rounds import in_rounds
from argus.language import (
    Bool,
    Int,
    Order,
    Persistent,
    Segments,
    Tensor,
    Value,
    assert_equals,
    assume,
    ceil_div,
    eq,
    promise,
    scalar,
    segments,
    total,
    when,
)


@frozen
class PackedAttention:
    """`Attention` of each sequence b: queries starts_q[b] to starts_q[b + 1] see keys starts_k[b] to starts_k[b + 1].

    Q: (heads, rows, elements). K, V: (groups, rows, elements). O: (rows, heads, elements). LSE: (heads, rows).
    sequences: how many there are; longest: an upper bound of the number of queries of one. Sequences may be empty, and
    have more queries than keys: O is 0, and LSE -inf, where a query sees no key.
    """

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor
    scale: Tensor
    starts_q: Tensor
    starts_k: Tensor
    sequences: Int
    longest: Int
    causal: bool
    inner = None
    descale = None
    packed = True
    tagged = False

    def __attrs_post_init__(self) -> None:
        (H, S, _), (G, T, _) = self.Q.shape, self.K.shape
        promise(self.starts_q, ascending=True, first=0, last=S, most=self.longest)
        promise(self.starts_k, ascending=True, first=0, last=T)
        assume(G >= 1, H % G == 0, T >= 1, T < 1 << 28, S < 1 << 28, self.longest < 1 << 28)
        assume(eq(self.starts_q.shape[0], self.sequences + 1))

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[0] // self.K.shape[0]

    def tiles(self, rows: int) -> tuple[Int, Int, Int]:
        """The number of tiles of so many queries in the longest sequence, of heads, and of sequences."""
        return ceil_div(self.longest, rows), self.Q.shape[0], self.sequences

    def work(self, rows: int, order: Order, *, zigzag: bool, by_segments: bool) -> Persistent | Segments:
        """The tiles of so many queries, heads and sequences, as each block takes them.

        by_segments: one sequence after another. Under a causal mask the longest tiles are first, of all heads;
        otherwise tiles of a head follow each other. Else every sequence has as many tiles as the longest.
        """
        return (
            self._by_segments(rows, zigzag=zigzag) if by_segments else in_rounds(self.tiles(rows), order, zigzag=zigzag)
        )

    def _by_segments(self, rows: int, *, zigzag: bool) -> Segments:
        heads = self.Q.shape[0]
        assume(self.sequences < 1 << 23, ceil_div(self.longest, rows) * heads < 1 << 23)  # numbers then fit 32 bits

        def counts(b: Int) -> tuple[Int, Int]:
            first, end = ends_of(self.starts_q, b)
            return ceil_div(end - first, rows), heads

        def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, Int]:
            if self.causal:
                return counts[0] - 1 - number // heads, number % heads
            return number % counts[0], number // counts[0]

        return segments(self.sequences, counts, order=order, zigzag=zigzag)

    def seen(self, b: Int) -> Seen:
        """Which keys a query of a sequence sees."""
        (q, q_end), (k, k_end) = ends_of(self.starts_q, b), ends_of(self.starts_k, b)
        return Seen(q_end - q, k_end - k, self.causal, masked_rows=True)

    def where_rows(self, b: Int, first: Int) -> AbstractContextManager[None]:
        """The body for tiles that hold a query of the sequence. first: the tile's first one."""
        return where_below(self.starts_q, b, first)

    def where_seen(self, b: Int, first: Int, queries: int) -> AbstractContextManager[None]:
        """The body for those of which some query sees a key. queries: of a tile."""
        start, end = ends_of(self.starts_q, b)
        return when((first < end - start) & (self.seen(b).visible(first + queries - 1) >= 1))

    def head(self, b: Int, h: Int) -> Head:
        """Head h of sequence b."""
        g, (q, q_end), (k, k_end) = h // self.group, ends_of(self.starts_q, b), ends_of(self.starts_k, b)
        return Head(
            self.Q[h].rows(q),
            self.K[g].rows(k),
            self.V[g].rows(k, k_end),  # zeros follow: 0 times a neighbour's NaN is NaN
            self.O[:, h].rows(q, q_end),
            self.LSE[h].rows(q, q_end),
            self.seen(b),
        )

    def finish(self) -> None:
        """Claim the values of both outputs: those of the sequence that holds the row."""
        seen_by = self._of_row
        assert_equals(self.O, lambda q, h, e: seen_by(q, h, lambda of, row: of.mean(row, e)))
        assert_equals(self.LSE, lambda h, q: seen_by(q, h, lambda of, row: of.logarithm(row)))

    def _of_row(self, q: Int, h: Int, of: Callable[[Formulas, Int], Value]) -> Value:
        """A formula of the sequence that holds a row."""

        def one(b: Int, row: Int) -> Value:
            (first, end), (k, k_end) = ends_of(self.starts_q, b), ends_of(self.starts_k, b)
            seen = Seen(end - first, k_end - k, self.causal, masked_rows=True)
            return of(Formulas(self, (h,), (h // self.group,), seen, (first, k)), row)

        return of_row(self.starts_q, self.sequences, q, one)


def ends_of(starts: Tensor, b: Int) -> tuple[Int, Int]:
    """The first row of a sequence, and the end of its rows."""
    return scalar(starts[b]), scalar(starts[b + 1])


def where_below(starts: Tensor, b: Int, first: Int) -> AbstractContextManager[None]:
    """The body for tiles that hold a row of the sequence. first: the tile's first one."""
    start, end = ends_of(starts, b)
    return when(first < end - start)


def of_row(starts: Tensor, sequences: Int, row: Int, of: Callable[[Int, Int], Value]) -> Value:
    """A formula of the sequence that holds a row: the total over sequences of which only that one counts.

    of: the formula, as a function of the sequence and the row within it.
    """

    def holds(b: Int) -> Bool:
        first, end = ends_of(starts, b)
        return (first <= row) & (row < end)

    return total(lambda b: of(b, row - ends_of(starts, b)[0]), over=sequences, where=holds)
