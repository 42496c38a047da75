"""Times attention's gradients vs. cuDNN on an H200: `benchmarks/attention_backward_h200.py build`, then `... run`.

build: traces, verifies and compiles every variant into build/attention_backward_h200; needs no GPU. run: checks each
variant against float64 on random shapes, with poisoned outputs between guard zones, then times it vs. torch's backward
of cuDNN's attention, or of FlashAttention-2 where cuDNN has none: interleaved, in rounds of rotating order, in both
regimes. Writes attention_backward.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import isnan
from pathlib import Path
from typing import Any

import built_variants
from attention_h200 import Shape, checked, guarded, operands, untouched
from attrs import evolve

from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Program
from argus.kernels.attention_backward import Backward, configs
from argus.ops.attention_gradient import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_backward_h200"
ROUNDS, CHECKED = 8, 120
CLOSE = 2.0**-6
"""The largest difference from float64, over the largest element of the gradient, or over 1."""
NAMES = ("dQ", "dK", "dV")


def shapes() -> list[Shape]:
    sizes = [(2, 64, 8, 8192), (2, 16, 16, 8192), (8, 16, 16, 2048), (32, 16, 16, 512)]
    wide = [(2, 8, 8, 8192), (8, 8, 8, 2048)]
    each = [*((128, *size) for size in sizes), *((256, *size) for size in wide)]
    return [Shape(b, h, g, s, s, width, causal) for causal in (False, True) for width, b, h, g, s in each]


def variants() -> dict[str, tuple[ProgramTemplate, Backward]]:
    """The family and the configuration of each variant; of bf16, unless its name ends in f16."""
    return {
        f"d{width}_{name}{'_f16' if dtype == 'torch.float16' else ''}": (family, config)
        for dtype, families in FAMILIES.items()
        for width, family in families.items()
        for name, config in configs(width).items()
    }


def operations(shape: Shape) -> float:
    """Floating-point operations of the five products; half of them if causal."""
    return 2.5 * shape.operations


def build(chosen: argparse.Namespace) -> int:
    return built_variants.build(chosen, FOLDER, {name: partial(_traced, name) for name in variants()})


def _traced(name: str) -> Program:
    family, config = variants()[name]
    return evolve(family, configs={name: config}).trace(name)


# -- on the GPU ----------------------------------------------------------------------------------------------


def takes(name: str, shape: Shape) -> bool:
    width, kind = name.split("_")[:2]
    return width == f"d{shape.D}" and kind == ("causal" if shape.causal else "full") and not name.endswith("f16")


def exact(torch: Any, shape: Shape, given: Sequence[Any]) -> tuple[tuple[Any, ...], Any, Any]:  # noqa: ANN401 reason: untyped
    """The gradients in float64, the output in the type of the operands, and the log-sum-exp of each row."""
    q, k, v, do = (each.double() for each in given)
    for each in (q, k, v):
        each.requires_grad_()
    many = shape.H // shape.G
    scores = (q @ k.repeat_interleave(many, dim=1).mT) * shape.D**-0.5
    if shape.causal:
        row, key = torch.arange(shape.S, device="cuda"), torch.arange(shape.T, device="cuda")
        scores = scores.masked_fill(key[None, :] > row[:, None] + shape.T - shape.S, float("-inf"))
    lse = torch.logsumexp(scores, -1)
    weights = torch.where(lse[..., None] == float("-inf"), 0.0, torch.exp(scores - lse.detach()[..., None]))
    weights = weights / torch.where(weights.sum(-1, keepdim=True) == 0, 1.0, weights.sum(-1, keepdim=True))
    out = weights @ v.repeat_interleave(many, dim=1)
    found = torch.autograd.grad(out, (q, k, v), do)
    return found, out.detach().to(given[0].dtype), lse.detach().float()


def bound(torch: Any, program: Any, shape: Shape, given: Sequence[Any]) -> Callable[[], None]:  # noqa: ANN401 reason: untyped
    """Launches on q, k, v, o, do, lse, dq, dk and dv, with workspaces of NaN."""
    scale = torch.full((1,), shape.D**-0.5 * 1.4426950408889634, device="cuda")
    names = ("Q", "K", "V", "O", "dO", "LSE", *NAMES, "scale")
    tensors = dict(zip(names, (*given, scale), strict=True))
    prepared = program.prepare(shape.sizes)
    spaces = {each.name: torch.full(each.shape, float("nan"), device="cuda") for each in prepared.workspaces}
    launch = prepared.bind({**tensors, **spaces}, torch.cuda.current_stream().cuda_stream)
    return partial(_launched, launch, (tensors, spaces))


def _launched(launch: Callable[[], None], _alive: object) -> None:
    launch()


def errors(torch: Any, program: Any, shape: Shape, dtype: Any) -> tuple[float, ...]:  # noqa: ANN401 reason: untyped
    """The largest errors of the gradients; nan where an element was not written, inf where a guard zone was."""
    q, k, v = operands(torch, shape, dtype)
    do = torch.randn_like(q)
    wanted, o, lse = exact(torch, shape, (q, k, v, do))
    made = [guarded(torch, tuple(each.shape), dtype) for each in (q, k, v)]
    bound(torch, program, shape, (q, k, v, o, do, lse, *(each for each, _ in made)))()
    torch.cuda.synchronize()
    if not all(untouched(each) for _, each in made):
        return (float("inf"),) * 3
    return tuple(
        (found.double() - right).abs().max().item() / max(1.0, right.abs().max().item())
        for (found, _), right in zip(made, wanted, strict=True)
    )


def is_right(torch: Any, name: str, program: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, kind = name.split("_")[:2]
    dtype = torch.float16 if name.endswith("f16") else torch.bfloat16
    worst, bad = [0.0] * 3, list[str]()
    for number, shape in enumerate(checked(int(width[1:]), count, causal=kind == "causal", masked_rows=False)):
        found = errors(torch, program, shape if number % 4 else evolve(shape, S=shape.T, T=shape.S), dtype)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if any(map(isnan, found)) or max(found) > CLOSE:
            bad.append(f"{shape}: {found}")
    said = f"WRONG {bad[:4]}" if bad else "worst errors " + ", ".join(f"{each:.1e}" for each in worst)
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def peer(torch: Any, shape: Shape, given: Sequence[Any]) -> tuple[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """The name and torch's backward of the first peer that takes the shape: cuDNN's attention, or FlashAttention-2."""
    attention, functional = import_module("torch.nn.attention"), import_module("torch.nn.functional")
    q, k, v, do = (each.detach() for each in given)
    for each in (q, k, v):
        each.requires_grad_()
    backends = attention.SDPBackend
    for name, backend in (("cudnn", backends.CUDNN_ATTENTION), ("flash-2", backends.FLASH_ATTENTION)):
        try:
            with attention.sdpa_kernel(backend):
                many = shape.H != shape.G
                out = functional.scaled_dot_product_attention(q, k, v, is_causal=shape.causal, enable_gqa=many)
            call = partial(torch.autograd.grad, out, (q, k, v), do, retain_graph=True)
            call()
            torch.cuda.synchronize()
        except RuntimeError as problem:
            print(f"{shape}: {name}: {str(problem).splitlines()[0]}", flush=True)
        else:
            return name, call
    raise SystemExit(f"{shape}: no peer")


def timed(torch: Any, programs: Mapping[str, Any], shape: Shape, rounds: int) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    timing = import_module("argus.runtime.cuda.timing")
    q, k, v = operands(torch, shape, torch.bfloat16)
    do, o = torch.randn_like(q), torch.randn_like(q)
    lse = torch.full(q.shape[:3], 10.0, device="cuda")
    other, call = peer(torch, shape, (q, k, v, do))
    calls: dict[str, Callable[[], object]] = {other: call}
    held: list[Any] = []
    for name, program in programs.items():
        if takes(name, shape):
            held.append(made := tuple(torch.empty_like(each) for each in (q, k, v)))
            calls[name] = bound(torch, program, shape, (q, k, v, o, do, lse, *made))

    def hold(seconds: float) -> None:
        torch.cuda._sleep(int(2e9 * seconds))

    stream = torch.cuda.current_stream().cuda_stream
    watch = timing.Stopwatch(next(iter(programs.values())).driver, stream, hold)
    rows: list[dict[str, Any]] = []
    for regime in timing.REGIMES:
        times = timing.time_interleaved(watch, calls, regime, rounds)
        for name in calls:
            ratio = statistics.median(times.ratios(name, other))
            rate = 1e-9 * operations(shape) / times.median(name)
            rows.append(
                {"shape": str(shape), "regime": regime.name, "name": name, "rate": rate, "ratio": ratio, "peer": other}
            )
        said = ", ".join(f"{row['name']} {row['rate']:.0f} ({row['ratio']:.3f})" for row in rows[-len(calls) :])
        print(f"{shape} {regime.name}: {said}", flush=True)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best variant of each shape and its ratio to the peer, and their geometric mean."""
    lines: list[str] = []
    for regime in dict.fromkeys(row["regime"] for row in rows):
        best: list[float] = []
        for shape in dict.fromkeys(row["shape"] for row in rows):
            own = [r for r in rows if (r["shape"], r["regime"]) == (shape, regime) and r["name"] != r["peer"]]
            first = max(own, key=lambda row: row["rate"])
            best.append(first["ratio"])
            said = f"{first['name']:22} {first['rate']:6.0f} {first['ratio']:.3f} of {first['peer']}"
            lines.append(f"{regime:12} {shape:34} {said}")
        lines.append(f"{regime:12} geometric mean vs. peers {statistics.geometric_mean(best):.3f}")
    return "\n".join(lines)


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        rows: list[dict[str, Any]] = []
        for shape in shapes()[: chosen.most]:
            if any(takes(name, shape) for name in good):
                rows += timed(torch, good, shape, chosen.rounds)
        print(table(rows) if rows else "", flush=True)
        return rows

    load = import_module("argus.runtime.programs").load_program
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "attention_backward.json")


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
