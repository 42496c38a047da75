"""Runs problems in turn, with lines of JSON for each: `python -m argus.torch.kernelbench.worker ASKED ROWS GPU`.

A line says that a problem is begun; lines with `cut` have what was found so far; then the row. A problem that takes too
long ends the process, by the system's alarm, which needs nothing of what hangs. Of several such processes each takes
the problems that the others have not, those first whose kernels were prepared ahead.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter, sleep, time
from typing import Any

import torch
from attrs import evolve
from torch.utils.flop_counter import FlopCounterMode

import argus.torch
from argus.report.kernelbench import Asked, Row, ahead_of
from argus.report.kernelbench import Problem as Named
from argus.runtime.processes.tickets import Tickets
from argus.solvers.choice import use_solver
from argus.torch.backend import argus_backend
from argus.torch.kernelbench.compare import Comparison, compare, without_tf32
from argus.torch.kernelbench.problem import Problem, load, runnable
from argus.torch.kernelbench.timing import interleaved
from argus.torch.report import GraphEntry

_LIMITS = (16, 24, 32, 48, 64, 96, 128, 12, 8)
_ON_CPU = 1 << 17
"""Elements of inputs on the CPU, where kernels are interpreted."""
_OPERATIONS_ON_CPU = 3e7
"""Of products and convolutions there, so that those over three axes take about a minute."""
_OTHER_LIMITS = (96, 160, 128, 192, 64, 48)
"""Of the unseen shapes on a GPU."""
_MOST_OTHER = 1 << 26
_LARGE, _FEW = 1 << 29, 10
"""Elements of inputs from which fewer rounds are measured, and how many."""
_AUTOTUNE = "max-autotune"
_PEERS = {"compile": "default", _AUTOTUNE: "max-autotune-no-cudagraphs"}
_LAST = 40.0
"""Seconds before the end from which problems are begun that are not prepared."""
_FEW_SECONDS = 15.0
"""For the proofs of a problem's graphs where they were not found ahead in the time that they had there."""
_LOOK = 0.05
"""Seconds between two looks at what was prepared."""
_torch: Any = torch


def main(given: list[str]) -> None:
    asked, rows = Asked.read(Path(given[0])), Path(given[1])
    own = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if asked.gpus > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = own[int(given[2])] if len(own) >= asked.gpus else given[2]
    warnings.simplefilter("ignore")
    _torch._dynamo.config.reorderable_logging_functions.add(warnings.warn)  # said after a graph, which it does not end

    def write(row: Row) -> None:
        with rows.open("a", encoding="utf-8") as into:
            into.write(json.dumps(row) + "\n")

    with use_solver(asked.solver):
        for turn, wanted in enumerate(_turns(asked)):
            for each in _mine(wanted, turn):
                left = asked.until - time() if asked.until else asked.seconds
                signal.setitimer(signal.ITIMER_REAL, max(0.1, min(asked.seconds, left)))
                write({"begun": each.key})
                write(_row(each, wanted, write))
                _clear(asked.device)
                signal.setitimer(signal.ITIMER_REAL, 0)


def _turns(asked: Asked) -> Iterator[Asked]:
    """What is asked in each turn: search for fast kernels by torch takes long, and comes last."""
    yield evolve(asked, beside=tuple(each for each in asked.beside if each != _AUTOTUNE))
    if _AUTOTUNE in asked.beside and asked.rounds and asked.device == "cuda":
        yield evolve(asked, seeds=1, shapes=0)


def _mine(asked: Asked, turn: int) -> Iterator[Named]:
    """The problems that this process takes, as they are ready."""
    tickets, left = Tickets(Path(asked.folder)), list(asked.problems)
    while left and not asked.is_over(time()):
        late = bool(asked.until) and time() > asked.until - _LAST
        ready = next((each for each in left if not asked.jobs or late or tickets.read(ahead_of(each))), None)
        if ready is None:
            sleep(_LOOK)
            continue
        left.remove(ready)
        if tickets.take(f"{turn}-{ready.key}"):
            yield ready


