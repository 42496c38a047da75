"""Times gradients of layers of experts on an H200: `benchmarks/moe_layer_gradient_h200.py`. Needs torch and a solver.

Checks the gradients of `argus.moe` by autograd against float64 on random routings (uniform, Zipf's law, one expert for
all, experts without tokens; 1 to 8 choices), in memory that held NaN before; that equal calls have equal bits; that
wrong orders are refused by the host and by the guards on the GPU; and that a CUDA graph of layer and gradients follows
ids that change. Then times the gradients vs. those of a composition of torch's operators around `_grouped_mm`: in both
regimes, interleaved, each as a CUDA graph, alone and after the layer itself. Prints times, TFLOP/s of the products that
gradients need (twice those of the layer), and the ratio to torch.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from math import inf, isnan
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from attrs import evolve
from moe_layer_h200 import WAYS, captured, stops, within, wrong_orders
from moe_layers import LAYERS as ALL
from moe_layers import Given, Layer, composed, exact, made, routed

import argus
from argus.kernels import grouped_weights, moe
from argus.kernels.moe_gradient import CONFIGS, FAMILIES
from argus.language import sm_90a
from argus.ops.expert_order import ExpertOrder, expert_order
from argus.ops.moe import sizes_of
from argus.runtime.kernel_cache import build_program_cached, verify_program_cached

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_layer_gradient_h200"
ROUNDS, CHECKED = 5, 48
CLOSE = {"torch.bfloat16": 2e-2, "torch.float16": 3e-3}
"""The largest error of a token's gradient, of its length, and of an expert's; of a weight's, of its factors'."""
LAYERS = ALL[0], Layer("E8", 8, 14336, 4096, 2), Layer("E128", 128, 768, 2048, 8)
"""As DeepSeek-V2-Lite's, Mixtral 8x7B's and Qwen3-30B-A3B's."""
TOKENS = 1024, 8192
SCHEDULES = "rows_16", "by_rows", "columns_256"
"""The schedules of the layer whose gradients are checked."""
WORKERS = 14
NAMES = "x", "w_gate_up", "w_down", "topk_weights"
Tensors = tuple[Any, ...]


def leaves(given: Given) -> tuple[Given, Tensors]:
    """The operands as tensors that autograd differentiates with respect to, and these."""
    fields = "x", "both", "down", "weights"
    held = [getattr(given, name).detach().clone().requires_grad_() for name in fields]
    return evolve(given, **dict(zip(fields, held, strict=True))), tuple(held)


def poison(torch: Any) -> None:  # noqa: ANN401 reason: untyped
    """Fill free memory with NaN, which results are then made in."""
    held = [torch.full((1 << power,), float("nan"), device="cuda") for power in (*range(10, 25), 24, 24, 24)]
    del held


def exact_gradients(torch: Any, given: Given, of_result: Any, activation: Any) -> tuple[Tensors, Any]:  # noqa: ANN401 reason: untyped
    """The gradients in float64, and what bounds each choice's weight's: the length of both factors of its product."""
    wide, held = leaves(
        evolve(given, **{name: getattr(given, name).double() for name in ("x", "both", "down", "weights")})
    )
    found = torch.autograd.grad(exact(torch, wide, activation), held, of_result.double())
    bound = torch.zeros_like(wide.weights)
    for e in given.ids.unique().tolist():
        token, choice = (given.ids == e).nonzero(as_tuple=True)
        both = wide.x[token].detach() @ wide.both[e].detach().T
        hidden = both[:, : given.down.shape[2]].abs() * both[:, given.down.shape[2] :].abs()
        bound[token, choice] = hidden.norm(dim=1) * (of_result[token].double() @ wide.down[e].detach()).norm(dim=1)
    return found, bound


