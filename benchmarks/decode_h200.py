"""Times decode attention on paged keys and values on an H200: `benchmarks/decode_h200.py build`, then `... run`.

build: traces, verifies and compiles every variant into build/decode_h200; needs no GPU. run: checks each variant
against float64 on random shapes, lengths and tables, with poisoned outputs between guard zones, then times it beside
torch's attention on contiguous keys and values, in CUDA graphs whose calls read other pages each, so that none are in
the L2 cache. Prints shares of the memory's 4.8 TB/s and writes decode.json in `--out`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import built_variants
from attrs import frozen

from argus.kernels.decode import FAMILIES
from argus.kernels.schedules.decode import Decode

FOLDER = Path(__file__).resolve().parent.parent / "build" / "decode_h200"
ROUNDS, CHECKED = 7, 120
CLOSE, CLOSE_LSE = 2.0**-6, 2.0**-13
GUARD = 4096
"""Elements before and after an output that must stay as they are."""
BANDWIDTH = 4.8e12
CACHE = 256 << 20
"""Bytes that calls in turn read at least, several times those of the L2 cache."""


@frozen
class Shape:
    """B sequences of T keys in G heads, with S tokens in H heads of D elements, in pages of some keys."""

    B: int
    T: int
    S: int = 1
    H: int = 64
    G: int = 8
    D: int = 128
    page: int = 16

    def __str__(self) -> str:
        return f"b{self.B} t{self.T} s{self.S} h{self.H}/{self.G} d{self.D} page {self.page}"

    @property
    def bytes(self) -> int:
        """Bytes of keys and values."""
        return 4 * self.B * self.T * self.G * self.D

    @property
    def calls(self) -> int:
        """Calls of a CUDA graph, of a few milliseconds."""
        return max(2, min(24, (16 << 30) // self.bytes))

    @property
    def pages(self) -> int:
        return -(-self.T // self.page)

    def sizes(self, pool: int) -> dict[str, int]:
        heads = {"R": self.H // self.G, "S": self.S, "D": self.D, "C": self.page}
        return {"B": self.B, "G": self.G, "P": pool, "N": self.pages, **heads}


def shapes() -> list[Shape]:
    one = [Shape(b, t << 10) for t in (2, 8, 32, 128) for b in (1, 8, 32, 128)]
    tokens = [Shape(b, t << 10, s) for b, t in ((8, 8), (32, 8), (8, 32)) for s in (2, 4, 8, 16)]
    pages = [Shape(b, t << 10, page=page) for page in (64, 128) for b, t in ((1, 8), (8, 32), (32, 8))]
    return one + tokens + pages + [Shape(8, 8 << 10, H=128), Shape(8, 8 << 10, D=64)]


def variants() -> dict[str, tuple[str, Decode]]:
    """The type and the configuration of each that is shipped, by a name of both."""
    return {
        f"{dtype.removeprefix('torch.')}_{width}_{name}": (dtype, config)
        for dtype, widths in FAMILIES.items()
        for width, template in widths.items()
        for name, config in template.configs.items()
    }


def build(chosen: argparse.Namespace) -> int:
    every = variants().items()
    made = {name: partial(FAMILIES[dtype][config.width].instance, config, name) for name, (dtype, config) in every}
    return built_variants.build(chosen, FOLDER, made)


# -- on the GPU ----------------------------------------------------------------------------------------------


@frozen
class Operands:
    """q: (B, H, S, D). k, v: all pages, (P, C, G, D). tables: one of other pages for each call in turn."""

    q: Any
    k: Any
    v: Any
    tables: Sequence[Any]
    lengths: Any


def takes(dtype: str, config: Decode, shape: Shape) -> bool:
    heads = shape.H // shape.G
    right = dtype == "torch.bfloat16" and (config.page, config.width) == (shape.page, shape.D)
    fits = config.heads >= heads > config.heads // 2 and config.tokens >= shape.S
    enough = 64 <= shape.B * shape.G * -(-shape.T // (config.bn * config.blocks)) <= 1 << 12
    return right and fits and enough and config.causal == (shape.S > 1)


def guarded(torch: Any, extents: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN within guard zones of ones, and all of that memory."""
    count = 1
    for extent in extents:
        count *= extent
    whole = torch.ones(count + 2 * GUARD, device="cuda", dtype=dtype)
    inside = whole[GUARD : GUARD + count]
    inside.fill_(float("nan"))
    return inside.view(extents), whole


