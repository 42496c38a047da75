"""Sums of graphs in another order, on tensors of the CPU: proved, right, named in the report, and left out if asked."""

# Functions of torch, which is untyped:
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportPrivateUsage=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 reason: torch's own name for it

import argus.torch
from argus.nests.exchanged import FACTORS, WINDOWS
from argus.torch import rewrites
from argus.torch.backend import argus_backend
from argus.torch.report import GraphEntry
from tests.torch.problems import drawn, is_proved_and_right, made

GIVEN = drawn((6, 40), (24, 40), (24,))
"""Rows, weights and a bias."""
IMAGES = drawn((2, 4, 12, 12), (6, 4, 3, 3), (6,), (4, 6, 3, 3))
"""Inputs, filters, a bias, and filters of a transposed convolution."""


def halves(x: Any, w: Any, _: Any) -> Any:  # noqa: ANN401 reason: tensors
    return torch.sum(x @ w.T / 2, dim=1, keepdim=True) * 1.5


def maximum_of_one(x: Any, w: Any, b: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = torch.max(torch.sum(F.linear(x, w, b), dim=1, keepdim=True), dim=1, keepdim=True)[0]
    return torch.logsumexp(torch.mean(y, dim=1, keepdim=True), dim=1, keepdim=True)


def pooled_columns(x: Any, w: Any, b: Any) -> Any:  # noqa: ANN401 reason: tensors
    return F.gelu(F.avg_pool1d(F.linear(x, w, b).unsqueeze(1), 4).squeeze(1))


def mean_of_space(x: Any, w: Any, b: Any, _: Any) -> Any:  # noqa: ANN401 reason: tensors
    return torch.mean(F.conv2d(x, w, b, padding=1) * 0.5, dim=(2, 3), keepdim=True)


def mean_of_transposed(x: Any, _: Any, b: Any, w: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)
    return torch.logsumexp(torch.mean(y, dim=(2, 3)), dim=1)


def pooled(x: Any, w: Any, b: Any, _: Any) -> Any:  # noqa: ANN401 reason: tensors
    return torch.sum(torch.sigmoid(F.avg_pool2d(F.conv2d(x, w, b), 5)), dim=(1, 2, 3))


def pooled_transposed(x: Any, _: Any, b: Any, w: Any) -> Any:  # noqa: ANN401 reason: tensors
    return F.avg_pool2d(F.conv_transpose2d(x, w, b, stride=2, padding=1) * 0.5, 2) + 1.0


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "14 sum of halves": (halves, GIVEN, FACTORS),
    "18 maximum, mean and logarithm of one": (maximum_of_one, GIVEN, FACTORS),
    "98 columns pooled": (pooled_columns, GIVEN, FACTORS),
    "mean of a convolution": (mean_of_space, IMAGES, FACTORS),
    "44 mean of a transposed convolution": (mean_of_transposed, IMAGES, FACTORS),
    "65 convolution pooled": (pooled, IMAGES, FACTORS),
    "50 transposed convolution pooled": (pooled_transposed, IMAGES, WINDOWS),
}
IN_DEFAULT = {"14 sum of halves"}


def compiled(function: Callable[..., Any], given: tuple[Any, ...], **options: object) -> tuple[Any, GraphEntry]:
    """The result, and what the report says."""
    made._dynamo.reset()
    found = made.compile(function, backend=argus_backend, options=options)(*given)
    return found, argus.torch.report()[-1]


@pytest.mark.parametrize(
    "name", [name if name in IN_DEFAULT else pytest.param(name, marks=pytest.mark.nightly) for name in CASES]
)
def test_a_rewritten_sum_is_proved_named_and_right(name: str) -> None:
    function, given, rule = CASES[name]
    is_proved_and_right(function, given)
    (entry,) = argus.torch.report()[-1].rewrites
    assert entry.rule == rule
    assert len(entry.new) > 1
    assert f"rewritten, {rule}: proved" in str(argus.torch.report()[-1])


def test_without_rewrites_the_product_itself_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, entry = compiled(halves, GIVEN, rewrites=False)
    assert entry.rewrites == ()
    assert any("mul(X0[i0, j0], X1[i1, j0])" in each.nests for each in entry.kernels)
    torch.testing.assert_close(found, halves(*GIVEN))

    # Nor if the sums are not proved to be equal.
    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(rewrites, "are_equal", never)
    monkeypatch.setattr(rewrites, "_KNOWN", {})
    assert compiled(halves, GIVEN)[1].rewrites == ()


@pytest.mark.nightly
def test_what_others_read_is_not_rewritten() -> None:
    """The product is a result, too."""

    def both(x: Any, w: Any, _: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: tensors
        y = x @ w.T
        return y, torch.sum(y, dim=1)

    assert compiled(both, GIVEN)[1].rewrites == ()


@pytest.mark.nightly
def test_sizes_that_are_not_known_are_symbols_of_the_proof() -> None:
    made._dynamo.reset()
    function = made.compile(halves, backend=argus_backend, dynamic=True)
    for rows, depth, columns in ((6, 40, 24), (9, 44, 20)):
        given = drawn((rows, depth), (columns, depth), (columns,))
        torch.testing.assert_close(function(*given), halves(*given))
    entry = argus.torch.report()[-1]
    assert [each.rule for each in entry.rewrites] == [FACTORS]
    assert "40" not in entry.rewrites[0].new[0]


def test_a_choice_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match="`rewrites` is 'no'"):
        compiled(halves, GIVEN, rewrites="no")
