"""Operands of `argus.matmul`: which are refused, which are read in place, and which are copied."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from tests.ops.fake_torch import ELSEWHERE, KINDS, Matrix, Multiplying, batch, expected_product, matrix

GOOD = matrix(3, 5)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0], matrix(5, 2), "`a` is not a torch tensor, found list"),
        (np.zeros((3, 5)), matrix(5, 2), "`a` is on a device of type 1 of DLPack, expected CUDA"),
        (GOOD, evolve(matrix(5, 2), dtype="torch.float64"), "`b` expects elements of type torch.bfloat16"),
        (evolve(GOOD, array=np.zeros((), bfloat16)), matrix(5, 2), "`a` expects at least 1 axis, found none"),
        (evolve(GOOD, is_cuda=False, device="cpu"), matrix(5, 2), "`a` is on cpu"),
        (GOOD, evolve(matrix(5, 2), device=ELSEWHERE), "`b` on"),
        (GOOD, matrix(4, 2), "`b` expects 5 rows"),
    ],
)
def test_operands_that_are_not_two_matrices_are_refused(
    a: Any,  # noqa: ANN401 reason: anything
    b: Any,  # noqa: ANN401 reason: anything
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: True))
    with pytest.raises(ArgusError) as refused:
        argus.matmul(a, b)

    assert refused.value.diagnostic.code == "E401"
    assert words in refused.value.diagnostic.message


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("config", ["fast", "cdna3"])
def test_an_unknown_schedule_or_one_of_another_target_is_refused(config: str) -> None:
    with pytest.raises(ArgusError, match="there is no schedule") as refused:
        argus.matmul(GOOD, matrix(5, 2), config=config)
    assert refused.value.diagnostic.code == "E401"
    assert "cooperative" in refused.value.diagnostic.help
    assert "cdna3" not in refused.value.diagnostic.help


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
def test_operands_are_read_in_place(fake: Multiplying, kind: str, *, a_turned: bool, b_turned: bool) -> None:
    copies: list[str] = []
    a = evolve(batch((16, 8) if a_turned else (8, 16), 1, kind), copies=copies)
    b = evolve(batch((24, 16) if b_turned else (16, 24), 2, kind), copies=copies)
    a, b = a.mT if a_turned else a, b.mT if b_turned else b

    for _ in range(2):  # the second time by what the first has prepared
        found = argus.matmul(a, b)
        assert np.array_equal(found.array, expected_product(a, b))

    assert copies == []
    names = [launch[0] for launch in fake.launches]
    layout = ("t" if a_turned else "n") + ("t" if b_turned else "n")
    assert len(set(names)) == 1
    assert names[0].startswith("gemm_single" if layout == "nt" and kind == "bfloat16" else f"gemm_{layout}_")


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ((3, 8, 16), (3, 16, 24), "bmm_nn_"),
        ((8, 16), (3, 16, 24), "bmm_nn_shared_"),
        ((1, 8, 16), (3, 16, 24), "bmm_nn_shared_"),
        ((3, 8, 16), (16, 24), "gemm_nn_"),
        ((3, 8, 16), (1, 16, 24), "gemm_nn_"),
        ((1, 8, 16), (1, 16, 24), "gemm_nn_"),
        ((3, 5, 7), (3, 7, 9), "bmm_nn_narrow"),
    ],
)
def test_products_of_a_batch_are_one_launch(
    fake: Multiplying, a: tuple[int, ...], b: tuple[int, ...], name: str
) -> None:
    left, right = batch(a, 1), batch(b, 2)
    for _ in range(2):
        found = argus.matmul(left, right)
        assert np.array_equal(found.array, expected_product(left, right))
    assert [launch[0][: len(name)] for launch in fake.launches] == [name, name]


def test_rows_of_a_wider_matrix_are_read_in_place(fake: Multiplying) -> None:
    copies: list[str] = []
    wide = matrix(8, 64)
    part = evolve(wide, array=wide.array[:, :16], copies=copies)

    argus.matmul(part, matrix(24, 16).mT)
    argus.matmul(evolve(wide, array=wide.array[:, :16].copy()), matrix(24, 16).mT)

    assert copies == []
    assert fake.maps[0] == [128]
    assert [32] in fake.maps


@pytest.mark.usefixtures("fake")
def test_operands_that_no_kernel_reads_in_place_are_copied() -> None:
    copies: list[str] = []
    wide = matrix(8, 64)
    apart = evolve(wide, array=wide.array[:, ::4], copies=copies)
    odd = evolve(wide, array=wide.array[:, :15], copies=copies)
    for a in (apart, odd):
        b = matrix(a.shape[1], 24)
        assert np.array_equal(argus.matmul(a, b).array, expected_product(a, b))
    assert copies == ["contiguous", "contiguous"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (matrix(8, 16), batch((16, 8), kind="float16"), "`a` has elements of type torch.bfloat16"),
        (batch((2, 8, 16)), batch((3, 16, 8)), "the batch sizes must be equal"),
        (batch((2, 2, 8, 16)), batch((2, 3, 16, 8)), "the batch sizes must be equal"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_operands_that_are_not_batches_are_refused(a: Matrix, b: Matrix, words: str) -> None:
    with pytest.raises(ArgusError, match="matmul") as refused:
        argus.matmul(a, b)
    assert words in refused.value.diagnostic.message


def test_parameters_are_accepted_where_gradients_are_disabled(fake: Multiplying) -> None:
    argus.matmul(matrix(8, 16), evolve(matrix(8, 16), requires_grad=True).mT)

    assert len(fake.launches) == 1


def test_an_unaligned_matrix_is_copied(fake: Multiplying) -> None:
    copies: list[str] = []

    argus.matmul(evolve(matrix(8, 16), shift=2, copies=copies), matrix(8, 16).mT)

    assert copies == ["clone"]
    assert len(fake.launches) == 1


@pytest.mark.usefixtures("fake")
def test_empty_products_launch_nothing() -> None:
    assert argus.matmul(matrix(0, 8), matrix(8, 8)).shape == (0, 8)
    assert argus.matmul(matrix(8, 8), matrix(8, 0)).shape == (8, 0)
    assert (argus.matmul(matrix(3, 0), matrix(0, 4)).array == 0).all()


@define
class Foreign:
    """An array of a library that exchanges tensors as they are."""

    of: Matrix

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: object = None) -> object:
        del stream
        return self.of

    def __array_namespace__(self) -> object:
        return SimpleNamespace(from_dlpack=Foreign)


def unwrap(foreign: Foreign) -> Matrix:
    return foreign.of


def test_other_libraries_arrays_give_a_result_of_the_first_ones_type(
    fake: Multiplying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["torch"], "from_dlpack", unwrap, raising=False)
    a, b = matrix(64, 8), matrix(16, 8, 1).mT

    both = argus.matmul(Foreign(a), Foreign(b))
    mixed = argus.matmul(a, Foreign(b))

    assert isinstance(both, Foreign)
    assert isinstance(mixed, Matrix)
    assert np.array_equal(both.of.array, expected_product(a, b))
    assert np.array_equal(mixed.array, expected_product(a, b))
    assert len(fake.launches) == 2
