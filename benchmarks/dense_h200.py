"""Dense products of random shapes beside cuBLAS on an H200: `benchmarks/dense_h200.py selected`, or `... search`.

selected: draws shapes (log-uniform extents, the columns and the depth of a third of them of any remainder), verifies
and compiles what `argus.matmul` would launch for each, by all processors, checks it against float64 and times it beside
torch.mm in both regimes. Prints the geometric mean of the ratios, how many are below 0.90, and the lowest with their
configurations. search: for each shape, times every candidate that takes it in brief bursts and by single launches, and
how far the selected one is from the fastest. Both verify on this machine, and write what was measured to `--out`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from attrs import evolve, frozen
from dense_page import PEER, SEARCH, SELECTED
from gemm_h200 import CACHE, CLOSE, loaded, rotating, shapes_of

import argus
from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.kernels import padded
from argus.kernels.cost_sm_90a import Known, microseconds
from argus.ops.choice import candidates
from argus.ops.choice_fitted import few_candidates, stream_candidates
from argus.ops.choice_unaligned import COPIED
from argus.ops.matmul import candidate
from argus.runtime.gpu.timing import DUTY_CYCLED, SUSTAINED, Stopwatch, time_interleaved
from argus.runtime.kernel_cache import build_cached, build_program_cached, verify_cached, verify_program_cached
from argus.search.tuning.candidates import tuning_candidates

FOLDER = Path(__file__).resolve().parent.parent / "build" / "dense_h200"
FAMILY = "gemm_nt"
SEED, COUNT, MOST, LEAST = 2026, 200, 16384, 16
"""Of the shapes: M from 1 to MOST, N and K from LEAST to MOST."""
NAMED = (
    *((8, 10240, 8192), (128, 128, 131072), (1000, 1000, 1000), (32, 8192, 28672), (384, 11008, 4096)),
    *((128, 8192, 8192), (300, 7168, 7168), (64, 1024, 32768), (129, 11008, 4096), (200, 5120, 13824)),
    *((384, 384, 65536), (512, 512, 16384), (48, 6144, 4096), (65, 4096, 4096), (100, 10240, 5120), (1024, 1024, 1024)),
)
"""Sixteen that language models and deep products have, or that have been slow."""
SUM = evolve(SUSTAINED, burst=6.0, lead=1)
"""As `SUSTAINED`, in shorter bursts."""
ROUNDS, LOW, SHOWN = 5, 0.90, 30
SETS, SMALL = 16, 2 << 20
"""The most sets of operands in rotation, and bytes of a set below which two do, as 16 would stay in L2 just as well."""
CALLS, FAR, LAUNCH = 10, 1.6, 12e-6
"""Calls of a brief burst; how many times slower than the fastest a candidate is left at that; a call's host seconds."""
MADE = 24
"""The most configurations of each kind that are made for a shape and searched."""
SLACK, ROOM = 3.0, 2 << 30
"""Microseconds that a call alone may take longer than in a burst; the most bytes of a candidate's workspaces."""
Shape = tuple[int, int, int]


def drawn(seed: int, count: int) -> list[Shape]:
    """Log-uniform extents; of two in three shapes, N and K are multiples of 8."""
    random = Random(seed)  # noqa: S311 reason: a seed makes the shapes repeatable

    def extent(least: int) -> int:
        return round(math.exp(random.uniform(math.log(least), math.log(MOST))))

    found: list[Shape] = []
    for number in range(count):
        m, n, k = extent(1), extent(LEAST), extent(LEAST)
        found.append((m, n, k) if number % 3 == 0 else (m, 8 * math.ceil(n / 8), 8 * math.ceil(k / 8)))
    return found


@cache
def chosen(shape: Shape) -> tuple[str, ...]:
    """What `argus.matmul` tries in order for row-major A and column-major B of bf16."""
    return candidates(FAMILY, shape, a_transposed=False, b_transposed=False, device="")


def prepared(name: str, *, unproved: bool = False) -> tuple[str, str, str]:
    """Verify and compile a configuration: its name, the path of its description, or why there is none."""
    try:
        made, _ = candidate(FAMILY, name).traced()
        if not unproved:
            with argus.use_solver("z3"):
                said = (verify_program_cached(made) if isinstance(made, Program) else verify_cached(made)).verdict
            if said != "proved":
                return name, "", f"it is {said}"
        return name, str(build_program_cached(made) if isinstance(made, Program) else build_cached(made)), ""
    except ArgusError as problem:
        return name, "", str(problem)


