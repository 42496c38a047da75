"""Times grouped products of decoding on an H200: `benchmarks/moe_decode_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/moe_decode_h200; needs no GPU. run: checks each
against float64 on random numbers of rows, with NaN in the matrices of experts without rows, in rows of other experts
and in those that do not count, and a poisoned output between guard zones; that wrong numbers are refused; then times it
beside torch's `_grouped_mm`, a cuBLAS product an expert and tiles of 128 rows, in CUDA graphs in which each call has
other experts, so that their matrices are not in the L2 cache. Prints shares of the memory's 4.8 TB/s, counting the
matrices of experts with rows, and writes moe_decode.json in `--out`. `guarded`: with the numbers of rows checked on the
GPU ahead of each launch, as `argus.grouped_matmul` does.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import built_variants
import grouped_shapes
import moe_h200
from attrs import evolve, frozen
from moe_h200 import CLOSE, GUARD, SUMS, SUMS_FP8, guarded

from argus.kernels import grouped, grouped_few, grouped_few_fp8
from argus.kernels.schedules.grouped import BLOCK
from argus.language import Template

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_decode_h200"
ROUNDS, CHECKED = 9, 100
BANDWIDTH = 4.8e12
CACHE = 256 << 20
"""Bytes that calls in turn read at least, several times those of the L2 cache."""
TOKENS = (1, 2, 4, 8, 16, 32, 64)
KERNELS = {
    each.name: each for part in (grouped_few, grouped_few_fp8) for each in vars(part).values() if type(each) is Template
}
LARGE = "grouped_nt-by_rows"
"""The kernel for many rows."""


@frozen
class Shape:
    """N columns and K of so many experts, of which each token has a few."""

    E: int
    N: int
    K: int
    top: int

    def counts(self, tokens: int, random: Random) -> list[int]:
        """The rows of each expert, if each token draws its experts at random."""
        counts = [0] * self.E
        for _ in range(tokens):
            for expert in random.sample(range(self.E), self.top):
                counts[expert] += 1
        return counts

    def __str__(self) -> str:
        return f"E{self.E} N{self.N} K{self.K} top {self.top}"


SHAPES = (Shape(64, 2816, 2048, 6), Shape(256, 4096, 7168, 8))


def variants() -> dict[str, tuple[str, str]]:
    """The kernel and the configuration of each."""
    return {f"{name}-{config}": (name, config) for name, each in KERNELS.items() for config in each.configs}


def build(chosen: argparse.Namespace) -> int:
    traced = {name: partial(KERNELS[kind].trace, config) for name, (kind, config) in variants().items()}
    traced[LARGE] = partial(grouped.grouped_nt.trace, "by_rows")
    return built_variants.build(chosen, FOLDER, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


@frozen
class Given:
    """a: (rows, K) of all experts, or (E, most, K). b: (E, N, K) or (E, K, N) in memory. integers: offsets or counts.

    scales: of blocks, (K / 128, rows) or (E, K / 128, most), and (E, N / 128, K / 128), for operands of 8 bits.
    """

    a: Any
    b: Any
    counts: Sequence[int]
    integers: Any
    scales: tuple[Any, Any] | None = None

    @property
    def rows(self) -> list[Any]:
        """Which rows of `a` and of the result each expert has, as an index."""
        first = [0, *accumulate(self.counts)]
        packed = len(self.a.shape) == 2
        return [
            slice(first[e], first[e + 1]) if packed else (e, slice(0, count)) for e, count in enumerate(self.counts)
        ]


def integers_of(torch: Any, counts: Sequence[int], *, masked: bool) -> Any:  # noqa: ANN401 reason: untyped
    found = counts if masked else [0, *accumulate(counts)]
    return torch.tensor(found, device="cuda", dtype=torch.int32)


def bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    kernel: Any,  # noqa: ANN401 reason: as above
    given: Given,
    out: Any,  # noqa: ANN401 reason: as above
    promises: str = "fetch",
) -> Callable[[], None]:
    sizes = {"E": given.b.shape[0], "K": given.a.shape[-1], "N": out.shape[-1]}
    tensors = {"A": given.a, "B": given.b, "C": out}
    if len(out.shape) == 2:
        sizes |= {"M": out.shape[0], "R": given.b.shape[0] + 1}
        tensors["starts"] = given.integers
    else:
        sizes["R"] = out.shape[1]
        tensors["counts"] = given.integers
    if given.scales is not None:
        tensors["scale_a"], tensors["scale_b"] = given.scales
        sizes |= {"KB": given.scales[1].shape[2], "NB": given.scales[1].shape[1]}
    launch = kernel.prepare(sizes).bind(tensors, torch.cuda.current_stream().cuda_stream, promises)
    return built_variants.keeping(launch, tensors)


def in_8_bits(torch: Any, given: Given) -> Given:  # noqa: ANN401 reason: untyped
    """The same in e4m3, with random scales of blocks."""
    *outer, rows, depth = given.a.shape
    deep, wide = (-(-extent // BLOCK) for extent in (depth, given.b.shape[1]))
    extents = (*outer, deep, rows), (given.b.shape[0], wide, deep)
    of_a, of_b = (torch.rand(each, device="cuda") + 0.5 for each in extents)
    return evolve(given, a=given.a.to(torch.float8_e4m3fn), b=given.b.to(torch.float8_e4m3fn), scales=(of_a, of_b))


def with_matrices(given: Given, of_8: Given) -> Given:
    """Rows in e4m3 with the matrices of others, and these ones' scales."""
    assert given.scales is not None
    assert of_8.scales is not None
    return evolve(given, b=of_8.b, scales=(given.scales[0], of_8.scales[1]))


