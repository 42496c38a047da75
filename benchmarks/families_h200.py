"""Records the designs of attention and rows on an H200: `benchmarks/families_h200.py build`, `prove`, `run`, `table`.

The designs are those that `argus optimize` chooses among, of each problem at most `--designs`, the usual one and others
drawn at random. build: compiles them into build/families_h200, in several processes. prove: the verdict of each design,
into verdicts.json in `--out`. Neither needs a GPU. run: checks each design on the GPU against torch in float32 or
float64 (outputs poisoned with NaN, guard zones around them), then times it beside torch's operator, interleaved, and
writes times.json in `--out`. table: merges both into benchmarks/results/families/, which `benchmarks/arms.py` replays.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# Functions of torch, which is untyped.

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build as compiled
from argus.search.problems.families.problem import FamilyProblem, family_problem
from argus.solvers.choice import use_solver
from argus.verifier.kernel import verify

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "families_h200"
TABLES = ROOT / "benchmarks" / "results" / "families"
TARGET = "sm_90a"
PROBLEMS = (
    "attention:4x16x4096x128:bf16:causal",
    "attention:1x32x1024x128:bf16:causal",
    "attention:4x16x4096x128:bf16",
    "attention:2x32x8192x64:bf16:causal",
    "rows:softmax:8192x4096:bf16",
    "rows:softmax:65536x512:bf16",
    "rows:rms_norm:16384x2048:bf16",
    "rows:layer_norm:4096x16384:bf16",
)
GUARD, ROUNDS, PAUSE = 4096, 5, 0.003
CLOSE = 2.0**-6
"""The largest error of an element, relative to 1 and its size."""
BUDGET = 150.0
Key = tuple[str, str]
"""A problem and a design."""


@cache
def problem(name: str) -> FamilyProblem:
    return family_problem(name, TARGET)


def kernel_of(name: str, design: str) -> Kernel:
    found = problem(name).kernel(design)
    assert isinstance(found, Kernel)
    return found


def chosen(name: str, most: int) -> list[str]:
    """The designs of a problem that are recorded: the usual one first. Problems of the same designs draw the same."""
    space = problem(name).space
    others = sorted(each for each in space.designs if each != space.usual)
    Random(0).shuffle(others)  # noqa: S311 reason: which designs are recorded
    return [space.usual, *others[: most - 1]]


def kernel_key(name: str) -> str:
    """What decides the code of a design besides its name: the family, operation, head dimension and type."""
    family, *rest = name.split(":")
    if family == "rows":
        return f"rows_{rest[0]}_{rest[2]}"
    return f"attention_{rest[0].rpartition('x')[2]}_{rest[1]}"


def designs_of(names: Sequence[str], most: int) -> dict[tuple[str, str], str]:
    """By (kind of kernel, design), a problem that has it."""
    found: dict[tuple[str, str], str] = {}
    for name in names:
        for design in chosen(name, most):
            found.setdefault((kernel_key(name), design), name)
    return found


# -- without a GPU -------------------------------------------------------------------------------------------


def one_build(name: str, design: str) -> dict[str, Any]:
    place, start = FOLDER / kernel_key(name) / design, time.process_time()
    if (place / "row").is_file():
        return json.loads((place / "row").read_text(encoding="utf-8"))
    try:
        made = compiled(kernel_of(name, design), TARGET, place)
    except ArgusError as fault:
        return {"kind": kernel_key(name), "name": design, "state": "not compiled", "code": fault.diagnostic.code}
    report = made.report
    spills = int(getattr(report, "spill_stores", 0)) + int(getattr(report, "spill_loads", 0))
    told = {"kind": kernel_key(name), "name": design, "state": "ready", "code": ""}
    told |= {"compiled": round(time.process_time() - start, 2), "registers": report.registers, "spills": spills}
    (place / "row").write_text(json.dumps(told), encoding="utf-8")
    return told


def one_proof(name: str, design: str) -> dict[str, Any]:
    start = time.process_time()
    with use_solver("z3"):
        try:
            report = verify(kernel_of(name, design), budget=Budget(runs=0, total=BUDGET))
            verdict, proved = type(report.verdict).__name__, isinstance(report.verdict, Proved)
            proved = proved and not report.uncovered
            why = "" if proved else str(report.verdict)[:200]
        except ArgusError as fault:
            verdict, proved, why = "ill-formed", False, f"{fault.diagnostic.code}: {fault.diagnostic.message}"[:200]
    told = {"kind": kernel_key(name), "name": design, "verdict": verdict, "proved": proved, "why": why}
    return told | {"proof": round(time.process_time() - start, 2)}


def in_processes(work: Callable[[str, str], dict[str, Any]], asked: argparse.Namespace, place: Path) -> None:
    """Do the work of each design, and store its rows as they come."""
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        todo = designs_of(asked.problems, asked.designs)
        begun = [pool.submit(work, name, design) for (_, design), name in todo.items()]
        for number, each in enumerate(as_completed(begun), 1):
            found.append(each.result())
            print(f"{number}/{len(begun)} {found[-1]}", flush=True)
            store(place, found)


def build(asked: argparse.Namespace) -> None:
    in_processes(one_build, asked, asked.out / "built.json")


def prove(asked: argparse.Namespace) -> None:
    in_processes(one_proof, asked, asked.out / "verdicts.json")


def store(place: Path, rows: object) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(rows).replace("}, {", "},\n{") + "\n", encoding="utf-8")


# -- on the GPU ----------------------------------------------------------------------------------------------


def inputs_of(torch: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """Inputs by the names of parameters."""
    asked = problem(name)
    traced = asked.kernel(asked.space.usual)
    sizes, made = asked.sizes, dict[str, Any]()
    torch.manual_seed(0)
    for each in traced.parameters:
        shape = [extent_of(extent, sizes) for extent in each.shape]
        kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[each.dtype.name]
        made[each.name] = torch.randn(shape, device="cuda").to(kind)
    made |= {key: torch.full_like(made[key], value) for key, value in asked.space.inputs.constants.items()}
    return made


def extent_of(extent: Any, sizes: Mapping[str, int]) -> int:  # noqa: ANN401 reason: an index expression
    from argus.core.walk import evaluate, symbols  # noqa: PLC0415 reason: used here alone

    return int(evaluate(extent, {symbol: sizes[symbol.name] for symbol in symbols(extent)}))  # type: ignore[call-overload]


def exact(torch: Any, name: str, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """Outputs by name, of rows in float64, of attention in float32 head by head."""
    family, operation, *_ = name.split(":")
    if family == "rows":
        x = given["X"].double()
        length = x.shape[1]
        if operation == "softmax":
            return {"Y": torch.softmax(x, 1)}
        eps = float(given["eps"][0])
        if operation == "rms_norm":
            return {"Y": torch.nn.functional.rms_norm(x, (length,), given["G"].double(), eps)}
        return {"Y": torch.nn.functional.layer_norm(x, (length,), given["G"].double(), given["B"].double(), eps)}
    q, k, v = (given[each].float() for each in "QKV")
    out, sums = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda")
    hidden = None
    if name.endswith(":causal"):
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device="cuda").tril_().logical_not_()
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = q.shape[3] ** -0.5 * (q[b, h] @ k[b, h].T)
            if hidden is not None:
                scores.masked_fill_(hidden, float("-inf"))
            out[b, h], sums[b, h] = torch.softmax(scores, 1) @ v[b, h], torch.logsumexp(scores, 1)
    return {"O": out, "LSE": sums}


def peer_of(torch: Any, name: str, given: Mapping[str, Any]) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """Torch's own operator on the same inputs."""
    family, operation, *_ = name.split(":")
    functions = torch.nn.functional
    if family == "attention":
        q, k, v = (given[each] for each in "QKV")
        return lambda: functions.scaled_dot_product_attention(q, k, v, is_causal=name.endswith(":causal"))
    x = given["X"]
    if operation == "softmax":
        return lambda: torch.softmax(x, 1)
    if operation == "rms_norm":
        return lambda: functions.rms_norm(x, (x.shape[1],), given["G"], 1e-5)
    return lambda: functions.layer_norm(x, (x.shape[1],), given["G"], given["B"], 1e-5)