def _row(each: Named, asked: Asked, write: Callable[[Row], None]) -> Row:
    """What is found of a problem. write: takes what is found so far."""
    start = perf_counter()
    argus.torch.clear_report()
    breaks = _torch._dynamo.utils.counters["graph_break"]
    breaks.clear()
    parts: list[Row] = []
    known = Tickets(Path(asked.folder)).read(ahead_of(each))

    def note(part: Row) -> None:
        parts.append(part)
        write(part)

    try:
        found = _found(Path(each.path), asked, note, _options(known))
    except Exception as problem:  # noqa: BLE001 reason: the problem's code is the checkout's, and the others are run
        said = f"{type(problem).__name__}: {str(problem)[:300]}"
        found = parts[-1] | {"cut": said} if parts else {"error": said}
    if breaks:  # between its graphs, the model's code is Python's and eager torch's
        found |= {"breaks": sorted(breaks), "proved": False}
    return found | {"ahead": known, "seconds": round(perf_counter() - start, 2)}


def _clear(device: str) -> None:
    """Free what a problem held. After an error that ends a GPU's context this raises, and the process ends."""
    _torch.compiler.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _options(known: Row | None) -> dict[str, Any]:
    return {"proof_seconds": _FEW_SECONDS} if known is not None and "ended" in known else {}


def _found(path: Path, asked: Asked, note: Callable[[Row], None], options: dict[str, Any]) -> Row:
    if asked.device == "cpu":
        tried = runnable(path, _LIMITS, _ON_CPU, 1 + asked.shapes, operations=_OPERATIONS_ON_CPU)
        if not tried.problems:
            return {"error": f"eager torch runs it at none of the sizes tried: {dict(tried.dropped)}"}
        first, *others = tried.problems
    else:
        first, others, tried = load(path), [], None
    own, compiled = _by_argus(first, asked.device, options)
    calls = _first_call(first, compiled, asked.device)
    comparisons = _compared(first, own, compiled, asked.device, asked.seeds)
    entries = list(argus.torch.report())
    found: Row = {"limit": first.limit, "seeds": asked.seeds, "shapes": [], "shapes_dropped": {}, "first_call": calls}
    found |= {
        "rewrites": rewrites_of(entries),
        "wanted": asked.seeds + asked.shapes + bool(asked.rounds and asked.device == "cuda"),
        **_place(asked),
    }
    if asked.rounds and asked.device == "cuda":
        note(_summary(comparisons, entries) | found | {"cut": "in its times"})
        rounded = any(each.eager_tf32 != each.eager for each in comparisons)
        times = _timed(first, own, compiled, asked, rounded=rounded, rewritten=bool(found["rewrites"]))
        found |= times | {"first_call": calls | times["first_call"]}
        comparisons.append(_comparison(first, own, compiled, asked.device, asked.seeds))
        if "compile" in asked.beside:
            found["first_call"] |= {"compile, warm": _again(first)}
    if asked.shapes and asked.device == "cuda":
        note(_summary(comparisons, entries) | found | {"cut": "at other shapes"})
        tried = runnable(path, _OTHER_LIMITS, _MOST_OTHER, asked.shapes, asked.device)
        others = list(tried.problems)
    del own, compiled
    for each in others:
        comparisons += _compared(each, *_by_argus(each, asked.device, options), asked.device, 1)
    dropped = dict(tried.dropped) if tried is not None and len(others) < asked.shapes else {}
    found["shapes"] = [each.limit for each in others]
    lacking = {str(limit): why for limit, why in dropped.items()}
    return _summary(comparisons, entries) | found | {"shapes_dropped": lacking}


def _place(asked: Asked) -> Row:
    """Where it is run."""
    if asked.device == "cpu":
        return {}
    name = torch.cuda.get_device_name()
    return {"gpu": name, "torch": torch.__version__, "cores": os.cpu_count(), "jobs": asked.jobs, "gpus": asked.gpus}


