"""Times windowed and capped attention on an H200: `benchmarks/attention_windows_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/attention_windows; needs no GPU. run: checks each
against float64 on random shapes, windows and caps, with poisoned outputs between guard zones, then times it beside
torch's flex attention, compiled, and its SDPA with a mask: interleaved, in rounds of rotating order, in both regimes.
Operations are those of pairs of a query and a key that it sees. Writes attention_windows.json in `--out`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import isnan, log
from random import Random
from typing import Any

import built_variants
from attention_h200 import CHECKED, CLOSE, CLOSE_F16, CLOSE_LSE, FOLDER, GUARD, Shape, guarded, operands
from attrs import evolve, frozen

from argus.ops.attention import WINDOWED

HERE = FOLDER.parent / "attention_windows"
ROUNDS = 8
CLOSE_CAPPED = 2.0**-10
"""Of the log-sum-exp of capped scores: the GPU's tanh has a relative error of up to 2^-11."""


@frozen
class Case:
    """A shape; query s sees the keys from s + T - S - left to s + T - S + right. cap: of the scores, 0 for none."""

    shape: Shape
    left: int
    right: int
    cap: float = 0.0

    def __str__(self) -> str:
        left = "all" if self.left >= self.shape.T else str(self.left)
        right = "all" if self.right >= self.shape.S else str(self.right)
        return f"{evolve(self.shape, causal=False)}, {left} to {right}{f', cap {self.cap:g}' if self.cap else ''}"

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that it sees."""
        offset = self.shape.T - self.shape.S
        ends = ((max(0, s - self.left), min(self.shape.T, s + self.right + 1)) for s in range(offset, self.shape.T))
        return sum(max(0, end - first) for first, end in ends)

    @property
    def operations(self) -> float:
        """Floating-point operations of both products."""
        return 4.0 * self.shape.B * self.shape.H * self.shape.D * self.pairs

    @property
    def sizes(self) -> dict[str, int]:
        return {**self.shape.sizes, "left": min(self.left, self.shape.T), "right": min(self.right, self.shape.S)}


def cases() -> list[Case]:
    most = 1 << 20
    long, wide = Shape(2, 16, 16, 8192, 8192, 128, causal=True), Shape(2, 64, 8, 4096, 4096, 128, causal=True)
    narrow, widest = Shape(2, 32, 32, 8192, 8192, 64, causal=True), Shape(2, 8, 8, 8192, 8192, 256, causal=True)
    windows = [(1023, 0), (4095, 0), (512, 512), (most, 0)]
    return [
        *(Case(long, *window) for window in windows),
        Case(wide, 1023, 0),
        Case(narrow, 1023, 0),
        Case(widest, 1023, 0),
        Case(long, 4095, 0, 50.0),
        Case(long, most, 0, 50.0),
    ]


def variants() -> dict[str, tuple[Any, Any]]:
    """The family and the configuration of each variant."""
    return {
        f"d{width}_{name}{'_f16' if dtype == 'torch.float16' else ''}": (family, family.configs[name])
        for dtype, families in WINDOWED.items()
        for width, family in families.items()
        for name in family.configs
    }


def build(chosen: argparse.Namespace) -> int:
    traced = {name: partial(family.instance, config, name) for name, (family, config) in variants().items()}
    return built_variants.build(chosen, HERE, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


def mask(torch: Any, case: Case) -> Any:  # noqa: ANN401 reason: untyped
    """Whether each query sees each key."""
    shape = case.shape
    own = torch.arange(shape.S, device="cuda")[:, None] + shape.T - shape.S
    key = torch.arange(shape.T, device="cuda")[None, :]
    return (key >= own - case.left) & (key <= own + case.right)


def exact(torch: Any, case: Case, q: Any, k: Any, v: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The outputs in float64."""
    shape = case.shape
    many = shape.H // shape.G
    k, v = (each.double().repeat_interleave(many, dim=1) for each in (k, v))
    scores = (q.double() @ k.mT) * shape.D**-0.5
    scores = case.cap * torch.tanh(scores / case.cap) if case.cap else scores
    scores.masked_fill_(~mask(torch, case), float("-inf"))
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v, torch.logsumexp(scores, -1)  # no key: 0 and -inf


def bound(torch: Any, kernel: Any, case: Case, given: Sequence[Any]) -> Callable[[], None]:  # noqa: ANN401 reason: untyped
    """A launch on q, k, v, o and lse."""
    scale = case.shape.D**-0.5
    outer, inner = (case.cap, scale / case.cap) if case.cap else (scale, 1.0)
    factors = (torch.full((1,), each, device="cuda") for each in (outer / log(2.0), inner))
    tensors = dict(zip(("Q", "K", "V", "O", "LSE", "scale", "inner"), (*given, *factors), strict=True))
    launch = kernel.prepare(case.sizes).bind(tensors, torch.cuda.current_stream().cuda_stream)
    return built_variants.keeping(launch, tensors)


