"""Checks and times `argus.matmul` on a GPU: `python benchmarks/matmul.py build`, then `... matmul.py run` on an H200.

build: compiles and verifies every schedule into build/matmul, as its first call would; needs no GPU. run: checks 36
shapes of any parity, from 1 x 1 x 1 up, against float64, with row-major and transposed operands and outputs in poisoned
memory; then measures the host time of a call and, for large shapes, the GPU time vs. torch. graphs: captures calls in
CUDA graphs, warm and cold, replays them on new contents of the same buffers, chains them, calls from several streams
and threads, and with arrays of other libraries; each check prints right or WRONG; exit status 1 if any is WRONG.
`--allow-unproved` also launches kernels that are neither proved nor refuted, with a warning.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "build" / "matmul"
CHECKED = 36
FIXED = (
    *((1, 1, 1), (1, 8, 8), (2, 3, 5), (7, 9, 11), (64, 128, 64), (64, 128, 63), (65, 129, 65), (128, 256, 64)),
    *((127, 255, 66), (200, 264, 136), (1, 4096, 4096), (4096, 1, 4096), (1000, 1000, 1001), (1023, 1025, 7)),
    *((4096, 4096, 4096), (4096, 4096, 512), (4096, 4097, 512), (3, 5, 8191)),
)
ROUNDING = 2.0**-8
TIMED = (
    *((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (8192, 8192, 256), (2048, 2048, 2048)),
    *((1024, 1024, 8192), (512, 512, 512), (1024, 1024, 1024), (256, 8192, 8192), (64, 8192, 8192)),
    (16384, 1024, 4096),
)
CALLS = 2000
REPLAYS = 20
CAPTURED = ((512, 768, 1024), (4096, 4096, 512), (16, 4096, 4096), (200, 264, 136), (33, 100, 72), (7, 9, 11))


def build() -> None:
    """Code object and verdict of each schedule of each family."""
    module = import_module("argus.ops.matmul")
    prebuilt = import_module("argus.runtime.kernel_cache")
    for family, config in schedules(module):
        start = time.perf_counter()
        kernel = module.kernel(config, family)
        path, judged = prebuilt.build_cached(kernel), prebuilt.verify_cached(kernel)
        print(f"{family} {config}: {judged.verdict}, {path.parent.name}, {time.perf_counter() - start:.1f} s")


def schedules(module: Any) -> list[tuple[str, str]]:  # noqa: ANN401 reason: imported by name
    """The shipped configurations of every family for this GPU."""
    return [
        (family, config)
        for family, template in module.FAMILIES.items()
        for config in module.CONFIGS
        if config in template.configs
    ]


def run(unproved: str) -> None:
    torch: Any = import_module("torch")
    module = import_module("argus.ops.matmul")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    verdicts(module)
    bad = checked(torch, module, unproved)
    forced(torch, module, unproved)
    host(torch, module, unproved)
    beside(torch, module, unproved)
    raise SystemExit(1 if bad else 0)


def verdicts(module: Any) -> None:  # noqa: ANN401 reason: imported by name
    prebuilt = import_module("argus.runtime.kernel_cache")
    for family, config in schedules(module):
        print(f"{family} {config}: {prebuilt.verify_cached(module.kernel(config, family)).verdict}")


def shapes() -> list[tuple[int, int, int]]:
    random = Random(0)  # noqa: S311 reason: shapes, not a secret
    found = list(FIXED)
    while len(found) < CHECKED:
        found.append((random.randint(1, 2000), random.randint(1, 2000), random.randint(1, 2000)))
    return found


def checked(torch: Any, module: Any, unproved: str) -> int:  # noqa: ANN401 reason: imported by name
    """Number of wrong shapes; prints each with its largest error relative to the rounding-error bound."""
    bad, worst = 0, 0.0
    for number, (m, n, k) in enumerate(shapes()):
        a, b = operands(torch, (m, n, k), number)
        poison(torch, m * n * (a.shape[0] if a.ndim > 2 else 1))
        try:
            share = error(torch, module.matmul(a, b, unproved=unproved), a, b)
        except Exception as problem:  # noqa: BLE001 reason: one shape must not hide the others
            print(f"  {tuple(a.shape)} @ {tuple(b.shape)} {a.dtype}: {problem}")
            bad += 1
            continue
        worst = max(worst, share)
        if not share <= 1:
            bad += 1
            print(
                f"  {tuple(a.shape)} @ {tuple(b.shape)} {a.dtype}, {a.stride()} {b.stride()}: {share:.3g} of its bound"
            )
    print(f"{len(shapes())} shapes: {bad} wrong, largest error {worst:.3f} of the rounding-error bound")
    return bad


def operands(torch: Any, shape: tuple[int, int, int], number: int) -> tuple[Any, Any]:  # noqa: ANN401 reason: imported by name
    """Operands of rotating kinds: row-major or column-major, bf16 or f16, single or batched, dense or strided."""
    m, n, k = shape
    kind = torch.float16 if number % 3 == 1 else torch.bfloat16
    small = m * n * k < 1 << 30
    z = (3,) if small and number % 5 in (1, 3) else ()
    ahead_a, ahead_b = (() if number % 5 == 3 else z), z
    room = 8 if number % 4 == 2 else 0

    def made(ahead: tuple[int, ...], rows: int, columns: int, *, transposed: bool) -> Any:  # noqa: ANN401 reason: as above
        if transposed:
            return made(ahead, columns, rows, transposed=False).mT
        return torch.randn(*ahead, rows, columns + room, device="cuda").to(kind)[..., :columns]

    return made(ahead_a, m, k, transposed=number % 8 >= 4), made(ahead_b, k, n, transposed=number % 2 == 0)


def forced(torch: Any, module: Any, unproved: str) -> None:  # noqa: ANN401 reason: imported by name
    """Check every schedule on one shape that all of them support."""
    a, b = normal(torch, 520, 328), normal(torch, 776, 328).T
    for config in module.CONFIGS:
        poison(torch, 520 * 776)
        share = error(torch, module.matmul(a, b, config=config, unproved=unproved), a, b)
        print(f"{config}: 520 x 776 x 328, error {share:.3f} of the rounding-error bound")


def normal(torch: Any, rows: int, columns: int) -> Any:  # noqa: ANN401 reason: imported by name
    return torch.randn(rows, columns, device="cuda").bfloat16()


def poison(torch: Any, elements: int) -> None:  # noqa: ANN401 reason: imported by name
    """Fill the memory that the output is likely to get with NaN."""
    torch.full((elements,), float("nan"), device="cuda", dtype=torch.bfloat16)


def error(torch: Any, found: Any, a: Any, b: Any) -> float:  # noqa: ANN401 reason: imported by name
    """The largest error relative to u |c| + (1 + u) e, where e bounds fp32 sums in any order; inf for NaN."""
    exact, sizes = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    bound = ROUNDING * exact.abs() + (1 + ROUNDING) * a.shape[-1] * 2.0**-23 * sizes
    share = (found.double() - exact).abs() / bound.clamp_min(1e-300)
    return float(torch.nan_to_num(share, nan=float("inf")).max())


def host_alone(unproved: str) -> None:
    torch: Any = import_module("torch")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    host(torch, import_module("argus.ops.matmul"), unproved)


def host(torch: Any, module: Any, unproved: str) -> None:  # noqa: ANN401 reason: imported by name
    """Print the host time per call in microseconds, on small matrices, with a launch queue too short to block."""
    a, b = normal(torch, 64, 64), normal(torch, 64, 64).T
    calls: dict[str, Callable[[], Any]] = {
        "argus.matmul": lambda: module.matmul(a, b, unproved=unproved),
        "argus.matmul, narrow": lambda: module.matmul(a, b, config="narrow", unproved=unproved),
        "torch.matmul": lambda: torch.matmul(a, b),
        "nothing": lambda: None,
    }
    calls |= {f"part: {name}": part for name, part in parts(torch, module, unproved, a, b).items()}
    for name, call in calls.items():
        times: list[float] = []
        for number in range(CALLS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
            if number % 100 == 0:
                torch.cuda.synchronize()
        print(f"{name}: {1e6 * statistics.median(times):.2f} us per call on the host")


def parts(torch: Any, module: Any, unproved: str, a: Any, b: Any) -> dict[str, Callable[[], Any]]:  # noqa: ANN401 reason: imported by name
    """Print the parts of a repeated call's time: cache key, allocation of the result, launch."""
    launches = import_module("argus.runtime.launches")
    used = launches.torch_device(torch, a.device.index)
    chosen = module.candidate("gemm_nt", module.choose(64, 64, 64))
    schedule = import_module("argus.ops.call_path").load_candidate(chosen, a.device.index, unproved)
    tensors = {"A": a, "B": b.mT, "C": a.new_empty((64, 64))}
    with_sizes = schedule.kernel.bind(tensors, dict(zip("MNK", (64, 64, 64), strict=True)), used.stream(a.device.index))
    return {
        "what calls have in common": lambda: hash(
            (a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.device, b.device)
        ),
        "a result by new_empty": lambda: a.new_empty((64, 64), dtype=torch.bfloat16),
        "a result by what torch has": lambda: used.result(a, (64, 64), torch.bfloat16),
        "addresses and stream": lambda: (a.data_ptr(), b.data_ptr(), a.data_ptr(), used.stream(0), used.current()),
        "the launch": with_sizes,
    }


