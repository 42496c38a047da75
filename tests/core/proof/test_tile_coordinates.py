"""Coordinates of tiles as symbols: one to one to a tile's number, with the same elements, or not named."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import Copy, For, Kernel, walk
from argus.core.ir.rewrite import NodeMap
from argus.core.proof.sync.roles.tile_coordinates import (
    Coordinates,
    by_coordinates,
    coordinate_obligations,
    with_coordinates,
)
from argus.core.walk import evaluate, symbols
from argus.language import (
    Order,
    Tensor,
    block_id,
    by_columns,
    by_rows,
    ceil_div,
    copy,
    f32,
    kernel,
    longest_first,
    sm_90a,
    spread,
    zeros,
)

BY = spread((4, 8), threads=32, vector=1)
SIZES = [dict(zip("LMN", each, strict=True)) for each in product((1, 3), (1, 6, 17), (1, 9, 24))]


def stored(order: Order) -> Kernel:
    """A kernel that stores a tile for each number, at its coordinates: of two axes, or three."""

    @kernel(target=sm_90a, threads=32)
    def store(X: Tensor["L M N", f32]) -> None:
        L, M, N = X.shape
        rows, columns = ceil_div(M, 4), ceil_div(N, 8)
        (number,) = block_id((rows * columns * L,))
        i, j, l = order(number, (rows, columns, L))  # noqa: E741 reason: the last axis
        copy(zeros(f32, BY), X[l].tile((4, 8), (i, j)), edge=0)

    return store.trace()


def value(of: Index, at: dict[Symbol, int]) -> int:
    return int(cast("int", evaluate(of, at)))


def symbols_of(step: Coordinates, number: int, sizes: dict[Symbol, int]) -> dict[Symbol, int]:
    """What the step's symbols are for a number."""
    if not isinstance(step.names, NodeMap):
        ((distance, count),) = step.counts
        return {distance: value(count, sizes) - 1 - number}
    wanted = {algebra.sym(symbol): symbol for symbol, _ in step.counts}
    at = {**sizes, step.number: number}
    return {wanted[made]: value(cast(Index, node), at) for node, made in step.names.names.items() if made in wanted}


ORDERS: dict[str, Order] = {
    "rows": by_rows,
    "columns": by_columns,
    "sections of the longest": longest_first(sections=3),
}


@pytest.mark.parametrize("name", ORDERS)
def test_symbols_are_one_to_one_to_the_number_and_tiles_stay_where_they_are(name: str) -> None:
    before = stored(ORDERS[name])
    (number,) = before.blocks
    after, steps = with_coordinates(before, number)
    (there,), (here,) = ([stmt.target.at for stmt in walk(k.body) if isinstance(stmt, Copy)] for k in (before, after))
    by_name = {each.name: each for each in symbols(*before.parameters[0].shape)}

    assert len(after.blocks) == 3
    assert number not in after.blocks
    for sizes in ({by_name[axis]: extent for axis, extent in each.items()} for each in SIZES):
        found: list[tuple[int, ...]] = []
        for block in range(value(before.grid[0], sizes)):
            known = {**sizes, number: block, before.thread: 5}
            for step in steps:
                known |= symbols_of(step, known[step.number], sizes)
            found.append(tuple(known[each] for each in after.blocks))
            for one, two in zip(there, here, strict=True):
                named = by_coordinates(one, steps)
                assert number not in symbols(named)
                assert evaluate(one, known, (1, 2)) == evaluate(two, known, (1, 2)) == evaluate(named, known, (1, 2))
        assert sorted(found) == list(product(*(range(value(count, sizes)) for count in after.grid)))


OTHERWISE: dict[str, Order] = {
    "by planes": lambda b, n: (b % n[0], b // n[0] % n[1], b // (n[0] * n[1])),
    "a quotient by more than the remainder": lambda b, n: (b % n[0], b // (n[0] + 1) % n[1], b // (n[0] * n[1])),
    "the next number too": lambda b, n: (b % n[0], (b + 1) // n[0] % n[1], b // (n[0] * n[1])),
    "fewer rows than there are": lambda b, n: (b % (n[0] + 1), b // (n[0] + 1) % n[1], b // (n[0] * n[1])),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_number_that_is_used_otherwise_stays(name: str) -> None:
    before = stored(OTHERWISE[name])
    after, steps = with_coordinates(before, before.blocks[0])

    assert after is before
    assert not steps


def test_what_was_computed_is_asked_to_fit_32_bits_and_its_divisors_to_be_positive() -> None:
    before = stored(longest_first(sections=3))
    _, steps = with_coordinates(before, before.blocks[0])
    loop = For(Symbol("n", "loop", 0), algebra.const(0), algebra.const(1), 1, ())
    asked = list(coordinate_obligations(before, steps, loop))

    assert {each.invariant for each in asked} == {"I28"}
    assert sum("divisor" in each.what for each in asked) == 2
    assert any(each.goal is not algebra.TRUE for each in asked if "32 bits" in each.what)
