"""Times the verification of shipped configurations, each in processes of its own: `python benchmarks/verification.py
[--times N] [--solver NAME] [PATTERN ...]`.

A pattern chooses configurations by `kernel configuration`, as in `attention_128 causal*`; programs have the keys of
their table after the name, as in `decode torch.float16 64 *`. All of attention, decoding and rows by default. cold:
seconds of a new process with an empty answer cache, from before the imports to the verdict, the minimum of N (5). CPU:
processor time of the same process; it depends less on what else runs on the machine. The rows end with the greatest
times, and how many configurations take longer than 3 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
MODULES = (
    "attention",
    "windowed_attention",
    "packed_attention",
    "attention_fp8",
    "attention_backward",
    "decode",
    "rows.softmax",
    "rows.norms",
    "rows.sums",
    "rows.scans",
    "rows.group_norm",
)
"""Those of `argus.kernels` whose configurations are timed."""
_WANTED = 3.0
_ONE = "--one"
"""Stands before the module, the kernel and the configuration that a new process verifies."""


def templates(module: str) -> dict[str, Any]:
    """The kernels and programs with configurations in a module, by name; programs with their keys in its tables."""
    found: dict[str, Any] = {}

    def collect(value: object, *keys: object) -> None:
        if isinstance(value, Mapping):
            for key, each in cast("Mapping[object, object]", value).items():
                collect(each, *keys, key)
        elif type(value).__name__ == "Template" or (type(value).__name__ == "ProgramTemplate" and keys):
            template = cast("Any", value)
            if template.configs and template.function.__module__.rpartition("argus.kernels.")[2] == module:
                own = keys if type(value).__name__ == "ProgramTemplate" else ()
                found[" ".join(map(str, (template.name, *own)))] = template

    for value in vars(import_module(f"argus.kernels.{module}")).values():
        collect(value)
    return found


def configurations() -> Iterator[tuple[str, str, str]]:
    """(module, kernel, configuration) of each."""
    for module in MODULES:
        for name, template in sorted(templates(module).items()):
            yield from ((module, name, config) for config in template.configs)


def verify_one(module: str, name: str, config: str, solver: str) -> None:
    """In a new process: prints the seconds, the processor time and the verdict."""
    start = time.perf_counter()
    from argus.core.ir import Kernel  # noqa: PLC0415 reason: imports are timed
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    made = templates(module)[name].trace(config)
    report = verify(made, solver=solver) if isinstance(made, Kernel) else verify_program(made, solver=solver)
    print(time.perf_counter() - start, time.process_time(), type(report.verdict).__name__)


def timed(module: str, name: str, config: str, solver: str) -> tuple[float, float, str]:
    """What `verify_one` prints, of a new process."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 reason: our own file, no shell
            [sys.executable, __file__, _ONE, module, name, config, solver],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**usual, "PYTHONPATH": str(ROOT), "ARGUS_CACHE_DIR": folder},
        )
    took, cpu, verdict = done.stdout.split()
    return float(took), float(cpu), verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="processes of each configuration")
    parser.add_argument("--solver", default="z3")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", default=["*"])
    chosen = parser.parse_args()
    print(f"{'':62} {'cold s':>7} {'CPU s':>7}   verdict")
    rows: list[tuple[float, float]] = []
    for module, name, config in configurations():
        label = f"{name} {config}"
        if any(fnmatch(label, pattern) for pattern in chosen.patterns):
            runs = [timed(module, name, config, chosen.solver) for _ in range(chosen.times)]
            rows.append((min(run[0] for run in runs), min(run[1] for run in runs)))
            print(f"{label:62} {rows[-1][0]:7.2f} {rows[-1][1]:7.2f}   {runs[0][2]}", flush=True)
    if rows:
        cold, cpu = (max(column) for column in zip(*rows, strict=True))
        above = [sum(each > _WANTED for each in column) for column in zip(*rows, strict=True)]
        print(f"{f'greatest of {len(rows)}':62} {cold:7.2f} {cpu:7.2f}")
        print(f"{f'above {_WANTED:g} s':62} {above[0]:7} {above[1]:7}")


if __name__ == "__main__":
    if sys.argv[1:2] == [_ONE]:
        verify_one(*sys.argv[2:])
    else:
        main()
