"""Convolutions of KernelBench's two levels on an H200, beside cuDNN: f32 with and without TF32, and bf16.

python benchmarks/conv_h200.py build|run|fit [--problems 1_50,2_6] [--prove]
"""

from __future__ import annotations

import argparse
import json
import math
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
from attrs import evolve
from convolutions import PROBLEMS, Problem

from argus.core.ir import Kernel, Program
from argus.kernels.nests.contraction import convolution
from argus.kernels.nests.convolution_costs import Work
from argus.kernels.nests.direct import direct
from argus.kernels.nests.direct_tiles import Direct, config_for
from argus.kernels.nests.made import template
from argus.kernels.schedules.class_tiles import classes_for
from argus.kernels.schedules.shifted import Shifted
from argus.kernels.schedules.shifted_classes import Classes
from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.nests.affine import computed
from argus.nests.convolution_forms import convolution_form

FOLDER = Path(os.environ.get("CONV_FOLDER", "build/conv"))
KINDS = {"f32": ("f32", 6), "f32 high": ("f32", 3), "bf16": ("bf16", 1), "direct": ("f32", 0), "classes": ("f32", 3)}
"""The type, and the products of parts; 0: by FMAs. "direct width=16" has this number in its configuration."""
GUARD = 4096
"""Elements before and after an output that must stay as they are."""


# -- build: on processors ------------------------------------------------------------------------------------


def of_kind(kind: str) -> tuple[str, int]:
    return KINDS[next(each for each in sorted(KINDS, key=len, reverse=True) if kind.startswith(each))]


def changes(kind: str) -> dict[str, Any]:
    """The numbers of a configuration that a kind names."""
    return {name: int(number) for name, equals, number in (each.partition("=") for each in kind.split()) if equals}


