"""Times grouped products on an H200: `benchmarks/moe_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/moe_h200; needs no GPU. run: checks each against
float64 on random numbers of rows, experts without rows among them, with a poisoned output between guard zones; that
wrong offsets and wrong tiles are refused; then times it vs. torch's `_grouped_mm` and one cuBLAS product an expert,
both in bf16, torch's `_scaled_grouped_mm` of e4m3 with scales of rows and columns, and DeepGEMM in bf16 and in e4m3
with scales of blocks if `benchmarks/peers/deep_gemm.py` has built it, and vLLM's kernel in Triton in the same if
`benchmarks/peers/vllm_moe.py` has taken it out, for several ways to distribute rows: interleaved, in rounds of rotating
order, in both regimes. `whole`: with its tiles computed and all integers checked on the GPU ahead
of the launch, as `argus.grouped_matmul` does. Writes moe.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import accumulate
from math import inf, prod
from pathlib import Path
from random import Random
from typing import Any

import built_variants
from attrs import evolve, frozen
from built_variants import Loaded, Rows
from grouped_shapes import Shape, shapes
from peers import deep_gemm_calls, vllm_moe
from peers.deep_gemm import BF16, E4M3, grouped_product

from argus.kernels import grouped, grouped_fp8
from argus.kernels.schedules.grouped import BLOCK
from argus.language import Template, sm_90a
from argus.ops.grouped_tiles import count_of, tiles_of

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_h200"
ROUNDS, CHECKED = 7, 100
GUARD = 4096
"""Elements before and after an output that must stay as they are."""
SAMPLED = 8
"""Rows of each expert that are compared where all would take long."""
CLOSE = {"bfloat16": 2.0**-8, "float16": 2.0**-10}
SUMS, SUMS_FP8, SUMS_WHOLE = 2.0**-16, 2.0**-11, 2.0**-10
"""The error of a sum in fp32, of the sum of its terms' magnitudes; and where the matrix unit keeps 14 bits of one, of
128 terms, or of thousands."""
KERNELS = {each.name: each for part in (grouped, grouped_fp8) for each in vars(part).values() if type(each) is Template}
FP8, FP8_ROWS = "grouped_fp8_blocks", "grouped_fp8_rows"
SAID = {FP8: "fp8 ", FP8_ROWS: "fp8 rows "}
"""What variants of a kernel are called in results."""
THEIRS = {BF16: "grouped_nt", E4M3: FP8}
"""Whose operands the peers' products of each type take."""


def variants() -> dict[str, tuple[str, str]]:
    """The kernel and the configuration of each."""
    return {
        f"{name}-{config}": (name, config)
        for name, each in KERNELS.items()
        for config, of in each.configs.items()
        if of.target == sm_90a
    }


