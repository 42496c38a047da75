"""Fusion: a nest computed within its readers, where a template takes the result, computes the same numbers."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.nests.evaluate import evaluated
from argus.nests.fusion import fused, live, together, within
from argus.nests.nest import Apply, Axis, Expr, Graph, Nest, Read, Reduce, TensorType

ROWS, COLUMNS = algebra.const(5), algebra.const(7)
I, J, K = Axis("i", ROWS), Axis("j", COLUMNS), Axis("k", COLUMNS)  # noqa: E741 reason: axes, as in formulas


def at(tensor: str, *axes: Axis) -> Read:
    return Read(tensor, tuple(axis.index for axis in axes), "f32")


def exp_less(values: Expr, least: Expr) -> Expr:
    return Apply("exp", (Apply("sub", (values, least)),))


GREATEST = Nest("greatest", "f32", (I,), Reduce("max", (K,), at("x", I, K)))
TOTAL = Nest("total", "f32", (I,), Reduce("add", (K,), exp_less(at("x", I, K), at("greatest", I))))
SOFTMAX = Nest("y", "f32", (I, J), Apply("div", (exp_less(at("x", I, J), at("greatest", I)), at("total", I))))
NESTS = (GREATEST, TOTAL, SOFTMAX)
X = TensorType("x", (ROWS, COLUMNS), "f32")
GIVEN = {"x": np.random.default_rng(0).normal(size=(5, 7))}


def values(nests: list[Nest]) -> dict[str, np.ndarray]:
    return evaluated(Graph((X,), tuple(nests), ("y",)), GIVEN, {})


def test_a_softmax_becomes_one_nest_of_the_same_numbers() -> None:
    found = fused(NESTS, ["y"], lambda _, __: True)
    assert [each.output for each in found] == ["y"]
    assert np.array_equal(values(found)["y"], values(list(NESTS))["y"])


def test_what_no_template_takes_or_is_kept_stays_apart() -> None:
    assert fused(NESTS, ["y"], lambda _, __: False) == list(NESTS)
    assert fused(NESTS, ["y"], lambda _, __: True, apart=["greatest", "total"]) == list(NESTS)
    assert [each.output for each in fused(NESTS, ["y", "total"], lambda _, __: True)] == ["total", "y"]


def test_nests_that_nothing_needs_are_left_out() -> None:
    other = Nest("unused", "f32", (I,), at("greatest", I))
    assert live([*NESTS, other], ["y"]) == list(NESTS)


def test_a_reduction_is_not_computed_again_for_each_step_of_another() -> None:
    columns = Nest("sums", "f32", (J,), Reduce("add", (I,), at("x", I, J)))
    rows = Nest("y", "f32", (I,), Reduce("add", (K,), Apply("mul", (at("x", I, K), at("sums", K)))))
    assert within(columns, rows) is None
    assert within(GREATEST, TOTAL) is not None


def test_a_product_with_two_readers_is_computed_once() -> None:
    product = Nest("p", "f32", (I, J), Reduce("add", (K,), Apply("mul", (at("x", I, K), at("w", K, J)))))
    one = Nest("a", "f32", (I, J), Apply("neg", (at("p", I, J),)))
    other = Nest("b", "f32", (I, J), Apply("exp", (at("p", I, J),)))
    assert len(fused([product, one, other], ["a", "b"], lambda _, __: True)) == 3
    assert len(fused([product, one], ["a"], lambda _, __: True)) == 1


def test_padding_is_not_computed_with_what_it_pads() -> None:
    padded = Nest("y", "f32", (I, J), Read("s", (algebra.sub(I.index, 1), J.index), "f32", 0.0))
    producer = Nest("s", "f32", (I, J), Apply("neg", (at("x", I, J),)))
    assert within(producer, padded) is None


def test_nests_that_reduce_the_same_tensor_one_after_the_other_are_together() -> None:
    least = Nest("least", "f32", (I,), Reduce("min", (K,), at("x", I, K)))
    columns = Nest("sums", "f32", (J,), Reduce("add", (I,), at("x", I, J)))
    assert together([GREATEST, least, columns]) == [(GREATEST, least), (columns,)]
    assert together([GREATEST, TOTAL]) == [(GREATEST,), (TOTAL,)]  # which needs the first
    assert together([GREATEST, None, least]) == [(GREATEST,), (least,)]
    other = Nest("other", "f32", (I,), Reduce("min", (K,), at("z", I, K)))
    assert together([GREATEST, other]) == [(GREATEST,), (other,)]
