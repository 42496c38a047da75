"""The part of `route_h200.py` about `argus.route`: checks and times of experts and their weights."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from random import Random
from typing import Any

from attrs import evolve, frozen
from graph_times import host_time, times

import argus
from argus.kernels.routing import FAMILIES, choose, family
from argus.kernels.schedules.routing_claims import Scoring
from argus.runtime.kernel_cache import build_cached, verify_cached

KINDS = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
COMMON = (1, 2, 7, 8, 16, 60, 64, 100, 128, 160, 255, 256, 384, 511, 512)
SCORINGS: tuple[Scoring, ...] = ("softmax", "sigmoid")
WEIGHED: tuple[tuple[int, int, int, str, Scoring, bool, bool], ...] = (
    (1, 256, 8, "bfloat16", "sigmoid", True, True),
    (64, 256, 8, "bfloat16", "sigmoid", True, True),
    (64, 8, 2, "bfloat16", "softmax", False, True),
    (1024, 64, 6, "float32", "softmax", False, False),
    (8192, 8, 2, "bfloat16", "softmax", False, True),
    (8192, 64, 8, "bfloat16", "softmax", False, False),
    (8192, 256, 8, "float32", "sigmoid", True, True),
    (8192, 512, 8, "float32", "softmax", False, True),
    (32768, 256, 8, "bfloat16", "softmax", False, False),
)
"""Tokens, experts, k, the type and the scoring, whether there is a bias, and whether weights are renormalised."""
BLOCKS = ((1, 1), (2, 1), (4, 4), (8, 4), (16, 4), (32, 8))
"""Rows and warps of a Triton program."""


@frozen
class Case:
    """Random scores: their number and type, how large, which are equal or -inf, and the options of the call."""

    tokens: int
    experts: int
    kind: str
    size: float
    how: str
    k: int
    scoring: Scoring
    biased: bool
    renormalize: bool
    scale: float
    groups: int = 0
    top: int = 0

    @property
    def kernel(self) -> tuple[str, str]:
        """The family and the configuration that weigh them."""
        options = {"renormalised": self.renormalize, "biased": self.biased, "grouped": self.groups > 0}
        name = family(KINDS[self.kind], self.scoring, **options)
        return name, choose(KINDS[self.kind], self.experts)


WRONG = Case(64, 256, "float32", 1.0, "plain", 8, "softmax", biased=False, renormalize=False, scale=1.0)
"""Whose choices are made wrong."""


def cases(count: int) -> list[Case]:
    """All types, any numbers of experts."""
    random, found = Random("scores"), list[Case]()  # noqa: S311 reason: a seed makes them repeatable
    for _ in range(count):
        experts = random.choice(
            (1, 2, 7, 8, 16, 60, 64, 100, 128, 160, 255, 256, 384, 511, 512, random.randint(1, 512))
        )
        tokens = random.choice((1, random.randint(1, 70), random.randint(1, 5000)))
        kind, size = random.choice(tuple(KINDS)), random.choice((0.5, 1.0, 4.0))
        how = random.choice(("plain", "plain", "equal", "zeros", "without"))
        k, scoring = random.randint(1, min(8, experts)), random.choice(SCORINGS)
        biased, renormalize = scoring == "sigmoid" and random.randrange(5) < 3, random.randrange(2) == 1
        scale = random.choice((1.0, 2.5))
        made = Case(tokens, experts, kind, size, how, k, scoring, biased, renormalize, scale)
        found.append(in_groups(made, random) if random.randrange(3) == 0 else made)
    return found


def in_groups(case: Case, random: Random) -> Case:
    """The same among groups of experts, if there are some, of which tokens choose in a part."""
    sizes = [size for size in range(2, case.experts + 1) if case.experts % size == 0]
    if not sizes or case.how == "without":  # then which of the experts without a score are chosen is another question
        return case
    size = random.choice(sizes)
    groups = case.experts // size
    return evolve(case, groups=groups, top=random.randint(min(groups, -(-case.k // size)), groups))


def scores_of(torch: Any, case: Case) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 reason: untyped
    """Scores, and the options of the call."""
    x = torch.randn((case.tokens, case.experts), device="cuda") * case.size
    if case.how == "equal":
        x = x.round()
    if case.how == "zeros":
        x = torch.where(x < 0, -0.0, 0.0)
    if case.how == "without":
        x[:, : case.experts - case.k] = float("-inf")
    options: dict[str, Any] = {"scoring": case.scoring, "renormalize": case.renormalize, "scale": case.scale}
    if case.biased:
        options["bias"] = torch.randn(case.experts, device="cuda") / 8
    if case.groups:
        options |= {"groups": case.groups, "top_groups": case.top}
    return x.to(getattr(torch, case.kind)), options


def prepare(kernels: Iterable[tuple[str, str]]) -> None:
    """Verify and build kernels, several at a time, for the calls that follow."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_prepared, sorted(set(kernels))))
    print(f"{found.count('proved')} of {len(found)} kernels are proved", flush=True)


