"""Runs every proved kernel for sm_90a on the GPU: `python benchmarks/corpus_h200.py build`, then `run`.

build: compiles each kernel and program of tests/corpus/{proved,traced,programs/proved} into build/corpus, with inputs
and expected outputs at three sizes; with `--what shipped`, each configuration of `argus.kernels` into build/shipped,
whose inputs and expected outputs are computed on the GPU. Needs no GPU. run: launches each on the GPU in a child
process, which is restarted after a fault or a hang, with poisoned outputs and guard zones around every tensor, then
once under each tool of compute-sanitizer where the driver supports it (`check`: under the tools alone). Writes the
result file; exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shipped_formulas as formulas
from gpu_child import run_child

ROOT = Path(__file__).resolve().parent.parent
STARTS = 24
"""Limit of child processes."""
SECONDS, CHECKED_SECONDS = 20.0, 100.0
"""Time limits of a child between results, and under a tool of compute-sanitizer."""
GUARD = 4096
"""Bytes ahead of every tensor and behind it."""
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_FLOATS = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "e4m3": "float8_e4m3fn"}
TYPES = {**_FLOATS, "i8": "int8", "i32": "int32", "i64": "int64"}

Words = npt.NDArray[Any]


def folder(what: str) -> Path:
    """The folder of a build; its file index.json lists what was built."""
    return ROOT / "build" / what


def index_of(what: str) -> list[dict[str, Any]]:
    return json.loads((folder(what) / "index.json").read_text(encoding="utf-8"))


# -- run -----------------------------------------------------------------------------------------------------


def run(what: str, result: Path, tools: Sequence[str], seconds: float, jobs: int) -> int:
    """Run all, then under each of the tools with a time limit in seconds; write the result file."""
    index = index_of(what)
    runnable = [number for number, entry in enumerate(index) if not entry["refused"]]
    results: dict[int, dict[str, Any]] = {}

    def take(found: dict[str, Any]) -> None:
        results[found["number"]] = found

    for _ in range(STARTS):
        waiting = [number for number in runnable if number not in results]
        if not waiting:
            break
        ended = run_child(__file__, ["child", *map(str, waiting), "--what", what], SECONDS, take)
        stuck = next((number for number in waiting if number not in results), None)
        if ended and stuck is not None:
            results[stuck] = {"trouble": f"the process ended here: {ended}"}
    data = _summary(index, results)
    data["sanitizer"] = _all_checked(what, runnable, tools, seconds, jobs)
    result.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return int(any(each["trouble"] for each in data["kernels"]))


def check(what: str, result: Path, tools: Sequence[str], seconds: float, jobs: int) -> int:
    """Run under each of the tools what it has not checked, and add what it reports to the result file."""
    data = json.loads(result.read_text(encoding="utf-8"))
    before: dict[str, dict[str, Any]] = data.setdefault("sanitizer", {})
    for tool in tools:
        done = before.get(tool, {}).get("stems", [])
        rest = [
            number for number, entry in enumerate(index_of(what)) if not entry["refused"] and entry["stem"] not in done
        ]
        now = _all_checked(what, rest, [tool], seconds, jobs)[tool]
        before[tool] = _together([before[tool] | {"late": False}, now]) if done else now
    result.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


def _all_checked(what: str, numbers: Sequence[int], tools: Sequence[str], seconds: float, jobs: int) -> dict[str, Any]:
    """What each tool reports; its kernels are shared out to so many processes at a time, each with the time limit."""
    parts = [numbers[first::jobs] for first in range(min(jobs, len(numbers)))]
    checked: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for tool in tools:
            checked[tool] = _together(list(pool.map(partial(_checked, what, tool, seconds), parts)))
    for tool, report in checked.items():
        print(f"{tool}: {json.dumps({key: value for key, value in report.items() if key != 'stems'})[:1500]}")
    return checked


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The reports of processes that had a part of the kernels each."""
    if not all(part["ran"] for part in parts):
        return next(part for part in parts if not part["ran"])
    return {
        "ran": True,
        "kernels": sum(part["kernels"] for part in parts),
        "stems": sorted(stem for part in parts for stem in part["stems"]),
        "late": any(part["late"] for part in parts),
        "reports": {stem: lines for part in parts for stem, lines in part["reports"].items()},
    }


