"""Fits the constants of `argus.kernels.cost_sm_90a` to times: `python benchmarks/fit.py FILE... [--seed S]`.

The files are results of `benchmarks/dense_h200.py search`, `gemm_h200.py run` and `tuning.py run`. Uses the geometric
mean of the regimes, and for each shape the configurations within 1.6 times the best. Random search: perturbs constants
and keeps changes that reduce the loss, from log errors of the times and the regret of the model's choice. Prints the
constants, the model's error, and for each shape the time of the choice over the best of the table.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from attrs import asdict, evolve

from argus.kernels import streamk
from argus.kernels.cost_sm_90a import H200, Costs, Known, cheapest, is_fitted, microseconds
from argus.kernels.gemm import CONFIGS, Config, configuration

SHIPPED: dict[object, str] = {config: name for name, config in CONFIGS.items()}
Shape = tuple[int, int, int]
Times = Mapping[Shape, Mapping[str, float]]
STEPS, RESTARTS = 3000, 12
NEAR, CHOICE = 1.6, 20.0
"""Configurations within NEAR times the best are used; CHOICE is the weight of the regret in the loss."""


def read(paths: Iterable[Path]) -> Times:
    """Microseconds by shape and configuration; shipped configurations have their shipped names."""
    found: dict[Shape, dict[str, list[float]]] = {}
    for data in (json.loads(path.read_text(encoding="utf-8")) for path in paths):
        for shape, name, took in _of(data):
            config = known(name)
            if config is not None:
                found.setdefault(shape, {}).setdefault(SHIPPED.get(config) or name, []).append(took)
    return {shape: {name: geometric_mean(took) for name, took in each.items()} for shape, each in found.items()}


def _of(data: Mapping[str, Any]) -> Iterator[tuple[Shape, str, float]]:
    if "results" in data:
        return _of_search(data["results"])
    return (_of_shapes if all("took" in row for row in data["rows"]) else _of_families)(data["rows"])


def _of_shapes(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Shape, str, float]]:
    """The geometric mean of a burst and of a call alone."""
    for row in rows:
        for name, times in row["took"].items():
            yield _shape(row["shape"]), name, geometric_mean(times)


def _of_families(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Shape, str, float]]:
    for row in rows:
        yield _shape(row["shape"]), row["name"], 1e3 * row["milliseconds"]


def _of_search(results: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Shape, str, float]]:
    """Brief times; for finalists the thorough ones, scaled to the brief time of the model's choice."""
    for each in results:
        chosen, brief, thorough = each["chosen"], each["first"], each["timed"]["medians"].values()
        final = {
            name: geometric_mean(times[name] / times[chosen] for times in thorough) for name in next(iter(thorough))
        }
        for name, took in brief.items():
            yield _shape(each["shape"]), name, final[name] * brief[chosen] if name in final else took


def _shape(extents: Sequence[int]) -> Shape:
    m, n, k = extents
    return m, n, k


@cache
def known(name: str) -> Config | streamk.Stream | None:
    """The configuration of a kernel, or of split-K in a workspace."""
    return configuration(name) or streamk.configuration(name)


def modelled(name: str, shape: Shape, costs: Costs) -> float | None:
    config = known(name)
    if isinstance(config, Known) and is_fitted(config, costs):
        return microseconds(config, *shape, costs)
    return None


def loss(times: Times, costs: Costs) -> float:
    """The loss: RMS of log(model / time), and of log(choice / best) with weight CHOICE."""
    found: list[float] = []
    for shape, each in times.items():
        best = min(each.values())
        model = {name: said for name in each if (said := modelled(name, shape, costs)) is not None}
        near = [math.log(said / each[name]) ** 2 for name, said in model.items() if each[name] < NEAR * best]
        shipped = [name for name in model if name in CONFIGS] or list(model)
        choice = each[min(shipped, key=lambda one: model[one])] / min(each[name] for name in shipped)
        found.append(sum(near) / max(1, len(near)) + CHOICE * math.log(choice) ** 2)
    return math.sqrt(sum(found) / len(found))


def random_search(times: Times, seed: int) -> Costs:
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes the figures repeatable
    best, least = H200, loss(times, H200)
    for _ in range(RESTARTS):
        costs, error, width = best, least, 0.2
        for _ in range(STEPS):
            tried = perturbed(costs, drawn, width)
            if drawn.random() < 0.5:
                tried = perturbed(tried, drawn, width)
            now = loss(times, tried)
            if now < error:
                costs, error = tried, now
            width = max(0.01, 0.999 * width)
        if error < least:
            best, least = costs, error
    return best


def perturbed(costs: Costs, drawn: random.Random, width: float) -> Costs:
    factor = math.exp(drawn.gauss(0, width))
    name = drawn.choice([*(each for each, value in asdict(costs).items() if not isinstance(value, dict)), *costs.step])
    if name in ("cache_misaligned", "port_misaligned"):
        before: tuple[float, ...] = getattr(costs, name)
        changed = drawn.randrange(len(before))
        return evolve(costs, **{name: tuple(each * (factor if i == changed else 1) for i, each in enumerate(before))})
    if isinstance(name, int):
        return evolve(costs, step={**costs.step, name: costs.step[name] * factor})
    return evolve(costs, **{name: getattr(costs, name) * factor})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timed", action="store_true", help="choose among all timed configurations, not only shipped ones"
    )
    chosen = parser.parse_args()
    times = read(chosen.files)
    print(f"the constants in use are {loss(times, H200):.1%} off")
    costs = random_search(times, chosen.seed)
    print(f"fitted: {loss(times, costs):.1%} off; {asdict(costs)}")
    for shape, each in times.items():
        timed = {name: known(name) for name in each} if chosen.timed else CONFIGS
        name, best = cheapest(timed, *shape, costs), min(each, key=lambda one: each[one])
        if name in each:
            print(f"{'x'.join(map(str, shape)):18} {name:16} {each[name] / each[best]:.3f} of {best}")


if __name__ == "__main__":
    main()
