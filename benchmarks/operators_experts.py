"""Checks of the operators on rows of experts, for `operators_h200.py`: what each returns, and the same in float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Literal

from moe_layers import Layer, exact, made_scaled

import argus
from argus.kernels.schedules.grouped import BLOCK

SHAPES = 8
"""Random shapes for each operator and type."""
CALLS = 3
"""Calls of equal shapes with other offsets, of which the later ones find the first one's launch."""
Checks = Iterator[tuple[Any, Any]]
"""What an operator returns, and the same in float64."""


def drawn(random: Random, rows: int, experts: int) -> list[int]:
    """Numbers of rows of experts, many of which have none."""
    weights = [random.choice((0, 0, 1, 5)) for _ in range(experts)]
    weights[random.randrange(experts)] = 1
    counts = [0] * experts
    for expert in random.choices(range(experts), weights, k=rows):
        counts[expert] += 1
    return counts


def multiplied(torch: Any, a: Any, b: Any, counts: list[int]) -> Any:  # noqa: ANN401 reason: untyped
    """Sorted rows, each times its expert's matrix: a (rows, K) and b (experts, K, N), in float64."""
    ends = pairwise([0, *accumulate(counts)])
    return torch.cat([a[first:end] @ b[e] for e, (first, end) in enumerate(ends)])


def offsets_of(torch: Any, counts: list[int]) -> Any:  # noqa: ANN401 reason: untyped
    return torch.tensor([0, *accumulate(counts)], device="cuda", dtype=torch.int32)


def sorted_rows(torch: Any, kind: Any, random: Random, *, gradients: bool) -> Checks:  # noqa: ANN401 reason: untyped
    for number in range(SHAPES):
        experts, rows = random.choice((1, 5, 33)), random.choice((1, 20, 150, random.randint(1, 3000)))
        depth, columns = 8 * random.randint(1, 60), 8 * random.randint(1, 60)
        b = torch.randn((experts, columns, depth), device="cuda", dtype=kind).mul_(depth**-0.5)
        b = b.mT if number % 2 else b.mT.contiguous()
        for _ in range(1 if gradients else CALLS):
            counts = drawn(random, rows, experts)
            a = torch.randn((rows, depth), device="cuda", dtype=kind)
            if not gradients:
                found = argus.grouped_matmul(a, b, offsets_of(torch, counts))
                yield found, multiplied(torch, a.double(), b.double(), counts)
                continue
            given: Any = [each.detach().requires_grad_() for each in (a, b)]
            same: Any = [each.detach().double().requires_grad_() for each in (a, b)]
            out: Any = argus.grouped_matmul(given[0], given[1], offsets_of(torch, counts))
            weight = torch.randn_like(out).mul_((depth + rows / experts) ** -0.5)
            wanted = multiplied(torch, same[0], same[1], counts)
            of_same = torch.autograd.grad(wanted, same, weight.double())
            yield from zip(torch.autograd.grad(out, given, weight), of_same, strict=True)


def counted_rows(torch: Any, kind: Any, random: Random) -> Checks:  # noqa: ANN401 reason: untyped
    for most in (1, 8, 9, 64, 65, 128, 129, 300):
        experts, depth, columns = random.choice((1, 5, 33)), 8 * random.randint(1, 60), 8 * random.randint(1, 60)
        a = torch.randn((experts, most, depth), device="cuda", dtype=kind)
        b = torch.randn((experts, depth, columns), device="cuda", dtype=kind).mul_(depth**-0.5)
        counts = torch.randint(0, most + 1, (experts,), device="cuda", dtype=torch.int32)
        found = argus.grouped_matmul(a, b, counts=counts)
        yield counting(torch, found, counts), counting(torch, a.double() @ b.double(), counts)


def counting(torch: Any, rows: Any, counts: Any) -> Any:  # noqa: ANN401 reason: untyped
    """The rows that count, of (experts, rows, columns); zeros in place of others."""
    return torch.where(torch.arange(rows.shape[1], device="cuda")[:, None] < counts[:, None, None], rows, 0.0)


def chosen(torch: Any, kind: Any, random: Random) -> Checks:  # noqa: ANN401 reason: untyped
    for _ in range(SHAPES):
        experts, tokens = random.choice((8, 64, 256, 300)), random.choice((1, 33, random.randint(1, 2000)))
        k = random.randint(1, 8)
        x = torch.randn((tokens, experts), device="cuda", dtype=kind)
        weights, ids = argus.route(x, k)
        best = x.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        yield weights, best[0][:, :k]
        yield ids, best[1][:, :k].double()


def by_length(found: Any, wanted: Any, many: int) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """Both in units of so many times the root mean square of a row.

    A layer rounds what an expert gives before it is weighed: a sum of large terms is off by parts of these.
    """
    length = many * wanted.norm(dim=1, keepdim=True).clamp(min=1e-30) * wanted.shape[1] ** -0.5
    return found.double() / length, wanted / length


