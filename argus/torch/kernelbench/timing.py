"""Times of several functions on a GPU, interleaved, each call after the cache was overwritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import Any

import torch
from attrs import frozen

_CACHE = 1 << 28
"""Bytes that are written before each call: more than any second-level cache holds."""
_AHEAD = 32
"""Times that they are written before a call that is queued: about two milliseconds."""


@frozen
class Medians:
    """Milliseconds of each function, by its name. device: between two events on the GPU. host: until a call returns."""

    device: dict[str, float]
    host: dict[str, float]


def interleaved(
    functions: Mapping[str, Callable[..., Any]],
    inputs: Callable[[int], list[Any]],
    rounds: int,
    *,
    queued: bool = False,
) -> Medians:
    """The medians over the rounds, in each of which another function is the first.

    inputs: makes fresh ones, by the number of the round. queued: whether the GPU has work for two milliseconds when a
    function is called, so that what the host needs for a call within these is no part of the time on the GPU.
    """
    cuda: Any = torch.cuda
    flush = torch.empty(_CACHE, dtype=torch.int8, device="cuda")
    device: dict[str, list[float]] = {name: [] for name in functions}
    host: dict[str, list[float]] = {name: [] for name in functions}
    with torch.no_grad():
        for number in range(rounds):
            given = inputs(number)
            names, first = list(functions), number % max(1, len(functions))
            for name in names[first:] + names[:first]:
                for _ in range(_AHEAD if queued else 1):
                    flush.zero_()
                start, end = (cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                begun = perf_counter()
                functions[name](*given)
                host[name].append(1e3 * (perf_counter() - begun))
                end.record()
                end.synchronize()
                device[name].append(float(start.elapsed_time(end)))
    return Medians(*({name: median(each) for name, each in found.items()} for found in (device, host)))
