"""Runs all that ships for gfx942 on an MI300X, and writes one report: `python -m benchmarks.mi300x REPORT.json`.

Every shipped kernel on random inputs, against float64, between guard zones; guards of data contracts; every operator on
torch's tensors, if a torch for ROCm is installed; times of products, attention and rows, beside torch's in one process;
and what `argus doctor` says. Each part is a process of its own, so that one that faults ends neither the others nor the
report, which is written after each. Prints a line for each part; exit status 1 if anything is wrong.

--only TEXT: the parts whose names contain it. --few: one configuration of each family at small sizes, as a stand-in for
a GPU can execute.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import asdict

import argus
from argus.cli.checks import version_of
from argus.cli.doctor import examine
from argus.core.diagnostic import ArgusError
from argus.report.atomic_write import write_whole
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.find import open_gpu
from argus.runtime.hip.driver import find_driver
from benchmarks.gpu_child import run_child
from benchmarks.mi300x_checks import guard_rows, kernel_rows
from benchmarks.mi300x_operators import OnTorch, Tensors, operator_rows
from benchmarks.mi300x_times import cases, time_rows
from benchmarks.shipped import configurations
from tests.tiers import commit

Row = dict[str, Any]
SCHEMA = "argus.mi300x/1"
ROOT = Path(__file__).resolve().parent.parent
TARGET = "gfx942"
TRAP = "a guard that traps"
"""The part whose process ROCm may end: the report says what happened, and it does not count as wrong."""
ROUNDS, SECONDS = 12, 300.0
"""Rounds of each measurement; the longest time of one result of a part."""
BUSY = {False: 1 << 28, True: 1 << 12}
"""Bytes that are filled to keep the GPU busy while launches are queued, by whether sizes are small."""


def parts(
    device: Device,
    tensors: Tensors | None,
    torch: Any,  # noqa: ANN401 reason: torch's, or None
    *,
    few: bool = False,
) -> dict[str, Callable[[], Iterator[Row]]]:
    """What is run, by name. tensors, torch: None where there is no torch for the device."""
    found: dict[str, Callable[[], Iterator[Row]]] = {
        f"kernels of {family}": partial(kernel_rows, device, family, configs[:1] if few else configs, few=few)
        for family, configs in configurations(TARGET).items()
    }
    found["guards of data contracts"] = partial(guard_rows, device, "tell")
    found[TRAP] = partial(guard_rows, device, "stop")
    if tensors is not None:
        found["operators"] = partial(operator_rows, tensors, few=few)
    rounds = 1 if few else ROUNDS
    return found | {
        f"times of {case.name}": partial(time_rows, device, torch, case, rounds=rounds, busy=BUSY[few])
        for case in cases(few=few)
    }


def about() -> Row:
    """What the report begins with: versions, the machine, and what `argus doctor` says."""
    rocm = Path("/opt/rocm/.info/version")
    return {
        "schema": SCHEMA,
        "versions": {
            "argus": argus.__version__,
            "commit": commit(ROOT),
            "python": platform.python_version(),
            "rocm": rocm.read_text("utf-8").strip() if rocm.is_file() else "",
            **{name: version_of(name) or "" for name in ("torch", "numpy", "ziglang", "z3-solver")},
        },
        "machine": platform.platform(),
        "doctor": [asdict(each) for each in examine() if each.group != "cache"],
    }


def gpu() -> Device:
    """The first AMD GPU, with its context current. Raises ArgusError (E406, E407)."""
    found = open_gpu(find_driver())
    found.check_runs(TARGET)
    return found


def torch_for_rocm() -> Any:  # noqa: ANN401 reason: torch's
    """The installed torch, if it is built for AMD GPUs."""
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    return torch if getattr(torch.version, "hip", None) else None


def child(names: Sequence[str], *, few: bool) -> None:
    """Run parts, and print a document for each row, and one that ends each part."""
    torch = torch_for_rocm()
    device = gpu()
    known = parts(device, None if torch is None else OnTorch(torch), torch, few=few)
    for name in names:
        for row in known[name]():
            print(json.dumps({"part": name, "row": row, "ends": False}), flush=True)
        print(json.dumps({"part": name, "row": None, "ends": name == names[-1]}), flush=True)


def run_part(name: str, *, few: bool) -> Row:
    """The rows of a part that a process of its own runs, and why it ended early, if it did."""
    rows: list[Row] = []

    def take(found: dict[str, Any]) -> None:
        if found["row"] is not None:
            rows.append(found["row"])

    arguments = ["benchmarks.mi300x", "--child", name, *(["--few"] if few else [])]
    trouble = run_child("-m", arguments, SECONDS, take)
    return {"rows": rows, "trouble": trouble}


def report(place: Path, names: Sequence[str], run: Callable[[str], Row], device: Row) -> bool:
    """Run parts and write the report after each; whether all is right."""
    document = about() | {"device": device, "parts": {}}
    right = True
    for name in names:
        start = perf_counter()
        found = run(name)
        wrong = [row for row in found["rows"] if not row["right"]]
        right = right and not wrong and (name == TRAP or not found["trouble"])
        document["parts"][name] = found | {"seconds": round(perf_counter() - start, 1)}
        document["right"] = right
        write_whole(place, (json.dumps(document, indent=1) + "\n").encode())
        print(f"{name}: {_said(found, wrong)}", flush=True)
    return right


def _said(found: Row, wrong: Sequence[Row]) -> str:
    rates = [f"{row['regime']} {_rates(row)}" for row in found["rows"] if "rates" in row]
    said = "; ".join(rates) or f"{len(found['rows']) - len(wrong)} of {len(found['rows'])} right"
    first = f"; first wrong: {json.dumps(wrong[0])}" if wrong else ""
    return said + first + (f"; ENDED EARLY: {found['trouble']}" if found["trouble"] else "")


def _rates(row: Row) -> str:
    return ", ".join(f"{name} {rate:.0f}" for name, rate in row["rates"].items()) + f" {row['unit']}"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("report", type=Path, nargs="?", default=Path("mi300x.json"))
    parser.add_argument("--only", default="", help="the parts whose names contain this text")
    parser.add_argument("--few", action="store_true", help="small sizes, as a stand-in for a GPU can execute")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    try:
        if chosen.child is not None:
            child(chosen.child, few=chosen.few)
            return 0
        device, torch = gpu(), torch_for_rocm()
    except ArgusError as problem:
        print(problem, file=sys.stderr)
        return 1
    known = parts(device, None if torch is None else OnTorch(torch), torch, few=chosen.few)
    names = [each for each in known if chosen.only in each]
    described = {"name": device.name, "architecture": device.architecture, "bus": device.bus}
    described["hip"] = device.driver.version()
    return int(not report(chosen.report, names, partial(run_part, few=chosen.few), described))


if __name__ == "__main__":
    raise SystemExit(main())
