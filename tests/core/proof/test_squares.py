"""Tiles along a curve: the formula that the lemma speaks of, and what is looked at of the curve itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from argus.core import algebra, hilbert_order
from argus.core.index import Symbol
from argus.core.proof.sync.roles import hilbert_squares as squares
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.core.walk import evaluate
from argus.kernels.gemm import gemm
from argus.kernels.schedules.hopper import Hopper
from argus.verifier.kernel import verify

NUMBER, ROWS, COLUMNS = Symbol("t", "block", 0, None), Symbol("X", "size", 0, None), Symbol("Y", "size", 0, None)


def places(rows: int, columns: int, side: int) -> list[tuple[int, int]]:
    found = hilbert_order.hilbert_tile(algebra.sym(NUMBER), algebra.sym(ROWS), algebra.sym(COLUMNS), side)
    env = [{NUMBER: number, ROWS: rows, COLUMNS: columns} for number in range(rows * columns)]
    return [(int(str(evaluate(found.row, each))), int(str(evaluate(found.column, each)))) for each in env]


@pytest.mark.parametrize("side", hilbert_order.SIDES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 40), (16, 16), (21, 33), (34, 5), (32, 18)])
def test_every_tile_is_taken_once(rows: int, columns: int, side: int) -> None:
    assert sorted(places(rows, columns, side)) == [(i, j) for i in range(rows) for j in range(columns)]


@pytest.mark.parametrize("side", hilbert_order.SIDES)
def test_tiles_of_squares_side_by_side_are_neighbours(side: int) -> None:
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(places(side, 3 * side, side))]

    assert set(steps) == {1}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A curve that goes through the tiles of a diagonal alone."""
    monkeypatch.setattr(hilbert_order, "_ROWS", vars(hilbert_order)["_COLUMNS"])
    for cached in (squares.fills, hilbert_order.hilbert_tile):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (squares.fills, hilbert_order.hilbert_tile):
        cached.cache_clear()


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("side", hilbert_order.SIDES)
def test_a_curve_through_some_tiles_alone_fills_no_square(side: int) -> None:
    assert not squares.fills(side)


@pytest.mark.nightly
@pytest.mark.usefixtures("broken")
def test_a_kernel_along_a_broken_curve_is_proved_only_if_nobody_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gemm.instance(Hopper(bn=32, stages=2, curve=4), "broken")

    assert not isinstance(verify(kernel, solver="z3", budget=Budget.about(2)).verdict, Proved)

    def yes(_: int) -> bool:
        return True

    monkeypatch.setattr(squares, "fills", yes)

    assert isinstance(verify(kernel, solver="z3").verdict, Proved)
