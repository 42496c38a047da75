"""Times re-verification after an edit of one line: `python benchmarks/edits.py [--quick]`.

Each edit of a shipped GEMM repeats one of its waits, barriers or fences. The edited kernel is traced and verified in
the same process, and with the same cache, as the original. Printed per kernel: minimum, median and maximum over its
edits, each the minimum of five runs; the unchanged kernel with the cache; and a proof in a warm process without a
cache. An edit that makes the kernel wrong is counted but not timed: its search for a counterexample is timed by
`verify.py`.
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


def repeat_one(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """The bodies with one wait, barrier or fence repeat_one."""
    for place, stmt in enumerate(body):
        if isinstance(stmt, Wait | Sync | Fence):
            yield (*body[:place], stmt, *body[place:])
        inner = bodies(stmt)
        for number, each in enumerate(inner):
            for edited in repeat_one(each):
                whole = (*inner[:number], edited, *inner[number + 1 :])
                yield (*body[:place], with_bodies(stmt, whole), *body[place + 1 :])


def edits(kernel: Kernel) -> Iterator[Kernel]:
    for prologue in repeat_one(kernel.prologue):
        yield evolve(kernel, prologue=prologue)
    if kernel.roles is not None:
        for (roles,) in repeat_one((kernel.roles,)):
            yield evolve(kernel, roles=roles)
    for epilogue in repeat_one(kernel.epilogue):
        yield evolve(kernel, epilogue=epilogue)


def seconds(action: Callable[[], argus.Report]) -> tuple[float, argus.Report]:
    start = time.perf_counter()
    report = action()
    return time.perf_counter() - start, report


def warm_cache(folder: str, config: str | None, number: int) -> Cache:
    """A new cache with the answers for the unedited kernel."""
    cache = Cache(Path(folder) / str(number))
    argus.verify(gemm, solver=SOLVER, config=config, cache=cache)
    return cache


def edit(config: str | None, place: int, times: int) -> tuple[float, argus.Report]:
    """Time from trace to report of one edit, with a cache that does not know it."""

    def again() -> argus.Report:
        edited = next(each for number, each in enumerate(edits(gemm.trace(config))) if number == place)
        return argus.verify(edited, solver=SOLVER, cache=cache)

    runs: list[tuple[float, argus.Report]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            cache = warm_cache(folder, config, number)
            runs.append(seconds(again))
            cache.close()
    return min(took for took, _ in runs), runs[-1][1]


def row(config: str | None, times: int) -> None:
    warm = min(seconds(lambda: argus.verify(gemm, solver=SOLVER, config=config))[0] for _ in range(times))
    with tempfile.TemporaryDirectory() as folder:
        cache = warm_cache(folder, config, 0)
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
