"""Times gfx942 kernels on a GPU, beside torch where it is installed: the part of `mi300x.py` that measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from math import ceil, prod
from typing import Any

import numpy as np
from attrs import frozen

from argus.core.ir import Kernel
from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.launch import load
from argus.runtime.gpu.timing import REGIMES, Stopwatch, time_interleaved
from argus.runtime.kernel_cache import build_cached
from argus.runtime.run import tensors_read
from benchmarks.corpus_cases import shape_of
from benchmarks.shipped import configurations, families

Row = dict[str, Any]
_BUSY, _BUSY_SECONDS = 1 << 28, 5e-5
"""Bytes that a GPU fills while launches are queued, and less than the time that it takes for them."""


@frozen
class Timed:
    """A kernel family at sizes. work: floating-point operations, or bytes moved; peer: torch's, of the torch module."""

    family: str
    configs: tuple[str, ...]
    sizes: Mapping[str, int]
    unit: str
    work: float
    peer: Callable[[Any], Callable[[], object]]

    @property
    def name(self) -> str:
        return f"{self.family} {', '.join(f'{name}={value}' for name, value in self.sizes.items())}"


def cases(*, few: bool = False) -> Iterator[Timed]:
    """What is timed: products of cubes, attention, rows of 8192 elements. few: one small case of each."""
    products = tuple(configurations("gfx942")["gemm"])
    for extent in (64,) if few else (2048, 4096, 8192):
        sizes = {"M": extent, "N": extent, "K": extent}
        yield Timed("gemm", products, sizes, "TFLOP/s", 2.0 * extent**3, partial(_product, extent))
    for width, causal in ((64, False),) if few else ((64, False), (128, False), (128, True), (256, False)):
        batch, heads, rows = (1, 1, 32) if few else (2, 16, 8192)
        sizes = {"B": batch, "H": heads, "S": rows, "G": heads, "T": rows}
        work = 4.0 * batch * heads * rows * rows * width / (2 if causal else 1)
        config = "cdna3_causal" if causal else "cdna3"
        shape = (batch, heads, rows, width)
        yield Timed(f"attention_{width}", (config,), sizes, "TFLOP/s", work, partial(_attention, shape, causal))
    rows, length = (4, 128) if few else (8192, 8192)
    for name in ("softmax",) if few else ("softmax", "rms_norm", "layer_norm"):
        config = "rowscdna3_rows16_steps1" if few else "rowscdna3_steps4"
        sizes = {"R": rows, "N": length}
        yield Timed(f"{name}_bf16", (config,), sizes, "GB/s", 4.0 * rows * length, partial(_rows, name, rows, length))


def time_rows(device: Device, torch: Any, case: Timed, *, rounds: int, busy: int = _BUSY) -> Iterator[Row]:  # noqa: ANN401 reason: torch's, or None
    """A row for each regime: milliseconds of each candidate in each round, interleaved, and rates by the medians."""
    template = dict(families())[case.family]
    memory: list[Memory] = []
    calls: dict[str, Callable[[], object]] = {}
    try:
        for config in case.configs:
            calls[config] = _launch(device, template.trace(config), case.sizes, memory)
        if torch is not None:
            calls["torch"] = case.peer(torch)
        filler = device.allocate((busy,), 1)
        memory.append(filler)
        stream = 0 if torch is None else torch.cuda.current_stream().cuda_stream
        watch = Stopwatch(device.driver, stream, partial(_hold, device, filler, stream))
        for regime in REGIMES:
            found = time_interleaved(watch, calls, regime, rounds)
            medians = {name: found.median(name) for name in calls}
            scale = 1e9 if case.unit == "TFLOP/s" else 1e6
            yield {
                "case": case.name,
                "regime": regime.name,
                "milliseconds": {name: list(each) for name, each in found.rounds.items()},
                "unit": case.unit,
                "rates": {name: case.work / median / scale for name, median in medians.items()},
                "trouble": "",
                "right": True,
            }
    finally:
        device.synchronise()
        for each in memory:
            device.free(each)


def _hold(device: Device, filler: Memory, stream: int, seconds: float) -> None:
    """Keep the GPU busy for some time, by filling memory."""
    for _ in range(ceil(seconds / _BUSY_SECONDS)):
        device.driver.fill_in_stream(filler.pointer, 0, filler.bytes, stream)


def _launch(device: Device, made: Kernel, sizes: Mapping[str, int], memory: list[Memory]) -> Callable[[], object]:
    """A launch on random operands; adds the tensors to `memory`."""
    random, read, named = np.random.default_rng(0), tensors_read(made), dict[str, Memory]()
    for buffer in made.parameters:
        shape = shape_of(buffer, made, sizes)
        named[buffer.name] = device.allocate(shape, buffer.dtype.bits // 8)
        memory.append(named[buffer.name])
        if buffer in read:
            block = random.standard_normal(min(1 << 20, prod(shape)), np.float32).astype(buffer.dtype.numpy)
            named[buffer.name].write(np.resize(block, prod(shape)).view(np.uint8))
    return load(build_cached(made), device.driver).bind(named, sizes)


# -- torch -----------------------------------------------------------------------------------------------------


def _normal(torch: Any, *shape: int) -> Any:  # noqa: ANN401 reason: torch's
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def _product(extent: int, torch: Any) -> Callable[[], object]:  # noqa: ANN401 reason: torch's
    a, b = _normal(torch, extent, extent), _normal(torch, extent, extent)
    out = _normal(torch, extent, extent)
    return lambda: torch.mm(a, b.mT, out=out)


def _attention(shape: tuple[int, ...], causal: bool, torch: Any) -> Callable[[], object]:  # noqa: ANN401 reason: torch's
    q, k, v = (_normal(torch, *shape) for _ in range(3))
    attention = import_module("torch.nn.functional").scaled_dot_product_attention
    return lambda: attention(q, k, v, is_causal=causal)


def _rows(name: str, rows: int, length: int, torch: Any) -> Callable[[], object]:  # noqa: ANN401 reason: torch's
    functional = import_module("torch.nn.functional")
    x = _normal(torch, rows, length)
    if name == "softmax":
        return lambda: functional.softmax(x, -1)
    return lambda: getattr(functional, name)(x, (length,))
