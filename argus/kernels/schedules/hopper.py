"""C = A @ B^T on Hopper, twice: two warpgroups share each tile, or each has tiles of its own in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, one_of, slot_for
from argus.language import (
    DType,
    Fragment,
    Int,
    Order,
    Ring,
    Tensor,
    Turns,
    assume,
    bf16,
    bulk,
    by_rows,
    ceil_div,
    copy,
    curved,
    elected,
    eq,
    f32,
    fence,
    loop,
    mma,
    no_pdl,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    stmatrix,
    super_tiled,
    sync,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

Place = tuple[Int, Int]
Late = Callable[[], Fragment]
Fuse = Callable[[Fragment, Place], Late]
"""What becomes of a part of the sums, in two steps: what it needs is loaded ahead, while products of the part are still
under way; what it returns is called when they are complete. The place counts parts of that shape along the rows and
columns of C."""
Part = tuple[Late, Place]


@frozen
class Parts:
    """So many parts of an accumulator, to be taken once, in their order."""

    count: int
    each: Iterator[Part]


def identity(acc: Fragment, at: Place) -> Late:
    del at
    return lambda: acc


@frozen
class Fetch:
    """What else a tile takes: the loading role fetches it ahead of the operands, and those that multiply wait for it.

    fetch: for tile (m, n). finish: what the loading role waits for before it leaves.
    """

    fetch: Callable[[Int, Int], None]
    wait: Callable[[], None]
    finish: Callable[[], None]


NOTHING = Fetch(lambda _m, _n: None, lambda: None, lambda: None)


@frozen
class Hopper:
    """H200: bm x bn tiles, bk of K a slot, by a role that loads and two warpgroups that multiply.

    group: rows of a super-tile; curve: tiles along the side of a square with a curve through it; 0 and 0 for tiles by
    rows. cluster: blocks that run together, neighbouring rows first. bn: a multiple of 32 up to 256.
    whole: whether a tile leaves through boxes of its own for all of its columns, which takes memory of a stage or more
    and saves meetings; else through `turns` that take turns. Techniques to do without: flight, a product is under way
    while the slot before is given back; realloc, roles have registers as they need; persistent, blocks take tile after
    tile (in turns, always); box, tiles leave through shared memory; pdl, programmatic dependent launch.
    """

    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 4
    pingpong: bool = False
    group: int = 0
    curve: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    turns: int = 2
    flight: bool = True
    realloc: bool = True
    persistent: bool = True
    box: bool = True
    pdl: bool = True
    target = sm_90a
    threads = 384

    @property
    def order(self) -> Order:
        """Of tiles, or of clusters' tiles."""
        if self.curve:
            return curved(self.curve)
        return super_tiled(self.group) if self.group else by_rows