def error(found: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """The largest error of all outputs; nan where an element was not written."""
    worst = 0.0
    for name, wanted in expected.items():
        off = (found[name].to(wanted.dtype) - wanted).abs_() / (1 + wanted.abs())
        if bool(off.isnan().any()):
            return float("nan")
        worst = max(worst, float(off.max().item()))
    return worst


def run(asked: argparse.Namespace) -> None:
    torch: Any = import_module("torch")
    rows: list[dict[str, Any]] = []
    for name in asked.problems:
        try:
            rows += timed(torch, name, asked)
        except Exception as fault:  # noqa: BLE001 reason: the other problems are recorded all the same
            print(f"{name}: {type(fault).__name__}: {fault}", flush=True)
        store(asked.out / "times.json", rows)
        torch.cuda.empty_cache()


def timed(torch: Any, name: str, asked: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    timing = import_module("argus.runtime.gpu.timing")
    load, driver = import_module("argus.runtime.gpu.launch").load, import_module("argus.runtime.gpu.find").find_driver()
    start = time.perf_counter()
    given = inputs_of(torch, name)
    expected = exact(torch, name, given)
    wholes: dict[str, Any] = {}
    for key in expected:
        count = given[key].numel()
        wholes[key] = torch.ones(count + 2 * GUARD, dtype=given[key].dtype, device="cuda")
        given[key] = wholes[key][GUARD : GUARD + count].view(given[key].shape)
    calls: dict[str, Callable[[], object]] = {"torch": peer_of(torch, name, given)}
    rows: list[dict[str, Any]] = []
    stream = torch.cuda.current_stream().cuda_stream
    for design in chosen(name, asked.designs):
        places = sorted((FOLDER / kernel_key(name) / design).glob("*.json"))
        if not places:
            continue
        try:
            call = load(places[0]).prepare(problem(name).sizes).bind(given, stream)
            for key in expected:
                given[key].fill_(float("nan"))
            call()
            torch.cuda.synchronize()
        except ArgusError as fault:
            rows.append({"problem": name, "name": design, "microseconds": None, "why": fault.diagnostic.code})
            continue
        off = error(given, expected)
        whole = all(bool((each[:GUARD] == 1).all() & (each[-GUARD:] == 1).all()) for each in wholes.values())
        if not off <= CLOSE or not whole:
            rows.append({"problem": name, "name": design, "microseconds": None, "why": f"error {off:.2e}, {whole}"})
            continue
        calls[design] = call
    watch = timing.Stopwatch(driver, stream, lambda seconds: torch.cuda._sleep(int(2e9 * seconds)))
    regime = timing.Regime("duty-cycled", PAUSE, 0.0, 0)
    times = timing.time_interleaved(watch, calls, regime, ROUNDS)
    rows += [{"problem": name, "name": each, "microseconds": round(1e3 * times.median(each), 3)} for each in calls]
    for row in [row for row in rows if row["microseconds"] is None][:3]:
        print(f"{name}: {row}", flush=True)
    best = min((each for each in calls if each != "torch"), key=times.median)
    ratio, usual = statistics.median(times.ratios(best, "torch")), problem(name).space.usual
    against = f"{statistics.median(times.ratios(best, usual)):.3f}" if usual in calls else "usual not built"
    print(
        f"{name}: {len(calls) - 1} designs timed, {sum(r['microseconds'] is None for r in rows)} wrong or not loaded; "
        f"best {best} {1e3 * times.median(best):.1f} us, {ratio:.3f} of torch's speed, {against} of the usual one's; "
        f"{time.perf_counter() - start:.1f} s",
        flush=True,
    )
    return rows


# -- tables --------------------------------------------------------------------------------------------------


def table(asked: argparse.Namespace) -> None:
    """Write results/families/sm_90a.FAMILY.json; a design without a proof has no time."""
    times = json.loads((asked.out / "times.json").read_text(encoding="utf-8"))
    built = {(row["kind"], row["name"]): row for row in json.loads((asked.out / "built.json").read_text("utf-8"))}
    proofs = {(row["kind"], row["name"]): row for row in json.loads((asked.out / "verdicts.json").read_text("utf-8"))}
    for family in dict.fromkeys(name.partition(":")[0] for name in asked.problems):
        rows = [row for row in times if row["problem"].startswith(f"{family}:")]
        points: dict[Key, dict[str, Any]] = {}
        for row in rows:
            key = kernel_key(row["problem"]), row["name"]
            if row["name"] != "torch":
                proof = proofs.get(key, {"verdict": "not asked", "proved": False, "proof": 0.0})
                made = built.get(key, {})
                points[key] = {"kind": key[0], "name": key[1], "verdict": proof["verdict"], "proved": proof["proved"]}
                points[key] |= {"proof": proof["proof"], "compiled": made.get("compiled", 0.0)}
                points[key] |= {each: made.get(each) for each in ("registers", "spills")}
        about = "microseconds, duty-cycled, median of rounds interleaved with all designs and torch's operator"
        data = {"device": "NVIDIA H200", "target": TARGET, "family": family, "about": about}
        text = json.dumps({**data, "rows": rows, "points": list(points.values())}, separators=(",", ":"))
        place = TABLES / f"{TARGET}.{family}.json"
        place.write_text(text.replace("},{", "},\n{") + "\n", encoding="utf-8")
        print(f"{place.name}: {len(rows)} times, {len(points)} designs")


PARTS: Mapping[str, Callable[[argparse.Namespace], None]] = {"build": build, "prove": prove, "run": run, "table": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--designs", type=int, default=90, help="most designs of a problem")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=FOLDER)
    asked = parser.parse_args()
    PARTS[asked.part](asked)


if __name__ == "__main__":
    main()
