"""Runs every proved kernel of the corpus for sm_90a on the GPU: `python benchmarks/corpus_h200.py build`, then `run`.

build: compiles each kernel and program of tests/corpus/{proved,traced,programs/proved} into build/corpus, with inputs
and expected outputs at three sizes; needs no GPU. run: launches each on the GPU in a child process, which is restarted
after a fault or a hang, with poisoned outputs and guard zones around every tensor, then once under each tool of
compute-sanitizer where the driver supports it. Writes the result file; exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gpu_child import run_child

FOLDER = Path(__file__).resolve().parent.parent / "build" / "corpus"
INDEX = FOLDER / "index.json"
STARTS = 24
"""Limit of child processes."""
SECONDS, CHECKED_SECONDS = 20.0, 100.0
"""Time limits of a child between results, and under a tool of compute-sanitizer."""
GUARD = 4096
"""Bytes ahead of every tensor and behind it."""
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "e4m3": "float8_e4m3fn", "i32": "int32"}

Words = npt.NDArray[Any]


# -- build ---------------------------------------------------------------------------------------------------


def build() -> int:
    from corpus_cases import subjects  # noqa: PLC0415 reason: the GPU's machine has no compiler

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    index = [_built(subject) for subject in subjects()]
    INDEX.write_text(json.dumps(index), encoding="utf-8")
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) / 2**20
    refused = [entry for entry in index if entry["refused"]]
    for entry in refused:
        print(f"{entry['stem']}: {entry['refused']}")
    print(f"{len(index)} kernels and programs, {len(refused)} not built, {size:.1f} MiB")
    return int(bool(refused))


def _built(subject: Any) -> dict[str, Any]:  # noqa: ANN401 reason: imported where it is used
    from argus.core.diagnostic import ArgusError  # noqa: PLC0415 reason: as above
    from argus.core.ir import Kernel  # noqa: PLC0415 reason: as above
    from argus.emit.build import build as build_kernel  # noqa: PLC0415 reason: as above
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above

    place = FOLDER / subject.stem
    alone = isinstance(subject.made, Kernel)
    entry: dict[str, Any] = {"stem": subject.stem, "program": not alone, "refused": "", "cases": []}
    entry["tensors"] = [(buffer.name, buffer.dtype.name) for buffer in subject.made.parameters]
    try:
        made = build_kernel(subject.made, directory=place) if alone else build_program(subject.made, place)
        entry["description"] = made.description.relative_to(FOLDER).as_posix()
        entry["cases"] = list(_stored(subject, place))
    except ArgusError as problem:
        entry["refused"] = str(problem).splitlines()[0]
    for source in place.rglob("*.cu"):
        source.unlink()
    return entry


def _stored(subject: Any, place: Path) -> Iterator[dict[str, Any]]:  # noqa: ANN401 reason: as above
    """Store inputs and expected outputs of every size and draw."""
    from corpus_cases import DRAWS, expected_of, inputs_of, sizes_of  # noqa: PLC0415 reason: as above

    for number, sizes in enumerate(sizes_of(subject)):
        for draw in DRAWS:
            arrays = inputs_of(subject, sizes, draw)
            expected = expected_of(subject, arrays, draw)
            file = place / f"{number}-{draw}.npz"
            stored: dict[str, Words] = {f"in {name}": _words(arrays[name]) for name in subject.read}
            stored |= {f"out {name}": each.values for name, each in expected.items()}
            stored |= {f"bound {name}": each.bound for name, each in expected.items()}
            np.savez_compressed(file, allow_pickle=False, **stored)
            (reference,) = {each.reference for each in expected.values()}
            shapes = {name: list(array.shape) for name, array in arrays.items()}
            where = file.relative_to(FOLDER).as_posix()
            yield {"file": where, "sizes": sizes, "draw": draw, "shapes": shapes, "reference": reference}


def _words(values: Words) -> Words:
    return np.ascontiguousarray(values).view(np.dtype(f"i{values.dtype.itemsize}"))


# -- run -----------------------------------------------------------------------------------------------------


def run(result: Path) -> int:
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    runnable = [number for number, entry in enumerate(index) if not entry["refused"]]
    results: dict[int, dict[str, Any]] = {}

    def take(found: dict[str, Any]) -> None:
        results[found["number"]] = found

    for _ in range(STARTS):
        waiting = [number for number in runnable if number not in results]
        if not waiting:
            break
        ended = run_child(__file__, ["child", *map(str, waiting)], SECONDS, take)
        stuck = next((number for number in waiting if number not in results), None)
        if ended and stuck is not None:
            results[stuck] = {"trouble": f"the process ended here: {ended}"}
    checked = {tool: _checked(index, runnable, tool) for tool in TOOLS}
    data = _summary(index, results, checked)
    result.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return int(any(each["trouble"] for each in data["kernels"]))


def _checked(index: list[dict[str, Any]], numbers: Sequence[int], tool: str) -> dict[str, Any]:
    """What a tool of compute-sanitizer reports of each kernel, at the smallest size and the middle one."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        return {"ran": False, "why": "compute-sanitizer is not installed"}
    command = [found, "--tool", tool, sys.executable, __file__, "checked", *map(str, numbers)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=CHECKED_SECONDS, check=False)  # noqa: S603 reason: this file
        text, late = made.stdout, False
    except subprocess.TimeoutExpired as problem:
        held = problem.stdout
        text, late = held.decode(errors="replace") if isinstance(held, bytes) else "", True
    reports: dict[str, list[str]] = {}
    ran: list[str] = []
    for line in text.splitlines():
        if line.startswith('{"number"') and "trouble" not in line:
            ran.append(str(index[int(json.loads(line)["number"])]["stem"]))
        elif (
            line.startswith("=========")
            and "SUMMARY" not in line
            and ("Error" in line or "hazard" in line or "Invalid" in line or "Uninit" in line)
        ):
            reports.setdefault(ran[-1] if ran else "before the first", []).append(line.strip("= "))
    return {
        "ran": bool(ran),
        "kernels": len(ran),
        "late": late,
        "reports": {k: v[:4] for k, v in reports.items()},
    }