def _checked(what: str, tool: str, seconds: float, numbers: Sequence[int]) -> dict[str, Any]:
    """What a tool of compute-sanitizer reports of each kernel, at the smallest size and the middle one."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        return {"ran": False, "why": "compute-sanitizer is not installed"}
    index = index_of(what)
    command = [found, "--tool", tool, sys.executable, __file__, "checked", *map(str, numbers), "--what", what]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603 reason: this file
        text, late = made.stdout, False
    except subprocess.TimeoutExpired as problem:
        held = problem.stdout
        text, late = held.decode(errors="replace") if isinstance(held, bytes) else "", True
    reports: dict[str, list[str]] = {}
    ran: list[str] = []
    now = "before the first"
    for line in text.splitlines():
        if line.startswith('{"number"'):
            told = json.loads(line)
            now = str(index[int(told["number"])]["stem"])
            if "trouble" in told:
                ran.append(now)
                if told["trouble"]:
                    reports.setdefault(now, []).append(told["trouble"])
        elif (
            line.startswith("=========")
            and "SUMMARY" not in line
            and ("Error" in line or "hazard" in line or "Invalid" in line or "Uninit" in line)
        ):
            reports.setdefault(now, []).append(line.strip("= "))
    return {
        "ran": bool(ran),
        "kernels": len(ran),
        "stems": ran,
        "late": late,
        "reports": {k: v[:4] for k, v in reports.items()},
    }


def _summary(index: list[dict[str, Any]], results: dict[int, dict[str, Any]]) -> dict[str, Any]:
    kernels: list[dict[str, Any]] = []
    for number, entry in enumerate(index):
        found = results.get(number, {"trouble": entry["refused"] or "not run"})
        sizes = [case["sizes"] for case in entry["cases"] if case["draw"] == "floats"]
        references = sorted({case["reference"] for case in entry["cases"]})
        kernels.append({"stem": entry["stem"], "trouble": found["trouble"], "sizes": sizes, "references": references})
        if found["trouble"]:
            print(f"{entry['stem']}: {found['trouble']}")
    wrong = sum(bool(each["trouble"]) for each in kernels)
    print(f"{len(kernels) - wrong} of {len(kernels)} kernels and programs are right")
    devices = {found["device"] for found in results.values() if "device" in found}
    return {"device": sorted(devices), "right": len(kernels) - wrong, "kernels": kernels}


# -- in the child --------------------------------------------------------------------------------------------


def child(what: str, numbers: list[int], *, checked: bool) -> int:
    """Print one JSON line per kernel. A GPU fault ends the process, since later results are unreliable.

    checked: announce each kernel before it runs, and leave out the largest size.
    """
    torch: Any = import_module("torch")
    torch.zeros(1, device="cuda")
    index = index_of(what)
    device = torch.cuda.get_device_name()
    for number in numbers:
        if checked:
            print(json.dumps({"number": number}), flush=True)
        try:
            trouble = _tried(torch, folder(what), index[number], 4 if checked else len(index[number]["cases"]))
            torch.cuda.synchronize()
        except Exception as problem:  # noqa: BLE001 reason: whatever it is, it is this kernel's
            words = str(problem).strip().splitlines() or [type(problem).__name__]
            refused = words[0].startswith("E4")  # ours, ahead of the launch
            print(
                json.dumps({"number": number, "trouble": words[0], "ends": not refused, "device": device}), flush=True
            )
            if refused:
                continue
            return 1
        ends = number == numbers[-1]
        print(json.dumps({"number": number, "trouble": trouble, "ends": ends, "device": device}), flush=True)
    return 0


def _tried(torch: Any, place: Path, entry: dict[str, Any], most: int) -> str:  # noqa: ANN401 reason: untyped
    """The first difference, or an empty string."""
    programs: Any = import_module("argus.runtime.programs")
    kernels: Any = import_module("argus.runtime.gpu.launch")
    description = place / entry["description"]
    made = programs.load_program(description) if entry["program"] else kernels.load(description)
    for seed, case in enumerate(entry["cases"][:most]):
        trouble = _compared(torch, made, entry, case, _reference_of(torch, place, entry, case, seed))
        if trouble:
            return f"{case['sizes']}, {case['draw']}: {trouble}"
    return ""


def _compared(torch: Any, made: Any, entry: dict[str, Any], case: dict[str, Any], reference: Reference) -> str:  # noqa: ANN401 reason: untyped
    """Launch one case with guard zones around its tensors; what is wrong, or an empty string."""
    held = {
        name: Guarded(torch, kind, case["shapes"][name], reference.given.get(name)) for name, kind in entry["tensors"]
    }
    prepared = made.prepare(case["sizes"])
    for space in prepared.workspaces if entry["program"] else ():
        held[space.name] = Guarded(torch, space.dtype, list(space.shape), None)
    tensors = {name: each.tensor for name, each in held.items()}
    prepared.bind(tensors, torch.cuda.current_stream().cuda_stream)()
    torch.cuda.synchronize()
    trouble = reference.difference(tensors)
    broken = [name for name, each in held.items() if not each.intact()]
    return f"elements beyond `{broken[0]}` were overwritten; {trouble}" if broken else trouble


class Reference:
    """A case's inputs, as bytes on the GPU, and the comparison of all tensors with what is expected of the outputs."""

    def __init__(self, given: dict[str, Any], difference: Callable[[dict[str, Any]], str]) -> None:
        self.given, self.difference = given, difference


