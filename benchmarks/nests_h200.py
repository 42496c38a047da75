"""Times nests of reductions, windows and scans beside torch on an H200: `nests_h200.py build`, then `... run`.

build: verifies and compiles the kernels of every case and variant into build/nests_h200, in several processes; needs no
GPU. run: checks each result against float64 (outputs poisoned with NaN, guard zones around them), then times it beside
eager torch, `torch.compile` and a copy, interleaved; prints ratios and the share of a copy's bandwidth.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# Functions of torch, which is untyped.

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.families.nest_streams import CASES
from benchmarks.families.nests import Launch, NestCase, RowLaunch

FOLDER = Path(__file__).resolve().parent.parent / "build" / "nests_h200"
GUARD = 4096
"""Elements before and after an output that must stay as they are."""
ROUNDS, BURST = 5, 8.0


# -- build ---------------------------------------------------------------------------------------------------


def _built(case: str, variant: str, number: int) -> str:
    """Verify and compile one launch; what was found, in words."""
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: in a process of its own
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above

    name = f"{case}.{variant}.{number}"
    launch = CASES[case].variants[variant][number]
    start = time.process_time()
    kernel = launch.template(f"launch_{number}").trace()
    verdict = verify(kernel, solver="z3").verdict
    took = time.process_time() - start
    if not isinstance(verdict, Proved):
        return f"{name}: skipped: {str(verdict)[:300]}"
    made = compiled(kernel, "sm_90a", FOLDER / name)
    return f"{name}: {launch.config}, verified in {took:.1f} s; {made.report}"


def build(chosen: argparse.Namespace) -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    asked = [
        (name, variant, number)
        for name, case in CASES.items()
        if _is_chosen(name, chosen)
        for variant, launches in case.variants.items()
        for number in range(len(launches))
    ]
    with ProcessPoolExecutor(chosen.processes) as pool:
        for said in pool.map(_built, *zip(*asked, strict=True)):
            print(said, flush=True)
    return 0


def _is_chosen(name: str, chosen: argparse.Namespace) -> bool:
    return not chosen.names or any(name.startswith(each) for each in chosen.names)


# -- on the GPU ----------------------------------------------------------------------------------------------


def _guarded(torch: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN between guard zones of ones, and all of that memory."""
    count = 1
    for extent in shape:
        count *= extent
    whole = torch.ones(count + 2 * GUARD, device="cuda")
    whole[GUARD : GUARD + count] = float("nan")
    return whole[GUARD : GUARD + count].view(shape), whole


def _bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    loaded: Any,  # noqa: ANN401 reason: as above
    launch: Launch | RowLaunch,
    tensors: dict[str, Any],
    wholes: dict[str, Any],
) -> Callable[[], None]:
    """One launch on tensors by name; those that it makes are added."""
    given: dict[str, Any] = {}
    for name, source, shape, is_output in launch.operands:
        if is_output and source not in tensors:
            tensors[source], wholes[source] = _guarded(torch, shape)
        given[name] = tensors[source].view(shape)
    return loaded.prepare(launch.sizes).bind(given, torch.cuda.current_stream().cuda_stream)


def _calls(
    torch: Any,  # noqa: ANN401 reason: untyped
    case: str,
    variant: str,
    inputs: Mapping[str, Any],
) -> tuple[Callable[[], None], Any, Any] | None:
    """All launches of a variant, its result, and the memory around what it makes; None if one was not built."""
    load = import_module("argus.runtime.gpu.launch").load
    tensors, wholes = dict(inputs), dict[str, Any]()
    bound: list[Callable[[], None]] = []
    for number, launch in enumerate(CASES[case].variants[variant]):
        found = list((FOLDER / f"{case}.{variant}.{number}").glob("*.json"))
        if not found:
            return None
        bound.append(_bound(torch, load(found[0]), launch, tensors, wholes))

    def call() -> None:
        for each in bound:
            each()

    return call, tensors["Y"], wholes


def _error(torch: Any, case: NestCase, found: Any, wholes: Mapping[str, Any], exact: Any) -> float:  # noqa: ANN401 reason: untyped
    """The largest error; nan where an element was not written, inf where a guard zone was."""
    torch.cuda.synchronize()
    if any(not bool((whole[:GUARD] == 1).all() & (whole[-GUARD:] == 1).all()) for whole in wholes.values()):
        return float("inf")
    worst = 0.0
    for mine, theirs in zip(found.flatten().split(1 << 28), exact.flatten().split(1 << 28), strict=True):
        off = (mine.double() - theirs.double()).abs_() / (case.unit + theirs.double().abs())
        if bool(off.isnan().any()):
            return float("nan")
        worst = max(worst, off.max().item())
    return worst


