"""`argus bench kernelbench`: the problems of a checkout, their rows, and one run in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from argus.cli.bench import kernelbench_runs
from argus.cli.bench.kernelbench import begun_early, line, problems, totals
from argus.cli.bench.kernelbench_runs import ahead, run
from argus.core.diagnostic import ArgusError
from argus.report.kernelbench import Asked, Problem, Row, merged
from argus.runtime.processes.tickets import Tickets
from argus.torch.kernelbench.compare import (
    _exact,  # pyright: ignore[reportPrivateUsage]  # no GPU is too small here
    compare,
    compared,
)
from argus.torch.kernelbench.problem import load, reduced, runnable

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


def test_problems_are_found_by_level_and_number_in_the_order_wanted(tmp_path: Path) -> None:
    made = checkout(tmp_path)
    assert [each.number for each in problems(made, (1, 2), ())] == [2, 10]
    (found,) = problems(made / "KernelBench", (1,), ["10"])
    assert (found.level, found.number, Path(found.path).name) == (1, 10, "10_Twice_ReLU.py")
    assert [each.number for each in problems(made, (1, 2), ["1.10", "2", "10"])] == [10, 2]
    for wanted in ((2,), ()), ((1,), ["2.10"]), ((1,), ["ten"]):
        with pytest.raises(ArgusError, match="no such problem of level") as raised:
            problems(made, *wanted)
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
    assert not compared(eager, eager, exact).trivial


def test_integers_are_right_only_if_they_are_equal() -> None:
    import torch  # noqa: PLC0415 reason: only tests of the comparison need it

    places = torch.tensor([7, 200000])
    assert compared(places, places, places).right
    assert not compared(places + torch.tensor([0, 1]), places, places).right
    assert not compared(places, places.int(), places).right


def test_what_a_run_does_to_its_inputs_reaches_no_other_run() -> None:
    import torch  # noqa: PLC0415 reason: only tests of the comparison need it

    class InPlace(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mul_(2)

    class Half(InPlace):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mul_(0.5)

    x = torch.tensor([3.0, 5.0])
    assert compare(InPlace(), (own := InPlace()), own, [x]).right
    assert not compare(InPlace(), (own := Half()), own, [x]).right
    assert torch.equal(x, torch.tensor([3.0, 5.0]))

    class Short(InPlace):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 2).half()

    assert not compare(InPlace(), (own := Short()), own, [x]).right

    class Apart(InPlace):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    assert not compare(InPlace(), (own := Apart()), own, [x]).right  # eager torch leaves twice the input
    assert not compare(Apart(), (own := InPlace()), own, [x]).right  # what the kernel does to its input


def test_sizes_that_are_left_out_are_said(tmp_path: Path) -> None:
    path = checkout(tmp_path) / "KernelBench" / "level1" / "2_Other.py"
    found = runnable(path, (16, 24, 32), elements=40, wanted=2)
    assert [each.limit for each in found.problems] == [16]
    assert found.dropped == {limit: f"its inputs have {2 * limit} elements, more than 40" for limit in (24, 32)}
    path.write_text(PROBLEM.replace("torch.relu(x)", "torch.relu(x).reshape(16)"), encoding="utf-8")
    found = runnable(path, (16, 32), elements=100, wanted=2)
    assert not found.problems
    assert set(found.dropped) == {16, 32}
    assert "shape '[16]' is invalid" in found.dropped[16]


@pytest.mark.share(2)
def test_a_model_is_compared_with_its_results_and_its_buffers() -> None:
    import torch  # noqa: PLC0415 reason: only tests of the comparison need it

    class Twice(torch.nn.Module):
        def __init__(self, step: float) -> None:
            super().__init__()
            self.step = step
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.norm(x), x * self.step

    x = torch.linspace(0, 1, 32).reshape(8, 4)
    right, wrong = Twice(2.0), Twice(2.01)
    assert compare(Twice(2.0), right, right, [x]).right
    assert not compare(Twice(2.0), wrong, wrong, [x]).right

    class Forgetful(Twice):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = super().forward(x)
            self.get_buffer("norm.running_mean").zero_()
            return found

    still = Forgetful(2.0)
    found = compare(Twice(2.0), still, still, [x])
    assert not found.right  # a buffer that is not written back
    assert found.against == "float64"

    class Random(Twice):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return super().forward(torch.nn.functional.dropout(x.float(), 0.5).to(x.dtype) + torch.rand_like(x))

    random = Random(2.0)
    found = compare(Random(2.0), random, random, [x], seed=3)
    assert (found.right, found.error, found.against) == (True, 0.0, "eager torch")

    class Single(Twice):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return super().forward(x @ torch.eye(4))

    single = Single(2.0)
    assert compare(Single(2.0), single, single, [x]).against == "eager torch"


def test_convolutions_that_memory_does_not_hold_are_computed_in_parts() -> None:
    import torch  # noqa: PLC0415 reason: only tests of the comparison need it
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415 reason: as above

    asked: list[int] = []
    convolution: Any = torch.ops.aten.convolution.default

    class Small(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 reason: torch's
            if func is convolution:
                asked.append(len(args[0]))
                if len(args[0]) > 2:
                    raise RuntimeError("out of memory")
            return func(*args, **(kwargs or {}))

    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ConvTranspose2d(3, 2, 2, stride=2))
    x = torch.rand(37, 2, 6, 5)
    with torch.no_grad():
        wanted = model.double()(x.double())
        with Small():
            found = _exact(model, [x], 0)
    assert found is not None
    assert torch.equal(found[0], wanted)
    assert asked[0] == 37
    assert max(asked[1:]) == 2


ROW: dict[str, Any] = {
    "level": 1,
    "problem": 19,
    "name": "ReLU",
    "proved": True,
    "right": True,
    "stock": True,
    "against": ["float64"],
    "shapes": [96],
    "shapes_dropped": {"160": "RuntimeError: too large"},
    "trivial": False,
    "error": "",
    "errors": [1e-7],
    "eager_errors": [0.0],
    "kernels": 1,
    "eager": {},
    "milliseconds": {"eager": 2.0, "argus": 1.5},
}


def test_rows_and_totals() -> None:
    assert line(ROW).startswith("1.19  ReLU ")
    assert "proved, right, error 1.0e-07 (eager 0.0e+00), 1 kernels, eager 2.000 ms, argus 1.500 ms" in line(ROW)
    wrong = ROW | {"right": False, "proved": False, "eager": {"aten.sort.default": "no entry"}}
    assert "in part, WRONG" in line(wrong)
    assert line(wrong).endswith("eager torch: aten.sort.default (no entry)")
    assert "1 other shapes, not at 160" in line(ROW)
    assert "against eager torch" in line(ROW | {"against": ["eager torch"]})
    cut = ROW | {"cut": "the run ended", "wanted": 8}
    assert line(cut).endswith("1 comparisons of 8: the run ended")
    lost = {"level": 1, "problem": 1, "name": "x", "error": "gone"}
    assert line(lost).endswith("not run: gone")
    assert list(totals([ROW, wrong, lost]).values()) == [3, 1, 1, 1, 1]


def asked_in(folder: Path, asked: Asked) -> tuple[Asked, Path]:
    """What is asked, with tickets in a folder, and where it is written."""
    place = folder / "asked.json"
    whole = evolve(asked, folder=str(folder))
    whole.write(place)
    return whole, place


@pytest.mark.nightly
@pytest.mark.parametrize("cold", [False, True])
def test_problems_are_proved_and_right_in_processes_of_their_own(
    *, cold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    chosen = tuple(problems(checkout(tmp_path), (1,), ()))
    asked, place = asked_in(tmp_path, Asked(chosen, device="cpu", jobs=2, gpus=2, cold=cold))
    prepares = evolve(asked, gpus=0)
    prepares.write(place)
    with ahead(prepares, place, chosen[:1]):  # a run that only prepares
        assert list(run(prepares, place)) == []
    assert Tickets(tmp_path).read("ahead-1.2") is not None
    asked.write(place)
    with ahead(asked, place, chosen):
        rows = sorted(run(asked, place), key=lambda row: row["problem"])
    assert [each["problem"] for each in rows] == [2, 10]
    for found in rows:
        assert found["error"] == ""
        assert found["proved"]
        assert found["right"]
        assert found["kernels"] == 1
        assert len(found["errors"]) == found["wanted"] == 7  # five seeds, two other shapes
        assert not found["shapes_dropped"]
        assert (len(found["ahead"]["kernels"]), found["ahead"]["cold"]) == (1, cold)
        assert found["ahead"]["seconds"] > 0
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["kernels"]
    assert list((tmp_path / "cache" / "kernels").glob("*/verdict-*.json"))


@pytest.mark.nightly
def test_a_model_with_code_between_its_graphs_is_proved_in_part(tmp_path: Path) -> None:
    (chosen,) = problems(checkout(tmp_path), (1,), ["10"])
    text = PROBLEM.replace(
        "return torch.relu(x)", "x = torch.relu(x)\n        torch._dynamo.graph_break()\n        return x"
    )
    Path(chosen.path).write_text(text, encoding="utf-8")
    (found,) = run(*asked_in(tmp_path, Asked((chosen,), device="cpu", seeds=1, shapes=0)))
    assert found["error"] == ""
    assert found["right"]
    assert not found["proved"]
    assert found["breaks"]
    assert "between its graphs" in line(found)


WRITES = """
import json, os, signal, sys, time
asked = json.load(open(sys.argv[1]))
for problem in asked["problems"]:
    key = f"1.{{problem['number']}}"
    try:
        os.close(os.open(os.path.join(asked["folder"], f"0-{{key}}.taken"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        continue
    signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
    with open(sys.argv[2], "a") as rows:
        rows.write(json.dumps({{"begun": key}}) + "\\n")
        if problem["number"] == 3:
            rows.write(json.dumps({{"right": True, "errors": [0.0], "cut": "in its times"}}) + "\\n")
    if problem["number"] in {faulty}:
        {fault}
    with open(sys.argv[2], "a") as rows:
        rows.write(json.dumps({{"problem": problem["number"], "right": True}}) + "\\n")
    if {after} and problem["number"] != 3:
        sys.exit("no context")
"""
THREE = Asked(tuple(Problem(1, number, f"{number}_x.py") for number in (1, 2, 3)), seconds=0.3)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("time.sleep(60)", "it did not finish within 0.3 s, and its process was stopped"),
        ("sys.exit('no memory')", "its process ended with status 1: no memory"),
    ],
)
def test_a_problem_that_ends_the_process_is_said_and_the_next_ones_run(
    fault: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = WRITES.format(fault=fault, faulty=[2, 3], after=False)
    monkeypatch.setattr(kernelbench_runs, "WORKER", (sys.executable, "-c", text))
    first, second, third = run(*asked_in(tmp_path, THREE))
    assert (first["problem"], first["right"]) == (1, True)
    assert second == {"level": 1, "problem": 2, "name": "x", "error": said}
    assert (third["right"], third["cut"]) == (True, said)  # what was found until then


@pytest.mark.share(4)
def test_a_process_that_ends_after_a_row_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = WRITES.format(fault="", faulty=[], after=True)
    monkeypatch.setattr(
        kernelbench_runs, "WORKER", (sys.executable, "-c", text.replace("in []:\n        ", "in []: pass"))
    )
    assert [(row["problem"], row["right"]) for row in run(*asked_in(tmp_path, THREE))] == [
        (1, True),
        (2, True),
        (3, True),
    ]


@pytest.mark.share(4)
def test_two_gpus_share_the_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = WRITES.format(fault="time.sleep(0.2)", faulty=[1, 2], after=False)
    monkeypatch.setattr(kernelbench_runs, "WORKER", (sys.executable, "-c", text))
    found = [row["problem"] for row in run(*asked_in(tmp_path, evolve(THREE, gpus=2, seconds=20.0)))]
    assert sorted(found) == [1, 2, 3]


def test_a_process_that_cannot_be_started_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelbench_runs, "WORKER", ("/nowhere/python",))
    errors = [each["error"] for each in run(*asked_in(tmp_path, THREE))]
    assert ["no process could be started" in each for each in errors] == [True] * 3


def test_no_problem_is_begun_after_the_end(tmp_path: Path) -> None:
    assert list(run(*asked_in(tmp_path, evolve(THREE, until=1.0)))) == []


def test_what_takes_long_is_prepared_early_and_the_short_ones_before_the_rest(tmp_path: Path) -> None:
    chosen = [Problem(1, number, str(tmp_path / f"{number}_x.py")) for number in range(1, 7)]
    for each in chosen:
        Path(each.path).write_text("nn.Conv2d" if each.number in (2, 3, 4) else "", encoding="utf-8")
    order = [each.number for each in begun_early(chosen, 3, {"1.4": 100.0, "1.6": 1.0})]
    assert order[:4] == [4, 2, 6, 5]
    assert sorted(order) == [1, 2, 3, 4, 5, 6]
    assert order[-1] == 3


def test_of_several_rows_most_comparisons_count_with_the_times_of_most_peers() -> None:
    row: Row = ROW | {"errors": [1e-7, 2e-7], "rounds": 12}
    beside = row | {"errors": [4e-7], "milliseconds": {"eager": 3.0, "argus": 1.5, "compile": 6.0}, "rounds": 30}
    for one, other in ((row, beside), (beside, row)):
        found = merged(one, other)
        assert (found["errors"], found["rounds"]) == (row["errors"], 30)
        assert found["milliseconds"]["compile"] == 6.0
        assert "tree_of_times" not in found
        assert merged(one | {"tree": {"sources": "1"}}, other)["tree_of_times"] == (
            None if other is beside else {"sources": "1"}
        )
    lost = {"level": 2, "problem": 3, "name": "Sum_", "error": "it did not finish within 20 s"}
    assert merged(lost, row) is row
    assert merged(row, lost) is row