def random_given(torch: Any, kind: str, height: int, random: Random) -> Given:  # noqa: ANN401 reason: untyped
    """Numbers of rows of 0, 1, about those of tiles, and others; NaN in all that may not count."""
    experts = random.choice((1, 2, 3, 5, 8, 17, 40))

    def length() -> int:
        return random.choice(
            (0, 0, 1, random.randint(1, 4), random.randint(height - 1, height + 1), random.randint(1, 3 * height))
        )

    counts = [length() for _ in range(experts)]
    if not sum(counts):
        counts[-1] = 3
    columns, depth = (8 * random.choice((1, random.randint(1, 24), random.randint(1, 60))) for _ in range(2))
    depth *= 2 if "fp8" in kind else 1
    dtype = torch.float16 if kind.endswith("f16") else torch.bfloat16
    masked = kind.startswith("masked")
    rows = (experts, max(counts) + random.choice((0, 0, 1, height))) if masked else (sum(counts),)
    a = torch.randn((*rows, depth), device="cuda", dtype=dtype)
    b = torch.randn((experts, *((depth, columns) if "_nn" in kind else (columns, depth))), device="cuda", dtype=dtype)
    given = Given(a, b, counts, integers_of(torch, counts, masked=masked))
    poisoned = random.randrange(experts)
    for e, rows_of in enumerate(given.rows):
        if masked:
            a[e, counts[e] :] = float("nan")
        if e == poisoned and experts > 1:
            a[rows_of] = float("nan")
        if not counts[e]:
            b[e] = float("nan")
    return in_8_bits(torch, given) if "fp8" in kind else given


def excess(given: Given, kind: str, out: Any) -> float:  # noqa: ANN401 reason: untyped
    """The largest error from float64, in units of what is allowed; inf where an element is wrongly NaN, or is not."""
    worst = 0.0
    for e, rows in enumerate(given.rows):
        if not given.counts[e]:
            continue
        a, b = given.a[rows].double(), given.b[e].double()
        if given.scales is not None:
            of_a, of_b = given.scales[0][..., rows[1] if isinstance(rows, tuple) else rows], given.scales[1][e].double()
            of_a = of_a[e] if isinstance(rows, tuple) else of_a
            a *= of_a.T.double().repeat_interleave(BLOCK, 1)[:, : a.shape[1]]
            b *= of_b.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[: b.shape[0], : b.shape[1]]
        b = b if "_nn" in kind else b.T
        wanted, share = a @ b, a.abs() @ b.abs()
        sums = SUMS if given.scales is None else SUMS_FP8
        allowed = CLOSE[str(out.dtype).removeprefix("torch.")] * wanted.abs() + sums * share
        off = (out[rows].double() - wanted).abs() / allowed
        if bool((wanted.isnan() != off.isnan()).any()):
            return inf
        worst = max(worst, off.nan_to_num(0.0).max().item())
    return worst


