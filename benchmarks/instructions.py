"""Tests each sm_90a instruction on the GPU against the interpreter: `python benchmarks/instructions.py build`, then
`run`; and on the CPU against the GPU: `cpu`.

build: interprets every kernel of `argus.testing.instructions` on fixed inputs and compiles it into build/instructions,
as NAME.cubin, NAME.json and NAME.npz (inputs and results as bit patterns); needs no GPU. run: launches each kernel on
the GPU in a child process, which is restarted after a fault or a hang, and compares. Prints one line per family and one
per failure, and stores a digest of every result's bits; exit status 1 if anything failed. cpu: executes the emitted
text of each kernel as C++ for the CPU, and compares the digests of its results with the stored ones of the GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from gpu_child import run_child

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.testing.instructions.bits import Words, digest, is_nan, words_of

FOLDER = Path(__file__).resolve().parent.parent / "build" / "instructions"
INDEX = FOLDER / "index.json"
RESULTS = Path(__file__).resolve().parent / "results" / "instructions.json"
STARTS = 12
"""Limit of child processes."""
SECONDS = 15.0
"""Time limit between results of a child."""
TOLERANCES = {"e4m3": 2.0**-9, "bf16": 2.0**-16, "f16": 2.0**-16}
"""Tolerance of a rounded sum, relative to the sum of absolute products; FP8 products are summed with fewer bits."""


# -- build ---------------------------------------------------------------------------------------------------


def build(named: str) -> int:
    from argus.emit.build import build as build_kernel  # noqa: PLC0415 reason: the GPU's machine has no compiler
    from argus.testing.instructions import trials  # noqa: PLC0415 reason: as above

    FOLDER.mkdir(parents=True, exist_ok=True)
    index: list[dict[str, Any]] = []
    faults = 0
    for each in trials():
        if named not in each.name:
            continue
        artifact = build_kernel(each.kernel, "sm_90a", FOLDER)
        artifact.source.unlink()
        troubles = [*_interpreted(each, artifact.code.stem), *(str(warning) for warning in artifact.warnings)]
        faults += len(troubles)
        for trouble in troubles:
            print(f"{each.what}: {trouble}")
        index.append(_entry(each, artifact.code.stem))
    INDEX.write_text(json.dumps(index), encoding="utf-8")
    size = sum(path.stat().st_size for path in FOLDER.iterdir()) / 2**20
    print(f"{len(index)} kernels, {size:.1f} MiB, {faults} faults")
    return int(faults > 0)


def _interpreted(each: Any, stem: str) -> Iterator[str]:  # noqa: ANN401 reason: imported where it is used
    """Store inputs and results of one kernel; yields the violations that the interpreter finds."""
    from argus.testing.instructions import drawn, expected  # noqa: PLC0415 reason: as above

    stored: dict[str, Words] = {}
    for draw in each.draws:
        inputs = drawn(each, draw)
        found = expected(each, inputs)
        yield from found.faults
        stored |= {f"{draw} {name}": words_of(values) for name, values in inputs.items()}
        stored[f"{draw} C"] = words_of(found.result)
        if found.scale is not None and draw == "floats":
            stored["scale"] = found.scale.astype(np.float16)
    np.savez_compressed(FOLDER / f"{stem}.npz", allow_pickle=False, **stored)


def _entry(each: Any, stem: str) -> dict[str, Any]:  # noqa: ANN401 reason: imported where it is used
    types = {buffer.name: buffer.dtype for buffer in each.kernel.parameters}
    blank = int(words_of(np.full(1, np.nan, types["C"].numpy))[0])
    return {
        "stem": stem,
        "what": each.what,
        "family": each.family,
        "determined": each.determined,
        "sizes": each.sizes,
        "draws": each.draws,
        "inputs": [buffer.name for buffer in each.inputs],
        "operands": types["A"].name,
        "result": types["C"].name,
        "blank": blank,
    }


# -- run -----------------------------------------------------------------------------------------------------


def run(output: Path) -> int:
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    results: dict[int, str] = {}
    digests: dict[int, dict[str, str]] = {}

    def take(found: dict[str, Any]) -> None:
        results[found["number"]] = found["trouble"]
        digests[found["number"]] = found["digests"]

    for _ in range(STARTS):
        waiting = [number for number in range(len(index)) if number not in results]
        if not waiting:
            break
        said = run_child(__file__, ["child", *map(str, waiting)], SECONDS, take)
        stuck = next((number for number in waiting if number not in results), None)
        if said and stuck is not None:
            results[stuck] = f"the process ended here: {said}"
    found = {index[number]["stem"]: digests[number] for number in sorted(digests)}
    known: dict[str, Any] = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
    output.write_text(json.dumps(known | found, indent=1) + "\n", encoding="utf-8")
    return _summary(index, results)


def _summary(index: list[dict[str, Any]], results: dict[int, str]) -> int:
    failed = 0
    for family in dict.fromkeys(entry["family"] for entry in index):
        members = [number for number, entry in enumerate(index) if entry["family"] == family]
        troubles = {number: results.get(number, "not run") for number in members}
        wrong = [number for number, trouble in troubles.items() if trouble]
        failed += len(wrong)
        print(f"{family}: {len(members) - len(wrong)} of {len(members)} agree")
        for number in wrong:
            print(f"    {index[number]['what']}: {troubles[number]}")
    print(f"{len(index) - failed} of {len(index)} kernels agree with the interpreter")
    return int(failed > 0)


# -- cpu -----------------------------------------------------------------------------------------------------


def on_cpu() -> int:
    from argus.testing.instructions import trials  # noqa: PLC0415 reason: as above
    from argus.testing.instructions.on_cpu import digests_on_cpu  # noqa: PLC0415 reason: as above

    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    agree: Counter[str] = Counter()
    made = trials()
    for each in made:
        found = digests_on_cpu(each)
        agree[each.family] += found == stored[each.name]
        if found != stored[each.name]:
            print(f"{each.what}: {found}, the GPU {stored[each.name]}", flush=True)
    for family, number in Counter(each.family for each in made).items():
        print(f"{family}: {agree[family]} of {number} have the bits of the GPU")
    print(f"{agree.total()} of {len(made)} kernels have the bits of the GPU")
    return int(agree.total() < len(made))


# -- in the child --------------------------------------------------------------------------------------------


def child(numbers: list[int]) -> int:
    """Print one JSON line per kernel. A GPU fault ends the process, since later results are unreliable."""
    torch: Any = import_module("torch")
    runtime: Any = import_module("argus.runtime.gpu.launch")
    torch.zeros(1, device="cuda")
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    for number in numbers:
        digests: dict[str, str] = {}
        try:
            trouble = _tried(torch, runtime, index[number], digests)
            torch.cuda.synchronize()
        except Exception as problem:  # noqa: BLE001 reason: whatever it is, it is this kernel's
            words = str(problem).strip().splitlines() or [type(problem).__name__]
            print(json.dumps({"number": number, "trouble": words[0], "ends": True, "digests": digests}), flush=True)
            return 1
        ends = number == numbers[-1]
        print(json.dumps({"number": number, "trouble": trouble, "ends": ends, "digests": digests}), flush=True)
    return 0


def _tried(torch: Any, runtime: Any, entry: dict[str, Any], digests: dict[str, str]) -> str:  # noqa: ANN401 reason: untyped
    """The first difference, or an empty string; rounded sums have a tolerance. digests: receives one of each result."""
    made = runtime.load(FOLDER / f"{entry['stem']}.json")
    with np.load(FOLDER / f"{entry['stem']}.npz", allow_pickle=False) as stored:
        for draw in entry["draws"]:
            given = {name: torch.from_numpy(stored[f"{draw} {name}"]).cuda() for name in entry["inputs"]}
            wanted: Words = stored[f"{draw} C"]
            result = torch.full(wanted.shape, entry["blank"], dtype=torch.from_numpy(wanted).dtype, device="cuda")
            made.bind({**given, "C": result}, entry["sizes"], torch.cuda.current_stream().cuda_stream)()
            torch.cuda.synchronize()
            scale = stored["scale"] if draw == "floats" and "scale" in stored.files else None
            digests[draw] = digest(entry["result"], result.cpu().numpy())
            trouble = _difference(entry, result.cpu().numpy(), wanted, scale)
            if trouble:
                return f"{draw}: {trouble}"
    return ""


def _difference(entry: dict[str, Any], found: Words, wanted: Words, scale: Words | None) -> str:
    differs = found != wanted
    if entry["determined"] != "bits":
        differs &= ~(is_nan(found, entry["result"]) & is_nan(wanted, entry["result"]))
    if scale is not None:
        apart = np.abs(found.view(np.float32).astype(np.float64) - wanted.view(np.float32))
        differs = ~(apart <= TOLERANCES[entry["operands"]] * scale.astype(np.float64))
    if not differs.any():
        return ""
    at = tuple(int(axis) for axis in np.argwhere(differs)[0])
    pair = _shown(found[at], entry["result"]), _shown(wanted[at], entry["result"])
    return f"{int(differs.sum())} of {differs.size} elements differ, first {list(at)}: {pair[0]}, expected {pair[1]}"


def _shown(word: Any, dtype: str) -> str:  # noqa: ANN401 reason: an integer of some width
    bits = int(word) & ((1 << 8 * word.dtype.itemsize) - 1)
    text = f"{bits:#0{2 + 2 * word.dtype.itemsize}x}"
    return f"{word.view(np.float32)} ({text})" if dtype == "f32" else text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run", "cpu", "child"))
    parser.add_argument("numbers", nargs="*", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--named", default="", help="build only kernels with this in their name")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the file that receives the digests")
    given = parser.parse_args()
    match given.part:
        case "build":
            return build(given.named)
        case "run":
            return run(given.output)
        case "cpu":
            return on_cpu()
        case _:
            return child(given.numbers)


if __name__ == "__main__":
    sys.exit(main())
