"""The gradient of `argus.attention` without a GPU: what autograd is given, and what is launched."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve

import argus
from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.solvers.choice import resolve
from tests.ops.fake_torch import Matrix, gpu
from tests.ops.test_attention import Heads, heads

module = import_module("argus.ops.attention")
gradient = import_module("argus.ops.attention_gradient")
attention: Any = argus.attention
Launched = list[tuple[Plan, tuple[Any, ...]]]


class Recorded(Heads):
    """A tensor that autograd records calls on."""

    def detach(self) -> Heads:
        return Heads(self.array, self.dtype, shift=self.shift)


@define(slots=False)
class Context:
    """torch's, of one call."""

    saved_tensors: tuple[Any, ...] = ()
    without: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: object) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: object) -> None:
        self.without = tensors


class Function:
    """torch's, for one call: keeps what is saved for the backward."""

    kept: Any = None

    @classmethod
    def apply(cls, *arguments: Any) -> Any:  # noqa: ANN401 reason: torch's
        context = Context()
        Function.kept = cls, context
        return getattr(cls, "forward")(context, *arguments)  # noqa: B009 reason: a subclass has it


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launched]:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, operands: tuple[Any, ...], unproved: str) -> tuple[tuple[Heads, ...], None]:
        assert unproved == "refuse"
        made.append((plan, operands))
        return tuple(heads(*shape, dtype=str(dtype)) for shape, dtype in plan.results), None

    def full(shape: tuple[int, ...], value: float, *, dtype: object, device: str) -> Heads:
        assert (dtype, device) == (np.float32, "cuda:0")
        return Heads(np.full(shape, value), "torch.float32")

    once = SimpleNamespace(once_differentiable=lambda backward: backward)  # pyright: ignore[reportUnknownLambdaType]  # any
    fake = SimpleNamespace(
        cuda=SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9)),
        autograd=SimpleNamespace(Function=Function, function=once),
        is_grad_enabled=lambda: True,
        are_deterministic_algorithms_enabled=lambda: False,
        float32=np.float32,
        full=full,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(module, "launch", launch)
    monkeypatch.setattr(gradient, "launch", launch)
    clear()
    yield made
    clear()


def clear() -> None:
    module.clear_cache()
    gradient._function.cache_clear()


def recorded(*shape: int, dtype: str = "torch.bfloat16") -> Recorded:
    return Recorded(np.zeros(shape, np.uint16), dtype, requires_grad=True)


def backward(given: Matrix) -> tuple[Any, ...]:
    function, context = Function.kept
    return function.backward(context, given, None)


