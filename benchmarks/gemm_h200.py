"""Times GEMMs vs. peer libraries on an H200: `python benchmarks/gemm_h200.py build`, then `... gemm_h200.py run`.

Families are the files of benchmarks/families. build: traces, verifies and compiles every variant of each into
build/gemm_h200; needs no GPU, and skips kernels that are not proved. run: checks each variant against float64 on random
inputs with partial tiles and poisoned outputs, then times it vs. the family's peers: interleaved, in rounds of rotating
order, in both regimes, with rotating operands. Writes times and versions to FAMILY.json in `--out` and prints a table
of ratios. small: only checks each variant on the smallest of those shapes, to be run under
`compute-sanitizer --tool memcheck|racecheck|initcheck|synccheck`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import cycle
from math import isnan, prod
from pathlib import Path
from random import Random
from typing import Any, Protocol, cast

from attrs import field, frozen

FOLDER = Path(__file__).resolve().parent.parent / "build" / "gemm_h200"
ROUNDS = 20
CACHE = 128 << 20
"""Bytes of operands between two uses of one set: more than L2 holds."""
CLOSE = 2.0**-7
SMALL = 4
Shape = tuple[int, int, int]
Tensors = Mapping[str, Any]


class Family(Protocol):
    """The interface of a file of benchmarks/families. PEER: the peer of the ratios, by its name in `peers`.

    A family with several products per call also defines a function `products` from the shape to their number.
    """

    SHAPES: Sequence[Shape]
    OUTPUT: str
    PEER: str

    def variants(self) -> Mapping[str, Callable[[], Any]]: ...
    def sizes(self, shape: Shape) -> dict[str, int]: ...
    def tensors(self, torch: Any, shape: Shape) -> dict[str, Any]: ...  # noqa: ANN401 reason: untyped
    def exact(self, torch: Any, given: Tensors) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
        """The result in float64, and the scale of errors."""
        ...

    def peers(self, torch: Any, given: Tensors) -> dict[str, Callable[[], object]]: ...  # noqa: ANN401 reason: untyped
    def checked(self, random: Random) -> Sequence[Shape]: ...
    def select(self, shape: Shape) -> str | None: ...


def family(name: str) -> Family:
    return cast("Family", import_module(f"families.{name}"))


def build(name: str) -> None:
    from argus.core.diagnostic import ArgusError  # noqa: PLC0415 reason: as above
    from argus.core.ir import Program  # noqa: PLC0415 reason: as above
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: as above
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    for variant, made in family(name).variants().items():
        start = time.perf_counter()
        kernel = made()
        reports = verify_program(kernel).launches if isinstance(kernel, Program) else (verify(kernel),)
        middle = time.perf_counter()
        unproved = [each for each in reports if not isinstance(each.verdict, Proved)]
        if unproved:
            verdict, found = unproved[0].verdict, unproved[0].diagnostics
            print(f"{variant}: skipped: {type(verdict).__name__}: {found[0].primary.text}")
            continue
        try:
            if isinstance(kernel, Program):
                artifacts = build_program(kernel, folder / variant).kernels
            else:
                artifacts = (compiled(kernel, "sm_90a", folder / variant),)
        except ArgusError as problem:
            print(f"{variant}: skipped: {problem}")
            continue
        took = f"verified in {middle - start:.2f} s, compiled in {time.perf_counter() - middle:.2f} s"
        print(f"{variant}: {took}; {'; '.join(str(each.report) for each in artifacts)}", flush=True)


# -- on the GPU ----------------------------------------------------------------------------------------------


def run(name: str, chosen: argparse.Namespace) -> bool:
    """Check and time a family; returns whether every variant is correct."""
    out, names, rounds = chosen.out, chosen.names, chosen.rounds
    torch: Any = import_module("torch")
    timing = import_module("argus.runtime.gpu.timing")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    here = family(name)
    kernels = {path.parent.name: loaded(torch, path) for path in sorted((FOLDER / name).glob("*/*.json"))}
    kernels = {variant: kernel for variant, kernel in kernels.items() if not names or variant in names}
    driver = next(iter(kernels.values())).driver
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": driver.version()}
    print(json.dumps({"family": name} | about), flush=True)
    bad = {variant for variant, kernel in kernels.items() if not is_right(torch, here, variant, kernel)}
    good = {variant: kernel for variant, kernel in kernels.items() if variant not in bad}
    rows: list[dict[str, Any]] = []
    for shape in chosen.shapes or here.SHAPES:
        rows += timed(torch, timing, here, timed_kernels(here, good, shape, chosen.selected), shape, rounds)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps({"family": name, "peer": here.PEER, **about, "rows": rows}), "utf-8")
    print(table(rows), flush=True)
    return not bad


@frozen
class Launches:
    """A program with the launch interface of a kernel; allocates its workspaces."""

    torch: Any
    program: Any

    @property
    def driver(self) -> Any:  # noqa: ANN401 reason: of the runtime
        return self.program.driver

    def prepare(self, sizes: Mapping[str, int]) -> At:
        return At(self.torch, self.program.prepare(sizes))


@frozen
class At:
    """A program at fixed sizes; its workspaces are initialised with NaN."""

    torch: Any
    program: Any
    spaces: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        made = {
            each.name: self.torch.full(each.shape, float("nan"), dtype=TYPES[each.dtype](self.torch), device="cuda")
            for each in self.program.workspaces
        }
        object.__setattr__(self, "spaces", made)

    def bind(self, tensors: Tensors, stream: int) -> Callable[[], None]:
        return self.program.bind({**tensors, **self.spaces}, stream)


TYPES: Mapping[str, Callable[[Any], Any]] = {"f32": lambda torch: torch.float32, "bf16": lambda torch: torch.bfloat16}


def loaded(torch: Any, path: Path) -> Any:  # noqa: ANN401 reason: a kernel, or a program
    """Load a built kernel or program onto the device."""
    if "program" in json.loads(path.read_text("utf-8")):
        return Launches(torch, import_module("argus.runtime.programs").load_program(path))
    return import_module("argus.runtime.gpu.launch").load(path)


def small(name: str, chosen: argparse.Namespace) -> bool:
    """Whether every variant of the family is correct on a few small shapes, which are quick under a sanitiser."""
    torch: Any = import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    here = family(name)
    every = sorted(here.checked(Random(0)), key=prod)  # noqa: S311 reason: shapes, not a secret
    fine = True
    for path in sorted((FOLDER / name).glob("*/*.json")):
        if chosen.names and path.parent.name not in chosen.names:
            continue
        kernel = loaded(torch, path)
        shapes = [shape for shape in every if takes(here, kernel, shape)][:SMALL]
        errors = [error(torch, here, kernel, shape) for shape in shapes]
        good = not any(map(isnan, errors)) and max(errors) < CLOSE
        print(
            f"{name} {path.parent.name}: {len(shapes)} small shapes, {'right' if good else f'WRONG {errors}'}",
            flush=True,
        )
        fine = fine and good
    return fine


def timed_kernels(here: Family, kernels: Mapping[str, Any], shape: Shape, selected: bool) -> Mapping[str, Any]:
    """All kernels, or only the selected one: timing it among slower kernels, which cool the GPU, would favour it."""
    chosen = here.select(shape) if selected else None
    return {chosen: kernels[chosen]} if chosen is not None and chosen in kernels else kernels


def is_right(torch: Any, here: Family, name: str, kernel: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether every element is written and close to float64, for all shapes that the kernel supports."""
    shapes = [shape for shape in here.checked(Random(0)) if takes(here, kernel, shape)]  # noqa: S311 reason: as below
    errors = [error(torch, here, kernel, shape) for shape in shapes]
    fine = not any(map(isnan, errors)) and max(errors) < CLOSE
    said = f"worst error {max(errors):.2e}" if fine else f"WRONG {dict(zip(shapes, errors, strict=True))}"
    print(f"{name}: {len(shapes)} shapes, {said}", flush=True)
    return fine


