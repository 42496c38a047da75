"""`argus.moe` without a GPU: operands, the order of rows, and what is launched."""

from __future__ import annotations

import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.ops.choice import select_moe
from argus.ops.expert_order import ExpertOrder
from argus.ops.grouped_tiles import count_of
from argus.ops.moe_choices import fitting, for_few
from tests.ops.fake_torch import Matrix, aligned, gpu

module = import_module("argus.ops.moe")
layer: Any = argus.moe
Launched = list[tuple[Plan, tuple[Any, ...]]]
ARRAYS = {"torch.int32": np.int32, "torch.float32": np.float32}


def tensor(*shape: int, dtype: str = "torch.bfloat16") -> Matrix:
    return Matrix(aligned(np.zeros(shape, ARRAYS.get(dtype, bfloat16))), dtype)


def integers(*shape: int) -> Matrix:
    return tensor(*shape, dtype="torch.int32")


def in_32_bits(ids: Matrix) -> Matrix:
    return integers(*ids.shape)


def operands(
    tokens: int = 50, experts: int = 3, columns: int = 24, depth: int = 72, choices: int = 2
) -> dict[str, Any]:
    both, down = tensor(experts, 2 * columns, depth), tensor(experts, depth, columns)
    weights = tensor(tokens, choices, dtype="torch.float32")
    given = {"x": tensor(tokens, depth), "w_gate_up": both, "w_down": down}
    return {**given, "topk_ids": integers(tokens, choices), "topk_weights": weights}


def ordered(ids: Matrix, experts: int, *, height: int | None) -> ExpertOrder:
    rows = ids.shape[0] * ids.shape[1]
    lists = integers(experts + 1), integers(rows), integers(rows), integers(*ids.shape)
    assert height is not None
    tiles = count_of(rows, experts, height)
    return ExpertOrder(ids, *lists, integers(tiles + 1), integers(tiles))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[Matrix, None]:
        assert unproved == "refuse"
        made.append((plan, given))
        return tensor(*plan.results[0][0]), None

    cuda = SimpleNamespace(get_device_properties=gpu(9))
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=cuda, is_grad_enabled=lambda: True, bfloat16="torch.bfloat16")
    )
    monkeypatch.setattr(module, "launch", launch)
    monkeypatch.setattr(module, "expert_order", ordered)
    return made


def test_operands_are_read_in_place_and_integers_are_checked_on_the_gpu(plans: Launched) -> None:
    given = operands()
    assert layer(**given).shape == (50, 72)
    ((plan, passed),) = plans
    sizes = {"T": 50, "K": 72, "E": 3, "N": 24, "J": 2, "S": 4, "R": 100, "Q": 4, "P": 3}
    assert dict(plan.sizes) == sizes
    assert [(each.family, each.config) for each in plan.candidates] == [("moe_silu_bf16", "by_rows")]
    assert plan.promises == "stop"
    named = plan.named(*passed, tensor(50, 72))
    (candidate,) = plan.candidates
    traced, home = candidate.traced()
    assert (traced.name, home) == ("moe_by_rows", "argus.kernels.moe")
    assert set(named) == {each.name for each in traced.parameters}
    assert named["W"].shape == (3, 2, 24, 72)
    for name, own in (
        ("X", "x"),
        ("W", "w_gate_up"),
        ("V", "w_down"),
        ("ids", "topk_ids"),
        ("weights", "topk_weights"),
    ):
        assert named[name].data_ptr() == given[own].data_ptr()
    assert sizes.keys() == {each.name for each in traced.sizes}


