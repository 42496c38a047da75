"""Products of f32 matrices whose tiles come by TMA, and are split into parts by the warpgroups that multiply them.

As in `argus.kernels.schedules.parts_at_once`, no launch splits the operands, so that they are read once, as f32; here
a warpgroup of its own loads the tiles of several stages, and two split each and multiply its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, is_transposed, matrix_of, slot_for
from argus.kernels.schedules.epilogues import Tail
from argus.kernels.schedules.parts import PAIRS, count_parts, parts_of, store_sums
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Order,
    Ring,
    Slot,
    Tensor,
    assume,
    bf16,
    by_rows,
    ceil_div,
    copy,
    f32,
    fence,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    super_tiled,
    sync,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

_ROWS, _THREADS, _WHOLE = 64, 128, 4
"""Of a warpgroup's sums, threads of a warpgroup, and elements of 16 bytes."""


@frozen
class InRing:
    """H200: 128 x bn tiles; one producer warpgroup, and two that split and multiply 64 rows each, bk of K per stage.

    products and group: as in `argus.kernels.schedules.parts.Parts`. stages: tiles of f32 that are loaded ahead. Rows of
    all matrices are multiples of 16 bytes.
    """

    products: int = 6
    bn: int = 128
    bk: int = 32
    stages: int = 3
    group: int = 8
    target = sm_90a
    threads = 384
    bm = 128
    wide = True
    chunk = 0

    @property
    def parts(self) -> int:
        """Parts of an operand."""
        return count_parts(self.products)

    @property
    def order(self) -> Order:
        return super_tiled(self.group) if self.group else by_rows


class _Operand:
    """A warpgroup's view of an operand, of whose tiles it splits half, of the rows as they lie in memory; the parts of
    two tiles are in shared memory.

    boxes: [iteration % 2, row, k] of each part, or rows last as the operand has them. whole: the warpgroups multiply
    the parts of all rows; else each those of its own half, and boxes are [iteration % 2, warpgroup, row, k].
    """

    def __init__(self, boxes: Sequence[Tensor], number: IntLike, cfg: InRing, *, turned: bool, whole: bool) -> None:
        self.boxes, self.number, self.turned, self.whole = boxes, number, turned, whole
        rows = int(boxes[0].shape[-1 if turned else -2])
        self.share = (rows, cfg.bk // 2) if turned else (rows // 2 if whole else rows, cfg.bk)
        self.place = (0, number) if turned else (number, 0)
        shape = self.share[::-1] if turned else self.share
        self.held = registers(f32, spread(shape, threads=_THREADS, vector=_WHOLE))

    def _stored(self, tile: Tensor) -> Tensor:
        """The tile with contiguous rows."""
        return tile.T if self.turned else tile

    def load(self, tile: Tensor) -> None:
        copy(self._stored(tile.tile(self.share, self.place)), self.held)

    def split(self, k: IntLike) -> None:
        for number, each in enumerate(parts_of(self.held, len(self.boxes))):
            box = self.part(number, k)
            copy(each.to(bf16), self._stored(box.tile(self.share, self.place) if self.whole else box))

    def part(self, number: int, k: IntLike) -> Tensor:
        box = self.boxes[number][k % 2]
        return self._stored(box if self.whole else box[self.number])


def _boxes(given: Tensor, rows: int, cfg: InRing, *own: int) -> list[Tensor]:
    """Shared memory of the parts of two tiles (rows, bk), contiguous as the operand is. own: of each of so many."""
    shape = (cfg.bk, rows) if is_transposed(given) else (rows, cfg.bk)
    return [shared(bf16, (2, *own, *shape), swizzle=min(128, 2 * shape[1])) for _ in range(cfg.parts)]


def split_in_ring(A: Tensor, B: Tensor, C: Tensor, cfg: InRing, tail: Tail | None = None) -> None:
    """C = the sum of the products that count of parts of A, as (M, K), and B, as (N, K), or batches of these.

    tail: what becomes of the sums before they are stored.
    """
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    problem = Contraction(A, B, C, 0)
    problem.assume_addressable()
    count = problem.count(bm, bn)
    problem.assume_aligned()
    assume(count < 1 << 24)  # so that rows of tiles fit 32 bits
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    rows, columns = _boxes(A, _ROWS, cfg, 2), _boxes(B, bn, cfg)
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(cfg.order))
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(count, depth + 1, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n, *z in tiles:
            for k in loop(depth + 1):  # the last is beyond the end of the rows: zeros, which are not multiplied
                with ring.fill() as slot:
                    copy(matrix_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(matrix_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as number:
        most = len(PAIRS[cfg.products]) * bk
        apart, acc = (registers(f32, wgmma(bf16, n=bn).C, products=most) for _ in range(2))
        a = _Operand(rows, number, cfg, turned=is_transposed(A), whole=False)
        b = _Operand(columns, number, cfg, turned=is_transposed(B), whole=True)
        for m, n, *z in tiles:
            acc[:] = 0.0
            sync("both", threads=2 * _THREADS)  # products of the tile before are complete
            _split(ring, (a, b), 0)
            for k in loop(depth):
                fence("async proxy")  # by every writer, before the barrier
                sync("both", threads=2 * _THREADS)  # the parts are there, and products of those before are complete
                _multiply(apart, a, b, k, cfg)
                _split(ring, (a, b), k + 1)
                wgmma.wait(0)
                acc[:] = acc + apart
            at = 2 * m + number, n
            store_sums(acc, matrix_of(C, z), at, None if tail is None else tail(z), None)


def _split(ring: Ring, operands: Sequence[_Operand], k: IntLike) -> None:
    """Wait for the tiles of iteration k, and split them."""
    slot: Slot = ring.wait()
    for each, tile in zip(operands, (slot.a, slot.b), strict=True):
        each.load(tile)
    ring.release()
    for each in operands:
        each.split(k)


def _multiply(apart: Fragment, a: _Operand, b: _Operand, k: Int, cfg: InRing) -> None:
    mm = wgmma(bf16, n=cfg.bn)
    for number, (of_a, of_b) in enumerate(PAIRS[cfg.products]):
        mma(mm, apart, a.part(of_a, k), b.part(of_b, k), init=number == 0)
