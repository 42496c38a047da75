"""Rows on Hopper and MI300X: how threads and blocks divide rows of any length, and reductions along a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from attrs import evolve, frozen

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
    cluster,
    copy,
    cp_async,
    f32,
    first_lane,
    first_thread,
    fma,
    gfx942,
    last_lane,
    lds,
    load,
    loop,
    registers,
    shared,
    sm_90a,
    sync,
    thread,
    vmem,
    warp,
    wave,
)

WARP = 32


@frozen
class Rows:
    """A block of `threads` has `rows` rows, threads / rows threads each, which read `steps` vectors of a row at a time.

    held: threads keep their elements in registers, so a row is read once, and has at most `width` elements. Otherwise a
    row of any length is read in chunks of `width` elements, once per pass. vector: elements of one access, which divide
    the length of a row. staged: shared memory holds the elements, in their own type, in place of registers, so more of
    them are on the way. blocks: of a cluster, which share a row: each holds `width` elements of it, or reads every so
    many chunks. whole: blocks and chunks are whole, so that no access is compared with the end of a row. resident:
    blocks of which a multiprocessor has the registers. ahead: of the parts of a row in shared memory, how many parts
    ahead of their use the elements of other tensors are loaded. together: vectors of a thread in such a part, which
    divide `steps`.
    """

    threads: int = 256
    rows: int = 1
    vector: int = 8
    steps: int = 2
    held: bool = True
    staged: bool = False
    blocks: int = 1
    whole: bool = False
    resident: int = 1
    ahead: int = 0
    together: int = 1
    target = sm_90a

    @property
    def warp(self) -> int:
        """The threads of a warp."""
        return self.target.unit

    @property
    def cluster(self) -> tuple[int, ...]:
        return (self.blocks,)

    @property
    def longest(self) -> int:
        """The elements of a row that blocks hold, or read at a time."""
        return self.width * self.blocks

    def are_whole(self, rows: int, length: int) -> bool:
        """Whether so many rows of a length leave no block, and no chunk, in part."""
        chunks = length == self.longest if self.held else length > 0 and length % self.longest == 0
        return chunks and rows % self.rows == 0

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
        if self.lanes <= self.warp:
            return self.layout
        across = self.warp * self.vector
        return TV(
            Layout((self.warp, self.threads // self.warp), (self.vector, across * self.steps)),
            Layout((self.vector, self.steps), (1, across)),
            (1, self.width),
        )


@frozen
class RowsCdna3(Rows):
    """The same on MI300X, with waves of 64 threads: without shared memory for elements, and without clusters."""

    target = gfx942


Chunks = Callable[[IntLike], Fragment]
"""The elements of a chunk of rows, in f32: loaded for each call, or held."""


Operation = Callable[[Fragment, Fragment], Fragment]
"""`add` or `maximum`."""


class Block:
    """The rows of a block: loads and stores of their elements, and reductions along them.

    around: extents of up to two axes around the rows; `outer` are the coordinates of the block along these.
    """

    def __init__(
        self, cfg: Rows, rows: Int, length: Int, layout: TV | None = None, *, around: Sequence[IntLike] = ()
    ) -> None:
        assume(length % cfg.vector == 0)
        if cfg.held:
            assume(length <= cfg.longest)
        if cfg.whole:
            assume(rows % cfg.rows == 0, length == cfg.longest if cfg.held else length % cfg.longest == 0)
        self.cfg, self.length = cfg, length
        # a constant where it is known: a division by a power of two is exact then, and a product
        self.count: IntLike = cfg.longest if cfg.whole and cfg.held else length
        self.parts = cfg.steps // cfg.together if cfg.staged else 1
        chunk = evolve(cfg, steps=cfg.steps // self.parts)
        self.width, self.layout = chunk.width, layout or chunk.layout
        number, *outer = block_id((ceil_div(rows, cfg.rows) * cfg.blocks, *around[::-1]))
        self.outer = outer[::-1]
        self.at = number // cfg.blocks
        self.started = cfg.blocks == 1
        if not self.started:
            cluster.arrive()

    def load(self, source: Tensor, layout: TV, edge: float | None = None) -> Fragment:
        """What threads hold of a tensor in global or shared memory, ready to be used."""
        return self._arrived(load(source, layout, edge=edge))

    def all_of(self, box: Tensor) -> Fragment:
        """All elements of shared memory, in each thread."""
        return self._arrived(load(box, all_to_each(self.cfg.threads)))

    def _arrived(self, values: Fragment) -> Fragment:
        """What was loaded, once it is there: on MI300X threads wait for loads themselves."""
        if self.cfg.target == gfx942:
            vmem.wait(0)
            lds.wait(0)
        return values

    def meet(self) -> None:
        """A barrier of the block, after which what its threads have written to shared memory is there."""
        if self.cfg.target == gfx942:
            lds.wait(0)
        sync()

    def tile(self, chunk: IntLike) -> IntLike:
        """The number along a row of a chunk of this block: of `width` elements."""
        if self.cfg.blocks == 1:
            return chunk
        return cluster.rank * self.parts + chunk if self.cfg.held else chunk * self.cfg.blocks + cluster.rank

    def rows(self, source: Tensor, edge: float = 0.0) -> Chunks:
        """The elements of the block's rows, `edge` beyond their end."""
        beyond = None if self.cfg.whole else edge

        def loaded(chunk: IntLike) -> Fragment:
            return self.load(source.tile(self.layout.tile, (self.at, self.tile(chunk))), self.layout, edge=beyond)

        return self._staged(source, beyond) if self.cfg.staged else self._chunks(loaded)

    def sums(self, one: Tensor, other: Tensor) -> Chunks:
        """The elements of the sum of two tensors, rounded to their type."""
        a, b = self.rows(one), self.rows(other)
        return self._chunks(lambda i: (a(i) + b(i)).to(one.dtype))

    def columns(self, source: Tensor) -> Chunks:
        """The elements of a vector that has one for each column: loaded where they are used, which saves registers."""
        by = self.layout.axis(1)
        edge = None if self.cfg.whole else 0
        held = self._ahead(lambda i: self.load(source.tile((self.width,), (self.tile(i),)), by, edge=edge))
        return lambda i: held(i).to(f32)

    def chosen(self, source: Tensor, place: Callable[[Int, Int], tuple[IntLike, ...]]) -> Chunks:
        """The element of `source` at the place that a row and a column have: loaded where it is used."""

        def part(chunk: IntLike) -> Tensor:
            row, column = self.at * self.cfg.rows, self.tile(chunk) * self.width
            return source.gather(self.layout.tile, lambda r, n: place(row + r, column + n), outside=0.0)

        held = self._ahead(lambda chunk: self.load(part(chunk), self.layout, edge=0.0))
        return lambda chunk: held(chunk).to(f32)

    def _ahead(self, loaded: Chunks) -> Chunks:
        """The same parts, each loaded some parts before it is used, and the first of them at once."""
        if not self.cfg.staged or self.cfg.ahead == 0:
            return loaded
        held = {part: loaded(part) for part in range(min(self.cfg.ahead, self.parts))}

        def of(part: IntLike) -> Fragment:
            assert isinstance(part, int)
            later = part + self.cfg.ahead
            if later < self.parts:
                held[later] = loaded(later)
            return held.pop(part)

        return of

    def _staged(self, source: Tensor, edge: float | None) -> Chunks:
        """The elements of a row that shared memory holds: each thread copies, and reads, its own."""
        box = shared(source.dtype, (1, self.cfg.width))
        for part in range(self.parts):
            place = box.tile(self.layout.tile, (0, part))
            copy(
                source.tile(self.layout.tile, (self.at, self.tile(part))),
                place,
                via=cp_async,
                by=self.layout,
                edge=edge,
            )
        cp_async.commit()
        cp_async.wait(0)
        self.meet()
        return lambda part: self.load(box.tile(self.layout.tile, (0, part)), self.layout).to(f32)

    def _chunks(self, loaded: Chunks) -> Chunks:
        if not self.cfg.held or self.cfg.staged:
            return lambda chunk: loaded(chunk).to(f32)
        held = loaded(0).to(f32)
        return lambda _: held

    def store(self, values: Fragment, target: Tensor, chunk: IntLike) -> None:
        """Store elements of the block's rows, those within the tensor."""
        edge = None if self.cfg.whole else 0
        copy(values.to(target.dtype), target.tile(self.layout.tile, (self.at, self.tile(chunk))), edge=edge)

    def of_rows(self, source: Tensor) -> Fragment:
        """The elements of a vector that has one for each row, in all threads of the row."""
        return self.load(source.tile((self.cfg.rows,), (self.at,)), self.layout.axis(0), edge=0).to(f32)

    def store_one(self, values: Fragment, target: Tensor) -> None:
        """Store one number for each row, which all threads of the row hold."""
        part = target.tile((self.cfg.rows,), (self.at,))
        if self.cfg.lanes <= self.cfg.warp:
            copy(values.to(target.dtype), part, edge=0)
        else:
            copy(values.to(target.dtype), part, by=first_thread, edge=0)

    def within(self, values: Fragment, chunk: IntLike) -> Bool:
        """Whether elements of a chunk are elements of their row, or beyond its end."""
        return self.tile(chunk) * self.width + values.index[1] < self.length

    def each(self, step: Callable[[IntLike], None]) -> None:
        """Execute a step for each chunk of a row."""
        if self.cfg.held:
            for part in range(self.parts):
                step(part)
            return
        for chunk in loop(ceil_div(self.length, self.cfg.longest)):
            step(chunk)

    def sum(self, part: Callable[[IntLike], Fragment]) -> Fragment:
        """The sum along each row of what `part` makes of a chunk, in all threads of the row."""
        if self.cfg.held:
            return self.of_held(part, add)
        sums = registers(f32, self.layout.partial(1))
        sums[:] = 0.0
        for chunk in loop(ceil_div(self.length, self.cfg.longest)):
            sums += part(chunk).sum(1, within=thread)
        return self.across(sums, add)

    def sum_of_squares(self, part: Chunks) -> Fragment:
        """The sum along each row of the squares of what `part` makes of a chunk, in all threads of the row."""
        if not self.cfg.held:
            return self.sum(lambda chunk: part(chunk) * part(chunk))
        return self.across(self._squares(part), add)

    def of_held(self, part: Chunks, op: Operation) -> Fragment:
        """The sum or maximum along each row of what `part` makes of the held parts, in all threads of the row."""
        return self.across(self._of_thread(part, op), op)

    def of_own(self, part: Chunks, op: Operation) -> Fragment:
        """The same of the elements that this block holds."""
        return self._across_block(self._of_thread(part, op), op)

    def squares_of_own(self, part: Chunks) -> Fragment:
        """The sum of the squares of what `part` makes of the elements that this block holds."""
        return self._across_block(self._squares(part), add)

    def across(self, part: Fragment, op: Operation) -> Fragment:
        """Each row's sum or maximum (`add`, `maximum`) of one number in each thread, in all threads of the row."""
        of_block = self._across_block(part, op)
        if self.cfg.blocks == 1:
            return of_block
        (of_blocks,) = self.exchanged(of_block)
        return of_blocks.fold(1, op, within=thread)

    def exchanged(self, *numbers: Fragment) -> tuple[Fragment, ...]:
        """Numbers of each block of the cluster, each as (1, blocks) in all threads: a block stores its own into all."""
        self.wait_for_start()
        boxes = tuple(shared(f32, (1, self.cfg.blocks)) for _ in numbers)
        for number, box in zip(numbers, boxes, strict=True):
            for to in range(self.cfg.blocks):
                copy(number, box.T[cluster.rank].of(to), by=first_thread, edge=0)
        cluster.sync()
        return tuple(map(self.all_of, boxes))

    def _of_thread(self, part: Chunks, op: Operation) -> Fragment:
        return reduce(op, (part(chunk).fold(1, op, within=thread) for chunk in range(self.parts)))

    def _squares(self, part: Chunks) -> Fragment:
        first = part(0)
        sums = reduce(lambda sums, x: fma(x, x, sums), map(part, range(1, self.parts)), first * first)
        return sums.sum(1, within=thread)

    def _across_block(self, part: Fragment, op: Operation) -> Fragment:
        of_warps = part.fold(1, op, within=warp)
        if self.cfg.lanes <= self.cfg.warp:
            return of_warps
        box = shared(f32, (1, self.cfg.threads // self.cfg.warp))
        copy(of_warps, box, by=first_lane)
        self.meet()
        return self.all_of(box).fold(1, op, within=thread)

    def wait_for_start(self) -> None:
        """Wait, once, until all blocks of the cluster have started: before, none has shared memory."""
        if not self.started:
            cluster.wait()
            self.started = True

    def each_prefix(self, x: Chunks, step: Callable[[IntLike, Fragment], None]) -> None:
        """Execute a step for each chunk of a row with the sums of the row's elements up to each, itself included.

        The layout is `cfg.in_order`, so that a warp's elements follow those of the warp before.
        """
        if self.cfg.lanes <= self.cfg.warp:
            step(0, x(0).scan(1, add, within=warp))
            return
        box, before = shared(f32, (1, self.cfg.threads // self.cfg.warp)), registers(f32, self.layout.partial(1))
        before[:] = 0.0

        def of_chunk(chunk: IntLike) -> None:
            run = x(chunk).scan(1, add, within=warp)
            copy(run.last(1, within=warp), box, by=last_lane)
            self.meet()
            sums = self.all_of(box)
            step(chunk, run + (before + sums.sum(1, where=sums.index[1] < wave)))
            before[:] = before + sums.sum(1)
            self.meet()  # the next chunk's sums replace these

        self.each(of_chunk)