def _reference_of(torch: Any, place: Path, entry: dict[str, Any], case: dict[str, Any], seed: int) -> Reference:  # noqa: ANN401 reason: untyped
    """From the case's file, or computed from the formula of the family."""
    types = dict(entry["tensors"])
    if "file" not in case:
        drawn = formulas.inputs(torch, types, case, seed)
        typed = {name: each.to(getattr(torch, TYPES[types[name]])) for name, each in drawn.items()}
        given = {name: each.contiguous().reshape(-1).view(torch.uint8) for name, each in typed.items()}
        return Reference(given, lambda found: formulas.difference(torch, entry, case, typed, found["C"]))
    with np.load(place / case["file"], allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    inputs = {name.removeprefix("in "): each for name, each in stored.items() if name.startswith("in ")}
    given = {name: torch.from_numpy(each.reshape(-1).view(np.uint8)).cuda() for name, each in inputs.items()}
    return Reference(given, lambda found: _difference(torch, case, stored, found))


class Guarded:
    """A tensor on the GPU between two guard zones; all bytes around it, and of an output, are 0xFF: NaN, or -1.

    contents: bytes on the GPU, None for an output.
    """

    def __init__(self, torch: Any, dtype: str, shape: list[int], contents: Any) -> None:  # noqa: ANN401 reason: untyped
        kind = getattr(torch, TYPES[dtype])
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self.bytes = torch.full((2 * GUARD + size,), 0xFF, dtype=torch.uint8, device="cuda")
        self.size = size
        if contents is not None and size:
            self.bytes[GUARD : GUARD + size] = contents
        self.tensor = self.bytes[GUARD : GUARD + size].view(kind).view(shape)

    def intact(self) -> bool:
        around = (self.bytes[:GUARD], self.bytes[GUARD + self.size :])
        return all(bool((zone == 0xFF).all()) for zone in around)


def _difference(torch: Any, case: dict[str, Any], stored: dict[str, Words], tensors: dict[str, Any]) -> str:  # noqa: ANN401 reason: untyped
    for key, held in stored.items():
        if not key.startswith("out "):
            continue
        name = key.removeprefix("out ")
        wanted, bound = held.astype(np.float64), stored[f"bound {name}"].astype(np.float64)
        found = tensors[name].to(torch.float64).cpu().numpy()
        with np.errstate(invalid="ignore"):
            right = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (np.abs(found - wanted) <= bound)
        if not right.all():
            at = tuple(int(axis) for axis in np.argwhere(~right)[0])
            count = int((~right).sum())
            return (
                f"{count} of {right.size} elements of `{name}` differ from the {case['reference']}, first {list(at)}: "
                f"{found[at]}, expected {wanted[at]} within {bound[at]:.3g}"
            )
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run", "check", "child", "checked"))
    parser.add_argument("numbers", nargs="*", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--what", choices=("corpus", "shipped"), default="corpus")
    parser.add_argument("--only", nargs="*", default=(), help="build: the beginnings of names; all by default")
    parser.add_argument("--output", type=Path, help="the result file")
    parser.add_argument("--tools", nargs="*", default=TOOLS, choices=TOOLS, help="tools of compute-sanitizer")
    parser.add_argument("--jobs", type=int, default=1, help="processes that check at a time")
    parser.add_argument("--seconds", type=float, default=CHECKED_SECONDS, help="time limit of each tool")
    given = parser.parse_args()
    output = given.output or ROOT / "benchmarks" / "results" / f"{given.what}_h200.json"
    match given.part:
        case "build":
            from corpus_build import build  # noqa: PLC0415 reason: the GPU's machine has no compiler

            return build(given.what, folder(given.what), given.only)
        case "run":
            return run(given.what, output, given.tools, given.seconds, given.jobs)
        case "check":
            return check(given.what, output, given.tools, given.seconds, given.jobs)
        case _:
            return child(given.what, given.numbers, checked=given.part == "checked")


if __name__ == "__main__":
    sys.exit(main())
