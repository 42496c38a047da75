"""Lanes of a warp that store to one place hold one number, unless each computes with a number of its own."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from attrs import evolve

from argus.core import algebra
from argus.core.ir import Get, Kernel, Map, Num, Op
from argus.core.verdict import Proved
from argus.language import (
    TV,
    Layout,
    Tensor,
    assert_written_once,
    block_id,
    copy,
    f32,
    kernel,
    load,
    sm_90a,
    tag,
)
from argus.verifier.kernel import verify


def doubled() -> Kernel:
    @kernel(target=sm_90a, threads=32)
    def doubled(X: Tensor["128", f32], Y: Tensor["128", f32]) -> None:
        tag(X, lambda n: dict(n=n))
        (i,) = block_id((32,))
        every_lane = TV(Layout(32, 0), Layout(4, 1), (4,))
        copy(load(X.tile((4,), (i,)), every_lane) * 2.0, Y.tile((4,), (i,)))
        assert_written_once(Y, lambda n: dict(n=n))

    return doubled.trace()


def times_its_thread(made: Kernel) -> Kernel:
    def changed(stmt: Map) -> Map:
        assert isinstance(stmt.elem, Op)
        (read,) = [arg for arg in stmt.elem.args if isinstance(arg, Get)]
        return evolve(stmt, elem=Op("mul", (read, Num(algebra.sym(made.thread)))))

    return evolve(made, prologue=tuple(changed(s) if isinstance(s, Map) else s for s in made.prologue))


def test_a_number_of_its_own_makes_each_lane_differ() -> None:
    made = doubled()
    other = times_its_thread(made)
    assert other.prologue != made.prologue
    assert isinstance(verify(made, solver="z3").verdict, Proved)
    assert not isinstance(verify(other, solver="z3").verdict, Proved)
