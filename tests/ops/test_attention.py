"""`argus.attention` without a GPU: operands, the chosen configuration, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf, log, nan, sqrt
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.attention import CONFIGS, choose
from argus.kernels.schedules.attention_hopper import AttentionHopper, balance
from argus.ops.call_path import Plan
from tests.ops.fake_torch import Card, Matrix, gpu

module = import_module("argus.ops.attention")
attention: Any = argus.attention


@define
class Heads(Matrix):
    """Queries, keys or values."""

    def new_full(self, shape: tuple[int, ...], value: float, *, dtype: object = None) -> Self:
        return evolve(self, array=np.full(shape, value, np.float32), dtype=str(dtype or self.dtype))


def heads(*shape: int, dtype: str = "torch.bfloat16") -> Heads:
    return Heads(np.zeros(shape, np.uint16), dtype)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Plan, tuple[Any, ...]]]]:
    """The plans and operands of all launches, of which none is made."""
    made: list[tuple[Plan, tuple[Any, ...]]] = []

    def launch(plan: Plan, operands: tuple[Any, ...], unproved: str) -> tuple[tuple[str, str], None]:
        assert unproved == "refuse"
        made.append((plan, operands))
        return ("O", "LSE"), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Heads:
        assert (dtype, device) == (np.float32, "cuda:0")
        return Heads(np.full(shape, value), "torch.float32")

    cuda = SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9))
    fake = SimpleNamespace(cuda=cuda, is_grad_enabled=lambda: True, float32=np.float32, full=full)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(module, "launch", launch)
    module.clear_cache()
    yield made
    module.clear_cache()


def test_the_kernel_of_the_heads_and_the_mask_is_launched(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    q, k, v = heads(2, 8, 300, 128), heads(2, 4, 400, 128), heads(2, 4, 400, 128)
    assert attention(q, k, v, causal=True) == "O"
    assert attention(q, k, v, return_lse=True, scale=0.25) == ("O", "LSE")

    (plan, given), (full, others) = plans
    assert dict(plan.sizes) == {"B": 2, "H": 8, "S": 300, "G": 4, "T": 400}
    assert [shape for shape, _ in plan.results] == [(2, 8, 300, 128), (2, 8, 300)]
    assert [(each.family, each.config) for each in (*plan.candidates, *full.candidates)] == [
        ("attention_128", choose(128, 300, 400, 16, causal=True)),
        ("attention_128", "full"),
    ]
    assert plan.strided == ("Q", "K", "V")
    assert given[:3] == (q, k, v)
    assert list(plan.named(*given, "O", "LSE")) == ["Q", "K", "V", "scale", "O", "LSE"]
    for operands, scale in ((given, 1 / sqrt(128)), (others, 0.25)):
        assert operands[3].array == pytest.approx([scale / log(2)])


WINDOWS: dict[str, tuple[dict[str, Any], tuple[str, str, tuple[int, int] | None]]] = {
    "a number is both ends": ({"window": 5}, ("windowed_64", "window", (5, 5))),
    "and causal has no right": ({"window": 5, "causal": True}, ("windowed_64", "window", (5, 0))),
    "causal wins over the right end": ({"window": (5, 9), "causal": True}, ("windowed_64", "window", (5, 0))),
    "no left end": ({"window": (None, 2)}, ("windowed_64", "window_wide", (30, 2))),
    "no right end": ({"window": (2, None)}, ("windowed_64", "window", (2, 20))),
    "more than all": ({"window": (99, 99)}, ("attention_64", "full", None)),
    "no ends": ({"window": (None, None)}, ("attention_64", "full", None)),
    "no left end and causal": ({"window": (None, 0)}, ("attention_64", "causal", None)),
    "a cap": ({"softcap": 20.0}, ("windowed_64", "capped", (30, 20))),
    "a cap and causal": ({"softcap": 20.0, "causal": True}, ("windowed_64", "capped_wide", (30, 0))),
    "a cap in a window": ({"softcap": 20.0, "window": (7, 0)}, ("windowed_64", "capped", (7, 0))),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_or_a_cap_has_its_kernel(name: str, plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    more, (family, config, window) = WINDOWS[name]
    q, k = heads(1, 2, 20, 64), heads(1, 2, 30, 64)
    attention(q, k, k, **more)
    (plan, given), *_ = plans
    assert (plan.candidates[0].family, plan.candidates[0].config.removesuffix("_few")) == (family, config)
    ends = {} if window is None else {"left": window[0], "right": window[1]}
    assert dict(plan.sizes) == {"B": 1, "H": 2, "S": 20, "G": 2, "T": 30} | ends
    assert given[:3] == (q, k, k)
    inner = [] if window is None else ["inner"]
    assert list(plan.named(*given, "O", "LSE")) == ["Q", "K", "V", "scale", *inner, "O", "LSE"]
    scale = 1 / sqrt(64)
    cap = more.get("softcap")
    expected = [scale / log(2)] if cap is None else [cap / log(2), scale / cap]
    assert [each.array.item() for each in given[3:]][: len(expected)] == pytest.approx(expected)


@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize(("dtype", "suffix"), [("torch.bfloat16", ""), ("torch.float16", "_f16")])
def test_each_type_and_width_has_its_kernel(
    plans: list[tuple[Plan, tuple[Any, ...]]], width: int, dtype: str, suffix: str
) -> None:
    operand = heads(1, 2, 5, width, dtype=dtype)
    attention(operand, operand, operand)
    (plan, _), *_ = plans
    assert [each.family for each in plan.candidates] == [f"attention_{width}{suffix}"]
    assert plan.results[0] == ((1, 2, 5, width), dtype)


def test_rows_without_keys_are_zero(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    out, sums = attention(heads(1, 2, 3, 64), heads(1, 2, 0, 64), heads(1, 2, 0, 64), return_lse=True)
    assert not plans
    assert np.array_equal(out.array, np.zeros((1, 2, 3, 64)))
    assert np.array_equal(sums.array, np.full((1, 2, 3), -inf))
    assert (out.dtype, sums.dtype) == ("torch.bfloat16", str(np.float32))


def turned(*shape: int) -> Heads:
    """With the heads of a row side by side in memory."""
    b, h, s, d = shape
    made = heads(b, s, h, d)
    return evolve(made, array=made.array.transpose(0, 2, 1, 3))


def test_rows_of_heads_side_by_side_are_read_in_place(plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    q = turned(1, 4, 10, 64)
    attention(q, heads(1, 4, 10, 64), turned(1, 4, 10, 64))
    assert plans[0][1][0] is q


GOOD = (1, 4, 10, 64)
REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "no tensor": (lambda: {"q": "q"}, "`q` is not a torch tensor, found str"),
    "f32": (
        lambda: {each: heads(*GOOD, dtype="torch.float32") for each in "qkv"},
        "`q` expects torch.bfloat16 or torch.float16 or torch.float8_e4m3fn, found torch.float32",
    ),
    "two types": (
        lambda: {"k": heads(*GOOD, dtype="torch.float16")},
        "`q` is torch.bfloat16 and `k` torch.float16",
    ),
    "on the host": (lambda: {"v": evolve(heads(*GOOD), is_cuda=False, device="cpu")}, "`v` is on cpu"),
    "on another device": (lambda: {"v": evolve(heads(*GOOD), device=Card(1))}, "`v` on Card(index=1)"),
    "three axes": (lambda: {"q": heads(4, 10, 64)}, "`q` expects 4 axes, found 3"),
    "unaligned": (lambda: {"q": evolve(heads(*GOOD), shift=8)}, "`q` has strides (2560, 640, 64, 1)"),
    "odd strides": (
        lambda: {"q": evolve(heads(*GOOD), array=np.zeros((1, 4, 10, 68), np.uint16)[..., :64])},
        "strides",
    ),
    "reversed heads": (lambda: {"q": evolve(heads(*GOOD), array=np.zeros((1, 4, 64, 10)).swapaxes(2, 3))}, "strides"),
    "other values": (lambda: {"v": heads(1, 4, 11, 64)}, "expected equal shapes"),
    "another batch": (lambda: {"q": heads(2, 4, 10, 64)}, "pass k and v of shape (2, G, T, 64)"),
    "other heads": (lambda: {"q": heads(1, 6, 10, 64)}, "6 heads of `q` for 4 of `k`"),
    "wide heads": (lambda: {name: heads(1, 4, 10, 80) for name in "qkv"}, "heads of 80 elements, expected 64 or 128"),
    "a scale below 0": (lambda: {"scale": -1.0}, "`scale` is -1"),
    "an infinite scale": (lambda: {"scale": inf}, "`scale` is inf"),
    "a scale of no f32": (lambda: {"scale": 1e39}, "`scale` is 1e+39"),
    "a window below 0": (lambda: {"window": (-1, 0)}, "`window` is (-1, 0), expected (left, right)"),
    "a window of three numbers": (lambda: {"window": (1, 2, 3)}, "`window` is (1, 2, 3)"),
    "a window of no number": (lambda: {"window": 1.5}, "`window` is 1.5"),
    "a window that is true": (lambda: {"window": True}, "`window` is True"),
    "a window in a list": (lambda: {"window": [1, 2]}, "`window` is [1, 2]"),
    "a cap of 0": (lambda: {"softcap": 0.0}, "`softcap` is 0"),
    "a cap of no number": (lambda: {"softcap": nan}, "`softcap` is nan"),
    "a cap far from the scale": (lambda: {"scale": 2.0**70, "softcap": 2.0**-70}, "`scale / softcap` is"),
    "a scale of no number": (lambda: {"scale": nan}, "`scale` is nan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_operands_are_refused(name: str, plans: list[tuple[Plan, tuple[Any, ...]]]) -> None:
    change, said = REFUSED[name]
    with pytest.raises(ArgusError) as caught:
        attention(**({each: heads(*GOOD) for each in "qkv"} | change()))
    found = caught.value.diagnostic
    assert found.code == "E401"
    assert said in f"{found.message} {found.help}"
    assert not plans


def test_a_new_scale_is_refused_within_a_capture(
    plans: list[tuple[Plan, tuple[Any, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    attention(*(heads(*GOOD) for _ in "qkv"))
    monkeypatch.setattr(sys.modules["torch"].cuda, "is_current_stream_capturing", lambda: True)
    attention(*(heads(*GOOD) for _ in "qkv"))
    with pytest.raises(ArgusError, match="first call with these constants is captured"):
        attention(*(heads(*GOOD) for _ in "qkv"), scale=0.5)
    assert len(plans) == 2


@pytest.mark.parametrize(("queries", "pairs"), [(2048, 128), (8192, 32), (512, 512), (1, 1)])
def test_the_most_even_division_of_work_is_chosen(queries: int, pairs: int) -> None:
    chosen = CONFIGS[128][choose(128, queries, queries, pairs, causal=True)]
    tiles = -(-queries // chosen.bm)
    most = max(balance(each, tiles, pairs) for each in CONFIGS[128].values() if each.causal)
    assert balance(chosen, tiles, pairs) >= most - 0.01  # fewer heads at a time are worth as much
    assert choose(128, queries, 1, pairs, causal=False) == "full"


@pytest.mark.parametrize("width", [64, 128, 256])
def test_queries_without_keys_have_a_kernel_that_masks_every_block(width: int) -> None:
    for queries, keys in ((2, 1), (8192, 2048)):
        assert CONFIGS[width][choose(width, queries, keys, 32, causal=True)].masked_rows
    assert CONFIGS[width][choose(width, 2048, 2048, 32, causal=True)].skip_mask == (width < 256)


def test_balance_counts_key_blocks() -> None:
    one = AttentionHopper(heads=1)
    ctas = one.target.processors
    assert balance(one, 1, ctas) == 1
    assert balance(one, 1, ctas + 1) == pytest.approx((ctas + 1) / ctas / 2)
    assert balance(AttentionHopper(heads=2), 2, ctas) == pytest.approx(7 / 8 if ctas % 2 == 0 else 1, rel=0.02)
