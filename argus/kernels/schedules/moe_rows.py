"""Rows of tokens on the way to their experts and back: copies in the experts' order, and sums of a token's rows."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_packed import ends_of
from argus.language import (
    TV,
    Bool,
    Fragment,
    Int,
    Layout,
    Tensor,
    Value,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    gfx942,
    ld_global_b32,
    load,
    loop,
    minimum,
    promise,
    registers,
    scalar,
    sm_90a,
    total,
    vmem,
    where,
    zeros,
)


@frozen
class RowCopies:
    """A block copies `threads` times 16 bytes of one row; on MI300X the whole row, so many at a time."""

    threads: int = 128
    target = sm_90a


@frozen
class RowSums:
    """A block adds `threads` times `vector` columns of one token's rows, of which `at_once` are loaded together."""

    threads: int = 128
    vector: int = 8
    at_once: int = 8
    target = sm_90a

    @property
    def layout(self) -> TV:
        """Of these columns of these rows: each thread has one vector of every row."""
        many, vector = self.at_once, self.vector
        return TV(Layout(self.threads, many * vector), Layout((vector, many), (many, 1)), (many, self.threads * vector))


@frozen
class RowCopiesCdna3(RowCopies):
    """The same on MI300X."""

    target = gfx942


@frozen
class RowSumsCdna3(RowSums):
    """The same on MI300X, row by row."""

    target = gfx942


def arrived(values: Fragment, target: object) -> Fragment:
    """What was loaded, once it is there: on MI300X threads wait for loads themselves."""
    if target == gfx942:
        vmem.wait(0)
    return values


def across(threads: int, vector: int) -> TV:
    """The elements of a part of a row: neighbouring threads hold neighbouring vectors."""
    return TV(Layout(threads, vector), Layout(vector, 1), (threads * vector,))


def gather_rows(X: Tensor, tokens: Tensor, sorted_rows: Tensor, cfg: RowCopies) -> None:
    """sorted_rows[r] = X[tokens[r]]."""
    (count, length), rows = X.shape, sorted_rows.shape[0]
    promise(tokens, lambda t: (t >= 0) & (t < count))
    chunk = 128 // X.dtype.bits  # elements in 16 bytes
    assume(eq(tokens.shape[0], rows), length % chunk == 0, count < 1 << 28, rows < 1 << 28)
    by, width = across(cfg.threads, chunk), cfg.threads * chunk
    blocks = ceil_div(length, width)

    def part(r: Int, j: Int) -> None:
        held = arrived(load(X[scalar(tokens[r])].tile((width,), (j,)), by, edge=0), cfg.target)
        copy(held, sorted_rows[r].tile((width,), (j,)), edge=0)

    if cfg.target == gfx942:
        (r,) = block_id((rows,))
        for j in loop(blocks):
            part(r, j)
    else:
        assume(blocks * rows < 1 << 30)
        (number,) = block_id((blocks * rows,))
        part(number // blocks, number % blocks)
    assert_equals(sorted_rows, lambda r, k: elements(X)(scalar(tokens[r]), k))


@frozen
class Routing:
    """Which sorted rows belong to which token: row inverse[t, j] is of token t and its expert ids[t, j].

    ids, inverse: (tokens, choices). starts: expert e has rows starts[e] to starts[e + 1] - 1. tokens: the token of each
    row. order: if given, of (rows,): the number t * choices + j of each row's choice. All are promises, which each
    launch checks.
    """

    ids: Tensor
    starts: Tensor
    tokens: Tensor
    inverse: Tensor
    order: Tensor | None = None

    def __attrs_post_init__(self) -> None:
        experts, rows, count = self.starts.shape[0] - 1, self.tokens.shape[0], self.ids.shape[0]
        assume(experts >= 1)
        promise(self.ids, lambda e: (e >= 0) & (e < experts))
        promise(self.starts, ascending=True, first=0, last=rows)
        promise(self.tokens, lambda t: (t >= 0) & (t < count))
        if self.order is not None:
            pairs = self.order.shape[0]
            promise(self.order, lambda p: (p >= 0) & (p < pairs))
        promise(self.inverse, self._is_of)

    def _is_of(self, r: Int, t: Int, j: Int) -> Bool:
        """Whether r is a row of token t, and of its expert of choice j."""
        start, end = ends_of(self.starts, scalar(self.ids[t, j]))
        own = (start <= r) & (r < end) & eq(scalar(self.tokens[r]), t)
        if self.order is None:
            return own
        return own & eq(scalar(self.order[r]), t * self.ids.shape[1] + j)


def _in_turn(D: Tensor, weights: Tensor | None, inverse: Tensor, at: tuple[Int, Int], cfg: RowSums) -> Fragment:
    """The sum of a token's rows, by weight, in a part of the columns. at: the token and the part."""
    (t, n), by, width = at, across(cfg.threads, cfg.vector), cfg.threads * cfg.vector
    acc = zeros(f32, by)
    for j in loop(inverse.shape[1]):
        factor = None if weights is None else load(weights[t, j], by.axis())
        row = arrived(load(D[scalar(inverse[t, j])].tile((width,), (n,)), by, edge=0), cfg.target)
        acc[:] = acc + (row.to(f32) if factor is None else row.to(f32) * factor)
    return acc


def _at_once(D: Tensor, weights: Tensor | None, inverse: Tensor, at: tuple[Int, Int], cfg: RowSums) -> Fragment:
    """The same with several rows in flight at a time."""
    (t, n), by, many, choices = at, cfg.layout, cfg.at_once, inverse.shape[1]
    _, width = by.tile
    acc, own = zeros(f32, by.axis(1)), registers(f32, by.axis(0))
    for g in loop(ceil_div(choices, many)):

        def place(j: Int, c: Int, g: Int = g) -> tuple[Int, Int]:
            return scalar(inverse[t, minimum(many * g + j, choices - 1)]), width * n + c

        rows = load(D.gather((many, width), place), by, edge=0).to(f32)
        if weights is not None:
            copy(weights[t].tile((many,), (g,)), own, via=ld_global_b32, edge=0)
            rows = rows * own
        acc[:] = acc + where(many * g + rows.index[0] < choices, rows, 0.0).sum(0)
    return acc


def add_rows(D: Tensor, weights: Tensor | None, routing: Routing, Y: Tensor, cfg: RowSums) -> None:
    """Y[t] = sum over j of weights[t, j] * D[inverse[t, j]], in f32. weights: None where all are 1."""
    inverse, length = routing.inverse, Y.shape[1]
    count, choices = inverse.shape
    assume(length % cfg.vector == 0, count < 1 << 28, D.shape[0] < 1 << 28)
    width = cfg.threads * cfg.vector
    blocks = ceil_div(length, width)
    assume(blocks * count < 1 << 30)
    (number,) = block_id((blocks * count,))
    t, n = number // blocks, number % blocks
    add = _in_turn if cfg.target == gfx942 else _at_once
    copy(add(D, weights, inverse, (t, n), cfg).to(Y.dtype), Y[t].tile((width,), (n,)), edge=0)

    def element(t: Int, k: Int) -> Value:
        def chosen(j: Int) -> Value:
            row = elements(D)(scalar(inverse[t, j]), k)
            return row if weights is None else elements(weights)(t, j) * row

        return total(chosen, over=choices)

    assert_equals(Y, element)
