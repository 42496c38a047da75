"""Times of short launches: calls are captured in CUDA graphs, which are replayed in rounds of rotating order."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from argus.runtime.gpu import timing

CALLS = 20
"""Calls in a graph."""


def captured(torch: Any, call: Callable[[], object], calls: int = CALLS) -> Any:  # noqa: ANN401 reason: untyped
    """A CUDA graph of some calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def times(torch: Any, calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:  # noqa: ANN401 reason: untyped
    """Microseconds of a call by regime and name: medians over rounds."""
    graphs = {name: captured(torch, call) for name, call in calls.items()}
    driver = import_module("argus.runtime.gpu.find").find_driver()
    watch = timing.Stopwatch(driver, torch.cuda.current_stream().cuda_stream, lambda s: torch.cuda._sleep(int(2e9 * s)))
    found: dict[str, dict[str, float]] = {}
    for regime in timing.REGIMES:
        taken = timing.time_interleaved(watch, {name: each.replay for name, each in graphs.items()}, regime, rounds)
        found[regime.name] = {name: 1e3 * statistics.median(taken.rounds[name]) / CALLS for name in calls}
    return found


def host_time(torch: Any, call: Callable[[], object]) -> float:  # noqa: ANN401 reason: untyped
    """Microseconds of the host for a call."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(200):
        call()
    taken = 1e6 * (time.perf_counter() - begin) / 200
    torch.cuda.synchronize()
    return taken
