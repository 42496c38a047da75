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
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from math import inf, isnan, prod
from pathlib import Path
from random import Random
from typing import Any

from attrs import evolve
from moe_layers import LAYERS, Given, Layer, composed, error, exact, looped, made, made_scaled, routed

import argus
from argus.kernels.moe import FAMILIES
from argus.ops.choice import select_moe
from argus.ops.expert_order import ExpertOrder, expert_order
from argus.ops.moe import SCALED as SCALED_BY_TARGET
from argus.ops.moe import SCHEDULES as BY_TARGET
from argus.ops.moe import sizes_of
from argus.ops.moe_choices import ATOMIC, CHOICES, fitting

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_layer_h200"
SCHEDULES, SCALED = BY_TARGET["sm_90a"], SCALED_BY_TARGET["sm_90a"]
ROUNDS, CHECKED = 5, 100
CLOSE = {"torch.bfloat16": 1.2e-2, "torch.float16": 2e-3}
"""The largest error of a token's result, of its length."""
CLOSE_FP8 = 6e-2
"""The same in e4m3, to which rows are rounded between the products."""
GUARD = 4096
"""Elements before and after tensors that wrong orders may read beyond."""
MOST_LOW = 1024
"""Tokens up to which low tiles are timed."""
MOST_DIRECT = 16
"""Tokens up to which schedules without an order of rows are timed."""
POISON = -7777
PEAK = 4.8e12
"""Bytes a second that HBM3e delivers by its data sheet [NVIDIA H200 data sheet]."""
WAYS = ("uniform", "zipf", "one", "few")


TOKENS = 1, 4, 16, 64, 256, 8192, 32768


# -- checks --------------------------------------------------------------------------------------------------


@contextmanager
def poisoned(torch: Any) -> Generator[None]:  # noqa: ANN401 reason: untyped
    """Results and workspaces of operators are full of NaN, and new integers of one number, before they are written."""
    guards, empty = torch._C._dynamo.guards, torch.empty
    kept = guards._empty_strided_cuda

    def filled(made: Any) -> Any:  # noqa: ANN401 reason: untyped
        return made.fill_(float("nan") if made.is_floating_point() else POISON)

    def strided(*of: Any) -> Any:  # noqa: ANN401 reason: untyped
        return filled(kept(*of))

    def plain(*of: Any, **named: Any) -> Any:  # noqa: ANN401 reason: untyped
        return filled(empty(*of, **named))

    guards._empty_strided_cuda, torch.empty = strided, plain
    try:
        yield
    finally:
        guards._empty_strided_cuda, torch.empty = kept, empty