def build(chosen: argparse.Namespace) -> int:
    traced = {name: partial(KERNELS[kind].trace, config) for name, (kind, config) in variants().items()}
    return built_variants.build(chosen, FOLDER, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


@frozen
class Given:
    """The operands: A of all rows, B of each expert as (N, K) or (K, N) in memory, and the offsets of experts.

    scales: for operands of 8 bits, of blocks, (K / 128, rows) and (experts, N / 128, K / 128), or of rows and columns,
    (rows) and (experts, N).
    """

    a: Any
    b: Any
    starts: Any
    scales: tuple[Any, Any] | None = None

    @property
    def of_blocks(self) -> bool:
        """Whether there are scales of blocks."""
        return self.scales is not None and self.scales[0].dim() > 1


def operands(torch: Any, shape: Shape, kind: str) -> Given:  # noqa: ANN401 reason: untyped
    dtype = torch.float16 if kind.endswith("f16") else torch.bfloat16
    inner = (shape.K, shape.N) if "_nn" in kind else (shape.N, shape.K)
    a = torch.randn((shape.rows, shape.K), device="cuda", dtype=dtype)
    b = torch.randn((len(shape.counts), *inner), device="cuda", dtype=dtype)
    starts = torch.tensor([0, *accumulate(shape.counts)], device="cuda", dtype=torch.int32)
    if kind not in (FP8, FP8_ROWS):
        return Given(a, b, starts)
    deep, wide = (-(-extent // BLOCK) for extent in (shape.K, shape.N))
    of_blocks = (deep, shape.rows), (len(shape.counts), wide, deep)
    extents = of_blocks if kind == FP8 else ((shape.rows,), (len(shape.counts), shape.N))
    of_a, of_b = (torch.rand(each, device="cuda") + 0.5 for each in extents)
    return Given(a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), starts, (of_a, of_b))


def result_type(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    return given.a.dtype if given.scales is None else torch.bfloat16


def guarded(torch: Any, extents: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN within guard zones of ones, and all of that memory."""
    count = prod(extents)
    whole = torch.ones(count + 2 * GUARD, device="cuda", dtype=dtype)
    inside = whole[GUARD : GUARD + count]
    inside.fill_(float("nan"))
    return inside.view(extents), whole


def bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    kernel: Any,  # noqa: ANN401 reason: as above
    height: int,
    shape: Shape,
    given: Given,
    out: Any,  # noqa: ANN401 reason: as above
    promises: str = "fetch",
    tiles: tuple[Any, Any] | None = None,
) -> Callable[[], None]:
    experts = len(shape.counts)
    count = count_of(shape.rows, experts, height)
    sizes = {"M": shape.rows, "K": shape.K, "E": experts, "N": shape.N, "R": experts + 1, "S": count + 1, "T": count}
    first, owners = tiles or tiles_of(given.starts, shape.rows, height)
    tensors = {"A": given.a, "B": given.b, "starts": given.starts, "tile_starts": first, "tile_experts": owners}
    tensors["C"] = out
    if given.scales is not None:
        tensors["scale_a"], tensors["scale_b"] = given.scales
        sizes |= {"KB": given.scales[0].shape[0], "NB": given.scales[1].shape[1]} if given.of_blocks else {}
    launch = kernel.prepare(sizes).bind(tensors, torch.cuda.current_stream().cuda_stream, promises)
    return built_variants.keeping(launch, tensors)


def height_of(kind: str, config: str) -> int:
    """The rows of a tile."""
    return KERNELS[kind].configs[config].bm


def whole(height: int, shape: Shape, given: Given, launch: Callable[[], None]) -> Callable[[], None]:
    """The launch with its tiles computed ahead of it, as the operator does; `launch` reads equal ones."""

    def call() -> None:
        tiles_of(given.starts, shape.rows, height)
        launch()

    return call


def excess(torch: Any, shape: Shape, given: Given, kind: str, out: Any, rows: int | None = None) -> float:  # noqa: ANN401 reason: untyped
    """The largest error from float64, in units of what is allowed; nan where an element was not written.

    rows: how many of each expert are compared, at random; by default all.
    """
    worst = 0.0
    for e, count in enumerate(shape.counts):
        first = sum(shape.counts[:e])
        here = torch.arange(count, device="cuda") if rows is None else torch.randperm(count, device="cuda")[:rows]
        a, b = given.a[first + here].double(), given.b[e].double()
        if given.scales is not None and not given.of_blocks:
            a, b = a * given.scales[0][first + here, None], b * given.scales[1][e][:, None]
        elif given.scales is not None:
            of_a, of_b = given.scales[0][:, first + here].T.double(), given.scales[1][e].double()
            a *= of_a.repeat_interleave(BLOCK, 1)[:, : shape.K]
            b *= of_b.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[: shape.N, : shape.K]
        b = b if "_nn" in kind else b.T
        wanted, share = a @ b, a.abs() @ b.abs()
        sums = SUMS if given.scales is None else SUMS_FP8 if given.of_blocks else SUMS_WHOLE
        allowed = CLOSE[str(out.dtype).removeprefix("torch.")] * wanted.abs() + sums * share
        off = (out[first + here].double() - wanted).abs() / allowed
        if bool(off.isnan().any()):
            return inf
        worst = max(worst, off.max().item()) if count else worst
    return worst


def random_shape(random: Random, kind: str) -> Shape:
    """Numbers of rows of 0, 1, about those of tiles, and others; rows of multiples of 16 bytes."""
    count = random.choice((1, 2, 3, 5, 8, 17))

    def length() -> int:
        return random.choice((0, 0, 1, random.randint(1, 40), random.randint(120, 136), random.randint(1, 600)))

    counts = [length() for _ in range(count)]
    if not sum(counts):
        counts[-1] = 3
    columns, depth = (random.choice((1, random.randint(1, 24), random.randint(1, 80))) for _ in range(2))
    return Shape("random", tuple(counts), 8 * columns, (16 if kind in (FP8, FP8_ROWS) else 8) * depth)


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    kind, config = variants()[name]
    random = Random(name)  # noqa: S311 reason: a seed makes the shapes repeatable
    worst, bad = 0.0, list[str]()
    for _ in range(count):
        shape = random_shape(random, kind)
        given = operands(torch, shape, kind)
        out, around = guarded(torch, (shape.rows, shape.N), result_type(torch, given))
        bound(torch, kernel, height_of(kind, config), shape, given, out, random.choice(("fetch", "stop")))()
        torch.cuda.synchronize()
        found = excess(torch, shape, given, kind, out)
        if not bool((around[:GUARD] == 1).all()) or not bool((around[-GUARD:] == 1).all()):
            found = inf
        worst = max(worst, found)
        if not found <= 1:
            bad.append(f"{shape}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else f"worst error {worst:.2f} of what is allowed"
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def refuses_wrong_integers(torch: Any, name: str, kernel: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether wrong offsets, and tiles that are not of their expert, are refused before a launch."""
    kind, _ = variants()[name]
    shape = Shape("wrong", (100, 0, 250, 30), 64, 64)
    given = operands(torch, shape, kind)
    out = torch.empty((shape.rows, shape.N), device="cuda", dtype=result_type(torch, given))
    first, owners = tiles_of(given.starts, shape.rows, 128)
    wrong: list[tuple[Any, Any, Any]] = []
    for at, value in ((0, 1), (1, 120), (2, 90), (4, 379), (4, 381)):
        wrong.append((_with(given.starts, at, value), first, owners))
    for at, value in ((0, 1), (1, 101), (2, 100), (3, 349), (6, 381)):
        wrong.append((given.starts, _with(first, at, value), owners))
    for at, value in ((0, 1), (0, 2), (1, 0), (1, 1), (3, 2), (4, 2), (4, 4), (0, -1)):
        wrong.append((given.starts, first, _with(owners, at, value)))
    refused = 0
    for starts, *tiles in wrong:
        try:
            bound(torch, kernel, 128, shape, evolve(given, starts=starts), out, tiles=(tiles[0], tiles[1]))
        except Exception as problem:  # noqa: BLE001 reason: its code is compared
            refused += "E402" in str(problem)
    print(f"wrong offsets and tiles: {refused} of {len(wrong)} refused", flush=True)
    return refused == len(wrong)


def _with(tensor: Any, at: int, value: int) -> Any:  # noqa: ANN401 reason: untyped
    made = tensor.clone()
    made[at] = value
    return made


def finds_tiles(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether the tiles of random numbers of rows are what the host finds, also of more experts than a block holds."""
    random, right = Random("tiles"), 0  # noqa: S311 reason: a seed makes the numbers repeatable
    for number in range(CHECKED):
        experts = random.choice((1, 3, 64, 1023, 1024, 1025, 3000)) if number % 2 else random.randint(1, 40)
        counts = [random.choice((0, 1, 127, 128, 129, random.randint(0, 700))) for _ in range(experts)]
        starts, height = [0, *accumulate(counts)], random.choice((64, 128))
        tiles = [(r, e) for e, count in enumerate(counts) for r in range(starts[e], starts[e] + count, height)]
        tiles += [(starts[-1], experts - 1)] * (count_of(starts[-1], experts, height) - len(tiles))
        found = tiles_of(torch.tensor(starts, device="cuda", dtype=torch.int32), starts[-1], height)
        right += [each.tolist() for each in found] == [[*(r for r, _ in tiles), starts[-1]], [e for _, e in tiles]]
    print(f"tiles: {right} of {CHECKED} lists right", flush=True)
    return right == CHECKED


def peers(torch: Any, shape: Shape, given: Given) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """torch's grouped product, and one product an expert, whose numbers of rows the host knows."""
    turned, ends = given.b.mT, given.starts[1:].contiguous()
    out = torch.empty((shape.rows, shape.N), device="cuda", dtype=given.a.dtype)
    first = [0, *accumulate(shape.counts)]
    parts = [
        (given.a[first[e] : first[e + 1]], turned[e], out[first[e] : first[e + 1]])
        for e, count in enumerate(shape.counts)
        if count
    ]

    def loop() -> None:
        for a, b, c in parts:
            torch.mm(a, b, out=c)

    return {"torch": lambda: torch._grouped_mm(given.a, turned, offs=ends), "cublas": loop}


def scaled_peer(torch: Any, given: Given) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """torch's grouped product of e4m3 with scales of rows and columns."""
    assert given.scales is not None
    ends, (of_a, of_b) = given.starts[1:].contiguous(), given.scales
    kind = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
    return lambda: torch._scaled_grouped_mm(given.a, given.b.mT, of_a, of_b, offs=ends, **kind)


def deep_gemm(torch: Any, shape: Shape, given: Given) -> deep_gemm_calls.Call | None:  # noqa: ANN401 reason: untyped
    """DeepGEMM's product, of rows that are padded as it wants them before it is called; None if it is not built."""
    product = grouped_product(BF16 if given.scales is None else E4M3, shape.counts, shape.N, shape.K)
    kernel = deep_gemm_calls.load_if_built(product)
    if kernel is None:
        return None
    places, experts = deep_gemm_calls.padded_rows(torch, shape.counts)
    a = torch.zeros((product.m, shape.K), device="cuda", dtype=torch.bfloat16).to(given.a.dtype)
    a.view(torch.uint8)[places] = given.a.view(torch.uint8)
    scales = None
    if given.scales is not None:
        of_a = torch.zeros((given.scales[0].shape[0], product.m), device="cuda")
        of_a[:, places] = given.scales[0]
        scales = of_a, given.scales[1]
    call = deep_gemm_calls.call(kernel, torch, a, given.b, scales, experts)
    call.out.fill_(float("nan"))
    kind = "grouped_nt" if scales is None else FP8
    found = excess(torch, shape, given, kind, call()[places], SAMPLED)
    print(f"{shape.name} DeepGEMM {product.dtype}: error {found:.2f} of what is allowed", flush=True)
    return call


def vllm(torch: Any, shape: Shape, given: Given, kind: str) -> Callable[[], object] | None:  # noqa: ANN401 reason: untyped
    """vLLM's product, of rows whose places are known before it is called; None if it has not been taken out."""
    out = torch.full((shape.rows, shape.N), float("nan"), device="cuda", dtype=torch.bfloat16)
    scales = None if given.scales is None else (given.scales[0].T.contiguous(), given.scales[1])
    found = vllm_moe.fastest(torch, (given.a, given.b, out), scales, shape.counts)
    if found is None:
        return None
    name, call = found
    off = excess(torch, shape, given, kind, out, SAMPLED)
    print(f"{shape.name} vLLM {kind} {name}: error {off:.2f} of what is allowed", flush=True)
    return call


def timed(torch: Any, kernels: Loaded, shape: Shape, rounds: int) -> Rows:  # noqa: ANN401 reason: untyped
    of = {kind: operands(torch, shape, kind) for kind in ("grouped_nt", FP8, FP8_ROWS)}
    calls = peers(torch, shape, of["grouped_nt"]) | {"torch e4m3": scaled_peer(torch, of[FP8_ROWS])}
    others: dict[str, Callable[[], object] | None]
    others = {f"DeepGEMM {name}": deep_gemm(torch, shape, of[kind]) for name, kind in THEIRS.items()}
    others |= {f"vLLM {name}": vllm(torch, shape, of[kind], kind) for name, kind in THEIRS.items()}
    calls |= {name: call for name, call in others.items() if call is not None}
    theirs = tuple(calls)
    out = torch.empty((shape.rows, shape.N), device="cuda", dtype=torch.bfloat16)
    for name, kernel in kernels.items():
        kind, config = variants()[name]
        if kind not in of:
            continue
        given, height, said = of[kind], height_of(kind, config), SAID.get(kind, "") + config
        calls[said] = bound(torch, kernel, height, shape, given, out)
        checked = bound(torch, kernel, height, shape, given, out, "stop")
        calls[f"{said} whole"] = whole(height, shape, given, checked)
        out.fill_(float("nan"))
        calls[said]()
        torch.cuda.synchronize()
        found = excess(torch, shape, given, kind, out, SAMPLED)
        print(f"{shape.name} {said}: error {found:.2f} of what is allowed{'' if found <= 1 else ' WRONG'}")
    driver = next(iter(kernels.values())).driver
    operations = 2.0 * shape.rows * shape.N * shape.K
    return built_variants.timed_beside(torch, driver, calls, theirs, shape.name, operations, rounds)


def run(chosen: argparse.Namespace) -> int:
    refused: list[bool] = []

    def all_timed(torch: Any, good: Loaded) -> Rows:  # noqa: ANN401 reason: untyped
        refused.append(finds_tiles(torch))
        refused.extend(refuses_wrong_integers(torch, *each) for each in good.items())
        rows: list[Any] = []
        for shape in shapes()[: chosen.most]:
            rows += timed(torch, good, shape, chosen.rounds)
        print(built_variants.table(rows), flush=True)
        return rows

    if vllm_moe.loaded() is not None:
        for tiles, scaled in ((vllm_moe.BF16, False), (vllm_moe.E4M3, True)):
            vllm_moe.compiled(tiles, scaled=scaled)
    load = import_module("argus.runtime.gpu.launch").load
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "moe.json") or int(not all(refused))


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
