"""Layers of experts on an AMD GPU's stand-in: routed, ordered, guarded, and computed by proved machine code."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.moe_fp8 import CONFIGS_CDNA3 as SCALED_CONFIGS
from argus.ops.moe import SCHEDULES
from benchmarks.mi300x_operators import CLOSE as CLOSE_TO_EXACT
from benchmarks.mi300x_operators import layers
from tests.kernels.test_moe import gelu, silu
from tests.kernels.test_moe_fp8_cdna3 import case as scaled_case
from tests.kernels.test_moe_fp8_cdna3 import is_right as scaled_is_right
from tests.kernels.test_moe_gradient import case as of_gradients
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor, gradients
from tests.runtime.hip.test_report import OnStandIn

OPERATORS: Any = argus
ORDER: Any = import_module("argus.ops.expert_order")
LAUNCHES = ("moe_gather", "moe_first", "moe_second", "moe_sum")
CLOSE = {"torch.bfloat16": 2.0**-6, "torch.float16": 2.0**-9, "torch.float32": 2.0**-6}
"""Of the largest result."""


def made(rocm: RocmTorch, tokens: int, experts: int, dtype: str, columns: int = 40, depth: int = 72) -> list[Tensor]:
    """Rows of tokens, and the experts' matrices."""
    shapes = (tokens, depth), (experts, 2 * columns, depth), (experts, depth, columns)
    whole = [rocm.whole(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes)]
    for each, factor in zip(whole, (0.5, 0.125, 0.25), strict=True):
        each.array[...] *= each.array.dtype.type(factor)
    return whole


def expected(operands: list[Tensor], ids: Tensor, weights: Tensor, activation: str) -> np.ndarray[Any, Any]:
    x, both, down = (each.wide for each in operands)
    product = np.einsum("tk,tjnk->tjn", x, both[ids.array])
    gate, up = np.split(product, 2, axis=2)
    hidden = (silu if activation == "silu" else gelu)(gate) * up
    return np.einsum("tj,tjn,tjkn->tk", weights.wide, hidden, down[ids.array])


def is_right(found: Tensor, wanted: np.ndarray[Any, Any]) -> bool:
    return bool(np.abs(found.wide - wanted).max() <= CLOSE[found.dtype] * np.abs(wanted).max())


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize(
    ("tokens", "experts", "choices", "dtype", "activation"),
    [(7, 4, 2, "torch.bfloat16", "silu"), (70, 3, 1, "torch.float16", "gelu"), (1, 16, 8, "torch.bfloat16", "gelu")],
)
def test_tokens_are_routed_ordered_and_meet_their_experts(
    rocm: RocmTorch, tokens: int, experts: int, choices: int, dtype: str, activation: str
) -> None:
    weights, ids = OPERATORS.route(rocm.normal(tokens, experts, seed=5, dtype="torch.float32"), choices)
    operands = made(rocm, tokens, experts, dtype)
    rocm.stub.launches.clear()
    found = OPERATORS.moe(*operands, ids, weights, activation=activation)

    assert found.dtype == dtype
    assert is_right(found, expected(operands, ids, weights, activation))
    first, *names = (name for name, _ in rocm.stub.launches)
    assert first == "place_by_expert_32"
    assert [name.removesuffix("_") for name in names if "__guard" not in name] == list(LAUNCHES)
    assert "__guard" in names[0]
    assert not rocm.stub.findings


@pytest.mark.nightly
@pytest.mark.parametrize("config", SCHEDULES["gfx942"])
@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_every_configuration_computes_the_layer(rocm: RocmTorch, config: str, dtype: str, activation: str) -> None:
    random, tokens, experts = np.random.default_rng(1), 90, 5
    operands = made(rocm, tokens, experts, dtype, columns=136, depth=80)
    ids = rocm.tensor(random.integers(1, experts, (tokens, 3)), "torch.int64")  # the first expert has no tokens
    weights = rocm.tensor(random.random((tokens, 3)), "torch.float32")
    found = OPERATORS.moe(*operands, ids, weights, activation=activation, config=config)
    assert is_right(found, expected(operands, ids, weights, activation))
    assert not rocm.stub.findings


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_autograd_has_the_gradients(rocm: RocmTorch, activation: Literal["silu", "gelu"]) -> None:
    _, arrays, wanted = of_gradients("bf16", activation, 64)
    tokens, experts, choices = len(arrays["X"]), len(arrays["W"]), arrays["ids"].shape[1]
    x, both, down, given = (rocm.tensor(arrays[name]) for name in "XWVG")
    weights = rocm.tensor(arrays["weights"].reshape(tokens, choices), "torch.float32")
    operands = x, both.reshape(experts, -1, x.shape[1]), down, rocm.tensor(arrays["ids"], "torch.int32"), weights
    for each in (*operands[:3], weights):
        each.requires_grad = True
    OPERATORS.moe(*operands, activation=activation)
    of_x, of_both, of_down, _, of_weights, _ = gradients(given, (True, True, True, False, True, False))

    owner = np.repeat(np.arange(experts), np.diff(arrays["starts"]))[:, None] == np.arange(experts)
    of_first = np.einsum("re,rn,rk->enk", owner, wanted["dZ"].reshape(len(owner), -1), wanted["A"])
    of_second = np.einsum("re,rk,rn->ekn", owner, wanted["B"], wanted["H"])
    pairs = ((of_x, wanted["dX"]), (of_weights, wanted["dw"]), (of_both, of_first), (of_down, of_second))
    assert all(found.shape == exact.shape and is_right(found, exact) for found, exact in pairs)
    assert not rocm.stub.findings