def beside(torch: Any, module: Any, unproved: str) -> None:  # noqa: ANN401 reason: imported by name
    """Print TFLOP/s of every schedule vs. torch, duty-cycled and interleaved."""
    for m, n, k in TIMED:
        a, b = normal(torch, m, k), normal(torch, n, k).T
        calls: dict[str, Callable[[], Any]] = {"torch": lambda a=a, b=b: torch.matmul(a, b)}
        for config in module.CONFIGS:
            calls[config] = lambda a=a, b=b, config=config: module.matmul(a, b, config=config, unproved=unproved)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(15):
            for name, call in calls.items():
                time.sleep(0.02)
                times[name].append(elapsed(torch, call))
        rates = {name: 2e-9 * m * n * k / statistics.median(each) for name, each in times.items()}
        chosen = module.choose(m, n, k)
        shown = ", ".join(f"{name} {rate:.0f} ({rate / rates['torch']:.3f})" for name, rate in rates.items())
        print(f"{m} x {n} x {k}, chosen {chosen}; TFLOP/s (ratio to torch): {shown}")


def elapsed(torch: Any, call: Callable[[], Any]) -> float:  # noqa: ANN401 reason: imported by name
    """Milliseconds of a call, after one that raises the clock."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


# -- graphs, streams, and arrays of other libraries ------------------------------------------------------------


def graphs(unproved: str) -> None:
    """Print each check with right or WRONG; the exit status is 1 if any is wrong."""
    torch: Any = import_module("torch")
    module = import_module("argus.ops.matmul")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))

    def call(a: Any, b: Any) -> Any:  # noqa: ANN401 reason: imported by name
        return module.matmul(a, b, unproved=unproved)

    checks: dict[str, Callable[[], float]] = {}
    for shape in CAPTURED:
        size = " x ".join(map(str, shape))
        checks[f"captured warm, {size}"] = lambda shape=shape: captured(torch, call, shape, warm=True)
        checks[f"captured by the first call, {size}"] = lambda shape=shape: cold(torch, module, call, shape)
    checks["two products in one graph"] = lambda: chained(torch, call)
    checks["operands written just before, on a stream of its own"] = lambda: written_before(torch, call)
    checks["two streams at once"] = lambda: streams(torch, call)
    checks["another thread"] = lambda: threaded(torch, call)
    for library in ("cupy", "jax"):
        checks[f"arrays of {library}"] = lambda library=library: others(torch, call, library)
    bad = [name for name, check in checks.items() if not said(name, check)]
    print(f"{len(checks)} checks, {len(bad)} wrong")
    raise SystemExit(1 if bad else 0)


def said(name: str, check: Callable[[], float]) -> bool:
    """Run and print one check. check: returns the largest error relative to the rounding-error bound."""
    try:
        worst = check()
    except ImportError as problem:
        print(f"{name}: skipped: {problem}", flush=True)
        return True
    except Exception as problem:  # noqa: BLE001 reason: one check must not hide the others
        print(f"{name}: WRONG: {type(problem).__name__}: {problem}", flush=True)
        return False
    print(f"{name}: {'right' if worst <= 1 else 'WRONG'}, error {worst:.3f} of the rounding-error bound", flush=True)
    return worst <= 1


def captured(torch: Any, call: Callable[..., Any], shape: tuple[int, int, int], *, warm: bool) -> float:  # noqa: ANN401 reason: imported by name
    """One product in a graph, replayed on new contents of its operands."""
    m, n, k = shape
    a, weight = normal(torch, m, k), normal(torch, n, k)
    if warm:
        call(a, weight.T)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call(a, weight.T)
    worst = 0.0
    for _ in range(REPLAYS):
        a.copy_(normal(torch, m, k))
        weight.copy_(normal(torch, n, k))
        out.fill_(float("nan"))
        graph.replay()
        worst = max(worst, error(torch, out, a, weight.T))
    return worst


def cold(torch: Any, module: Any, call: Callable[..., Any], shape: tuple[int, int, int]) -> float:  # noqa: ANN401 reason: imported by name
    """As `captured`, but the schedule's code is loaded within the capture."""
    module.clear_cache()
    return captured(torch, call, shape, warm=False)


