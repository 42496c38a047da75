"""Re-verification after an edit of one line: `python benchmarks/edits.py [--quick]`.

A line more, at each place of each shipped GEMM in turn: one of its waits, barriers or fences twice over. The kernel is
traced anew and verified in the process, and with the cache, that verified it before the edit; of each edit the minimum
of five, of each kernel the least, median and greatest over its edits. Beside them the kernel unchanged, and the first
proof of it in a warm process without a cache. An edit that makes the kernel wrong is left out and counted: it costs a
search for a counterexample, which `verify.py` times.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve

import argus
from argus.core.ir import Fence, Kernel, Stmt, Sync, Wait, bodies, with_bodies
from argus.kernels.gemm import gemm
from argus.solvers.cache import Cache

SOLVER = "z3"
HEADER = (
    f"{'kernel':16} {'warm s':>8} {'same s':>9} {'edits':>6} {'wrong':>6} {'least':>8} {'median':>8} {'greatest':>8}"
)


def repeated(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """The body with one of its waits, barriers or fences twice over, each in turn."""
    for place, stmt in enumerate(body):
        if isinstance(stmt, Wait | Sync | Fence):
            yield (*body[:place], stmt, *body[place:])
        inner = bodies(stmt)
        for number, each in enumerate(inner):
            for edited in repeated(each):
                whole = (*inner[:number], edited, *inner[number + 1 :])
                yield (*body[:place], with_bodies(stmt, whole), *body[place + 1 :])


def edits(kernel: Kernel) -> Iterator[Kernel]:
    for prologue in repeated(kernel.prologue):
        yield evolve(kernel, prologue=prologue)
    if kernel.roles is not None:
        for (roles,) in repeated((kernel.roles,)):
            yield evolve(kernel, roles=roles)
    for epilogue in repeated(kernel.epilogue):
        yield evolve(kernel, epilogue=epilogue)


def seconds(action: Callable[[], argus.Report]) -> tuple[float, argus.Report]:
    start = time.perf_counter()
    report = action()
    return time.perf_counter() - start, report


def warmed(folder: str, config: str | None, number: int) -> Cache:
    """A cache of its own that knows the kernel before the edit."""
    cache = Cache(Path(folder) / str(number))
    argus.verify(gemm, solver=SOLVER, config=config, cache=cache)
    return cache


def edit(config: str | None, place: int, times: int) -> tuple[float, argus.Report]:
    """One edit, from the trace to the report; every time new to the cache."""

    def again() -> argus.Report:
        edited = next(each for number, each in enumerate(edits(gemm.trace(config))) if number == place)
        return argus.verify(edited, solver=SOLVER, cache=cache)

    runs: list[tuple[float, argus.Report]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            cache = warmed(folder, config, number)
            runs.append(seconds(again))
            cache.close()
    return min(took for took, _ in runs), runs[-1][1]


def row(config: str | None, times: int) -> None:
    warm = min(seconds(lambda: argus.verify(gemm, solver=SOLVER, config=config))[0] for _ in range(times))
    with tempfile.TemporaryDirectory() as folder:
        cache = warmed(folder, config, 0)
        same = min(
            seconds(lambda: argus.verify(gemm, solver=SOLVER, config=config, cache=cache))[0] for _ in range(times)
        )
        cache.close()
    places = len(list(edits(gemm.trace(config))))
    runs = [edit(config, place, times) for place in range(places)]
    good = [took for took, report in runs if isinstance(report.verdict, argus.Proved)]
    shown = f"{min(good):8.3f} {statistics.median(good):8.3f} {max(good):8.3f}"
    wrong = len(runs) - len(good)
    print(f"{config or gemm.name:16} {warm:8.3f} {same:9.3f} {len(good):6} {wrong:6} {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each instead of five")
    quick = parser.parse_args().quick
    print(HEADER)
    for config in gemm.instances():
        row(config, 1 if quick else 5)


if __name__ == "__main__":
    main()
