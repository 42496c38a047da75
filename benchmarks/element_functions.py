"""Errors of element functions in f32: `python benchmarks/element_functions.py cpu`, or `h200`, beside torch's.

cpu: executes the emitted text of both targets on the CPU, and compares with float64. h200: builds a kernel of each
function for sm_90a, runs it on f32 numbers of every sign and exponent, and prints the largest error in units of the
last place beside that of torch's function, both against torch's in float64, and how many results have torch's bits.
Then: dropout kernels beside `torch.nn.functional.dropout` for the same seed and offset, places of maxima beside
`torch.argmax` with NaN and equal elements among them, with times, and a tensor of more than 2^31 elements.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.ir import Kernel
from argus.core.philox import greatest_below
from argus.emit.build import build
from argus.kernels.nests.made import template
from argus.kernels.nests.places import Places, places
from argus.language import (
    Int,
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    i32,
    kernel,
    load,
    philox,
    registers,
    replicated,
    sm_90a,
    spread,
    where,
)
from argus.nests.affine import computed
from argus.nests.canonical import canonical
from argus.nests.nest import Axis, Nest, Read, Reduce, TensorType, size
from argus.testing.instructions.functions import IN_DOUBLE, POWERS, function_kernel, numbers, on_cpu, units_off
from argus.verifier.loader import load as load_file

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus" / "proved"
STEP, FEWER = 1 << 9, 1 << 12
"""Every so many f32 numbers on the GPU, and on the CPU."""
OF_TORCH = {"tanh_accurate": "tanh", "max_nan": "maximum", "min_nan": "minimum", "max": "fmax", "min": "fmin"}
ROUNDS = 20


def on_the_cpu() -> int:
    x = numbers(FEWER)
    print(f"{len(x):,} numbers; errors in units of the last place of f32, of results that are no subnormal numbers")
    for name, exact in IN_DOUBLE.items():
        with np.errstate(all="ignore"):
            wanted = exact(x.astype(np.float64))
        normal = (np.abs(wanted) >= 2.0**-126) | (wanted == 0)
        for target in (gfx942, sm_90a):
            off = units_off(on_cpu(function_kernel(name, target), x), wanted)[normal]
            print(f"{name:14} {target.name:8} {off.max():8.3f}   over half: {np.mean(off > 0.5):.2%}", flush=True)
    return 0


class Launched:
    """A kernel that is built and loaded; each call launches it on torch's tensors by name."""

    def __init__(self, torch: Any, made: Kernel, folder: Path) -> None:  # noqa: ANN401 reason: untyped
        self.torch = torch
        self.loaded: Any = import_module("argus.runtime.gpu.launch").load(build(made, "sm_90a", folder).description)

    def bound(self, sizes: Mapping[str, int], **tensors: Any) -> Callable[[], None]:  # noqa: ANN401 reason: torch's
        stream = self.torch.cuda.current_stream().cuda_stream
        return self.loaded.prepare(dict(sizes)).bind(tensors, stream)

    def __call__(self, sizes: Mapping[str, int], **tensors: Any) -> None:  # noqa: ANN401 reason: torch's
        self.bound(sizes, **tensors)()
        self.torch.cuda.synchronize()


def _functions(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    """Prints the errors of each function; how many are further off than torch's by more than two units."""
    x = torch.from_numpy(numbers(STEP)).cuda()
    print(f"{len(x):,} numbers; error in units of the last place, torch's error, results with torch's bits")
    cases = [(name, name, getattr(torch, OF_TORCH.get(name, name)), x) for name in IN_DOUBLE]
    for exponent in POWERS:
        given = float(np.float32(exponent))
        cases.append((f"pow {exponent:.2g}", "pow", partial(torch.pow, exponent=given), torch.full_like(x, given)))
    wrong = 0
    for shown, name, function, z in cases:
        y = torch.full_like(x, float("nan"))
        Launched(torch, function_kernel(name, sm_90a), folder)({"N": len(x)}, X=x, Z=z, Y=y)
        theirs, exact = function(x), function(x.double()).cpu().numpy()
        normal = (np.abs(exact) >= 2.0**-126) | (exact == 0)
        own, other = (float(units_off(each.cpu().numpy(), exact)[normal].max()) for each in (y, theirs))
        same = (y.view(torch.int32) == theirs.view(torch.int32)) | (y.isnan() & theirs.isnan())
        print(f"{shown:14} {own:10.3f} {other:8.3f} {float(same.float().mean()):9.4%}", flush=True)
        wrong += own > other + 2 and name != "tanh"
    return wrong


def _extrema(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    pool = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.0, 3.0], device="cuda")
    x, z = pool.repeat_interleave(8).contiguous(), pool.repeat(8).contiguous()
    wrong = 0
    for name in ("max", "min", "max_nan", "min_nan"):
        y = torch.full_like(x, 7)
        Launched(torch, function_kernel(name, sm_90a), folder)({"N": len(x)}, X=x, Z=z, Y=y)
        same = torch.equal(y.nan_to_num(99.0), getattr(torch, OF_TORCH[name])(x, z).nan_to_num(99.0))
        print(f"{name:14} {'as' if same else 'NOT as'} torch.{OF_TORCH[name]}")
        wrong += not same
    return wrong