def _prepared(kernel: tuple[str, str]) -> str:
    name, config = kernel
    traced = FAMILIES[name].trace(config)
    build_cached(traced)
    return verify_cached(traced).verdict


def weighed(torch: Any, x: Any, k: int, options: Mapping[str, Any]) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: untyped
    """In float64: weights, experts, and which of them no rounding of f32 decides."""
    wide = x.double() + 0.0
    scores = torch.softmax(wide, 1) if options["scoring"] == "softmax" else torch.sigmoid(wide)
    bias = options.get("bias")
    keys = wide if bias is None else scores + bias.double()
    clear = torch.ones((x.shape[0],), dtype=torch.bool, device="cuda")
    if "groups" in options:
        keys, clear = among_groups(torch, keys, options)
    held, order = torch.sort(keys, dim=1, descending=True, stable=True)
    ids, weights = order[:, :k], torch.gather(scores, 1, order[:, :k])
    if bias is not None and x.shape[1] > 1:
        clear &= ((held[:, :-1] - held[:, 1:])[:, :k] > 1e-6).all(1)
    if options["renormalize"]:
        weights = weights / weights.sum(1, keepdim=True)
    return weights * options["scale"], ids, clear


def among_groups(torch: Any, keys: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """Keys without those of all but the best groups, and the tokens whose best ones no rounding of f32 decides."""
    groups, top, biased = options["groups"], options["top_groups"], "bias" in options
    parts = keys.view(keys.shape[0], groups, -1)
    scores = parts.topk(2)[0].sum(-1) if biased else parts.amax(-1)
    held, order = torch.sort(scores, dim=1, descending=True, stable=True)
    kept = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, order[:, :top], True)[:, :, None]
    clear = torch.ones((keys.shape[0],), dtype=torch.bool, device="cuda")
    if biased and top < groups:
        clear = held[:, top - 1] - held[:, top] > 1e-6
    return torch.where(kept, parts, float("-inf")).view_as(keys), clear


