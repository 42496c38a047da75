"""Runs problems in turn, with a line of JSON for each: `python -m argus.torch.kernelbench.worker ASKED ROWS`.

A problem that takes too long ends the process, by the system's alarm, which needs nothing of what hangs.
"""

from __future__ import annotations

import copy
import gc
import json
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, time
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

import argus.torch
from argus.report.kernelbench import Asked
from argus.solvers.choice import use_solver
from argus.torch.backend import argus_backend
from argus.torch.kernelbench.compare import Comparison, compare
from argus.torch.kernelbench.problem import Problem, load, runnable
from argus.torch.kernelbench.timing import interleaved
from argus.torch.report import GraphEntry

_LIMITS = (16, 24, 32, 48, 64, 96, 128)
_ON_CPU = 1 << 17
"""Elements of inputs on the CPU, where kernels are interpreted."""
_OTHER_LIMITS = (96, 160, 128, 192)
"""Of the unseen shapes on a GPU."""
_MOST_OTHER = 1 << 26
_LARGE, _FEW = 1 << 29, 10
"""Elements of inputs from which fewer rounds are measured, and how many."""
_PEERS = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}
_torch: Any = torch


def main(given: list[str]) -> None:
    asked, rows = Asked.read(Path(given[0])), Path(given[1])
    warnings.simplefilter("ignore")
    with use_solver(asked.solver):
        for each in asked.problems:
            if asked.until and time() > asked.until:
                break
            signal.setitimer(signal.ITIMER_REAL, asked.seconds)
            row = {"level": each.level, "problem": each.number} | _row(Path(each.path), asked)
            signal.setitimer(signal.ITIMER_REAL, 0)
            with rows.open("a", encoding="utf-8") as into:
                into.write(json.dumps(row) + "\n")


def _row(path: Path, asked: Asked) -> dict[str, Any]:
    start = perf_counter()
    argus.torch.clear_report()
    try:
        found = _found(path, asked)
    except Exception as problem:  # noqa: BLE001 reason: the problem's code is the checkout's, and the others are run
        found = {"error": f"{type(problem).__name__}: {str(problem)[:300]}"}
    _torch.compiler.reset()
    gc.collect()
    if asked.device == "cuda":
        torch.cuda.empty_cache()
    return found | {"seconds": round(perf_counter() - start, 2)}


def _found(path: Path, asked: Asked) -> dict[str, Any]:
    if asked.device == "cpu":
        tried = runnable(path, _LIMITS, _ON_CPU, 1 + asked.shapes)
        if not tried.problems:
            return {"error": f"eager torch runs it at none of the sizes tried: {dict(tried.dropped)}"}
        first, *others = tried.problems
    else:
        tried = runnable(path, _OTHER_LIMITS if asked.shapes else (), _MOST_OTHER, asked.shapes)
        first, others = load(path), list(tried.problems)
    comparisons, own, compiled = _compared(first, asked.device, asked.seeds)
    entries = list(argus.torch.report())
    found: dict[str, Any] = {"limit": first.limit, "seeds": asked.seeds, "shapes": [each.limit for each in others]}
    if asked.rounds and asked.device == "cuda":
        found |= _timed(first, own, compiled, asked)
        comparisons.append(compare(first.model(asked.seeds, "cuda"), own, compiled, first.inputs(asked.seeds, "cuda")))
    del own, compiled
    for each in others:
        comparisons += _compared(each, asked.device, 1)[0]
    lacking = {str(limit): why for limit, why in tried.dropped.items()} if len(others) < asked.shapes else {}
    return _summary(comparisons, entries) | found | {"shapes_dropped": lacking}


def _compared(problem: Problem, device: str, seeds: int) -> tuple[list[Comparison], Any, Callable[..., Any]]:
    """Comparisons of one compiled model with weights and inputs of each seed, and that model."""
    _torch.compiler.reset()
    own = problem.model(0, device)
    compiled = _by_argus(own)
    found = [
        compare(problem.model(seed, device), own, compiled, problem.inputs(seed, device), seed) for seed in range(seeds)
    ]
    return found, own, compiled


def _by_argus(model: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: a module
    return _torch.compile(model, backend=argus_backend)


def _summary(comparisons: list[Comparison], entries: list[GraphEntry]) -> dict[str, Any]:
    eager = {each.operation: each.why for entry in entries for each in entry.eager}
    return {
        "right": all(each.right for each in comparisons),
        "against": sorted({each.against for each in comparisons}),
        "stock": all(each.stock for each in comparisons),
        "stock_tf32": all(each.stock_tf32 for each in comparisons),
        "trivial": comparisons[0].trivial,
        "error": "",
        "errors": [each.error for each in comparisons],
        "eager_errors": [each.eager for each in comparisons],
        "eager_tf32_errors": [each.eager_tf32 for each in comparisons],
        "kernels": len({each.name for entry in entries for each in entry.kernels}),
        "names": sorted({f"{each.name} {each.config}" for entry in entries for each in entry.kernels}),
        "not_proved": sorted({each for entry in entries for each in entry.failed}),
        "operators": sorted({each for entry in entries for each in entry.operators}),
        "eager": eager,
        "proved": bool(entries) and not eager,
        "compile_seconds": round(sum(each.seconds for each in entries), 2),
        "proof_seconds": round(sum(each.in_proofs for each in entries), 2),
    }


def _timed(problem: Problem, own: Any, compiled: Callable[..., Any], asked: Asked) -> dict[str, Any]:  # noqa: ANN401 reason: a module
    """Times beside eager torch and what else is asked for, and what the problem takes at least."""
    model = problem.model(0, "cuda")
    own.load_state_dict(model.state_dict())
    functions: dict[str, Callable[..., Any]] = {"eager": model, "argus": compiled}
    for name in asked.beside:
        functions[name] = _torch.compile(copy.deepcopy(model), mode=_PEERS[name])
    inputs = problem.inputs(0, "cuda")
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        result = model(*inputs)
    known = _bytes(inputs) + _bytes([*model.parameters()]) + _bytes([result])
    with torch.no_grad():
        for function in functions.values():
            for _ in range(2):
                function(*inputs)
    large = sum(each.numel() for each in inputs if isinstance(each, torch.Tensor)) > _LARGE
    del inputs, result

    def made(number: int) -> list[Any]:
        return problem.inputs(number, "cuda")

    rounds = min(_FEW, asked.rounds) if large else asked.rounds
    times = interleaved(functions, made, rounds)
    return {"milliseconds": times, "rounds": rounds, "bytes": known, "flops": counted.get_total_flops()}


def _bytes(given: list[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in _tensors(given))


def _tensors(given: list[Any]) -> Iterator[Any]:
    for each in given:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from _tensors(list(each))  # pyright: ignore[reportUnknownArgumentType]  # a problem's


if __name__ == "__main__":
    main(sys.argv[1:])