def chained(torch: Any, call: Callable[..., Any]) -> float:  # noqa: ANN401 reason: imported by name
    """A product of a product: the second kernel may start early (PDL), but must not read early."""
    a, first, second = normal(torch, 1024, 512), normal(torch, 2048, 512), normal(torch, 768, 2048)
    call(call(a, first.T), second.T)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        middle = call(a, first.T)
        out = call(middle, second.T)
    worst = 0.0
    for _ in range(REPLAYS):
        a.copy_(normal(torch, 1024, 512))
        graph.replay()
        worst = max(worst, error(torch, middle, a, first.T), error(torch, out, middle, second.T))
    return worst


def written_before(torch: Any, call: Callable[..., Any]) -> float:  # noqa: ANN401 reason: imported by name
    """No synchronisation between a kernel that writes an operand, the product, and a kernel that reads its result."""
    stream, weight = torch.cuda.Stream(), normal(torch, 4096, 2048)
    sources = [normal(torch, 2048, 2048) for _ in range(REPLAYS)]
    a = torch.empty_like(sources[0])
    found: list[Any] = []
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for source in sources:
            a.copy_(source)
            found.append(call(a, weight.T).clone())
            a.fill_(float("nan"))
    torch.cuda.synchronize()
    return max(error(torch, out, source, weight.T) for out, source in zip(found, sources, strict=True))