def routes_rightly(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    bad, worst, compared = list[str](), 0.0, 0
    torch.manual_seed(1)
    for case in cases(count):
        k = case.k
        x, options = scores_of(torch, case)
        held = torch.full((2 * x.shape[0] * k + 4096,), float("nan"), device="cuda")
        torch.cuda.synchronize()
        del held
        weights, ids = argus.route(x, k, **options)
        right, chosen, clear = weighed(torch, x, k, options)
        same = bool((ids[clear] == chosen[clear]).all())
        off = ((weights[clear] - right[clear]).abs() / right[clear].abs().clamp(min=1e-30))[right[clear] > 1e-30]
        error = float(off.max()) if off.numel() else 0.0
        finite = bool(weights.isfinite().all()) or bool(right.isnan().any())
        compared += int(clear.sum())
        worst = max(worst, error)
        if not same or not error < 1e-5 or not finite:
            bad.append(f"{case}: {same} {error} {finite}")
    said = f"WRONG {len(bad)}: {bad[:4]}" if bad else f"all right, worst relative error {worst:.1e}"
    print(f"routes of {count} random scores, {compared} tokens: {said}", flush=True)
    return not bad


def _idle(*_: object) -> None:
    """In place of a choice."""


@contextmanager
def choosing(torch: Any, ids: Any) -> Generator[None]:  # noqa: ANN401 reason: untyped
    """The kernel that chooses does nothing, and the numbers that it would write are these."""
    routing: Any = import_module("argus.ops.route")._Routing
    choose, empty = routing.choose, torch.empty

    def held(shape: object, **options: object) -> Any:  # noqa: ANN401 reason: untyped
        made = empty(shape, **options)
        return made.copy_(ids) if made.dtype == torch.int32 else made

    routing.choose, torch.empty = _idle, held
    try:
        yield
    finally:
        routing.choose, torch.empty = choose, empty


def refuses_wrong_choices(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether the weights of tokens with a wrong choice, and of no others, are infinite."""
    refused, tries = 0, 60
    x = torch.randn((64, 256), device="cuda")
    _, order = torch.sort(x, dim=1, descending=True)
    random = Random(3)  # noqa: S311 reason: as above
    for number in range(tries):
        wrong = order[:, :8].int().clone()
        token, place = random.randrange(64), random.randrange(8)
        match number % 6:
            case 0:
                wrong[token, place] = order[token, 8 + random.randrange(248)]
            case 1:
                wrong[token, place] = wrong[token, (place + 1) % 8]
            case 2:  # in another order
                wrong[token, [0, 7]] = wrong[token, [7, 0]]
            case 3:
                wrong[token, place] = 256 + place
            case 4:
                wrong[token, place] = -1 - place
            case _:
                wrong[token] = wrong[(token + 1) % 64]
        with choosing(torch, wrong):
            weights, _ = argus.route(x, 8)
        infinite = weights.isinf().all(1)
        refused += bool(infinite[token]) and int(infinite.sum()) == 1 and int(weights.isfinite().all(1).sum()) == 63
    print(f"wrong choices: {refused} of {tries} refused", flush=True)
    return refused == tries


def of_torch(torch: Any, x: Any, k: int, scoring: str, bias: Any, *, renormalize: bool) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """The same by torch's operators."""

    def call() -> object:
        scores = torch.softmax(x, 1, dtype=torch.float32) if scoring == "softmax" else torch.sigmoid(x.float())
        if bias is None:
            weights, ids = torch.topk(scores, k)
        else:
            ids = torch.topk(scores + bias, k)[1]
            weights = torch.gather(scores, 1, ids)
        if renormalize:
            weights = weights / weights.sum(1, keepdim=True)
        return weights, ids.int()

    return call


def measure(torch: Any, chosen: argparse.Namespace) -> tuple[bool, list[dict[str, Any]]]:  # noqa: ANN401 reason: untyped
    """Checks and times `argus.route`."""
    timed = [
        Case(tokens, experts, kind, 1.0, "plain", k, scoring, biased, renormalize, 1.0)
        for tokens, experts, k, kind, scoring, biased, renormalize in WEIGHED
    ]
    prepare(each.kernel for each in (*cases(chosen.check), *timed, WRONG))
    right = [routes_rightly(torch, chosen.check), refuses_wrong_choices(torch)]
    triton_of = import_module("peers.routing_triton").routed
    rows: list[dict[str, Any]] = []
    for tokens, experts, k, kind, scoring, biased, renormalize in WEIGHED[: chosen.most]:
        x = torch.randn((tokens, experts), device="cuda", dtype=getattr(torch, kind))
        bias = torch.randn(experts, device="cuda") / 8 if biased else None
        calls: dict[str, Callable[[], object]] = {
            "torch": of_torch(torch, x, k, scoring, bias, renormalize=renormalize)
        }
        for height, warps in BLOCKS:
            made = triton_of(x, k, scoring, bias, renormalize=renormalize, rows=height, warps=warps)
            calls[f"triton {height} {warps}"] = made
        calls["argus"] = partial(argus.route, x, k, scoring=scoring, bias=bias, renormalize=renormalize)
        found = times(torch, calls, chosen.rounds)
        for regime, taken in found.items():
            sizes = [tokens, experts, k, kind, scoring, biased, renormalize]
            best = min(each for name, each in taken.items() if name.startswith("triton"))
            ours, theirs = taken["argus"], taken["torch"]
            rows.append({"part": "route", "sizes": sizes, "regime": regime, "us": taken})
            said = f"argus {ours:.2f}, torch {theirs:.2f} ({theirs / ours:.2f}), triton {best:.2f} ({best / ours:.2f})"
            print(f"route {sizes} {regime}: {said} us", flush=True)
        print(f"  host: {host_time(torch, calls['argus']):.1f} us, torch {host_time(torch, calls['torch']):.1f}")
    return all(right), rows
