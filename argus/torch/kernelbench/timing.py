"""Times of several functions on a GPU, interleaved, each call after the cache was overwritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch

_CACHE = 1 << 28
"""Bytes that are written before each call: more than any second-level cache holds."""


def interleaved(
    functions: Mapping[str, Callable[..., Any]], inputs: Callable[[int], list[Any]], rounds: int
) -> dict[str, float]:
    """The median time of each function in milliseconds. inputs: makes fresh ones, by the number of the round."""
    cuda: Any = torch.cuda
    flush = torch.empty(_CACHE, dtype=torch.int8, device="cuda")
    found: dict[str, list[float]] = {name: [] for name in functions}
    with torch.no_grad():
        for number in range(rounds):
            given = inputs(number)
            for name, function in functions.items():
                flush.zero_()
                start, end = (cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                function(*given)
                end.record()
                end.synchronize()
                found[name].append(float(start.elapsed_time(end)))
    return {name: median(times) for name, times in found.items()}
