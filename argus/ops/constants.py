"""Equal numbers on a device, such as the factor of scores: made on first use and kept."""

from __future__ import annotations

from functools import cache
from typing import Any

from argus.ops.call_path import refuser, torch


@cache
def constant(operator: str, value: float, length: int, dtype: str, device: int | None) -> Any:  # noqa: ANN401 reason: torch's
    """Equal numbers. device: the number of a GPU, None for the CPU.

    Raises ArgusError (E401) within the capture of a graph, whose memory they would take.
    """
    if device is not None and torch().cuda.is_current_stream_capturing():
        what = "the first call with these constants is captured"
        refuser(operator)(what, "call it once before `torch.cuda.graph`")
    place = "cpu" if device is None else f"cuda:{device}"
    return torch().full((length,), value, dtype=getattr(torch(), dtype), device=place)


def factor(operator: str, value: float, device: int | None) -> Any:  # noqa: ANN401 reason: torch's
    """One number, in fp32. Raises as `constant`."""
    return constant(operator, value, 1, "float32", device)
