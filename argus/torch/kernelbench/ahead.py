"""Proves and builds the kernels of problems ahead, in other processes, so that the one that uses the GPU finds them.

Models and inputs are fake tensors: nothing is allocated. What is found is in the cache of kernels, which all share.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd

from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.nests.affine import computed
from argus.report.kernelbench import Asked
from argus.runtime.kernel_cache import build_cached, build_program_cached
from argus.solvers.choice import use_solver
from argus.torch.backend import Options, compiled
from argus.torch.compiled import Compiled, KernelStep
from argus.torch.decompositions import decompositions
from argus.torch.families import candidates
from argus.torch.kernelbench.problem import load

_torch: Any = torch


def prepare(path: Path, device: str) -> list[str]:
    """The names of the kernels that a problem's graphs run, each proved and built; none of operators of Argus."""
    found: list[str] = []

    def compiler(graph: Any, _: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
        found.extend(_built(compiled(graph, Options())))
        return graph.forward

    def backend(module: Any, inputs: Any) -> Any:  # noqa: ANN401 reason: torch's
        return aot_autograd(fw_compiler=compiler, decompositions=decompositions())(module, inputs)

    _torch.compiler.reset()
    problem = load(path)
    with _torch._subclasses.FakeTensorMode(), torch.no_grad():
        model, inputs = problem.model(0, device), problem.inputs(0, device)
        _torch.compile(model, backend=backend)(*inputs)
    return found


def _built(graph: Compiled) -> Iterator[str]:
    hints: dict[str, int] = {}
    for step in graph.steps:
        if isinstance(step, KernelStep):
            sizes = {name: int(computed(extent, hints)) for name, extent in step.form.sizes.items()}
            traced, _ = candidates(step.family, step.form, sizes)[0].traced()
            yield traced.name
            try:
                (build_program_cached if isinstance(traced, Program) else build_cached)(traced)  # pyright: ignore[reportArgumentType]  # as the type says
            except ArgusError:
                continue  # where it is used, the error is said


def main(place: str, part: int) -> None:
    """Prepare every problem of those asked from this part on, in steps of as many as there are processes."""
    asked = Asked.read(Path(place))
    warnings.simplefilter("ignore")
    with use_solver(asked.solver):
        for each in asked.problems[part :: asked.jobs]:
            try:
                prepare(Path(each.path), asked.device)
            except Exception:  # noqa: BLE001, S112 reason: where the problem is run, its error is said
                continue