def off(found: Tensors, wanted: Tensors, bound: Any) -> float:  # noqa: ANN401 reason: untyped
    """The largest error of the gradients."""

    def of_rows(one: Any, other: Any) -> float:  # noqa: ANN401 reason: untyped
        (one, other), worst = (each.double().flatten(1) for each in (one, other)), 0.0
        if bool((one[other.norm(dim=1) == 0] != 0).any()):
            return inf  # experts without tokens
        apart = (one - other).norm(dim=1) / other.norm(dim=1).clamp(min=1e-30)
        return max(worst, float(apart.max())) if apart.numel() else worst

    apart = [of_rows(one, other) for one, other in zip(found[:3], wanted[:3], strict=True)]
    apart.append(float(((found[3].double() - wanted[3]).abs() / bound.clamp(min=1e-30)).max()))
    return inf if any(map(isnan, apart)) else max(apart)


def gradients(torch: Any, given: Given, held: Tensors, of_result: Any, **how: Any) -> Tensors:  # noqa: ANN401 reason: untyped
    return torch.autograd.grad(argus.moe(*given.operands, **how), held, of_result)


Case = tuple[str, str, str]
"""A family of programs, its key as text, and a configuration."""
PROGRAMS = {"layer": moe.FAMILIES, "gradients": FAMILIES, "matrices": grouped_weights.FAMILIES}


def cases() -> list[Case]:
    """All programs that gradients of layers take."""
    products = {name: each.first for name, each in CONFIGS.items()}, grouped_weights.CONFIGS
    gradients, matrices = (tuple(n for n, each in of.items() if each.target == sm_90a) for of in products)
    wanted = {"layer": SCHEDULES, "gradients": gradients, "matrices": matrices}
    return [(name, str(key), each) for name, configs in wanted.items() for key in PROGRAMS[name] for each in configs]


def prepared(solver: str | None, case: Case) -> str:
    """Verify and compile a program, which later processes find in the cache; what went wrong, if it did."""
    name, key, config = case
    traced = next(each for own, each in PROGRAMS[name].items() if str(own) == key).trace(config)
    try:
        with argus.use_solver(solver) if solver else nullcontext():
            verdict = verify_program_cached(traced).verdict
        build_program_cached(traced)
    except argus.ArgusError as problem:
        return f"{case}: {problem}"
    return "" if verdict == "proved" else f"{case}: {verdict}"


def prepare(solver: str | None) -> None:
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        for trouble in filter(None, pool.map(partial(prepared, solver), cases())):
            print(trouble, flush=True)