def shifted_config(problem: Problem, kind: str) -> Shifted | Classes:
    """The configuration on matrix units for this problem."""
    one, other = (number // problem.groups for number in (problem.x[1], problem.outputs))
    count, _, *places = problem.y
    if kind.startswith("classes"):
        of_classes = classes_for(problem.conv, problem.x, problem.y, of_kind(kind)[1])
        assert of_classes is not None
        return evolve(of_classes, **changes(kind))
    found = shifted_for(problem.conv, one, other, count, places, of_kind(kind)[1])
    return evolve(found, **changes(kind))


def by_fmas(problem: Problem, kind: str) -> Kernel:
    """The kernel of FMAs for this problem."""
    form, sizes = problem.form
    config = config_for(form, sizes)
    assert isinstance(config, Direct)
    return template(form, direct, evolve(config, **changes(kind)), "direct").trace()


def variants(chosen: argparse.Namespace) -> Iterator[tuple[Problem, str]]:
    for problem in PROBLEMS:
        for kind in chosen.kinds:
            if (not chosen.problems or problem.name in chosen.problems) and _has(problem, kind):
                yield problem, kind


def _has(problem: Problem, kind: str) -> bool:
    """Whether a kind is tried: many channels are for matrix units, and groups for FMAs alone."""
    if kind.startswith("classes") and classes_for(problem.conv, problem.x, problem.y, of_kind(kind)[1]) is None:
        return False
    if of_kind(kind)[1]:
        return problem.groups == 1
    taps = math.prod(problem.w[2:])
    channels = problem.x[1] // problem.groups
    return taps <= _FEW_TAPS or channels <= (_MOST_OF_CLASSES if problem.conv.classes > 1 else _MOST_CHANNELS)


_MOST_CHANNELS, _MOST_OF_CLASSES = 32, 64
"""Channels of inputs up to which FMAs are tried, and of transposed convolutions with steps."""
_FEW_TAPS = 3
"""With which they are tried for any number of channels."""


def made(given: tuple[Problem, str, bool]) -> tuple[str, str, str]:
    """Build a variant; with its verdict, if that is asked for."""
    from argus.core.query import Budget  # noqa: PLC0415 reason: the run needs none
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    problem, kind, prove = given
    dtype, products = of_kind(kind)
    start = time.perf_counter()
    made: Kernel | Program
    if products:
        made = convolution(problem.conv, dtype, {"": shifted_config(problem, kind)}).trace("")
        report = str([each.report.registers for each in build_program(made, _folder(problem, kind)).kernels])
    else:
        made = by_fmas(problem, kind)
        report = str(compiled(made, "sm_90a", _folder(problem, kind)).report)
    built = time.perf_counter()
    said = ""
    if prove:
        limits = evolve(Budget(), runs=0)
        verify_it: Callable[..., Any] = verify_program if isinstance(made, Program) else verify
        said = type(verify_it(made, solver="z3", budget=limits).verdict).__name__
    return problem.name, kind, f"built in {built - start:.0f} s {said} {time.perf_counter() - built:.0f} s {report}"


def _folder(problem: Problem, kind: str) -> Path:
    return FOLDER / f"{problem.name}_{kind.replace(' ', '_').replace('=', '')}"


def build(chosen: argparse.Namespace) -> int:
    failed = 0
    given = [
        (problem, kind, chosen.prove)
        for problem, kind in variants(chosen)
        if not (chosen.missing and list(_folder(problem, kind).glob("*.json")))
    ]
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        for name, kind, said in pool.imap_unordered(made, given):
            failed += "Unknown" in said or "Refuted" in said
            print(f"{name} {kind}: {said}", flush=True)
    return failed


# -- run: on the GPU -----------------------------------------------------------------------------------------


class Runner:
    """One problem on the GPU."""

    def __init__(self, torch: Any, problem: Problem) -> None:  # noqa: ANN401 reason: untyped
        self.torch, self.problem = torch, problem
        self.wholes: dict[str, Any] = {}
        random = torch.Generator("cuda").manual_seed(problem.number)
        self.x = torch.rand(problem.x, device="cuda", generator=random)
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
        (path,) = _folder(problem, kind).glob("*.json")
        dtype = torch.float32 if of_kind(kind)[0] == "f32" else torch.bfloat16
        x, w = self.x.to(dtype), self.w.to(dtype)
        count = math.prod(problem.y)
        whole = torch.ones(count + 2 * GUARD, device="cuda", dtype=dtype)
        whole[GUARD : GUARD + count] = float("nan")
        y = whole[GUARD : GUARD + count].view(problem.y)
        self.wholes[kind] = whole
        if not of_kind(kind)[1]:
            (form, numbers), given = problem.form, {"x": x, "w": w, "y": y}
            shapes = {each.type.name: [int(computed(n, numbers)) for n in each.type.shape] for each in form.parameters}
            tensors = {each.type.name: given[each.source].view(shapes[each.type.name]) for each in form.parameters}
            one = import_module("argus.runtime.gpu.launch").load(path).prepare(numbers)
            launch = one.bind(tensors, torch.cuda.current_stream().cuda_stream)
            return built_variants.keeping(launch, x, w, y), y
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

    def errors(self, kinds: list[str], load: Callable[[Path], Any]) -> dict[str, list[float]]:
        """The largest errors against float64 of the first and the last input, absolute and relative to the largest:
        of cuDNN in each mode, and of ours. Elsewhere ours is compared with cuDNN without TF32: infinite where it is
        far, or where memory around the output changed; nan where an element was not written.
        """
        torch = self.torch
        some = [0, -1] if len(self.x) > 1 else [0]
        exact = self.theirs(self.x[some].double(), self.w.double())
        scale = exact.abs().max().item()
        found: dict[str, list[float]] = {}
        for tf32 in (True, False):
            torch.backends.cudnn.allow_tf32 = tf32
            theirs = self.theirs(self.x, self.w)
            error = (theirs[some].double() - exact).abs().max().item()
            found["cudnn tf32" if tf32 else "cudnn f32"] = [error, error / scale]
        for kind in kinds:
            call, y = self.ours(kind, load)
            call()
            torch.cuda.synchronize()
            whole = self.wholes[kind]
            error = (y[some].double() - exact).abs().max().item()
            apart = max(((mine.float() - own).abs().max().item() for mine, own in zip(y, theirs, strict=True)))
            kept = bool((whole[:GUARD] == 1).all() & (whole[-GUARD:] == 1).all())
            if math.isnan(error) or math.isnan(apart):
                error = float("nan")
            elif not kept or apart > (0.02 if of_kind(kind)[0] == "bf16" else 1e-4) * scale:
                error = float("inf")
            found[kind] = [error, error / scale]
        return found


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
    known = {problem.name: problem for problem in PROBLEMS}
    for problem in map(known.__getitem__, chosen.problems or known):
        if time.perf_counter() - begin > chosen.seconds:
            print("out of time", flush=True)
            break
        try:
            rows += list(_measured(torch, problem, chosen, load, (timing, watch)))
        except Exception as failure:  # noqa: BLE001 reason: one problem's failure is a row, and the others run
            rows.append({"problem": problem.name, "failed": repr(failure)})
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
    runner = Runner(torch, problem)
    kinds = [kind for kind in chosen.kinds if _folder(problem, kind).exists()]
    errors = runner.errors(kinds, load)
    short = {name: f"{one:.1e}" for name, (one, _) in errors.items()}
    print(f"{problem.name} errors {short}", flush=True)
    calls: dict[str, Callable[[], object]] = {kind: runner.ours(kind, load)[0] for kind in kinds}

    def with_tf32(allowed: bool) -> Callable[[], object]:
        def call() -> object:
            torch.backends.cudnn.allow_tf32 = allowed
            return runner.theirs(runner.x, runner.w)

        return call

    calls |= {"cudnn tf32": with_tf32(True), "cudnn f32": with_tf32(False)}
    if "bf16" in kinds:
        half = runner.x.bfloat16(), runner.w.bfloat16()
        calls["cudnn bf16"] = lambda: runner.theirs(*half)
    for call in calls.values():
        call()
    torch.cuda.synchronize()
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, calls, regime, chosen.rounds)
        medians = {name: statistics.median(times.rounds[name]) for name in calls}
        for name, taken in medians.items():
            yield {
                "problem": problem.name,
                "regime": regime.name,
                "name": name,
                "milliseconds": taken,
                "tflops": 1e-9 * problem.operations / taken,
                "error": errors.get(name),
            }
        print(f"{problem.name} {regime.name} " + ", ".join(f"{n} {t:.2f} ms" for n, t in medians.items()), flush=True)


