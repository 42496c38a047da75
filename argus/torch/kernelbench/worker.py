"""Runs one problem and writes what it found as JSON: `python -m argus.torch.kernelbench.worker FILE OUT ...`."""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

import argus.torch
from argus.torch.backend import argus_backend
from argus.torch.kernelbench.compare import Comparison, compare
from argus.torch.kernelbench.problem import Problem, load, runnable
from argus.torch.kernelbench.timing import interleaved
from argus.torch.report import GraphEntry

SEEDS = 5
_LIMITS = (16, 24, 32, 48, 64, 96, 128)
_ON_CPU = 1 << 17
"""Elements of inputs on the CPU, where kernels are interpreted."""
_OTHER_LIMITS = (96, 160)
"""Of the two unseen shapes on a GPU."""
_ROUNDS = 30


def main(given: list[str]) -> None:
    path, out, device, timed = Path(given[0]), Path(given[1]), given[2], given[3] == "timed"
    warnings.simplefilter("ignore")
    out.write_text(json.dumps(_found(path, device, timed=timed)), encoding="utf-8")


def _found(path: Path, device: str, *, timed: bool) -> dict[str, Any]:
    problems = list(_problems(path, device))
    if not problems:
        return {"error": "eager torch does not run the problem at any of the sizes tried"}
    first, *others = problems
    start = perf_counter()
    comparisons = [_compared(first, device, seed) for seed in range(SEEDS)]
    entries = list(argus.torch.report())
    comparisons += [_compared(each, device, 0) for each in others]
    found = _summary(comparisons, entries) | {"seconds": perf_counter() - start, "limit": first.limit}
    return found | (_timed(first) if timed and device == "cuda" else {})


def _problems(path: Path, device: str) -> Iterator[Problem]:
    """The problem, and at two other shapes."""
    if device == "cpu":
        yield from list(runnable(path, _LIMITS, _ON_CPU))[:3]
        return
    yield load(path)
    yield from runnable(path, _OTHER_LIMITS, 1 << 26)


def _compared(problem: Problem, device: str, seed: int) -> Comparison:
    reset: Any = torch.compiler
    reset.reset()
    model, inputs = problem.model(seed, device), problem.inputs(seed, device)
    return compare(model, _by_argus(copy.deepcopy(model)), inputs)


def _by_argus(model: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: a module
    made: Any = torch
    return made.compile(model, backend=argus_backend)


def _summary(comparisons: list[Comparison], entries: list[GraphEntry]) -> dict[str, Any]:
    eager = {each.operation: each.why for entry in entries for each in entry.eager}
    return {
        "right": all(each.right for each in comparisons),
        "stock": all(each.stock for each in comparisons),
        "trivial": comparisons[0].trivial,
        "error": "",
        "errors": [each.error for each in comparisons],
        "eager_errors": [each.eager for each in comparisons],
        "kernels": len({each.name for entry in entries for each in entry.kernels}),
        "eager": eager,
        "proved": not eager,
        "compile_seconds": entries[0].seconds if entries else 0.0,
        "proof_seconds": entries[0].in_proofs if entries else 0.0,
    }


def _timed(problem: Problem) -> dict[str, Any]:
    """Times beside eager torch, torch.compile, and that with max-autotune."""
    made: Any = torch
    made.compiler.reset()
    model = problem.model(0, "cuda")
    functions: dict[str, Callable[..., Any]] = {"eager": model, "argus": _by_argus(copy.deepcopy(model))}
    for name, mode in (("compile", "default"), ("max-autotune", "max-autotune-no-cudagraphs")):
        functions[name] = made.compile(copy.deepcopy(model), mode=mode)

    def inputs(number: int) -> list[Any]:
        return problem.inputs(number, "cuda")

    for function in functions.values():
        with torch.no_grad():
            for _ in range(3):
                function(*inputs(0))
    times = interleaved(functions, inputs, _ROUNDS)
    return {"milliseconds": times}


if __name__ == "__main__":
    main(sys.argv[1:])
