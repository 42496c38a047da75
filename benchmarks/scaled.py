"""Checks `argus.scaled_matmul` on a GPU: `python benchmarks/scaled.py build`, then `... scaled.py run` on an H200.

build: compiles and verifies every schedule into build/scaled, as its first call would; needs no GPU. run: checks both
kinds of scales against float64 on shapes with partial tiles in every dimension, every schedule on one shape, and a
captured launch; then measures the host time of a call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "build" / "scaled"
FIXED = ((1, 1, 16), (1, 8, 16), (64, 127, 128), (129, 257, 144), (200, 264, 272), (4096, 4096, 4096))
DRAWN = 14
CLOSE = 2.0**-7
CALLS = 2000
BLOCK = 128


def build() -> None:
    module, prebuilt = import_module("argus.ops.scaled_matmul"), import_module("argus.runtime.kernel_cache")
    for family in (module.WHOLE, module.BLOCKS):
        for config in family.configs:
            start = time.perf_counter()
            kernel = family.template.trace(config)
            prebuilt.build_cached(kernel)
            print(f"{kernel.name}: {prebuilt.verify_cached(kernel).verdict}, {time.perf_counter() - start:.1f} s")


def run() -> int:
    torch: Any = import_module("torch")
    module: Any = import_module("argus.ops.scaled_matmul")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    random = Random(0)  # noqa: S311 reason: shapes, not a secret
    drawn = [(random.randint(1, 1500), random.randint(1, 1500), 16 * random.randint(1, 120)) for _ in range(DRAWN)]
    bad = [f"{shape}, {kind}" for shape in (*FIXED, *drawn) for kind in KINDS if not right(torch, module, shape, kind)]
    for kind, family in (("whole", module.WHOLE), ("blocks", module.BLOCKS)):
        bad += [f"{kind} {name}" for name in family.configs if not right(torch, module, (520, 776, 336), kind, name)]
    print(f"{2 * len((*FIXED, *drawn))} products and every schedule: {len(bad)} wrong {bad}")
    fine = captured(torch, module)
    host(torch, module)
    return 1 if bad or not fine else 0


KINDS = ("whole", "blocks")


def operands(torch: Any, shape: tuple[int, int, int], kind: str) -> tuple[Any, Any, Any, Any]:  # noqa: ANN401 reason: untyped
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    if kind == "whole":
        return a, b.T, torch.rand(1, device="cuda") + 0.5, torch.rand((), device="cuda") + 0.5
    blocks, columns = -(-k // BLOCK), -(-n // BLOCK)
    of_a, of_b = torch.rand(blocks, m, device="cuda") + 0.5, torch.rand(columns, blocks, device="cuda") + 0.5
    return a, b.T, of_a.T, of_b.T


def right(torch: Any, module: Any, shape: tuple[int, int, int], kind: str, config: str | None = None) -> bool:  # noqa: ANN401 reason: untyped
    """Whether every element is close to float64, relative to itself and to the sum of its absolute products."""
    given = operands(torch, shape, kind)
    torch.full((shape[0] * shape[1],), float("nan"), device="cuda", dtype=torch.bfloat16)
    found = module.scaled_matmul(*given, config=config).double()
    a, b = exact(given, kind)
    wanted, share = a @ b, (a @ b).abs() + (a.abs() @ b.abs()) / 16
    error = ((found - wanted).abs() / share.clamp_min(1e-300)).nan_to_num(nan=float("inf")).max().item()
    if error >= CLOSE:
        print(f"{shape} {kind} {config}: {error:.3g}")
    return error < CLOSE


def exact(given: tuple[Any, Any, Any, Any], kind: str) -> tuple[Any, Any]:
    a, b, of_a, of_b = (each.double() for each in given)
    if kind == "whole":
        return a * of_a, b * of_b
    (k, n) = b.shape
    of_b = of_b.repeat_interleave(BLOCK, 0)[:k].repeat_interleave(BLOCK, 1)[:, :n]
    return a * of_a.repeat_interleave(BLOCK, 1)[:, :k], b * of_b


def captured(torch: Any, module: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether a replayed launch in a graph reads the current operands and scales."""
    fine = True
    for kind in KINDS:
        given = operands(torch, (256, 512, 384), kind)
        module.scaled_matmul(*given)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = module.scaled_matmul(*given)
        given[2].mul_(2.0)
        graph.replay()
        fine = fine and bool(torch.equal(found, module.scaled_matmul(*given)))
    print(f"captured launches are {'right' if fine else 'WRONG'}")
    return fine


def host(torch: Any, module: Any) -> None:  # noqa: ANN401 reason: untyped
    """Print the host time per call in microseconds."""
    for kind in KINDS:
        given = operands(torch, (64, 64, 64), kind)
        times: list[float] = []
        for number in range(CALLS):
            start = time.perf_counter()
            module.scaled_matmul(*given)
            times.append(time.perf_counter() - start)
            if number % 100 == 0:
                torch.cuda.synchronize()
        print(f"{kind}: {1e6 * statistics.median(times):.1f} us per call on the host")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run"))
    os.environ["ARGUS_CACHE_DIR"] = str(FOLDER)
    if parser.parse_args().part == "build":
        build()
    else:
        raise SystemExit(run())
