"""torch's attention in graphs: by `argus.attention`, or by products around a softmax, equal to torch's in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

import argus.torch
from argus.torch import captured
from argus.torch.captured import attention

F: Any = functional
T: Any = torch


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    T.compiler.reset()
    argus.torch.clear_report()
    yield
    T.compiler.reset()


def operands(shape: tuple[int, ...], dtype: torch.dtype, keys: int | None = None) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(0)
    other = shape if keys is None else (*shape[:-2], keys, shape[-1])
    return [torch.randn(each, generator=made).to(dtype) for each in (shape, other, other)]


PLAIN = (2, 3, 8, 16)
MASK = torch.arange(64).view(8, 8) % 3 > 0
MASK[2] = False
CASES: dict[str, tuple[list[torch.Tensor], dict[str, Any]]] = {
    "plain": (operands(PLAIN, torch.float32), {}),
    "causal, fewer keys": (operands(PLAIN, torch.float32, 4), {"is_causal": True}),
    "causal, more keys": (operands(PLAIN, torch.float32, 12), {"is_causal": True, "scale": 0.5}),
    "mask": (operands(PLAIN, torch.float32), {"attn_mask": MASK}),
    "added mask": (operands(PLAIN, torch.float32), {"attn_mask": torch.linspace(-2, 2, 64).view(8, 8)}),
    "three axes": (operands((3, 8, 16), torch.float16), {}),
    "narrow": (operands(PLAIN, torch.bfloat16), {"is_causal": True}),
    "heads of 64": (operands((1, 2, 8, 64), torch.bfloat16), {"is_causal": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_torchs(name: str) -> None:
    given, options = CASES[name]
    q, k, v = given
    found = attention(q, k, v, **options)
    wanted = F.scaled_dot_product_attention(*(each.double() for each in given), **_exact(options))
    narrow = found.dtype != torch.float32
    assert found.dtype == given[0].dtype
    assert torch.allclose(found.double(), wanted, atol=2e-2 if narrow else 1e-6)


def _exact(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: each.double() if getattr(each, "dtype", None) == torch.float32 else each for name, each in options.items()
    }


def test_shared_heads_are_repeated_as_torch_does() -> None:
    q, k, v = operands(PLAIN, torch.float32)
    found = attention(q, k[:, :1], v[:, :1], enable_gqa=True)
    assert torch.allclose(found, F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True), atol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["causal, fewer keys", "mask", "heads of 64"])
def test_in_a_graph_nothing_is_left_to_eager_torch(name: str) -> None:
    given, options = CASES[name]
    made: Callable[..., Any] = T.compile(F.scaled_dot_product_attention, backend="argus", fullgraph=True)
    with torch.no_grad():
        found = made(*given, **options)
    wanted = F.scaled_dot_product_attention(*given, **options)
    assert torch.allclose(found.float(), wanted.float(), atol=2e-2 if name == "heads of 64" else 1e-5)
    entry = argus.torch.report()[-1]
    assert not entry.eager
    assert list(entry.operators) == (["argus.attention.default"] if name == "heads of 64" else [])


class _Joined(torch.nn.Module):
    """Attention of several heads, which calls torch's attention within one function of the captured graph."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(128, 2, batch_first=True, dtype=torch.bfloat16).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.nightly
def test_attention_within_a_function_of_torch_is_that_of_argus() -> None:
    x = torch.randn(1, 8, 128, dtype=torch.bfloat16)
    module = _Joined()
    made: Callable[..., Any] = T.compile(module, backend="argus", fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(made(x).float(), module(x).float(), atol=2e-2)
    entry = argus.torch.report()[-1]
    assert (entry.eager, entry.operators) == ((), ("argus.attention.default",))
    assert F.scaled_dot_product_attention.__module__ != attention.__module__  # torch's again


def test_torchs_own_is_products_for_single_precision_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fused: Any = torch.backends.cuda.mem_efficient_sdp_enabled
    seen: list[bool] = []

    def see(*_: object, **__: object) -> None:
        seen.append(fused())

    monkeypatch.setattr(captured, "_ATTENTION", see)
    for dtype in (torch.float32, torch.bfloat16):
        attention(*operands(PLAIN, dtype), dropout_p=0.5)

    assert seen == [False, True]
    assert fused()
