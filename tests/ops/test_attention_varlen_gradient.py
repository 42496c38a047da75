"""The gradient of `argus.attention_varlen` without a GPU: what autograd is given, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.constants import constant
from argus.runtime.launches import one_or_all
from tests.ops.fake_torch import gpu
from tests.ops.test_attention_gradient import Function, Launched, backward
from tests.ops.test_attention_varlen import Rows, tensor

module = import_module("argus.ops.attention_varlen")
gradient = import_module("argus.ops.attention_gradient")
packed = import_module("argus.ops.attention_varlen_gradient")
varlen: Any = argus.attention_varlen


class Recorded(Rows):
    """A tensor that autograd records calls on."""

    def detach(self) -> Rows:
        return Rows(self.array, self.dtype, shift=self.shift)


def recorded(*shape: int, dtype: str = "torch.bfloat16") -> Recorded:
    return Recorded(np.zeros(shape, np.uint16), dtype, requires_grad=True)


def operands(rows: int = 30, keys: int = 50, width: int = 128, dtype: str = "torch.bfloat16") -> dict[str, Any]:
    q, k, v = (recorded(count, heads, width, dtype=dtype) for count, heads in ((rows, 8), (keys, 2), (keys, 2)))
    starts = {f"cu_seqlens_{name}": tensor(4, dtype="torch.int32") for name in "qk"}
    return {"q": q, "k": k, "v": v, **starts, "max_seqlen_q": 20}


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launched]:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Any, given: tuple[Any, ...], unproved: str) -> tuple[Any, None]:  # noqa: ANN401 reason: torch's
        assert unproved == "refuse"
        made.append((plan, given))
        found = tuple(tensor(*shape, dtype=str(dtype)) for shape, dtype in plan.results)
        return (one_or_all(found)), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Rows:
        assert (dtype, device) == ("torch.float32", "cuda:0")
        return Rows(np.full(shape, value), "torch.float32")

    once = SimpleNamespace(once_differentiable=lambda backward: backward)  # pyright: ignore[reportUnknownLambdaType]  # any
    fake = SimpleNamespace(
        cuda=SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9)),
        autograd=SimpleNamespace(Function=Function, function=once),
        is_grad_enabled=lambda: True,
        float32="torch.float32",
        full=full,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    for each in (module, packed):
        monkeypatch.setattr(each, "launch", launch)
    clear()
    yield made
    clear()


def clear() -> None:
    constant.cache_clear()
    gradient._function.cache_clear()


@pytest.mark.share(4)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
def test_the_gradient_is_that_of_the_call(plans: Launched, width: int, dtype: str, *, causal: bool) -> None:
    call = operands(width=width, dtype=dtype)
    out, lse = varlen(**call, causal=causal, scale=0.25, return_lse=True, max_seqlen_k=40, promises="fetch")
    assert Function.kept[1].without == (lse,)
    given = tensor(30, 8, width, dtype=dtype)
    found = backward(given)

    assert [each.shape for each in found[:3]] == [call[name].shape for name in "qkv"]
    assert found[3:] == (None, None, None)
    assert len(plans) == 4
    (rows, prepared), (keys, passed), (queries, again) = plans[1:]
    assert prepared == (out, given, lse)
    assert dict(rows.sizes) == {"H": 8, "S": 30, "R": 64}
    assert list(rows.named(*prepared, 1, 2)) == ["O", "dO", "LSE", "L", "Delta"]
    assert passed == again
    assert [each.shape for each in passed[:4]] == [(8, 30, width), (2, 50, width), (2, 50, width), (8, 30, width)]
    assert passed[6].array == pytest.approx([0.25 / np.log(2)])
    assert passed[7:] == (call["cu_seqlens_q"], call["cu_seqlens_k"])
    common = {"H": 8, "S": 30, "R": 64, "G": 2, "T": 50, "N": 4, "sequences": 3, "longest_q": 20, "longest_k": 40}
    assert dict(keys.sizes) == dict(queries.sizes) == common
    for plan, outputs in ((keys, ["dK", "dV"]), (queries, ["dQ"])):
        named = ["Q", "K", "V", "dO", "L", "Delta", "scale", "starts_q", "starts_k", *outputs]
        assert list(plan.named(*passed, *outputs)) == named
        assert (plan.strided, plan.promises) == (("Q", "K", "V", "dO"), "fetch")
        kernel, home = plan.candidates[0].traced()
        assert plan.candidates[0].config == ("causal" if causal else "full")
        assert home == "argus.kernels.packed_attention_backward"
        assert [each.name for each in kernel.parameters] == named
        assert {symbol.name for symbol in kernel.sizes} == common.keys()


def test_every_width_has_a_gradient(plans: Launched) -> None:
    assert packed.FAMILIES["torch.bfloat16"].keys() == module.FAMILIES["torch.bfloat16"].keys()
    varlen(**operands(width=256))
    found = backward(tensor(30, 8, 256))
    assert [each.shape for each in found[:3]] == [(30, 8, 256), (50, 2, 256), (50, 2, 256)]
    named = [list(plan.named(*given, *plan.results)) for plan, given in plans[2:]]
    assert [each[9:] for each in named] == [["dK"], ["dV"], ["dQ"]]


def test_kernels_of_each_type_and_width_have_their_own_name(plans: Launched) -> None:
    for width in (64, 128, 256):
        for dtype in ("torch.bfloat16", "torch.float16"):
            varlen(**operands(width=width, dtype=dtype))
            backward(tensor(30, 8, width, dtype=dtype))
    names = [plan.candidates[0].family for plan, _ in plans]
    assert len(set(names)) == len(names) == 26


@pytest.mark.parametrize("same", [False, True])
def test_keys_are_as_many_as_queries_if_their_offsets_are_the_same(plans: Launched, *, same: bool) -> None:
    call = operands(50)
    call |= {"cu_seqlens_k": call["cu_seqlens_q"]} if same else {}
    varlen(**call)
    backward(tensor(50, 8, 128))
    assert dict(plans[-1][0].sizes)["longest_k"] == (20 if same else 50)


def test_a_gradient_of_other_strides_is_copied(plans: Launched) -> None:
    varlen(**operands())
    copies = list[str]()
    turned = tensor(8, 30, 128).transpose(0, 1)
    backward(evolve(turned, copies=copies))
    assert copies == ["contiguous"]
    assert plans[1][1][1].is_contiguous()


@pytest.mark.parametrize(("rows", "keys"), [(0, 50), (30, 0)])
def test_without_queries_or_keys_gradients_are_zero(plans: Launched, rows: int, keys: int) -> None:
    varlen(**operands(rows, keys))
    found = backward(tensor(rows, 8, 128))
    assert not plans
    assert [each.shape for each in found[:3]] == [(rows, 8, 128), (keys, 2, 128), (keys, 2, 128)]
    assert not any(each.array.any() for each in found[:3])


@pytest.mark.parametrize("most", [0, 3.0, True])
def test_other_bounds_of_keys_are_refused(plans: Launched, most: object) -> None:
    with pytest.raises(ArgusError, match="`max_seqlen_k` is"):
        varlen(**operands(), max_seqlen_k=most)
    assert not plans
