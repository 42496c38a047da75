"""Evaluates the static model's ranking of configurations: `python benchmarks/static_model.py [FILE ...] [--fit]`.

Times come from files of `benchmarks/gemm_h200.py` (duty-cycled) and tables of a search space,
`benchmarks/results/space/*.json`: rows of shape, name and microseconds, and compiler reports. Prints, for each shape,
the rank correlation of predicted and measured times over configurations, and the regret: measured time of the predicted
best over that of the measured best; also for the fitted cost model `argus.kernels.cost_sm_90a`, and for the static
model on the configurations that the cost model covers. Pooled: over all times relative to the best of their shape. With
--fit, fits the constants of `argus.core.cost.machine.Fitted` to the times, and cross-validates: figures of each fold of
shapes with constants fitted to the others. --sample: number of configurations per shape.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from attrs import asdict, evolve, frozen

from argus.core.cost import MACHINES, Compiled, Fitted, Machine, predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.kernels.cost_sm_90a import H200, Known, is_fitted
from argus.kernels.cost_sm_90a import microseconds as selected
from argus.kernels.gemm import configuration, gemm

RESULTS = Path(__file__).parent / "results"
Shape = tuple[int, int, int]
Times = Mapping[Shape, Mapping[str, float]]
"""Microseconds by shape and configuration."""


Reports = Mapping[str, Compiled]
"""Compiler reports by configuration."""


@frozen
class Table:
    """Times measured in one way."""

    title: str
    times: Times
    reports: Reports

    def sampled(self, count: int, drawn: random.Random) -> Table:
        """At most `count` random configurations per shape."""
        times = {
            shape: {name: each[name] for name in sorted(drawn.sample(sorted(each), min(count, len(each))))}
            for shape, each in self.times.items()
        }
        return evolve(self, times=times)

    def only(self, shapes: Collection[Shape]) -> Table:
        return evolve(self, times={shape: each for shape, each in self.times.items() if shape in shapes})


def read(paths: Sequence[Path]) -> Table:
    found: dict[Shape, dict[str, float]] = {}
    reports: dict[str, Compiled] = {}
    for path in paths:
        data = json.loads(path.read_text(encoding="utf-8"))
        reports |= _reports(data)
        for shape, name, time in _rows(data):
            if kernel_of(name) is not None:
                found.setdefault(shape, {}).setdefault(name, time)
    return Table(", ".join(path.stem for path in paths), found, reports)


def _reports(data: Any) -> Reports:  # noqa: ANN401 reason: JSON
    """Registers and spilled bytes of each compiled point of a space's table."""
    table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    points = cast("list[dict[str, Any]]", table.get("points", []))
    return {
        each["name"]: Compiled(each["registers"], each.get("spills") or 0) for each in points if each.get("registers")
    }


def _rows(data: Any) -> Iterator[tuple[Shape, str, float]]:  # noqa: ANN401 reason: JSON
    """(shape, name, microseconds) of either kind of file; rows without a time are left out."""
    table = cast("dict[str, Any]", data)["rows"] if isinstance(data, dict) else data
    for row in cast("list[dict[str, Any]]", table):
        m, n, k = row["shape"]
        if row.get("microseconds") is not None:
            yield (m, n, k), row["name"], row["microseconds"]
        elif row.get("regime") == "duty-cycled":
            yield (m, n, k), row["name"], 1e3 * row["milliseconds"]


@cache
def kernel_of(name: str) -> Kernel | None:
    """The kernel of an sm_90a configuration; None for any other name."""
    config = configuration(name)
    if config is None or config.target.name != "sm_90a":
        return None
    try:
        return gemm.instance(config, name)
    except ArgusError:
        return None


def predicted(table: Table, machine: Machine) -> Times:
    return {
        shape: {name: _predicted(shape, name, table.reports.get(name), machine) for name in each}
        for shape, each in table.times.items()
    }


def _predicted(shape: Shape, name: str, report: Compiled | None, machine: Machine) -> float:
    kernel = kernel_of(name)
    assert kernel is not None
    return predict(kernel, dict(zip("MNK", shape, strict=True)), report, machine).microseconds


def fitted_model(times: Times) -> Times:
    """Times predicted by the cost model of `select`, for the configurations that it covers."""
    found: dict[Shape, dict[str, float]] = {}
    for shape, each in times.items():
        for name in each:
            config = configuration(name)
            if isinstance(config, Known) and is_fitted(config, H200):
                found.setdefault(shape, {})[name] = selected(config, *shape)
    return found


# -- figures -------------------------------------------------------------------------------------------------


