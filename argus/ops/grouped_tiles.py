"""The tiles of grouped products: which rows each has, and of which expert, computed on the device.

The kernel's launch checks them against the offsets, so that a fault here is reported and never computed with.
"""

from __future__ import annotations

from typing import Any

from argus.ops.call_path import torch


def count_of(rows: int, experts: int, height: int) -> int:
    """How many tiles of so many rows there are at most: as many as the rows fill, and a part of one for each expert."""
    return rows // height + experts


def tiles_of(starts: Any, rows: int, height: int) -> tuple[Any, Any]:  # noqa: ANN401 reason: torch's
    """The first row of each tile, with the end of the last one, and the expert of each; both are int32.

    starts: the first row of each expert, with the end of the last one's. height: the most rows of a tile. An expert's
    last tile may have fewer; tiles beyond those of the last expert have none. Does not wait for the device.
    """
    first, end = starts[:-1], starts[1:]
    numbers = (end - first + (height - 1)) // height
    ends = numbers.cumsum(0)
    tile = torch().arange(count_of(rows, first.shape[0], height) + 1, device=starts.device)
    expert = torch().searchsorted(ends, tile, right=True).clamp_(max=first.shape[0] - 1)
    begin = first[expert] + (tile - (ends - numbers)[expert]) * height
    return begin.minimum(end[expert]).int(), expert[:-1].int()
