"""`argus.route` on the stand-in for the HIP runtime: its choice, and the proved kernel that weighs and checks it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from tests.runtime.hip.rocm_torch import RocmTorch

Array = np.ndarray[Any, Any]
ROUTE: Any = argus.route


def expected(x: Array, k: int, scoring: str, bias: Array | None, renormalize: bool) -> tuple[Array, Array]:
    """The weights in double precision, and the experts: of equal scores the first."""
    scores = 1 / (1 + np.exp(-x))
    if scoring == "softmax":
        scores = np.exp(x - x.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
    keys = x if bias is None else scores + bias
    ids = np.argsort(-keys, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(scores, ids, 1)
    return weights / weights.sum(1, keepdims=True) if renormalize else weights, ids


Case = tuple[int, int, int, str, str, bool, bool]
CASES: tuple[Case, ...] = (
    (9, 64, 4, "bfloat16", "softmax", False, False),
    (5, 200, 8, "float32", "softmax", True, False),
    (17, 6, 1, "float16", "sigmoid", False, False),
    (6, 256, 8, "float32", "sigmoid", True, True),
)


@pytest.mark.share(32, among="routing")
@pytest.mark.parametrize("case", CASES)
def test_experts_are_the_largest_and_weights_their_scores(rocm: RocmTorch, case: Case) -> None:
    tokens, experts, k, kind, scoring, renormalize, biased = case
    random = np.random.default_rng(experts)
    scores: Array = np.round(random.standard_normal((tokens, experts)), 1)
    logits = rocm.tensor(scores, f"torch.{kind}")
    bias = rocm.tensor(random.standard_normal(experts) / 8, "torch.float32") if biased else None
    for scale in (1.0, 2.5):
        weights, ids = ROUTE(logits, k, scoring=scoring, bias=bias, renormalize=renormalize, scale=scale)
        right, chosen = expected(logits.wide, k, scoring, None if bias is None else bias.wide, renormalize)
        np.testing.assert_array_equal(ids.array, chosen)
        np.testing.assert_allclose(weights.array, scale * right, rtol=1e-5)
    assert not rocm.stub.findings
    assert len(rocm.stub.launches) == 4


@pytest.mark.share(32, among="routing")
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
def test_a_score_that_is_not_a_number_has_no_finite_weight(rocm: RocmTorch, kind: str, k: int) -> None:
    logits = rocm.normal(4, 8, dtype=f"torch.{kind}")
    logits.array[1, 5] = np.nan
    logits.array[2, 7] = -logits.array[1, 5]
    logits.array[3, 0] = np.inf
    weights, ids = ROUTE(logits, k, scoring="sigmoid", renormalize=True)
    assert (ids.array[1:, 0] == [5, 7, 0]).all()
    assert np.isfinite(weights.array[[0, 3]]).all()
    assert not np.isfinite(weights.array[[1, 2]]).any()


WRONG: dict[str, tuple[int, int]] = {
    "a smaller one": (2, 11),
    "an equal one after": (2, 3),
    "one twice": (2, 1),
    "no expert": (0, -1),
    "beyond the last": (1, 64),
}


@pytest.mark.share(32, among="routing")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_choice_has_infinite_weights(rocm: RocmTorch, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The kernel that weighs does not trust the one that chooses."""
    x = np.zeros((3, 64))
    x[:, :4] = 5, 4, 3, 3
    place, value = WRONG[name]
    wrong = np.array([[0, 1, 2]] * 3)
    wrong[1, place] = value
    torch: Any = sys.modules["torch"]
    empty = torch.empty

    def chosen(shape: tuple[int, ...], *, dtype: str, device: object) -> Any:  # noqa: ANN401 reason: a tensor
        made = empty(shape, dtype=dtype, device=device)
        if shape == wrong.shape:
            made.array[...] = wrong
        return made

    monkeypatch.setattr(torch, "empty", chosen)
    rocm.stub.idle.add("choose_experts")
    weights, _ = ROUTE(rocm.tensor(x, "torch.float32"), 3)
    assert np.isfinite(weights.array[[0, 2]]).all()
    assert (weights.array[1] == np.inf).all()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"logits": 3}, "`logits` is not a torch tensor"),
    "whole numbers": (
        {"dtype": "torch.int32"},
        "expects elements of type torch.bfloat16, torch.float16, torch.float32",
    ),
    "one axis": ({"shape": (8,)}, r"expected \(tokens, experts\)"),
    "too many experts": ({"shape": (2, 513)}, "expected 1 to 512 experts"),
    "no choice": ({"k": 0}, "`k` is 0, expected 1 to 8"),
    "more than there are": ({"shape": (2, 5), "k": 6}, "`k` is 6, expected 1 to 5"),
    "another scoring": ({"scoring": "tanh"}, "`scoring` is 'tanh'"),
    "an infinite scale": ({"scale": np.inf}, "`scale` is inf"),
    "a bias of probabilities": ({"bias": (8,)}, "a bias with the scores of a softmax"),
    "a bias of others": ({"scoring": "sigmoid", "bias": (7,)}, r"`bias` is \(7,\), expected \(8,\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_operands_are_refused(rocm: RocmTorch, name: str) -> None:
    changed, said = REFUSED[name]
    given: dict[str, Any] = {"shape": (4, 8), "dtype": "torch.float32", "k": 2} | changed
    logits = given.pop("logits", rocm.tensor(np.zeros(given.pop("shape")), given.pop("dtype")))
    given = {name: each for name, each in given.items() if name not in ("shape", "dtype")}
    if "bias" in given:
        given["bias"] = rocm.tensor(np.zeros(given["bias"]), "torch.float32")
    with pytest.raises(ArgusError, match=said) as caught:
        ROUTE(logits, **given)
    assert caught.value.diagnostic.code == "E401"
    assert not rocm.stub.launches


def test_no_tokens_have_no_experts(rocm: RocmTorch) -> None:
    weights, ids = ROUTE(rocm.tensor(np.zeros((0, 8)), "torch.float32"), 2)
    assert (weights.shape, ids.shape) == ((0, 2), (0, 2))
    assert not rocm.stub.launches
