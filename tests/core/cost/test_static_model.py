"""The figures of the benchmark of the static model, on numbers small enough to check by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from argus.core.cost import MACHINES, Compiled
from benchmarks.static_model import RESULTS, Shape, Times, figures, kernel_of, predicted, ranks, read, spearman

SHAPE: Shape = (512, 512, 512)


def test_equals_share_their_ranks() -> None:
    assert list(ranks([30.0, 10.0, 10.0, 20.0])) == [3.0, 0.5, 0.5, 2.0]


def test_rank_correlation() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 40, 80]) == pytest.approx(1.0)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(1 - 6 * 2 / (4 * 15))  # 1 - 6 sum d^2 / n (n^2 - 1)
    assert math.isnan(spearman([1, 2, 3], [5, 5, 5]))


def test_regret_is_what_the_predicted_best_costs() -> None:
    times: Times = {SHAPE: {"a": 10.0, "b": 12.0, "c": 30.0}}
    found = figures(times, {SHAPE: {"a": 3.0, "b": 2.0, "c": 9.0}})
    assert found.by[SHAPE] == (pytest.approx(0.5), 3, pytest.approx(1.2))
    assert found.regret == pytest.approx(1.2)


def test_both_kinds_of_files_are_read(tmp_path: Path) -> None:
    calls = {"rows": [
        {"shape": SHAPE, "regime": "duty-cycled", "name": "cooperative", "milliseconds": 0.02},
        {"shape": SHAPE, "regime": "sustained", "name": "cooperative", "milliseconds": 0.03},
        {"shape": SHAPE, "regime": "duty-cycled", "name": "cuBLAS", "milliseconds": 0.01},
    ]}  # fmt: skip
    space = {
        "rows": [
            {"shape": SHAPE, "name": "hopper_bn128", "microseconds": 15.0},
            {"shape": SHAPE, "name": "hopper_bn64", "microseconds": None},
        ],
        "points": [{"name": "hopper_bn128", "registers": 168, "spills": 4}, {"name": "hopper_bn64", "registers": None}],
    }
    for name, data in (("calls", calls), ("space", space)):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    table = read([tmp_path / "calls.json", tmp_path / "space.json"])
    assert table.times == {SHAPE: {"cooperative": 20.0, "hopper_bn128": 15.0}}
    assert table.reports == {"hopper_bn128": Compiled(168, 4)}
    said = predicted(table, MACHINES["sm_90a"])
    assert said.keys() == table.times.keys()
    assert all(time > 0 for time in said[SHAPE].values())


def test_a_configuration_of_another_machine_is_none_of_this_table() -> None:
    assert kernel_of("cdna3") is None
    assert kernel_of("cuBLAS") is None
    assert kernel_of("hopper_bn128_stages3") is not None


@pytest.mark.share(4)
def test_the_order_of_shipped_configurations_is_that_of_their_times() -> None:
    table = read([RESULTS / "odd" / "gemm.json"])
    shapes = sorted(table.times)[::4]
    found = figures(table.times, predicted(table.only(shapes), MACHINES["sm_90a"]))
    assert len(found.by) == 5
    assert found.mean > 0.85
    assert found.regret < 1.2