@pytest.mark.parametrize("ids", ["torch.int32", "torch.int64"])
def test_few_tokens_may_have_no_order_of_rows(plans: Launched, monkeypatch: pytest.MonkeyPatch, ids: str) -> None:
    monkeypatch.setattr(module, "expert_order", None)
    monkeypatch.setattr(Matrix, "int", in_32_bits, raising=False)
    given = operands(tokens=2)
    given["topk_ids"] = tensor(2, 2, dtype=ids)
    assert layer(**given, config="choices_768", promises="fetch").shape == (2, 72)
    ((plan, passed),) = plans
    assert dict(plan.sizes) == {"T": 2, "K": 72, "E": 3, "N": 24, "J": 2}
    assert plan.promises == "fetch"
    named, (candidate,) = plan.named(*passed, tensor(2, 72)), plan.candidates
    traced, home = candidate.traced()
    assert (traced.name, home) == ("moe_choices_768", "argus.kernels.moe_choices")
    assert named.keys() == {each.name for each in traced.parameters}
    assert dict(plan.sizes).keys() == {each.name for each in traced.sizes}
    assert named["W"].shape == (3, 2, 24, 72)
    assert named["ids"].dtype == "torch.int32"
    assert (named["ids"].data_ptr() == given["topk_ids"].data_ptr()) == (ids == "torch.int32")


def test_sums_in_any_order_have_to_be_allowed(plans: Launched) -> None:
    given = operands(tokens=2)
    with pytest.raises(ArgusError, match="`added_768` adds a token's choices in any order") as refused:
        layer(**given, config="added_768")
    assert refused.value.diagnostic.code == "E401"
    layer(**given, config="added_768", deterministic=False)
    ((plan, _),) = plans
    assert [each.config for each in plan.candidates] == ["added_768"]


def test_few_tokens_have_no_order_by_default() -> None:
    assert for_few(1, 6, 64, 1408) == "choices_1536"
    assert for_few(1, 8, 256, 2048) == "choices_2048"
    assert for_few(1, 8, 256, 4104) is None
    assert for_few(64, 8, 256, 2048) is None


def test_the_schedule_of_few_tokens_has_room_for_the_columns_between() -> None:
    assert [fitting(columns) for columns in (8, 768, 1408, 2048, 4096, 4104)] == [
        "choices_768",
        "choices_768",
        "choices_1536",
        "choices_2048",
        "choices_4096",
        None,
    ]


@pytest.mark.parametrize(("tokens", "tiles"), [(3, 3), (5, 3)])
def test_few_rows_take_low_tiles_and_at_most_one_of_each_row(plans: Launched, tokens: int, tiles: int) -> None:
    layer(**operands(tokens=tokens))
    ((plan, _),) = plans
    sizes = {"T": tokens, "K": 72, "E": 3, "N": 24, "J": 2, "S": 4, "R": 2 * tokens, "Q": tiles + 1, "P": tiles}
    assert dict(plan.sizes) == sizes
    assert [each.config for each in plan.candidates] == ["rows_16"]


def test_the_kernels_are_those_of_type_activation_and_schedule(plans: Launched) -> None:
    kind = "torch.float16"
    given = operands() | {"x": tensor(50, 72, dtype=kind)}
    given |= {"w_gate_up": tensor(3, 48, 72, dtype=kind), "w_down": tensor(3, 72, 24, dtype=kind)}
    layer(**given, activation="gelu", config="columns_256", promises="fetch")
    ((plan, _),) = plans
    assert [(each.family, each.config) for each in plan.candidates] == [("moe_gelu_f16", "columns_256")]
    assert plan.promises == "fetch"


def test_the_schedule_depends_on_the_rows_of_an_expert() -> None:
    given = ((8, 256), (32, 8), (1000, 256), (500, 64), (2048, 64), (1 << 18, 256))
    assert [select_moe(*each, blocks=False) for each in given] == [
        "rows_16",
        "rows_16",
        "rows_16",
        "rows_32",
        "by_rows",
        "columns_256",
    ]
    assert [select_moe(*each, blocks=True) for each in given] == [
        "rows_16",
        "rows_16",
        "rows_32",
        "rows_32",
        "by_rows",
        "super_tiled",
    ]


@pytest.mark.parametrize("sizes", [{"tokens": 0}, {"columns": 0}, {"depth": 0}, {"choices": 0}])
def test_without_a_product_nothing_is_launched(plans: Launched, sizes: dict[str, int]) -> None:
    out = layer(**operands(**sizes))
    assert not plans
    assert out.shape == (sizes.get("tokens", 50), sizes.get("depth", 72))
    assert bool((out.array == 0).all())


