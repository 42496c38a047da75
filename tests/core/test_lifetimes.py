"""Registers held at once: what a refusal for want of registers may count, and what it may not."""

# ruff: noqa: ARG001
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

from attrs import evolve

from argus.core.ir import Kernel
from argus.core.proof.applicability import machine_assumptions
from argus.core.proof.dataflow.lifetimes import peak_live_tiles
from argus.core.proof.limits.budgets import register_words
from argus.core.verdict import Refuted
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    bf16,
    copy,
    eq,
    f32,
    gfx942,
    kernel,
    load,
    loop,
    mma,
    registers,
    sm_90a,
    spread,
    vmem,
    zeros,
)
from argus.verifier.kernel import verify
from tests.core.dsl.tracing import BY, MM, Body, trace


def names(made: Kernel) -> set[str]:
    return {buffer.name for buffer in peak_live_tiles(made, register_words)}


def of(body: Body) -> set[str]:
    return names(trace(body))


def test_the_shipped_kernels_hold_what_their_schedules_say() -> None:
    def total(config: str) -> int:
        return sum(map(register_words, peak_live_tiles(gemm.trace(config), register_words)))

    assert total("cdna3") == 64 + 2 * 16 + 2 * 8
    assert total("cdna3_pingpong") == 2 * 64 + 3 * 16 + 2 * 16


def test_one_after_the_other_is_not_at_once() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        a = registers(bf16, BY)
        b = registers(bf16, BY)
        copy(A.tile((64, 32), (0, 0)), a)
        copy(a, A.tile((64, 32), (1, 0)))
        copy(A.tile((64, 32), (2, 0)), b)
        copy(b, A.tile((64, 32), (3, 0)))

    assert len(of(body)) == 1


def test_what_a_loop_carries_is_held_all_the_way_round() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        acc = registers(f32, MM.C)
        a = registers(bf16, MM.A)
        late = registers(bf16, MM.B)
        copy(A.tile((64, 32), (0, 0)), late)
        for k in loop(4):
            copy(A.tile((64, 32), (0, k)), a)
            vmem.wait(0)
            mma(MM, acc, a, late, init=eq(k, 0))
        copy(acc, C.tile((64, 64), (0, 0)))

    assert of(body) == {"acc", "a", "late"}


def test_a_value_computed_at_once_is_not_counted() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        total = zeros(f32, BY)
        x = load(A.tile((64, 32), (0, 0)), BY)
        total += x.to(f32) * 2.0

    assert of(body) == {"total", "x"}


def wide(count: int, *, at_once: bool) -> Kernel:
    @kernel(target=gfx942, threads=64)
    def many(A: Tensor["M 64", f32], B: Tensor["M 64", f32]) -> None:
        by = spread((64, 64), threads=64, vector=4)
        held = [registers(f32, by) for _ in range(count)]
        for number, tile in enumerate(held):
            copy(A.tile((64, 64), (number, 0)), tile, edge=0)
            vmem.wait(0)
            if not at_once:
                copy(tile, B.tile((64, 64), (number, 0)), edge=0)
        for number, tile in enumerate(held):
            if at_once:
                copy(tile, B.tile((64, 64), (number, 0)), edge=0)

    return many.trace()


def finding(kernel: Kernel) -> str:
    (found,) = [each for each in verify(kernel, solver="z3").findings if each.invariant == "I22"]
    return found.standing


def test_too_much_at_once_is_refuted_and_too_much_in_all_is_a_named_assumption() -> None:
    refuted = verify(wide(10, at_once=True), solver="z3").verdict
    assert isinstance(refuted, Refuted)
    assert refuted.counterexample.code == "I22"
    assert finding(wide(10, at_once=False)) == "proved"
    assert any("share registers" in each for each in machine_assumptions(wide(10, at_once=False)))
    assert machine_assumptions(wide(2, at_once=True)) == ()


def test_the_waves_of_a_scheduler_share_its_registers() -> None:
    assert [gfx942.registers_of(threads) for threads in (64, 256, 320, 512, 1024)] == [512, 512, 256, 256, 128]
    assert [sm_90a.registers_of(threads) for threads in (32, 256, 384, 1024)] == [255, 255, 168, 64]
    three = wide(3, at_once=True)
    assert finding(three) == "proved"
    assert finding(evolve(three, threads=1024)) == "refuted"