# -- fit: of what a run has measured -------------------------------------------------------------------------


def fit(chosen: argparse.Namespace) -> int:
    """Print the numbers of `argus.kernels.nests.convolution_costs`, by least squares of relative errors, and these."""
    numpy: Any = import_module("numpy")
    rows = [row for path in chosen.out.rglob("conv_h200.json") for row in json.loads(path.read_text("utf-8"))]
    known = {problem.name: problem for problem in PROBLEMS}
    for kind in ("f32", "direct", "classes"):
        times = {
            (row["problem"], row["name"]): row["milliseconds"]
            for row in rows
            if row["regime"] == "sustained" and _is_fitted(known[row["problem"]], kind, row.get("name", ""))
        }
        if not times:
            continue
        amounts = numpy.array([_amounts(known[problem], name) for problem, name in times])
        taken = numpy.array(list(times.values()))
        found = numpy.linalg.lstsq(amounts / taken[:, None], numpy.ones(len(taken)), rcond=None)[0]
        print(kind, "costs", ", ".join(f"{each:.0f}" for each in found))
        for (problem, name), estimate in zip(times, amounts @ found, strict=True):
            measured = times[problem, name]
            print(
                f"  {problem} {name}: measured {measured:.2f} ms, estimated {estimate:.2f}, {estimate / measured:.2f}"
            )
    return 0


def _is_fitted(problem: Problem, kind: str, name: str) -> bool:
    """Whether a time is of the kind: of one configuration, or any with all classes in a tile."""
    own = name == kind or (kind == name.split(maxsplit=1)[0] == "classes")
    return own and problem.groups == 1 and _has(problem, kind)


def _amounts(problem: Problem, kind: str) -> tuple[float, ...]:
    work = Work(problem.conv, problem.x, problem.y)
    if kind == "f32":
        return work.on_matrix_units()
    if kind.startswith("classes"):
        of_classes = shifted_config(problem, kind)
        assert isinstance(of_classes, Classes)
        return work.by_classes(of_classes)
    form, sizes = problem.form
    config = config_for(form, sizes)
    assert isinstance(config, Direct)
    nest = form.nests[0]
    found = convolution_form(nest, {each.type.name: each.type for each in form.parameters})
    assert found is not None
    places = [int(computed(axis.extent, sizes)) for axis in nest.domain[-len(found.conv.axes) :]]
    extents = [int(computed(each, sizes)) for each in form.parameters[0].type.shape[-len(places) :]]
    work = Work(found.conv, (*problem.x[:2], *extents), (*problem.y[:2], *places))
    return work.by_fmas(config)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("build", "run", "fit"))
    parser.add_argument("--problems", type=lambda text: text.split(","), default=[])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=["direct", "f32"])
    parser.add_argument("--prove", action="store_true", help="verify each program, too")
    parser.add_argument("--missing", action="store_true", help="build what is not there yet")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem later")
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    return {"build": build, "run": run, "fit": fit}[chosen.part](chosen)


if __name__ == "__main__":
    sys.exit(main())