def all_prepared(names: Sequence[str], *, unproved: bool) -> dict[str, Any]:
    """The configurations on the device, by name, without those that are not proved or not compiled."""
    began, found = time.perf_counter(), dict[str, Any]()
    torch: Any = import_module("torch")
    torch.zeros(1, device="cuda")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for name, path, why in pool.map(partial(prepared, unproved=unproved), names):
            if why:
                print(f"{name}: left out: {why}", flush=True)
            else:
                found[name] = loaded(torch, Path(path))
    print(f"{len(found)} of {len(names)} configurations ready in {time.perf_counter() - began:.0f} s", flush=True)
    return found


# -- on the GPU ----------------------------------------------------------------------------------------------


class Case:
    """A shape's operands, in sets that together exceed the L2 cache if few enough do, with the product in float64."""

    def __init__(self, torch: Any, shape: Shape) -> None:  # noqa: ANN401 reason: untyped
        m, n, k = self.shape = shape
        held = 2 * (m * k + n * k + m * n)
        self.torch, count = torch, 2 if held < SMALL else min(SETS, -(-CACHE // held))
        self.sets = [self._tensors() for _ in range(count)]
        self.turns = itertools.cycle(range(count))
        self.sizes = dict(zip("MNK", shape, strict=True))
        a, b = self.sets[0]["A"].double(), self.sets[0]["B"].double()
        self.wanted = a @ b.T
        self.scale = self.wanted.abs() + k**0.5
        self.stream = torch.cuda.current_stream().cuda_stream

    def _tensors(self) -> dict[str, Any]:
        m, n, k = self.shape
        made = {name: self.torch.randn(rows, k, device="cuda").bfloat16() for name, rows in (("A", m), ("B", n))}
        return made | {"C": self.torch.empty(m, n, device="cuda", dtype=self.torch.bfloat16)}

    def peer(self) -> Callable[[], object]:
        def bound(given: Mapping[str, Any]) -> Callable[[], object]:
            a, b, c = given["A"], given["B"].T, given["C"]
            return lambda: self.torch.mm(a, b, out=c)

        return rotating([bound(each) for each in self.sets], self.turns)

    def prepared(self, kernel: Any) -> Any:  # noqa: ANN401 reason: untyped
        """The kernel at these sizes; None where it does not take them."""
        try:
            spaces = kernel.program.prepare(self.sizes).workspaces if hasattr(kernel, "program") else ()
            fits = sum(4 * math.prod(each.shape) for each in spaces) <= ROOM
            return kernel.prepare(self.sizes) if fits else None
        except ArgusError:
            return None

    def error(self, at: Any) -> float:  # noqa: ANN401 reason: untyped
        """Of what it writes over NaN, relative to the magnitude and the square root of K."""
        given = self.sets[0]
        given["C"].fill_(float("nan"))
        at.bind(given, self.stream)()
        return ((given["C"].double() - self.wanted).abs() / self.scale).max().item()

    def launches(self, at: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
        """The next of its launches in rotation."""
        calls = [at.bind(each, self.stream) for each in self.sets]
        return rotating([lambda call=call, _alive=at: call() for call in calls], self.turns)

    def first(self, at: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
        """Its launch on the first operands."""
        call = at.bind(self.sets[0], self.stream)
        return lambda _alive=at: call()


def stopwatch(torch: Any, kernels: Mapping[str, Any]) -> Stopwatch:  # noqa: ANN401 reason: untyped
    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    return Stopwatch(next(iter(kernels.values())).driver, torch.cuda.current_stream().cuda_stream, hold)


def selected(shapes: Sequence[Shape], rounds: int, out: Path, *, unproved: bool) -> int:
    """Check and time what is selected for each shape; 1 if a result is wrong or a shape has none."""
    torch: Any = import_module("torch")
    kernels = all_prepared(sorted({name for shape in shapes for name in chosen(shape)}), unproved=unproved)
    watch, rows, failed = stopwatch(torch, kernels), list[dict[str, Any]](), 0
    for shape in shapes:
        case = Case(torch, shape)
        tried = ((name, case.prepared(kernels[name])) for name in chosen(shape) if name in kernels)
        name, at = next(((name, found) for name, found in tried if found is not None), ("", None))
        error = math.nan if at is None else case.error(at)
        if not error < CLOSE:
            failed += 1
            print(f"{shape}: {name or 'none of ' + ', '.join(chosen(shape))}: WRONG {error}", flush=True)
            continue
        calls = {"ours": case.launches(at), PEER: case.peer()}
        for regime in (SUM, DUTY_CYCLED):
            times = time_interleaved(watch, calls, regime, rounds)
            ratio, took = statistics.median(times.ratios("ours", PEER)), 1e3 * times.median("ours")
            row = {"shape": shape, "name": name, "regime": regime.name, "ratio": round(ratio, 4)}
            rows.append(row | {"microseconds": round(took, 2), "error": error})
    _store(out, SELECTED, torch, rows)
    for line in summary(rows):
        print(line, flush=True)
    print(f"{len(shapes) - failed} of {len(shapes)} right", flush=True)
    return int(failed > 0)


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The mean and the number of low ratios in each regime, then the shapes with the lowest."""
    shapes = dict.fromkeys(tuple(row["shape"]) for row in rows)
    ratios = {(tuple(row["shape"]), row["regime"]): row for row in rows}
    regimes = tuple(dict.fromkeys(row["regime"] for row in rows))
    for regime in regimes:
        found = [ratios[shape, regime]["ratio"] for shape in shapes]
        low, mean = sum(each < LOW for each in found), statistics.geometric_mean(found)
        yield f"{regime}: geometric mean {mean:.3f}, {low} of {len(found)} below {LOW}, least {min(found):.3f}"
    yield f"lowest ({' | '.join(regimes)}; microseconds):"
    for shape in sorted(shapes, key=lambda each: min(ratios[each, regime]["ratio"] for regime in regimes))[:SHOWN]:
        each = [ratios[shape, regime] for regime in regimes]
        said = " | ".join(f"{row['ratio']:.3f}" for row in each)
        took = " | ".join(f"{row['microseconds']:.1f}" for row in each)
        yield f"  {'x'.join(map(str, shape)):18} {each[0]['name']:28} {said}  ({took})"


# -- the fastest of many ---------------------------------------------------------------------------------------


def every(shapes: Sequence[Shape]) -> list[str]:
    """The autotuner's candidates, those made for the shapes, and products of copies."""
    made = {name for shape in shapes for name in made_for(shape)}
    return list(dict.fromkeys([*general(), *sorted(made)]))


def general() -> list[str]:
    """Candidates for all shapes."""
    return [*tuning_candidates(), *(f"{COPIED}{name}" for name in padded.FAMILIES[FAMILY].configs)]


@cache
def made_for(shape: Shape) -> list[str]:
    """The configurations made for a shape that the model expects to be the fastest, of each kind."""
    kinds: tuple[Mapping[str, Known], ...] = few_candidates(*shape), stream_candidates(*shape)
    return [name for known in kinds for name in sorted(known, key=lambda n: microseconds(known[n], *shape))[:MADE]]


def search(shapes: Sequence[Shape], names: Sequence[str], out: Path, *, unproved: bool) -> int:
    """Time all candidates, and print how the selected one compares with the fastest; 1 if a result is wrong."""
    torch: Any = import_module("torch")
    wanted = {name for shape in shapes for name in chosen(shape)}
    kernels = all_prepared(list(dict.fromkeys([*sorted(wanted), *names])), unproved=unproved)
    watch, rows, wrong = Brief(stopwatch(torch, kernels)), list[dict[str, Any]](), set[str]()
    for shape in shapes:
        case, took = Case(torch, shape), dict[str, tuple[float, float]]()
        peer = watch.both(case.peer())
        first = [name for name in chosen(shape) if name in kernels][:1]
        own = dict.fromkeys([*made_for(shape), *chosen(shape), *general()])
        others = (name for name in own if name in kernels and name not in first)
        for name in (*first, *others):
            found = _timed(case, watch, kernels[name], min((each for each, _ in took.values()), default=math.inf))
            if found is None:
                continue
            if not found[2] < CLOSE:
                wrong.add(name)
                print(f"{shape}: {name}: WRONG {found[2]}", flush=True)
                continue
            took[name] = found[:2]
        again = watch.both(case.peer())
        took[PEER] = min(peer[0], again[0]), min(peer[1], again[1])
        near = FAR * min(math.prod(each) ** 0.5 for each in took.values())
        kept = {name: times for name, times in took.items() if name in (*first, PEER) or math.prod(times) ** 0.5 < near}
        took = {name: (round(burst, 2), round(alone, 2)) for name, (burst, alone) in kept.items()}
        rows.append({"shape": shape, "selected": first[0] if first and first[0] in took else None, "took": took})
        print(_said(rows[-1]), flush=True)
    _store(out, SEARCH, torch, rows)
    print(f"wrong: {', '.join(sorted(wrong)) or 'none'}", flush=True)
    return int(bool(wrong))


def _timed(case: Case, watch: Brief, kernel: Any, best: float) -> tuple[float, float, float] | None:  # noqa: ANN401 reason: untyped
    """Microseconds in a burst and alone, and the error; of a slow one those of a burst are those alone."""
    at = case.prepared(kernel)
    if at is None:
        return None
    try:
        error = case.error(at)
    except ArgusError:  # a kernel of a number of rows of A takes no other
        return None
    alone = watch.alone(case.first(at))
    if not error < CLOSE or alone > FAR * best + SLACK:
        return alone, alone, error
    return *watch.both(case.launches(at)), error


@frozen
class Brief:
    """Times without pauses, in microseconds."""

    watch: Stopwatch

    def alone(self, call: Callable[[], object], times: int = 2) -> float:
        call()
        return min(self._mean(call, 1) for _ in range(times))

    def both(self, call: Callable[[], object]) -> tuple[float, float]:
        """In a burst, and alone."""
        alone = self.alone(call, 3)
        calls = max(3, min(CALLS, round(3000 / alone)))
        return min(self._mean(call, calls) for _ in range(2)), alone

    def _mean(self, call: Callable[[], object], calls: int) -> float:
        driver, stream = self.watch.driver, self.watch.stream
        begin, end = (driver.new_event() for _ in range(2))
        self.watch.hold(LAUNCH * (calls + 3))
        driver.record(begin, stream)
        for _ in range(calls):
            call()
        driver.record(end, stream)
        driver.wait(end)
        took = 1e3 * driver.elapsed(begin, end) / calls
        for event in (begin, end):
            driver.drop(event)
        return took


def _said(row: Mapping[str, Any]) -> str:
    took, name = row["took"], row["selected"]
    parts = [f"{'x'.join(map(str, row['shape'])):18} {name or 'nothing':26}"]
    for number, regime in enumerate(("burst", "alone")):
        ours = {each: times[number] for each, times in took.items() if each != PEER}
        best = min(ours, key=ours.__getitem__)
        mine = took[name][number] if name else math.inf
        parts.append(f"{regime}: {took[PEER][number] / mine:.3f} of {PEER}, {mine / ours[best]:.3f} of {best}")
        parts.append(f"({mine:.1f}, {ours[best]:.1f}, {took[PEER][number]:.1f} us)")
    return " ".join(parts)


def _store(out: Path, name: str, torch: Any, rows: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401 reason: untyped
    out.mkdir(parents=True, exist_ok=True)
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    (out / name).write_text(json.dumps({**about, "rows": rows}), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("selected", "search"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--shapes", type=shapes_of, default=[], help="MxNxK,..., instead of random ones")
    parser.add_argument("--named", action="store_true", help="the sixteen named ones, instead of random ones")
    parser.add_argument("--names", type=Path, help="a file of candidates, one a line, instead of the autotuner's")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--unproved", action="store_true", help="build without verifying, for experiments")
    asked = parser.parse_args()
    shapes = asked.shapes or (NAMED if asked.named else drawn(asked.seed, asked.count))
    if asked.part == "selected":
        return selected(shapes, asked.rounds, asked.out, unproved=asked.unproved)
    names = asked.names.read_text("utf-8").split() if asked.names else every(shapes)
    return search(shapes, names, asked.out, unproved=asked.unproved)


if __name__ == "__main__":
    raise SystemExit(main())
