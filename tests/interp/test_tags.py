"""Propagation of tags: views, element-wise operations, sums over a loop, and tails of one k."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.algebra import add, floordiv, sym
from argus.core.ir import Copy, Kernel, Stmt, View
from argus.interp.run import run
from argus.interp.search.schedule import Schedule
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_covers,
    assert_distinct,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    exp2,
    f32,
    gfx942,
    global_load,
    global_store,
    kernel,
    loop,
    maximum,
    mfma,
    mfma_f32_16x16x16_bf16,
    mma,
    registers,
    spread,
    tag,
    vmem,
    where,
    zeros,
)
from tests.interp.programs import m_and_k, m_and_n, moved, multiplied, n_and_k

BY = spread((64, 32), threads=64, vector=1)


def looped(finish: str = "acc") -> Kernel:
    """C = A @ B^T for one tile of 16 x 16, straight from global memory, 16 k a step."""

    @kernel(target=gfx942, threads=64)
    def sums(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]) -> None:
        tag(A, m_and_k)
        tag(B, n_and_k)
        mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16), k=16)
        a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
        for k in loop(ceil_div(A.shape[1], 16)):
            copy(A.tile((16, 16), (0, k)), a, via=global_load[0], edge=0)
            copy(B.tile((16, 16), (0, k)), b, via=global_load[0], edge=0)
            vmem.wait(0)
            mma(mm, acc, a, b, init=eq(k, 0))
        result = finished(acc, finish)
        assert_covers(result.tag.k, 0, A.shape[1])
        copy(result, C.tile((16, 16), (0, 0)), via=global_store, edge=0)
        assert_written_once(C, m_and_n)

    return sums.trace()


def finished(acc: Fragment, how: str) -> Fragment:
    match how:
        case "doubled":
            return acc * 2.0
        case "squared":
            return acc * acc
        case "rounded":
            return acc.to(bf16).to(f32)
        case "raised":
            return exp2(acc)
        case _:
            return acc


@pytest.mark.parametrize("k", [1, 2, 16, 17, 18, 33])
def test_tails_of_one_k_keep_the_record(k: int) -> None:
    for style in ("early", "late", "mixed"):
        assert run(looped(), {"M": 5, "N": 16, "K": k}, schedule=Schedule(style, 7)).violations == ()


@pytest.mark.parametrize("k", [1, 3, 16])
def test_one_execution_covers_its_k(k: int) -> None:
    assert run(multiplied(mfma_f32_16x16x16_bf16), {"M": 16, "N": 1, "K": k}).violations == ()


@pytest.mark.parametrize("finish", ["doubled", "rounded"])
def test_linear_operations_keep_the_sum(finish: str) -> None:
    assert run(looped(finish), {"M": 16, "N": 16, "K": 20}, values=False).violations == ()


@pytest.mark.parametrize("finish", ["squared", "raised"])
def test_a_sum_is_not_checked_after_other_operations(finish: str) -> None:
    assert run(looped(finish), {"M": 16, "N": 16, "K": 20}, values=False).violations == ()


def scaled_rows(x: Fragment, y: Fragment) -> Fragment:
    row, _ = x.index
    return where(row < 3, x * 2.0 - y, maximum(-x, exp2(y) / 3.0) + row)


def test_elementwise_operations_compute_as_numpy_does() -> None:
    @kernel(target=gfx942, threads=64)
    def compute(X: Tensor["64 32", f32], Y: Tensor["64 32", f32], Z: Tensor["64 32", f32]) -> None:
        x, y = registers(f32, BY), registers(f32, BY)
        copy(X.tile((64, 32), (0, 0)), x, via=global_load)
        copy(Y.tile((64, 32), (0, 0)), y, via=global_load)
        vmem.wait(0)
        total = zeros(f32, BY)
        total += scaled_rows(x, y)
        copy(total, Z.tile((64, 32), (0, 0)), via=global_store)

    outcome = run(compute.trace(), {})
    x, y = outcome.arrays["X"], outcome.arrays["Y"]
    row = np.arange(64, dtype=np.float32)[:, None]
    expected = np.where(row < 3, x * np.float32(2) - y, np.maximum(-x, np.exp2(y) / np.float32(3)) + row)
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["Z"], expected)


def test_a_reshaped_view_reads_the_same_elements() -> None:
    @kernel(target=gfx942, threads=64)
    def reshaped(A: Tensor["M 32", bf16], B: Tensor["32 M", bf16]) -> None:
        (n,) = block_id((ceil_div(A.shape[0], 32),))
        by = spread((32, 32), threads=64, vector=1)
        held = registers(bf16, by)
        copy(A.reshape(32, A.shape[0]).tile((32, 32), (0, n)), held, via=global_load[0], edge=0)
        vmem.wait(0)
        copy(held, B.tile((32, 32), (0, n)), via=global_store[0], edge=0)

    # An element past the row of the reshaped view is one of the next row: only whole tiles are the same.
    outcome = run(reshaped.trace(), {"M": 64})
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["B"], outcome.arrays["A"].reshape(32, 64))


def test_a_view_may_depend_on_the_wave() -> None:
    whole = moved(global_load[0], global_store[0])

    def shifted(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Copy) or stmt.source.buffer.space != "global":
            return stmt
        view: View = stmt.source
        return evolve(stmt, source=evolve(view, at=(add(view.at[0], floordiv(sym(whole.thread), 32)), view.at[1])))

    moved_down = evolve(whole, prologue=tuple(shifted(stmt) for stmt in whole.prologue))
    outcome = run(moved_down, {"M": 66})
    a, b = outcome.arrays["A"], outcome.arrays["B"]
    layout = next(stmt.by for stmt in whole.prologue if isinstance(stmt, Copy))
    row, column = (axis.reshape(-1) for axis in layout.coordinates())
    shift = np.repeat(np.arange(64) // 32, layout.values.size())
    assert np.array_equal(b[row, column], a[row + shift, column])
    assert {violation.code for violation in outcome.violations} == {"I4"}


def own_tag(m: Int, _: Int) -> dict[str, Int]:
    return {"row": m}


def test_registers_can_be_tagged() -> None:
    @kernel(target=gfx942, threads=64)
    def tagged(A: Tensor["64 32", bf16]) -> None:
        held = registers(bf16, BY)
        copy(A.tile((64, 32), (0, 0)), held, via=global_load)
        vmem.wait(0)
        tag(held, own_tag)
        assert_distinct(held.tag.row)

    (found,) = run(tagged.trace(), {}, values=False).violations
    assert found.code == "I39"
    assert found.message == "two elements of `held` have the components (0)"


def test_without_tags_no_claim_about_tags_is_checked() -> None:
    outcome = run(looped("raised"), {"M": 16, "N": 16, "K": 20}, tags=False)
    assert outcome.violations == ()
    found: npt.NDArray[Any] = outcome.arrays["C"]
    assert found.shape == (16, 16)
