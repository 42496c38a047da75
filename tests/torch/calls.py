"""A call of each public operator on small tensors of the CPU, for tests of what torch makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from attrs import frozen

import argus
from tests.torch.operands import normal

_F32 = torch.float32


@frozen
class Call:
    """A public operator on operands. differentiable: the places of the operands that have gradients."""

    operator: Callable[..., Any]
    operands: tuple[Any, ...]
    differentiable: tuple[int, ...] = ()

    def __call__(self, *operands: torch.Tensor) -> Any:  # noqa: ANN401 reason: the operator's
        return self.operator(*operands)

    def requiring(self) -> tuple[Any, ...]:
        """Copies of the operands, which require gradients where they have them."""
        return tuple(
            each.detach().clone().requires_grad_(place in self.differentiable)
            for place, each in enumerate(self.operands)
        )


def _integers(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def _rows(name: str, *more: torch.Tensor, **options: Any) -> Call:  # noqa: ANN401 reason: the operator's
    return Call(partial(getattr(argus, name), **options), (normal(4, 48, dtype=_F32), *more))


def _normed(name: str, *, weights: int) -> Call:
    return _rows(name, *(normal(48, dtype=_F32, seed=seed + 1) for seed in range(weights)))


def _of_sum(x: Any, residual: Any) -> Any:  # noqa: ANN401 reason: torch's
    return argus.layer_norm(x, residual=residual)


def _heads(**options: Any) -> Call:  # noqa: ANN401 reason: the operator's
    operands = tuple(normal(1, 2, 24, 64, seed=seed) for seed in range(3))
    return Call(partial(argus.attention, **options), operands, (0, 1, 2) if "window" not in options else ())


def _packed(q: Any, k: Any, v: Any, offsets: Any) -> Any:  # noqa: ANN401 reason: torch's
    return argus.attention_varlen(q, k, v, offsets, offsets, max_seqlen_q=12)


def _sequences() -> Call:
    return Call(_packed, (*(normal(20, 2, 64, seed=seed) for seed in range(3)), _integers(0, 8, 20)), (0, 1, 2))


def _pages() -> Call:
    keys, values = (normal(4, 16, 2, 64, seed=seed) for seed in (1, 2))
    lists = _integers([0, 1], [2, 3]), _integers(20, 9)
    return Call(partial(argus.attention_decode, return_lse=True), (normal(2, 4, 1, 64), keys, values, *lists))


def _eight_bits() -> Call:
    a, b = normal(16, 32).to(torch.float8_e4m3fn), normal(48, 32, seed=1).to(torch.float8_e4m3fn).T
    return Call(argus.scaled_matmul, (a, b, torch.tensor(1.0), torch.tensor(2.0)))


def _layer(x: Any, w: Any, v: Any, weights: Any, ids: Any) -> Any:  # noqa: ANN401 reason: torch's
    return argus.moe(x, w, v, ids, weights)


def _experts() -> Call:
    matrices = normal(4, 64, 64, seed=1) * 0.1, normal(4, 64, 32, seed=2) * 0.1
    ids = torch.tensor([[0, 1], [1, 3], [3, 0]])
    weights = torch.tensor([[0.5, 0.25], [1.0, 0.5], [0.25, 0.75]])
    return Call(_layer, (normal(3, 64), *matrices, weights, ids), (0, 1, 2, 3))


def _ordered(ids: Any) -> Any:  # noqa: ANN401 reason: torch's
    order = argus.expert_order(ids, 8, height=2)
    return (*order, order.counts)


def _received(counts: Any) -> Any:  # noqa: ANN401 reason: torch's
    return tuple(argus.received_order(counts, 7)[:3])


CALLS: Mapping[str, Callable[[], Call]] = {
    "matmul": lambda: Call(argus.matmul, (normal(24, 64), normal(64, 40, seed=1)), (0, 1)),
    "scaled_matmul": _eight_bits,
    "grouped_matmul": lambda: Call(
        argus.grouped_matmul, (normal(6, 64), normal(3, 64, 32, seed=1), _integers(0, 3, 3, 6)), (0, 1)
    ),
    "attention": lambda: _heads(causal=True),
    "attention with a window": lambda: _heads(window=(4, 0), softcap=20.0, return_lse=True),
    "attention_varlen": _sequences,
    "attention_decode": _pages,
    "softmax": lambda: _rows("softmax"),
    "log_softmax": lambda: _rows("log_softmax"),
    "rms_norm": lambda: _normed("rms_norm", weights=1),
    "layer_norm": lambda: _normed("layer_norm", weights=2),
    "layer_norm of a sum": lambda: Call(_of_sum, (normal(4, 48, dtype=_F32), normal(4, 48, dtype=_F32, seed=1))),
    "group_norm": lambda: Call(partial(argus.group_norm, groups=3), (normal(2, 6, 8, dtype=_F32),)),
    "row_sum": lambda: _rows("row_sum"),
    "row_mean": lambda: _rows("row_mean"),
    "cumsum": lambda: _rows("cumsum"),
    "cross_entropy": lambda: _rows("cross_entropy", torch.tensor([1, 2, 3, 47])),
    "route": lambda: Call(partial(argus.route, k=2, scoring="sigmoid"), (normal(4, 8, dtype=_F32),)),
    "expert_order": lambda: Call(_ordered, (torch.tensor([[5, 2], [6, 2], [2, 6]]),)),
    "received_order": lambda: Call(_received, (_integers([1, 2], [2, 1]),)),
    "moe": _experts,
}
"""By name."""
COSTLY = ("attention_varlen", "grouped_matmul", "moe")
"""Those whose kernels have as many blocks as a GPU has processors, most without work."""


def registered_name(name: str) -> str:
    """The registered operator of a call."""
    return name.replace(" of a sum", "_of_sum").split()[0]


def drawn(*, one_in: int) -> list[Any]:
    """The calls as parameters of a test, of which the default tier runs a part."""
    share = pytest.mark.share(one_in, among="registered operators")
    return [pytest.param(name, marks=pytest.mark.nightly if name in COSTLY else share) for name in CALLS]