def takes(here: Family, kernel: Any, shape: Shape) -> bool:  # noqa: ANN401 reason: untyped
    """Whether the shape satisfies the kernel's launch conditions."""
    try:
        kernel.prepare(here.sizes(shape))
    except import_module("argus.core.diagnostic").ArgusError:
        return False
    return True


def error(torch: Any, here: Family, kernel: Any, shape: Shape) -> float:  # noqa: ANN401 reason: untyped
    """The largest error vs. float64, relative to the family's scale; nan if an element was not written."""
    given = here.tensors(torch, shape)
    given[here.OUTPUT].fill_(float("nan"))
    kernel.prepare(here.sizes(shape)).bind(given, torch.cuda.current_stream().cuda_stream)()
    torch.cuda.synchronize()
    wanted, share = here.exact(torch, given)
    return ((given[here.OUTPUT].double() - wanted).abs() / share).max().item()


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    timing: Any,  # noqa: ANN401 reason: untyped
    here: Family,
    kernels: Mapping[str, Any],
    shape: Shape,
    rounds: int,
) -> list[dict[str, Any]]:
    first = here.tensors(torch, shape)
    held = sum(tensor.nbytes for tensor in first.values())
    sets = [first, *(here.tensors(torch, shape) for _ in range(min(16, -(-CACHE // held)) - 1))]
    stream = torch.cuda.current_stream().cuda_stream
    theirs, turns = [here.peers(torch, each) for each in sets], cycle(range(len(sets)))
    calls: dict[str, Callable[[], object]]
    calls = {name: rotating([each[name] for each in theirs], turns) for name in theirs[0]}
    for name, kernel in kernels.items():
        prepared = kernel.prepare(here.sizes(shape))
        calls[name] = rotating([prepared.bind(each, stream) for each in sets], turns)

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(next(iter(kernels.values())).driver, stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        with import_module("argus.runtime.monitor").Monitor() as monitor:
            times = timing.time_interleaved(watch, calls, regime, rounds)
        found = [row_of(times, here, name, shape, regime.name) for name in calls]
        rows += [{**row, "card": monitor.summary(), "theirs": row["name"] in theirs[0]} for row in found]
        best = sorted(found, key=lambda row: row["milliseconds"])
        shown = ", ".join(f"{row['name']} {row['rate']:.0f} ({row['ratio']:.3f})" for row in best)
        print(f"{'x'.join(map(str, shape))} {regime.name}: {shown}", flush=True)
    return rows


def row_of(times: Any, here: Family, name: str, shape: Shape, regime: str) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """A row of results. products: per call. rate: TFLOP/s of all products. ratio: the peer's time over this one's,
    median of the rounds.
    """
    ratios = sorted(times.ratios(name, here.PEER))
    products: int = getattr(here, "products", one)(shape)
    return {
        "shape": shape,
        "regime": regime,
        "name": name,
        "milliseconds": times.median(name),
        "products": products,
        "rate": 2e-9 * products * prod(shape) / times.median(name),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def one(_: Shape) -> int:
    return 1


def rotating(calls: Sequence[Callable[[], object]], turns: Iterator[int]) -> Callable[[], object]:
    """A function that makes one of the calls, each with its own operands: that of the number which is next.

    turns: one iterator for all that are compared. With one each, a candidate often has the operands that another one
    has just left in the L2 cache.
    """

    def call() -> object:
        return calls[next(turns)]()

    return call


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best variant and its ratio for each shape and regime, and the geometric mean of the ratios."""
    lines: list[str] = []
    for regime in dict.fromkeys(row["regime"] for row in rows):
        best: list[float] = []
        for shape in dict.fromkeys(tuple(row["shape"]) for row in rows):
            mine = [r for r in rows if r["regime"] == regime and tuple(r["shape"]) == shape and not r["theirs"]]
            first = max(mine, key=lambda row: row["ratio"])
            best.append(first["ratio"])
            spread = f"{first['ratios'][0]:.3f} to {first['ratios'][-1]:.3f}"
            size, rate = "x".join(map(str, shape)), first["rate"]
            lines.append(f"{regime:12} {size:18} {first['name']:16} {rate:7.1f} {first['ratio']:6.3f} ({spread})")
        lines.append(f"{regime:12} geometric mean {statistics.geometric_mean(best):.3f}")
    return "\n".join(lines)


def shapes_of(text: str) -> list[Shape]:
    shapes = [tuple(int(extent) for extent in each.split("x")) for each in text.split(",")]
    return [(m, n, k) for m, n, k in shapes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run", "small"))
    parser.add_argument("--families", type=lambda text: text.split(","), default=["gemm", "fused"])
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--names", type=lambda text: text.split(","), default=[], help="only these variants")
    parser.add_argument("--shapes", type=shapes_of, default=[], help="MxNxK,..., instead of the family's shapes")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--selected", action="store_true", help="time only the selected configuration and the peers")
    chosen = parser.parse_args()
    if chosen.part == "build":
        for name in chosen.families:
            build(name)
        return 0
    part = small if chosen.part == "small" else run
    fine = [part(name, chosen) for name in chosen.families]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    raise SystemExit(main())