def _dropout_kernel(keep: int, scale: float) -> Kernel:
    by = spread((1024,), threads=256, vector=4)

    def dropout(X: Tensor, S: Tensor, Y: Tensor, *, T: Int) -> None:
        (count,) = X.shape
        assume(count % 4 == 0)
        assume(T >= 1)
        (block,) = block_id((ceil_div(count, 1024),))
        x = load(X.tile((1024,), (block,)), by, edge=0)
        low, high, offset = (load(S[i], replicated(256)) for i in range(3))
        first = registers(i32, by)
        first[:] = offset
        n = block * 1024 + x.index[0]
        bits = philox(first, n // 4 // T, n // 4 % T, n % 4, low, high)
        copy(where(bits <= keep, x * scale, 0.0), Y.tile((1024,), (block,)), edge=0)

    dropout.__annotations__ = {"X": Tensor["N", f32], "S": Tensor["3", i32], "Y": Tensor["N", f32], "T": Int}
    return kernel(target=sm_90a, threads=256)(dropout).trace()


def _dropout(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    wrong = 0
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    for p in (0.1, 0.5, 0.73):
        made = Launched(torch, _dropout_kernel(greatest_below(1 - p), float(np.float32(1 / np.float32(1 - p)))), folder)
        for count in (64, 4096, 1_000_000, 5_000_004, 64_000_000):
            for seed in (0, 123456789012345):
                x = torch.rand(count, device="cuda") + 0.5
                torch.cuda.manual_seed(seed)
                torch.rand(1000, device="cuda")  # so that the offset is not 0
                offset = int.from_bytes(bytes(torch.cuda.get_rng_state()[8:16].tolist()), "little")
                theirs, y = torch.nn.functional.dropout(x, p, training=True), torch.full_like(x, float("nan"))
                words = [seed & 0xFFFFFFFF, seed >> 32, offset // 4]
                given = torch.tensor(np.array(words, np.uint32).view(np.int32), device="cuda")
                threads = min(multiprocessors * 8, -(-count // 256)) * 256
                made({"N": count, "T": threads}, X=x, S=given, Y=y)
                kept = int(((y != 0) != (theirs != 0)).sum())
                differs = int((y != theirs).sum())
                wrong += kept > 0
                print(f"dropout {p}, {count:>10,}, seed {seed}: {kept:,} kept otherwise, {differs:,} other numbers")
    return wrong


def _places(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    wrong = 0
    by_row, by_column = "formula_arg_max_in_integers", "formula_arg_max_running_with_nan"
    for file, axis, shape in ((by_row, 1, (4096, 16384)), (by_row, 1, (33, 1004)), (by_column, 1, (8192, 1000))):
        (exported,) = load_file(str(CORPUS / f"{file}.py"))
        x = torch.randint(-50, 50, shape, device="cuda").float()
        x[::3, 5] = float("nan")
        x[::3, 900] = float("nan")
        kind = torch.int32 if file == by_row else torch.float32
        held, best = torch.full(shape[:1], -7, dtype=kind, device="cuda"), torch.zeros(shape[:1], device="cuda")
        rows = {"R" if file == by_row else "M": shape[0], "N": shape[1]}
        outputs = {"X": x, "I": held} | ({} if file == by_row else {"Y": best})
        run = Launched(torch, exported.trace(), folder).bound(rows, **outputs)
        times: dict[str, list[float]] = {"argus": [], "torch": []}
        for _ in range(ROUNDS):
            for name, called in (("argus", run), ("torch", lambda x=x, axis=axis: torch.argmax(x, axis))):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                called()
                end.record()
                torch.cuda.synchronize()
                times[name].append(begin.elapsed_time(end) * 1e3)
        differs = int((held.long() != torch.argmax(x, axis)).sum())
        wrong += differs > 0
        own, other = (statistics.median(each) for each in times.values())
        print(f"{file} {shape}: {differs} of {shape[0]} places differ; {own:.1f} us, torch {other:.1f} us")
    return wrong


def _columns(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    """Places along the middle axis, in one pass, beside torch's: KernelBench's shape."""
    a, b, c = map(size, "ABC")
    i, j, k = Axis("i", a), Axis("j", b), Axis("k", c)
    shape = 128, 4096, 4095
    nest = Nest("Y", "i64", (i, k), Reduce("argmax", (j,), Read("X", (i.index, j.index, k.index), "f32")))
    types = {"X": TensorType("X", (a, b, c), "f32"), "Y": nest.type}
    sizes = dict(zip("ABC", shape, strict=True))
    form = canonical((nest,), types, sizes)
    x = torch.rand(shape, device="cuda")
    x[3, 5::7, ::5] = float("nan")
    y = torch.full((shape[0], shape[2]), -7, dtype=torch.int64, device="cuda")
    own = {name: int(computed(extent, sizes)) for name, extent in form.sizes.items()}
    held = [tuple(int(computed(each, own)) for each in one.type.shape) for one in form.parameters]
    tensors = {one.type.name: each.view(shape) for one, each, shape in zip(form.parameters, (x, y), held, strict=True)}
    wrong = 0
    for unroll in (4, 8, 16):
        for threads in (128, 256, 512):
            made = template(form, places, Places(threads, unroll), f"places_{threads}_{unroll}").trace()
            run = Launched(torch, made, folder).bound({n: own[n] for n in (s.name for s in made.sizes)}, **tensors)
            times: dict[str, list[float]] = {"argus": [], "torch": []}
            for _ in range(ROUNDS // 2):
                for name, called in (("argus", run), ("torch", lambda: torch.argmax(x, 1))):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    called()
                    end.record()
                    torch.cuda.synchronize()
                    times[name].append(begin.elapsed_time(end))
            differs = int((y != torch.argmax(x, 1)).sum())
            wrong += differs > 0
            mine, other = (statistics.median(each) for each in times.values())
            what = f"columns of {shape}, {threads} threads, {unroll} rows at once"
            print(f"{what}: {differs:,} differ; {mine:.3f} ms, torch {other:.3f} ms", flush=True)
    return wrong


def _large(torch: Any, folder: Path) -> int:  # noqa: ANN401 reason: untyped
    """Rows of 2^30 elements: the index of an element exceeds 2^31, its bytes 2^33."""
    by = spread((2048,), threads=256, vector=4)

    def doubled(X: Tensor, Y: Tensor) -> None:
        rows, count = X.shape
        assume(count % 4 == 0)
        block, row = block_id((ceil_div(count, 2048), rows))
        copy(load(X[row].tile((2048,), (block,)), by, edge=0) * 2.0, Y[row].tile((2048,), (block,)), edge=0)

    doubled.__annotations__ = dict.fromkeys("XY", Tensor["R N", f32])
    made = Launched(torch, kernel(target=sm_90a, threads=256)(doubled).trace(), folder)
    shape = (3, 1 << 30)
    x = torch.arange(shape[1], device="cuda", dtype=torch.float32).repeat(3, 1)
    x += torch.arange(3, device="cuda")[:, None]
    y = torch.zeros(shape, device="cuda")
    made({"R": shape[0], "N": shape[1]}, X=x, Y=y)
    part = 1 << 28
    pieces = [(row, slice(at, at + part)) for row in range(shape[0]) for at in range(0, shape[1], part)]
    right = all(torch.equal(y[piece], x[piece] * 2) for piece in pieces)
    print(f"{shape[0] * shape[1]:,} elements: {'right' if right else 'WRONG'}")
    return int(not right)


def on_the_gpu() -> int:
    torch: Any = import_module("torch")
    with tempfile.TemporaryDirectory() as folder:
        parts = (_functions, _extrema, _dropout, _places, _columns, _large)
        return int(sum(part(torch, Path(folder)) for part in parts) > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("cpu", "h200"))
    return on_the_cpu() if parser.parse_args().where == "cpu" else on_the_gpu()


if __name__ == "__main__":
    sys.exit(main())
