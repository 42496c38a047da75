"""Times attention vs. FlashAttention-3 and cuDNN on an H200: `benchmarks/attention_h200.py build`, then `... run`.

build: traces, verifies and compiles every variant into build/attention_h200; needs no GPU. run: checks each variant
against float64 on random shapes, with poisoned outputs between guard zones, then times it vs. the peers: interleaved,
in rounds of rotating order, in both regimes. FlashAttention-3 is what `benchmarks/peers/flash_attention_3.py` has
built; without it, cuDNN alone is timed. Writes attention.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

import built_variants
from attrs import frozen

from argus.kernels.schedules.attention_hopper import AttentionHopper
from argus.ops.attention import FAMILIES as SHIPPED

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_h200"
ROUNDS, CHECKED = 12, 120
CLOSE, CLOSE_F16, CLOSE_LSE = 2.0**-6, 2.0**-9, 2.0**-14
GUARD = 4096
"""Elements before and after an output that must stay as they are."""


@frozen
class Shape:
    """B sequences of S queries in H heads and T keys in G heads, of D elements."""

    B: int
    H: int
    G: int
    S: int
    T: int
    D: int
    causal: bool

    def __str__(self) -> str:
        heads = f"{self.H}/{self.G}" if self.H != self.G else f"{self.H}"
        keys = f"{self.S} on {self.T}" if self.S != self.T else f"{self.S}"
        return f"b{self.B} h{heads} {keys} d{self.D} {'causal' if self.causal else 'full'}"

    @property
    def sizes(self) -> dict[str, int]:
        return {"B": self.B, "H": self.H, "S": self.S, "G": self.G, "T": self.T}

    @property
    def operations(self) -> float:
        """Floating-point operations of both products; half of them if causal."""
        return 4.0 * self.B * self.H * self.S * self.T * self.D / (2 if self.causal else 1)


def shapes() -> list[Shape]:
    sizes = [(2, 16, 16, 8192), (8, 16, 16, 2048), (1, 16, 16, 16384), (2, 64, 8, 4096), (32, 16, 16, 512)]
    wide = [
        Shape(b, h, g, s, s, 128, causal) for causal in (False, True) for b, h, g, s in (*sizes, (16, 16, 16, 1000))
    ]
    narrow = [Shape(b, 32, 32, s, s, 64, causal) for causal in (False, True) for b, s in ((2, 8192), (8, 2048))]
    widest = [Shape(b, 8, 8, s, s, 256, causal) for causal in (False, True) for b, s in ((2, 8192), (8, 2048))]
    return wide + narrow + widest


def variants() -> dict[str, tuple[Any, Any]]:
    """The family and the configuration of each variant; of bf16, unless its name ends in f16."""
    found = {
        f"d{width}_{name}{'_f16' if dtype == 'torch.float16' else ''}": (family, family.configs[name])
        for dtype, families in SHIPPED.items()
        for width, family in families.items()
        for name, config in family.configs.items()
        if isinstance(config, AttentionHopper)
    }
    for width, keys in ((128, (112, 144, 176)), (64, (128, 160, 224))):
        for causal, bn, together in product((False, True), keys, (False, True)):
            name = f"d{width}_{'causal' if causal else 'full'}_{bn}{'_together' if together else ''}"
            config = AttentionHopper(bn=bn, causal=causal, together=together, boxes=1 + (bn < 176))
            found[name] = SHIPPED["torch.bfloat16"][width], config
    return found


def build(chosen: argparse.Namespace) -> int:
    traced = {name: partial(family.instance, config, name) for name, (family, config) in variants().items()}
    return built_variants.build(chosen, FOLDER, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


def takes(name: str, shape: Shape) -> bool:
    width, kind = name.split("_")[:2]
    right = width == f"d{shape.D}" and kind == ("causal" if shape.causal else "full")
    return right and not name.endswith("f16")  # timed in bf16


def operands(torch: Any, shape: Shape, dtype: Any, *, by_rows: bool = False) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: untyped
    """Random queries, keys and values; by_rows: with the heads of a row side by side, as (B, S, H, D)."""
    found: list[Any] = []
    for heads, rows in ((shape.H, shape.S), (shape.G, shape.T), (shape.G, shape.T)):
        axes = (shape.B, rows, heads, shape.D) if by_rows else (shape.B, heads, rows, shape.D)
        made = torch.randn(axes, device="cuda", dtype=dtype)
        found.append(made.transpose(1, 2) if by_rows else made)
    return found[0], found[1], found[2]


def guarded(torch: Any, extents: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN within guard zones of ones, and all of that memory."""
    count = 1
    for extent in extents:
        count *= extent
    whole = torch.ones(count + 2 * GUARD, device="cuda", dtype=dtype)
    inside = whole[GUARD : GUARD + count]
    inside.fill_(float("nan"))
    return inside.view(extents), whole


