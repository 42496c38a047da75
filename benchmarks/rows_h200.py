"""Times row kernels vs. torch and a copy of the same bytes on an H200: `benchmarks/rows_h200.py build`, then `... run`.

build: traces, verifies and compiles every variant into build/rows_h200; needs no GPU. run: checks each against float64
on random shapes, with poisoned outputs between guard zones; then times, for each length, the variants that fit,
torch's operator, the same compiled, and torch's copy, interleaved. Writes rows.json in `--out` and prints shares.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import gcd
from pathlib import Path
from random import Random
from typing import Any

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.rows import group_norm, norms, scans, softmax, sums
from argus.kernels.rows.configs import CONFIGS, Reads, choose
from argus.kernels.schedules.rows import Rows
from argus.language import Template

FOLDER = Path(__file__).resolve().parent.parent / "build" / "rows_h200"
ROUNDS, CHECKED = 8, 120
BYTES = 1 << 28
"""Bytes of a timed input: more than the L2 cache holds."""
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
OTHERS = (1, 5, 64, 100, 257, 510, 1000, 1025, 4097, 9000, 9002, 10001, 12288, 24576, 30000, 40000, 50000, 65528)
"""Lengths of rows whose configurations are checked too."""
EPS = 1e-5
_MOST_ELEMENTS = 1 << 21
"""Elements of a checked tensor, about."""
GUARD = 4096
"""Elements before and after an output that must stay as they are."""
CLOSE = {"bf16": 2.0**-7, "f16": 2.0**-10, "f32": 2.0**-14}
"""The largest error of an element, relative to 1 and its size: norms of two nearly equal f32 numbers lose ten bits."""
NAMES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
Arrays = dict[str, Any]


Operands = Callable[[Any, int, int, Any], Arrays]
"""Makes inputs by name: of torch, R rows, N columns, and a type."""


@frozen
class Family:
    """A kernel family. kernels: by element type. outputs: computes each by torch, in the type of the inputs.

    single: the kernel's output is in f32. sums: outputs are sums of all elements of a row, with errors in proportion.
    reads: how it reads long rows.
    """

    kernels: Mapping[str, Template]
    operands: Operands
    outputs: Mapping[str, Callable[[Any, Arrays], Any]]
    single: bool = False
    sums: bool = False
    reads: Reads = "twice"

    def by_torch(self, torch: Any, given: Arrays) -> tuple[Any, ...]:  # noqa: ANN401 reason: untyped
        return tuple(make(torch, given) for make in self.outputs.values())

    def room(self, torch: Any, given: Arrays) -> Arrays:  # noqa: ANN401 reason: untyped
        """Outputs of the kernel, by name."""
        kind = {"dtype": torch.float32} if self.single else {}
        return {name: torch.empty_like(make(torch, given), **kind) for name, make in self.outputs.items()}


def _x(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
    return {"X": torch.randn((rows, length), device="cuda", dtype=dtype) * 2}


def _masked(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
    """Rows of which every other begins with -inf."""
    of = _x(torch, rows, length, dtype)
    of["X"][::2, : (length - 1) // 2] = -float("inf")
    return of


def _off_zero(torch: Any, of: Arrays) -> Arrays:  # noqa: ANN401 reason: untyped
    """The same, with a mean of its own for each row of X."""
    return of | {"X": of["X"] + 8 * torch.randn((of["X"].shape[0], 1), device="cuda", dtype=of["X"].dtype)}


def _x_z(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
    return _x(torch, rows, length, dtype) | {"Z": _x(torch, rows, length, dtype)["X"]}


def _weighted(of: Operands, *names: str) -> Operands:
    def operands(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
        weights = {name: torch.randn(length, device="cuda", dtype=dtype) for name in names}
        return (
            _off_zero(torch, of(torch, rows, length, dtype)) | weights | {"eps": torch.full((1,), EPS, device="cuda")}
        )

    return operands


def _with_target(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
    target = torch.randint(length, (rows,), device="cuda")
    return _x(torch, rows, length, dtype) | {"target": target.view(torch.int32).view(rows, 2)}


def _in_groups(torch: Any, rows: int, length: int, dtype: Any) -> Arrays:  # noqa: ANN401 reason: untyped
    """Rows of as many channels as make whole vectors, at most 16, in as many groups as divide the rows, at most 32."""
    groups = max(each for each in range(1, 33) if rows % each == 0)
    widest = gcd(length, 16 // dtype.itemsize)
    channels = max(each for each in range(1, 17) if length % (each * widest) == 0)
    weights = {name: torch.randn((groups, channels), device="cuda", dtype=dtype) for name in ("W", "B")}
    return _off_zero(torch, _x(torch, rows, length, dtype)) | weights | {"eps": torch.full((1,), EPS, device="cuda")}


def _kernels(module: Any, name: str) -> Mapping[str, Template]:  # noqa: ANN401 reason: a module
    return {dtype: getattr(module, f"{name}_{dtype}") for dtype in NAMES}


def _rms_norm(torch: Any, x: Any, of: Arrays) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.rms_norm(x, x.shape[-1:], of["G"], EPS)


def _group_norm(torch: Any, of: Arrays) -> Any:  # noqa: ANN401 reason: untyped
    groups, channels = of["W"].shape
    samples = of["X"].shape[0] // groups
    x = of["X"].view(samples, groups * channels, -1)
    return torch.group_norm(x, groups, of["W"].flatten(), of["B"].flatten(), EPS).view(of["X"].shape)


def _layer_norm(torch: Any, x: Any, of: Arrays) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.layer_norm(x, x.shape[-1:], of["G"], of["B"], EPS)


def _stored_sum(of: Arrays) -> Any:  # noqa: ANN401 reason: untyped
    """X + Z as a kernel stores it: rounded to the type of its inputs, which may be given here in float64."""
    return (of["X"] + of["Z"]).to(of.get("type", of["X"].dtype)).to(of["X"].dtype)


def _cross_entropy(torch: Any, of: Arrays) -> Any:  # noqa: ANN401 reason: untyped
    return torch.nn.functional.cross_entropy(of["X"], of["target"][:, 0].long(), reduction="none")


FAMILIES: Mapping[str, Family] = {
    "softmax": Family(_kernels(softmax, "softmax"), _masked, {"Y": lambda torch, of: torch.softmax(of["X"], -1)}),
    "log_softmax": Family(
        _kernels(softmax, "log_softmax"), _x, {"Y": lambda torch, of: torch.log_softmax(of["X"], -1)}
    ),
    "rms_norm": Family(
        _kernels(norms, "rms_norm"),
        _weighted(_x, "G"),
        {"Y": lambda torch, of: _rms_norm(torch, of["X"], of)},
        reads="squared",
    ),
    "rms_norm_of_sum": Family(
        _kernels(norms, "rms_norm_of_sum"),
        _weighted(_x_z, "G"),
        {"S": lambda _, of: of["X"] + of["Z"], "Y": lambda torch, of: _rms_norm(torch, _stored_sum(of), of)},
        reads="two",
    ),
    "layer_norm": Family(
        _kernels(norms, "layer_norm"),
        _weighted(_x, "G", "B"),
        {"Y": lambda torch, of: _layer_norm(torch, of["X"], of)},
        reads="thrice",
    ),
    "layer_norm_of_sum": Family(
        _kernels(norms, "layer_norm_of_sum"),
        _weighted(_x_z, "G", "B"),
        {"S": lambda _, of: of["X"] + of["Z"], "Y": lambda torch, of: _layer_norm(torch, _stored_sum(of), of)},
        reads="two",
    ),
    "group_norm": Family(_kernels(group_norm, "group_norm"), _in_groups, {"Y": _group_norm}, reads="thrice"),
    "row_sum": Family(_kernels(sums, "row_sum"), _x, {"Y": lambda _, of: of["X"].sum(-1)}, sums=True, reads="summed"),
    "row_mean": Family(_kernels(sums, "row_mean"), _x, {"Y": lambda _, of: of["X"].mean(-1)}, reads="summed"),
    "cumsum": Family(
        _kernels(scans, "cumsum"), _x, {"Y": lambda _, of: of["X"].cumsum(-1)}, sums=True, reads="in order"
    ),
    "cross_entropy": Family(
        _kernels(sums, "cross_entropy"), _with_target, {"Y": _cross_entropy}, single=True, reads="once"
    ),
}


def variants() -> dict[str, tuple[Template, Rows]]:
    """Template and configuration of what is chosen for these lengths, by a name `family.type.configuration`."""
    found: dict[str, tuple[Template, Rows]] = {}
    for family, of in FAMILIES.items():
        for dtype, template in of.kernels.items():
            configs = {
                name: CONFIGS[dtype][name]
                for length in (*LENGTHS, *OTHERS)
                for name in (choose(dtype, length, reads=of.reads, rows=rows) for rows in (1, 128))
            }
            found |= {f"{family}.{dtype}.{name}": (template, config) for name, config in configs.items()}
    return found


def build(names: Sequence[str], *, unproved: bool) -> int:
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above

    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, (template, config) in variants().items():
        if names and not any(name.startswith(each) for each in names):
            continue
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        kernel = template.instance(config, name.rsplit(".", 1)[1])
        start = time.process_time()
        verdict = None if unproved else verify(kernel).verdict
        took = time.process_time() - start
        if verdict is not None and not isinstance(verdict, Proved):
            print(f"{name}: skipped: {verdict}", flush=True)
            failed += 1
            continue
        made = compiled(kernel, "sm_90a", FOLDER / name)
        said = "not verified" if verdict is None else f"verified in {took:.2f} s"
        print(f"{name}: {said}; {made.report}", flush=True)
    return int(failed > 0)


# -- on the GPU ----------------------------------------------------------------------------------------------


def guarded(torch: Any, like: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN within guard zones of ones, and all of that memory."""
    whole = torch.ones(like.numel() + 2 * GUARD, device="cuda", dtype=like.dtype)
    inside = whole[GUARD : GUARD + like.numel()]
    inside.fill_(float("nan"))
    return inside.view(like.shape), whole