def _summary(
    index: list[dict[str, Any]], results: dict[int, dict[str, Any]], checked: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    kernels: list[dict[str, Any]] = []
    for number, entry in enumerate(index):
        found = results.get(number, {"trouble": entry["refused"] or "not run"})
        sizes = [case["sizes"] for case in entry["cases"] if case["draw"] == "floats"]
        references = sorted({case["reference"] for case in entry["cases"]})
        kernels.append({"stem": entry["stem"], "trouble": found["trouble"], "sizes": sizes, "references": references})
        if found["trouble"]:
            print(f"{entry['stem']}: {found['trouble']}")
    wrong = sum(bool(each["trouble"]) for each in kernels)
    for tool, report in checked.items():
        print(f"{tool}: {json.dumps(report)[:1500]}")
    print(f"{len(kernels) - wrong} of {len(kernels)} kernels and programs are right")
    devices = {found["device"] for found in results.values() if "device" in found}
    return {"device": sorted(devices), "right": len(kernels) - wrong, "kernels": kernels, "sanitizer": checked}


# -- in the child --------------------------------------------------------------------------------------------


def child(numbers: list[int], *, checked: bool) -> int:
    """Print one JSON line per kernel. A GPU fault ends the process, since later results are unreliable.

    checked: announce each kernel before it runs, and leave out the largest size.
    """
    torch: Any = import_module("torch")
    torch.zeros(1, device="cuda")
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    device = torch.cuda.get_device_name()
    for number in numbers:
        if checked:
            print(json.dumps({"number": number}), flush=True)
        try:
            trouble = _tried(torch, index[number], 4 if checked else len(index[number]["cases"]))
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


def _tried(torch: Any, entry: dict[str, Any], most: int) -> str:  # noqa: ANN401 reason: untyped
    """The first difference, or an empty string."""
    programs: Any = import_module("argus.runtime.programs")
    kernels: Any = import_module("argus.runtime.cuda.launch")
    place = FOLDER / entry["description"]
    made = programs.load_program(place) if entry["program"] else kernels.load(place)
    types = dict(entry["tensors"])
    for case in entry["cases"][:most]:
        with np.load(FOLDER / case["file"], allow_pickle=False) as stored:
            held = {
                name: Guarded(
                    torch,
                    types[name],
                    case["shapes"][name],
                    stored[f"in {name}"] if f"in {name}" in stored.files else None,
                )
                for name in types
            }
            prepared = made.prepare(case["sizes"])
            tensors = {name: each.tensor for name, each in held.items()}
            if entry["program"]:
                for space in prepared.workspaces:
                    held[space.name] = Guarded(torch, space.dtype, list(space.shape), None)
                    tensors[space.name] = held[space.name].tensor
            prepared.bind(tensors, torch.cuda.current_stream().cuda_stream)()
            torch.cuda.synchronize()
            trouble = _difference(torch, case, stored, tensors)
            broken = [name for name, each in held.items() if not each.intact()]
            if broken:
                trouble = f"elements beyond `{broken[0]}` were overwritten; {trouble}"
            if trouble:
                return f"{case['sizes']}, {case['draw']}: {trouble}"
    return ""


class Guarded:
    """A tensor on the GPU between two guard zones; all bytes around it, and of an output, are 0xFF: NaN, or -1."""

    def __init__(self, torch: Any, dtype: str, shape: list[int], words: Words | None) -> None:  # noqa: ANN401 reason: untyped
        kind = getattr(torch, TYPES[dtype])
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self.bytes = torch.full((2 * GUARD + size,), 0xFF, dtype=torch.uint8, device="cuda")
        self.size = size
        if words is not None and size:
            self.bytes[GUARD : GUARD + size] = torch.from_numpy(words.reshape(-1).view(np.uint8)).cuda()
        self.tensor = self.bytes[GUARD : GUARD + size].view(kind).view(shape)

    def intact(self) -> bool:
        around = (self.bytes[:GUARD], self.bytes[GUARD + self.size :])
        return all(bool((zone == 0xFF).all()) for zone in around)


def _difference(torch: Any, case: dict[str, Any], stored: Any, tensors: dict[str, Any]) -> str:  # noqa: ANN401 reason: untyped
    for key in stored.files:
        if not key.startswith("out "):
            continue
        name = key.removeprefix("out ")
        wanted, bound = stored[key].astype(np.float64), stored[f"bound {name}"].astype(np.float64)
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
    parser.add_argument("part", choices=("build", "run", "child", "checked"))
    parser.add_argument("numbers", nargs="*", type=int, help=argparse.SUPPRESS)
    results = Path(__file__).resolve().parent / "results" / "corpus_h200.json"
    parser.add_argument("--output", type=Path, default=results, help="the result file")
    given = parser.parse_args()
    match given.part:
        case "build":
            return build()
        case "run":
            return run(given.output)
        case _:
            return child(given.numbers, checked=given.part == "checked")


if __name__ == "__main__":
    sys.exit(main())
