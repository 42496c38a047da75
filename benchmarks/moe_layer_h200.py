"""Times whole layers of experts on an H200: `benchmarks/moe_layer_h200.py`. Needs torch and a solver.

Checks `argus.moe` against float64 on random routings (uniform, Zipf's law, one expert for all, experts without
tokens; 1 to 8 choices), that an exchange of experts with their numbers changes no bit, that wrong orders are refused by
the host and by the guards on the GPU, and that a CUDA graph follows ids that change; then times it vs. a composition of
torch's operators around `_grouped_mm`, and vs. a loop over experts whose rows the host knows: in both regimes,
interleaved, each as a CUDA graph. `kernels`: without the check of integers. Prints times, TFLOP/s, and the rate at
which the matrices of the experts that are met would be read, of the data sheet's.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import isnan, prod
from pathlib import Path
from random import Random
from typing import Any

from attrs import evolve, frozen

import argus
from argus.kernels.moe import FAMILIES
from argus.kernels.schedules.grouped_gated import Activation
from argus.ops.expert_order import ExpertOrder, expert_order

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_layer_h200"
ROUNDS, CHECKED = 5, 100
CLOSE = {"torch.bfloat16": 1.2e-2, "torch.float16": 2e-3}
"""The largest error of a token's result, of its length."""
GUARD = 4096
"""Elements before and after tensors that wrong orders may read beyond."""
PEAK = 4.8e12
"""Bytes a second that HBM3e delivers by its data sheet [NVIDIA H200 data sheet]."""
WAYS = ("uniform", "zipf", "one", "few")


@frozen
class Layer:
    """Experts of N columns between their products, rows of K, and so many choices of each token."""

    name: str
    experts: int
    N: int
    K: int
    choices: int


LAYERS = Layer("E64", 64, 1408, 2048, 6), Layer("E256", 256, 2048, 7168, 8)
"""As DeepSeek-V2-Lite's and DeepSeek-V3's."""
TOKENS = 1, 4, 16, 64, 256, 8192, 32768


@frozen
class Given:
    x: Any
    both: Any
    down: Any
    ids: Any
    weights: Any

    @property
    def operands(self) -> tuple[Any, ...]:
        return self.x, self.both, self.down, self.ids, self.weights


