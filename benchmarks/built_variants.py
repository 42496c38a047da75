"""What benchmarks of variants of a kernel or program share: options; building, checking and timing the variants."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from math import inf, isnan
from pathlib import Path
from typing import Any

from argus.core.ir import Kernel, Program

Traced = Callable[[], Kernel | Program]
Loaded = Mapping[str, Any]
"""Kernels or programs on the device, by the name of their variant."""
Rows = Sequence[Mapping[str, Any]]
"""What is measured: one row for each shape, regime and variant."""


def options(description: str | None, folder: Path, rounds: int, checked: int) -> argparse.ArgumentParser:
    """`build` and `run`, with the options of both. description: a module's, of which the first line is taken.

    folder: where results go. rounds, checked: the defaults.
    """
    first, _, _ = (description or "").partition("\n")
    parser = argparse.ArgumentParser(description=first)
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument(
        "--names", type=lambda text: text.split(","), default=[], help="only these variants; * stands for any text"
    )
    parser.add_argument("--unproved", action="store_true", help="build without verifying, for experiments")
    parser.add_argument("--out", type=Path, default=folder)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--checked", type=int, default=checked, help="random shapes to check each variant on")
    parser.add_argument("--most", type=int, default=None, help="time only so many shapes")
    return parser


def _is_chosen(name: str, chosen: argparse.Namespace) -> bool:
    return not chosen.names or any(fnmatch(name, each) for each in chosen.names)


def build(chosen: argparse.Namespace, folder: Path, variants: Mapping[str, Traced]) -> int:
    """Verify and compile variants, each into a folder of its name; 1 if one is not proved, which is left out."""
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    failed = 0
    for name, traced in variants.items():
        if not _is_chosen(name, chosen):
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        made, said = traced(), "not verified"
        if not chosen.unproved:
            start = time.process_time()
            verdict = (verify(made) if isinstance(made, Kernel) else verify_program(made)).verdict
            if not isinstance(verdict, Proved):
                print(f"{name}: skipped: {verdict}", flush=True)
                failed += 1
                continue
            said = f"verified in {time.process_time() - start:.1f} s"
        if isinstance(made, Kernel):
            reports = [compiled(made, "sm_90a", folder / name).report]
        else:
            reports = [each.report for each in build_program(made, folder / name).kernels]
        print(f"{name}: {said}; {'; '.join(map(str, reports))}", flush=True)
    return int(failed > 0)


def run(
    chosen: argparse.Namespace,
    folder: Path,
    load: Callable[[Path], Any],
    is_right: Callable[[Any, str, Any, int], bool],
    timed: Callable[[Any, Loaded], Rows],
    results: str,
) -> int:
    """Load the variants in the folder, time those that are right, and write the rows; 1 if one is wrong.

    load: of a description (NAME/*.json). is_right: of torch, a variant's name, the variant, and how many shapes to
    check. timed: of torch and the right ones. results: the name of the file.
    """
    torch: Any = import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    places = {path.parent.name: path for path in sorted(folder.glob("*/*.json"))}
    loaded = {name: load(path) for name, path in places.items() if _is_chosen(name, chosen)}
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    good = {name: each for name, each in loaded.items() if is_right(torch, name, each, chosen.checked)}
    rows = timed(torch, good)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / results).write_text(json.dumps(rows), "utf-8")
    return int(len(good) < len(loaded))


def keeping(launch: Callable[[], object], *alive: object) -> Callable[[], None]:
    """The launch, with the tensors that it needs for as long as it may be called."""
    return partial(_launched, launch, alive)


def _launched(launch: Callable[[], object], _alive: object) -> None:
    launch()


def larger(errors: Sequence[float], found: Sequence[float]) -> list[float]:
    """The larger of each pair; infinite where what was found is not a number."""
    return [inf if isnan(new) else max(old, new) for old, new in zip(errors, found, strict=True)]


def timed_beside(
    torch: Any,  # noqa: ANN401 reason: untyped
    driver: Any,  # noqa: ANN401 reason: as above
    calls: Mapping[str, Callable[[], object]],
    peers: Sequence[str],
    shape: str,
    operations: float,
    rounds: int,
) -> list[dict[str, Any]]:
    """Time calls in turn in both regimes; print and return a row for each: its TFLOP/s, and its rate over each peer's.

    peers: the names of those calls that others are compared to. shape: what the rows call it. operations: of one call.
    """
    timing = import_module("argus.runtime.gpu.timing")

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(driver, torch.cuda.current_stream().cuda_stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, calls, regime, rounds)
        for name in calls:
            ratios = {peer: statistics.median(times.ratios(name, peer)) for peer in peers}
            rate = 1e-9 * operations / times.median(name)
            rows.append({"shape": shape, "regime": regime.name, "name": name, "rate": rate, "ratios": ratios})
        said = ", ".join(map(_in_short, sorted(rows[-len(calls) :], key=lambda row: -row["rate"])))
        print(f"{shape} {regime.name}: {said}", flush=True)
    return rows


def _in_short(row: Mapping[str, Any]) -> str:
    ratios: Mapping[str, float] = {} if row["name"] in row["ratios"] else row["ratios"]
    return " ".join([f"{row['name']} {row['rate']:.0f}", *(f"{peer} {each:.3f}" for peer, each in ratios.items())])


def table(rows: Rows) -> str:
    """The best variant of each shape with its TFLOP/s and ratios, and the geometric means of these."""
    lines: list[str] = []
    for regime in dict.fromkeys(row["regime"] for row in rows):
        best: list[Mapping[str, float]] = []
        for shape in dict.fromkeys(row["shape"] for row in rows):
            own = [r for r in rows if (r["shape"], r["regime"]) == (shape, regime) and r["name"] not in r["ratios"]]
            first = max(own, key=lambda row: row["rate"])
            best.append(first["ratios"])
            ratios = " ".join(f"{peer} {ratio:.3f}" for peer, ratio in first["ratios"].items())
            lines.append(f"{regime:12} {shape:34} {first['name']:22} {first['rate']:6.0f} {ratios}")
        names = dict.fromkeys(peer for each in best for peer in each)
        means = {p: statistics.geometric_mean(each[p] for each in best if p in each) for p in names}
        lines += [f"{regime:12} geometric mean vs. {peer} {mean:.3f}" for peer, mean in means.items()]
    return "\n".join(lines)
