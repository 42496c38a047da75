"""The gradient of `argus.moe` without a GPU: what autograd is given, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.ops.choice import select_moe_gradient
from tests.ops.fake_torch import Matrix, gpu
from tests.ops.test_attention_gradient import Context, Function
from tests.ops.test_grouped_gradient import Recorded
from tests.ops.test_moe import of_8_bits, operands, ordered, tensor

module = import_module("argus.ops.moe")
gradient = import_module("argus.ops.moe_gradient")
of_matrices = import_module("argus.ops.grouped_gradient")
layer: Any = argus.moe
Launched = list[tuple[Plan, tuple[Any, ...]]]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launched]:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[Any, None]:
        assert unproved == "refuse"
        made.append((plan, given))
        found = tuple(tensor(*shape, dtype=str(kind)) for shape, kind in plan.results)
        return found[0] if len(found) == 1 else found, None

    def zeros(shape: tuple[int, ...], dtype: str, device: object) -> Matrix:
        del device
        return tensor(*shape, dtype=dtype)

    once = SimpleNamespace(once_differentiable=lambda backward: backward)  # pyright: ignore[reportUnknownLambdaType]  # any
    fake = SimpleNamespace(
        cuda=SimpleNamespace(get_device_properties=gpu(9)),
        autograd=SimpleNamespace(Function=Function, function=once),
        is_grad_enabled=lambda: True,
        float32="torch.float32",
        int32="torch.int32",
        zeros=zeros,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    for each in (module, gradient, of_matrices):
        monkeypatch.setattr(each, "launch", launch)
    for each in (module, gradient):
        monkeypatch.setattr(each, "expert_order", ordered)
    gradient._function.cache_clear()
    yield made
    gradient._function.cache_clear()


def recorded(**sizes: int) -> dict[str, Any]:
    """Operands that autograd records calls on."""
    given = operands(**sizes)
    return {name: Recorded(each.array, each.dtype) for name, each in given.items()}


def forward(**sizes: int) -> Any:  # noqa: ANN401 reason: torch's
    given = recorded(**sizes)
    given["topk_weights"].requires_grad = True
    return layer(**given, promises="tell", activation="gelu")


def backward(given: Matrix, x: bool, both: bool, down: bool, weights: bool) -> tuple[Any, ...]:
    function, context = Function.kept
    assert isinstance(context, Context)
    setattr(context, "needs_input_grad", (x, both, down, False, weights, False))  # noqa: B010 reason: torch's
    return function.backward(context, given)


def test_gradients_are_one_program_and_two_products(plans: Launched) -> None:
    assert forward().shape == (50, 72)
    of_x, of_both, of_down, of_ids, of_weights, of_how = backward(tensor(50, 72), True, True, True, True)
    assert (of_ids, of_how) == (None, None)
    assert [each.shape for each in (of_x, of_both, of_down, of_weights)] == [
        (50, 72),
        (3, 48, 72),
        (3, 72, 24),
        (50, 2),
    ]

    _, (plan, passed), *products = plans
    assert plan.promises == "tell"
    (candidate,) = plan.candidates
    assert candidate.config == "by_rows"
    traced, home = candidate.traced()
    assert (traced.name, home) == ("moe_gradient_by_rows", "argus.kernels.moe_gradient")
    named = plan.named(*passed, *(tensor(*shape) for shape, _ in plan.results))
    assert set(named) == {each.name for each in traced.parameters}
    assert dict(plan.sizes).keys() == {each.name for each in traced.sizes}
    for each in traced.parameters:  # in the order and the shapes that the program has
        extents = [dict(plan.sizes).get(str(extent), extent) for extent in each.shape]
        assert len(named[each.name].shape) == len(extents), each.name
    assert named["W"].shape == (3, 2, 24, 72)
    assert named["weights"].shape == (100,)

    widths = [((100, 48), (100, 72), (3, 48, 72)), ((100, 72), (100, 24), (3, 72, 24))]
    for (plan, passed), (x, g, made) in zip(products, widths, strict=True):
        named = plan.named(*passed, tensor(*made))
        assert (named["X"].shape, named["G"].shape, plan.results[0][0]) == (x, g, made)
        assert plan.promises == "tell"


def test_what_is_not_wanted_is_not_computed(plans: Launched) -> None:
    forward()
    of_x, of_both, of_down, _, of_weights, _ = backward(tensor(50, 72), False, False, True, False)
    assert (of_x, of_both, of_weights) == (None, None, None)
    assert of_down.shape == (3, 72, 24)
    assert [plan.results[0][0] for plan, _ in plans[2:]] == [(3, 72, 24)]


@pytest.mark.parametrize("sizes", [{"tokens": 0}, {"columns": 0}])
def test_without_a_product_gradients_are_zero(plans: Launched, sizes: dict[str, int]) -> None:
    forward(**sizes)
    found = backward(tensor(sizes.get("tokens", 50), 72), True, True, True, True)
    assert not plans
    assert [each.shape for each in found if each is not None] == [
        (sizes.get("tokens", 50), 72),
        (3, 2 * sizes.get("columns", 24), 72),
        (3, 72, sizes.get("columns", 24)),
        (sizes.get("tokens", 50), 2),
    ]
    assert all(bool((each.array == 0).all()) for each in found if each is not None)


def test_layers_with_scales_have_none(plans: Launched) -> None:
    given = of_8_bits()
    with pytest.raises(ArgusError, match="`topk_weights` requires a gradient, which layers with scales lack"):
        layer(**given | {"topk_weights": evolve(given["topk_weights"], requires_grad=True)})
    assert not plans


def test_operands_are_checked_before_autograd_sees_them(plans: Launched) -> None:
    with pytest.raises(ArgusError, match="there is no schedule `wide`"):
        layer(**recorded() | {"x": evolve(tensor(50, 72), requires_grad=True)}, config="wide")
    assert not plans


def test_the_schedule_depends_on_the_rows_of_an_expert() -> None:
    assert [select_moe_gradient(*each) for each in ((100, 4), (4096, 4))] == ["by_rows", "columns_256"]