def untouched(whole: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether both guard zones are as they were."""
    return bool((whole[:GUARD] == 1).all()) and bool((whole[-GUARD:] == 1).all())


def exact(torch: Any, shape: Shape, q: Any, k: Any, v: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The outputs in float64."""
    many = shape.H // shape.G
    k, v = (each.double().repeat_interleave(many, dim=1) for each in (k, v))
    scores = (q.double() @ k.mT) * shape.D**-0.5
    if shape.causal:
        row, key = torch.arange(shape.S, device="cuda"), torch.arange(shape.T, device="cuda")
        scores.masked_fill_(key[None, :] > row[:, None] + shape.T - shape.S, float("-inf"))
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v, torch.logsumexp(scores, -1)  # no key: 0 and -inf


def bound(torch: Any, kernel: Any, shape: Shape, given: Sequence[Any]) -> Callable[[], None]:  # noqa: ANN401 reason: untyped
    """A launch on q, k, v, o and lse."""
    scale = torch.full((1,), shape.D**-0.5 * 1.4426950408889634, device="cuda")
    tensors = dict(zip(("Q", "K", "V", "O", "LSE", "scale"), (*given, scale), strict=True))
    launch = kernel.prepare(shape.sizes).bind(tensors, torch.cuda.current_stream().cuda_stream)
    return built_variants.keeping(launch, tensors)


def errors(torch: Any, kernel: Any, shape: Shape, dtype: Any, *, by_rows: bool) -> tuple[float, float]:  # noqa: ANN401 reason: untyped
    """The largest errors of both outputs; nan where an element was not written, inf where a guard zone was."""
    q, k, v = operands(torch, shape, dtype, by_rows=by_rows)
    o, around = guarded(torch, (shape.B, shape.H, shape.S, shape.D), dtype)
    lse, beside = guarded(torch, (shape.B, shape.H, shape.S), torch.float32)
    bound(torch, kernel, shape, (q, k, v, o, lse))()
    torch.cuda.synchronize()
    if not (untouched(around) and untouched(beside)):
        return float("inf"), float("inf")
    wanted, sums = exact(torch, shape, q, k, v)
    off = torch.where(lse == sums, 0.0, lse.double() - sums)  # both may be -inf
    return (o.double() - wanted).abs().max().item(), off.abs().max().item()


def checked(width: int, count: int, *, causal: bool, masked_rows: bool) -> Iterator[Shape]:
    random = Random(width + causal)  # noqa: S311 reason: a seed makes the shapes repeatable
    for number in range(count):
        group, groups, batch = random.choice((1, 2, 3, 8)), random.randint(1, 3), random.randint(1, 3)
        rows = random.choice((1, 63, 64, 65, 128, 129, 300)) if number % 2 else random.randint(1, 700)
        keys = rows + random.choice((0, 0, 1, 64, 127, 300)) if causal else random.randint(1, 700)
        keys = random.randint(1, rows + 100) if masked_rows else keys
        yield Shape(batch, group * groups, groups, rows, keys, width, causal)


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, kind = name.split("_")[:2]
    half = name.endswith("f16")
    dtype, close = (torch.float16, CLOSE_F16) if half else (torch.bfloat16, CLOSE)
    worst, bad = [0.0, 0.0], list[str]()
    causal, config = kind == "causal", variants()[name][1]
    for number, shape in enumerate(checked(int(width[1:]), count, causal=causal, masked_rows=config.masked_rows)):
        found = errors(torch, kernel, shape, dtype, by_rows=number % 3 == 0)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if any(map(isnan, found)) or found[0] > close or found[1] > CLOSE_LSE:
            bad.append(f"{shape}: {found}")
    said = f"WRONG {bad[:4]}" if bad else f"worst errors {worst[0]:.1e} and {worst[1]:.1e}"
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def peers(shape: Shape, q: Any, k: Any, v: Any) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    attention = import_module("torch.nn.attention")
    functional = import_module("torch.nn.functional")
    backend = attention.SDPBackend.CUDNN_ATTENTION

    def cudnn() -> object:
        with attention.sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(
                q, k, v, is_causal=shape.causal, enable_gqa=shape.H != shape.G
            )

    found: dict[str, Callable[[], object]] = {"cudnn": cudnn}
    module = import_module("peers.flash_attention_3_calls")
    library = module.load_if_built()
    if library is not None and shape.D in module.DIMS:
        found["fa3"] = module.forward(library, q, k, v, shape.causal)
    return found


def timed(torch: Any, kernels: Mapping[str, Any], shape: Shape, rounds: int) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    q, k, v = operands(torch, shape, torch.bfloat16)
    calls = peers(shape, q, k, v)
    theirs = tuple(calls)
    for name, kernel in kernels.items():
        if takes(name, shape):
            made = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
            calls[name] = bound(torch, kernel, shape, (q, k, v, *made))
    driver = next(iter(kernels.values())).driver
    return built_variants.timed_beside(torch, driver, calls, theirs, str(shape), shape.operations, rounds)


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        rows: list[dict[str, Any]] = []
        for shape in shapes()[: chosen.most]:
            if any(takes(name, shape) for name in good):
                rows += timed(torch, good, shape, chosen.rounds)
        print(built_variants.table(rows) if rows else "", flush=True)
        return rows

    load = import_module("argus.runtime.gpu.launch").load
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "attention.json")


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
