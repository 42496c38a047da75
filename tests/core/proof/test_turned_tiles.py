"""Tiles that are read from shared memory in another order of their elements than they were written in."""

# ruff: noqa: UP037
# pyright: reportArgumentType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Copy, Kernel
from argus.core.proof.values.held import tables
from argus.core.verdict import Proved, Unknown
from argus.language import (
    TV,
    Layout,
    Tensor,
    assert_equals,
    assert_written_once,
    assume,
    block_id,
    copy,
    f32,
    kernel,
    load,
    minimum,
    shared,
    sm_90a,
    spread,
    sync,
    tag,
)
from argus.verifier.kernel import verify
from tests.core.proof.queries import obligations_of
from tests.verifier.without_runs import verdict

ROWS, COLUMNS = 32, 16
Place = Callable[[Any, Any], tuple[Any, Any]]
RIGHT: dict[str, Place] = {
    "turned": lambda r, c: ((r + 3) % ROWS, c),
    "both turned": lambda r, c: ((r + 3) % ROWS, (c + 1) % COLUMNS),
    "groups of turned rows": lambda r, c: (r // 8 * 8 + (r + 3) % 8, c),
    "digits": lambda r, c: (r % 4 * 8 + r // 4, c),
    "swizzled": lambda r, c: (r, c ^ (r % 8)),
}
FORMLESS: dict[str, Place] = {
    "squares": lambda r, c: (r * (r + 1) // 2 % ROWS, c),
    "diagonals": lambda r, c: ((r + c) % ROWS, c),
}
WRONG: dict[str, tuple[Place, Place]] = {
    "turned further": (RIGHT["turned"], lambda r, c: ((r + 4) % ROWS, c)),
    "turned back": (RIGHT["turned"], lambda r, c: ((r - 3) % ROWS, c)),
    "one digit more": (RIGHT["digits"], lambda r, c: (r % 8 * 4 + r // 8, c)),
    "less swizzled": (RIGHT["swizzled"], lambda r, c: (r, c ^ (r % 4))),
    "squares of other rows": (FORMLESS["squares"], lambda r, c: (r * (r + 3) // 2 % ROWS, c)),
    "other diagonals": (FORMLESS["diagonals"], lambda r, c: ((r - c) % ROWS, c)),
}
FROM_AN_ELEMENT_ON: tuple[Place, Place] = (
    lambda r, c: (minimum((r * COLUMNS + c) // 40, 1), c),
    lambda r, c: (minimum(r // 2, 1), c),
)


def staged(place: Place, claimed: Place, formula: bool) -> Kernel:
    """Y's tiles are X's, their elements at other places. formula: whether the claim is a formula, rather than tags."""

    @kernel(target=sm_90a, threads=64)
    def staged(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
        M, N = X.shape
        assume(M % ROWS == 0, N % COLUMNS == 0, M * N <= 1 << 28)
        tag(X, lambda m, n: dict(m=m, n=n))
        m, n = block_id((M // ROWS, N // COLUMNS))
        by = spread((ROWS, COLUMNS), threads=64, vector=1)
        held = shared(f32, (ROWS, COLUMNS))
        copy(load(X.tile((ROWS, COLUMNS), (m, n)), by), held)
        sync()
        copy(load(held.gather((ROWS, COLUMNS), place), by), Y.tile((ROWS, COLUMNS), (m, n)))

        def source(m: Any, n: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: an integer of the language
            row, column = claimed(m % ROWS, n % COLUMNS)
            return m // ROWS * ROWS + row, n // COLUMNS * COLUMNS + column

        if formula:
            assert_equals(Y, lambda m, n: X[source(m, n)])
        else:
            assert_written_once(Y, lambda m, n: dict(m=source(m, n)[0], n=source(m, n)[1]))

    return staged.trace()


@pytest.mark.share(4)
@pytest.mark.parametrize("formula", [False, True])
@pytest.mark.parametrize("solver", ["z3", "cvc5"])
@pytest.mark.parametrize("name", RIGHT)
def test_a_layout_of_the_elements_is_proved(name: str, solver: str, formula: bool) -> None:
    assert isinstance(verify(staged(RIGHT[name], RIGHT[name], formula), solver=solver).verdict, Proved)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", FORMLESS)
def test_an_order_without_a_form_is_proved_of_tags_alone(name: str) -> None:
    assert isinstance(verdict(staged(FORMLESS[name], FORMLESS[name], formula=False)), Proved)
    assert isinstance(verdict(staged(FORMLESS[name], FORMLESS[name], formula=True)), Unknown)


@pytest.mark.share(4)
@pytest.mark.parametrize("formula", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_another_order_is_not_proved(name: str, formula: bool) -> None:
    assert isinstance(verdict(staged(*WRONG[name], formula)), Unknown)


@pytest.mark.parametrize("formula", [False, True])
def test_a_step_within_a_row_is_no_step_between_rows(formula: bool) -> None:
    assert isinstance(verdict(staged(*FROM_AN_ELEMENT_ON, formula)), Unknown)


def test_the_form_of_a_step_is_compared_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, rows are taken for stored where a step is within the row."""
    made = staged(*FROM_AN_ELEMENT_ON, formula=True)
    monkeypatch.setattr(tables, "_is_step", lambda *_: True)

    assert isinstance(verdict(made), Proved)


def test_lanes_that_hold_one_element_hold_the_same_part() -> None:
    """Each lane of a warp holds the same four elements; as edited, it loads those of its number."""

    @kernel(target=sm_90a, threads=32)
    def lanes(X: Tensor["128", f32], Y: Tensor["128", f32]) -> None:
        tag(X, lambda n: dict(n=n))
        (i,) = block_id((32,))
        every_lane = TV(Layout(32, 0), Layout(4, 1), (4,))
        copy(load(X.tile((4,), (i,)), every_lane), Y.tile((4,), (i,)))
        assert_written_once(Y, lambda n: dict(n=n))

    made = lanes.trace()
    copies = [each for each in made.prologue if isinstance(each, Copy)]
    read = copies[0].source
    lane = algebra.add(algebra.mul(algebra.sym(made.thread), 4), algebra.coord(0))
    other = evolve(copies[0], source=evolve(read, at=(lane,)))
    edited = evolve(made, prologue=tuple(other if each is copies[0] else each for each in made.prologue))
    different = "threads that hold one element of a tile hold different parts"

    assert isinstance(verdict(made), Proved)
    assert different not in {each.unknown for each in obligations_of(made)}
    assert isinstance(verdict(edited), Unknown)
    assert different in {each.unknown for each in obligations_of(edited)}
