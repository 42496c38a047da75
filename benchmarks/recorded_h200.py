"""Calls of models on an H200 with launches recorded as one CUDA graph, beside others: the host's part of a call.

    recorded_h200.py [--models resnet50 vit_b_16 gpt2] [--type bf16] [--batch 1] [--rounds 20]

Milliseconds of a call from the host, synchronised after it, as medians of interleaved rounds: eager torch, argus, argus
with `mode="reduce-overhead"`, and torch.compile with that mode. Inputs of calls lie at different places in turn. A
check: results with recorded launches are those without, bit for bit.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# Functions of torch, which is untyped.

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.models import CASES

PLACES = 3
"""Of inputs, which calls use in turn."""
_CALLS = 10
"""Of a round."""
Function = Callable[[Any], Any]


def functions(torch: Any, model: Any) -> dict[str, Function]:  # noqa: ANN401 reason: untyped
    backend: Any = import_module("argus.torch.backend").argus_backend
    return {
        "eager": model,
        "argus": torch.compile(copy.deepcopy(model), backend=backend),
        "argus, recorded": torch.compile(copy.deepcopy(model), backend=backend, mode="reduce-overhead"),
        "torch.compile, recorded": torch.compile(copy.deepcopy(model), mode="reduce-overhead"),
    }


def milliseconds(torch: Any, function: Function, inputs: list[Any]) -> float:  # noqa: ANN401 reason: untyped
    """Of a call, on average over a round."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(_CALLS):
        function(inputs[number % len(inputs)])
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / _CALLS


def measured(torch: Any, name: str, dtype: str, batch: int, rounds: int) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    model, x = CASES[name].made("cuda", {"f32": torch.float32, "bf16": torch.bfloat16}[dtype])
    inputs = [torch.randn_like(x[:batch]) for _ in range(PLACES)]
    with torch.no_grad():
        made = functions(torch, model)
        for function in made.values():
            for each in (*inputs, *inputs):
                function(each)
        same = all(torch.equal(made["argus"](each), made["argus, recorded"](each)) for each in inputs)
        taken: dict[str, list[float]] = {each: [] for each in made}
        for _ in range(rounds):
            for each, function in made.items():
                taken[each].append(milliseconds(torch, function, inputs))
    times = {each: round(statistics.median(found), 4) for each, found in taken.items()}
    return {"model": name, "type": dtype, "batch": batch, "milliseconds": times, "same bits": same}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[*CASES], choices=[*CASES])
    parser.add_argument("--type", default="bf16", choices=("bf16", "f32"))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    argus: Any = import_module("argus")
    found: list[dict[str, Any]] = []
    with argus.use_solver("z3"):
        for name in chosen.models:
            found.append(measured(torch, name, chosen.type, chosen.batch, chosen.rounds))
            print(json.dumps(found[-1]), flush=True)
    return int(not all(each["same bits"] for each in found))


if __name__ == "__main__":
    raise SystemExit(main())
