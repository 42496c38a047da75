"""A torch module as a problem of the search: its nests become designs, its graph is the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.search.designs.space import situation
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.numerics import disagreement
from argus.search.problems.families import torch_module
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.problem import display_name, problem_of
from argus.search.problems.traced import admits

pytestmark = pytest.mark.share(6, among="searched modules")
SOFTMAX = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(2.0 * x, dim=1)


def plain(x):
    return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(256, 512)]
"""
LINEAR = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.softmax(torch.relu(self.linear(x)), dim=1)


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return [512]
"""


def asked(folder: Path, text: str, name: str) -> FamilyProblem:
    path = folder / "model.py"
    path.write_text(text, encoding="utf-8")
    found = problem_of(f"{path}:{name}", "sm_90a")
    assert isinstance(found, FamilyProblem)
    return found


def test_a_module_is_a_problem_whose_designs_pass_the_gate(tmp_path: Path) -> None:
    found = asked(tmp_path, SOFTMAX, "Model")

    assert display_name(str(found)) == "model.py:Model#1"
    assert found.sizes == {"N0": 256, "N1": 512}
    assert found.work.bytes == 2 * 4 * 256 * 512
    before = situation(found)
    assert before.first == found.space.usual
    assert len(before.options) > 10
    assert all(admits(found.kernel(each.name), found.sizes) for each in before.options)
    judged = GateTask(str(found), "sm_90a")(found.space.usual)
    assert (judged.outcome, judged.why) == ("timed", "")
    assert problem_of(str(found), "sm_90a") == found


def test_the_reference_is_torchs_at_the_shapes_of_the_graph_and_the_nests_at_others(tmp_path: Path) -> None:
    found = asked(tmp_path, SOFTMAX, "Model")
    generator = np.random.default_rng(0)
    for shape in ((256, 512), (3, 5)):
        x = generator.standard_normal(shape)
        weights = np.exp(2.0 * x)
        (made,) = _reference(found)(X0=x).values()
        assert made == pytest.approx(weights / weights.sum(1, keepdims=True))


def test_a_kernel_of_another_function_is_wrong(tmp_path: Path) -> None:
    found, other = asked(tmp_path, SOFTMAX, "Model"), asked(tmp_path, SOFTMAX, "plain")

    assert not disagreement(found, found.kernel(found.space.usual))
    assert "differ" in disagreement(found, other.kernel(other.space.usual))


def test_of_several_kernels_the_largest_is_searched_and_each_can_be_named(tmp_path: Path) -> None:
    first = asked(tmp_path, LINEAR, "Model")
    second = problem_of(f"{tmp_path / 'model.py'}:Model#2", "sm_90a")

    assert display_name(str(first)) == "model.py:Model#1"
    assert isinstance(first.kernel(first.space.usual), Program)
    assert dict(first.work.flops)["bf16"] == 6 * 2 * 1024 * 512 * 512
    assert first.notes == ("kernel 1 of 2 of the graph of `Model`, the result of `addmm__p0`",)
    assert isinstance(second, FamilyProblem)
    assert second.space.usual.startswith("reductions")
    with pytest.raises(ArgusError, match="found #3"):
        problem_of(f"{tmp_path / 'model.py'}:Model#3", "sm_90a")


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    name = str(asked(tmp_path, SOFTMAX, "Model"))
    (tmp_path / "model.py").write_text(SOFTMAX + "\n", encoding="utf-8")
    with pytest.raises(ArgusError, match="has changed"):
        torch_module.space(name, "sm_90a")


def test_a_name_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgusError, match="defines no 'Other'"):
        asked(tmp_path, SOFTMAX, "Other")


def test_a_problem_of_kernelbench_is_a_file_of_the_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    (folder / "23_Softmax.py").write_text(SOFTMAX, encoding="utf-8")

    assert torch_module.benchmark_name("kernelbench:1/23", tmp_path) == f"{folder / '23_Softmax.py'}:Model"
    for text, checkout in (("kernelbench:1/24", tmp_path), ("kernelbench:1/23", None), ("kernelbench:1", tmp_path)):
        with pytest.raises(ArgusError) as raised:
            torch_module.benchmark_name(text, checkout)
        assert raised.value.diagnostic.code == "E903"


def _reference(found: FamilyProblem) -> Any:  # noqa: ANN401 reason: called with tensors by name
    return found.reference
