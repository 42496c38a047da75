"""Times the gradients of experts' matrices on an H200: `benchmarks/moe_gradient_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/moe_gradient_h200; needs no GPU. run: checks each
against float64 on random numbers of rows, experts without rows among them, between guard zones, with a poisoned output,
and with NaN and infinities in rows of some experts, which other experts' results may not show; then times it vs.
torch's `_grouped_mm` of two matrices and one cuBLAS product an expert, for the shapes of `moe_h200.py`: interleaved, in
rounds of rotating order, in both regimes. `whole`: with offsets checked on the GPU ahead of it, as autograd does.
Writes moe_gradient.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import built_variants
from attrs import frozen
from built_variants import Loaded, Rows
from grouped_shapes import Shape, shapes
from moe_h200 import CLOSE, GUARD, SUMS, guarded

from argus.kernels.grouped_weights import CONFIGS, FAMILIES
from argus.language import bf16, f16, sm_90a

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_gradient_h200"
ROUNDS, CHECKED = 7, 100
SAMPLED = 64
"""Rows of each expert's gradient that are compared where all would take long."""
KINDS = {"bf16": bf16, "f16": f16}
LEAST = {"bfloat16": 2.0**-133, "float16": 2.0**-24}
"""The least number above zero, by which products of single rows may be rounded."""


def variants() -> dict[str, tuple[str, str]]:
    """The type and the configuration of each."""
    own = [name for name, each in CONFIGS.items() if each.target == sm_90a]
    return {f"{kind}-{config}": (kind, config) for kind in KINDS for config in own}


def build(chosen: argparse.Namespace) -> int:
    traced = {name: partial(FAMILIES[KINDS[kind]].trace, config) for name, (kind, config) in variants().items()}
    return built_variants.build(chosen, FOLDER, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


@frozen
class Given:
    """The operands: rows of X and of the result's gradient G, and the offsets of experts."""

    x: Any
    g: Any
    starts: Any

    @classmethod
    def random(cls, torch: Any, shape: Shape, kind: str) -> Given:  # noqa: ANN401 reason: untyped
        dtype = torch.float16 if kind == "f16" else torch.bfloat16
        x, g = (torch.randn((shape.rows, wide), device="cuda", dtype=dtype) for wide in (shape.K, shape.N))
        return cls(x, g, torch.tensor([0, *accumulate(shape.counts)], device="cuda", dtype=torch.int32))


def bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    program: Any,  # noqa: ANN401 reason: as above
    shape: Shape,
    given: Given,
    out: Any,  # noqa: ANN401 reason: as above
    promises: str = "fetch",
) -> Callable[[], None]:
    experts = len(shape.counts)
    sizes = {"M": shape.rows, "K": shape.K, "E": experts, "N": shape.N, "R": experts + 1}
    prepared = program.prepare(sizes)
    tensors = {"X": given.x, "G": given.g, "starts": given.starts, "D": out}
    for each in prepared.workspaces:  # not a number where the first launch writes nothing
        tensors[each.name] = torch.full(each.shape, float("nan"), device="cuda", dtype=given.x.dtype)
    launch = prepared.bind(tensors, torch.cuda.current_stream().cuda_stream, promises)
    return built_variants.keeping(launch, tensors)


def excess(torch: Any, shape: Shape, given: Given, out: Any, rows: int | None = None) -> float:  # noqa: ANN401 reason: untyped
    """The largest error from float64, in units of what is allowed; infinite where only one of both is a number.

    rows: how many of each expert's gradient are compared, at random; by default all.
    """
    worst, ends = 0.0, [0, *accumulate(shape.counts)]
    for e, (first, end) in enumerate(pairwise(ends)):
        here = torch.arange(shape.K, device="cuda") if rows is None else torch.randperm(shape.K, device="cuda")[:rows]
        x, g = given.x[first:end, here].double().T, given.g[first:end].double()
        wanted, found = x @ g, out[e, here].double()
        if bool((found.isfinite() != wanted.isfinite()).any()):
            return inf
        kind = str(out.dtype).removeprefix("torch.")
        allowed = CLOSE[kind] * wanted.abs() + SUMS * (x.abs() @ g.abs()) + LEAST[kind]
        off = ((found - wanted).abs() / allowed)[wanted.isfinite()]
        if bool(off.isnan().any()):
            return inf
        worst = max(worst, off.max().item()) if off.numel() else worst
    return worst


def random_shape(random: Random) -> Shape:
    """Numbers of rows of 0, 1, about those of blocks, and others; rows of multiples of 16 bytes."""

    def length() -> int:
        blocks = 64 * random.randint(1, 4)
        return random.choice((0, 0, 1, random.randint(1, 40), blocks + random.randint(-2, 2), random.randint(1, 600)))

    counts = [length() for _ in range(random.choice((1, 2, 3, 5, 8, 17)))]
    if not sum(counts):
        counts[-1] = 3
    columns, depth = (random.choice((1, random.randint(1, 24), random.randint(1, 80))) for _ in range(2))
    return Shape("random", tuple(counts), 8 * columns, 8 * depth)


