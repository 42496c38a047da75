"""Convolutions of KernelBench's first level on an H200, beside cuDNN: f32 with and without TF32, and bf16.

python benchmarks/conv_h200.py build|run [--problems 50,55] [--prove]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import built_variants
from attrs import evolve, frozen

from argus.kernels.nests.contraction import convolution
from argus.kernels.schedules.shifted import Shifted, shifted_for
from argus.nests.convolution import Convolution, Taps

FOLDER = Path(os.environ.get("CONV_FOLDER", "build/conv"))
KINDS = {"f32": ("f32", 6), "f32 high": ("f32", 3), "bf16": ("bf16", 1)}


@frozen
class Problem:
    """x and w: shapes, as torch has them. extra: outputs beyond, of a transposed convolution."""

    number: int
    x: tuple[int, ...]
    w: tuple[int, ...]
    transposed: bool = False
    stride: tuple[int, ...] = ()
    pad: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    groups: int = 1

    @property
    def conv(self) -> Convolution:
        taps = self.w[2:]
        numbers = zip(taps, *(self.of(each) for each in ("stride", "dilation", "pad")), strict=True)
        return Convolution(tuple(Taps(t, s, d, p, self.transposed) for t, s, d, p in numbers), self.groups)

    def of(self, name: str) -> tuple[int, ...]:
        return getattr(self, name) or ((0 if name in ("pad", "extra") else 1,) * len(self.w[2:]))

    @property
    def outputs(self) -> int:
        return self.w[1] * self.groups if self.transposed else self.w[0]

    @property
    def y(self) -> tuple[int, ...]:
        found: list[int] = []
        for extent, axis, extra in zip(self.x[2:], self.conv.axes, self.of("extra"), strict=True):
            reach = axis.dilation * (axis.taps - 1)
            if self.transposed:
                found.append((extent - 1) * axis.stride - 2 * axis.pad + reach + extra + 1)
            else:
                found.append((extent + 2 * axis.pad - reach - 1) // axis.stride + 1)
        return (self.x[0], self.outputs, *found)

    @property
    def operations(self) -> float:
        """Of products and sums, as torch's formula counts them."""
        places = self.x if self.transposed else self.y
        count = 2.0 * places[0] * self.x[1] * self.w[1] if self.transposed else 2.0 * places[0] * self.w[0] * self.w[1]
        for each in (*places[2:], *self.w[2:]):
            count *= each
        return count

    def config(self, products: int) -> Shifted:
        return shifted_for(self.conv, self.x[1] // self.groups, self.outputs // self.groups, self.y[-1], products)


PROBLEMS = (
    Problem(50, (256, 3, 224, 224), (96, 3, 11, 11), stride=(4, 4), pad=(2, 2)),
    Problem(54, (16, 3, 64, 64, 64), (64, 3, 3, 3, 3)),
    Problem(55, (8, 64, 512, 1024), (128, 64, 3, 3)),
    Problem(56, (8, 64, 512, 256), (128, 64, 5, 7)),
    Problem(57, (8, 64, 1024, 1024), (64, 64, 3, 3), transposed=True),
    Problem(58, (16, 32, 16, 32, 64), (32, 16, 3, 5, 7), transposed=True),
    Problem(59, (16, 3, 256, 256, 10), (64, 3, 3, 3, 1)),
    Problem(60, (16, 3, 64, 64, 64), (64, 3, 3, 5, 7)),
    Problem(61, (8, 48, 64, 64, 64), (48, 48, 3, 3, 3), transposed=True),
    Problem(62, (8, 32, 512, 512), (64, 32, 5, 9)),
    Problem(63, (16, 16, 1024, 1024), (128, 16, 3, 3)),
    Problem(64, (64, 128, 65536), (128, 128, 3), transposed=True),
    Problem(65, (8, 64, 512, 512), (64, 64, 3, 7), transposed=True),
    Problem(66, (8, 3, 16, 128, 128), (64, 3, 3, 5, 7)),
    Problem(67, (32, 64, 131072), (128, 64, 3)),
    Problem(68, (16, 32, 64, 64, 64), (32, 64, 3, 5, 5), transposed=True),
    Problem(69, (64, 64, 128, 256), (64, 128, 3, 5), transposed=True),
    Problem(70, (8, 48, 96, 96, 96), (48, 24, 3, 3, 3), transposed=True),
    Problem(71, (8, 32, 512, 1024), (32, 32, 3, 3), transposed=True),
    Problem(72, (8, 32, 12, 24, 48), (32, 8, 3, 5, 7), True, (2, 2, 2), (1, 2, 3), extra=(1, 1, 1), groups=4),
    Problem(73, (4, 32, 32, 64, 128), (32, 32, 3, 3, 3), True, (2, 2, 2), (1, 1, 1)),
    Problem(74, (32, 32, 131072), (32, 64, 5), transposed=True, dilation=(3,)),
    Problem(75, (16, 32, 128, 256), (32, 16, 3, 5), True, (2, 3), (1, 2), (2, 1), groups=4),
    Problem(76, (64, 64, 524280), (128, 64, 3), stride=(3,), dilation=(4,)),
    Problem(77, (16, 32, 16, 32, 32), (32, 64, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), (2, 2, 2)),
    Problem(78, (8, 32, 512, 1024), (32, 32, 3, 7), transposed=True, pad=(1, 3)),
    Problem(79, (16, 32, 131072), (32, 64, 3), True, (2,), (1,), (2,)),
    Problem(80, (8, 32, 512, 512), (64, 32, 5, 9), pad=(2, 4), dilation=(2, 3)),
    Problem(81, (16, 32, 64, 128), (32, 64, 3, 3), True, (5, 5), (1, 1), (2, 2)),
    Problem(87, (16, 64, 1024, 1024), (128, 64, 1, 1)),
)
"""By their number in KernelBench's level 1. In place of a depthwise one, 86 has 87's product."""


# -- build: on processors ------------------------------------------------------------------------------------


def variants(chosen: argparse.Namespace) -> Iterator[tuple[Problem, str]]:
    for problem in PROBLEMS:
        for kind in chosen.kinds:
            if not chosen.problems or problem.number in chosen.problems:
                yield problem, kind


def made(given: tuple[Problem, str, bool]) -> tuple[int, str, str]:
    """Build a variant; with its verdict, if that is asked for."""
    from argus.core.query import Budget  # noqa: PLC0415 reason: the run needs none
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    problem, kind, prove = given
    dtype, products = KINDS[kind]
    start = time.perf_counter()
    program = convolution(problem.conv, dtype, {"": problem.config(products)}).trace("")
    build_program(program, FOLDER / f"{problem.number}_{kind.replace(' ', '_')}")
    built = time.perf_counter()
    said = ""
    if prove:
        said = type(verify_program(program, solver="z3", budget=evolve(Budget(), runs=0)).verdict).__name__
    return problem.number, kind, f"built in {built - start:.0f} s {said} {time.perf_counter() - built:.0f} s"


def build(chosen: argparse.Namespace) -> int:
    failed = 0
    given = [(problem, kind, chosen.prove) for problem, kind in variants(chosen)]
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        for number, kind, said in pool.imap_unordered(made, given):
            failed += "Unknown" in said or "Refuted" in said
            print(f"{number} {kind}: {said}", flush=True)
    return failed


# -- run: on the GPU -----------------------------------------------------------------------------------------


class Runner:
    """One problem on the GPU."""

    def __init__(self, torch: Any, problem: Problem, batch: int) -> None:  # noqa: ANN401 reason: untyped
        self.torch, self.problem = torch, problem
        random = torch.Generator("cuda").manual_seed(problem.number)
        self.x = torch.rand((batch, *problem.x[1:]), device="cuda", generator=random)
        self.w = torch.rand(problem.w, device="cuda", generator=random) - 0.5

    def theirs(self, x: Any, w: Any) -> Any:  # noqa: ANN401 reason: untyped
        names = {"stride": "stride", "padding": "pad", "dilation": "dilation"}
        options: dict[str, Any] = {name: self.problem.of(own) for name, own in names.items()}
        if self.problem.transposed:
            options["output_padding"] = self.problem.of("extra")
        of = f"conv{'_transpose' if self.problem.transposed else ''}{len(self.problem.w) - 2}d"
        return getattr(self.torch.nn.functional, of)(x, w, groups=self.problem.groups, **options)

    def ours(self, kind: str, load: Callable[[Path], Any]) -> tuple[Callable[[], None], Any]:
        """Launches on tensors of their type, with an output and workspaces of NaN, and the output."""
        torch, problem = self.torch, self.problem
        (path,) = (FOLDER / f"{problem.number}_{kind.replace(' ', '_')}").glob("*.json")
        dtype = torch.float32 if KINDS[kind][0] == "f32" else torch.bfloat16
        x, w = self.x.to(dtype), self.w.to(dtype)
        y = torch.full((len(x), *problem.y[1:]), float("nan"), device="cuda", dtype=dtype)
        spaces = range(len(problem.w) - 2)
        sizes = {"N": len(x), "C": x.shape[1], "O": y.shape[1], "B": w.shape[1]}
        sizes |= {f"{letter}{axis}": t.shape[2 + axis] for letter, t in (("I", x), ("Y", y)) for axis in spaces}
        prepared = load(path).prepare(sizes)
        types = {"f32": torch.float32, "bf16": torch.bfloat16}
        rooms = {
            each.name: torch.full(each.shape, float("nan"), device="cuda", dtype=types[each.dtype])
            for each in prepared.workspaces
        }
        launch = prepared.bind({"X": x, "F": w, "Y": y, **rooms}, torch.cuda.current_stream().cuda_stream)
        return built_variants.keeping(launch, x, w, rooms), y


def check(torch: Any, problem: Problem, kinds: list[str], load: Callable[[Path], Any]) -> dict[str, list[float]]:  # noqa: ANN401 reason: untyped
    """The largest errors against float64, absolute, for one input: of cuDNN in each mode, and of ours."""
    runner = Runner(torch, problem, 1)
    exact = runner.theirs(runner.x.double(), runner.w.double())
    found: dict[str, Any] = {}
    for tf32 in (True, False):
        torch.backends.cudnn.allow_tf32 = tf32
        found["cudnn tf32" if tf32 else "cudnn f32"] = runner.theirs(runner.x, runner.w)
    found["cudnn bf16"] = runner.theirs(runner.x.bfloat16(), runner.w.bfloat16())
    for kind in kinds:
        call, y = runner.ours(kind, load)
        call()
        torch.cuda.synchronize()
        found[kind] = y
    scale = exact.abs().max().item()
    errors = {name: (each.double() - exact).abs() for name, each in found.items()}
    return {
        name: [each.max().item() if not each.isnan().any() else float("nan"), each.max().item() / scale]
        for name, each in errors.items()
    }


def run(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    torch.zeros(1, device="cuda")
    load = import_module("argus.runtime.programs").load_program
    timing = import_module("argus.runtime.gpu.timing")
    driver = import_module("argus.runtime.gpu.find").find_driver()

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(driver, torch.cuda.current_stream().cuda_stream, hold)
    rows: list[dict[str, Any]] = []
    begin = time.perf_counter()
    known = {problem.number: problem for problem in PROBLEMS}
    for problem in map(known.__getitem__, chosen.problems or known):
        if time.perf_counter() - begin > chosen.seconds:
            print("out of time", flush=True)
            break
        try:
            rows += list(_measured(torch, problem, chosen, load, (timing, watch)))
        except Exception as failure:  # noqa: BLE001 reason: one problem's failure is a row, and the others run
            rows.append({"problem": problem.number, "failed": repr(failure)})
            print(rows[-1], flush=True)
        torch.cuda.empty_cache()
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "conv_h200.json").write_text(json.dumps(rows), "utf-8")
    return 0


def _measured(
    torch: Any,  # noqa: ANN401 reason: untyped
    problem: Problem,
    chosen: argparse.Namespace,
    load: Callable[[Path], Any],
    by: tuple[Any, Any],
) -> Iterator[dict[str, Any]]:
    timing, watch = by
    errors = check(torch, problem, chosen.kinds, load)
    short = {name: f"{one:.1e}" for name, (one, _) in errors.items()}
    print(f"{problem.number} errors {short}", flush=True)
    runner = Runner(torch, problem, problem.x[0])
    calls: dict[str, Callable[[], object]] = {kind: runner.ours(kind, load)[0] for kind in chosen.kinds}
    half = runner.x.bfloat16(), runner.w.bfloat16()

    def with_tf32(allowed: bool) -> Callable[[], object]:
        def call() -> object:
            torch.backends.cudnn.allow_tf32 = allowed
            return runner.theirs(runner.x, runner.w)

        return call

    calls |= {"cudnn tf32": with_tf32(True), "cudnn f32": with_tf32(False), "cudnn bf16": lambda: runner.theirs(*half)}
    for call in calls.values():
        call()
    torch.cuda.synchronize()
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, calls, regime, chosen.rounds)
        medians = {name: statistics.median(times.rounds[name]) for name in calls}
        for name, taken in medians.items():
            yield {
                "problem": problem.number,
                "regime": regime.name,
                "name": name,
                "milliseconds": taken,
                "tflops": 1e-9 * problem.operations / taken,
                "error": errors[name],
            }
        print(f"{problem.number} {regime.name} " + ", ".join(f"{n} {t:.2f} ms" for n, t in medians.items()), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument("--problems", type=lambda text: [int(each) for each in text.split(",")], default=[])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=["f32", "bf16"])
    parser.add_argument("--prove", action="store_true", help="verify each program, too")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem later")
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    sys.exit(main())
