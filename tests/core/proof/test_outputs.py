"""Outputs of several stores and of stores in loops: each element once, with the claimed value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted, Unknown
from argus.language import (
    Int,
    Tensor,
    assert_written_once,
    assume,
    bf16,
    block_id,
    by_columns,
    by_rows,
    ceil_div,
    copy,
    kernel,
    load,
    loop,
    persistent,
    sm_90a,
    spread,
    super_tiled,
    tag,
    when,
)
from argus.verifier.kernel import verify
from tests.core.proof.queries import failing

ROWS, COLUMNS = 64, 16
BY = spread((ROWS, COLUMNS), threads=128, vector=8)
HALF = spread((ROWS // 2, COLUMNS), threads=64, vector=8)
Move = Callable[[Tensor, Tensor], None]
Place = tuple[Int | int, Int | int]


def moved(move: Move, threads: int = 128) -> Kernel:
    @kernel(target=sm_90a, threads=threads)
    def probe(A: Tensor["M N", bf16], C: Tensor["M N", bf16]) -> None:
        tag(A, lambda m, n: dict(m=m, n=n))
        assume(A.shape[0] >= 1, A.shape[1] >= 1, A.shape[1] % 8 == 0, A.shape[0] < 1 << 20, A.shape[1] < 1 << 20)
        rows, columns = tiles(A)
        assume(rows * columns < 1 << 24)
        move(A, C)
        assert_written_once(C, lambda m, n: dict(m=m, n=n))

    return probe.trace()


def tiles(A: Tensor) -> tuple[Int, Int]:
    return ceil_div(A.shape[0], ROWS), ceil_div(A.shape[1], COLUMNS)


def carry(A: Tensor, C: Tensor, at: Place, to: Place | None = None) -> None:
    """The tile `at` of A goes to the tile `to` of C, by default its own."""
    held = load(A.tile((ROWS, COLUMNS), at), BY, edge=0)
    copy(held, C.tile((ROWS, COLUMNS), to or at), edge=0)


def place(order: Callable[[Int, tuple[Int, ...]], tuple[Int | int, ...]], t: Int, counts: tuple[Int, Int]) -> Place:
    first, second = order(t, counts)
    return first, second


# -- stores in loops -----------------------------------------------------------------------------------------


def a_row_a_block(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, n))


def a_column_a_block(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (n,) = block_id((columns,))
    for m in loop(rows):
        carry(A, C, (m, n))


def one_tile_a_block(A: Tensor, C: Tensor) -> None:
    m, n = block_id(tiles(A))
    carry(A, C, (m, n))


def one_tile_a_block_by_number(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (t,) = block_id((rows * columns,))
    carry(A, C, place(by_columns, t, (rows, columns)))


def one_tile_a_block_in_bands(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (t,) = block_id((rows * columns,))
    carry(A, C, place(super_tiled(4), t, (rows, columns)))


def from_the_second_tile_on(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(1, columns + 1):
        carry(A, C, (m, n - 1))


def blocks_that_take_turns(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    for m, n in persistent((rows, columns), blocks=3):
        carry(A, C, (m, n))


def blocks_that_take_turns_by_steps(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (block,) = block_id((3,))
    for t in loop(block, rows * columns, step=3):
        carry(A, C, place(by_columns, t, (rows, columns)))


def from_the_last_tile_down(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, columns - 1 - n))


RIGHT: tuple[Move, ...] = (
    from_the_last_tile_down,
    from_the_second_tile_on,
    blocks_that_take_turns,
    blocks_that_take_turns_by_steps,
    a_row_a_block,
    a_column_a_block,
    one_tile_a_block,
    one_tile_a_block_by_number,
    one_tile_a_block_in_bands,
)


@pytest.mark.share(6)
@pytest.mark.parametrize("move", RIGHT, ids=lambda each: each.__name__)
def test_every_tile_is_stored_once(move: Move) -> None:
    made = moved(move)
    assert failing(made) == set()
    assert isinstance(verify(made, solver="z3").verdict, Proved)


def a_tile_too_few(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns - 1):
        carry(A, C, (m, n))


def every_block_all_rows(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    block_id((rows,))
    for m in loop(rows):
        for n in loop(1):
            carry(A, C, (m, n))
    del columns


def the_row_of_the_column(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, n), (m, 0))


def not_the_tile_that_is_claimed(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, n), (m, columns - 1 - n))


def a_wrong_count_for_the_order(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (t,) = block_id((rows * columns,))
    carry(A, C, place(by_rows, t, (columns, rows)))


def bands_of_exchanged_counts(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (t,) = block_id((rows * columns,))
    n, m = place(super_tiled(4), t, (rows, columns))
    carry(A, C, (m, n))


def turns_of_other_blocks(A: Tensor, C: Tensor) -> None:
    """Three blocks that step by two: tiles are taken twice."""
    rows, columns = tiles(A)
    (block,) = block_id((3,))
    for t in loop(block, rows * columns, step=2):
        carry(A, C, place(by_rows, t, (rows, columns)))


def every_second_tile(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(0, columns, step=2):
        carry(A, C, (m, n))


def from_beyond_the_last_tile_down(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, columns - n))


WRONG: tuple[Move, ...] = (
    from_beyond_the_last_tile_down,
    turns_of_other_blocks,
    every_second_tile,
    a_tile_too_few,
    every_block_all_rows,
    the_row_of_the_column,
    not_the_tile_that_is_claimed,
    a_wrong_count_for_the_order,
    bands_of_exchanged_counts,
)


@pytest.mark.share(6)
@pytest.mark.parametrize("move", WRONG, ids=lambda each: each.__name__)
def test_other_tile_enumerations_are_not_proved(move: Move) -> None:
    made = moved(move)
    assert "I4" in failing(made)
    assert isinstance(verify(made, solver="z3").verdict, Refuted)


def rows_turned_by_their_number(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    (m,) = block_id((rows,))
    for n in loop(columns):
        carry(A, C, (m, (n + m) % columns))


def under_a_condition(A: Tensor, C: Tensor) -> None:
    rows, columns = tiles(A)
    m, n = block_id((rows, columns))
    with when(n >= 0):
        carry(A, C, (m, n))
    with when(A.shape[0] > 64):
        carry(A, C, (m, n))


@pytest.mark.share(3)
@pytest.mark.parametrize("move", [rows_turned_by_their_number], ids=lambda each: each.__name__)
def test_irregular_tile_enumerations_are_unknown(move: Move) -> None:
    made = moved(move)
    assert "I4" in failing(made)
    assert isinstance(verify(made, solver="z3").verdict, Unknown)


def test_a_store_under_a_condition_is_not_taken_for_one_without() -> None:
    made = moved(under_a_condition)
    assert "I4" in failing(made)
    assert not isinstance(verify(made, solver="z3").verdict, Proved)


# -- several stores ------------------------------------------------------------------------------------------


def halves(*, second: int | None = 1, source: int = 1) -> Move:
    """A tile leaves in two stores of half its rows. second: which half the second store writes, None for no store."""

    def move(A: Tensor, C: Tensor) -> None:
        rows, columns = tiles(A)
        m, n = block_id((rows, columns))
        for part, to in ((0, 0), (source, second)):
            held = load(A.tile((ROWS // 2, COLUMNS), (2 * m + part, n)), HALF, edge=0)
            if to is not None:
                copy(held, C.tile((ROWS // 2, COLUMNS), (2 * m + to, n)), edge=0)

    return move


def test_two_stores_make_one_tile() -> None:
    made = moved(halves(), threads=64)
    assert failing(made) == set()
    assert isinstance(verify(made, solver="z3").verdict, Proved)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "move",
    [halves(second=None), halves(second=0, source=0), halves(second=2, source=2), halves(source=0)],
    ids=["one half is left out", "one half twice", "half of the next tile", "the other half's elements"],
)
def test_two_stores_that_make_no_tile_are_not_proved(move: Move) -> None:
    made = moved(move, threads=64)
    assert "I4" in failing(made)
    assert isinstance(verify(made, solver="z3").verdict, Refuted)


def halves_in_a_loop(*, again: bool = False) -> Move:
    def move(A: Tensor, C: Tensor) -> None:
        rows, columns = tiles(A)
        (m,) = block_id((rows,))
        for n in loop(columns):
            for part in (0, 0 if again else 1):
                held = load(A.tile((ROWS // 2, COLUMNS), (2 * m + part, n)), HALF, edge=0)
                copy(held, C.tile((ROWS // 2, COLUMNS), (2 * m + part, n)), edge=0)

    return move


def test_several_stores_in_one_loop() -> None:
    assert isinstance(verify(moved(halves_in_a_loop(), threads=64), solver="z3").verdict, Proved)
    assert isinstance(verify(moved(halves_in_a_loop(again=True), threads=64), solver="z3").verdict, Refuted)


def test_stores_in_different_loops_are_unknown() -> None:
    def move(A: Tensor, C: Tensor) -> None:
        rows, columns = tiles(A)
        (m,) = block_id((rows,))
        for part in (0, 1):
            for n in loop(columns):
                held = load(A.tile((ROWS // 2, COLUMNS), (2 * m + part, n)), HALF, edge=0)
                copy(held, C.tile((ROWS // 2, COLUMNS), (2 * m + part, n)), edge=0)

    report = verify(moved(move, threads=64), solver="z3")
    assert isinstance(report.verdict, Unknown)
    assert "in different loops" in report.verdict.reason