def streams(torch: Any, call: Callable[..., Any]) -> float:  # noqa: ANN401 reason: imported by name
    """Alternating calls on two streams, each with its own operands."""
    used = [torch.cuda.Stream() for _ in range(2)]
    given = [(normal(torch, 300 + 64 * number, 1024), normal(torch, 512, 1024)) for number in range(REPLAYS)]
    torch.cuda.synchronize()
    found: list[Any] = []
    for number, (a, weight) in enumerate(given):
        with torch.cuda.stream(used[number % 2]):
            found.append(call(a, weight.T))
    torch.cuda.synchronize()
    return max(error(torch, out, a, weight.T) for out, (a, weight) in zip(found, given, strict=True))


def threaded(torch: Any, call: Callable[..., Any]) -> float:  # noqa: ANN401 reason: imported by name
    """A call from a thread that has not used the GPU before."""
    a, weight = normal(torch, 640, 1024), normal(torch, 512, 1024)
    torch.cuda.synchronize()
    with ThreadPoolExecutor(1) as pool:
        out = pool.submit(call, a, weight.T).result()
    torch.cuda.synchronize()
    return error(torch, out, a, weight.T)


def others(torch: Any, call: Callable[..., Any], library: str) -> float:  # noqa: ANN401 reason: imported by name
    """Operands of another library, converted from torch by DLPack; the result is an array of that library."""
    module = import_module(library)
    take = module.dlpack.from_dlpack if library == "jax" else module.from_dlpack
    a, b = normal(torch, 640, 1024), normal(torch, 1024, 512)
    theirs = take(a), take(b)
    out = call(*theirs)
    if type(out) is not type(theirs[0]):
        raise TypeError(f"the result is {type(out).__name__}")
    return error(torch, torch.from_dlpack(out), a, b)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run", "host", "graphs"))
    parser.add_argument("--allow-unproved", action="store_true")
    given = parser.parse_args()
    os.environ["ARGUS_CACHE_DIR"] = str(FOLDER)
    if given.part == "build":
        build()
    else:
        {"run": run, "host": host_alone, "graphs": graphs}[given.part]("allow" if given.allow_unproved else "refuse")
