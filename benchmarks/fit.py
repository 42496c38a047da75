"""The constants of `argus.kernels.select` from times: `python benchmarks/fit.py gemm.json [--seed S]`.

The file is what `benchmarks/gemm_h200.py run` leaves. Single calls after idle count. Constants are moved at random, and
kept where the logarithms of the times are met better. It prints them, how far the model is off, and for each shape what
the choice costs beside the best of the table.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path

from attrs import asdict, evolve

from argus.kernels.gemm import CONFIGS, configuration
from argus.kernels.select import H200, Costs, Known, cheapest, is_fitted, microseconds

Shape = tuple[int, int, int]
Times = Mapping[Shape, Mapping[str, float]]
STEPS, RESTARTS = 3000, 12


def read(path: Path) -> Times:
    """Microseconds by shape and configuration."""
    found: dict[Shape, dict[str, float]] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        if row["regime"] == "duty-cycled" and configuration(row["name"]) is not None:
            m, n, k = row["shape"]
            found.setdefault((m, n, k), {})[row["name"]] = 1e3 * row["milliseconds"]
    return found


def modelled(name: str, shape: Shape, costs: Costs) -> float | None:
    config = configuration(name)
    if isinstance(config, Known) and is_fitted(config, costs):
        return microseconds(config, *shape, costs)
    return None


def off(times: Times, costs: Costs) -> float:
    """The root of the mean square of logarithms of model over time."""
    found = [
        math.log(said / took) ** 2
        for shape, each in times.items()
        for name, took in each.items()
        if (said := modelled(name, shape, costs)) is not None
    ]
    return math.sqrt(sum(found) / len(found))


def fitted(times: Times, seed: int) -> Costs:
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes the figures repeatable
    best, least = H200, off(times, H200)
    for _ in range(RESTARTS):
        costs, error, width = best, least, 0.2
        for _ in range(STEPS):
            tried = moved(costs, drawn, width)
            now = off(times, tried)
            if now < error:
                costs, error = tried, now
            width = max(0.01, 0.999 * width)
        if error < least:
            best, least = costs, error
    return best


def moved(costs: Costs, drawn: random.Random, width: float) -> Costs:
    factor = math.exp(drawn.gauss(0, width))
    name = drawn.choice([*(each for each, value in asdict(costs).items() if isinstance(value, float)), *costs.step])
    if isinstance(name, int):
        return evolve(costs, step={**costs.step, name: costs.step[name] * factor})
    return evolve(costs, **{name: getattr(costs, name) * factor})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    times = read(chosen.file)
    print(f"the constants in use are {off(times, H200):.1%} off")
    costs = fitted(times, chosen.seed)
    print(f"fitted: {off(times, costs):.1%} off; {asdict(costs)}")
    for shape, each in times.items():
        name, best = cheapest(CONFIGS, *shape, costs), min(each, key=lambda one: each[one])
        if name in each:
            print(f"{'x'.join(map(str, shape)):18} {name:16} {each[name] / each[best]:.3f} of {best}")


if __name__ == "__main__":
    main()
