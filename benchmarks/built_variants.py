"""What benchmarks of variants of a kernel or program share: options; building, checking and timing the variants."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from importlib import import_module
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
