"""Times attention's gradients vs. cuDNN on an H200: `benchmarks/attention_backward_h200.py build`, then `... run`.

build: traces, verifies and compiles every variant into build/attention_backward_h200; needs no GPU. run: checks each
variant against float64 on random shapes, with poisoned outputs between guard zones, then times it vs. torch's backward
of cuDNN's attention, or of FlashAttention-2 where cuDNN has none, and vs. FlashAttention-3's, with sums in any order
and in a fixed one, if `benchmarks/peers/flash_attention_3.py` has built it: interleaved, in rounds of rotating order,
in both regimes. Writes attention_backward.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from math import inf, isnan
from pathlib import Path
from typing import Any

import built_variants
from attention_h200 import Shape, checked, guarded, operands, untouched
from attrs import evolve
from built_variants import Rows

from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Program
from argus.kernels.attention_backward import Backward, configs
from argus.ops.attention_gradient import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_backward_h200"
ROUNDS, CHECKED, PEERS_CHECKED = 8, 120, 12
CLOSE = 2.0**-6
"""The largest difference from float64, over the largest element of the gradient, or over 1."""
NAMES = ("dQ", "dK", "dV")


def shapes() -> list[Shape]:
    sizes = [(2, 64, 8, 8192), (2, 16, 16, 8192), (8, 16, 16, 2048), (32, 16, 16, 512)]
    wide = [(2, 8, 8, 8192), (8, 8, 8, 2048)]
    each = [*((128, *size) for size in sizes), (64, 2, 32, 32, 8192), *((256, *size) for size in wide)]
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
    return built_variants.keeping(launch, tensors, spaces)


def errors(torch: Any, program: Any, shape: Shape, dtype: Any) -> tuple[float, ...]:  # noqa: ANN401 reason: untyped
    """The largest errors of the gradients; inf where an element was not written, or a guard zone was."""
    q, k, v = operands(torch, shape, dtype)
    do = torch.randn_like(q)
    wanted, o, lse = exact(torch, shape, (q, k, v, do))
    made = [guarded(torch, tuple(each.shape), dtype) for each in (q, k, v)]
    bound(torch, program, shape, (q, k, v, o, do, lse, *(each for each, _ in made)))()
    torch.cuda.synchronize()
    if not all(untouched(each) for _, each in made):
        return (float("inf"),) * 3
    return tuple(apart(found, right) for (found, _), right in zip(made, wanted, strict=True))


def is_right(torch: Any, name: str, program: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, kind = name.split("_")[:2]
    dtype = torch.float16 if name.endswith("f16") else torch.bfloat16
    worst, bad = [0.0] * 3, list[str]()
    for number, shape in enumerate(checked(int(width[1:]), count, causal=kind == "causal", masked_rows=False)):
        found = errors(torch, program, shape if number % 4 else evolve(shape, S=shape.T, T=shape.S), dtype)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if max(found) > CLOSE:
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


def flash3(torch: Any, count: int) -> dict[tuple[int, bool, str], Callable[..., Any]]:  # noqa: ANN401 reason: untyped
    """FlashAttention-3's gradients by width, causal and name: with sums in any order, and in a fixed one.

    Those that are right on as many random shapes; none if it is not built.
    """
    module = import_module("peers.flash_attention_3_calls")
    library = module.load_if_built()
    if library is None:
        return {}
    found: dict[tuple[int, bool, str], Callable[..., Any]] = {}
    for width, causal, fixed in product(module.DIMS, (False, True), (False, True)):
        name = "fa3-fixed" if fixed else "fa3"
        call, worst = partial(module.backward, library, deterministic=fixed), [0.0] * 3
        for shape in checked(width, count, causal=causal, masked_rows=False):
            worst = built_variants.larger(worst, peer_errors(torch, call, shape))
        said = f"{name} d{width} {'causal' if causal else 'full'}"
        print(f"{said}: {count} shapes, worst errors {', '.join(f'{each:.1e}' for each in worst)}", flush=True)
        if max(worst) <= CLOSE:
            found[width, causal, name] = call
    return found


def peer_errors(torch: Any, call: Callable[..., Any], shape: Shape) -> tuple[float, ...]:  # noqa: ANN401 reason: untyped
    """The largest errors of a peer's gradients of q, k and v."""
    q, k, v = operands(torch, shape, torch.bfloat16)
    do = torch.randn_like(q)
    wanted, o, lse = exact(torch, shape, (q, k, v, do))
    made = call((q, k, v), (o, lse), do, shape.causal)()
    torch.cuda.synchronize()
    return tuple(map(apart, made, wanted))


def apart(found: Any, right: Any) -> float:  # noqa: ANN401 reason: tensors
    """The largest difference, over the largest element that is right, or over 1; infinite if it is not a number."""
    difference = (found.double() - right).abs().max().item() / max(1.0, right.abs().max().item())
    return inf if isnan(difference) else difference


def timed(torch: Any, programs: Mapping[str, Any], shape: Shape, fa3: Mapping[Any, Any], rounds: int) -> Rows:  # noqa: ANN401 reason: untyped
    q, k, v = operands(torch, shape, torch.bfloat16)
    do, o = torch.randn_like(q), torch.randn_like(q)
    lse = torch.full(q.shape[:3], 10.0, device="cuda")
    other, call = peer(torch, shape, (q, k, v, do))
    calls: dict[str, Callable[[], object]] = {other: call}
    for (width, causal, name), made in fa3.items():
        if (width, causal) == (shape.D, shape.causal):
            calls[name] = made((q, k, v), (o, lse), do, causal)
    theirs = tuple(calls)
    for name, program in programs.items():
        if takes(name, shape):
            made = tuple(torch.empty_like(each) for each in (q, k, v))
            calls[name] = bound(torch, program, shape, (q, k, v, o, do, lse, *made))
    driver = next(iter(programs.values())).driver
    return built_variants.timed_beside(torch, driver, calls, theirs, str(shape), operations(shape), rounds)


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        rows: list[Mapping[str, Any]] = []
        fa3 = flash3(torch, min(chosen.checked, PEERS_CHECKED))
        for shape in shapes()[: chosen.most]:
            if any(takes(name, shape) for name in good):
                rows += timed(torch, good, shape, fa3, chosen.rounds)
        print(built_variants.table(rows) if rows else "", flush=True)
        return rows

    load = import_module("argus.runtime.programs").load_program
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "attention_backward.json")


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
