"""Rows on Hopper: how threads and blocks divide rows of any length, and reductions along a row."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.language import (
    TV,
    Bool,
    Fragment,
    Int,
    IntLike,
    Layout,
    Tensor,
    add,
    all_to_each,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    first_lane,
    first_thread,
    last_lane,
    load,
    loop,
    registers,
    shared,
    sm_90a,
    sync,
    thread,
    warp,
    wave,
)

WARP = 32


@frozen
class Rows:
    """A block of `threads` has `rows` rows, threads / rows threads each, which read `steps` vectors of a row at a time.

    held: threads keep their elements in registers, so a row is read once, and has at most `width` elements. Otherwise a
    row of any length is read in chunks of `width` elements, once per pass. vector: elements of one access, which divide
    the length of a row.
    """

    threads: int = 256
    rows: int = 1
    vector: int = 8
    steps: int = 2
    held: bool = True
    target = sm_90a

    @property
    def lanes(self) -> int:
        """The threads that share a row: a power of two up to a warp, or the block."""
        return self.threads // self.rows

    @property
    def width(self) -> int:
        """The elements of a row that a block reads at a time."""
        return self.lanes * self.vector * self.steps

    @property
    def layout(self) -> TV:
        """The elements (row, column) of a tile of `rows` rows: neighbouring threads hold neighbouring vectors."""
        across = self.rows * self.vector
        return TV(
            Layout((self.lanes, self.rows), (across, 1)),
            Layout((self.vector, self.steps), (self.rows, across * self.lanes)),
            (self.rows, self.width),
        )

    @property
    def in_order(self) -> TV:
        """The elements (row, column) of a tile, where each warp holds consecutive columns of its rows."""
        if self.lanes <= WARP:
            return self.layout
        across = WARP * self.vector
        return TV(
            Layout((WARP, self.threads // WARP), (self.vector, across * self.steps)),
            Layout((self.vector, self.steps), (1, across)),
            (1, self.width),
        )


Chunks = Callable[[IntLike], Fragment]
"""The elements of a chunk of rows, in f32: loaded for each call, or held."""


class Block:
    """The rows of a block: loads and stores of their elements, and reductions along them."""

    def __init__(self, cfg: Rows, rows: Int, length: Int, layout: TV | None = None) -> None:
        assume(length % cfg.vector == 0)
        if cfg.held:
            assume(length <= cfg.width)
        self.cfg, self.length, self.layout = cfg, length, layout or cfg.layout
        (self.at,) = block_id((ceil_div(rows, cfg.rows),))

    def rows(self, source: Tensor, edge: float = 0.0) -> Chunks:
        """The elements of the block's rows, `edge` beyond their end."""
        return self._chunks(lambda i: load(source.tile(self.layout.tile, (self.at, i)), self.layout, edge=edge))

    def sums(self, one: Tensor, other: Tensor) -> Chunks:
        """The elements of the sum of two tensors, rounded to their type."""
        a, b = self.rows(one), self.rows(other)
        return self._chunks(lambda i: (a(i) + b(i)).to(one.dtype))

    def columns(self, source: Tensor) -> Chunks:
        """The elements of a vector that has one for each column: loaded where they are used, which saves registers."""
        by = self.layout.axis(1)
        return lambda i: load(source.tile((self.cfg.width,), (i,)), by, edge=0).to(f32)

    def chosen(self, source: Tensor, place: Callable[[Int, Int], tuple[IntLike, ...]]) -> Chunks:
        """The element of `source` at the place that a row and a column have: loaded where it is used."""

        def part(chunk: IntLike) -> Tensor:
            row, column = self.at * self.cfg.rows, chunk * self.cfg.width
            return source.gather(self.layout.tile, lambda r, n: place(row + r, column + n), outside=0.0)

        return lambda chunk: load(part(chunk), self.layout, edge=0.0).to(f32)

    def _chunks(self, loaded: Chunks) -> Chunks:
        if not self.cfg.held:
            return lambda chunk: loaded(chunk).to(f32)
        held = loaded(0).to(f32)
        return lambda _: held

    def store(self, values: Fragment, target: Tensor, chunk: IntLike) -> None:
        """Store elements of the block's rows, those within the tensor."""
        copy(values.to(target.dtype), target.tile(self.layout.tile, (self.at, chunk)), edge=0)

    def of_rows(self, source: Tensor) -> Fragment:
        """The elements of a vector that has one for each row, in all threads of the row."""
        return load(source.tile((self.cfg.rows,), (self.at,)), self.layout.axis(0), edge=0).to(f32)

    def store_one(self, values: Fragment, target: Tensor) -> None:
        """Store one number for each row, which all threads of the row hold."""
        part = target.tile((self.cfg.rows,), (self.at,))
        if self.cfg.lanes <= WARP:
            copy(values.to(target.dtype), part, edge=0)
        else:
            copy(values.to(target.dtype), part, by=first_thread, edge=0)

    def within(self, values: Fragment, chunk: IntLike) -> Bool:
        """Whether elements of a chunk are elements of their row, or beyond its end."""
        return chunk * self.cfg.width + values.index[1] < self.length

    def each(self, step: Callable[[IntLike], None]) -> None:
        """Execute a step for each chunk of a row."""
        if self.cfg.held:
            step(0)
            return
        for chunk in loop(ceil_div(self.length, self.cfg.width)):
            step(chunk)

    def sum(self, part: Callable[[IntLike], Fragment]) -> Fragment:
        """The sum along each row of what `part` makes of a chunk, in all threads of the row."""
        if self.cfg.held:
            return self.across(part(0).sum(1, within=thread), add)
        sums = registers(f32, self.layout.partial(1))
        sums[:] = 0.0
        for chunk in loop(ceil_div(self.length, self.cfg.width)):
            sums += part(chunk).sum(1, within=thread)
        return self.across(sums, add)

    def across(self, part: Fragment, op: Callable[[Fragment, Fragment], Fragment]) -> Fragment:
        """Each row's sum or maximum (`add`, `maximum`) of one number in each thread, in all threads of the row."""
        of_warps = part.fold(1, op, within=warp)
        if self.cfg.lanes <= WARP:
            return of_warps
        box = shared(f32, (1, self.cfg.threads // WARP))
        copy(of_warps, box, by=first_lane)
        sync()
        return load(box, all_to_each(self.cfg.threads)).fold(1, op, within=thread)

    def each_prefix(self, x: Chunks, step: Callable[[IntLike, Fragment], None]) -> None:
        """Execute a step for each chunk of a row with the sums of the row's elements up to each, itself included.

        The layout is `cfg.in_order`, so that a warp's elements follow those of the warp before.
        """
        if self.cfg.lanes <= WARP:
            step(0, x(0).scan(1, add, within=warp))
            return
        box, before = shared(f32, (1, self.cfg.threads // WARP)), registers(f32, self.layout.partial(1))
        before[:] = 0.0

        def of_chunk(chunk: IntLike) -> None:
            run = x(chunk).scan(1, add, within=warp)
            copy(run.last(1, within=warp), box, by=last_lane)
            sync()
            sums = load(box, all_to_each(self.cfg.threads))
            step(chunk, run + (before + sums.sum(1, where=sums.index[1] < wave)))
            before[:] = before + sums.sum(1)
            sync()  # the next chunk's sums replace these

        self.each(of_chunk)