@pytest.mark.nightly
@pytest.mark.parametrize("config", SCALED_CONFIGS)
def test_operands_of_8_bits_have_scales_of_blocks(rocm: RocmTorch, config: str) -> None:
    _, arrays = scaled_case(60)
    operands = [rocm.tensor(arrays[name], "torch.float8_e4m3fnuz") for name in "XWV"]
    scales = tuple(rocm.tensor(arrays[f"scale_{name}"], "torch.float32") for name in "xwv")
    ids, weights = rocm.tensor(arrays["ids"], "torch.int32"), rocm.tensor(arrays["weights"], "torch.float32")
    found = OPERATORS.moe(*operands, ids, weights, scales=scales, config=config)
    assert found.dtype == "torch.bfloat16"
    assert scaled_is_right(found.array, arrays, "silu")
    assert not rocm.stub.findings


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize(
    ("at", "value", "told"),
    [((2, 1), 4, "element 5 of ids by rows = 4"), ((0, 0), -1, "element 0 of ids by rows = -1")],
)
def test_wrong_experts_are_told_of_and_stop_the_device(
    rocm: RocmTorch, at: tuple[int, int], value: int, told: str
) -> None:
    ids = np.zeros((7, 2))
    ids[at] = value
    weights = rocm.tensor(np.ones((7, 2)), "torch.float32")
    with pytest.raises(ArgusError) as caught:
        OPERATORS.moe(*made(rocm, 7, 4, "torch.bfloat16"), rocm.tensor(ids, "torch.int32"), weights)
    assert caught.value.diagnostic.code == "E402"
    assert told in caught.value.diagnostic.message
    assert "moe_sum_" not in [name for name, _ in rocm.stub.launches]  # the launch that promises what they are
    rocm.stub.library.stub_stop(0)


@pytest.mark.share(340, among="operators on the stand-in")
def test_a_wrong_order_is_refused(rocm: RocmTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of two tokens exchanged by the kernel that sorts, which is not trusted."""
    layer, ordered = import_module("argus.ops.moe"), ORDER.expert_order

    def exchanged(*given: Any, **more: Any) -> Any:  # noqa: ANN401 reason: an order
        order = ordered(*given, **more)
        order.inverse.array[[0, 1]] = order.inverse.array[[1, 0]]
        return order

    monkeypatch.setattr(layer, "expert_order", exchanged)
    ids, weights = rocm.tensor(np.zeros((7, 2)), "torch.int32"), rocm.tensor(np.ones((7, 2)), "torch.float32")
    with pytest.raises(ArgusError) as caught:
        OPERATORS.moe(*made(rocm, 7, 4, "torch.bfloat16"), ids, weights)
    assert caught.value.diagnostic.code == "E402"
    rocm.stub.library.stub_stop(0)


@pytest.mark.nightly
def test_the_report_of_an_mi300x_compares_layers(rocm: RocmTorch) -> None:
    for name, case in layers([(7, 3, 2, 24, 40)]).items():
        dtype = name.split(" ")[1]
        (off,) = case(OnStandIn(rocm), dtype)
        assert 0 < off <= CLOSE_TO_EXACT[dtype]


def test_what_has_no_kernels_is_refused(rocm: RocmTorch) -> None:
    ids, weights = rocm.tensor(np.zeros((7, 2)), "torch.int32"), rocm.tensor(np.ones((7, 2)), "torch.float32")
    operands = made(rocm, 7, 4, "torch.bfloat16")
    with pytest.raises(ArgusError, match="there is no schedule `columns_256`"):
        OPERATORS.moe(*operands, ids, weights, config="columns_256")
    eight = [rocm.tensor(each.array, "torch.float8_e4m3fn") for each in operands]
    with pytest.raises(ArgusError, match="no proved kernel for gfx942 of moe with operands of e4m3"):
        OPERATORS.moe(*eight, ids, weights, scales=(weights, weights, weights))
    assert not rocm.stub.launches