def hopper_cooperative(problem: Contraction, cfg: Hopper, fuse: Fuse, also: Fetch = NOTHING) -> None:
    """Both warpgroups work on one tile, 64 rows each; one product in flight while the slot before is given back."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.aligned()
    assume(count < 1 << 24)  # tiles, whose coordinates then fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = begun(cfg, C.dtype)
    tiles = tiles_of(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    problem.bounded(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40 if cfg.realloc else None):
        for m, n, *z in tiles:
            also.fetch(m, n)
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(one_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(one_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()
        also.finish()

    with role("math", warpgroups(1, 2), registers=232 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            also.wait()
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                give_back(cfg, ring, k)
            parts = parts_of(fuse, acc, (2 * m + wg, n), boxes)
            give_last_back(cfg, ring)
            problem.complete(acc)
            leave(parts, one_of(C, z), boxes, wg)
        leave_last(boxes)


def hopper_pingpong(problem: Contraction, cfg: Hopper, fuse: Fuse) -> None:
    """Each warpgroup has every second tile: the end of one runs under the products of the other."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.aligned()
    assume(count < 1 << 24)
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = begun(cfg, C.dtype)
    turns = Turns(2)
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(cfg.order))
    depth = ceil_div(A.shape[-1], bk)
    problem.bounded(2 * count + 1, depth, cfg.stages)  # uses, and as many that are the other warpgroup's

    with role("load", warpgroup(0).elected, registers=24 if cfg.realloc else None):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(one_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(one_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=240 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        ring.skip(wg * depth)  # the first tile of the other warpgroup is not ours
        for m, n, *z in tiles.every(2, start=wg):
            with turns(wg):  # also what makes the wait by parity unambiguous
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                    give_back(cfg, ring, k)
            parts = parts_of(fuse, acc, (m, n), boxes)
            give_last_back(cfg, ring)
            ring.skip(depth)  # the other warpgroup's tile
            problem.complete(acc)
            leave(parts, one_of(C, z), boxes, wg)
        leave_last(boxes)


def store_boxes(bn: int, *, whole: bool, dtype: DType = bf16, turns: int = 2) -> Tensor:
    """What tiles of bn columns leave through, [warpgroup, turn, row, column]: boxes of 64 columns, else of 32."""
    width = 64 if bn % 64 == 0 else 32
    return shared(dtype, (2, bn // width if whole else min(turns, bn // width), 64, width), swizzle=2 * width)


def parts_of(fuse: Fuse, acc: Fragment, at: Place, boxes: Tensor | None) -> Parts:
    """A 64-row accumulator by parts as wide as the boxes: what the first needs is loaded now, of others one part ahead.

    at: the place of the accumulator among tiles of its shape.
    """
    width = (64 if acc.shape[1] % 64 == 0 else 32) if boxes is None else int(boxes.shape[-1])
    count = acc.shape[1] // width

    def made(j: int) -> Part:
        place = (at[0], at[1] * count + j)
        return fuse(acc.tile((64, width), (0, j)), place), place

    def each(part: Part) -> Iterator[Part]:
        for j in range(1, count):
            following = made(j)
            yield part
            part = following
        yield part

    return Parts(count, each(made(0)))


def store_by_tma(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """Parts to global through the boxes of this warpgroup, which alternate, or are as many as the parts."""
    turns, _, width = (int(extent) for extent in boxes.shape)
    if turns == parts.count:
        _store_whole(parts, target, boxes)
        return
    for j, (late, place) in enumerate(parts.each):
        box = boxes[j % turns]
        # The store before last has left the box; of an odd number of boxes the first follows one of its own turn.
        left = 0 if turns == 1 or (j == 0 and parts.count % turns) else 1
        with elected():
            bulk.wait(pending=left, of="reads")
        sync()  # only now may the other 127 threads write it
        copy(late().to(target.dtype), box, via=stmatrix.x4)
        fence("async proxy")  # by every writer, then the meeting
        sync()
        with elected():
            copy(box, target.tile((64, width), place), via=tma, edge=0)
            bulk.commit()


def _store_whole(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """All boxes filled, one meeting, all sent."""
    width = int(boxes.shape[-1])
    with elected():
        bulk.wait(pending=0, of="reads")  # the last tile has left the boxes
    sync()
    places: list[Place] = []
    for j, (late, place) in enumerate(parts.each):
        copy(late().to(target.dtype), boxes[j], via=stmatrix.x4)
        places.append(place)
    fence("async proxy")
    sync()
    with elected():
        for j, place in enumerate(places):
            copy(boxes[j], target.tile((64, width), place), via=tma, edge=0)
        bulk.commit()


# -- techniques that a configuration may do without ----------------------------------------------------------


def begun(cfg: Hopper, dtype: DType) -> Tensor | None:
    """What tiles leave through, if through shared memory; and when the launch begins."""
    if not cfg.pdl:
        no_pdl()
    return store_boxes(cfg.bn, whole=cfg.whole, dtype=dtype, turns=cfg.turns) if cfg.box else None


def tiles_of(problem: Contraction, cfg: Hopper) -> Iterable[tuple[Int, ...]]:
    """Those of this block: one after the other, or the one that it has."""
    order = problem.order(cfg.order)
    if cfg.persistent:
        return persistent(problem.tiles(cfg.bm, cfg.bn), order=order)
    return [problem.tile_of_block(cfg.bm, cfg.bn, order)]


def give_back(cfg: Hopper, ring: Ring, k: Int) -> None:
    """The slot of the product before this one; without one in flight, this one's."""
    wgmma.wait(pending=1 if cfg.flight else 0)  # the product has finished reading its slot ...
    if not cfg.flight:
        ring.release()
        return
    with when(k > 0):
        ring.release()  # ... which goes back


def give_last_back(cfg: Hopper, ring: Ring) -> None:
    """The slot of the product that is under way when all have been started."""
    if cfg.flight:
        wgmma.wait(pending=0)
        ring.release()


def leave(parts: Parts, target: Tensor, boxes: Tensor | None, wg: Int) -> None:
    """Parts to global through the boxes of a warpgroup, or by stores of registers."""
    if boxes is not None:
        store_by_tma(parts, target, boxes[wg])
        return
    for late, place in parts.each:
        part = late().to(target.dtype)
        copy(part, target.tile((part.shape[0], part.shape[1]), place), edge=0)


def leave_last(boxes: Tensor | None) -> None:
    """What is on its way out arrives by itself, once it has left the boxes."""
    if boxes is not None:
        with elected():
            bulk.wait(0, of="reads")