def exact(torch: Any, shape: Shape, given: Operands, *, causal: bool) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The outputs in float64, one sequence after another."""
    found: list[tuple[Any, Any]] = []
    for b in range(shape.B):
        length = min(max(int(given.lengths[b]), 0), shape.pages * shape.page)
        table = given.tables[0][b].long().clamp(0, given.k.shape[0] - 1)
        k, v = (each[table].flatten(0, 1)[:length].double() for each in (given.k, given.v))
        k, v = (each.transpose(0, 1).repeat_interleave(shape.H // shape.G, dim=0) for each in (k, v))
        scores = (given.q[b].double() @ k.mT) * shape.D**-0.5
        if causal:
            token, key = torch.arange(shape.S, device="cuda"), torch.arange(length, device="cuda")
            scores.masked_fill_(key[None, :] > token[:, None] + length - shape.S, -inf)
        found.append((torch.softmax(scores, -1).nan_to_num(0.0) @ v, torch.logsumexp(scores, -1)))
    outs, sums = zip(*found, strict=True)
    return torch.stack(outs), torch.stack(sums)


def bound(torch: Any, program: Any, shape: Shape, given: Operands, results: Sequence[Any]) -> list[Callable[[], None]]:  # noqa: ANN401 reason: untyped
    """A launch for each table."""
    heads = (shape.B, shape.G, shape.H // shape.G, shape.S)
    prepared = program.prepare(shape.sizes(given.k.shape[0]))
    rooms = {each.name: torch.empty(each.shape, device="cuda") for each in prepared.workspaces}
    for each in rooms.values():
        each.fill_(float("nan"))
    tensors = {
        "Q": given.q.view(*heads, shape.D),
        "K": given.k.transpose(1, 2),
        "V": given.v.transpose(1, 2),
        "lengths": given.lengths,
        "scale": torch.full((1,), shape.D**-0.5 * 1.4426950408889634, device="cuda"),
        "O": results[0].view(*heads, shape.D),
        "LSE": results[1].view(*heads),
        **rooms,
    }
    stream = torch.cuda.current_stream().cuda_stream
    launches = [prepared.bind({**tensors, "table": table}, stream) for table in given.tables]

    def kept(launch: Callable[[], None], _alive: Mapping[str, Any] = tensors) -> Callable[[], None]:
        return lambda: (launch(), _alive)[0]

    return [kept(launch) for launch in launches]


def errors(torch: Any, program: Any, shape: Shape, given: Operands, *, causal: bool) -> tuple[float, float]:  # noqa: ANN401 reason: untyped
    """The largest errors of both outputs; nan where an element was not written, inf where a guard zone was."""
    o, around = guarded(torch, (shape.B, shape.H, shape.S, shape.D), given.q.dtype)
    lse, beside = guarded(torch, (shape.B, shape.H, shape.S), torch.float32)
    (launch,) = bound(torch, program, shape, given, (o, lse))
    launch()
    torch.cuda.synchronize()
    for whole in (around, beside):
        if not bool((whole[:GUARD] == 1).all()) or not bool((whole[-GUARD:] == 1).all()):
            return inf, inf
    wanted, sums = exact(torch, shape, given, causal=causal)
    off = torch.where(lse == sums, 0.0, lse.double() - sums)  # both may be -inf
    return (o.double() - wanted).abs().max().item(), off.abs().max().item()


def random_operands(torch: Any, dtype: str, shape: Shape, random: Random) -> Operands:  # noqa: ANN401 reason: untyped
    """Random lengths, some of them 0 or too long, and random pages, some of them out of bounds."""
    pool = random.randint(1, 3 * shape.pages)
    kind = getattr(torch, dtype.removeprefix("torch."))
    q = torch.randn((shape.B, shape.H, shape.S, shape.D), device="cuda", dtype=kind)
    k, v = (torch.randn((pool, shape.page, shape.G, shape.D), device="cuda", dtype=kind) for _ in range(2))
    table = torch.randint(-1, pool + 1, (shape.B, shape.pages), device="cuda", dtype=torch.int32)
    most = shape.pages * shape.page
    lengths = [random.choice((0, 1, most, most + 5, random.randint(1, most))) for _ in range(shape.B)]
    return Operands(q, k, v, [table], torch.tensor(lengths, device="cuda", dtype=torch.int32))


def is_right(torch: Any, name: str, program: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    (dtype, config), random = variants()[name], Random(name)  # noqa: S311 reason: a seed makes the shapes repeatable
    worst, bad = [0.0, 0.0], list[str]()
    for _ in range(count):
        heads, groups = random.randint(config.heads // 2 + 1, config.heads), random.randint(1, 4)
        tokens = random.randint(1, config.tokens) if config.causal else 1
        keys = random.choice((1, config.page, 1000, random.randint(1, 4000)))
        shape = Shape(random.randint(1, 4), keys, tokens, heads * groups, groups, config.width, config.page)
        found = errors(torch, program, shape, random_operands(torch, dtype, shape, random), causal=config.causal)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if not (found[0] <= CLOSE and found[1] <= CLOSE_LSE):
            bad.append(f"{shape}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else f"worst errors {worst[0]:.1e} and {worst[1]:.1e}"
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def timed_operands(torch: Any, shape: Shape, pool: Sequence[Any]) -> Operands:  # noqa: ANN401 reason: untyped
    """Pages of the pool in random order, other ones in each call as long as there are any."""
    k, v = (each.view(-1, shape.page, shape.G, shape.D) for each in pool)
    need = shape.B * shape.pages
    copies = max(1, min(k.shape[0] // need, -(-CACHE // shape.bytes)))
    order = torch.randperm(copies * need, device="cuda").to(torch.int32)
    tables = list(order.view(copies, shape.B, shape.pages).contiguous())
    q = torch.randn((shape.B, shape.H, shape.S, shape.D), device="cuda", dtype=torch.bfloat16)
    lengths = torch.full((shape.B,), shape.T, device="cuda", dtype=torch.int32)
    return Operands(q, k, v, tables, lengths)


def peers(shape: Shape, given: Operands) -> dict[str, list[Callable[[], object]]]:
    """torch's attention on contiguous keys and values, the heads of a group as rows."""
    attention = import_module("torch.nn.attention")
    function = import_module("torch.nn.functional").scaled_dot_product_attention
    backends = {"flash": attention.SDPBackend.FLASH_ATTENTION, "cudnn": attention.SDPBackend.CUDNN_ATTENTION}
    q = given.q.view(shape.B, shape.G, -1, shape.D)
    used = shape.B * shape.pages
    found: dict[str, list[Callable[[], object]]] = {}

    def call(backend: Any, k: Any, v: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
        def run() -> object:
            with attention.sdpa_kernel(backend):
                return function(q, k, v)

        return run

    for name, backend in backends.items():
        found[name] = []
        for copy in range(len(given.tables)):
            k, v = (
                each[copy * used : (copy + 1) * used].view(shape.B, shape.G, -1, shape.D) for each in (given.k, given.v)
            )
            found[name].append(call(backend, k, v))
    return found


def graph_of(torch: Any, calls: Sequence[Callable[[], object]], count: int) -> Callable[[], object] | str:  # noqa: ANN401 reason: untyped
    """A CUDA graph of so many calls in turn; why there is none, if a call fails."""
    try:
        calls[0]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for number in range(count):
                calls[number % len(calls)]()
    except RuntimeError as problem:
        return str(problem).splitlines()[0]
    return graph.replay


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    programs: Mapping[str, Any],
    shape: Shape,
    pool: Sequence[Any],
    rounds: int,
) -> list[dict[str, Any]]:
    given = timed_operands(torch, shape, pool)
    o = torch.empty_like(given.q)
    lse = torch.empty(given.q.shape[:3], device="cuda")
    lists: dict[str, Sequence[Callable[[], object]]] = {
        name: bound(torch, program, shape, given, (o, lse))
        for name, program in programs.items()
        if takes(*variants()[name], shape)
    }
    if not lists:
        return []
    own = tuple(lists)
    if shape.S == 1:  # peers lack this mask
        lists |= peers(shape, given)
    graphs = {name: graph_of(torch, calls, shape.calls) for name, calls in lists.items()}
    ready = {name: graph for name, graph in graphs.items() if not isinstance(graph, str)}
    times: dict[str, list[float]] = {name: [] for name in ready}
    for number in range(rounds + 1):
        names = list(ready)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            ready[name]()
            end.record()
            end.synchronize()
            if number:
                times[name].append(begin.elapsed_time(end) / shape.calls)
    rows: list[dict[str, Any]] = []
    for name, each in times.items():
        took = statistics.median(each)
        share = 1e3 * shape.bytes / took / BANDWIDTH
        rows.append({"shape": str(shape), "name": name, "us": 1e3 * took, "share": share, "own": name in own})
    rows.sort(key=_share)
    said = ", ".join(f"{row['name']} {100 * row['share']:.1f}" for row in rows)
    fastest = next(row["us"] for row in rows if row["own"])
    missing = "; ".join(f"{name}: {why[:80]}" for name, why in graphs.items() if isinstance(why, str))
    print(f"{shape}: {fastest:.1f} us; % of {BANDWIDTH / 1e12} TB/s: {said} {missing}", flush=True)
    return rows


def _share(row: Mapping[str, Any]) -> float:
    return -row["share"]


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        most = max(shape.bytes for shape in shapes()[: chosen.most])
        pool = [torch.empty(max(most, CACHE) // 4, device="cuda", dtype=torch.bfloat16).normal_() for _ in range(2)]
        with torch.cuda.stream(torch.cuda.Stream()):
            return [row for shape in shapes()[: chosen.most] for row in timed(torch, good, shape, pool, chosen.rounds)]

    load = import_module("argus.runtime.programs").load_program
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "decode.json")


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
