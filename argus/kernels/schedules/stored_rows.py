"""A warpgroup's rows to memory by TMA, as attention and its gradients store them."""

from __future__ import annotations

from argus.language import Fragment, Tensor, bulk, copy, elected, fence, load, spread, stmatrix, sync, tma

ROWS, BOX = 64, 64
"""Rows of a warpgroup, and columns that are stored at a time."""


def store_rows(rows: Fragment, target: Tensor, boxes: Tensor | None, *, ends: bool = False) -> None:
    """Store rows by TMA, through this warpgroup's boxes, as many columns at a time as these hold.

    ends: rows may end within the tile, as those of a packed sequence do: 16 bytes a thread go from the boxes. Without
    boxes, rows are stored from registers.
    """
    if boxes is None:
        copy(rows.to(target.dtype), target, edge=0)
        return
    count, parts = int(boxes.shape[0]), rows.shape[1] // BOX
    for first in range(0, parts, count):
        together = range(first, min(first + count, parts))
        if not ends:
            with elected():
                bulk.wait(of="reads")  # the last stores from these boxes
        sync()
        for j in together:
            copy(rows.tile((ROWS, BOX), (0, j)).to(target.dtype), boxes[j % count], via=stmatrix.x4)
        if ends:
            sync()
            for j in together:
                copy(load(boxes[j % count], _BY_ROWS), target.tile((ROWS, BOX), (0, j)), edge=0)
            continue
        fence("async proxy")
        sync()
        with elected():
            for j in together:
                copy(boxes[j % count], target.tile((ROWS, BOX), (0, j)), via=tma, edge=0)
            bulk.commit()


_BY_ROWS = spread((ROWS, BOX), threads=128, vector=8)
