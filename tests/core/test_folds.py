"""A fold has its elements in the threads that fold them: what is not so is refused where the kernel is closed."""

# ruff: noqa: ARG001
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.check import check
from argus.core.check.folds import fold_error
from argus.core.check.register_operands import threads_hold
from argus.core.dtype import bf16, f32
from argus.core.index import Symbol
from argus.core.ir import Buffer, Fold, View, walk, whole
from argus.core.layout import TV, Layout
from argus.core.tiling import spread
from argus.language import Tensor, gfx942, kernel, thread, zeros
from argus.language import bf16 as element
from argus.language import spread as spread_over

ROWS = spread((64, 32), 64, 8)
"""Four lanes a row, 16 rows at a time."""


def tile(layout: TV, name: str = "x") -> Buffer:
    return Buffer(name, "register", f32, tuple(algebra.const(extent) for extent in layout.tile), layout)


def fold(source: TV, target: TV, **changes: object) -> Fold:
    made = Fold(whole(tile(target, "y")), whole(tile(source)), 1, "add", "total", "thread")
    return evolve(made, **changes)


@pytest.mark.parametrize(
    ("target", "within"),
    [(ROWS.partial(1), "thread"), (ROWS.partial(1, 64), "warp"), (ROWS.axis(0), "warp")],
)
def test_a_fold_into_what_its_threads_hold(target: TV, within: str) -> None:
    assert fold_error(fold(ROWS, target, within=within), 64) == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (fold(ROWS, ROWS.axis(0)), "holds 8 of 32 elements of a row"),
        (fold(ROWS, ROWS.axis(1)), "reducing (64, 32) along axis 1 does not give (32,)"),
        (fold(ROWS, ROWS.axis()), "does not give"),
        (fold(ROWS, ROWS.partial(1), op="xor"), "not a reduction operator"),
        (fold(ROWS, ROWS, op="last", keep="prefix"), "not a reduction operator"),
        (fold(ROWS, ROWS.partial(1), axis=2), "no axis 2"),
        (fold(ROWS, ROWS.partial(1), keep="prefix"), "each prefix must be held by the thread that holds its element"),
        (fold(ROWS, TV(Layout(32, 1), Layout(2, 32), (64,))), "the same number of threads and the same type"),
        (fold(ROWS, TV(Layout(64, 1), Layout(1, 0), (64,)), within="warp"), ""),
        (
            fold(ROWS, TV(Layout((4, 16), (64, 4)), Layout(4, 1), (64, 4))),
            "holds a result whose elements other threads hold",
        ),
        (fold(ROWS, TV(Layout((4, 16), (0, 1)), Layout((4, 4), (16, 64)), (64, 4))), "holds two results of one row"),
        (fold(ROWS, TV(Layout((4, 16), (0, 1)), Layout(4, 16), (64, 4))), "combines different elements"),
    ],
)
def test_a_fold_whose_elements_are_elsewhere(changed: Fold, words: str) -> None:
    found = fold_error(changed, 64)
    assert (words in found) if words else found == ""


def test_a_fold_of_a_view_that_is_chosen_while_the_kernel_runs() -> None:
    made = fold(ROWS, ROWS.axis(0), within="warp")
    block = algebra.sym(Symbol("b", "block"))
    moving = View(made.source.buffer, made.source.shape, (algebra.mod(block, 64), algebra.coord(1)))
    assert "run-time values" in fold_error(evolve(made, source=moving), 64)
    turned = View(made.source.buffer, made.source.shape, (algebra.coord(0), algebra.sub(31, algebra.coord(1))))
    assert fold_error(evolve(made, source=turned), 64) == ""
    hidden = View(made.source.buffer, made.source.shape, made.source.at, algebra.lt(algebra.coord(0), 3))
    assert "no axis" in fold_error(evolve(made, source=hidden), 64)


def test_types_do_not_change_in_a_fold() -> None:
    made = fold(ROWS, ROWS.axis(0), within="warp")
    other = evolve(made.target.buffer, dtype=bf16)
    assert "the same type" in fold_error(evolve(made, target=whole(other)), 64)


def test_a_closed_kernel_is_checked() -> None:
    @kernel(target=gfx942, threads=64)
    def folded(A: Tensor["M K", element]) -> None:
        zeros(f32, spread_over((64, 32), threads=64, vector=8)).sum(1, within=thread)

    made = folded.trace()
    assert check(made) == ()
    (stmt,) = [stmt for stmt in walk(made.body) if isinstance(stmt, Fold)]
    wrong = tuple(evolve(each, axis=0) if each is stmt else each for each in made.prologue)
    (found,) = check(evolve(made, prologue=wrong))
    assert found.code == "E205"
    assert "`add` folds" in found.message


def test_another_element_of_the_same_layout_is_held_by_another_thread() -> None:
    """Equal layouts alone do not say that a thread holds what is read: the element read counts."""
    buffer = tile(ROWS)
    same = tuple(algebra.coord(axis) for axis in range(2))
    before = (algebra.coord(0), algebra.maximum(algebra.sub(algebra.coord(1), 1), 0))
    assert threads_hold(whole(buffer), same, ROWS)
    assert not threads_hold(whole(buffer), before, ROWS)
