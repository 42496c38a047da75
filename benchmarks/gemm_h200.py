"""GEMM on an H200 beside cuBLAS: `python benchmarks/gemm_h200.py build`, then on the GPU `... gemm_h200.py run`.

build: traces, verifies and compiles every variant of the table below into build/gemm_h200; needs no GPU, and refuses
what is not proved. run: checks each variant against float64 on random inputs with tails, outputs poisoned before, then
times it beside cuBLAS on ten shapes: interleaved, in rounds whose order rotates, in both regimes, over operands that
rotate. Times and versions go to gemm_h200.json in `--out`; a table of ratios is printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import cycle
from math import isnan, prod
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "build" / "gemm_h200"
SHAPES = (
    *((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (16384, 8192, 1024)),
    *((4096, 14336, 4096), (4096, 4096, 14336), (16, 8192, 8192), (128, 8192, 8192), (512, 7168, 2048)),
)
PEER = "cuBLAS"
ROUNDS = 20
CHECKED = 12
CACHE = 128 << 20
"""Bytes of operands between two uses of one set: more than the second-level cache holds."""
SAMPLED = 64


def variants() -> Mapping[str, Any]:
    """Configurations by name: those shipped, and those under trial."""
    from argus.kernels.gemm import CONFIGS  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.kernels.hopper import Hopper  # noqa: PLC0415 reason: as above
    from argus.kernels.skinny import Skinny  # noqa: PLC0415 reason: as above

    shipped = {name: config for name, config in CONFIGS.items() if config.target.name == "sm_90a"}
    trial = {
        "columns_192_bands": Hopper(bn=192, cluster=(2, 1), whole=True, group=8),
        "columns_224_pairs": Hopper(bn=224, cluster=(2, 1)),
        "columns_64_deep": Hopper(bn=64, bk=128, stages=4),
        "skinny_m128": Skinny(bm=128, stages=4),
    }
    return shipped | trial


def build() -> None:
    from argus.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.core.diagnostic import ArgusError  # noqa: PLC0415 reason: as above
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: as above
    from argus.kernels.gemm import gemm  # noqa: PLC0415 reason: as above
    from argus.verify import verify  # noqa: PLC0415 reason: as above

    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name, config in variants().items():
        start = time.perf_counter()
        kernel = gemm.instance(config, name)
        report = verify(kernel)
        verdict = report.verdict
        middle = time.perf_counter()
        if not isinstance(verdict, Proved):
            print(f"{name}: left out, as it is {type(verdict).__name__}: {report.diagnostics[0].primary.text}")
            continue
        try:
            artifact = compiled(kernel, "sm_90a", FOLDER)
        except ArgusError as problem:
            print(f"{name}: left out: {problem}")
            continue
        took = f"verified in {middle - start:.2f} s, compiled in {time.perf_counter() - middle:.2f} s"
        print(f"{artifact.name}: {took}; {artifact.report}", flush=True)


# -- on the GPU ----------------------------------------------------------------------------------------------


def run(out: Path, names: Sequence[str], rounds: int, *, selected: bool) -> None:
    torch: Any = import_module("torch")
    timing = import_module("argus.runtime.timing")
    load = import_module("argus.runtime.cuda").load
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    kernels = {path.stem.removeprefix("gemm_"): load(path) for path in sorted(FOLDER.glob("*.json"))}
    kernels = {name: kernel for name, kernel in kernels.items() if not names or name in names}
    driver = next(iter(kernels.values())).driver
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": timing.driver_version(driver)}
    print(json.dumps(about), flush=True)
    bad = {name for name, kernel in kernels.items() if not right(torch, name, kernel)}
    good = {name: kernel for name, kernel in kernels.items() if name not in bad}
    rows = [row for shape in SHAPES for row in timed(torch, timing, among(good, shape, selected), shape, rounds)]
    out.mkdir(parents=True, exist_ok=True)
    (out / "gemm_h200.json").write_text(json.dumps({**about, "rows": rows}), encoding="utf-8")
    print(table(rows))
    raise SystemExit(1 if bad else 0)


def among(kernels: Mapping[str, Any], shape: tuple[int, int, int], selected: bool) -> Mapping[str, Any]:
    """All kernels, or the one that a call without a search gets: beside others that cool the card, it would gain."""
    if not selected:
        return kernels
    name = import_module("argus.kernels.gemm").select(*shape)
    return {name: kernels[name]}


def right(torch: Any, name: str, kernel: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether every element is written and close to float64, on whole tiles, tails of every extent, and single rows."""
    random = Random(0)  # noqa: S311 reason: shapes, not a secret
    shapes = [(128, 256, 64), (64, 8, 8), (1, 8, 8), (200, 264, 136), (4096, 4096, 4096)]
    shapes += [
        (random.randint(1, 1500), 8 * random.randint(1, 190), 8 * random.randint(1, 190)) for _ in range(CHECKED)
    ]
    errors = [error(torch, kernel, *shape) for shape in shapes]
    fine = not any(map(isnan, errors)) and max(errors) < 2.0**-7
    print(
        f"{name}: {len(shapes)} shapes, {f'worst error {max(errors):.2e}' if fine else f'WRONG {errors}'}", flush=True
    )
    return fine


