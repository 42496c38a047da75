"""Times gradients of packed sequences: `benchmarks/attention_varlen_backward_h200.py build`, then `... run`.

build: traces, verifies and compiles every kernel into build/attention_varlen_backward_h200; needs no GPU. run: checks
each variant against float64 on random mixes of lengths, empty sequences among them, with poisoned outputs between guard
zones, then times it vs. torch's FlashAttention-2, with offsets checked when bound and before every launch: interleaved,
in rounds of rotating order, in both regimes. Writes varlen_backward.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import json
import shutil
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from itertools import accumulate
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any

import attention_backward_h200
import built_variants
from attention_h200 import Shape
from attention_varlen_h200 import GUARD, Given, Mix, guarded, mixes, operands, random_mix

from argus.core.ir import Kernel
from argus.kernels.packed_attention_backward import FAMILIES, MASKS

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_varlen_backward_h200"
ROUNDS, CHECKED = 7, 120
CLOSE = 2.0**-6
"""The largest difference from float64, over the largest element of the gradient, or over 1."""
NAMES = ("dQ", "dK", "dV")


def variants() -> dict[str, dict[str, Callable[[], Kernel]]]:
    """The kernels of each variant, which are traced on demand: of bf16, unless its name ends in f16."""
    return {
        f"d{width}_{config}{'' if str(dtype) == 'bf16' else '_f16'}": {
            "rows": partial(made.rows.trace, "packed"),
            **{"".join(outputs): partial(template.trace, config) for template, outputs in made.gradients},
        }
        for dtype, widths in FAMILIES.items()
        for width, made in widths.items()
        for config in MASKS
    }


def build(chosen: Namespace) -> int:
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above

    failed = 0
    for name, parts in variants().items():
        if chosen.names and name not in chosen.names:
            continue
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        for part, traced in parts.items():
            kernel, start = traced(), time.process_time()
            verdict = None if chosen.unproved else verify(kernel, solver="z3").verdict
            took = time.process_time() - start
            if verdict is not None and not isinstance(verdict, Proved):
                print(f"{name} {part}: skipped: {str(verdict)[:300]}", flush=True)
                failed += 1
                continue
            report = compiled(kernel, "sm_90a", FOLDER / name / part).report
            said = "not verified" if verdict is None else f"verified in {took:.1f} s"
            print(f"{name} {part}: {said}; {report}", flush=True)
    return int(failed > 0)


# -- on the GPU ----------------------------------------------------------------------------------------------


def load(folder: Path) -> dict[str, Any]:
    loaded = import_module("argus.runtime.gpu.launch").load
    return {each.name: loaded(next(each.glob("*.json"))) for each in folder.iterdir()}


def exact(torch: Any, mix: Mix, given: Given, do: Any, *, causal: bool) -> tuple[list[Any], Any, Any]:  # noqa: ANN401 reason: untyped
    """The gradients in float64, one sequence after another, the output, and the log-sum-exp, (heads, rows)."""
    wanted = [torch.zeros_like(each, dtype=torch.float64) for each in (given.q, given.k, given.v)]
    out, lse = torch.zeros_like(given.q), torch.full((mix.H, given.q.shape[0]), -inf, device="cuda")
    starts = ([0, *accumulate(lengths)] for lengths in (mix.queries, mix.keys))
    for q, k, rows, keys in zip(*starts, mix.queries, mix.keys, strict=False):
        if not rows or not keys:
            continue
        pairs = ((given.q, q, rows), (given.k, k, keys), (given.v, k, keys), (do, q, rows))
        one = [each[first : first + count].transpose(0, 1)[None] for each, first, count in pairs]
        shape = Shape(1, mix.H, mix.G, rows, keys, mix.D, causal)
        found, own_out, own_lse = attention_backward_h200.exact(torch, shape, one)
        for total, each, (_, first, count) in zip(wanted, found, pairs, strict=False):
            total[first : first + count] = each[0].transpose(0, 1)
        out[q : q + rows], lse[:, q : q + rows] = own_out[0].transpose(0, 1), own_lse[0]
    return wanted, out, lse


def bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    parts: Mapping[str, Any],
    mix: Mix,
    tensors: Mapping[str, Any],
    promises: str = "fetch",
) -> Callable[[], None]:
    """Launches on q, k, v and the offsets, O, dO, LSE, and the gradients by name, with workspaces of NaN."""
    rows, heads = tensors["O"].shape[:2]
    padded = -(-rows // 64) * 64
    sums, delta = (torch.full((heads, padded), float("nan"), device="cuda") for _ in range(2))
    sizes = {"H": heads, "S": rows, "G": mix.G, "T": sum(mix.keys), "R": padded, "N": len(mix.queries) + 1}
    sizes |= {"sequences": len(mix.queries), "longest_q": max(mix.queries), "longest_k": max(mix.keys)}
    scale = torch.full((1,), mix.D**-0.5 / log(2), device="cuda")
    turned = {name: tensors[name].transpose(0, 1) for name in ("Q", "K", "V", "dO")}
    given = {**tensors, **turned, "L": sums, "Delta": delta, "scale": scale}
    stream = torch.cuda.current_stream().cuda_stream
    launches = [
        parts["rows"].bind({**given, "dO": tensors["dO"]}, sizes, stream),
        *(kernel.bind(given, sizes, stream, promises) for part, kernel in parts.items() if part != "rows"),
    ]

    def launch() -> None:
        for each in launches:
            each()

    return built_variants.keeping(launch, given)


def inputs(given: Given, do: Any, out: Any, lse: Any) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    own = {"Q": given.q, "K": given.k, "V": given.v, "starts_q": given.starts_q, "starts_k": given.starts_k}
    return {**own, "dO": do, "O": out, "LSE": lse}


def errors(torch: Any, parts: Mapping[str, Any], mix: Mix, dtype: Any, *, causal: bool) -> list[float]:  # noqa: ANN401 reason: untyped
    """The largest errors of the gradients; nan where an element was not written, inf where a guard zone was."""
    given = operands(torch, mix, dtype)
    do = torch.randn_like(given.q)
    wanted, out, lse = exact(torch, mix, given, do, causal=causal)
    made = [guarded(torch, tuple(each.shape), dtype) for each in (given.q, given.k, given.v)]
    outputs = dict(zip(NAMES, (each for each, _ in made), strict=True))
    bound(torch, parts, mix, {**inputs(given, do, out, lse), **outputs})()
    torch.cuda.synchronize()
    if not all(bool((each[:GUARD] == 1).all()) and bool((each[-GUARD:] == 1).all()) for _, each in made):
        return [inf] * 3
    pairs = zip(made, wanted, strict=True)
    return [(each.double() - of).abs().max().item() / max(1.0, of.abs().max().item()) for (each, _), of in pairs]


def is_right(torch: Any, name: str, parts: Mapping[str, Any], count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, kind = name.split("_")[:2]
    dtype = torch.float16 if name.endswith("f16") else torch.bfloat16
    random = Random(name)  # noqa: S311 reason: a seed makes the mixes repeatable
    worst, bad = [0.0] * 3, list[str]()
    for _ in range(count):
        mix = random_mix(random, int(width[1:]))
        found = errors(torch, parts, mix, dtype, causal=kind == "causal")
        worst = built_variants.larger(worst, found)
        if not all(each <= CLOSE for each in found):
            bad.append(f"{mix}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else "worst errors " + ", ".join(f"{each:.1e}" for each in worst)
    print(f"{name}: {count} mixes, {said}", flush=True)
    return not bad


def peer(torch: Any, mix: Mix, given: Given, do: Any, *, causal: bool) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """torch's backward of FlashAttention-2 on packed sequences."""
    aten = torch.ops.aten
    rest = (given.starts_q, given.starts_k, max(mix.queries), max(mix.keys), 0.0, causal)
    out, lse, *seeds = aten._flash_attention_forward(given.q, given.k, given.v, *rest, False)
    return lambda: aten._flash_attention_backward(do, given.q, given.k, given.v, out, lse, *rest, *seeds[:2])