def ranks(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Ranks from 0; ties get their mean rank."""
    given = np.asarray(values, np.float64)
    _, place, counts = np.unique(given, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts + 1) / 2)[place]


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN if one side is constant."""
    first, second = ranks(left), ranks(right)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


@frozen
class Figures:
    """by: rank correlation, number of configurations and regret of each shape. Regret: measured time of the predicted
    best over that of the measured best. off: RMS of log(predicted / measured).
    """

    by: Mapping[Shape, tuple[float, int, float]]
    pooled: float
    off: float

    @property
    def mean(self) -> float:
        return float(np.nanmean([rho for rho, _, _ in self.by.values()]))

    @property
    def regret(self) -> float:
        return float(np.exp(np.mean([math.log(regret) for _, _, regret in self.by.values()])))

    def __str__(self) -> str:
        text = f"rank correlation {self.mean:.3f} by shape, {self.pooled:.3f} pooled"
        return f"{text}; predicted best {self.regret:.3f} times the best; {self.off:.1%} off"


_FEWEST = 3


def figures(times: Times, said: Times) -> Figures:
    """Figures over configurations with both times; shapes with fewer than three are left out."""
    by: dict[Shape, tuple[float, int, float]] = {}
    slow, slow_said, off = list[float](), list[float](), list[float]()
    for shape, each in said.items():
        names = list(each)
        took = [times[shape][name] for name in names]
        told = [each[name] for name in names]
        off += [math.log(one / other) ** 2 for one, other in zip(told, took, strict=True)]
        if len(names) < _FEWEST:
            continue
        slow += [one / min(took) for one in took]
        slow_said += [one / min(told) for one in told]
        by[shape] = spearman(told, took), len(names), took[told.index(min(told))] / min(took)
    return Figures(by, spearman(slow_said, slow), math.sqrt(float(np.mean(off))))


GUESSED = Fitted(
    cache_latency=600.0,
    memory_latency=400.0,
    landing_latency=60.0,
    barrier_latency=40.0,
    sync_latency=30.0,
    mma_latency=100.0,
    power_slowdown=1.2,
    resident_share=0.7,
    shared_line_cost=0.5,
    fill_rate=32.0,
    remote_rate=32.0,
    shortest_row=128.0,
    launch_us=5.0,
    block_start=1500.0,
    issue_overhead=10.0,
    address_instructions=4.0,
)
"""Initial guesses, before any fit: the start of a cross-validated fit, which must not depend on held-out shapes."""
MOVED = (
    "cache_latency",
    "shared_line_cost",
    "fill_rate",
    "launch_us",
    "power_slowdown",
    "block_start",
    "remote_rate",
    "resident_share",
    "mma_latency",
    "address_instructions",
    "shortest_row",
)
"""Constants that are fitted; the times determine the others poorly."""


# -- fitting -------------------------------------------------------------------------------------------------


def constants(machine: Machine) -> Mapping[str, float]:
    return asdict(machine.fitted)


def with_constants(machine: Machine, changes: Mapping[str, float]) -> Machine:
    return evolve(machine, fitted=Fitted(**{**constants(machine), **changes}))


def loss(table: Table, machine: Machine) -> float:
    """Mean absolute log error, averaged over shapes."""
    said = predicted(table, machine)
    by = [np.mean([abs(math.log(each[n] / table.times[shape][n])) for n in each]) for shape, each in said.items()]
    return float(np.mean(by))


def fit(table: Table, machine: Machine, passes: int) -> Machine:
    """Coordinate descent: scales each constant up or down while the loss falls; halves the step after each pass."""
    least, step = loss(table, machine), 0.4
    for _ in range(passes):
        for name in MOVED:
            for factor in (1 + step, 1 / (1 + step)):
                while True:
                    tried = with_constants(machine, {name: constants(machine)[name] * factor})
                    now = loss(table, tried)
                    if now >= least * 0.998:
                        break
                    machine, least = tried, now
        step /= 2
    return machine


def cross_validated(table: Table, machine: Machine, chosen: argparse.Namespace) -> Times:
    """Times of each shape predicted with constants fitted to the other folds."""
    drawn, said = random.Random(chosen.seed), dict[Shape, Mapping[str, float]]()  # noqa: S311 reason: repeatable
    shapes = sorted(table.times)
    drawn.shuffle(shapes)
    for part in range(chosen.folds):
        left = shapes[part :: chosen.folds]
        found = fit(table.only(set(shapes) - set(left)), machine, chosen.passes)
        print(f"  without {left}: {_listed(found)}")
        said.update(predicted(table.only(left), found))
    return said


def _listed(machine: Machine) -> str:
    return ", ".join(f"{name}={value:.4g}" for name, value in constants(machine).items())


# -- text ----------------------------------------------------------------------------------------------------


def show(table: Table, said: Times, how: str) -> None:
    times, fitted = table.times, fitted_model(table.times)
    alike = {shape: {name: said[shape][name] for name in each} for shape, each in fitted.items()}
    print(f"{table.title}, {how}: {sum(map(len, times.values()))} times of {len(times)} shapes")
    for shape, (rho, count, regret) in figures(times, said).by.items():
        print(f"  {'x'.join(map(str, shape)):18} {rho:6.3f} of {count:4}, best {regret:.3f}")
    print(f"  static model: {figures(times, said)}")
    print(f"  configurations covered by `select`: static model {figures(times, alike)}")
    print(f"                                      `select`     {figures(times, fitted)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="configurations per shape; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    measured = [[RESULTS / "gemm.json", RESULTS / "odd" / "gemm.json"]]
    measured += [[path] for path in sorted((RESULTS / "space").glob("sm_90a*.json"))]
    for paths in [chosen.files] if chosen.files else measured:
        drawn = random.Random(chosen.seed)  # noqa: S311 reason: a seed makes the figures repeatable
        table = read(paths)
        table = table.sampled(chosen.sample, drawn) if chosen.sample else table
        _study(table, chosen)


def _study(table: Table, chosen: argparse.Namespace) -> None:
    machine = MACHINES["sm_90a"]
    show(table, predicted(table, machine), "with the constants in use")
    guessed = evolve(machine, fitted=GUESSED)
    show(table, predicted(table, guessed), "with the initial guesses")
    if chosen.fit:
        found = fit(table, machine, chosen.passes)
        print(f"fitted: {_listed(found)}")
        show(table, predicted(table, found), "with constants fitted to all")
        show(table, cross_validated(table, guessed, chosen), "with constants fitted to other shapes")


if __name__ == "__main__":
    main()
