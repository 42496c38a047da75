"""Checks the operators on torch tensors against float64 on an H200: `benchmarks/operators_h200.py`.

Every call takes the whole path of a user's: the kernel is verified, compiled and launched. Needs torch and a solver.
Prints a line for each operator and type, and exits with status 1 if one is wrong or fails. `--jobs 16`: so many
processes share the GPU, each with an operator; nearly all the time is spent on verifying and compiling.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import accumulate
from multiprocessing import get_context
from random import Random
from time import perf_counter
from typing import Any

from operators_experts import in_e4m3, of_experts

import argus

E4M3 = "float8_e4m3fn"
CLOSE = {"bfloat16": 2.0**-6, "float16": 2.0**-9, "float32": 2.0**-14, E4M3: 2.0**-4}
SHAPES = 8
"""Random shapes for each operator and type."""
Checks = Iterator[tuple[Any, Any]]
"""What an operator returns, and the same in float64."""


def off(found: Any, wanted: Any) -> float:  # noqa: ANN401 reason: torch's
    """The largest error, relative for numbers above 1; nan where only one of both is infinite."""
    same = found.double() == wanted
    error = (found.double() - wanted).abs() / wanted.abs().clamp(min=1)
    return error.masked_fill(same, 0.0).max().item() if error.numel() else 0.0


def rows(torch: Any, kind: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    functional = import_module("torch.nn.functional")

    def made() -> Any:  # noqa: ANN401 reason: untyped
        leading = random.choice(((random.randint(1, 300),), (random.randint(1, 9), random.randint(1, 40)), ()))
        length = random.choice((1, 7, 64, 100, 1024, 4096, random.randint(1, 20000)))
        return torch.randn((*leading, length), device="cuda", dtype=kind)

    def simple(of: Callable[[Any], Any], exact: Callable[[Any], Any]) -> Checks:
        for _ in range(SHAPES):
            x = made()
            yield of(x), exact(x.double())

    def norms(*, layer: bool) -> Checks:
        for number in range(SHAPES):
            x = made()
            length = x.shape[-1:]
            weight, bias = (
                torch.randn(length, device="cuda", dtype=kind),
                torch.randn(length, device="cuda", dtype=kind),
            )
            other = torch.randn_like(x)
            given = {"residual": other} if number % 2 else {}
            args = (weight, bias) if layer else (weight,)
            found = (argus.layer_norm if layer else argus.rms_norm)(x, *args, eps=1e-3, **given)
            whole = (x + other).double() if number % 2 else x.double()
            exact = functional.layer_norm if layer else functional.rms_norm
            wanted = exact(whole, length, *(each.double() for each in args), eps=1e-3)
            if number % 2:
                yield found[1], whole
            yield (found[0] if number % 2 else found), wanted

    def entropies() -> Checks:
        for _ in range(SHAPES):
            x = made()
            target = torch.randint(0, x.shape[-1], x.shape[:-1], device="cuda")
            scores = x.double()
            yield argus.cross_entropy(x, target), scores.logsumexp(-1) - scores.gather(-1, target[..., None])[..., 0]

    def in_groups() -> Checks:
        for _ in range(SHAPES):
            groups, own, places = random.randint(1, 8), random.randint(1, 6), random.choice((1, 49, 64, 1000, 4096))
            x = torch.randn((random.randint(1, 5), groups * own, places), device="cuda", dtype=kind)
            args = [torch.randn(groups * own, device="cuda", dtype=kind) for _ in range(2)]
            wanted = functional.group_norm(x.double(), groups, *(each.double() for each in args), eps=1e-3)
            yield argus.group_norm(x, groups, *args, eps=1e-3), wanted

    yield "softmax", simple(argus.softmax, lambda x: x.softmax(-1))
    yield "log_softmax", simple(argus.log_softmax, lambda x: x.log_softmax(-1))
    yield "row_mean", simple(argus.row_mean, lambda x: x.mean(-1))
    yield "row_sum", simple(lambda x: argus.row_sum(x) / x.shape[-1], lambda x: x.mean(-1))
    yield "cumsum", simple(lambda x: argus.cumsum(x) / x.shape[-1], lambda x: x.cumsum(-1) / x.shape[-1])
    yield "group_norm", in_groups()
    yield "rms_norm", norms(layer=False)
    yield "layer_norm", norms(layer=True)
    yield "cross_entropy", entropies()


def attention(torch: Any, kind: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    def operands(width: int, *, causal: bool) -> list[Any]:
        group, groups, batch = random.choice((1, 2, 4)), random.randint(1, 3), random.randint(1, 2)
        queries = random.randint(1, 400)
        keys = queries + random.randint(0, 200) if causal else random.randint(1, 500)
        shapes = [(batch, queries, group * groups, width), *[(batch, keys, groups, width)] * 2]
        return [torch.randn(each, device="cuda", dtype=kind).transpose(1, 2) for each in shapes]

    def exact(q: Any, k: Any, v: Any, seen: Callable[[Any, Any], Any] | None, cap: float | None) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
        many, (rows, keys) = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2])
        scores = q @ k.repeat_interleave(many, 1).mT * q.shape[3] ** -0.5
        scores = scores if cap is None else cap * torch.tanh(scores / cap)
        own, key = torch.arange(rows, device="cuda")[:, None] + keys - rows, torch.arange(keys, device="cuda")
        scores = scores if seen is None else scores.masked_fill(~seen(own, key), float("-inf"))
        return scores.softmax(-1).nan_to_num(0.0) @ v.repeat_interleave(many, 1), scores.logsumexp(-1)

    def forward(*, causal: bool = False, window: Any = None, cap: float | None = None) -> Checks:  # noqa: ANN401 reason: untyped
        def seen(own: Any, key: Any) -> Any:  # noqa: ANN401 reason: untyped
            left, right = window or (1 << 20, 0)
            return (key >= own - left) & (key <= own + right)

        for width in (64, 128, 256):
            q, k, v = operands(width, causal=causal)
            found = argus.attention(q, k, v, causal=causal, window=window, softcap=cap, return_lse=True)
            mask = seen if causal or window else None
            yield from zip(found, exact(q.double(), k.double(), v.double(), mask, cap), strict=True)

    def gradients(*, causal: bool) -> Checks:
        def seen(own: Any, key: Any) -> Any:  # noqa: ANN401 reason: untyped
            return key <= own

        for width in (64, 128):
            given = [each.detach().requires_grad_() for each in operands(width, causal=causal)]
            q, k, v = same = [each.detach().double().requires_grad_() for each in given]
            out = argus.attention(*given, causal=causal)
            wanted = exact(q, k, v, seen if causal else None, None)[0]
            weight = torch.randn_like(out)
            found = torch.autograd.grad(out, given, weight)
            yield from zip(found, torch.autograd.grad(wanted, same, weight.double()), strict=True)

    for causal in (False, True):
        said = "causal" if causal else "full"
        yield f"attention, {said}", forward(causal=causal)
        yield f"attention's gradients, {said}", gradients(causal=causal)
    yield "attention in a window", forward(window=(100, 30))
    yield "attention with a soft cap", forward(causal=True, cap=20.0)


def decoding(torch: Any, kind: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    def decoded(tokens: int) -> Checks:
        for size, width in ((16, 128), (64, 64), (128, 128)):
            batch, groups, group = random.randint(1, 4), random.randint(1, 3), random.choice((1, 4, 8))
            pages = random.randint(1, 2000 // size)
            keys, values = torch.randn((2, batch * pages + 3, size, groups, width), device="cuda", dtype=kind)
            table = torch.randperm(batch * pages + 3, device="cuda", dtype=torch.int32)[: batch * pages]
            table = table.reshape(batch, pages)
            lengths = [random.choice((0, 1, pages * size, random.randint(0, pages * size))) for _ in range(batch)]
            q = torch.randn((batch, groups * group, tokens, width), device="cuda", dtype=kind)
            held = torch.tensor(lengths, device="cuda", dtype=torch.int32)
            out, lse = argus.attention_decode(q, keys, values, table, held, return_lse=True)
            for number, length in enumerate(lengths):
                k, v = (each[table[number].long()].flatten(0, 1)[:length].double() for each in (keys, values))
                wanted = _of_one(torch, q[number].transpose(0, 1).double(), k, v, causal=True)
                yield from zip((out[number].transpose(0, 1), lse[number]), wanted, strict=True)

    yield "attention of the last token", decoded(1)
    yield "attention of the last 5 tokens", decoded(5)


def packed(torch: Any, kind: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    def starts(lengths: list[int]) -> Any:  # noqa: ANN401 reason: untyped
        return torch.tensor([0, *accumulate(lengths)], device="cuda", dtype=torch.int32)

    def made(width: int) -> tuple[tuple[Any, Any, Any], list[int], list[int]]:
        groups, group, count = random.randint(1, 3), random.choice((1, 2, 4)), random.randint(5, 9)
        queries, keys = ([random.choice((0, 1, random.randint(2, 400))) for _ in range(count)] for _ in range(2))
        q = torch.randn((sum(queries), groups * group, width), device="cuda", dtype=kind)
        k, v = torch.randn((2, sum(keys), groups, width), device="cuda", dtype=kind)
        return (q, k, v), queries, keys

    def exact(given: Any, queries: list[int], keys: list[int], *, causal: bool) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 reason: untyped
        q, k, v = given
        for own, *held in zip(q.split(queries), k.split(keys), v.split(keys), strict=True):
            yield _of_one(torch, own, *held, causal=causal)

    def sequences(*, causal: bool) -> Checks:
        for width in (64, 128):
            given, queries, keys = made(width)
            most, ends = max(1, *queries), (starts(queries), starts(keys))
            results: Any = argus.attention_varlen(*given, *ends, max_seqlen_q=most, causal=causal, return_lse=True)
            found = zip(results[0].split(queries), results[1].split(queries, 1), strict=True)
            every = exact([each.double() for each in given], queries, keys, causal=causal)
            for one, wanted in zip(found, every, strict=True):
                yield from zip(one, wanted, strict=True)

    def gradients(*, causal: bool) -> Checks:
        for width in (64, 128):
            tensors, queries, keys = made(width)
            given, same = ([each.detach().to(to).requires_grad_() for each in tensors] for to in (kind, torch.float64))
            q, k, v = given
            ends, most = (starts(queries), starts(keys)), (max(1, *queries), max(1, *keys))
            out: Any = argus.attention_varlen(q, k, v, *ends, max_seqlen_q=most[0], max_seqlen_k=most[1], causal=causal)
            wanted = torch.cat([one for one, _ in exact(same, queries, keys, causal=causal)])
            weight = torch.randn_like(out)
            found = torch.autograd.grad(out, given, weight)
            yield from zip(found, torch.autograd.grad(wanted, same, weight.double()), strict=True)

    for causal in (False, True):
        said = "causal" if causal else "full"
        yield f"attention of packed sequences, {said}", sequences(causal=causal)
        yield f"gradients of packed sequences, {said}", gradients(causal=causal)


def of_8_bits(torch: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    def scaled(*, causal: bool) -> Checks:
        for width in (64, 128, 256):
            batch, groups, group = random.randint(1, 2), random.randint(1, 3), random.choice((1, 2, 4))
            rows = random.randint(1, 400)
            shapes = ((batch, groups * group, rows), *[(batch, groups, rows + random.randint(0, 200))] * 2)
            given = [torch.randn((*each, width), device="cuda") for each in shapes]
            factors = [each.abs().amax((2, 3)) / 448 for each in given]
            raised = [each / of[..., None, None] for each, of in zip(given, factors, strict=True)]
            small = [each.to(torch.float8_e4m3fn) for each in raised]
            results: Any = argus.attention(*small, causal=causal, descale=tuple(factors), return_lse=True)
            out, lse = results
            exact = [each.double() * of.double()[..., None, None] for each, of in zip(small, factors, strict=True)]
            for b in range(batch):
                wanted = _of_one(torch, *(each[b].transpose(0, 1) for each in exact), causal=causal)
                yield from zip((out[b].transpose(0, 1), lse[b]), wanted, strict=True)

    yield "attention, full", scaled(causal=False)
    yield "attention, causal", scaled(causal=True)


def _of_one(torch: Any, q: Any, k: Any, v: Any, *, causal: bool) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """Of one sequence in float64: q (S, H, D), k and v (T, G, D) to the output and the log-sum-exp, (H, S)."""
    many, unseen = q.shape[1] // max(1, k.shape[1]), float("-inf")
    own = torch.arange(q.shape[0], device="cuda")[:, None] + k.shape[0] - q.shape[0]
    scores = q.transpose(0, 1) @ k.permute(1, 2, 0).repeat_interleave(many, 0) * q.shape[2] ** -0.5
    scores = scores.masked_fill(torch.arange(k.shape[0], device="cuda") > own, unseen) if causal else scores
    some = (scores > unseen).any(-1, keepdim=True)  # a row that sees no key has no weights, and no gradient
    weights = scores.masked_fill(~some, 0.0).softmax(-1).masked_fill(~some, 0.0)
    values = weights @ v.transpose(0, 1).repeat_interleave(many, 0)
    return values.transpose(0, 1), scores.logsumexp(-1)


def cases(kind: str) -> dict[str, Checks]:
    """The checks of each operator on tensors of a type."""
    torch: Any = import_module("torch")
    dtype, found = getattr(torch, kind), dict[str, Checks]()
    if kind == E4M3:
        random = Random(5)  # noqa: S311 reason: a seed makes the shapes repeatable
        return dict(of_8_bits(torch, random)) | dict(in_e4m3(torch, random))
    if kind != "float32":
        found |= attention(torch, dtype, Random(2))  # noqa: S311 reason: as above
        found |= decoding(torch, dtype, Random(3))  # noqa: S311 reason: as above
        found |= packed(torch, dtype, Random(4))  # noqa: S311 reason: as above
        found |= of_experts(torch, dtype, Random(6))  # noqa: S311 reason: as above
    return found | dict(rows(torch, dtype, Random(1)))  # noqa: S311 reason: as above


def check(kind: str, name: str, solver: str) -> tuple[bool, str]:
    """Whether an operator is right, and a line on it."""
    began = perf_counter()
    try:
        with argus.use_solver(solver):
            errors = [off(*pair) for pair in cases(kind)[name]]
    except Exception as problem:  # noqa: BLE001 reason: the other operators are checked all the same
        return False, f"{name}, {kind}: FAILED, {type(problem).__name__}: {problem}"
    right = bool(errors) and all(error <= CLOSE[kind] for error in errors)  # nan is not
    said = f"{len(errors)} results, {max(errors):.1e}{'' if right else ' WRONG'}"
    return right, f"{name}, {kind}: {said}, {perf_counter() - began:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the GPU")
    parser.add_argument("--solver", default="portfolio", help="which verifies the kernels")
    parser.add_argument("--named", default="", help="only operators with this in their name")
    asked = parser.parse_args()
    wrong = 0
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        named = ((kind, name) for kind in CLOSE for name in cases(kind) if asked.named in name)
        every = sorted(named, key=lambda pair: pair[1])
        wanted = [pool.submit(check, *pair, asked.solver) for pair in every]  # attention, which takes longest, is first
        for each in wanted:
            right, line = each.result()
            wrong += not right
            print(line, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