def bound(torch: Any, kernel: Any, given: Arrays, outs: Arrays) -> Callable[[], None]:  # noqa: ANN401 reason: untyped
    sizes: dict[str, int] = dict(zip(("R", "N"), given["X"].shape, strict=True))
    if "W" in given:
        sizes |= dict(zip(("G", "K"), given["W"].shape, strict=True))
        sizes["S"] = sizes["N"] // sizes["K"]
    return kernel.prepare(sizes).bind({**given, **outs}, torch.cuda.current_stream().cuda_stream)


def error(torch: Any, family: Family, kernel: Any, shape: tuple[int, int], dtype: str) -> float:  # noqa: ANN401 reason: untyped
    """The largest error of the outputs; nan where an element was not written, inf where a guard zone was."""
    given = family.operands(torch, *shape, getattr(torch, NAMES[dtype]))
    doubled = {name: each.double() if each.is_floating_point() else each for name, each in given.items()}
    doubled["type"] = given["X"].dtype
    exact = {name: make(torch, doubled) for name, make in family.outputs.items()}
    held = {name: guarded(torch, each) for name, each in family.room(torch, given).items()}
    bound(torch, kernel, given, {name: inside for name, (inside, _) in held.items()})()
    torch.cuda.synchronize()
    worst = 0.0
    for name, (inside, whole) in held.items():
        if not bool((whole[:GUARD] == 1).all()) or not bool((whole[-GUARD:] == 1).all()):
            return float("inf")
        least = shape[1] ** 0.5 if family.sums else 1.0
        off = (inside.double() - exact[name]).abs() / (least + exact[name].abs())
        worst = max(worst, off.max().item()) if not bool(off.isnan().any()) else float("nan")
    return worst


