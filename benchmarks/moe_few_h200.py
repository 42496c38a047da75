"""Times layers of experts for few tokens on an H200: `benchmarks/moe_few_h200.py`. Needs torch and a solver.

From the ids to the sums, with the check of integers, as CUDA graphs: of one call, and of several whose tokens choose
other experts each, as a model's layers follow each other when it decodes. Beside what `argus.moe` selects: tiles of 16
rows in the order of experts, and a composition of torch's operators around `_grouped_mm`. The first call of each is
compared with float64. Prints microseconds of a call in both regimes, interleaved, and the rate at which the matrices of
the experts that are met are read, of the data sheet's. `moe_layer_h200.py` checks layers on random routings.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import evolve
from moe_layer_h200 import CLOSE, PEAK, captured, numbers
from moe_layers import LAYERS, Given, Layer, composed, error, exact, made, routed

import argus

FOLDER = Path(__file__).resolve().parent.parent / "build" / "moe_few_h200"
TOKENS, ROUNDS = (1, 2, 4, 8), 7
CALLS = {"E64": 16, "E256": 4}
"""Calls of a graph that has several; so many read more matrices than the L2 cache holds, several times over."""
Make = Callable[[Given], Callable[[], Any]]
"""A call on operands."""


def forms(configs: Sequence[str]) -> dict[str, Make]:
    """What is timed, by name. configs: of `argus.moe`, beside the default."""

    def of(config: str | None) -> Make:
        return lambda given: partial(argus.moe, *given.operands, config=config)

    def peer(torch: Any, given: Given) -> Callable[[], Any]:  # noqa: ANN401 reason: untyped
        return partial(composed, torch, given)

    made: dict[str, Make] = {"torch": partial(peer, import_module("torch")), "argus": of(None)}
    return made | {config: of(config) for config in configs}


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    layer: Layer,
    every: Sequence[Given],
    makes: dict[str, Make],
    rounds: int,
) -> list[dict[str, Any]]:
    """The rows of a graph of these calls for each form."""
    timing, find = import_module("argus.runtime.gpu.timing"), import_module("argus.runtime.gpu.find")
    wanted, tokens = exact(torch, every[0], "silu"), every[0].x.shape[0]
    graphs: dict[str, Callable[[], object]] = {}
    alive: list[Any] = []
    for name, make in makes.items():
        calls = [make(given) for given in every]
        graphs[name], kept = captured(torch, partial(_all, calls))
        alive.append(kept)
        graphs[name]()
        torch.cuda.synchronize()
        if not (apart := error(kept[0][0], wanted)) < CLOSE["torch.bfloat16"]:
            print(f"{layer.name} {tokens} {name} WRONG by {apart}", flush=True)
    met = statistics.mean(int(given.ids.unique().numel()) for given in every)
    read = met * 3 * layer.N * layer.K * 2

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(find.find_driver(), torch.cuda.current_stream().cuda_stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, graphs, regime, rounds)
        for name in graphs:
            took = 1e-3 * times.median(name) / len(every)
            said = {"layer": layer.name, "tokens": tokens, "calls": len(every), "regime": regime.name, "name": name}
            ratio = statistics.median(times.ratios(name, "torch"))
            rows.append({**said, "us": 1e6 * took, "of_hbm": read / took / PEAK, "of_torch": ratio})
            print(*said.values(), f"{1e6 * took:.2f} us {read / took / PEAK:.3f} of HBM {ratio:.2f}", flush=True)
    return rows


def _all(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    return [call() for call in calls]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tokens", type=numbers, default=TOKENS)
    parser.add_argument("--configs", type=lambda text: text.split(","), default=["rows_16"])
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    for layer in LAYERS:
        weights = made(torch, layer, 1, "uniform", torch.bfloat16)
        for tokens in chosen.tokens:
            every: list[Given] = []
            for _ in range(CALLS[layer.name]):
                ids = routed(torch, "uniform", tokens, layer.experts, layer.choices, distinct=True)
                x = torch.randn((tokens, layer.K), device="cuda", dtype=torch.bfloat16)
                factors = torch.rand((tokens, layer.choices), device="cuda") + 0.1
                every.append(evolve(weights, x=x, ids=ids, weights=factors))
            for group in (every[:1], every):
                rows += timed(torch, layer, group, forms(chosen.configs), chosen.rounds)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "moe_few.json").write_text(json.dumps(rows), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
