"""Problems of KernelBench at other sizes, and what is said where they are prepared ahead."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from argus.cli.bench.kernelbench import problems
from argus.cli.bench.kernelbench_runs import run
from argus.report.kernelbench import Asked
from argus.runtime.processes.tickets import Tickets
from argus.torch.kernelbench import ahead as ahead_module
from argus.torch.kernelbench.problem import divided, load, reduced, runnable
from tests.cli.test_kernelbench import PROBLEM, checkout


def problem_file(folder: Path, *edits: tuple[str, str]) -> Path:
    text = PROBLEM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = folder / "1_Edited.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_small_batch_is_reduced_like_a_large_one() -> None:
    assert [reduced("batch_size", each, 16) for each in (1, 2, 16, 128)] == [1, 2, 2, 2]
    assert [divided("batch_size", each, 4) for each in (1, 16, 128)] == [1, 2, 2]
    assert [divided("dim", each, 4) for each in (3, 16, 64, 100)] == [3, 16, 16, 25]


def test_sizes_that_inputs_are_made_with_are_reduced(tmp_path: Path) -> None:
    path = problem_file(tmp_path, ("torch.rand(batch_size, dim)", "torch.rand(batch_size, 224)"))
    assert [tuple(each.shape) for each in load(path, 16).inputs(0)] == [(2, 16)]


def test_sizes_keep_their_ratios_where_a_model_needs_them(tmp_path: Path) -> None:
    """Rows of twice the sizes of the norm, of which both would become the limit."""
    path = problem_file(
        tmp_path,
        ("torch.relu(x)", "nn.functional.layer_norm(torch.cat((x, x), 1), (whole,))"),
        ("dim = 393216", "dim = 32\nwhole = 64"),
    )
    (problem,) = (found := runnable(path, (16, 24), elements=1 << 10, wanted=1)).problems
    assert (problem.limit, tuple(problem.inputs(0)[0].shape)) == (16, (2, 8))
    assert list(found.dropped) == [24]


def test_a_batch_that_is_as_large_as_another_size_stays_so(tmp_path: Path) -> None:
    path = problem_file(
        tmp_path, ("torch.relu(x)", "x * torch.ones(len(x))"), ("batch_size = 4096", "batch_size = 393216")
    )
    (problem,) = runnable(path, (16,), elements=1 << 10, wanted=1).problems
    assert tuple(problem.inputs(0)[0].shape) == (12, 12)


def test_why_a_problem_is_not_prepared_is_in_its_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object) -> list[str]:
        return ["a kernel"]

    def failing(*_: object) -> list[str]:
        raise ValueError("no fake of it")

    chosen = tuple(problems(checkout(tmp_path), (1,), ["2", "10"]))
    place = tmp_path / "asked.json"
    Asked(chosen, device="cpu", solver="z3", folder=str(tmp_path)).write(place)
    monkeypatch.setattr(signal, "signal", made)  # this process is not one that prepares
    monkeypatch.setattr(torch, "set_num_threads", made)
    monkeypatch.setattr(ahead_module, "prepare", made)
    monkeypatch.setattr(ahead_module, "prepare_without_rewrites_or_tf32", failing)
    ahead_module.main(str(place), "1.2")
    monkeypatch.setattr(ahead_module, "prepare", failing)
    ahead_module.main(str(place), "1.10")

    first, second = (Tickets(tmp_path).read(f"ahead-{key}") or {} for key in ("1.2", "1.10"))
    assert (first["kernels"], first["error without rewrites or TF32"]) == (["a kernel"], "ValueError: no fake of it")
    assert second["error"] == "ValueError: no fake of it"
    assert "kernels" not in second


@pytest.mark.nightly
def test_a_warning_does_not_end_a_graph(tmp_path: Path) -> None:
    (chosen,) = problems(checkout(tmp_path), (1,), ["10"])
    text = PROBLEM.replace("return torch.relu(x)", "warnings.warn('slow')\n        return torch.relu(x)")
    Path(chosen.path).write_text(f"import warnings\n{text}", encoding="utf-8")
    place = tmp_path / "asked.json"
    asked = Asked((chosen,), device="cpu", seeds=1, shapes=0, folder=str(tmp_path))
    asked.write(place)
    (found,) = run(asked, place)
    assert (found["proved"], found["right"], "breaks" in found) == (True, True, False)


def test_sizes_of_many_operations_are_not_run_on_the_cpu(tmp_path: Path) -> None:
    """Two products of 2 * 2 * 2 * 16 operations each, and at the next limit half as many."""
    path = problem_file(tmp_path, ("torch.relu(x)", "x @ x.T @ x"))
    many, few = (runnable(path, (16, 8), elements=1 << 10, wanted=1, operations=each) for each in (1e9, 200.0))
    assert [each.limit for each in many.problems] == [16]
    assert [each.limit for each in few.problems] == [8]
    assert few.dropped == {16: "it takes 2.6e+02 operations"}