def errors(torch: Any, kernel: Any, case: Case, dtype: Any, *, by_rows: bool) -> tuple[float, float]:  # noqa: ANN401 reason: untyped
    """The largest errors of both outputs, of O relative to values above 1.

    nan where an element was not written, inf where a guard zone was.
    """
    shape = case.shape
    q, k, v = operands(torch, shape, dtype, by_rows=by_rows)
    o, around = guarded(torch, (shape.B, shape.H, shape.S, shape.D), dtype)
    lse, beside = guarded(torch, (shape.B, shape.H, shape.S), torch.float32)
    bound(torch, kernel, case, (q, k, v, o, lse))()
    torch.cuda.synchronize()
    for whole in (around, beside):
        if not bool((whole[:GUARD] == 1).all()) or not bool((whole[-GUARD:] == 1).all()):
            return float("inf"), float("inf")
    wanted, sums = exact(torch, case, q, k, v)
    off = torch.where(lse == sums, 0.0, lse.double() - sums)  # both may be -inf
    return ((o.double() - wanted).abs() / wanted.abs().clamp(min=1.0)).max().item(), off.abs().max().item()


def checked(width: int, count: int, *, capped: bool) -> Iterator[Case]:
    random = Random(width + capped)  # noqa: S311 reason: a seed makes the shapes repeatable
    for number in range(count):
        group, groups, batch = random.choice((1, 2, 3, 8)), random.randint(1, 3), random.randint(1, 3)
        rows = random.choice((1, 63, 64, 65, 128, 129, 300)) if number % 2 else random.randint(1, 900)
        keys = random.choice((rows, rows + 127, random.randint(1, 900), random.randint(1, rows)))
        shape = Shape(batch, group * groups, groups, rows, keys, width, causal=True)
        left, right = (random.choice((0, 1, 63, 127, 128, 200, 1 << 20, random.randint(0, 900))) for _ in range(2))
        yield Case(shape, left, random.choice((0, right)), random.choice((2.0, 8.0, 50.0)) if capped else 0.0)


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, half, capped = name.split("_", maxsplit=1)[0], name.endswith("f16"), "capped" in name
    dtype, close = (torch.float16, CLOSE_F16) if half else (torch.bfloat16, CLOSE)
    close_lse = CLOSE_CAPPED if capped else CLOSE_LSE
    worst, bad = [0.0, 0.0], list[str]()
    for number, case in enumerate(checked(int(width[1:]), count, capped=capped)):
        found = errors(torch, kernel, case, dtype, by_rows=number % 3 == 0)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if any(map(isnan, found)) or found[0] > close or found[1] > close_lse:
            bad.append(f"{case}: {found}")
    said = f"WRONG {bad[:4]}" if bad else f"worst errors {worst[0]:.1e} and {worst[1]:.1e}"
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def flex(torch: Any, case: Case, q: Any, k: Any, v: Any) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """torch's flex attention of the case, compiled. Raises where torch cannot compile here."""
    module = import_module("torch.nn.attention.flex_attention")
    offset, left, right, cap = case.shape.T - case.shape.S, case.left, case.right, case.cap

    def sees(_b: Any, _h: Any, s: Any, t: Any) -> Any:  # noqa: ANN401 reason: untyped
        return (t >= s + offset - left) & (t <= s + offset + right)

    def capped(score: Any, *_: Any) -> Any:  # noqa: ANN401 reason: untyped
        return cap * torch.tanh(score / cap)

    blocks = module.create_block_mask(sees, None, None, case.shape.S, case.shape.T, device="cuda")
    import_module("torch._dynamo").reset()  # it stops to compile one function for more than eight windows
    compiled = torch.compile(module.flex_attention, dynamic=False)
    more = {"score_mod": capped} if cap else {}

    def call() -> object:
        return compiled(q, k, v, block_mask=blocks, enable_gqa=case.shape.H != case.shape.G, **more)

    call()
    return call


def peers(torch: Any, case: Case, q: Any, k: Any, v: Any, *, compiled: bool) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    found: dict[str, Callable[[], object]] = {}
    try:
        found |= {"flex": flex(torch, case, q, k, v)} if compiled else {}
    except Exception as problem:  # noqa: BLE001 reason: torch's compiler raises anything where it is not installed
        print(f"{case}: no flex attention: {type(problem).__name__}: {str(problem)[:100]}", flush=True)
    functional, seen = import_module("torch.nn.functional"), mask(torch, case)
    if not case.cap:
        found["sdpa"] = lambda: functional.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, enable_gqa=case.shape.H != case.shape.G
        )
    return found


def timed(torch: Any, kernels: Mapping[str, Any], case: Case, chosen: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    q, k, v = operands(torch, case.shape, torch.bfloat16)
    calls = peers(torch, case, q, k, v, compiled=not chosen.no_flex)
    theirs = tuple(calls)
    for name, kernel in kernels.items():
        if name.startswith(f"d{case.shape.D}_") and not name.endswith("f16") and ("capped" in name) == bool(case.cap):
            made = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
            calls[name] = bound(torch, kernel, case, (q, k, v, *made))
    driver = next(iter(kernels.values())).driver
    return built_variants.timed_beside(torch, driver, calls, theirs, str(case), case.operations, chosen.rounds)


def run(chosen: argparse.Namespace) -> int:
    def all_timed(torch: Any, good: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 reason: untyped
        return [row for case in cases()[: chosen.most] for row in timed(torch, good, case, chosen)]

    load = import_module("argus.runtime.gpu.launch").load
    return built_variants.run(chosen, HERE, load, is_right, all_timed, "attention_windows.json")


def main() -> int:
    parser = built_variants.options(__doc__, HERE, ROUNDS, CHECKED)
    parser.add_argument(
        "--no-flex", action="store_true", help="without flex attention, which torch compiles in a minute"
    )
    chosen = parser.parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
