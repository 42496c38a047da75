"""Nests as data: rewriting keeps shared expressions shared, and reductions their own axes."""

from __future__ import annotations

from argus.core import algebra
from argus.nests.nest import Apply, Axis, Compare, Constant, Graph, Inside, Nest, Read, Reduce, Select, TensorType, size
from argus.nests.rewrite import expressions, placed, reads, reductions, with_reads


def test_places_are_replaced_in_reads_tests_and_reductions_and_own_axes_stay() -> None:
    i, j = Axis("i", size("N")), Axis("j", algebra.add(Axis("i", size("N")).index, 1))
    row = Reduce("add", (j,), Read("X", (i.index, j.index), "f32"))
    body = Select(Inside(algebra.le(i.index, 3)), row, Constant(0.0))
    moved = placed(body, {i.symbol: algebra.add(i.index, 2)})
    assert isinstance(moved, Select)
    assert moved.test == Inside(algebra.le(i.index, 1))
    (inner,) = reductions(moved)
    assert inner.axes[0].extent is algebra.add(i.index, 3)
    assert reads(moved) == [Read("X", (algebra.add(i.index, 2), j.index), "f32")]


def test_an_expression_that_is_shared_many_times_is_rewritten_once() -> None:
    value = Read("X", (Axis("i", size("N")).index,), "f32")
    deep = Apply("neg", (value,))
    for _ in range(60):
        deep = Apply("add", (deep, deep))
    made = with_reads(deep, lambda read: Read("Y", read.index, read.dtype))
    assert len(expressions(made)) == len(expressions(deep)) == 62
    assert [each.tensor for each in reads(made)] == ["Y"]


def test_values_in_tests_are_read_too() -> None:
    place = (Axis("i", size("N")).index,)
    body = Select(Compare("<", Read("M", place, "f32"), Constant(0.0)), Read("X", place, "f32"), Constant(1.0))
    assert [each.tensor for each in reads(body)] == ["M", "X"]


def test_a_graph_knows_the_shape_of_each_tensor() -> None:
    i = Axis("i", size("N"))
    nest = Nest("Y", "bf16", (i,), Read("X", (i.index,), "f32"))
    graph = Graph((TensorType("X", (size("N"),), "f32"),), (nest,), ("Y",))
    assert graph.tensors["Y"] == TensorType("Y", (size("N"),), "bf16")
    assert set(graph.tensors) == {"X", "Y"}
