"""The gradient of `argus.grouped_matmul` without a GPU: what autograd is given, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.ops.choice import select_grouped_weights
from tests.ops.fake_torch import Matrix, aligned, gpu
from tests.ops.test_attention_gradient import Context, Function

module = import_module("argus.ops.grouped_matmul")
gradient = import_module("argus.ops.grouped_gradient")
grouped: Any = argus.grouped_matmul
Launched = list[tuple[Plan, tuple[Any, ...]]]


class Recorded(Matrix):
    """A tensor that autograd records calls on."""

    def detach(self) -> Matrix:
        return Matrix(self.array, self.dtype)


def tensor(*shape: int, dtype: str = "torch.bfloat16", kind: type[Matrix] = Matrix) -> Any:  # noqa: ANN401 reason: torch's
    return kind(aligned(np.zeros(shape, np.int32 if dtype == "torch.int32" else bfloat16)), dtype)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launched]:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[Matrix, None]:
        assert unproved == "refuse"
        made.append((plan, given))
        return tensor(*plan.results[0][0], dtype=str(plan.results[0][1])), None

    def tiles(offsets: Matrix, rows: int, height: int) -> tuple[Matrix, Matrix]:
        count = rows // height + offsets.shape[0] - 1
        return tensor(count + 1, dtype="torch.int32"), tensor(count, dtype="torch.int32")

    recording = SimpleNamespace(on=True)
    once = SimpleNamespace(once_differentiable=lambda backward: backward)  # pyright: ignore[reportUnknownLambdaType]  # any
    fake = SimpleNamespace(
        cuda=SimpleNamespace(get_device_properties=gpu(9)),
        autograd=SimpleNamespace(Function=Function, function=once),
        is_grad_enabled=lambda: recording.on,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    for each in (module, gradient):
        monkeypatch.setattr(each, "launch", launch)
    monkeypatch.setattr(module, "tiles_of", tiles)
    gradient._function.cache_clear()
    yield made
    gradient._function.cache_clear()


def forward(*, column_major: bool, dtype: str = "torch.bfloat16", **more: Any) -> Any:  # noqa: ANN401 reason: torch's
    """The product of 300 rows of 72 elements and three matrices of 264 columns."""
    a = tensor(300, 72, dtype=dtype, kind=Recorded)
    b = tensor(3, *((264, 72) if column_major else (72, 264)), dtype=dtype, kind=Recorded)
    a.requires_grad = b.requires_grad = True
    return grouped(a, b.mT if column_major else b, tensor(4, dtype="torch.int32"), **more)


def backward(given: Matrix, *wanted: bool) -> tuple[Any, ...]:
    function, context = Function.kept
    assert isinstance(context, Context)
    setattr(context, "needs_input_grad", (*wanted, False, False))  # noqa: B010 reason: torch's
    return function.backward(context, given)


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize("column_major", [False, True])
def test_gradients_are_two_products(plans: Launched, dtype: str, *, column_major: bool) -> None:
    assert forward(column_major=column_major, dtype=dtype, promises="tell").shape == (300, 264)
    of_a, of_b, *others = backward(tensor(300, 264, dtype=dtype), True, True)
    assert others == [None, None]
    assert (of_a.shape, of_b.shape) == ((300, 72), (3, 72, 264))

    (_, first, second) = plans
    suffix = "" if dtype == "torch.bfloat16" else "_f16"
    (candidate,) = first[0].candidates
    assert candidate.family == f"grouped_{'nn' if column_major else 'nt'}{suffix}"
    named = first[0].named(*first[1], of_a)
    assert named["B"].shape == ((3, 264, 72) if column_major else (3, 72, 264))  # in place, of the other layout

    plan, passed = second
    assert plan.promises == "tell"
    named = plan.named(*passed, of_b)
    widths = (264, 72) if column_major else (72, 264)
    assert (named["X"].shape, named["G"].shape) == ((300, widths[0]), (300, widths[1]))
    assert dict(plan.sizes) == {"M": 300, "K": widths[0], "R": 4, "N": widths[1], "E": 3}
    assert plan.results == (((3, *widths), dtype),)
    (candidate,) = plan.candidates
    assert candidate.config == select_grouped_weights(300, 3, *widths)
    traced, home = candidate.traced()
    assert (traced.name, home) == (f"grouped_weights_{candidate.config}", "argus.kernels.grouped_weights")


def test_what_is_not_wanted_is_not_computed(plans: Launched) -> None:
    forward(column_major=True)
    of_a, of_b, *_ = backward(tensor(300, 264), False, True)
    assert of_a is None
    assert of_b.shape == (3, 72, 264)
    assert [plan.results[0][0] for plan, _ in plans[1:]] == [(3, 264, 72)]


def test_a_gradient_of_other_strides_is_copied(plans: Launched) -> None:
    forward(column_major=False)
    given = tensor(264, 300).mT
    backward(given, True, True)
    for _, passed in plans[1:]:
        assert all(each.is_contiguous() for each in passed if each.shape == (300, 264))


def test_operands_are_checked_before_autograd_sees_them(plans: Launched) -> None:
    with pytest.raises(ArgusError, match="there is no schedule `wide`"):
        forward(column_major=False, config="wide")
    assert not plans


def test_the_schedule_depends_on_columns() -> None:
    assert [select_grouped_weights(300, 3, 128, each) for each in (128, 136)] == ["columns_128", "columns_256"]
