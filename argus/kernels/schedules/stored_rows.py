"""A warpgroup's rows to memory by TMA, as attention and its gradients store them."""

from __future__ import annotations

from argus.language import Fragment, Tensor, bulk, copy, elected, fence, stmatrix, sync, tma

ROWS, BOX = 64, 64
"""Rows of a warpgroup, and columns that are stored at a time."""


def store_rows(rows: Fragment, target: Tensor, boxes: Tensor | None) -> None:
    """Store rows by TMA, some columns at a time, through this warpgroup's boxes in turn; all are used equally often.

    Without boxes, from registers, as rows of a packed sequence are, which end within a box.
    """
    if boxes is None:
        copy(rows.to(target.dtype), target, edge=0)
        return
    count = int(boxes.shape[0])
    for j in range(rows.shape[1] // BOX):
        box, at = boxes[j % count], target.tile((ROWS, BOX), (0, j))
        with elected():
            bulk.wait(pending=count - 1, of="reads")  # the last store from this box
        sync()
        copy(rows.tile((ROWS, BOX), (0, j)).to(target.dtype), box, via=stmatrix.x4)
        fence("async proxy")
        sync()
        with elected():
            copy(box, at, via=tma, edge=0)
            bulk.commit()