def error(torch: Any, kernel: Any, m: int, n: int, k: int) -> float:  # noqa: ANN401 reason: untyped
    """The largest error beside float64, as a share of |result| + sqrt(k); nan if anything was not written."""
    a, b, c = tensors(torch, m, n, k)
    c.fill_(float("nan"))
    kernel.bind({"A": a, "B": b, "C": c}, {"M": m, "N": n, "K": k}, torch.cuda.current_stream().cuda_stream)()
    torch.cuda.synchronize()
    exact = a.double() @ b.double().T
    return ((c.double() - exact).abs() / (exact.abs() + k**0.5)).max().item()


def tensors(torch: Any, m: int, n: int, k: int) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: untyped
    def normal(rows: int, columns: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(rows, columns, device="cuda").bfloat16()

    return normal(m, k), normal(n, k), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    timing: Any,  # noqa: ANN401 reason: untyped
    kernels: Mapping[str, Any],
    shape: tuple[int, int, int],
    rounds: int,
) -> list[dict[str, Any]]:
    m, n, k = shape
    sets = [tensors(torch, *shape) for _ in range(max(1, min(16, -(-CACHE // (2 * (m * k + n * k + m * n))))))]
    stream = torch.cuda.current_stream().cuda_stream
    sizes = {"M": m, "N": n, "K": k}
    calls: dict[str, Callable[[], object]] = {PEER: turned([peer(torch, *each) for each in sets])}
    for name, kernel in kernels.items():
        prepared = kernel.prepare(sizes)
        calls[name] = turned([prepared.bind(dict(zip("ABC", each, strict=True)), stream) for each in sets])

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    watch = timing.Stopwatch(next(iter(kernels.values())).driver, stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        with import_module("argus.runtime.monitor").Monitor() as monitor:
            times = timing.interleaved(watch, calls, regime, rounds)
        state = monitor.summary()
        for name in calls:
            ratios = sorted(times.ratios(name, PEER))
            rows.append(
                {
                    "shape": shape,
                    "regime": regime.name,
                    "name": name,
                    "milliseconds": times.median(name),
                    "rate": 2e-9 * prod(shape) / times.median(name),
                    "ratio": statistics.median(ratios),
                    "ratios": ratios,
                    "card": state,
                }
            )
        best = sorted((row for row in rows if row["regime"] == regime.name), key=lambda row: row["milliseconds"])
        shown = ", ".join(f"{row['name']} {row['rate']:.0f} ({row['ratio']:.3f})" for row in best)
        print(f"{m}x{n}x{k} {regime.name}: {shown}", flush=True)
    return rows


def peer(torch: Any, a: Any, b: Any, c: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    return lambda: torch.mm(a, b.T, out=c)


def turned(calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Each call on the next set of operands."""
    following = cycle(calls)
    return lambda: next(following)()  # noqa: PLW0108 reason: another call each time


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of each shape and regime the best variant and its ratio, and the geometric mean of the ratios."""
    lines: list[str] = []
    for regime in dict.fromkeys(row["regime"] for row in rows):
        best: list[float] = []
        for shape in dict.fromkeys(tuple(row["shape"]) for row in rows):
            mine = [r for r in rows if r["regime"] == regime and tuple(r["shape"]) == shape and r["name"] != PEER]
            first = max(mine, key=lambda row: row["ratio"])
            best.append(first["ratio"])
            spread = f"{first['ratios'][0]:.3f} to {first['ratios'][-1]:.3f}"
            size, rate = "x".join(map(str, shape)), first["rate"]
            lines.append(f"{regime:12} {size:18} {first['name']:16} {rate:7.1f} {first['ratio']:6.3f} ({spread})")
        lines.append(f"{regime:12} geometric mean {statistics.geometric_mean(best):.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--names", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--selected", action="store_true", help="time but the configuration that is selected, and cuBLAS"
    )
    chosen = parser.parse_args()
    if chosen.part == "build":
        build()
    else:
        run(chosen.out, chosen.names, chosen.rounds, selected=chosen.selected)
