"""`argus.attention_decode` without a GPU: operands, the chosen configuration, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import log, nan, sqrt
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.decode import CONFIGS, choose
from argus.ops.call_path import Plan
from argus.ops.constants import constant
from tests.ops.fake_torch import Card, Matrix, gpu

module = import_module("argus.ops.attention_decode")
decode: Any = argus.attention_decode
WIDTH = 128


@define
class Pages(Matrix):
    """Queries, pages, a table, or lengths."""

    def view(self, *shape: int) -> Self:
        return evolve(self, array=self.array.reshape(shape))

    def transpose(self, first: int, second: int, /) -> Self:
        return evolve(self, array=np.swapaxes(self.array, first, second))


def tensor(*shape: int, dtype: str = "torch.bfloat16") -> Pages:
    return Pages(np.zeros(shape, np.int32 if dtype == "torch.int32" else np.uint16), dtype)


def operands(
    size: int = 16, heads: int = 8, groups: int = 2, tokens: int = 1, width: int = WIDTH, dtype: str = "torch.bfloat16"
) -> dict[str, Pages]:
    pages = [tensor(9, size, groups, width, dtype=dtype) for _ in range(2)]
    integers = tensor(3, 40, dtype="torch.int32"), tensor(3, dtype="torch.int32")
    names = ("q", "k_pages", "v_pages", "page_table", "lengths")
    return dict(zip(names, (tensor(3, heads, tokens, width, dtype=dtype), *pages, *integers), strict=True))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Plan, tuple[Any, ...]]]]:
    """The plans and operands of all launches, of which none is made."""
    made: list[tuple[Plan, tuple[Any, ...]]] = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[tuple[Pages, Pages], None]:
        assert unproved == "refuse"
        made.append((plan, given))
        out, lse = (tensor(*shape) for shape, _ in plan.results)
        return (out, lse), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Pages:
        assert (dtype, device) == (np.float32, "cuda:0")
        return Pages(np.full(shape, value), "torch.float32")

    capturing = SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9))
    fake = SimpleNamespace(cuda=capturing, is_grad_enabled=lambda: True, float32=np.float32, full=full)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(module, "launch", launch)
    constant.cache_clear()
    yield made
    constant.cache_clear()


def test_groups_of_heads_and_pages_are_views(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    given = operands()
    assert decode(**given).shape == (3, 8, 1, WIDTH)
    assert [each.shape for each in decode(**given, return_lse=True, scale=0.5)] == [(3, 8, 1, WIDTH), (3, 8, 1)]

    (plan, passed), (_, others) = plans
    assert dict(plan.sizes) == {"B": 3, "G": 2, "R": 4, "S": 1, "P": 9, "C": 16, "N": 40}
    assert [each.config for each in plan.candidates] == [choose(16, 640, 6, 4, 1)]
    assert plan.strided == ("K", "V")
    assert [each.shape for each in passed[:3]] == [(3, 2, 4, 1, WIDTH), (9, 2, 16, WIDTH), (9, 2, 16, WIDTH)]
    assert all(np.shares_memory(made.array, given[name].array) for name, made in zip(given, passed, strict=False))
    assert list(plan.named(*passed, "O", "LSE")) == ["Q", "K", "V", "table", "lengths", "scale", "O", "LSE"]
    for operand, scale in ((passed[5], 1 / sqrt(WIDTH)), (others[5], 0.5)):
        assert operand.array == pytest.approx([scale / log(2)])


@pytest.mark.parametrize(
    ("tokens", "heads", "width", "dtype", "config"),
    [
        (2, 8, 64, "torch.bfloat16", "page_16_blocks_4_tokens_8"),
        (9, 16, 128, "torch.float16", "page_16_blocks_4_tokens_16"),
        (1, 32, 128, "torch.bfloat16", "page_16_blocks_4_heads_16"),
        (4, 18, 128, "torch.bfloat16", "page_16_blocks_4_heads_16_tokens_4"),
        (5, 32, 64, "torch.float16", "page_16_blocks_4_heads_16_tokens_8"),
    ],
)
def test_tokens_heads_and_types_choose_the_kernel(
    tokens: int, heads: int, width: int, dtype: str, config: str, plans: list[tuple[Plan, tuple[Any, ...]]]
) -> None:
    given = operands(heads=heads, tokens=tokens, width=width, dtype=dtype)

    assert [each.shape for each in decode(**given, return_lse=True)] == [(3, heads, tokens, width), (3, heads, tokens)]

    ((plan, passed),) = plans
    assert [(each.family, each.config) for each in plan.candidates] == [(f"decode_{width}_{dtype}", config)]
    assert passed[0].shape == (3, 2, heads // 2, tokens, width)
    assert passed[5].array == pytest.approx([1 / sqrt(width) / log(2)])
    traced, module_name = plan.candidates[0].traced()
    assert traced.name == f"decode_{config}"
    assert module_name == "argus.kernels.decode"
    assert {each.dtype.name for each in traced.parameters if each.name in "QKVO"} == {
        {"torch.bfloat16": "bf16", "torch.float16": "f16"}[dtype]
    }


@pytest.mark.parametrize(("pairs", "keys", "blocks"), [(8, 2048, 4), (8, 8192, 8), (64, 8192, 64), (1024, 2048, 128)])
def test_parts_are_as_long_as_the_processors_allow(pairs: int, keys: int, blocks: int) -> None:
    assert choose(64, keys, pairs, 8, 1) == f"page_64_blocks_{blocks}"
    assert {choose(64, keys, pairs, heads, 1) for heads in (8, 16)} <= CONFIGS[WIDTH].keys()


def test_a_scale_is_made_before_a_graph_is_captured(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    decode(**operands(), scale=0.25)
    sys.modules["torch"].cuda.is_current_stream_capturing = lambda: True
    decode(**operands(), scale=0.25)
    with pytest.raises(ArgusError, match="the first call with these constants is captured"):
        decode(**operands(), scale=0.75)
    assert len(plans) == 2


Change = Callable[[dict[str, Pages]], dict[str, Any]]


CASES: list[tuple[Change, str]] = [
    (lambda _: {"q": np.zeros(3)}, "`q` is not a torch tensor"),
    (lambda of: {"v_pages": evolve(of["v_pages"], dtype="torch.float16")}, "`v_pages` expects torch.bfloat16"),
    (lambda of: {"q": evolve(of["q"], dtype="torch.float32")}, "`q` expects torch.bfloat16 or torch.float16"),
    (lambda of: {"lengths": evolve(of["lengths"], dtype="torch.int64")}, "`lengths` expects torch.int32"),
    (lambda of: {"lengths": evolve(of["lengths"], device=Card(1))}, "`lengths` is on"),
    (lambda of: {"k_pages": evolve(of["k_pages"], requires_grad=True)}, "`k_pages` requires a gradient"),
    (lambda _: {"q": tensor(3, 8, WIDTH)}, "`q` expects 4 axes, found 3"),
    (lambda _: {"q": tensor(3, 8, 17, WIDTH)}, "17 tokens of `q`"),
    (lambda _: {"q": tensor(3, 18, 9, WIDTH)}, "9 tokens of `q`"),
    (lambda _: {"q": tensor(3, 8, 0, WIDTH)}, r"expected \(B, H, S, 64 or 128\)"),
    (lambda _: {"q": tensor(3, 8, 1, 96)}, r"expected \(B, H, S, 64 or 128\)"),
    (lambda _: {"q": tensor(3, 8, 1, 64)}, r"`k_pages` is \(9, 16, 2, 128\)"),
    (lambda _: {"q": tensor(3, 7, 1, WIDTH)}, "7 heads of `q` for 2 of `k_pages`"),
    (lambda _: {"q": tensor(3, 34, 1, WIDTH)}, "34 heads of `q` for 2 of `k_pages`"),
    (lambda of: {"q": of["q"].transpose(0, 1)}, "`q` has strides"),
    (lambda of: {"k_pages": evolve(of["k_pages"], shift=2)}, "`k_pages` has strides"),
    (lambda _: {"k_pages": tensor(9, 16, 2, WIDTH).transpose(1, 3)}, "`k_pages` has strides"),
    (lambda _: {"k_pages": tensor(8, 16, 2, WIDTH)}, r"`k_pages` is \(8, 16, 2, 128\) and `v_pages`"),
    (
        lambda _: {name: tensor(9, 32, 2, WIDTH) for name in ("k_pages", "v_pages")},
        r"`k_pages` is \(9, 32, 2, 128\)",
    ),
    (lambda _: {"page_table": tensor(2, 40, dtype="torch.int32")}, "for 3 sequences"),
    (lambda _: {"lengths": tensor(2, dtype="torch.int32")}, "for 3 sequences"),
    (lambda _: {"scale": 0.0}, "`scale` is 0"),
    (lambda _: {"scale": nan}, "`scale` is nan"),
]


@pytest.mark.parametrize(("change", "words"), CASES)
def test_other_operands_are_refused(change: Change, words: str, plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    given = operands()
    with pytest.raises(ArgusError, match=words) as caught:
        decode(**{**given, **change(given)})
    assert caught.value.diagnostic.code == "E401"
    assert caught.value.diagnostic.help
    assert not plans
