"""`wave` and branches on it, and the remapping of blocks to the dies of gfx942."""

# ruff: noqa: ARG001
# Reason: bodies share one signature.

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from argus.core.algebra import const, eq, floordiv, mod, sym
from argus.core.check import check
from argus.core.diagnostic import ArgusError
from argus.core.dsl.handles import IntLike, unwrap
from argus.core.index import Symbol
from argus.core.index_text import show
from argus.core.ir import If, Policy, Sync, walk
from argus.core.verdict import Proved, Refuted
from argus.core.walk import only_as_quotient
from argus.emit.hip.text import hip_text
from argus.interp.run import run
from argus.language import (
    Int,
    Template,
    Tensor,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    gfx942,
    global_load,
    kernel,
    loop,
    registers,
    remap_xcd,
    sm_90a,
    sync,
    tag,
    vmem,
    wave,
    when,
)
from argus.verifier.kernel import verify
from tests.core.dsl.tracing import BY, Fault, Faults, trace
from tests.core.texts import kernel_of

THREAD = Symbol("thread", "thread", 0, 255)
T = sym(THREAD)
faulty = Faults()


@faulty("E207", "the loop bound `thread // 64` differs between threads")
def loop_of_as_many(A: Tensor, C: Tensor) -> None:
    for _ in loop(wave):  # here
        sync()


@faulty("E106", "dies share tiles of two axes, found 1")
def one_axis(A: Tensor, C: Tensor) -> None:
    remap_xcd(block_id, (A.shape[0],), group=4)  # here


@faulty("E106", "the rows of a band is 0")
def no_rows(A: Tensor, C: Tensor) -> None:
    remap_xcd(block_id, (A.shape[0], 1), group=0)  # here


@faulty("E106", "`remap_xcd` reorders the blocks of gfx942")
def of_another_numbering(A: Tensor, C: Tensor) -> None:
    def whole(counts: tuple[IntLike, ...]) -> tuple[Int, ...]:
        return tuple(Int(unwrap(count)) for count in counts)

    remap_xcd(whole, (A.shape[0], 1), group=4)  # here


@faulty.parametrize()
def test_refused(fault: Fault) -> None:
    fault.check()


def test_wave_is_an_integer_inside_a_kernel_only() -> None:
    found: list[Int] = []

    def body(A: Tensor, C: Tensor) -> None:
        found.extend((wave + 0, wave // 2, wave % 2))

    trace(body)
    assert [show(each.node) for each in found] == ["thread // 64", "thread // 128", "(thread // 64) % 2"]
    with pytest.raises(ArgusError) as caught:
        _ = wave + 1
    assert caught.value.diagnostic.code == "E105"


def test_waves_may_take_different_barriers() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        with when((wave // 2 == 1) & (A.shape[0] >= 2)):
            sync()

    (branch,) = (stmt for stmt in walk(trace(body).body) if isinstance(stmt, If))
    assert isinstance(branch.then[0], Sync)
    assert "thread // 128 == 1" in show(branch.cond)


def test_threads_of_a_wave_may_not_take_different_barriers() -> None:
    for cond in (eq(T, 0), eq(floordiv(T, 32), 1), eq(mod(T, 64), 0), eq(mod(floordiv(T, 64), floordiv(T, 3)), 0)):
        (found,) = check(kernel_of(If(cond, (Sync(),))))
        assert found.code == "E207"
    assert check(kernel_of(If(eq(mod(floordiv(T, 64), 2), 0), (Sync(),)))) == ()


def test_warps_of_sm_90a_may_not_take_different_barriers() -> None:
    @kernel(target=sm_90a, threads=128)
    def warps(A: Tensor["M K", bf16]) -> None:
        with when(wave == 1):
            sync()

    with pytest.raises(ArgusError) as caught:
        warps.trace()
    assert caught.value.diagnostic.code == "E207"


def test_a_branch_is_wave_uniform_only_for_whole_waves() -> None:
    assert only_as_quotient(const(3), THREAD, 64)
    assert only_as_quotient(floordiv(T, 192), THREAD, 64)
    assert not only_as_quotient(T, THREAD, 64)
    assert not only_as_quotient(floordiv(T, 96), THREAD, 64)
    assert not only_as_quotient(eq(floordiv(T, 64), T), THREAD, 64)


def rows_by_wave(first: Callable[[Int], IntLike]) -> Template:
    """C = A, each wave of 16 rows storing them from row `first(wave)` of the tile on."""

    @kernel(target=gfx942, threads=256)
    def moved(A: Tensor["M 32", bf16], C: Tensor["M 32", bf16]) -> None:
        tag(A, row_and_column)
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        x = registers(bf16, BY)
        copy(A.tile((64, 32), (m, 0)), x, via=global_load, edge=0)
        vmem.wait(0)
        copy(x, C.tile((64, 32), (m, 0)).gather((64, 32), lambda i, j: (i % 16 + first(wave), j)), edge=0)
        assert_written_once(C, row_and_column)

    return moved


def row_and_column(i: Int, j: Int) -> dict[str, Int]:
    return {"i": i, "j": j}


def test_every_reading_knows_the_wave_of_a_view() -> None:
    right, wrong = rows_by_wave(lambda number: 16 * number), rows_by_wave(lambda number: 16 * (number // 2))
    a = np.arange(70 * 32, dtype=np.float32).reshape(70, 32).astype(ml_dtypes.bfloat16)
    outcome = run(right.trace(), {"M": 70}, {"A": a})
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["C"], a)
    assert isinstance(verify(right, solver="z3").verdict, Proved)
    assert isinstance(verify(wrong, solver="z3").verdict, Refuted)
    assert "+ 16 * wave;" in hip_text(right.trace())


def test_reordered_blocks_are_the_same_blocks() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        remap_xcd(block_id, (A.shape[0], 3), group=4)

    def plain(A: Tensor, C: Tensor) -> None:
        block_id((A.shape[0], 3))

    made, same = trace(body), trace(plain)
    assert (made.grid, made.blocks) == (same.grid, same.blocks)
    assert [(s.name, s.args) for s in made.body if isinstance(s, Policy)] == [("remap_xcd", (4,))]