def _compared(problem: Problem, own: Any, compiled: Any, device: str, seeds: int) -> list[Comparison]:  # noqa: ANN401 reason: modules
    """Comparisons of one compiled model with weights and inputs of each seed."""
    return [_comparison(problem, own, compiled, device, seed) for seed in range(seeds)]


def _comparison(problem: Problem, own: Any, compiled: Any, device: str, seed: int) -> Comparison:  # noqa: ANN401 reason: modules
    return compare(problem.model(seed, device), own, compiled, problem.inputs(seed, device), seed)


def _by_argus(problem: Problem, device: str, options: dict[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """A model, and the same one compiled."""
    _torch.compiler.reset()
    own = problem.model(0, device)
    return own, _torch.compile(own, backend=argus_backend, options=options)


def _first_call(problem: Problem, compiled: Callable[..., Any], device: str) -> dict[str, float]:
    """The seconds of the first call, in which the model is captured and its kernels are loaded."""
    if device == "cpu":
        return {}
    return {"argus": _seconds(compiled, problem.inputs(0, device))}


def _again(problem: Problem) -> float:
    """The seconds of the first call by torch.compile, which has forgotten the model but for its caches on disk."""
    _torch.compiler.reset()
    return _seconds(_torch.compile(problem.model(0, "cuda")), problem.inputs(0, "cuda"))


def _seconds(function: Callable[..., Any], inputs: list[Any]) -> float:
    torch.cuda.synchronize()
    start = perf_counter()
    with torch.no_grad():
        function(*inputs)
    torch.cuda.synchronize()
    return round(perf_counter() - start, 3)


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


def _timed(
    problem: Problem,
    own: Any,  # noqa: ANN401 reason: a module
    compiled: Callable[..., Any],
    asked: Asked,
    *,
    rounded: bool,
    rewritten: bool,
) -> Row:
    """Times beside eager torch and what else is asked for, and what the problem takes at least.

    rounded: whether eager torch without TF32 is something else than eager torch as it is; ours, too, is then measured
    so. rewritten: whether sums were rewritten, which are then measured as they were, too.
    """
    model = problem.model(0, "cuda")
    own.load_state_dict(model.state_dict())
    functions: dict[str, Callable[..., Any]] = {"eager": model, "argus": compiled}
    inputs = problem.inputs(0, "cuda")
    if rounded:
        functions["eager without TF32"] = _in_single_precision(model)
        functions["argus without TF32"] = _in_single_precision(_compiled_apart(copy.deepcopy(model)))
    if rewritten:
        functions["argus without rewrites"] = _compiled_apart(copy.deepcopy(model), {"rewrites": False})
    calls: dict[str, float] = {}
    for name in asked.beside:
        functions[name] = _torch.compile(copy.deepcopy(model), mode=_PEERS[name])
        calls[name] = _seconds(functions[name], inputs)
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
    times = interleaved(functions, made, rounds, queued=True)
    return {
        "milliseconds": times.device,
        "host_milliseconds": times.host,
        "rounds": rounds,
        "bytes": known,
        "flops": counted.get_total_flops(),
        "first_call": calls,
    }


def rewrites_of(entries: Iterable[GraphEntry]) -> list[str]:
    """The rules by which sums were rewritten, once each."""
    return sorted({rewrite.rule for entry in entries for rewrite in entry.rewrites})


def _compiled_apart(
    model: Any,  # noqa: ANN401 reason: a module
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiled by a backend of its own: code that torch has for another model is used if its backend is the same."""

    def backend(module: Any, inputs: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
        return argus_backend(module, inputs, options=options)

    return _torch.compile(model, backend=backend)


def _in_single_precision(model: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: a module
    def run(*inputs: Any) -> Any:  # noqa: ANN401 reason: torch's
        with without_tf32():
            return model(*inputs)

    return run


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
