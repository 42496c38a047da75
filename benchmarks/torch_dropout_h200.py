"""Whether `argus.dropout` keeps on an H200 what torch's dropout keeps, in values and in gradients.

`benchmarks/torch_dropout_h200.py`: for each type and several counts of elements, both draw from the same state of the
generator. A line says how many elements differ in their bits, how many gradients do, and whether the generator moved on
alike; gradients are of one input and may differ in their last place, as torch divides by 1 - p in another precision.
Exits with status 1 if other elements are kept, a value differs, or the generator moved otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

import argus

TORCH: Any = torch
"""Whose types are open in part."""
COUNTS = (64, 4096, 1_000_001, 1_000_002, 5_000_004, 5_000_008, 40_000_000)
DRAWS = ((0, 0.5), (123456789012345, 0.1))
"""Seeds and probabilities."""
EARLIER = 1000
"""Numbers drawn before, so that the generator's offset is not 0."""


def made(call: Callable[..., Any], kind: Any, count: int, seed: int, p: float) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: torch's
    """The result of a dropout, the gradient of its sum weighted by the result, and the generator's state after it."""
    x = torch.linspace(1, 2, count, device="cuda").to(kind).requires_grad_()
    TORCH.cuda.manual_seed(seed)
    torch.rand(EARLIER, device="cuda")
    found = call(x, p)
    after = TORCH.cuda.get_rng_state()
    found.backward(torch.linspace(2, 3, count, device="cuda").to(kind))
    return found.detach(), x.grad, after


def compared(kind: Any, count: int) -> tuple[bool, str]:  # noqa: ANN401 reason: torch's
    values = gradients = kept = 0
    moved = True
    for seed, p in DRAWS:
        wanted, slope, after = made(functional.dropout, kind, count, seed, p)
        found, own, also = made(argus.dropout, kind, count, seed, p)
        values += int((found != wanted).sum())
        gradients += int((own != slope).sum())
        kept += int(((own == 0) != (slope == 0)).sum())
        moved = moved and torch.equal(after, also)
        near = torch.allclose(own.float(), slope.float(), rtol=2 * torch.finfo(kind).eps, atol=0)
        kept += int(not near)
    said = f"{count:,} of {kind}: {values:,} values and {gradients:,} gradients differ"
    ends = "the generator moved alike" if moved else "the generator MOVED OTHERWISE"
    return values == 0 and kept == 0 and moved, f"{said}, {kept:,} of them kept otherwise or far off, {ends}"


def lines() -> Iterator[tuple[bool, str]]:
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        for count in COUNTS:
            yield compared(kind, count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="portfolio", help="which verifies the kernels")
    wrong = 0
    with argus.use_solver(parser.parse_args().solver):
        for right, line in lines():
            wrong += not right
            print(line, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