def of_experts(torch: Any, kind: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    functional = import_module("torch.nn.functional")

    def layer(activation: Literal["silu", "gelu"]) -> Checks:
        for _ in range(SHAPES):
            count, choices, tokens = random.choice((1, 4, 33)), random.randint(1, 8), random.randint(1, 400)
            columns, depth = 8 * random.randint(1, 40), 8 * random.randint(1, 60)
            shapes = (tokens, depth), (count, 2 * columns, depth), (count, depth, columns)
            x, both, down = (torch.randn(shape, device="cuda", dtype=kind) * shape[-1] ** -0.5 for shape in shapes)
            x, ids = 2 * x * depth**0.5, torch.randint(0, count, (tokens, choices), device="cuda")
            weights = torch.rand((tokens, choices), device="cuda") / choices
            wanted = torch.zeros((tokens, depth), device="cuda", dtype=torch.float64)
            for e in range(count):
                token, choice = (ids == e).nonzero(as_tuple=True)
                gate, up = (x[token].double() @ both[e].double().T).split(columns, -1)
                gated = functional.silu(gate) if activation == "silu" else functional.gelu(gate, approximate="tanh")
                rows = (gated * up) @ down[e].double().T
                wanted.index_add_(0, token, rows * weights[token, choice, None].double())
            yield by_length(argus.moe(x, both, down, ids, weights, activation=activation), wanted, 2)

    yield "a layer of experts, SiLU", layer("silu")
    yield "a layer of experts, GELU", layer("gelu")
    yield "grouped products", sorted_rows(torch, kind, random, gradients=False)
    yield "grouped products' gradients", sorted_rows(torch, kind, random, gradients=True)
    yield "grouped products of counts", counted_rows(torch, kind, random)
    yield "routing", chosen(torch, kind, random)


def spread(scale: Any, axes: tuple[int, ...], like: Any) -> Any:  # noqa: ANN401 reason: untyped
    """Scales of blocks, for each element of `like`."""
    found = scale.double()
    for axis in axes:
        found = found.repeat_interleave(BLOCK, axis).narrow(axis, 0, like.shape[axis])
    return found


def scaled_rows(torch: Any, random: Random, *, masked: bool, of_rows: bool = False) -> Checks:  # noqa: ANN401 reason: untyped
    def eight(*shape: int, by: float) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(shape, device="cuda").mul_(by).to(torch.float8_e4m3fn)

    def factors(*shape: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.rand(shape, device="cuda") + 0.5

    for most in (1, 8, 33, 64, 65, 100, 129, 300):
        experts, depth, columns = random.choice((1, 5, 33)), 16 * random.randint(1, 40), 8 * random.randint(1, 60)
        counts = [random.randint(0, most) for _ in range(experts)] if masked else drawn(random, 8 * most, experts)
        rows = (experts, most) if masked else (8 * most,)
        a, b = eight(*rows, depth, by=1.0), eight(experts, columns, depth, by=depth**-0.5).mT
        deep, wide = -(-depth // BLOCK), -(-columns // BLOCK)
        of_a, of_b = (
            factors(*rows, 1 if of_rows else deep),
            factors(experts, *((1, columns) if of_rows else (deep, wide))),
        )
        plain_a = a.double() * (of_a.double() if of_rows else spread(of_a, (-1,), a))
        plain_b = b.double() * (of_b.double() if of_rows else spread(of_b, (1, 2), b))
        call = partial(argus.grouped_matmul, a, b, scale_a=of_a, scale_b=of_b)
        if masked:
            numbers = torch.tensor(counts, device="cuda", dtype=torch.int32)
            found = call(counts=numbers)
            yield counting(torch, found, numbers), counting(torch, plain_a @ plain_b, numbers)
        else:
            yield call(offsets_of(torch, counts)), multiplied(torch, plain_a, plain_b, counts)


def scaled_layers(torch: Any, random: Random, activation: Literal["silu", "gelu"]) -> Checks:  # noqa: ANN401 reason: untyped
    for way in ("uniform", "zipf", "one", "few") * (SHAPES // 4):
        experts, columns, depth = random.choice((1, 4, 33)), 128 * random.randint(1, 3), 16 * random.randint(1, 30)
        layer = Layer("", experts, columns, depth, random.randint(1, 8))
        scaled = made_scaled(torch, layer, random.choice((1, 20, 300)), way)
        found: Any = argus.moe(*scaled.given.operands, activation=activation, scales=scaled.scales)
        wanted = exact(torch, scaled.meant, activation)
        yield by_length(found, wanted, 4)  # what is between the products is rounded to 3 bits


def in_e4m3(torch: Any, random: Random) -> Iterator[tuple[str, Checks]]:  # noqa: ANN401 reason: untyped
    yield "grouped products with scales of blocks", scaled_rows(torch, random, masked=False)
    yield "grouped products of counts with scales of blocks", scaled_rows(torch, random, masked=True)
    yield "grouped products with scales of rows", scaled_rows(torch, random, masked=False, of_rows=True)
    yield "a layer of experts, SiLU", scaled_layers(torch, random, "silu")
    yield "a layer of experts, GELU", scaled_layers(torch, random, "gelu")