def measured(torch: Any, name: str, chosen: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    case = CASES[name]
    inputs = case.inputs(torch)
    exact = case.exact(torch, inputs)
    eager = lambda: case.function(torch, **inputs)  # noqa: E731 reason: as the others below
    off = _error(torch, case, eager(), {}, exact)
    print(f"{name}: eager torch's error {off:.1e}", flush=True)
    calls: dict[str, Callable[[], object]] = {}
    for variant in case.variants:
        made = _calls(torch, name, variant, inputs)
        if made is None:
            print(f"{name} {variant}: not built", flush=True)
            continue
        call, found, wholes = made
        call()
        error = _error(torch, case, found, wholes, exact)
        good = error <= max(case.close, 2 * off)
        print(f"{name} {variant}: error {error:.1e}{'' if good else ' WRONG'}", flush=True)
        if good:
            calls[variant] = call
    del exact
    first = next(iter(inputs.values()))
    copied = torch.empty(min(first.numel(), 1 << 28), device="cuda")
    source = first.flatten()[: copied.numel()].float()
    peers: dict[str, Callable[[], object]] = {"copy": lambda: copied.copy_(source), "torch": eager}
    if not chosen.eager:
        compiled = torch.compile(lambda given: case.function(torch, **given), dynamic=False)
        try:
            compiled(inputs)
            peers["compiled"] = lambda: compiled(inputs)
        except Exception as problem:  # noqa: BLE001 reason: what it cannot compile here is compared with eager torch
            print(f"{name}: torch.compile: {type(problem).__name__}", flush=True)
    return _timed(torch, name, case, peers | calls, copied.numel() * 8)


def _timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    name: str,
    case: NestCase,
    calls: Mapping[str, Callable[[], object]],
    copied: int,
) -> list[dict[str, Any]]:
    timing, driver = import_module("argus.runtime.gpu.timing"), import_module("argus.runtime.gpu.find").find_driver()
    watch = timing.Stopwatch(driver, torch.cuda.current_stream().cuda_stream, lambda s: torch.cuda._sleep(int(2e9 * s)))
    rows: list[dict[str, Any]] = []
    for regime in (timing.Regime("sustained", 0.0, BURST, 1), timing.Regime("duty-cycled", 0.01, 0.0, 0)):
        times = timing.time_interleaved(watch, calls, regime, ROUNDS)
        bandwidth = copied / times.median("copy")
        for each in calls:
            rate = case.bytes / times.median(each)
            ratios = {p: statistics.median(times.ratios(each, p)) for p in ("torch", "compiled") if p in calls}
            rows.append(
                {"case": name, "regime": regime.name, "name": each, "ms": times.median(each), "share": rate / bandwidth}
                | {"ratios": ratios}
            )
        best = sorted(rows[-len(calls) :], key=lambda row: row["ms"])
        said = ", ".join(
            f"{r['name']} {r['ms']:.3f} ms {r['share']:.2f} x{r['ratios'].get('torch', 0):.2f}" for r in best
        )
        print(f"{name} {regime.name}: {said}", flush=True)
    return rows


def run(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    start, rows = time.monotonic(), list[dict[str, Any]]()
    for name in (each for each in CASES if _is_chosen(each, chosen)):
        if time.monotonic() - start > chosen.seconds:
            print(f"{name} and what follows: no time left", flush=True)
            break
        try:
            rows += measured(torch, name, chosen)
        except Exception as problem:  # noqa: BLE001 reason: the other cases are to be measured
            print(f"{name}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "nests.json").write_text(json.dumps(rows), "utf-8")
    for regime in ("sustained", "duty-cycled"):
        ours = {
            n: [r for r in rows if r["case"] == n and r["regime"] == regime and r["name"] in CASES[n].variants]
            for n in CASES
        }
        best = {n: min(each, key=lambda r: r["ms"]) for n, each in ours.items() if each}
        for peer in ("torch", "compiled"):
            ratios = [r["ratios"][peer] for r in best.values() if peer in r["ratios"]]
            if ratios:
                mean = statistics.geometric_mean(ratios)
                print(f"{regime}: over {peer}, {len(ratios)} cases: geometric mean {mean:.3f}")
    print(f"{time.monotonic() - start:.1f} s", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument("--names", type=lambda text: text.split(","), default=[], help="only cases of these prefixes")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after so many seconds")
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