def timed(torch: Any, every: Mapping[str, Any], mix: Mix, rounds: int, *, causal: bool) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    own = f"d{mix.D}_{'causal' if causal else 'full'}"
    names = [name for name in every if name.startswith(own) and not name.endswith("f16")]
    if not names:
        return []
    given = operands(torch, mix, torch.bfloat16)
    do, out = torch.randn_like(given.q), torch.randn_like(given.q)
    lse = torch.full((mix.H, given.q.shape[0]), 10.0, device="cuda")
    outputs: dict[str, Any] = {f"d{name}": torch.empty_like(getattr(given, name.lower())) for name in "QKV"}
    tensors = {**inputs(given, do, out, lse), **outputs}
    calls: dict[str, Callable[[], object]] = {
        "flash2": peer(torch, mix, given, do, causal=causal),
        **{name: bound(torch, every[name], mix, tensors) for name in names},
        f"{names[0]} guarded": bound(torch, every[names[0]], mix, tensors, "stop"),
    }
    operations = 10.0 * mix.pairs(causal=causal) * mix.H * mix.D
    shape, driver = f"{mix.name} {'causal' if causal else 'full'}", every[names[0]]["rows"].driver
    return built_variants.timed_beside(torch, driver, calls, ("flash2",), shape, operations, rounds)


def run(chosen: Namespace) -> int:
    torch: Any = import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    every = {
        path.name: load(path) for path in sorted(FOLDER.iterdir()) if not chosen.names or path.name in chosen.names
    }
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    good = {name: each for name, each in every.items() if is_right(torch, name, each, chosen.checked)}
    rows = [
        row
        for mix in mixes()[: chosen.most]
        for causal in (True, False)
        for row in timed(torch, good, mix, chosen.rounds, causal=causal)
    ]
    print(built_variants.table(rows) if rows else "", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "varlen_backward.json").write_text(json.dumps(rows), "utf-8")
    return int(len(good) < len(every))


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
