"""`argus bench kernelbench`: the problems of a checkout, their rows, and one run in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argus.cli.bench.kernelbench import line, problems, run, totals
from argus.core.diagnostic import ArgusError
from argus.torch.kernelbench.compare import compared
from argus.torch.kernelbench.problem import load, reduced

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.relu(x) * self.scale

batch_size = 4096
dim = 393216

def get_inputs():
    return [torch.rand(batch_size, dim)]

def get_init_inputs():
    return [2.0]
"""


def checkout(folder: Path) -> Path:
    level = folder / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for number, name in ((2, "Other"), (10, "Twice_ReLU")):
        (level / f"{number}_{name}.py").write_text(PROBLEM, encoding="utf-8")
    return folder


def test_problems_are_found_by_level_and_number(tmp_path: Path) -> None:
    made = checkout(tmp_path)
    assert [number for number, _ in problems(made, 1, ())] == [2, 10]
    assert [path.name for _, path in problems(made / "KernelBench", 1, [10])] == ["10_Twice_ReLU.py"]
    with pytest.raises(ArgusError, match="no such problem of level 2") as raised:
        problems(made, 2, ())
    assert raised.value.diagnostic.code == "E001"


def test_sizes_are_reduced_and_small_ones_stay(tmp_path: Path) -> None:
    assert reduced("kernel_size", 3, 32) == 3
    assert reduced("batch_size", 128, 32) == 2
    assert reduced("dim", 4096, 32) == 32
    assert reduced("width", 67, 32) == 19
    problem = load(checkout(tmp_path) / "KernelBench" / "level1" / "2_Other.py", 32)
    assert problem.inputs(0)[0].shape == (2, 32)


def test_right_is_within_twice_the_error_of_eager_torch() -> None:
    import torch  # noqa: PLC0415 reason: only this test needs it

    exact = torch.tensor([1.0, -2.0, 300.0], dtype=torch.float64)
    eager = exact.float() * (1 + 3e-4)
    assert compared(exact.float(), eager, exact).right
    assert compared(exact.float() * (1 + 5e-4), eager, exact).right
    assert not compared(exact.float() * (1 + 9e-4), eager, exact).right
    assert not compared(torch.full((3,), torch.nan), eager, exact).right
    assert not compared(exact.float()[:2], eager, exact).right
    assert compared(eager, eager, torch.zeros(3, dtype=torch.float64)).trivial


ROW: dict[str, Any] = {
    "problem": 19,
    "name": "ReLU",
    "proved": True,
    "right": True,
    "stock": True,
    "trivial": False,
    "error": "",
    "errors": [1e-7],
    "eager_errors": [0.0],
    "kernels": 1,
    "eager": {},
    "milliseconds": {"eager": 2.0, "argus": 1.5},
}


def test_rows_and_totals() -> None:
    assert line(ROW).startswith(" 19 ReLU ")
    assert "proved, right, error 1.0e-07 (eager 0.0e+00), 1 kernels, eager 2.000 ms, argus 1.500 ms" in line(ROW)
    wrong = ROW | {"right": False, "proved": False, "eager": {"aten.sort.default": "no entry"}}
    assert "in part, WRONG" in line(wrong)
    assert line(wrong).endswith("eager torch: aten.sort.default (no entry)")
    lost = {"problem": 1, "name": "x", "error": "gone"}
    assert line(lost).endswith("not run: gone")
    assert list(totals([ROW, wrong, lost]).values()) == [3, 1, 1, 1, 1]


@pytest.mark.nightly
def test_a_problem_is_proved_and_right_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = checkout(tmp_path) / "KernelBench" / "level1" / "10_Twice_ReLU.py"
    found = run(path, "cpu", 300.0, timed=False)
    assert found["error"] == ""
    assert found["proved"]
    assert found["right"]
    assert found["kernels"] == 1
    assert len(found["errors"]) == 7  # five seeds, two other shapes


def test_a_process_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    found = run(tmp_path / "absent.py", "cpu", 0.05, timed=False)
    assert "did not finish within 0.05 s" in found["error"]