def of_8_bits(columns: int = 128) -> dict[str, Any]:
    kind, single = "torch.float8_e4m3fn", "torch.float32"
    given = operands(columns=columns, depth=272)
    of = {name: tensor(*given[name].shape, dtype=kind) for name in ("x", "w_gate_up", "w_down")}
    extents = (50, 3), (3, columns // 64, 3), (3, 3, columns // 128)
    return given | of | {"scales": tuple(tensor(*each, dtype=single) for each in extents)}


def test_operands_of_8_bits_have_scales_of_blocks(plans: Launched) -> None:
    given = of_8_bits()
    assert layer(**given).shape == (50, 272)
    ((plan, passed),) = plans
    assert plan.results == (((50, 272), "torch.bfloat16"),)
    assert [(each.family, each.config) for each in plan.candidates] == [("moe_silu_e4m3", "by_rows")]
    (candidate,) = plan.candidates
    traced, _ = candidate.traced()
    named = plan.named(*passed, tensor(50, 272))
    assert set(named) == {each.name for each in traced.parameters}
    assert dict(plan.sizes).keys() == {each.name for each in traced.sizes}
    assert [named[name].shape for name in ("scale_x", "scale_w", "scale_v")] == [(50, 3), (3, 2, 3), (3, 3, 1)]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"x": 3}, "`x` is not a torch tensor"),
    "another type": ({"x": tensor(50, 72, dtype="torch.float32")}, "`x` expects elements of type"),
    "unlike types": ({"w_down": tensor(3, 72, 24, dtype="torch.float16")}, "`x` has elements of type"),
    "one matrix": ({"w_down": tensor(72, 24)}, "`w_down` expects 3 axes, found 2"),
    "another depth": ({"x": tensor(50, 64)}, "`w_gate_up` is \\(3, 48, 72\\), expected \\(3, 48, 64\\)"),
    "an odd number of rows": ({"w_gate_up": tensor(3, 49, 72)}, "expected \\(3, 48, 72\\)"),
    "matrices of the first product alone": ({"w_down": tensor(3, 72, 48)}, "expected \\(3, 72, 24\\)"),
    "turned matrices": ({"w_down": tensor(3, 24, 72)}, "expected \\(3, 72, 24\\)"),
    "fewer experts": ({"w_down": tensor(2, 72, 24)}, "expected \\(3, 72, 24\\)"),
    "ids of other tokens": ({"topk_ids": integers(49, 2)}, "`topk_ids` is \\(49, 2\\), expected \\(50, 2\\)"),
    "a weight too few": ({"topk_weights": tensor(50, 1, dtype="torch.float32")}, "`topk_weights` is \\(50, 1\\)"),
    "ids that are no integers": ({"topk_ids": tensor(50, 2)}, "`topk_ids` expects elements of type torch.int32"),
    "weights that are integers": ({"topk_weights": integers(50, 2)}, "`topk_weights` expects elements"),
    "the host's memory": ({"w_down": evolve(tensor(3, 72, 24), is_cuda=False)}, "expected a GPU"),
    "8 bits without scales": (of_8_bits() | {"scales": None}, "`x` expects elements of type"),
    "scales of 16 bits' elements": ({"scales": of_8_bits()["scales"]}, "`x` expects elements of type torch.float8"),
    "two scales": (of_8_bits() | {"scales": of_8_bits()["scales"][:2]}, "2 scales"),
    "scales of other blocks": (
        of_8_bits() | {"scales": of_8_bits()["scales"][::-1]},
        "scales of `x`: \\(3, 3, 1\\), expected \\(50, 3\\)",
    ),
    "columns that are no blocks": (of_8_bits() | operands(columns=136, depth=272) | {"scales": ()}, "expects elements"),
    "no such schedule": ({"config": "wide"}, "there is no schedule `wide`"),
    "no such activation": ({"activation": "relu"}, "there is no activation `relu`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_operands_are_refused(plans: Launched, name: str) -> None:
    changed, said = WRONG[name]
    with pytest.raises(ArgusError, match=said) as caught:
        layer(**{**operands(), **changed})
    assert caught.value.diagnostic.code == "E401"
    assert not plans
