"""Times the verification of shipped configurations, each in processes of its own: `python benchmarks/verification.py
[--times N] [--solver NAME] [--most N] [--jobs N] [--seconds S] [PATTERN ...]`.

A pattern chooses configurations by `module kernel configuration`, as in `attention attention_128 causal*`; programs
have the keys of their table after the name, as in `decode decode torch.float16 64 *`. All are chosen by default.
most: of each module only so many, spread evenly over its list. cold: seconds of a new process with an empty answer
cache, from before the imports to the verdict, the minimum of N (5). CPU: processor time of the same process; it depends
less on what else runs on the machine. jobs: processes at a time, of which only the CPU column says something. seconds:
none is begun later. The rows end with the slowest, the slowest of each module, and how many take longer than 3 s.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
_WANTED = 3.0
_SHOWN = 20
"""Of the slowest rows."""
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


def modules() -> Iterator[str]:
    """Those of `argus.kernels`."""
    package = import_module("argus.kernels")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield found.name.removeprefix(f"{package.__name__}.")


def configurations() -> Iterator[tuple[str, str, str]]:
    """(module, kernel, configuration) of each."""
    for module in modules():
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
    path = os.pathsep.join(filter(None, (str(ROOT), usual.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 reason: our own file, no shell
            [sys.executable, __file__, _ONE, module, name, config, solver],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**usual, "PYTHONPATH": path, "ARGUS_CACHE_DIR": folder},
        )
    took, cpu, verdict = done.stdout.split()
    return float(took), float(cpu), verdict


Row = tuple[float, float, str, tuple[str, str, str]]
"""Seconds, processor time, verdict, and what was verified."""


def measured(one: tuple[str, str, str], chosen: argparse.Namespace, begun: float) -> Row | None:
    """The least times; None where it is too late to begin."""
    if time.perf_counter() - begun > chosen.seconds:
        return None
    runs = [timed(*one, chosen.solver) for _ in range(chosen.times)]
    row = min(run[0] for run in runs), min(run[1] for run in runs), runs[0][2], one
    print(_text(row), flush=True)
    return row


def spread(rows: Sequence[tuple[str, str, str]], most: int) -> list[tuple[str, str, str]]:
    """At most so many of each module, the first one among them."""
    kept: list[tuple[str, str, str]] = []
    for module in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == module]
        kept += own if len(own) <= most else [own[number * len(own) // most] for number in range(most)]
    return kept


def _text(row: Row) -> str:
    return f"{' '.join(row[3]):76} {row[0]:7.2f} {row[1]:7.2f}   {row[2]}"


def summary(rows: Sequence[Row]) -> None:
    slowest = sorted(rows, key=lambda row: -row[1])
    print("\nslowest, by processor time")
    for row in slowest[:_SHOWN]:
        print(_text(row))
    print("\nslowest of each module")
    for module in dict.fromkeys(row[3][0] for row in slowest):
        own = [row for row in slowest if row[3][0] == module]
        print(f"{_text(own[0])}   of {len(own)}, {sum(row[1] > _WANTED for row in own)} above {_WANTED:g} s")
    cold, cpu = sum(row[0] > _WANTED for row in rows), sum(row[1] > _WANTED for row in rows)
    print(f"\n{f'above {_WANTED:g} s, of {len(rows)}':76} {cold:7} {cpu:7}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="processes of each configuration")
    parser.add_argument("--solver", default="z3")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="configurations of each module")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which none is begun")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", default=["*"])
    chosen = parser.parse_args()
    named = [one for one in configurations() if any(fnmatch(" ".join(one), each) for each in chosen.patterns)]
    print(f"{'':76} {'cold s':>7} {'CPU s':>7}   verdict")
    begun = time.perf_counter()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        found = pool.map(partial(measured, chosen=chosen, begun=begun), spread(named, chosen.most))
        summary([row for row in found if row is not None])


if __name__ == "__main__":
    if sys.argv[1:2] == [_ONE]:
        verify_one(*sys.argv[2:])
    else:
        main()
