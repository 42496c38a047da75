"""Products of f32 by parts in bf16 beside cuBLAS on an H200: `python benchmarks/f32_h200.py errors`, or `... speed`.

Both verify and compile what they run, by all processors, and check each result against float64, over NaN.

errors: the norm of the error over that of the product, and the largest error over the norms of the row and the column,
medians of draws, for K to 2^19 and uniform, normal, one-sided and badly scaled operands, beside SGEMM and TF32.

speed: TFLOP/s of several configurations for each shape, and of SGEMM and TF32, interleaved, in both regimes; `*` marks
the configuration that `argus.matmul` selects. `--out`: a folder for what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property, partial
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen
from gemm_h200 import loaded

import argus
from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.kernels.config_names import name_of
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_at_once import AtOnce
from argus.kernels.schedules.parts_in_ring import InRing
from argus.ops.choice_f32 import candidates
from argus.ops.matmul import candidate
from argus.runtime.gpu.timing import DUTY_CYCLED, SUSTAINED, Stopwatch, time_interleaved
from argus.runtime.kernel_cache import build_cached, build_program_cached, verify_cached, verify_program_cached

FOLDER = Path(__file__).resolve().parent.parent / "build" / "f32_h200"
_RINGS: tuple[dict[str, int], ...] = ({"group": 0}, {"group": 4}, {"stages": 2})
NORMAL, EXACT, WIDE, PAIRS, PAIRED, ORDERED, SHORT, SHARED, SPLIT, SPLIT_EXACT, RING, THREE, ONE = ALL = tuple(
    name_of(each)
    for each in (
        Parts(),
        Parts(compensated=True),
        Parts(bm=256, stages=3),
        Parts(bm=256, stages=3, cluster=(1, 2)),
        Parts(cluster=(1, 2), compensated=True),
        Parts(ordered=True, compensated=True),
        Parts(bk=16, stages=8, compensated=True),
        Parts(bn=192, stages=3, cluster=(2, 1), compensated=True),
        AtOnce(),
        AtOnce(compensated=True),
        InRing(),
        Parts(products=3, bm=256, cluster=(1, 2)),
        Parts(products=1, bm=256, bk=64, cluster=(1, 2)),
    )
)
LARGE = (NORMAL, EXACT, PAIRS, PAIRED, RING)
ROWS_OF_WEIGHTS = (*(NORMAL, WIDE, PAIRS, SPLIT, RING), *(name_of(InRing(**each)) for each in _RINGS))
THIN = (NORMAL, WIDE, EXACT, SPLIT, RING, "fma_vector4", "fma_each8_vector4")
ODD = tuple(
    name_of(each)
    for each in (
        Parts(wide=False),
        Parts(bm=256, stages=3, cluster=(1, 2), wide=False),
        Parts(bm=256, stages=3, cluster=(1, 2), wide=False, padded=32),
        Parts(wide=False, compensated=True),
        Parts(wide=False, compensated=True, padded=32),
        Parts(wide=False, compensated=True, padded=64),
    )
)
LONG_SUMS = (
    *("parts_chunk8192", "parts_chunk4096_compensated", "parts_chunk8192_compensated"),
    *("atonce_chunk2048", "atonce_chunk8192", "atonce_chunk4096_compensated", "atonce_chunk8192_compensated"),
)
TINY = (
    *("fma_each2", "fma_each2_vector4", "fma_each2_chunk128_vector4", "fma_bk8_chunk64_vector4", NORMAL),
    *(SPLIT, "atonce_chunk128", "atonce_bn64", "atonce_bn64_chunk128", "atonce_bk16_chunk64"),
)
SMALL = (
    *("fma_chunk128_vector4", "fma_chunk256_vector4", "fma_across8_chunk128_vector4", "fma", NORMAL, "parts_chunk256"),
    *(SPLIT, "atonce_chunk128", "atonce_chunk192", "atonce_chunk256", "atonce_chunk256_compensated", "atonce_bn64"),
)
MIDDLE = (
    *("parts_chunk256", "parts_chunk512", "parts_chunk512_compensated", "atonce_chunk512", "atonce_chunk256", NORMAL),
    *(EXACT, SPLIT, SPLIT_EXACT, "fma_chunk256_vector4"),
)
SEVERAL = ("several", "several_rows2", "several_steps2", "several_rows2_steps2", "several_rows8")
FEW = ("atonce_chunk256", "atonce_chunk512", "fma_each1_across8_chunk256_vector4", "fma_each1_across4_chunk256_vector4")
IN_ERRORS = (
    *(NORMAL, EXACT, SHORT, "parts_chunk4096", "parts_chunk4096_compensated", "parts_chunk512_compensated"),
    *(SPLIT, SPLIT_EXACT, "atonce_bk16_compensated", "atonce_chunk512_compensated"),
    *("fma", "fma_chunk128_vector4", THREE),
)
OURS = (EXACT, SPLIT_EXACT)
"""Of which errors are compared with those of SGEMM."""
DEPTHS = (64, 512, 4096, 32768, 1 << 17, 1 << 19)
KINDS = ("uniform", "normal", "one-sided", "badly scaled")
ROWS = 256
SGEMM, TF32 = "SGEMM", "TF32"
SUM = evolve(SUSTAINED, burst=8.0, lead=1)


@frozen
class Shape:
    """C = op(A) op(B), of z products if z is not 0. layout: as in BLAS of row-major matrices."""

    m: int
    n: int
    k: int
    layout: str = "nn"
    z: int = 0
    names: tuple[str, ...] = LARGE
    what: str = ""

    @property
    def family(self) -> str:
        return f"{'bmm' if self.z else 'gemm'}_{self.layout}_f32"

    @property
    def sizes(self) -> dict[str, int]:
        return ({"Z": self.z} if self.z else {}) | {"M": self.m, "N": self.n, "K": self.k}

    @property
    def selected(self) -> str:
        turned = {"a_transposed": self.layout[0] == "t", "b_transposed": self.layout[1] == "n"}
        sizes = tuple(self.sizes.values())
        return candidates(self.family, sizes, **turned, device="", precision="highest")[0]

    @property
    def tried(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.selected, *self.names)))


def _square(n: int) -> Shape:
    """A small product has more schedules to choose from."""
    names = {256: TINY, 512: SMALL, 768: SMALL, 1024: MIDDLE, 1536: MIDDLE}.get(n, (NORMAL, EXACT, SPLIT, *MIDDLE[2:5]))
    return Shape(n, n, n, names=names)


def _few(m: int, layout: str) -> Shape:
    many = tuple(f"few_rows_{m}_{name}" for name in SEVERAL) if layout == "nt" and m > 1 else ()
    names = (*many, *FEW) if m > 1 else ()
    return Shape(m, 4096, 4096, layout, names=names, what=f"{m} rows")


def _weights(m: int, n: int) -> Shape:
    """Rows times a square matrix of weights, stored by their outputs, as level 2 of KernelBench has them."""
    return Shape(m, n, n, "nt", names=ROWS_OF_WEIGHTS, what=f"KernelBench, {m} rows times weights")


SHAPES = (
    Shape(256, 256, 1 << 19, names=LONG_SUMS, what="KernelBench 6"),
    *map(_square, (256, 512, 768, 1024, 1536, 2048)),
    *(_few(m, "nt") for m in (1, 2, 4, 8, 16)),
    _few(16, "nn"),
    Shape(4096, 4096, 4096, names=ALL, what="KernelBench 1"),
    Shape(2048, 4096, 8192, what="KernelBench 2"),
    Shape(512, 2048, 1024, z=128, names=(NORMAL, PAIRS, EXACT, SPLIT, SPLIT_EXACT, RING), what="KernelBench 3"),
    Shape(512, 512, 512, z=32, names=(NORMAL, EXACT, SPLIT_EXACT)),
    Shape(2048, 1, 1 << 20, "nt", names=(), what="KernelBench 4"),
    Shape(32768, 32768, 64, names=THIN, what="KernelBench 7"),
    Shape(32768, 32768, 32, names=THIN, what="KernelBench 9"),
    Shape(8205, 5921, 2949, names=ODD, what="KernelBench 8"),
    Shape(16384, 768, 2048, names=(*LARGE, SPLIT), what="KernelBench 10"),
    Shape(1 << 20, 768, 256, names=(PAIRS, EXACT, SPLIT, RING), what="KernelBench 11"),
    Shape(2048, 4096, 8192, "tn", names=(PAIRS, EXACT), what="KernelBench 16"),
    Shape(2048, 4096, 8192, "nt", names=(PAIRS, EXACT, RING), what="KernelBench 17"),
    Shape(2048, 4096, 8192, "tt", names=(PAIRS, EXACT), what="KernelBench 18"),
    Shape(8192, 8192, 8192, names=(PAIRS, EXACT, RING)),
    *(_weights(m, n) for m, n in ((128, 32768), (128, 16384), (256, 8192), (512, 8192), (1024, 8192), (4096, 4096))),
)


def prepared(made: tuple[str, str]) -> tuple[tuple[str, str], str, str]:
    """Verify and compile a configuration of a family: both, the path of its description, or why there is none."""
    try:
        traced, _ = candidate(*made).traced()
        with argus.use_solver("z3"):
            said = (verify_program_cached(traced) if isinstance(traced, Program) else verify_cached(traced)).verdict
        if said != "proved":
            return made, "", f"it is {said}"
        return made, str(build_program_cached(traced) if isinstance(traced, Program) else build_cached(traced)), ""
    except ArgusError as problem:
        return made, "", str(problem)


def all_prepared(torch: Any, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Any]:  # noqa: ANN401 reason: untyped
    """The configurations on the device, without those that are not proved or not compiled."""
    began, found = time.perf_counter(), dict[tuple[str, str], Any]()
    torch.zeros(1, device="cuda")
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        for made, path, why in pool.map(prepared, wanted):
            if why:
                print(f"{' '.join(made)}: left out: {why}", flush=True)
            else:
                found[made] = loaded(torch, Path(path))
    print(f"{len(found)} of {len(wanted)} ready in {time.perf_counter() - began:.0f} s", flush=True)
    return found


class Case:
    """Operands of a shape, as stored, with the product in float64 of some rows."""

    def __init__(self, torch: Any, shape: Shape, kind: str = "normal") -> None:  # noqa: ANN401 reason: untyped
        self.torch, self.shape, self.stream = torch, shape, torch.cuda.current_stream().cuda_stream
        of_z = (shape.z,) if shape.z else ()
        plain = [self._drawn(kind, *of_z, rows, shape.k) for rows in (shape.m, shape.n)]
        self.out = torch.empty(*of_z, shape.m, shape.n, device="cuda")
        turned = [shape.layout[0] == "t", shape.layout[1] == "n"]
        stored = [each.mT.contiguous() if turn else each for each, turn in zip(plain, turned, strict=True)]
        self.a, self.b = cast(Any, [each.mT if turn else each for each, turn in zip(stored, turned, strict=True)])
        self.given = {"A": stored[0], "B": stored[1], "C": self.out}

    def _drawn(self, kind: str, *extents: int) -> Any:  # noqa: ANN401 reason: a tensor
        torch = self.torch
        if kind == "uniform":
            return torch.rand(*extents, device="cuda") * 2 - 1
        made = torch.randn(*extents, device="cuda")
        if kind == "one-sided":
            return made.abs()
        if kind == "badly scaled":
            along = [torch.randint(-6, 7, (extent, 1), device="cuda").float() for extent in extents[-2:]]
            return made * 10.0 ** (along[0] + along[1].T)
        return made

    def errors(self) -> tuple[float, float]:
        """Of the output: the norm of the error over the product's, and the largest over norms of rows and columns."""
        exact, scale = self.exact
        found = self.out[:2] if self.shape.z else self.out
        apart = (found[..., -exact.shape[-2] :, :].double() - exact).abs()
        return float(apart.norm() / exact.norm()), float((apart / scale).max())

    @cached_property
    def exact(self) -> tuple[Any, Any]:
        """The product in float64, of the last rows, and the products of the norms of rows and columns."""
        a, b = (self.a[:2], self.b[:2]) if self.shape.z else (self.a, self.b)
        most = max(1, (1 << 26) // max(self.shape.n, self.shape.k))
        a, b = a[..., -most:, :].double(), b.double()
        return a @ b.mT, a.norm(dim=-1, keepdim=True) * b.norm(dim=-1).unsqueeze(-2)

    def peer(self, *, tf32: bool) -> Callable[[], object]:
        mm, cuda = self.torch.matmul, self.torch.backends.cuda.matmul

        def product() -> None:
            cuda.allow_tf32 = tf32
            mm(self.a, self.b.mT, out=self.out)
            cuda.allow_tf32 = False

        return product

    def own(self, kernel: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
        at = kernel.prepare(self.shape.sizes)
        call = at.bind(self.given, self.stream)
        return lambda _alive=at: call()

    def calls(
        self, kernels: dict[tuple[str, str], Any], names: Sequence[str]
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """Those that leave the product, after their errors are known to be none of a wrong kernel."""
        yield SGEMM, self.peer(tf32=False)
        yield TF32, self.peer(tf32=True)
        for name in names:
            kernel = kernels.get((self.shape.family, name))
            if kernel is not None:
                try:
                    yield name, self.own(kernel)
                except ArgusError as problem:
                    print(f"{self.shape.family} {name}: left out: {problem}", flush=True)

    def measured(self, call: Callable[[], object]) -> tuple[float, float]:
        """The errors of a call, whose output is NaN before."""
        self.out.fill_(float("nan"))
        call()
        self.torch.cuda.synchronize()
        return self.errors()


def errors(torch: Any, out: Path, draws: int) -> int:  # noqa: ANN401 reason: untyped
    """1 if the median error of six products is above SGEMM's for some K and kind of operands."""
    kernels = all_prepared(torch, [("gemm_nn_f32", name) for name in IN_ERRORS])
    worse, rows = {name: [0, 0] for name in IN_ERRORS}, list[dict[str, Any]]()
    for kind in KINDS:
        for depth in DEPTHS:
            found: dict[str, list[tuple[float, float]]] = {}
            for draw in range(draws):
                torch.manual_seed(depth + draw)
                case = Case(torch, Shape(ROWS, ROWS, depth), kind)
                for name, call in case.calls(kernels, IN_ERRORS):
                    found.setdefault(name, []).append(case.measured(call))
            rows.append({"kind": kind, "K": depth, "errors": found})
            medians = {
                name: [statistics.median(each) for each in zip(*own, strict=True)] for name, own in found.items()
            }
            print(
                f"{kind:13} {depth:7}  " + "  ".join(f"{name} {a:.2e} {b:.2e}" for name, (a, b) in medians.items()),
                flush=True,
            )
            for name, number in product(found.keys() & worse.keys(), range(2)):
                worse[name][number] += medians[name][number] > medians[SGEMM][number]
    for name, (norm, largest) in worse.items():
        print(f"{name} is further off than SGEMM: the norm in {norm} of {len(rows)} cases, the largest in {largest}")
    _store(out, "errors", torch, rows)
    return int(any(worse[name][0] > 0 for name in OURS))


def speed(torch: Any, out: Path, rounds: int, seconds: float, of: str) -> int:  # noqa: ANN401 reason: untyped
    """1 if a result is wrong. seconds: no shape is begun after so many. of: text in the words for the shapes meant."""
    began, shapes = time.perf_counter(), [each for each in SHAPES if of in each.what]
    wanted = dict.fromkeys((shape.family, name) for shape in shapes for name in shape.tried)
    kernels = all_prepared(torch, list(wanted))
    watch = Stopwatch(
        next(iter(kernels.values())).driver, torch.cuda.current_stream().cuda_stream, partial(_hold, torch)
    )
    wrong, rows = 0, list[dict[str, Any]]()
    for shape in shapes:
        if time.perf_counter() - began > seconds:
            print(f"no time for {shape}", flush=True)
            continue
        case = Case(torch, shape)
        calls = dict(case.calls(kernels, shape.tried))
        found = {name: case.measured(call) for name, call in calls.items()}
        allowed = {
            name: 2e-2 if "products1" in name else 1e-3 if "products3" in name or name == TF32 else 2e-6
            for name in calls
        }
        bad = [name for name, (norm, _) in found.items() if not norm <= max(allowed[name], 4 * found[SGEMM][0])]
        wrong += len(bad)
        for name in bad:
            print(f"WRONG: {shape.family} {shape.sizes} {name}: {found[name]}", flush=True)
            calls.pop(name)
        print(f"{shape.what or 'other'}: {shape.family} {'x'.join(map(str, shape.sizes.values()))}", flush=True)
        row: dict[str, Any] = {"family": shape.family, **shape.sizes, "selected": shape.selected, "errors": found}
        flops = 2e-9 * (shape.z or 1) * shape.m * shape.n * shape.k
        for regime in (SUM, DUTY_CYCLED):
            times = time_interleaved(watch, calls, regime, rounds)
            row[regime.name] = {name: times.median(name) for name in calls}
            for name in calls:
                ratio = statistics.median(times.ratios(name, SGEMM))
                mark = "*" if name == shape.selected else " "
                took = times.median(name)
                text = f"  {regime.name:12}{mark}{name:42} {1e3 * took:9.1f} us {flops / took:7.1f} TFLOP/s"
                print(f"{text} {ratio:6.2f} of SGEMM, error {found[name][0]:.2e}", flush=True)
        rows.append(row)
        del case, calls
        torch.cuda.empty_cache()
    _store(out, "speed", torch, rows)
    return int(wrong > 0)


def _hold(torch: Any, seconds: float) -> None:  # noqa: ANN401 reason: untyped
    torch.cuda._sleep(int(2e9 * seconds))


def _store(out: Path, name: str, torch: Any, rows: list[dict[str, Any]]) -> None:  # noqa: ANN401 reason: untyped
    out.mkdir(parents=True, exist_ok=True)
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    (out / f"f32_{name}.json").write_text(json.dumps({**about, "rows": rows}), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("errors", "speed"))
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--draws", type=int, default=5, help="of operands, for errors")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--of", default="", help='the shapes meant, for speed: "weights", "KernelBench", ...')
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    return (
        errors(torch, chosen.out, chosen.draws)
        if chosen.what == "errors"
        else speed(torch, chosen.out, chosen.rounds, chosen.seconds, chosen.of)
    )


if __name__ == "__main__":
    raise SystemExit(main())