def is_right(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    random, bad = Random("routings"), list[str]()  # noqa: S311 reason: a seed makes the shapes repeatable
    worst: dict[str, float] = {}
    for number in range(count):
        experts = random.choice((1, 2, 5, 16, 64, 257))
        layer = Layer("", experts, 8 * random.randint(1, 40), 8 * random.randint(1, 64), random.randint(1, 8))
        tokens = random.choice((1, 2, 7, 64, random.randint(1, 300), random.randint(1, 4096)))
        dtype, activation = random.choice((torch.bfloat16, torch.float16)), random.choice(("silu", "gelu"))
        given = made(torch, layer, tokens, WAYS[number % len(WAYS)], dtype, distinct=random.random() < 0.8)
        config = random.choice((*SCHEDULES, *(name for name, most in CHOICES.items() if most >= layer.N)))
        options: dict[str, Any] = {"config": config, "deterministic": config not in ATOMIC}
        options |= {"promises": random.choice(("stop", "fetch")), "activation": activation}
        with poisoned(torch):
            found = argus.moe(*given.operands, **options)
        off = error(found, exact(torch, given, activation)) / CLOSE[str(dtype)]
        worst[config] = max(worst.get(config, 0.0), off)
        if isnan(off) or off > 1:
            bad.append(f"{layer} {tokens} {dtype} {activation} {config}: {off:.2f}")
    said = ", ".join(f"{name} {each:.2f}" for name, each in sorted(worst.items()))
    print(
        f"{count} routings: {f'WRONG {bad[:3]}' if bad else 'right'}; worst error {said} of what is allowed", flush=True
    )
    return not bad


def is_right_scaled(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    random, bad = Random("scales"), list[str]()  # noqa: S311 reason: a seed makes the shapes repeatable
    worst: dict[str, float] = {}
    for number in range(count):
        experts, columns, depth = random.choice((1, 3, 16, 64)), 128 * random.randint(1, 4), 16 * random.randint(1, 40)
        layer = Layer("", experts, columns, depth, random.randint(1, 8))
        scaled = made_scaled(torch, layer, random.choice((1, 5, 70, 700)), WAYS[number % len(WAYS)])
        activation, config = random.choice(("silu", "gelu")), random.choice(tuple(SCALED))
        with poisoned(torch):
            found = argus.moe(*scaled.given.operands, activation=activation, scales=scaled.scales, config=config)
        off = error(found, exact(torch, scaled.meant, activation)) / CLOSE_FP8
        worst[config] = max(worst.get(config, 0.0), inf if isnan(off) else off)
        if isnan(off) or off > 1:
            bad.append(f"{layer} {scaled.given.x.shape[0]} {WAYS[number % len(WAYS)]} {activation} {config}: {off:.2f}")
    said = ", ".join(f"{name} {each:.2f}" for name, each in sorted(worst.items()))
    told = f"WRONG {len(bad)} {bad[:3]}" if bad else "right"
    print(f"{count} routings in e4m3: {told}; worst error {said} of what is allowed", flush=True)
    return not bad


def ignores_numbers(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether experts in another order, with ids that follow them, give the same bits."""
    same, same_scaled, count = 0, 0, 12
    for number in range(count):
        layer = Layer("", 24, 136, 200, 1 + number % 8)
        given = made(torch, layer, 1 + 97 * number, WAYS[number % len(WAYS)], torch.bfloat16)
        order = torch.randperm(layer.experts, device="cuda")
        place = order.argsort().int()
        other = evolve(given, both=given.both[order], down=given.down[order], ids=place[given.ids.long()])
        with poisoned(torch):
            same += bool((argus.moe(*given.operands) == argus.moe(*other.operands)).all())
            same_scaled += scaled_ignores_numbers(torch, WAYS[number % len(WAYS)], 1 + 97 * number)
    said = f"{same} of {count}, in e4m3 {same_scaled} of {count}"
    print(f"experts in another order: {said} equal bit for bit", flush=True)
    return same == same_scaled == count


def scaled_ignores_numbers(torch: Any, way: str, tokens: int) -> bool:  # noqa: ANN401 reason: untyped
    layer = Layer("", 24, 256, 208, 1 + tokens % 8)
    scaled = made_scaled(torch, layer, tokens, way, meant=False)
    given, (of_x, of_both, of_down) = scaled.given, scaled.scales
    order = torch.randperm(layer.experts, device="cuda")
    ids = order.argsort().int()[given.ids.long()]
    # torch has no index of e4m3: its bytes are exchanged
    both, down = (each.view(torch.uint8)[order].view(each.dtype) for each in (given.both, given.down))
    other = evolve(given, both=both, down=down, ids=ids)
    one = argus.moe(*given.operands, scales=scaled.scales)
    two = argus.moe(*other.operands, scales=(of_x, of_both[order], of_down[order]))
    return bool((one == two).all())


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


def loaded(given: Given, order: ExpertOrder, config: str) -> tuple[Any, Mapping[str, int], dict[str, Any]]:
    """The loaded program, its sizes, and its tensors by name but for the workspaces and the result."""
    from argus.ops.call_path import Candidate, load_candidate  # noqa: PLC0415 reason: needs a GPU

    family = FAMILIES["bf16", "silu"]
    candidate = Candidate("moe", config, lambda: (family.trace(config), family.function.__module__))
    experts, both, depth = given.both.shape
    sizes = sizes_of(order, experts, both // 2, depth)
    named = {"X": given.x, "W": given.both.view(experts, 2, both // 2, depth), "V": given.down, "ids": order.ids}
    named |= {"weights": given.weights, "starts": order.offsets, "tokens": order.tokens, "inverse": order.inverse}
    named |= {"tile_starts": order.tile_starts, "tile_experts": order.tile_experts}
    return load_candidate(candidate, 0, "refuse").kernel, sizes, named


def within(torch: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor of NaN with memory of its own around it, which a row too many may read."""
    count = prod(shape)
    held = torch.full((count + 2 * GUARD,), float("nan"), device="cuda", dtype=dtype or torch.bfloat16)
    return held[GUARD:][:count].view(shape)


def room(torch: Any, prepared: Any, named: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """All tensors of a program, its workspaces and its result among them, full of NaN."""
    spaces = {each.name: within(torch, each.shape) for each in prepared.workspaces}
    return {**named, **spaces, "Y": within(torch, named["X"].shape)}


def refuses(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether wrong orders are refused, by the host and by the guards on the GPU."""
    layer, right = Layer("", 8, 64, 64, 3), True
    given = made(torch, layer, 50, "uniform", torch.bfloat16)
    given = evolve(given, x=within(torch, (50, 64)).copy_(given.x))
    for config in ("columns_256", "rows_16", "gathered_16"):
        order = expert_order(given.ids, layer.experts, height=SCHEDULES[config])
        found, count = dict.fromkeys(("fetch", "tell"), 0), 0
        for what, wrong in wrong_orders(order, layer.experts):
            count += 1
            for promises in found:
                refused = is_refused(torch, given, wrong, config, promises)
                found[promises] += refused
                if not refused:
                    print(f"not refused by {promises}: {what}", flush=True)
        print(f"{config}, wrong orders: {found} of {count} refused", flush=True)
        right &= all(each == count for each in found.values())
    return right


def is_refused(torch: Any, given: Given, order: ExpertOrder, config: str, promises: str) -> bool:  # noqa: ANN401 reason: untyped
    kernel, sizes, named = loaded(given, order, config)
    prepared = kernel.prepare(sizes)
    return stops(torch, kernel, partial(prepared.bind, room(torch, prepared, named)), promises)


def stops(torch: Any, kernel: Any, bind: Callable[..., Callable[[], object]], promises: str) -> bool:  # noqa: ANN401 reason: untyped
    """Whether a program refuses to run on its integers. bind: to a stream, and how they are checked."""
    refused = False
    try:
        bind(torch.cuda.current_stream().cuda_stream, promises)()
        kernel.synchronise()
    except argus.ArgusError as problem:
        refused = problem.diagnostic.code == "E402"
    torch.cuda.synchronize()
    for each, _ in kernel.launches:  # one wrong integer breaks several contracts
        for _ in each.launch.get("contracts", ()):
            with suppress(argus.ArgusError):
                each.guards.check()
    return refused


# -- times ---------------------------------------------------------------------------------------------------


def unchecked(torch: Any, given: Given, config: str) -> Callable[[], Any]:  # noqa: ANN401 reason: untyped
    """The order of rows and the launches, without the check of integers."""
    height = SCHEDULES[config]
    kernel, sizes, named = loaded(given, expert_order(given.ids, given.both.shape[0], height=height), config)
    prepared = kernel.prepare(sizes)
    bare = tuple((evolve(each, contracts=()), names) for each, names in prepared.launches)
    prepared, tensors = evolve(prepared, launches=bare), room(torch, prepared, named)

    def call() -> Any:  # noqa: ANN401 reason: untyped
        expert_order(given.ids, given.both.shape[0], height=height)
        prepared.bind(tensors, torch.cuda.current_stream().cuda_stream)()
        return tensors["Y"]

    return call


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    layer: Layer,
    tokens: int,
    way: str,
    rounds: int,
    weights: Given,
    others: Collection[str],
) -> list[dict[str, Any]]:
    timing, find = import_module("argus.runtime.gpu.timing"), import_module("argus.runtime.gpu.find")
    ids = routed(torch, way, tokens, layer.experts, layer.choices, distinct=True)
    x = torch.randn((tokens, layer.K), device="cuda", dtype=torch.bfloat16)
    given = evolve(weights, x=x, ids=ids, weights=torch.rand((tokens, layer.choices), device="cuda") + 0.1)
    wanted = argus.moe(*given.operands)
    calls: dict[str, Callable[[], Any]] = {"torch": partial(composed, torch, given), "loop": looped(torch, given)}
    chosen = select_moe(tokens * layer.choices, layer.experts, blocks=False)
    calls[f"argus {chosen}"] = partial(argus.moe, *given.operands)
    calls[f"{chosen} kernels"] = unchecked(torch, given, chosen)
    fp8 = made_scaled(torch, layer, tokens, way, meant=False)
    of = evolve(fp8.given, ids=given.ids, weights=given.weights)
    calls["argus e4m3"] = partial(argus.moe, *of.operands, scales=fp8.scales)
    if (direct := fitting(layer.N)) is not None and tokens <= MOST_DIRECT and direct != chosen:
        calls[direct] = partial(argus.moe, *given.operands, config=direct)
    for config in others:
        if config != chosen and not (config.startswith("rows") and tokens > MOST_LOW):
            calls[config] = partial(argus.moe, *given.operands, config=config)
    graphs: dict[str, Callable[[], object]] = {}
    alive: list[Any] = []
    for name, call in calls.items():
        graphs[name], kept = captured(torch, call)
        alive.append(kept)
        graphs[name]()
        torch.cuda.synchronize()
        apart = error(kept[0], wanted.double())
        if not apart < 2e-2 and "e4m3" not in name:
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
            bandwidth = read / took / (2 if "e4m3" in name else 1)
            figures = {"us": 1e6 * took, "tflops": operations / took / 1e12, "of_hbm": bandwidth / PEAK, **ratios}
            rows.append({**said, **figures})
            print(*said.values(), *(f"{key} {each:.2f}" for key, each in figures.items()), flush=True)
    return rows


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(",") if each)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--checked", type=int, default=CHECKED)
    parser.add_argument("--tokens", type=numbers, default=TOKENS)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["uniform", "zipf", "one"])
    parser.add_argument("--all", action="store_true", help="time the other schedules, too")
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    scaled = partial(is_right_scaled, count=chosen.checked)
    checks = partial(is_right, count=chosen.checked), scaled, ignores_numbers, repeats, refuses
    good = [check(torch) for check in checks]
    rows: list[dict[str, Any]] = []
    for layer in LAYERS:
        weights = made(torch, layer, 1, "uniform", torch.bfloat16)
        for way in chosen.ways:
            for tokens in chosen.tokens:
                rows += timed(torch, layer, tokens, way, chosen.rounds, weights, SCHEDULES if chosen.all else ())
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "moe_layer.json").write_text(json.dumps(rows), "utf-8")
    return int(not all(good))


if __name__ == "__main__":
    raise SystemExit(main())