@pytest.mark.share(4)
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient_is_that_of_the_call(plans: Launched, width: int, dtype: str, *, causal: bool) -> None:
    q = recorded(2, 8, 30, width, dtype=dtype)
    k, v = (Recorded(np.zeros((2, 4, 40, width), np.uint16), dtype) for _ in range(2))
    out, lse = attention(q, k, v, causal=causal, scale=0.25, return_lse=True)
    context = Function.kept[1]
    assert context.without == (lse,)
    assert len(plans) == 1
    given = heads(2, 8, 30, width, dtype=dtype)
    found = backward(given)
    plan, operands = plans[1]
    assert found[3:] == (None,)
    assert [each.shape for each in found[:3]] == [q.shape, k.shape, v.shape]
    assert operands[:6] == (q, k, v, out, given, lse)
    assert operands[6].array == pytest.approx([0.25 / np.log(2)])
    assert list(plan.named(*operands, *found[:3])) == ["Q", "K", "V", "O", "dO", "LSE", "scale", "dQ", "dK", "dV"]
    assert dict(plan.sizes) == {"B": 2, "H": 8, "S": 30, "G": 4, "T": 40}
    assert plan.strided == ("Q", "K", "V")
    (candidate,) = plan.candidates
    assert candidate.config == ("causal_short" if causal else "full") + ("_added" if width == 64 else "")
    program, home = candidate.traced()
    assert home == "argus.kernels.attention_backward"
    assert program.parameters[0].shape[3] is algebra.const(width)
    assert f"torch.{ {'bf16': 'bfloat16', 'f16': 'float16'}[program.parameters[0].dtype.name] }" == dtype


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_the_gradients_solver_is_the_calls_in_any_thread(
    solver: str, plans: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    launch = gradient.launch

    def noting(*arguments: Any) -> Any:  # noqa: ANN401 reason: what `launch` returns
        asked.append(resolve(None).name)
        return launch(*arguments)

    monkeypatch.setattr(gradient, "launch", noting)
    operand = recorded(1, 2, 5, 64)
    with argus.use_solver(solver):
        attention(operand, operand, operand)
    thread = Thread(target=lambda: contextvars.Context().run(backward, heads(1, 2, 5, 64)))
    thread.start()
    thread.join()
    assert asked == [solver]
    assert len(plans) == 2


def test_programs_of_each_type_and_width_have_their_own_name(plans: Launched) -> None:
    for width in (64, 128):
        for dtype in ("torch.bfloat16", "torch.float16"):
            operand = recorded(1, 2, 5, width, dtype=dtype)
            attention(operand, operand, operand)
            backward(heads(1, 2, 5, width, dtype=dtype))
    names = [plan.candidates[0].family for plan, _ in plans[1::2]]
    assert len(set(names)) == len(names) == 4


CHANGES: dict[str, Callable[[Heads], Heads]] = {
    "turned": lambda given: evolve(given, array=np.zeros((1, 5, 2, 64), np.uint16).transpose(0, 2, 1, 3)),
    "unaligned": lambda given: evolve(given, shift=2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_gradient_of_other_strides_is_copied(name: str, plans: Launched) -> None:
    operand, copies = recorded(1, 2, 5, 64), list[str]()
    attention(operand, operand, operand)
    backward(evolve(CHANGES[name](heads(1, 2, 5, 64)), copies=copies))
    assert plans[1][1][4].is_contiguous()
    assert copies == [{"turned": "contiguous", "unaligned": "clone"}[name]]


def test_without_keys_gradients_are_zero(plans: Launched) -> None:
    q, k = recorded(1, 2, 3, 64), recorded(1, 2, 0, 64)
    attention(q, k, k)
    found = backward(heads(1, 2, 3, 64))
    assert not plans
    assert [each.shape for each in found[:3]] == [(1, 2, 3, 64), (1, 2, 0, 64), (1, 2, 0, 64)]
    assert not found[0].array.any()


def test_without_autograd_nothing_is_recorded(plans: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: False)
    Function.kept = None
    operand = recorded(1, 2, 5, 256)
    attention(operand, operand, operand)
    assert Function.kept is None
    assert len(plans) == 1


def test_every_width_of_attention_has_a_gradient(plans: Launched) -> None:
    assert gradient.FAMILIES["torch.bfloat16"].keys() == module.FAMILIES["torch.bfloat16"].keys()
    operand = recorded(1, 2, 5, 256)
    attention(operand, operand, operand)
    backward(heads(1, 2, 5, 256))
    assert plans[1][0].candidates[0].family == "attention_backward_256_torch.bfloat16"


@pytest.mark.parametrize("option", [{"window": 3}, {"softcap": 20.0}, {"window": (3, 0), "softcap": 20.0}])
def test_windows_and_caps_have_no_gradient(option: dict[str, Any], plans: Launched) -> None:
    operand = recorded(1, 2, 5, 64)
    with pytest.raises(ArgusError, match="a window and a soft cap have no gradient"):
        attention(operand, operand, operand, **option)
    assert not plans


def test_a_window_that_is_the_causal_mask_has_its_gradient(plans: Launched) -> None:
    operand = recorded(1, 2, 5, 64)
    attention(operand, operand, operand, window=(None, 0))
    backward(heads(1, 2, 5, 64))
    assert plans[1][0].candidates[0].config == "causal_short_added"


@pytest.mark.parametrize(("keys", "config"), [(2048, "causal_short"), (2049, "causal")])
def test_many_keys_have_a_configuration(keys: int, config: str, plans: Launched) -> None:
    operand = recorded(1, 1, keys, 64)
    attention(operand, operand, operand, causal=True, deterministic=True)
    backward(heads(1, 1, keys, 64))
    assert plans[1][0].candidates[0].config == config


ORDERS = [
    ((64, 4, 4, 4096), None, False, "full_added"),
    ((64, 4, 4, 4096), True, False, "full"),
    ((64, 4, 4, 4096), False, False, "full_added"),
    ((64, 4, 1, 512), None, False, "full_added"),
    ((64, 4, 4, 512), None, True, "causal_short_added"),
    ((64, 4, 1, 4096), None, True, "causal_added"),
    ((128, 4, 4, 512), None, False, "full"),
    ((128, 4, 4, 512), False, False, "full_added"),
    ((128, 4, 1, 1024), None, False, "full_added"),
    ((128, 4, 1, 1024), True, False, "full"),
    ((128, 4, 4, 4096), None, True, "causal_short_added"),
    ((128, 4, 1, 4096), None, True, "causal"),
    ((128, 4, 1, 4096), False, True, "causal_added"),
    ((128, 4, 1, 2048), False, True, "causal_short_added"),
    ((256, 4, 4, 4096), False, False, "full"),
]


@pytest.mark.parametrize(("sizes", "deterministic", "causal", "config"), ORDERS)
def test_the_order_of_sums_is_asked_for(
    sizes: tuple[int, ...], deterministic: bool | None, causal: bool, config: str, plans: Launched
) -> None:
    width, many, groups, keys = sizes
    k = recorded(1, groups, keys, width)
    attention(recorded(1, many, 5, width), k, k, causal=causal, deterministic=deterministic)
    backward(heads(1, many, 5, width))
    assert plans[1][0].candidates[0].config == config


def test_torchs_own_setting_asks_for_a_fixed_order(plans: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["torch"], "are_deterministic_algorithms_enabled", lambda: True)
    operand = recorded(1, 2, 2048, 128)
    for deterministic, config in ((None, "full"), (False, "full_added")):
        attention(operand, operand, operand, deterministic=deterministic)
        backward(heads(1, 2, 2048, 128))
        assert plans[-1][0].candidates[0].config == config