def untouched(torch: Any, given: Given, out: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether rows beyond those that count are what they were: NaN of these very bits."""
    before = torch.full((1,), float("nan"), device="cuda", dtype=out.dtype).view(torch.int16)
    return all(bool((out[e, count:].view(torch.int16) == before).all()) for e, count in enumerate(given.counts))


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    if name == LARGE:
        return True
    (kind, config), random = variants()[name], Random(name)  # noqa: S311 reason: a seed makes the shapes repeatable
    worst, bad = 0.0, list[str]()
    for _ in range(count):
        given = random_given(torch, kind, KERNELS[kind].configs[config].bm, random)
        columns = given.b.shape[2 if "_nn" in kind else 1]
        dtype = torch.bfloat16 if given.scales else given.a.dtype
        out, around = guarded(torch, (given.a[..., 0].numel(), columns), dtype)
        out = out.view(*given.a.shape[:-1], columns)
        bound(torch, kernel, given, out, random.choice(("fetch", "stop")))()
        torch.cuda.synchronize()
        found = excess(given, kind, out)
        if not bool((around[:GUARD] == 1).all()) or not bool((around[-GUARD:] == 1).all()):
            found = inf
        if kind.startswith("masked") and not untouched(torch, given, out):
            found = inf
        worst = max(worst, found)
        if not found <= 1:
            bad.append(f"{given.counts} {tuple(given.b.shape)}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else f"worst error {worst:.2f} of what is allowed"
    refused = refuses_wrong_integers(torch, kind, kernel)
    print(f"{name}: {count} shapes, {said}; wrong numbers {'refused' if refused else 'ACCEPTED'}", flush=True)
    return refused and not bad


def refuses_wrong_integers(torch: Any, kind: str, kernel: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether offsets and numbers of rows that break their promise are refused."""
    masked = kind.startswith("masked")
    wrong = [[-1, 2, 3], [1, 9, 0]] if masked else [[1, 2, 3, 8], [0, 4, 3, 8], [0, 2, 3, 7], [0, 2, 3, 9]]
    for integers in wrong:
        a = torch.zeros((3, 8, 64) if masked else (8, 64), device="cuda", dtype=torch.bfloat16)
        a = a.half() if kind.endswith("f16") else a
        b = torch.zeros((3, 64, 64), device="cuda", dtype=a.dtype)
        given = Given(a, b, [], torch.tensor(integers, device="cuda", dtype=torch.int32))
        out = torch.empty_like(a)
        try:
            bound(torch, kernel, in_8_bits(torch, given) if "fp8" in kind else given, out)
        except Exception as problem:  # noqa: BLE001 reason: its code is compared
            if "E402" in str(problem):
                continue
        return False
    return True


def graph_of(torch: Any, calls: Sequence[Callable[[], object]]) -> Callable[[], object] | str:  # noqa: ANN401 reason: untyped
    """A CUDA graph of the calls in turn; why there is none, if a call fails."""
    try:
        calls[0]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for call in calls:
                call()
    except RuntimeError as problem:
        return str(problem).splitlines()[0]
    return graph.replay


def calls_of(
    torch: Any,  # noqa: ANN401 reason: untyped
    kernels: Mapping[str, Any],
    b: Any,  # noqa: ANN401 reason: as above
    of_8: Given,
    routings: Sequence[Sequence[int]],
) -> dict[str, list[Any]]:
    """By name, a call for each routing."""
    calls: dict[str, list[Any]] = {}
    experts, columns, depth = b.shape
    for counts in routings:
        rows, most = sum(counts), max(64, *counts)
        a = torch.randn((rows, depth), device="cuda", dtype=b.dtype)
        out = torch.full((rows, columns), float("nan"), device="cuda", dtype=b.dtype)
        given = Given(a, b, counts, integers_of(torch, counts, masked=False))
        large = grouped_shapes.Shape("", tuple(counts), columns, depth), moe_h200.Given(a, b, given.integers)
        in_parts = torch.randn((experts, most, depth), device="cuda", dtype=b.dtype)
        result = torch.empty((experts, most, columns), device="cuda", dtype=b.dtype)
        of_masked = Given(in_parts, b, counts, integers_of(torch, counts, masked=True))
        in_8, in_8_masked = (
            with_matrices(in_8_bits(torch, evolve(each, b=b[:1])), of_8) for each in (given, of_masked)
        )
        made: dict[str, Callable[[], object]] = {}
        for name, kernel in kernels.items():
            if name == LARGE:
                made[name] = moe_h200.bound(torch, kernel, 128, *large, out)
            elif name.startswith("packed_nt-"):
                made[name] = bound(torch, kernel, given, out)
                made[f"{name} guarded"] = bound(torch, kernel, given, out, "stop")
            elif name.startswith("masked_nt-"):
                made[name] = bound(torch, kernel, of_masked, result)
            elif name.startswith("packed_fp8"):
                made[name] = bound(torch, kernel, in_8, out)
            elif name.startswith("masked_fp8"):
                made[name] = bound(torch, kernel, in_8_masked, result)
        for name, call in (moe_h200.peers(torch, *large) | made).items():
            calls.setdefault(name, []).append(call)
    return calls


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    kernels: Mapping[str, Any],
    of: tuple[Shape, Any, Given],
    tokens: int,
    rounds: int,
) -> list[dict[str, Any]]:
    shape, b, of_8 = of
    random = Random(tokens)  # noqa: S311 reason: a seed makes the routings repeatable
    one = 2 * shape.N * shape.K
    number = max(3, min(16, -(-CACHE // (one * shape.top))))
    routings = [shape.counts(tokens, random) for _ in range(number)]
    met = statistics.mean(sum(count > 0 for count in counts) for counts in routings)
    graphs = {name: graph_of(torch, calls) for name, calls in calls_of(torch, kernels, b, of_8, routings).items()}
    ready = {name: graph for name, graph in graphs.items() if not isinstance(graph, str)}
    rows: list[dict[str, Any]] = []
    for regime, pause in (("sustained", 0.0), ("duty-cycled", 0.02)):
        times: dict[str, list[float]] = {name: [] for name in ready}
        for turn in range(rounds + 1):
            names = list(ready)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                time.sleep(pause)
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                if not pause:
                    ready[name]()
                begin.record()
                ready[name]()
                end.record()
                end.synchronize()
                if turn:
                    times[name].append(begin.elapsed_time(end) / number)
        for name, each in times.items():
            took = 1e3 * statistics.median(each)
            share = 1e6 * met * one / (2 if "fp8" in name else 1) / took / BANDWIDTH
            rows.append(
                {
                    "shape": str(shape),
                    "tokens": tokens,
                    "met": met,
                    "regime": regime,
                    "name": name,
                    "us": took,
                    "share": share,
                }
            )
        own = sorted((row for row in rows if row["regime"] == regime), key=lambda row: row["us"])
        said = ", ".join(f"{row['name']} {row['us']:.1f} ({100 * row['share']:.1f})" for row in own)
        print(f"{shape} {tokens} tokens {met:.1f} met {regime}: us (% of {BANDWIDTH / 1e12} TB/s): {said}", flush=True)
    for name, why in graphs.items():
        if isinstance(why, str):
            print(f"{name}: {why[:100]}")
    return rows


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        rows: list[dict[str, Any]] = []
        with torch.cuda.stream(torch.cuda.Stream()):
            for shape in SHAPES[: chosen.most]:
                b = torch.empty((shape.E, shape.N, shape.K), device="cuda", dtype=torch.bfloat16).normal_()
                of_8 = in_8_bits(torch, Given(b[0, :1], b, (), None))
                for tokens in TOKENS:
                    rows += timed(torch, good, (shape, b, of_8), tokens, chosen.rounds)
        return rows

    load = import_module("argus.runtime.gpu.launch").load
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "moe_decode.json")


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
