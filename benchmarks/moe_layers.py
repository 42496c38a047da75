"""Layers of experts for benchmarks: their operands, what they are in float64, and the same of torch's operators."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from attrs import frozen

from argus.kernels.schedules.grouped import BLOCK
from argus.kernels.schedules.grouped_gated import Activation


@frozen
class Layer:
    """Experts of N columns between their products, rows of K, and so many choices of each token."""

    name: str
    experts: int
    N: int
    K: int
    choices: int


LAYERS = Layer("E64", 64, 1408, 2048, 6), Layer("E256", 256, 2048, 7168, 8)
"""As DeepSeek-V2-Lite's and DeepSeek-V3's."""


@frozen
class Given:
    x: Any
    both: Any
    down: Any
    ids: Any
    weights: Any

    @property
    def operands(self) -> tuple[Any, ...]:
        return self.x, self.both, self.down, self.ids, self.weights


def routed(torch: Any, way: str, tokens: int, experts: int, choices: int, *, distinct: bool) -> Any:  # noqa: ANN401 reason: untyped
    """The experts of each token. distinct: none twice for one token, as far as there are as many."""
    weights = torch.ones(experts, device="cuda")
    if way == "zipf":
        weights = 1 / (1 + torch.randperm(experts, device="cuda").float())
    if way == "one":
        return torch.full((tokens, choices), experts // 2, device="cuda", dtype=torch.int32)
    if way == "few":
        weights = torch.where(torch.rand(experts, device="cuda") < 0.5, 0.0, 1.0)
        weights[experts - 1] = 1.0
    possible = int((weights > 0).sum())
    rows = weights.expand(tokens, experts)
    return torch.multinomial(rows, choices, replacement=not distinct or possible < choices).int()


def made(torch: Any, layer: Layer, tokens: int, way: str, dtype: Any, *, distinct: bool = True) -> Given:  # noqa: ANN401 reason: untyped
    def normal(*shape: int, scale: float = 1.0) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(shape, device="cuda", dtype=dtype).mul_(scale)

    both = normal(layer.experts, 2 * layer.N, layer.K, scale=layer.K**-0.5)
    down = normal(layer.experts, layer.K, layer.N, scale=layer.N**-0.5)
    ids = routed(torch, way, tokens, layer.experts, layer.choices, distinct=distinct)
    weights = torch.rand((tokens, layer.choices), device="cuda") + 0.1
    return Given(normal(tokens, layer.K), both, down, ids, weights)


def exact(torch: Any, given: Given, activation: Activation) -> Any:  # noqa: ANN401 reason: untyped
    """The layer in float64, expert by expert."""
    functional = import_module("torch.nn.functional")
    out = torch.zeros(given.x.shape, device="cuda", dtype=torch.float64)
    columns = given.down.shape[2]
    for e in given.ids.unique().tolist():
        token, choice = (given.ids == e).nonzero(as_tuple=True)
        both = given.x[token].double() @ given.both[e].double().T
        gate, up = both[:, :columns], both[:, columns:]
        gated = functional.silu(gate) if activation == "silu" else functional.gelu(gate, approximate="tanh")
        found = (gated * up) @ given.down[e].double().T
        out.index_add_(0, token, found * given.weights[token, choice].double()[:, None])
    return out


def error(found: Any, wanted: Any) -> float:  # noqa: ANN401 reason: untyped
    """The largest error of a row, of its length."""
    if not found.numel():
        return 0.0
    return float(((found.double() - wanted).norm(dim=1) / wanted.norm(dim=1).clamp(min=1e-30)).max())


def composed(torch: Any, given: Given) -> Any:  # noqa: ANN401 reason: untyped
    """The layer of torch's operators, without a wait for the GPU."""
    functional = import_module("torch.nn.functional")
    (tokens, choices), columns, experts = given.ids.shape, given.down.shape[2], given.both.shape[0]
    flat = given.ids.flatten()
    order = flat.argsort(stable=True)
    ends = torch.searchsorted(flat[order], torch.arange(1, experts + 1, device="cuda", dtype=torch.int32))
    ends = ends.to(torch.int32)
    both = torch._grouped_mm(given.x[order // choices], given.both.mT, offs=ends)
    hidden = functional.silu(both[:, :columns]) * both[:, columns:]
    down = torch._grouped_mm(hidden, given.down.mT, offs=ends)
    back = torch.empty_like(down)
    back[order] = down
    return (back.view(tokens, choices, -1) * given.weights[:, :, None]).sum(1).to(given.x.dtype)


def looped(torch: Any, given: Given) -> Callable[[], Any]:  # noqa: ANN401 reason: untyped
    """The layer as a loop over the experts that are met, whose tokens the host knows."""
    functional = import_module("torch.nn.functional")
    columns = given.down.shape[2]
    met = [(e, *(given.ids == e).nonzero(as_tuple=True)) for e in given.ids.unique().tolist()]

    def loop() -> Any:  # noqa: ANN401 reason: untyped
        out = torch.zeros(given.x.shape, device="cuda", dtype=torch.float32)
        for e, token, choice in met:
            both = given.x[token] @ given.both[e].T
            hidden = functional.silu(both[:, :columns]) * both[:, columns:]
            found = hidden @ given.down[e].T
            out.index_add_(0, token, found * given.weights[token, choice][:, None])
        return out.to(given.x.dtype)

    return loop


@frozen
class Scaled:
    """A layer in e4m3 with scales of blocks, and what its operands stand for."""

    given: Given
    scales: tuple[Any, Any, Any]
    meant: Given


def made_scaled(torch: Any, layer: Layer, tokens: int, way: str, *, meant: bool = True) -> Scaled:  # noqa: ANN401 reason: untyped
    """meant: whether what the operands stand for is computed, in float64."""
    plain = made(torch, layer, tokens, way, torch.bfloat16)
    held, scales, stands = list[Any](), list[Any](), list[Any]()
    factors = (plain.x, 4.0, (1,)), (plain.both, layer.K**0.5, (1, 2)), (plain.down, layer.N**0.5, (1, 2))
    for tensor, large, axes in factors:
        kept = (tensor * large).to(torch.float8_e4m3fn)
        extents = [-(-extent // BLOCK) if axis in axes else extent for axis, extent in enumerate(tensor.shape)]
        scale = (torch.rand(extents, device="cuda") + 0.5) / large
        held.append(kept)
        scales.append(scale)
        if meant:
            spread = scale.double()
            for axis in axes:
                spread = spread.repeat_interleave(BLOCK, axis).narrow(axis, 0, tensor.shape[axis])
            stands.append(kept.double() * spread)
    (x, both, down), (of_x, of_both, of_down) = stands or held, scales
    given = Given(held[0], held[1], held[2], plain.ids, plain.weights)
    return Scaled(given, (of_x, of_both, of_down), Given(x, both, down, plain.ids, plain.weights))
