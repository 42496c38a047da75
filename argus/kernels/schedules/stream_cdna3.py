"""Stream-K on MI300X: each part of a tile by the interleaved mainloop of four waves."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Operands, assume_descriptors
from argus.kernels.schedules.contraction import Contraction, matrix_of
from argus.kernels.schedules.stream_k import Reduction, Runs
from argus.language import (
    Tensor,
    assert_covers,
    assume,
    block_id,
    ceil_div,
    copy,
    gfx942,
    lds,
    loop,
    minimum,
    sync,
    vmem,
)

_CHUNK = 16
"""Bytes that a lane moves at once."""


@frozen
class Cdna3Stream:
    """A block's share of K is `run` chunks, of which a bm x bn tile has `chunks`; the rest as `Cdna3Interleaved`.

    With run = 1 this is split-K in `chunks` parts. If 8 divides `chunks` as well, all blocks of one part of K are on
    one die (XCD), as dies take blocks in turn: what they share of A and B comes into one L2 cache.
    align: of rows of A and B (columns, of a column-major one), in bytes. wide: rows of C are whole vectors of four
    elements.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    mfma: int = 32
    chunks: int = 8
    run: int = 1
    agprs: bool = False
    align: int = _CHUNK
    wide: bool = True
    target = gfx942
    threads = 256

    @property
    def runs(self) -> Runs:
        return Runs(self.bm, self.bn, self.chunks, self.run)

    @property
    def reduction(self) -> Reduction:
        return Reduction(self.runs, waits=True, vectors=self.wide)

    @property
    def mainloop(self) -> Cdna3Interleaved:
        ordered = self.align == _CHUNK  # loads of fewer bytes are more than one for each pair of products
        return Cdna3Interleaved(
            self.bm, self.bn, self.bk, mfma=self.mfma, agprs=self.agprs, ordered=ordered, align=self.align
        )


def stream_parts(A: Tensor, B: Tensor, part: Tensor, cfg: Cdna3Stream) -> None:
    """part[p, j] = the partial sums of block p in the j-th tile of its run, of A (M, K) and B (N, K).

    Either may be a transposed view, and one or both a batch: part[z, p, j] then is of product z.
    """
    M, N, K, runs, batch = A.shape[-2], B.shape[-2], A.shape[-1], cfg.runs, part.shape[:-4]
    Contraction(A, B, part).assume_aligned(stores=False, align=cfg.align)
    assume_descriptors(A, B)
    runs.assume_workspace(part, M, N)
    rows, columns = runs.tiles(M, N)
    p, *z = block_id((runs.blocks(M, N), *batch))
    operands = Operands.of(matrix_of(A, z), (matrix_of(B, z),), cfg.mainloop)
    depth = ceil_div(K, cfg.bk * runs.chunks)  # iterations per chunk
    assume((rows * columns * runs.chunks + runs.run) * depth < 1 << 24)  # iterations are counted in 32 bits
    for j in loop(runs.max_tiles):
        tile = runs.first(p) + j
        low, high = runs.share(p, tile, depth)
        sums = operands.multiply((tile // columns, tile % columns), low, high)
        for i, acc in enumerate(sums):
            assert_covers(acc.tag.k, low * cfg.bk, minimum(K, high * cfg.bk))  # empty if the run ends before this tile
            copy(acc.T, part[(*z, p, j)].tile((cfg.bm, cfg.bn // len(sums)), (0, i)))
        lds.wait(0)
        vmem.wait(0)
        sync()  # nothing of this tile is left for the next one


CDNA3: dict[str, Cdna3Stream] = {
    **{f"parts_{n}": Cdna3Stream(chunks=n) for n in (2, 3, 4, 8, 16, 32)},
    "runs_2_of_3": Cdna3Stream(chunks=3, run=2),
    "parts_256_4": Cdna3Stream(bm=256, bn=256, chunks=4, agprs=True),
}
"""`parts_S`: split-K in S parts; `runs_R_of_C`: each block takes the work of R / C tiles."""
