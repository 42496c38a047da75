"""Products of f32 matrices whose tiles are split into parts where they are multiplied, for few tiles, or few rows.

No launch splits the operands, so that they are read once, as f32: threads load a tile into registers while the one
before is multiplied, split it as `argus.kernels.schedules.parts` does, and store its parts into shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, is_transposed, matrix_of
from argus.kernels.schedules.epilogues import Tail
from argus.kernels.schedules.parts import PAIRS, count_parts, parts_of, store_sums
from argus.language import (
    Fragment,
    IntLike,
    Tensor,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f32,
    fence,
    global_store,
    ld_global_b32,
    loop,
    minimum,
    mma,
    registers,
    shared,
    sm_90a,
    spread,
    sync,
    wgmma,
)

_ROWS, _WHOLE = 64, 4
"""Of a tile, and elements of 16 bytes."""


@frozen
class AtOnce:
    """H200: tiles of 64 x bn by one warpgroup, bk of K per stage, of which one is multiplied and one comes.

    products, wide and compensated: as in `argus.kernels.schedules.parts.Parts`. chunk: K of a chunk, a multiple of bk:
    a launch of its own adds the sums of the chunks; 0: one for all of K.
    """

    products: int = 6
    bn: int = 128
    bk: int = 32
    chunk: int = 0
    wide: bool = True
    compensated: bool = False
    target = sm_90a
    threads = 128

    @property
    def parts(self) -> int:
        """Parts of an operand."""
        return count_parts(self.products)


class _Operand:
    """The tiles of an operand: in registers while their loads are in flight, and in shared memory, as parts."""

    def __init__(self, given: Tensor, rows: int, place: IntLike, cfg: AtOnce) -> None:
        self.given, self.place, self.tile = given, place, (rows, cfg.bk)
        self.turned, self.count = is_transposed(given), cfg.parts
        shape = (cfg.bk, rows) if self.turned else (rows, cfg.bk)
        self.boxes = [shared(bf16, (2, *shape), swizzle=min(128, 2 * shape[1])) for _ in range(cfg.parts)]
        self.held = registers(f32, spread(shape, threads=cfg.threads, vector=_WHOLE if cfg.wide else 2))
        self.via = None if cfg.wide else ld_global_b32

    def _stored(self, tile: Tensor) -> Tensor:
        """The tile with contiguous rows."""
        return tile.T if self.turned else tile

    def fetch(self, k: IntLike) -> None:
        copy(self._stored(self.given.tile(self.tile, (self.place, k))), self.held, via=self.via, edge=0)

    def store(self, k: IntLike) -> None:
        for each, box in zip(parts_of(self.held, self.count), self.boxes, strict=True):
            copy(each.to(bf16), box[k % 2])

    def part(self, number: int, k: IntLike) -> Tensor:
        return self._stored(self.boxes[number][k % 2])


def split_and_multiply(A: Tensor, B: Tensor, C: Tensor, cfg: AtOnce, tail: Tail | None = None) -> None:
    """C = the sum of the products that count of parts of A, as (M, K), and B, as (N, K), or batches of these.

    With chunks, C has a leading axis: C[s] is the sum over the s-th chunk of K. tail: what becomes of the sums before
    they are stored, if there are no chunks.
    """
    (*_, M, N), K = C.shape, A.shape[-1]
    Contraction(A, B, C, 0).assume_addressable()
    counts = ceil_div(M, _ROWS), ceil_div(N, cfg.bn)
    assume(K >= 1, counts[0] * counts[1] < 1 << 24)
    if cfg.wide:
        assume(*(each.shape[each.fastest] % _WHOLE == 0 for each in (A, B)), C.shape[-1] % _WHOLE == 0)
    m, n, *z = block_id((*counts, ceil_div(K, cfg.chunk)) if cfg.chunk else (*counts, *C.shape[:-2]))
    first = z[0] * (cfg.chunk // cfg.bk) if cfg.chunk else 0
    depth = ceil_div(K, cfg.bk)
    if cfg.chunk:
        depth = minimum(cfg.chunk // cfg.bk, depth - first)
    most = len(PAIRS[cfg.products]) * cfg.bk
    apart, acc = (registers(f32, wgmma(bf16, n=cfg.bn).C, products=most) for _ in range(2))
    apart[:] = 0.0
    acc[:] = 0.0
    operands = _Operand(matrix_of(A, z), _ROWS, m, cfg), _Operand(matrix_of(B, z), cfg.bn, n, cfg)
    for each in operands:
        each.fetch(first)
    for each in operands:
        each.store(0)
        each.fetch(first + 1)
    for k in loop(depth):
        fence("async proxy")  # by every writer, before the barrier
        sync()  # the parts are there, and products of those before are complete
        _multiply(apart, operands, k, cfg)
        for each in operands:
            each.store(k + 1)
            each.fetch(first + k + 2)
        wgmma.wait(0)
        sum_ = acc + apart
        if cfg.compensated:
            apart[:] = apart - (sum_ - acc)
        acc[:] = sum_
    via = None if cfg.wide else tuple(each for each in global_store if each.vector_bits == f32.bits)
    store_sums(acc, matrix_of(C, z), (m, n), None if tail is None or cfg.chunk else tail(z), via)


def _multiply(apart: Fragment, operands: Sequence[_Operand], k: IntLike, cfg: AtOnce) -> None:
    mm = wgmma(bf16, n=cfg.bn)
    for number, pair in enumerate(PAIRS[cfg.products]):
        a, b = (each.part(of, k) for each, of in zip(operands, pair, strict=True))
        mma(mm, apart, a, b, init=number == 0 and not cfg.compensated)