def routed(torch: Any, way: str, tokens: int, experts: int, choices: int, *, distinct: bool) -> Any:  # noqa: ANN401 reason: untyped
    """The experts of each token. distinct: none twice for one token, as far as there are as many."""
    weights = torch.ones(experts, device="cuda")
    if way == "zipf":
        weights = 1 / (1 + torch.randperm(experts, device="cuda").float())
    if way == "one":
        return torch.full((tokens, choices), experts // 2, device="cuda", dtype=torch.int32)
    if way == "few":
        weights = torch.where(torch.rand(experts, device="cuda") < 0.5, 0.0, 1.0)
        weights[experts - 1] = 1.0
    possible = int((weights > 0).sum())
    rows = weights.expand(tokens, experts)
    return torch.multinomial(rows, choices, replacement=not distinct or possible < choices).int()


def made(torch: Any, layer: Layer, tokens: int, way: str, dtype: Any, *, distinct: bool = True) -> Given:  # noqa: ANN401 reason: untyped
    def normal(*shape: int, scale: float = 1.0) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(shape, device="cuda", dtype=dtype).mul_(scale)

    both = normal(layer.experts, 2 * layer.N, layer.K, scale=layer.K**-0.5)
    down = normal(layer.experts, layer.K, layer.N, scale=layer.N**-0.5)
    ids = routed(torch, way, tokens, layer.experts, layer.choices, distinct=distinct)
    weights = torch.rand((tokens, layer.choices), device="cuda") + 0.1
    return Given(normal(tokens, layer.K), both, down, ids, weights)


# -- checks --------------------------------------------------------------------------------------------------


def exact(torch: Any, given: Given, activation: Activation) -> Any:  # noqa: ANN401 reason: untyped
    """The layer in float64, expert by expert."""
    functional = import_module("torch.nn.functional")
    out = torch.zeros(given.x.shape, device="cuda", dtype=torch.float64)
    columns = given.down.shape[2]
    for e in given.ids.unique().tolist():
        token, choice = (given.ids == e).nonzero(as_tuple=True)
        both = given.x[token].double() @ given.both[e].double().T
        gate, up = both[:, :columns], both[:, columns:]
        gated = functional.silu(gate) if activation == "silu" else functional.gelu(gate, approximate="tanh")
        found = (gated * up) @ given.down[e].double().T
        out.index_add_(0, token, found * given.weights[token, choice].double()[:, None])
    return out


def error(found: Any, wanted: Any) -> float:  # noqa: ANN401 reason: untyped
    """The largest error of a row, of its length."""
    if not found.numel():
        return 0.0
    return float(((found.double() - wanted).norm(dim=1) / wanted.norm(dim=1).clamp(min=1e-30)).max())


def is_right(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    random, bad = Random("routings"), list[str]()  # noqa: S311 reason: a seed makes the shapes repeatable
    worst: dict[str, float] = {}
    for number in range(count):
        experts = random.choice((1, 2, 5, 16, 64, 257))
        layer = Layer("", experts, 8 * random.randint(1, 40), 8 * random.randint(1, 64), random.randint(1, 8))
        tokens = random.choice((1, 2, 7, 64, random.randint(1, 300), random.randint(1, 4096)))
        dtype, activation = random.choice((torch.bfloat16, torch.float16)), random.choice(("silu", "gelu"))
        given = made(torch, layer, tokens, WAYS[number % len(WAYS)], dtype, distinct=random.random() < 0.8)
        config = random.choice(tuple(FAMILIES["bf16", "silu"].configs))
        promises = random.choice(("stop", "fetch"))
        found = argus.moe(*given.operands, activation=activation, config=config, promises=promises)
        off = error(found, exact(torch, given, activation)) / CLOSE[str(dtype)]
        worst[config] = max(worst.get(config, 0.0), off)
        if isnan(off) or off > 1:
            bad.append(f"{layer} {tokens} {dtype} {activation} {config}: {off:.2f}")
    said = ", ".join(f"{name} {each:.2f}" for name, each in sorted(worst.items()))
    print(
        f"{count} routings: {f'WRONG {bad[:3]}' if bad else 'right'}; worst error {said} of what is allowed", flush=True
    )
    return not bad


def ignores_numbers(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether experts in another order, with ids that follow them, give the same bits."""
    same, count = 0, 12
    for number in range(count):
        layer = Layer("", 24, 136, 200, 1 + number % 8)
        given = made(torch, layer, 1 + 97 * number, WAYS[number % len(WAYS)], torch.bfloat16)
        order = torch.randperm(layer.experts, device="cuda")
        place = order.argsort().int()
        other = evolve(given, both=given.both[order], down=given.down[order], ids=place[given.ids.long()])
        same += bool((argus.moe(*given.operands) == argus.moe(*other.operands)).all())
    print(f"experts in another order: {same} of {count} equal bit for bit", flush=True)
    return same == count


def repeats(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether a CUDA graph follows ids that change, and gives the same bits each time."""
    layer = Layer("", 16, 264, 136, 4)
    given = made(torch, layer, 77, "uniform", torch.bfloat16)
    call, kept = captured(torch, partial(argus.moe, *given.operands))
    right = 0
    for number in range(8):
        given.ids.copy_(routed(torch, WAYS[number % len(WAYS)], 77, 16, 4, distinct=False))
        call()
        first = kept[0].clone()
        call()
        close = error(first, exact(torch, given, "silu")) <= CLOSE["torch.bfloat16"]
        right += bool((first == kept[0]).all()) and close
    print(f"a graph with other ids: {right} of 8 right", flush=True)
    return right == 8


def captured(torch: Any, call: Callable[[], Any]) -> tuple[Callable[[], object], list[Any]]:  # noqa: ANN401 reason: untyped
    """A call as a CUDA graph, and what it returns."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph, kept = torch.cuda.CUDAGraph(), list[Any]()
    with torch.cuda.graph(graph):
        kept.append(call())
    return graph.replay, [*kept, graph]


def wrong_orders(order: ExpertOrder, experts: int) -> Iterator[tuple[str, ExpertOrder]]:
    def with_(field: str, *places: tuple[tuple[int, ...], int]) -> tuple[str, ExpertOrder]:
        held = getattr(order, field).clone()
        for at, value in places:
            held[at] = value
        return f"{field} {places}", evolve(order, **{field: held})

    rows, tokens = order.tokens.shape[0], order.ids.shape[0]
    inverse = order.inverse
    for field, value in (("ids", -1), ("ids", experts), ("inverse", -1), ("inverse", rows)):
        yield with_(field, ((2, 1), value))
    for value in (-1, tokens, int(order.tokens[5]) + 1):
        yield with_("tokens", ((5,), value))
    yield with_("inverse", ((0, 0), int(inverse[1, 0])))
    yield with_("inverse", ((0, 0), int(inverse[0, 1])), ((0, 1), int(inverse[0, 0])))
    yield with_("ids", ((0, 0), (int(order.ids[0, 0]) + 1) % experts))
    for at, value in ((0, 1), (1, rows + 1), (experts, rows - 1)):
        yield with_("offsets", ((at,), value))
    yield with_("tile_starts", ((1,), int(order.tile_starts[1]) + 1))
    yield with_("tile_experts", ((0,), int(order.tile_experts[0]) + 1))
    yield with_("tile_experts", ((0,), -1))
    yield "rows exchanged", evolve(order, tokens=order.tokens.flip(0))


def program_of(given: Given, order: ExpertOrder, config: str) -> tuple[Any, Mapping[str, int], dict[str, Any]]:
    """The loaded program, its sizes, and its tensors by name but for the workspaces and the result."""
    from argus.ops.call_path import Candidate, load_candidate  # noqa: PLC0415 reason: needs a GPU

    family = FAMILIES["bf16", "silu"]
    candidate = Candidate("moe", config, lambda: (family.trace(config), family.function.__module__))
    (tokens, depth), (experts, both, _) = given.x.shape, given.both.shape
    tiles, choices = order.tile_experts.shape[0], order.ids.shape[1]
    sizes = {"T": tokens, "K": depth, "E": experts, "N": both // 2, "J": choices, "S": experts + 1}
    sizes |= {"R": tokens * choices, "Q": tiles + 1, "P": tiles}
    named = {"X": given.x, "W": given.both.view(experts, 2, both // 2, depth), "V": given.down, "ids": order.ids}
    named |= {"weights": given.weights, "starts": order.offsets, "tokens": order.tokens, "inverse": order.inverse}
    named |= {"tile_starts": order.tile_starts, "tile_experts": order.tile_experts}
    return load_candidate(candidate, 0, "refuse").kernel, sizes, named


def within(torch: Any, shape: tuple[int, ...]) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor of NaN with memory of its own around it, which a row too many may read."""
    count = prod(shape)
    return torch.full((count + 2 * GUARD,), float("nan"), device="cuda", dtype=torch.bfloat16)[GUARD:][:count].view(
        shape
    )


def room(torch: Any, prepared: Any, named: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """All tensors of a program, its workspaces and its result among them, full of NaN."""
    spaces = {each.name: within(torch, each.shape) for each in prepared.workspaces}
    return {**named, **spaces, "Y": within(torch, named["X"].shape)}


def refuses(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether wrong orders are refused, by the host and by the guards on the GPU."""
    layer = Layer("", 8, 64, 64, 3)
    given = made(torch, layer, 50, "uniform", torch.bfloat16)
    given = evolve(given, x=within(torch, (50, 64)).copy_(given.x))
    order = expert_order(given.ids, layer.experts, height=128)
    found, count = dict.fromkeys(("fetch", "tell"), 0), 0
    for what, wrong in wrong_orders(order, layer.experts):
        count += 1
        for promises in found:
            kernel, sizes, named = program_of(given, wrong, "columns_256")
            prepared = kernel.prepare(sizes)
            tensors = room(torch, prepared, named)
            try:
                prepared.bind(tensors, torch.cuda.current_stream().cuda_stream, promises)()
                kernel.synchronise()
            except argus.ArgusError as problem:
                found[promises] += problem.diagnostic.code == "E402"
            else:
                print(f"not refused by {promises}: {what}", flush=True)
            for each, _ in kernel.launches:  # one wrong integer breaks several contracts
                with suppress(argus.ArgusError):
                    each.guards.check()
                with suppress(argus.ArgusError):
                    each.guards.check()
    print(f"wrong orders: {found} of {count} refused", flush=True)
    return all(each == count for each in found.values())


# -- times ---------------------------------------------------------------------------------------------------


def composed(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    """The layer of torch's operators, without a wait for the GPU."""
    functional = import_module("torch.nn.functional")
    (tokens, choices), columns, experts = given.ids.shape, given.down.shape[2], given.both.shape[0]
    flat = given.ids.flatten()
    order = flat.argsort(stable=True)
    ends = torch.searchsorted(flat[order], torch.arange(1, experts + 1, device="cuda", dtype=torch.int32))
    ends = ends.to(torch.int32)
    both = torch._grouped_mm(given.x[order // choices], given.both.mT, offs=ends)
    hidden = functional.silu(both[:, :columns]) * both[:, columns:]
    down = torch._grouped_mm(hidden, given.down.mT, offs=ends)
    back = torch.empty_like(down)
    back[order] = down
    return (back.view(tokens, choices, -1) * given.weights[:, :, None]).sum(1).to(given.x.dtype)


def looped(torch: Any, given: Given) -> Callable[[], Any]:  # noqa: ANN401 reason: untyped
    """The layer as a loop over the experts that are met, whose tokens the host knows."""
    functional = import_module("torch.nn.functional")
    columns = given.down.shape[2]
    met = [(e, *(given.ids == e).nonzero(as_tuple=True)) for e in given.ids.unique().tolist()]

    def loop() -> Any:  # noqa: ANN401 reason: untyped
        out = torch.zeros(given.x.shape, device="cuda", dtype=torch.float32)
        for e, token, choice in met:
            both = given.x[token] @ given.both[e].T
            hidden = functional.silu(both[:, :columns]) * both[:, columns:]
            found = hidden @ given.down[e].T
            out.index_add_(0, token, found * given.weights[token, choice][:, None])
        return out.to(given.x.dtype)

    return loop


def unchecked(torch: Any, given: Given, config: str) -> Callable[[], Any]:  # noqa: ANN401 reason: untyped
    """The order of rows and the launches, without the check of integers."""
    height = FAMILIES["bf16", "silu"].configs[config].bm
    kernel, sizes, named = program_of(given, expert_order(given.ids, given.both.shape[0], height=height), config)
    prepared = kernel.prepare(sizes)
    bare = tuple((evolve(each, contracts=()), names) for each, names in prepared.launches)
    prepared, tensors = evolve(prepared, launches=bare), room(torch, prepared, named)

    def call() -> Any:  # noqa: ANN401 reason: untyped
        expert_order(given.ids, given.both.shape[0], height=height)
        prepared.bind(tensors, torch.cuda.current_stream().cuda_stream)()
        return tensors["Y"]

    return call


def timed(torch: Any, layer: Layer, tokens: int, way: str, rounds: int, weights: Given) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    timing, find = import_module("argus.runtime.gpu.timing"), import_module("argus.runtime.gpu.find")
    ids = routed(torch, way, tokens, layer.experts, layer.choices, distinct=True)
    x = torch.randn((tokens, layer.K), device="cuda", dtype=torch.bfloat16)
    given = evolve(weights, x=x, ids=ids, weights=torch.rand((tokens, layer.choices), device="cuda") + 0.1)
    wanted = argus.moe(*given.operands)
    calls: dict[str, Callable[[], Any]] = {"torch": partial(composed, torch, given), "loop": looped(torch, given)}
    for config in FAMILIES["bf16", "silu"].configs:
        calls[config] = partial(argus.moe, *given.operands, config=config)
        calls[f"{config} kernels"] = unchecked(torch, given, config)
    graphs: dict[str, Callable[[], object]] = {}
    alive: list[Any] = []
    for name, call in calls.items():
        graphs[name], kept = captured(torch, call)
        alive.append(kept)
        graphs[name]()
        torch.cuda.synchronize()
        apart = error(kept[0], wanted.double())
        if not apart < 2e-2:
            print(f"{layer.name} {tokens} {name} differs: {apart}", flush=True)
    met = int(ids.unique().numel())
    read = met * 3 * layer.N * layer.K * 2
    operations = 6.0 * tokens * layer.choices * layer.N * layer.K

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(find.find_driver(), torch.cuda.current_stream().cuda_stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, graphs, regime, rounds)
        for name in graphs:
            took = 1e-3 * times.median(name)
            ratios = {peer: statistics.median(times.ratios(name, peer)) for peer in ("torch", "loop")}
            said = {"layer": layer.name, "tokens": tokens, "way": way, "met": met, "regime": regime.name, "name": name}
            figures = {"us": 1e6 * took, "tflops": operations / took / 1e12, "of_hbm": read / took / PEAK, **ratios}
            rows.append({**said, **figures})
            print(*said.values(), *(f"{key} {each:.2f}" for key, each in figures.items()), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--checked", type=int, default=CHECKED)
    parser.add_argument("--tokens", type=lambda text: tuple(map(int, text.split(","))), default=TOKENS)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["uniform", "zipf", "one"])
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    checks = partial(is_right, count=chosen.checked), ignores_numbers, repeats, refuses
    good = [check(torch) for check in checks]
    rows: list[dict[str, Any]] = []
    for layer in LAYERS:
        weights = made(torch, layer, 1, "uniform", torch.bfloat16)
        for way in chosen.ways:
            for tokens in chosen.tokens:
                rows += timed(torch, layer, tokens, way, chosen.rounds, weights)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "moe_layer.json").write_text(json.dumps(rows), "utf-8")
    return int(not all(good))


if __name__ == "__main__":
    raise SystemExit(main())