def is_right(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    random, bad = Random("gradients"), list[str]()  # noqa: S311 reason: a seed makes the shapes repeatable
    worst, same = dict[str, float](), 0
    for number in range(count):
        experts = random.choice((1, 2, 5, 16, 64, 257))
        layer = Layer("", experts, 8 * random.randint(1, 40), 8 * random.randint(1, 64), random.randint(1, 8))
        tokens = random.choice((1, 2, 7, 64, random.randint(1, 300), random.randint(1, 2048)))
        dtype, activation = random.choice((torch.bfloat16, torch.float16)), random.choice(("silu", "gelu"))
        given, held = leaves(
            made(torch, layer, tokens, WAYS[number % len(WAYS)], dtype, distinct=random.random() < 0.8)
        )
        of_result = torch.randn_like(given.x)
        how = {"activation": activation, "promises": random.choice(("stop", "fetch"))}
        how |= {"config": random.choice(SCHEDULES)}
        wanted, bound = exact_gradients(torch, given, of_result, activation)
        poison(torch)
        found = gradients(torch, given, held, of_result, **how)
        poison(torch)
        again = gradients(torch, given, held, of_result, **how)
        same += all(bool((one == other).all()) for one, other in zip(found, again, strict=True))
        apart = off(found, wanted, bound) / CLOSE[str(dtype)]
        worst[f"{dtype} {activation}"] = max(worst.get(f"{dtype} {activation}", 0.0), apart)
        if apart > 1:
            bad.append(f"{layer} {tokens} {dtype} {activation}: {apart:.2f}")
    said = ", ".join(f"{name} {each:.2f}" for name, each in sorted(worst.items()))
    print(
        f"{count} routings: {f'WRONG {len(bad)} {bad[:5]}' if bad else 'right'}; worst error {said} of what is allowed"
    )
    print(f"equal calls: {same} of {count} equal bit for bit", flush=True)
    return not bad and same == count


def repeats(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether a CUDA graph of layer and gradients follows ids that change, and gives the same bits each time."""
    layer, right, count = Layer("", 16, 264, 136, 4), 0, 8
    given, held = leaves(made(torch, layer, 77, "uniform", torch.bfloat16))
    of_result = torch.randn_like(given.x)
    call, kept = captured(torch, partial(gradients, torch, given, held, of_result))
    for number in range(count):
        given.ids.copy_(routed(torch, WAYS[number % len(WAYS)], 77, 16, 4, distinct=False))
        call()
        first = tuple(each.clone() for each in kept[0])
        call()
        equal = all(bool((one == other).all()) for one, other in zip(first, kept[0], strict=True))
        right += equal and off(first, *exact_gradients(torch, given, of_result, "silu")) <= CLOSE["torch.bfloat16"]
    print(f"a graph with other ids: {right} of {count} right", flush=True)
    return right == count


def with_wrong_choices(order: ExpertOrder, experts: int) -> Iterator[tuple[str, ExpertOrder]]:
    yield from wrong_orders(order, experts)
    for at, value in ((3, -1), (3, order.order.shape[0]), (3, int(order.order[4]))):
        held = order.order.clone()
        held[at] = value
        yield f"order {at} {value}", evolve(order, order=held)


def refuses(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether wrong orders are refused, by the host and by the guards on the GPU."""
    layer = Layer("", 8, 64, 64, 3)
    given = made(torch, layer, 50, "uniform", torch.bfloat16)
    order = expert_order(given.ids, layer.experts, height=CONFIGS["columns_256"].bm)
    found, count = dict.fromkeys(("fetch", "tell"), 0), 0
    for what, wrong in with_wrong_choices(order, layer.experts):
        count += 1
        for promises in found:
            refused = is_refused(torch, given, wrong, promises)
            found[promises] += refused
            if not refused:
                print(f"not refused by {promises}: {what}", flush=True)
    print(f"wrong orders: {found} of {count} refused", flush=True)
    return all(each == count for each in found.values())


def is_refused(torch: Any, given: Given, order: ExpertOrder, promises: str) -> bool:  # noqa: ANN401 reason: untyped
    from argus.ops.call_path import Candidate, load_candidate  # noqa: PLC0415 reason: needs a GPU

    family = FAMILIES["bf16", "silu"]
    candidate = Candidate("g", "columns_256", lambda: (family.trace("columns_256"), family.function.__module__))
    kernel: Any = load_candidate(candidate, 0, "refuse").kernel
    experts, both, depth = given.both.shape
    sizes: Mapping[str, int] = sizes_of(order, experts, both // 2, depth)
    prepared = kernel.prepare(sizes)
    named = {"X": given.x, "W": given.both.view(experts, 2, both // 2, depth), "V": given.down, "G": given.x}
    named |= {"ids": order.ids, "weights": given.weights.view(-1), "starts": order.offsets, "tokens": order.tokens}
    named |= {"order": order.order, "inverse": order.inverse}
    named |= {"tile_starts": order.tile_starts, "tile_experts": order.tile_experts}
    rows, single = order.tokens.shape[0], torch.float32
    shapes = {"A": (rows, depth), "B": (rows, depth), "dZ": (rows, 2, both // 2), "H": (rows, both // 2)}
    shapes |= {"dX": given.x.shape, **{each.name: each.shape for each in prepared.workspaces if each.dtype != "f32"}}
    named |= {name: within(torch, shape) for name, shape in shapes.items()}
    singles = {each.name: each.shape for each in prepared.workspaces if each.dtype == "f32"} | {"dw": order.ids.shape}
    named |= {name: within(torch, shape, single) for name, shape in singles.items()}
    return stops(torch, kernel, partial(prepared.bind, named), promises)


Captured = tuple[Callable[[], object], list[Any]]
"""A CUDA graph's replay, and what it returns, first the gradients."""


def captured_whole(torch: Any, form: Callable[[], Any], held: Tensors, of_result: Any) -> Captured:  # noqa: ANN401 reason: untyped
    return captured(torch, lambda: torch.autograd.grad(form(), held, of_result))


def captured_alone(torch: Any, form: Callable[[], Any], held: Tensors, of_result: Any) -> Captured:  # noqa: ANN401 reason: untyped
    """The gradients alone: autograd runs them on the stream of the layer, which is the one that is captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = form()
        for _ in range(2):
            torch.autograd.grad(result, held, of_result, retain_graph=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        found = torch.autograd.grad(result, held, of_result, retain_graph=True)
    return graph.replay, [found, graph, result]


def timed(torch: Any, layer: Layer, tokens: int, way: str, rounds: int, given: Given) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    timing, find = import_module("argus.runtime.gpu.timing"), import_module("argus.runtime.gpu.find")
    ids = routed(torch, way, tokens, layer.experts, layer.choices, distinct=True)
    x = torch.randn((tokens, layer.K), device="cuda", dtype=torch.bfloat16)
    weights = torch.rand((tokens, layer.choices), device="cuda") + 0.1
    whole, held = leaves(evolve(given, x=x, ids=ids, weights=weights))
    of_result = torch.randn_like(x)
    forms: dict[str, Callable[[], Any]] = {
        "argus": lambda: argus.moe(*whole.operands),
        "torch": partial(composed, torch, whole),
    }
    graphs, alive = dict[str, Callable[[], object]](), list[Any]()
    for name, form in forms.items():
        for said, make in ((name, captured_alone), (f"{name} with the layer", captured_whole)):
            graphs[said], kept = make(torch, form, held, of_result)
            alive.append(kept)
    for replay in graphs.values():
        replay()
    torch.cuda.synchronize()
    for one, other, name in zip(alive[0][0], alive[2][0], NAMES, strict=True):
        apart = float((one.double() - other.double()).norm() / other.double().norm())
        if not apart < 3e-2:
            print(f"{layer.name} {tokens} {way}: {name} differs from torch's by {apart:.4f}", flush=True)
    operations = 12.0 * tokens * layer.choices * layer.N * layer.K

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(find.find_driver(), torch.cuda.current_stream().cuda_stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, graphs, regime, rounds)
        for name in graphs:
            took, peer = 1e-3 * times.median(name), name.replace("argus", "torch")
            said = {"layer": layer.name, "tokens": tokens, "way": way, "regime": regime.name, "name": name}
            figures = {"us": 1e6 * took, "tflops": operations / took / 1e12}
            figures["of_torch"] = statistics.median(times.ratios(name, peer))
            rows.append({**said, **figures})
            print(*said.values(), *(f"{key} {each:.2f}" for key, each in figures.items()), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--checked", type=int, default=CHECKED)
    parser.add_argument("--tokens", type=lambda text: tuple(map(int, text.split(","))), default=TOKENS)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["uniform", "zipf"])
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--solver", help="by which kernels are verified, in place of the portfolio")
    chosen = parser.parse_args()
    prepare(chosen.solver)
    with argus.use_solver(chosen.solver) if chosen.solver else nullcontext():
        return measured(chosen)


def measured(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    good = [is_right(torch, chosen.checked), repeats(torch), refuses(torch)]
    rows: list[dict[str, Any]] = []
    for layer in LAYERS:
        given = made(torch, layer, 1, "uniform", torch.bfloat16)
        for way in chosen.ways:
            for tokens in chosen.tokens:
                rows += timed(torch, layer, tokens, way, chosen.rounds, given)
                torch.cuda.empty_cache()
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "moe_layer_gradient.json").write_text(json.dumps(rows), "utf-8")
    return int(not all(good))


if __name__ == "__main__":
    raise SystemExit(main())