def poison(random: Random, shape: Shape, given: Given) -> None:
    """Put NaN and infinities into first and last rows of some experts."""
    ends = [0, *accumulate(shape.counts)]
    for first, end in pairwise(ends):
        if first < end and random.random() < 0.4:
            for row in {first, end - 1, random.randrange(first, end)}:
                value = random.choice((float("nan"), float("inf"), float("-inf")))
                given.x[row, random.randrange(shape.K)] = value
                given.g[row, random.randrange(shape.N)] = value


def is_right(torch: Any, name: str, program: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    kind, _ = variants()[name]
    random = Random(name)  # noqa: S311 reason: a seed makes the shapes repeatable
    worst, bad = 0.0, list[str]()
    for _ in range(count):
        shape = random_shape(random)
        given = Given.random(torch, shape, kind)
        poison(random, shape, given)
        out, around = guarded(torch, (len(shape.counts), shape.K, shape.N), given.x.dtype)
        out.fill_(7.0)  # NaN may be right
        bound(torch, program, shape, given, out, random.choice(("fetch", "stop")))()
        torch.cuda.synchronize()
        found = excess(torch, shape, given, out)
        if not bool((around[:GUARD] == 1).all()) or not bool((around[-GUARD:] == 1).all()):
            found = inf
        worst = max(worst, found)
        if not found <= 1:
            bad.append(f"{shape}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else f"worst error {worst:.2f} of what is allowed"
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def refuses_wrong_offsets(torch: Any, program: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether wrong offsets are refused before a launch."""
    shape = Shape("wrong", (100, 0, 250, 30), 64, 64)
    given = Given.random(torch, shape, "bf16")
    out = torch.empty((4, 64, 64), device="cuda", dtype=given.x.dtype)
    refused, wrong = 0, ((0, 1), (1, 120), (2, 90), (4, 379), (4, 381), (0, -1))
    for at, value in wrong:
        starts = given.starts.clone()
        starts[at] = value
        try:
            bound(torch, program, shape, Given(given.x, given.g, starts), out)
        except Exception as problem:  # noqa: BLE001 reason: its code is compared
            refused += "E402" in str(problem)
    print(f"wrong offsets: {refused} of {len(wrong)} refused", flush=True)
    return refused == len(wrong)


def peers(torch: Any, shape: Shape, given: Given) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """torch's grouped product, and one product an expert, whose numbers of rows the host knows."""
    turned, ends = given.x.T, given.starts[1:].contiguous()
    out = torch.empty((len(shape.counts), shape.K, shape.N), device="cuda", dtype=given.x.dtype)
    first = [0, *accumulate(shape.counts)]
    parts = [
        (given.x[first[e] : first[e + 1]].T, given.g[first[e] : first[e + 1]], out[e]) for e in range(len(shape.counts))
    ]

    def loop() -> None:
        for x, g, d in parts:
            torch.mm(x, g, out=d)

    return {"torch": lambda: torch._grouped_mm(turned, given.g, offs=ends), "cublas": loop}


def timed(torch: Any, programs: Loaded, shape: Shape, rounds: int) -> Rows:  # noqa: ANN401 reason: untyped
    given = Given.random(torch, shape, "bf16")
    calls = peers(torch, shape, given)
    theirs = tuple(calls)
    out = torch.empty((len(shape.counts), shape.K, shape.N), device="cuda", dtype=torch.bfloat16)
    for name, program in programs.items():
        kind, config = variants()[name]
        if kind != "bf16":
            continue
        calls[config] = bound(torch, program, shape, given, out)
        calls[f"{config} whole"] = bound(torch, program, shape, given, out, "stop")
        out.fill_(7.0)
        calls[config]()
        torch.cuda.synchronize()
        found = excess(torch, shape, given, out, SAMPLED)
        print(f"{shape.name} {config}: error {found:.2f} of what is allowed{'' if found <= 1 else ' WRONG'}")
    driver = next(iter(programs.values())).driver
    operations = 2.0 * shape.rows * shape.N * shape.K
    return built_variants.timed_beside(torch, driver, calls, theirs, shape.name, operations, rounds)


def run(chosen: argparse.Namespace) -> int:
    refused: list[bool] = []

    def all_timed(torch: Any, good: Loaded) -> Rows:  # noqa: ANN401 reason: untyped
        refused.extend(refuses_wrong_offsets(torch, each) for each in good.values())
        rows: list[Any] = []
        for shape in shapes()[: chosen.most]:
            rows += timed(torch, good, shape, chosen.rounds)
            torch.cuda.empty_cache()
        print(built_variants.table(rows), flush=True)
        return rows

    load = import_module("argus.runtime.programs").load_program
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "moe_gradient.json") or int(not all(refused))


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
