"""`argus.expert_order` on the stand-in for the HIP runtime, which executes its machine code and finds its races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.grouped_tiles import count_of
from tests.runtime.hip.rocm_torch import RocmTorch

Array = np.ndarray[Any, Any]
ORDER: Any = argus.expert_order


def wanted(ids: Array, experts: int, height: int) -> dict[str, Array]:
    """The order as NumPy finds it."""
    flat = np.clip(ids.reshape(-1), 0, experts - 1)
    order = np.argsort(flat, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=experts))])
    tiles = [(row, e) for e in range(experts) for row in range(offsets[e], offsets[e + 1], height)]
    tiles += [(flat.size, experts - 1)] * (count_of(flat.size, experts, height) - len(tiles))
    return {
        "ids": ids,
        "offsets": offsets,
        "order": order,
        "tokens": order // ids.shape[1],
        "inverse": np.argsort(order, kind="stable").reshape(ids.shape),
        "tile_starts": np.array([*(row for row, _ in tiles), flat.size]),
        "tile_experts": np.array([e for _, e in tiles]),
    }


CASES = (
    (40, 8, 256, "torch.int32", 1),
    (40, 3, 5, "torch.int64", 1),
    (33, 1, 1, "torch.int32", 1),
    (0, 2, 4, "torch.int32", 1),
    (700, 6, 8, "torch.int64", 2),
    (520, 8, 512, "torch.int32", 2),
)


@pytest.mark.share(16, among="orders by expert")
@pytest.mark.parametrize("case", CASES)
def test_assignments_are_sorted_by_expert(rocm: RocmTorch, case: tuple[int, int, int, str, int]) -> None:
    tokens, choices, experts, kind, launches = case
    ids = np.random.default_rng(tokens).integers(0, experts, (tokens, choices))
    if tokens == 40:
        ids[:, 0] = experts // 2  # of experts without a token, and one with many
    found = ORDER(rocm.tensor(ids, kind), experts, height=16)
    for name, each in wanted(ids, experts, 16).items():
        held = getattr(found, name)
        assert held.dtype == "torch.int32", name
        np.testing.assert_array_equal(held.array, each, err_msg=name)
    assert len(rocm.stub.launches) == launches
    assert not rocm.stub.findings


@pytest.mark.share(2)
def test_ids_of_no_expert_are_kept_and_nothing_is_accessed_outside(rocm: RocmTorch) -> None:
    ids = np.random.default_rng(0).integers(-(2**31), 2**31, (30, 4))
    found = ORDER(rocm.tensor(ids, "torch.int32"), 7)
    assert (found.ids.array == ids).all()
    assert found.tile_starts is None
    np.testing.assert_array_equal(found.order.array, wanted(ids, 7, 1)["order"])
    assert not rocm.stub.findings


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"topk_ids": 3}, "`topk_ids` is not a torch tensor"),
    "numbers": ({"dtype": "torch.float32"}, "expects torch.int32 or torch.int64"),
    "one axis": ({"shape": (8,)}, r"expected \(tokens, k\)"),
    "no choices": ({"shape": (8, 0)}, r"expected \(tokens, k\)"),
    "no experts": ({"experts": 0}, "found 0 experts"),
    "too many experts": ({"experts": 513}, "expected 1 to 512"),
    "no rows of a tile": ({"height": 0}, "`height` is 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_operands_are_refused(rocm: RocmTorch, name: str) -> None:
    changed, said = WRONG[name]
    given: dict[str, Any] = {"shape": (8, 2), "dtype": "torch.int32", "experts": 4, "height": None} | changed
    ids = given.get("topk_ids", rocm.tensor(np.zeros(given["shape"]), given["dtype"]))
    with pytest.raises(ArgusError, match=said) as caught:
        ORDER(ids, given["experts"], height=given["height"])
    assert caught.value.diagnostic.code == "E401"
    assert not rocm.stub.launches


def received(counts: Array, rows: int) -> tuple[Array, Array, Array]:
    """Offsets, order and inverse of received rows as NumPy finds them."""
    ranks, experts = counts.shape
    owner: Array = np.repeat(np.array([*range(experts)] * ranks), counts.reshape(-1))
    order = np.concatenate([np.argsort(owner, kind="stable"), np.arange(owner.size, rows)])
    return np.concatenate([[0], np.cumsum(counts.sum(0))]), order, np.argsort(order, kind="stable")


@pytest.mark.share(16, among="orders by expert")
@pytest.mark.parametrize(("ranks", "experts", "spare"), [(4, 3, 0), (1, 8, 5), (8, 1, 0), (8, 64, 100)])
def test_received_rows_are_sorted_by_expert(rocm: RocmTorch, ranks: int, experts: int, spare: int) -> None:
    counts = np.random.default_rng(ranks).integers(0, 6, (ranks, experts))
    counts[:, experts // 2] *= counts[:, 0] % 2
    rows = int(counts.sum()) + spare
    found = argus.received_order(rocm.tensor(counts, "torch.int32"), rows, height=4)
    for held, each in zip((found.offsets, found.order, found.inverse), received(counts, rows), strict=True):
        np.testing.assert_array_equal(held.array, each)
    offsets = found.offsets.array
    tiles = [(row, e) for e in range(experts) for row in range(offsets[e], offsets[e + 1], 4)]
    assert list(zip(found.tile_starts.array, found.tile_experts.array, strict=False))[: len(tiles)] == tiles
    assert (found.tile_starts.array[len(tiles) :] == rows - spare).all()
    assert not rocm.stub.findings


def test_wrong_numbers_of_received_rows_are_no_access_outside(rocm: RocmTorch) -> None:
    counts = np.random.default_rng(5).integers(-(2**31), 2**31, (4, 16))
    argus.received_order(rocm.tensor(counts, "torch.int32"), 100, height=16)
    assert not rocm.stub.findings


@pytest.mark.parametrize(
    ("shape", "rows", "said"), [((8,), 3, "ranks, experts"), ((64, 9), 3, "1 to 512"), ((2, 2), -1, "`rows` is -1")]
)
def test_other_numbers_of_received_rows_are_refused(
    rocm: RocmTorch, shape: tuple[int, ...], rows: int, said: str
) -> None:
    with pytest.raises(ArgusError, match=said) as caught:
        argus.received_order(rocm.tensor(np.zeros(shape), "torch.int32"), rows)
    assert caught.value.diagnostic.code == "E401"
