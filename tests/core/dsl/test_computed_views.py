"""Computed views: gathers with padding, bounds of reshapes, and the claim `assert_products`."""

# ruff: noqa: ARG001, ARG005
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

import numpy as np
import pytest

from argus.core import algebra
from argus.core.check import check
from argus.core.dsl.handles import Int
from argus.core.dsl.views import unflatten
from argus.core.index import Symbol
from argus.core.index_text import show
from argus.core.ir import Assert, Products, walk
from argus.core.ir.pretty import pretty
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.walk import evaluate, symbols
from argus.interp.run import run
from argus.language import (
    Tensor,
    assert_products,
    bf16,
    block_id,
    ceil_div,
    copy,
    every,
    gfx942,
    global_load,
    global_store,
    kernel,
    load,
    registers,
    shared,
    spread,
    vmem,
)
from tests.core.dsl.tracing import Fault, Faults, trace

faulty = Faults()


def test_a_reshaped_view_has_bounds_conditions_for_its_rows() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        (M, K) = A.shape
        whole = A.reshape(K, M)
        assert show(whole.view.where) == "true"
        tile = whole.tile((32, 32), (0, 1))
        assert show(tile.view.where) == "i1 + 33 <= M"
        assert whole.T.computed == {0}
        assert whole[3].computed == {0}
        assert show(whole.T.tile((32, 32), (1, 0)).view.where) == show(tile.T.view.where)
        box = shared(bf16, (64, 32)).reshape(128, 16)
        assert show(box.tile((32, 16), (1, 0)).view.where) == "true"
        assert show(box.tile((32, 32), (0, 0)).view.where) != "true"

    trace(body)


def test_minus_one_is_inferred() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        _, K = A.shape
        assert [show(size) for size in A.reshape(-1).view.shape] == ["K*M"]
        assert A.reshape(-1, K).view.shape == A.view.shape
        box = shared(bf16, (4, 8, 16))
        assert [show(size) for size in box.reshape(-1, 16).view.shape] == ["32", "16"]
        assert [show(size) for size in box.reshape(8, -1, 4).view.shape] == ["8", "16", "4"]

    trace(body)


def test_a_gather_with_padding_has_bounds_conditions() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        (M, K) = A.shape
        padded = A.gather((M + 2, K), lambda m, k: (m - 1, k), outside=0)
        assert padded.outside == 0.0
        conds = padded.view.where
        for m in (-1, 0, 1, 5, 6, 7):
            assert bool(evaluate(conds, dict.fromkeys(symbols(conds), 5), (m, 0))) == (1 <= m < 6)
        assert padded.tile((32, 32), (0, 0)).outside == 0.0

    trace(body)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_a_padded_copy_in_the_interpreter(rows: int) -> None:
    @kernel(target=gfx942, threads=64)
    def shifted(A: Tensor["M 32", bf16], B: Tensor["M 32", bf16]) -> None:
        (M, K) = A.shape
        (m,) = block_id((ceil_div(M, 32),))
        held = registers(bf16, spread((32, 32), threads=64, vector=8))
        window = A.gather((M, K), lambda row, k: (row - 1, k), outside=0)
        copy(window.tile((32, 32), (m, 0)), held, via=global_load, edge=0)
        vmem.wait(0)
        copy(held, B.tile((32, 32), (m, 0)), via=global_store, edge=0)

    given = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32).astype(bf16.numpy)
    outcome = run(shifted.trace(), {"M": rows}, {"A": given})
    wanted = np.concatenate([np.zeros((1, 32), bf16.numpy), given[:-1]])
    assert np.array_equal(outcome.arrays["B"], wanted)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_unflatten_is_row_major_and_overflows_into_the_first_coordinate(shape: tuple[int, ...]) -> None:
    symbol = Symbol("p", "fresh", 0)
    found = unflatten(Int(algebra.sym(symbol)), shape)
    for position in range(2 * int(np.prod(shape))):
        wanted = np.unravel_index(position % int(np.prod(shape)), shape)
        first = position // int(np.prod(shape)) * shape[0]
        values = [int(evaluate(each.node, {symbol: position})) for each in found]
        assert values == [int(wanted[0]) + first, *(int(each) for each in wanted[1:])]


def test_a_claim_over_all_products() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        _, K = A.shape
        assert_products(C, lambda m, n: [((m, k), (n, k)) for (k,) in every(K)])

    made = trace(body)
    assert check(made) == ()
    assert "assert products C (i0, each) * (i1, each) for every each < K" in pretty(made)
    (stmt,) = [stmt for stmt in walk(made.body) if isinstance(stmt, Assert)]
    claim = stmt.claim
    assert isinstance(claim, Products)
    ((bound, extent),) = claim.over
    (size,) = symbols(extent)
    moved = rewrite_stmt(stmt, {size: algebra.const(7)})
    assert isinstance(moved, Assert)
    assert isinstance(moved.claim, Products)
    assert moved.claim.over == ((bound, algebra.const(7)),)


# -- faults --------------------------------------------------------------------------------------------------


@faulty("E106", "outside `A` the view reads 0")
def another_number_outside(A: Tensor, C: Tensor) -> None:
    padded = A.gather((64, 64), lambda m, k: (m - 1, k), outside=0)
    load(padded.tile((64, 32), (0, 0)), spread((64, 32), threads=256, vector=8), edge=1)  # here


@faulty("E106", "outside `A` the view reads 0")
def no_number_outside(A: Tensor, C: Tensor) -> None:
    padded = A.gather((64, 64), lambda m, k: (m - 1, k), outside=0)
    load(padded.tile((64, 32), (0, 0)), spread((64, 32), threads=256, vector=8))  # here


@faulty("E106", "reads 1 out of bounds, the view that it indexes 0")
def two_numbers_outside(A: Tensor, C: Tensor) -> None:
    padded = A.gather((64, 64), lambda m, k: (m - 1, k), outside=0)
    padded.gather((64, 64), lambda m, k: (m, k), outside=1)  # here


@faulty("E106", "-1 in the shape")
def two_extents_that_follow(A: Tensor, C: Tensor) -> None:
    A.reshape(-1, -1)  # here


@faulty("E106", "-1 in the shape")
def an_extent_that_does_not_follow(A: Tensor, C: Tensor) -> None:
    A.reshape(-1, 7)  # here


@faulty("E106", "is called once, inside `assert_products`")
def every_outside_of_a_claim(A: Tensor, C: Tensor) -> None:
    every(3)  # here


@faulty("E106", "is called once, inside `assert_products`")
def every_twice(A: Tensor, C: Tensor) -> None:
    assert_products(C, lambda m, n: [((m, k), (n, j)) for (k,) in every(3) for (j,) in every(4)])  # here


@faulty("E106", "takes a tensor")
def products_of_no_tensor(A: Tensor, C: Tensor) -> None:
    assert_products(3, lambda m, n: [])  # pyright: ignore[reportArgumentType]  # here


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    fault.check()
