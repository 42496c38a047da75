"""Evaluates the autotuner and the cost model: `python benchmarks/tuning.py prepare`, then `... run` on an H200.

prepare: proves and compiles 50 configurations from an empty cache with the given number of processes, and prints the
wall time (at most 60 s on two cores) and the time per configuration; then prepares all other candidates, so that
build/tuning is all that the machine with the GPU needs. Needs no GPU. run: tunes each of 30 shapes and compares the
choice of `argus.ops.choice.select` with the fastest, in both regimes; the target is at most 3 percent. Ten shapes are
those of benchmarks/families/gemm.py; the other twenty have odd sizes: rows just off a multiple of the tile, primes,
remainders of one in every extent that TMA admits, and extents of known models. Results go to tuning.json in `--out`,
tuned configurations to build/tuning/tuning.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

from attrs import asdict
from families.gemm import SHAPES

from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.tuning.candidates import tuning_candidates
from argus.search.tuning.prepare import Candidate, prepare_all, prepare_one, processors
from argus.search.tuning.search import ROUNDS, Result, query_device_name, search_shapes, stored_results

FOLDER = Path(__file__).resolve().parent.parent / "build" / "tuning"
FIGURE, SECONDS, CORES = 50, 60.0, 2
CLOSE = 1.03
ODD = (
    *((8191, 8192, 8192), (4097, 4104, 4096), (3000, 3000, 3000), (5000, 5008, 1000), (1000, 1000, 8192)),
    *((2047, 6144, 4096), (1536, 1536, 1536), (6144, 6144, 6144), (12288, 4096, 2048), (777, 3584, 3584)),
    *((1, 4096, 14336), (8, 7168, 2048), (33, 8192, 1024), (65, 4096, 4096), (100, 10240, 5120)),
    *((129, 11008, 4096), (200, 5120, 13824), (257, 2304, 7168), (384, 16384, 512), (700, 1288, 24576)),
)


def prepare(processes: int) -> bool:
    """Prepare all candidates; returns whether the first 50 were proved and compiled within the time limit."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    names = list(tuning_candidates())
    start, before = time.perf_counter(), processor_seconds()
    first = list(prepare_all(names[:FIGURE], processes))
    took, used = time.perf_counter() - start, processor_seconds() - before
    ready = [each for each in first if each.state == "ready"]
    fine = took <= SECONDS and len(ready) == FIGURE
    each = [candidate.proof + candidate.code for candidate in ready]
    print(f"{len(ready)} of {FIGURE} configurations proved and compiled by {processes} processes in {took:.1f} s,")
    print(f"with {used:.1f} s of CPU time, {used / processes:.1f} s per process; the rest went to other work")
    print(f"one takes {statistics.median(each):.2f} s (median; at most {max(each):.2f} s): {_parts(ready)}")
    others = list(prepare_all(names[FIGURE:], processes))
    for candidate in (*first, *others):
        if candidate.state != "ready":
            print(f"  {candidate.name}: left out: {candidate.why}")
    print(f"{len(names)} configurations in all, in {FOLDER}")
    return fine


def processor_seconds() -> float:
    """CPU time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _parts(ready: Sequence[Candidate]) -> str:
    proof, code = (statistics.median(getattr(each, part) for each in ready) for part in ("proof", "code"))
    return f"{proof:.2f} s for its proof, {code:.2f} s for its code"


def run(out: Path, rounds: int, shapes: Sequence[tuple[int, int, int]]) -> bool:
    """Tune all shapes, print the choices' ratios, write results after each shape; returns whether results are right."""
    found = [prepare_one(name) for name in tuning_candidates()]
    paths = {each.name: each.path for each in found if each.state == "ready"}
    for each in found:
        if each.state != "ready":
            print(f"  {each.name}: left out: {each.why}")
    out.mkdir(parents=True, exist_ok=True)
    with WatchedProcess(120.0) as child:
        device = query_device_name(child)
        print(f"{device}: {len(paths)} configurations, {len(shapes)} shapes", flush=True)
        results: list[Result] = []
        for result in stored_results(device, search_shapes(child, shapes, paths, rounds)):
            results.append(result)
            print(_line(result), flush=True)
            data = {"device": device, "rounds": rounds, "results": [asdict(each) for each in results]}
            (out / "tuning.json").write_text(json.dumps(data), encoding="utf-8")
    for line in summary(results):
        print(line)
    wrong = sorted({name for each in results for name in each.timed.wrong})
    print(f"wrong results: {', '.join(wrong) or 'none'}")
    return not wrong and len(results) == len(shapes)


def _line(result: Result) -> str:
    parts: list[str] = []
    for regime, ratio in result.ratios().items():
        times = result.timed.medians[regime]
        fastest = min(times, key=lambda name: times[name])
        rate = 2e-6 * prod(result.shape) / times[fastest]
        parts.append(f"{regime} {fastest} {times[fastest]:.1f} us ({rate:.0f} TFLOP/s), chosen {ratio:.3f} of it")
    size = "x".join(map(str, result.shape))
    lost = f"; lost {', '.join(result.lost)}" if result.lost else ""
    return f"{size:18} chosen {result.chosen:16} best {result.best}: {'; '.join(parts) or 'not timed'}{lost}"


def summary(results: Sequence[Result]) -> Iterator[str]:
    """For each regime and for both together, how often the choice is within 3 percent of the tuned best."""
    together = [overall(each) for each in results]
    columns: dict[str, list[float]] = {"both regimes": [each for each in together if each is not None]}
    for each in results:
        for regime, ratio in each.ratios().items():
            columns.setdefault(regime, []).append(ratio)
    for name, ratios in columns.items():
        near = sum(ratio <= CLOSE for ratio in ratios)
        if ratios:
            mean = statistics.geometric_mean(ratios)
            yield f"{name}: {near} of {len(results)} within 3 %; geometric mean {mean:.3f}, worst {max(ratios):.3f}"


def overall(result: Result) -> float | None:
    """Time of the choice over that of the best, geometric mean over the regimes."""
    each = [
        times[result.chosen] / times[result.best] for times in result.timed.medians.values() if result.chosen in times
    ]
    return statistics.geometric_mean(each) if each else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("prepare", "run"))
    parser.add_argument("--processes", type=int, default=min(CORES, processors()))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--shapes", type=_shapes, default=[*SHAPES, *ODD], help="MxNxK,MxNxK,...")
    chosen: Any = parser.parse_args()
    os.environ["ARGUS_CACHE_DIR"] = str(FOLDER)
    fine = prepare(chosen.processes) if chosen.part == "prepare" else run(chosen.out, chosen.rounds, chosen.shapes)
    return 0 if fine else 1


def _shapes(text: str) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for each in text.split(","):
        m, n, k = map(int, each.split("x"))
        found.append((m, n, k))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