def checked(config: Rows, count: int) -> list[tuple[int, int]]:
    """Random shapes that the configuration takes: short and full rows, few and many."""
    random = Random(config.longest + config.vector)  # noqa: S311 reason: a seed makes the shapes repeatable
    most_rows = max(8, min(700, _MOST_ELEMENTS // config.longest))
    if config.whole:
        chunks = (1,) if config.held else (1, 2, 3, 5)
        return [
            (config.rows * random.randint(1, most_rows // config.rows + 1), config.longest * random.choice(chunks))
            for _ in range(count)
        ]
    longest = config.longest if config.held else 5 * config.longest
    found: list[tuple[int, int]] = []
    for number in range(count):
        most = max(1, longest // config.vector)
        units = (
            random.choice((1, most, max(1, most - 1), most // 2 + 1)) if number % 3 == 0 else random.randint(1, most)
        )
        found.append(
            (
                random.choice((1, 2, 3, 7, config.rows, config.rows + 1, random.randint(1, most_rows))),
                units * config.vector,
            )
        )
    return found


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    family, dtype, config = name.split(".")
    worst, bad = 0.0, list[str]()
    for shape in checked(config_of(config, (Rows,)), count):
        found = error(torch, FAMILIES[family], kernel, shape, dtype)
        worst = max(worst, found)
        if not found <= CLOSE[dtype]:
            bad.append(f"{shape}: {found}")
    print(f"{name}: {count} shapes, {f'WRONG {bad[:4]}' if bad else f'worst error {worst:.1e}'}", flush=True)
    return not bad


def fits(config: Rows, length: int) -> bool:
    """Whether the configuration is worth timing at this length."""
    if config.whole:
        return config.are_whole(config.rows, length)
    return length % config.vector == 0 and (
        config.longest // 2 < length <= config.longest if config.held else length >= 2048
    )


def timed(torch: Any, name: str, kernels: Mapping[str, Any], length: int, chosen: argparse.Namespace) -> list[Arrays]:  # noqa: ANN401 reason: untyped
    timing = import_module("argus.runtime.gpu.timing")
    family, dtype = FAMILIES[name.split(".", maxsplit=1)[0]], name.split(".")[1]
    kind = getattr(torch, NAMES[dtype])
    given = family.operands(torch, BYTES // kind.itemsize // length, length, kind)
    outs = family.room(torch, given)
    compiled = torch.compile(partial(family.by_torch, torch), dynamic=False)
    copied = torch.empty_like(given["X"])
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: copied.copy_(given["X"]),
        "torch": lambda: family.by_torch(torch, given),
        "compiled": lambda: compiled(given),
    }
    if chosen.eager:
        del calls["compiled"]
    theirs = tuple(calls)
    for each, kernel in kernels.items():
        if each.startswith(f"{name}.") and fits(config_of(each.split(".")[2], (Rows,)), length):
            calls[each.split(".")[2]] = bound(torch, kernel, given, outs)

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(next(iter(kernels.values())).driver, torch.cuda.current_stream().cuda_stream, hold)
    regime = timing.Regime("sustained", 0.0, chosen.burst, 1)
    times = timing.time_interleaved(watch, calls, regime, chosen.rounds)
    moved = sum(each.numel() * each.itemsize for each in (*given.values(), *outs.values()))
    rows: list[Arrays] = [
        {
            "family": name,
            "length": length,
            "name": each,
            "terabytes": 1e-9 * moved / times.median(each),
            "share": statistics.median(times.ratios(each, "copy")) * moved / (2 * BYTES),
            "ratios": {peer: statistics.median(times.ratios(each, peer)) for peer in theirs},
        }
        for each in calls
        if each != "copy"
    ]
    best = sorted(rows, key=lambda row: row["share"], reverse=True)
    said = ", ".join(f"{row['name']} {row['share']:.3f}" for row in best)
    print(f"{name} {length}: share of a copy's {1e-9 * 2 * BYTES / times.median('copy'):.2f} TB/s: {said}", flush=True)
    return rows


def run(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    load = import_module("argus.runtime.gpu.launch").load
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    kernels = {path.parent.name: load(path) for path in sorted(FOLDER.glob("*/*.json"))}
    kernels = {n: k for n, k in kernels.items() if not chosen.names or any(n.startswith(each) for each in chosen.names)}
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    start = time.monotonic()
    good = {name: kernel for name, kernel in kernels.items() if is_right(torch, name, kernel, chosen.checked)}
    print(f"checked in {time.monotonic() - start:.1f} s", flush=True)
    rows: list[Arrays] = []
    for name in dict.fromkeys(each.rsplit(".", 1)[0] for each in good):
        for length in chosen.lengths:
            rows += timed(torch, name, good, length, chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "rows.json").write_text(json.dumps(rows), "utf-8")
    print(f"{time.monotonic() - start:.1f} s", flush=True)
    return int(len(good) < len(kernels))


def main() -> int:
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument(
        "--names", type=lambda text: text.split(","), default=[], help="only variants of these prefixes"
    )
    parser.add_argument("--unproved", action="store_true", help="build without verifying, for experiments")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--burst", type=float, default=12.0, help="milliseconds of a measurement")
    parser.add_argument("--checked", type=int, default=CHECKED, help="random shapes to check each variant on")
    parser.add_argument("--lengths", type=lambda text: tuple(map(int, filter(None, text.split(",")))), default=LENGTHS)
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    chosen = parser.parse_args()
    return build(chosen.names, unproved=chosen.unproved) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
