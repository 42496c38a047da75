"""GEMM on Hopper beside cuBLAS: `python benchmarks/hopper.py build`, then on the GPU `python benchmarks/hopper.py run`.

build: emits and compiles every configuration of the family for sm_90a into build/hopper; needs no GPU. run: checks each
against float64 on random inputs with tails, outputs poisoned before, then times it beside cuBLAS in one process,
interleaved, random data, medians of single calls after idle (duty-cycled) and within bursts (sustained). small: checks
a few small shapes only, to be run under `compute-sanitizer --tool memcheck|racecheck|initcheck|synccheck`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "build" / "hopper"
CHECKED = 50
CUBES = (4096, 8192)
SMALL = ((1, 8, 8), (130, 264, 72), (64, 128, 200))
CALLS = 25
BURST = 20


def build() -> None:
    """Every sm_90a configuration of the shipped family."""
    from argus.build import build as build_kernel  # noqa: PLC0415 reason: the GPU's machine has no compiler
    from argus.kernels.gemm import gemm  # noqa: PLC0415 reason: as above

    for name in gemm.instances():
        kernel = gemm.trace(name)
        if kernel.target.name == "sm_90a":
            artifact = build_kernel(kernel, "sm_90a", FOLDER)
            print(artifact.name, artifact.report, *artifact.warnings)


def run() -> None:
    torch: Any = import_module("torch")
    load = import_module("argus.runtime.cuda").load
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    kernels = [load(path) for path in sorted(FOLDER.glob("*.json"))]
    print(json.dumps({"device": torch.cuda.get_device_name(), "kernels": [kernel.name for kernel in kernels]}))
    for kernel in kernels:
        errors = [check(torch, kernel, *shape) for shape in shapes()]
        worst = "not all written" if any(map(isnan, errors)) else f"worst error {max(errors):.2e}"
        print(f"{kernel.name}: {len(errors)} shapes, {worst}")
    for size in CUBES:
        timed(torch, kernels, size)


def small() -> None:
    torch: Any = import_module("torch")
    load = import_module("argus.runtime.cuda").load
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    for path in sorted(FOLDER.glob("*.json")):
        kernel = load(path)
        errors = [check(torch, kernel, *shape) for shape in SMALL]
        print(f"{kernel.name}: {len(errors)} small shapes, worst error {max(errors):.2e}", flush=True)


def shapes() -> list[tuple[int, int, int]]:
    """Whole tiles, tails of every extent, single rows, one large cube; N and K are multiples of 8."""
    random = Random(0)  # noqa: S311 reason: shapes, not a secret
    found = [(128, 256, 64), (64, 8, 8), (1, 8, 8), (200, 264, 136), (4096, 4096, 4096)]
    while len(found) < CHECKED:
        found.append((random.randint(1, 1500), 8 * random.randint(1, 190), 8 * random.randint(1, 190)))
    return found


def check(torch: Any, kernel: Any, m: int, n: int, k: int) -> float:  # noqa: ANN401 reason: untyped
    """The largest error beside float64, as a share of |result| + sqrt(k); nan if anything was not written."""
    a, b, c = tensors(torch, m, n, k)
    c.fill_(float("nan"))
    kernel.bind({"A": a, "B": b, "C": c}, {"M": m, "N": n, "K": k}, torch.cuda.current_stream().cuda_stream)()
    torch.cuda.synchronize()
    exact = a.double() @ b.double().T
    return ((c.double() - exact).abs() / (exact.abs() + k**0.5)).max().item()


def tensors(torch: Any, m: int, n: int, k: int) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: untyped
    def normal(rows: int, columns: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(rows, columns, device="cuda").bfloat16()

    return normal(m, k), normal(n, k), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def timed(torch: Any, kernels: Sequence[Any], size: int) -> None:  # noqa: ANN401 reason: untyped
    a, b, c = tensors(torch, size, size, size)
    stream = torch.cuda.current_stream().cuda_stream
    sizes = {"M": size, "N": size, "K": size}
    calls: dict[str, Callable[[], Any]] = {"cuBLAS": lambda: torch.mm(a, b.T, out=c)}
    calls |= {kernel.name: kernel.bind({"A": a, "B": b, "C": c}, sizes, stream) for kernel in kernels}
    for regime, repeat, pause in (("duty-cycled", 1, 0.02), ("sustained", BURST, 0.0)):
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(CALLS):
            for name, call in calls.items():
                time.sleep(pause)
                times[name].append(elapsed(torch, call, repeat))
        rates = {name: 2e-9 * size**3 / statistics.median(each) for name, each in times.items()}
        shown = ", ".join(f"{name} {rate:.0f} ({rate / rates['cuBLAS']:.3f})" for name, rate in rates.items())
        print(f"{size} cubed, {regime}, TFLOP/s (ratio to cuBLAS): {shown}")


def elapsed(torch: Any, call: Callable[[], Any], repeat: int) -> float:  # noqa: ANN401 reason: untyped
    """Milliseconds a call, after one that warms the clock."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    begin.record()
    for _ in range(repeat):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeat


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run", "small"))
    {"build": build, "run": run, "small": small}[parser.parse_args().part]()
