"""`argus.attention` of e4m3 without a GPU: what is launched, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.attention_fp8 import choose
from argus.ops.call_path import Plan
from tests.ops.fake_torch import gpu
from tests.ops.test_attention import Heads, heads

module = import_module("argus.ops.attention")
attention: Any = argus.attention
Launched = list[tuple[Plan, tuple[Any, ...]]]
E4M3 = "torch.float8_e4m3fn"


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launched]:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, operands: tuple[Any, ...], unproved: str) -> tuple[tuple[str, str], None]:
        assert unproved == "refuse"
        made.append((plan, operands))
        return ("O", "LSE"), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Heads:
        assert (dtype, device) == ("torch.float32", "cuda:0")
        return Heads(np.full(shape, value), "torch.float32")

    cuda = SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9))
    types = {"float32": "torch.float32", "bfloat16": "torch.bfloat16"}
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=cuda, is_grad_enabled=lambda: True, full=full, **types)
    )
    monkeypatch.setattr(import_module("argus.ops.attention_fp8"), "launch", launch)
    module.clear_cache()
    yield made
    module.clear_cache()


def operands(width: int = 128, keys: int = 400) -> tuple[Heads, Heads, Heads]:
    k, v = (heads(2, 4, keys, width, dtype=E4M3) for _ in range(2))
    return heads(2, 8, 300, width, dtype=E4M3), k, v


def factors() -> tuple[Heads, Heads, Heads]:
    one, two, three = (Heads(np.ones(shape), "torch.float32") for shape in ((2, 8), (2, 4), (2, 4)))
    return one, two, three


@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_the_program_of_the_heads_is_launched(plans: Launched, width: int, *, causal: bool) -> None:
    q, k, v = operands(width)
    descale = factors()
    assert attention(q, k, v, causal=causal, scale=0.25, descale=descale, return_lse=True) == ("O", "LSE")

    ((plan, given),) = plans
    assert dict(plan.sizes) == {"B": 2, "H": 8, "S": 300, "G": 4, "T": 400}
    assert plan.results == (((2, 8, 300, width), "torch.bfloat16"), ((2, 8, 300), "torch.float32"))
    (candidate,) = plan.candidates
    assert (candidate.family, candidate.config) == (
        f"attention_fp8_{width}",
        choose(width, 300, 400, 16, causal=causal),
    )
    assert given[3].array == pytest.approx([0.25 / np.log(2)])
    named = plan.named(*given, "O", "LSE")
    assert [named[name] for name in ("Q", "K", "V", "O", "LSE")] == [q, k, v, "O", "LSE"]
    assert [named[f"scale_{name}"] for name in "qkv"] == list(descale)
    assert plan.strided == ("Q", "K")


def test_factors_are_1_unless_they_are_given(plans: Launched) -> None:
    assert attention(*operands()) == "O"

    ((_, given),) = plans
    assert [each.shape for each in given[4:]] == [(2, 8), (2, 4), (2, 4)]
    assert all((each.array == 1).all() and each.dtype == "torch.float32" for each in given[4:])


def test_no_keys_give_zeros(plans: Launched) -> None:
    out, lse = attention(*operands(keys=0), return_lse=True)

    assert not plans
    assert (out.array == 0).all()
    assert out.dtype == "torch.bfloat16"
    assert (lse.array == -inf).all()


REFUSED: dict[str, tuple[Callable[[], tuple[Any, ...]], dict[str, Any], str]] = {
    "a window": (operands, {"window": 3}, "8-bit operands have neither window nor soft cap"),
    "a soft cap": (operands, {"softcap": 3.0}, "8-bit operands have neither window nor soft cap"),
    "heads of 96": (lambda: operands(96), {}, "heads of 96 elements"),
    "two factors": (operands, {"descale": factors()[:2]}, "`descale` is no triple of tensors"),
    "a number": (operands, {"descale": (1.0, *factors()[1:])}, "`descale` of q is not a torch tensor, found float"),
    "factors of k for q": (operands, {"descale": factors()[1:] * 2}, "`descale` is no triple of tensors"),
    "factors of each other": (operands, {"descale": factors()[::-1]}, "`descale` of q is (2, 4) of torch.float32"),
    "factors in bf16": (
        operands,
        {"descale": (*factors()[:2], evolve(factors()[2], dtype="torch.bfloat16"))},
        "`descale` of v is (2, 4) of torch.bfloat16",
    ),
    "factors of bf16": (lambda: (heads(1, 1, 3, 64),) * 3, {"descale": factors()}, "`descale` of torch.bfloat16"),
    "a gradient": (
        lambda: (evolve(operands()[0], requires_grad=True), *operands()[1:]),
        {},
        "8-bit operands have no gradient",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_operands_are_refused(plans: Launched, name: str) -> None:
    made, keywords, message = REFUSED[name]
    with pytest.raises(ArgusError) as found:
        attention(*made(), **keywords)

    assert found.value.diagnostic.code == "E401"
    assert message in found.value.diagnostic.message
    assert not plans


Bound = list[tuple[tuple[Any, ...], tuple[int, ...]]]


@pytest.fixture
def bound(plans: Launched, monkeypatch: pytest.MonkeyPatch) -> Bound:
    """The operands and places of calls that took a bound launch, one of which the first call of each kind makes."""
    made: Bound = []

    def product(given: tuple[Any, ...], places: tuple[int, ...]) -> tuple[str, str]:
        made.append((given, places))
        return "again O", "again LSE"

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[tuple[str, str], object]:
        assert unproved == "refuse"
        plans.append((plan, given))
        return ("O", "LSE"), product

    monkeypatch.setattr(import_module("argus.ops.attention_fp8"), "launch", launch)
    return made


@pytest.mark.parametrize("given", [True, False])
def test_a_repeated_call_takes_the_bound_launch(plans: Launched, bound: Bound, *, given: bool) -> None:
    first, second = operands(), operands()
    one, two = (factors(), factors()) if given else (None, None)

    assert attention(*first, descale=one) == "O"
    assert attention(*second, descale=two, return_lse=True) == ("again O", "again LSE")

    ((_, before),), ((now, places),) = plans, bound
    assert now == (*second, before[3], *(before[4:] if two is None else two))
    assert places == tuple(each.data_ptr() for each in now)


OTHER_CALLS: dict[str, Callable[[], tuple[tuple[Heads, ...], Any]]] = {
    "factors in place of none": lambda: (operands(), None),
    "other strides of factors": lambda: (operands(), (Heads(np.ones((8, 2)).T, "torch.float32"), *factors()[1:])),
    "more keys": lambda: (operands(keys=416), factors()),
    "factors that are not aligned": lambda: (operands(), (evolve(factors()[0], shift=4), *factors()[1:])),
}


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_an_unlike_call_does_not(plans: Launched, bound: Bound, name: str) -> None:
    attention(*operands(), descale=factors())
    others, descale = OTHER_CALLS[name]()

    assert attention(*others, descale=descale) == "O"
    assert len(plans) == 2
    assert not bound


def test_a_call_whose_factors_are_copied_is_not_bound(plans: Launched, bound: Bound) -> None:
    turned = Heads(np.ones((8, 2)).T, "torch.float32"), *factors()[1:]

    assert [attention(*operands(), descale=turned) for _ in range(2)] == ["O", "O"]
    assert len(plans) == 2
    assert all(plan_given[4].is_contiguous() for _, plan_given in plans)
    assert not bound
