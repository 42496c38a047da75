"""Sizes of no array are given by name: the ends of a window decide which keys a query sees."""

from __future__ import annotations

import runpy

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.diagnostic import ArgusError
from argus.language import Template
from argus.verifier.api import interpret
from property_tests.programs import CORPUS

LISTING = runpy.run_path(str(CORPUS / "proved" / "attention_in_a_window.py"))
WINDOWED: Template = LISTING["attention"]
SCALE: float = LISTING["SCALE"]
BF16 = np.dtype(WINDOWED.trace().parameters[0].dtype.numpy)
Array = npt.NDArray[np.float64]


def operands(rows: int, keys: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(rows + keys)
    q, k, v = (random.integers(-2, 3, shape).astype(np.float64) for shape in ((rows, 16), (keys, 16), (16, keys)))
    return q, k, v


def expected(q: Array, k: Array, v: Array, left: int, right: int) -> Array:
    own = np.arange(len(q))[:, None] + len(k) - len(q)
    key = np.arange(len(k))[None, :]
    weights = np.where((key >= own - left) & (key <= own + right), np.exp2(SCALE * (q @ k.T)), 0.0)
    sums = weights.sum(1, keepdims=True)
    return (weights / np.where(sums == 0, 1.0, sums)) @ v.T


@pytest.mark.parametrize(
    ("rows", "keys", "left", "right"),
    [(20, 40, 17, 1), (20, 40, 0, 0), (40, 8, 3, 0), (3, 36, 99, 99), (17, 16, 2, 30)],
)
def test_each_query_sees_the_keys_of_its_window(rows: int, keys: int, left: int, right: int) -> None:
    q, k, v = operands(rows, keys)
    arrays = (q.astype(BF16), k.astype(BF16), v.astype(BF16), np.zeros((rows, 16), BF16))
    made = interpret(WINDOWED, *arrays, given_sizes={"left": left, "right": right})["O"].astype(np.float64)
    assert np.abs(made - expected(q, k, v, left, right)).max() < 2.0**-6


def test_a_size_of_no_array_that_is_not_given_is_an_error() -> None:
    q, k, v = operands(16, 16)
    arrays = (q.astype(BF16), k.astype(BF16), v.astype(BF16), np.zeros((16, 16), BF16))
    with pytest.raises(ArgusError, match="no array of `attention` has the size left as an extent") as caught:
        interpret(WINDOWED, *arrays)
    assert caught.value.diagnostic.code == "E401"


def test_a_size_that_is_given_unlike_that_of_an_array_is_an_error() -> None:
    q, k, v = operands(16, 16)
    arrays = (q.astype(BF16), k.astype(BF16), v.astype(BF16), np.zeros((16, 16), BF16))
    with pytest.raises(ArgusError, match="expects shape"):
        interpret(WINDOWED, *arrays, given_sizes={"left": 1, "right": 1, "S": 15})
