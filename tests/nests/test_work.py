"""Which nests are for matrix units, and which results several readers had better find in memory."""

from __future__ import annotations

from argus.core import algebra
from argus.nests.fusion import fused
from argus.nests.nest import Apply, Axis, Expr, Nest, Read, Reduce, size
from argus.nests.work import multiplies

N, M, K = (Axis(name, size(name.upper())) for name in "nmk")


def product(other: Expr) -> Nest:
    x = Read("X", (N.index, K.index), "f32")
    return Nest("Y", "f32", (N, M), Reduce("add", (K,), Apply("mul", (x, other))))


def test_a_product_of_matrices_is_for_matrix_units_if_it_is_large() -> None:
    nest = product(Read("W", (M.index, K.index), "f32"))
    assert multiplies(nest, {"N": 1024, "M": 256, "K": 64})
    assert not multiplies(nest, {"N": 1024, "M": 256, "K": 63}), "fewer than 2^24 products"
    assert not multiplies(nest, {"N": 1 << 22, "M": 4, "K": 64}), "four products for each element that is read"
    assert not multiplies(nest, {"N": 1024, "M": 256}), "an extent that is not known"
    normed = Apply("mul", (nest.body, Read("S", (M.index,), "f32")))
    assert multiplies(Nest("Z", "f32", (N, M), normed), {"N": 1024, "M": 256, "K": 64})


def test_elements_that_several_coordinates_read_count_once() -> None:
    """Of a batch of products whose rows are one axis: all rows of a matrix of the batch read the same others."""
    rows, batch = algebra.floordiv(N.index, algebra.const(64)), Axis("h", algebra.const(2))
    weights = Read("W", (rows, batch.index, algebra.mod(N.index, algebra.const(64)), K.index), "f32")
    values = Read("V", (rows, batch.index, K.index, M.index), "f32")
    nest = Nest("Y", "f32", (N, batch, M), Reduce("add", (K,), Apply("mul", (weights, values))))
    assert multiplies(nest, {"N": 4096, "M": 64, "K": 64})
    assert not multiplies(nest, {"N": 4096, "M": 8, "K": 64})


def test_a_sum_over_one_tensor_is_not() -> None:
    x = Read("X", (N.index, K.index), "f32")
    assert not multiplies(
        Nest("Y", "f32", (N,), Reduce("add", (K,), Apply("mul", (x, x)))), {"N": 1 << 14, "K": 1 << 14}
    )


def test_a_sum_with_several_readers_stays_in_memory_where_it_costs_more_to_read_its_parts() -> None:
    a, b, y = (Read(name, (N.index,), "f32") for name in "ABY")
    total = Nest("Y", "f32", (N,), Apply("add", (a, b)))
    readers = [Nest(name, "f32", (N,), Apply(op, (y,))) for name, op in (("E", "exp"), ("T", "tanh"))]

    def outputs(*, costs: bool, count: int = 2) -> list[str]:
        kept = [each.output for each in readers[:count]]
        found = fused([total, *readers[:count]], kept, lambda _nest, _shares: True, (), lambda _: costs)
        return [each.output for each in found]

    assert outputs(costs=True) == ["Y", "E", "T"]
    assert outputs(costs=False) == ["E", "T"]
    assert outputs(costs=True, count=1) == ["E"]
