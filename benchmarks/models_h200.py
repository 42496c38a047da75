"""Whole models under `torch.compile(backend="argus")` on an H200, beside eager torch and torch.compile.

Each model runs in two processes: one with empty caches on disk, for the first calls, and one later, which times first
calls with full caches, the error against float64 of the first images or sequences, and calls in turn. The processes
of each kind run side by side; calls are timed in one process after the other, when the first calls of all are done.

    models_h200.py [--seconds 140] [--models resnet50 gpt2] [--types f32 bf16] [--eager] [--cpu]
    models_h200.py --prepare FOLDER [--seconds 300]; models_h200.py --folder FOLDER

Times of calls: each after the cache was overwritten, with the host's part; and in a CUDA graph. f32 is without TF32 in
all three. --cpu: few and narrow layers, first calls and errors alone. --prepare: on fake tensors, all models side by
side, kernels are proved and built from empty caches, which are kept in a folder for a later run; torch.compile's first
call with empty caches is then of that run. The kernels that take most of a call are listed with their times.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# Functions of torch, which is untyped.

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.graph_times import captured

ROOT = Path(__file__).resolve().parent.parent
FEW = 4
"""Images or sequences that are compared with float64."""
ROUNDS = 12
MOST_KERNELS = 8
COLD_SECONDS = 75.0


# -- one model in a process of its own -----------------------------------------------------------------------


def _first_call(torch: Any, function: Callable[..., Any], x: Any, device: str) -> tuple[Any, float]:  # noqa: ANN401 reason: untyped
    start = time.perf_counter()
    found = function(x)
    if device == "cuda":
        torch.cuda.synchronize()
    return found, time.perf_counter() - start


def prepared(name: str, dtype: str, device: str) -> dict[str, Any]:
    """The kernels of a model, proved and built by one process on fake tensors."""
    torch: Any = import_module("torch")
    models: Any = import_module("benchmarks.models")
    ahead: Any = import_module("argus.torch.kernelbench.ahead")
    report: Any = import_module("argus.torch.report")
    held = import_module("argus").use_solver("z3")
    held.__enter__()
    cases: Mapping[str, Any] = models.CASES if device == "cuda" else models.SMALL

    def made() -> tuple[Any, list[Any]]:
        model, x = cases[name].made(device, {"f32": torch.float32, "bf16": torch.bfloat16}[dtype])
        return model, [x]

    start = time.perf_counter()
    ahead.prepare_model(made)
    row = {"model": name, "type": dtype, "cold": True, "argus first call": time.perf_counter() - start}
    return row | _reported(report.report())


def child(name: str, dtype: str, device: str, *, is_cold: bool) -> dict[str, Any]:
    """What one process finds of a model."""
    torch: Any = import_module("torch")
    models: Any = import_module("benchmarks.models")
    backend: Any = import_module("argus.torch.backend")
    report: Any = import_module("argus.torch.report")
    argus: Any = import_module("argus")
    held = argus.use_solver("z3")
    held.__enter__()
    torch.backends.cudnn.allow_tf32 = False
    cases: Mapping[str, Any] = models.CASES if device == "cuda" else models.SMALL
    model, x = cases[name].made(device, {"f32": torch.float32, "bf16": torch.bfloat16}[dtype])
    row: dict[str, Any] = {"model": name, "type": dtype, "cold": is_cold}
    with torch.no_grad():
        eager, _ = _first_call(torch, model, x, device)
        functions: dict[str, Callable[..., Any]] = {"eager": model}
        results: dict[str, Any] = {"eager": eager}
        made: dict[str, Any] = {}
        if device == "cuda" and "MODELS_WITHOUT_COMPILE" not in os.environ:
            if not is_cold and not Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).exists():
                _, row["torch cold call"] = _first_call(torch, torch.compile(copy.deepcopy(model)), x, device)
                torch.compiler.reset()
            made["torch"] = torch.compile(copy.deepcopy(model))
        made["argus"] = torch.compile(model, backend=backend.argus_backend)
        for each, function in made.items():
            try:
                results[each], row[f"{each} first call"] = _first_call(torch, function, x, device)
                functions[each] = function
            except Exception as problem:  # noqa: BLE001 reason: a failure is a result
                row[f"{each} failed"] = str(problem)[-600:]
        row |= _reported(report.report())
        if not is_cold:
            row |= _errors(model, x, results)
            _wait_for_turn()
            row |= _timed(torch, functions, x) if device == "cuda" else {}
            row |= {f"{each} kernels": _kernels(torch, functions[each], x) for each in functions if device == "cuda"}
    return row


def _kernels(torch: Any, function: Callable[..., Any], x: Any) -> list[tuple[str, int, float]]:  # noqa: ANN401 reason: untyped
    """Those that take most of a call: name, how often, and milliseconds in all."""
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profiled:
        function(x)
        torch.cuda.synchronize()
    found = ((each.key[:70], each.count, each.self_device_time_total / 1e3) for each in profiled.key_averages())
    return sorted(found, key=lambda each: -each[2])[:MOST_KERNELS]


def _wait_for_turn() -> None:
    """Until the parent lets this process time its calls: `ready` and `go` are files in the folder of its caches."""
    folder = Path(os.environ["MODELS_FOLDER"])
    (folder / "ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)


def _reported(entries: tuple[Any, ...]) -> dict[str, Any]:
    operations = sum(each.operations for each in entries)
    left = [f"{each.operation}: {each.why[:120]}" for entry in entries for each in entry.eager]
    return {
        "operations": operations,
        "covered": 1 - len(left) / max(1, operations),
        "eager operations": left,
        "not proved": [each[:160] for entry in entries for each in entry.failed],
        "kernels": sum(len(each.kernels) for each in entries),
        "different kernels": len({(k.name, k.config) for each in entries for k in each.kernels}),
        "operators": sum(len(each.operators) for each in entries),
        "compile": sum(each.seconds for each in entries),
        "proofs": sum(each.in_proofs for each in entries),
    }


def _errors(model: Any, x: Any, found: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """The greatest differences from float64, of which the greatest number is taken to be 1."""
    exact = copy.deepcopy(model).double()(x[:FEW].double())
    scale = float(exact.abs().max())
    errors = {f"{name} error": float((each[:FEW] - exact).abs().max()) / scale for name, each in found.items()}
    if "argus" not in found:
        return errors
    apart = float((found["argus"].double() - found["eager"].double()).abs().max()) / scale
    return {**errors, "argus and eager differ by": apart, "finite": bool(found["argus"].isfinite().all())}


def _timed(torch: Any, functions: Mapping[str, Callable[..., Any]], x: Any) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    timing: Any = import_module("argus.torch.kernelbench.timing")
    row: dict[str, Any] = {"ms": timing.interleaved(functions, lambda _number: [x], ROUNDS).device}
    graphs: dict[str, Any] = {}
    for name, function in functions.items():
        try:
            graphs[name] = captured(torch, lambda function=function: function(x), 1).replay
        except Exception as problem:  # noqa: BLE001 reason: what a graph refuses is a result
            row[f"{name} in a graph"] = str(problem)[-200:]
    row["graph ms"] = timing.interleaved(
        {name: _without_inputs(each) for name, each in graphs.items()}, _none, ROUNDS
    ).device
    return row


def _without_inputs(replay: Callable[[], object]) -> Callable[..., object]:
    return lambda *_: replay()


def _none(_: int) -> list[Any]:
    return []


# -- all of them ---------------------------------------------------------------------------------------------


def _started(name: str, dtype: str, chosen: argparse.Namespace, folder: str, *, how: str = "") -> Any:  # noqa: ANN401 reason: a process
    own = {"ARGUS_CACHE_DIR": f"{folder}/argus", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
    own |= {"TRITON_CACHE_DIR": f"{folder}/triton", "ARGUS_STATE_DIR": f"{folder}/state"}
    own |= {"MODELS_FOLDER": folder, "TORCHINDUCTOR_COMPILE_THREADS": "4"}
    own |= {"MODELS_WITHOUT_COMPILE": "1"} if chosen.eager else {}
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.models_h200", "--child", name, dtype, *([how] if how else [])]
    command += ["--cpu"] if chosen.cpu else []
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)  # noqa: S603 reason: this script


def _finished(process: Any, what: str, seconds: float) -> dict[str, Any]:  # noqa: ANN401 reason: a process
    try:
        said, _ = process.communicate(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"model": what, "failed": f"not within {seconds:.0f} s"}
    lines = [line for line in said.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"model": what, "failed": f"ended with {process.returncode}"}


def measured(chosen: argparse.Namespace, folder: str) -> list[dict[str, Any]]:
    """The rows of all models. folder: of their caches, one each."""
    end = time.monotonic() + chosen.seconds
    pairs = [(name, dtype) for dtype in chosen.types for name in chosen.models]
    cold_end = time.monotonic() + min(chosen.seconds if chosen.cpu else COLD_SECONDS, chosen.seconds / 2)
    rows = _begun_before(folder) if chosen.folder else _first_calls(chosen, pairs, folder, cold_end, "--cold")
    for row in rows:
        print(json.dumps(row), flush=True)
    places = {pair: Path(folder) / "_".join(pair) for pair in pairs}
    warm = {(name, dtype): _started(name, dtype, chosen, str(places[name, dtype])) for name, dtype in pairs}
    left = 4.0 * len(pairs)
    while time.monotonic() < end - left and any(
        each.poll() is None and not (places[pair] / "ready").exists() for pair, each in warm.items()
    ):
        time.sleep(0.1)
    for pair in sorted(pairs, key=lambda pair: not (places[pair] / "ready").exists()):
        (places[pair] / "go").touch()
        rows.append(_finished(warm[pair], " ".join(pair), end - time.monotonic()))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def _first_calls(
    chosen: argparse.Namespace, pairs: list[tuple[str, str]], folder: str, end: float, how: str
) -> list[dict[str, Any]]:
    """Of all models side by side, with empty caches."""
    begun = [_started(name, dtype, chosen, f"{folder}/{name}_{dtype}", how=how) for name, dtype in pairs]
    return [
        _finished(process, f"{name} {dtype}, first", end - time.monotonic())
        for process, (name, dtype) in zip(begun, pairs, strict=True)
    ]


def _begun_before(folder: str) -> list[dict[str, Any]]:
    """The rows that --prepare has left."""
    place = Path(folder) / "prepared.json"
    return json.loads(place.read_text(encoding="utf-8")) if place.is_file() else []


HEAD = (
    "model type   covered kernels  error: argus   eager   ms: argus eager torch  in a graph: argus eager torch"
    "   first call, cold: argus (proofs) torch  warm: argus (proofs) torch"
)


def table(rows: list[dict[str, Any]]) -> str:
    """What was measured, a line for each model."""
    first = {(each["model"], each["type"]): each for each in rows if each.get("cold")}
    lines = [HEAD]
    for each in rows:
        if "failed" in each:
            lines.append(f"{each['model']}: {each['failed']}")
        elif not each["cold"]:
            before = first.get((each["model"], each["type"]), {})
            lines.append(_line(each, before))
    for each in rows:
        for name in ("argus", "eager", "torch"):
            for kernel, count, spent in each.get(f"{name} kernels", ()):
                lines.append(f"{each['model']} {each['type']} {name}: {spent:8.3f} ms in {count:4} {kernel}")
    return "\n".join(lines)


def _line(row: Mapping[str, Any], cold: Mapping[str, Any]) -> str:
    def of(times: Mapping[str, float]) -> str:
        return " ".join(f"{times.get(name, float('nan')):7.3f}" for name in ("argus", "eager", "torch"))

    cold = {"torch first call": row.get("torch cold call", float("nan"))} | dict(cold)

    def firsts(row: Mapping[str, Any]) -> str:
        found = (row.get(name, float("nan")) for name in ("argus first call", "proofs", "torch first call"))
        return "{:6.1f} ({:.1f}) {:6.1f}".format(*found)

    errors = (f"{row.get(f'{name} error', float('nan')):.1e}" for name in ("argus", "eager"))
    return (
        f"{row['model']:9} {row['type']:4} {row['covered']:6.1%} {row['kernels']:4} ({row['different kernels']})"
        f"  {' '.join(errors)}  {of(row.get('ms', {}))}   {of(row.get('graph ms', {}))}"
        f"   {firsts(cold)}   {firsts(row)}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=140.0)
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--types", nargs="*", default=["f32", "bf16"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ahead", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", type=Path, help="prove and build the kernels, in this folder, and end")
    parser.add_argument("--folder", type=Path, help="of an earlier --prepare")
    chosen = parser.parse_args(arguments)
    if chosen.child is not None:
        name, dtype = chosen.child
        device = "cpu" if chosen.cpu else "cuda"
        row = prepared(name, dtype, device) if chosen.ahead else child(name, dtype, device, is_cold=chosen.cold)
        print(json.dumps(row))
        return 0
    models: Any = import_module("benchmarks.models")
    chosen.models = chosen.models or list(models.SMALL if chosen.cpu else models.CASES)
    if chosen.prepare:
        pairs = [(name, dtype) for dtype in chosen.types for name in chosen.models]
        rows = _first_calls(chosen, pairs, str(chosen.prepare), time.monotonic() + chosen.seconds, "--ahead")
        (chosen.prepare / "prepared.json").write_text(json.dumps(rows), encoding="utf-8")
        print("\n".join(map(json.dumps, rows)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(chosen, str(chosen.folder or folder))
    print(table(rows))
    out = os.environ.get("OUT")
    if out:
        (Path(out) / "models.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(any("failed" in each for each in rows))


if __name__ == "__main__":
    raise SystemExit(main())
