"""Tile orders are bijections and `span` partitions a range, checked exhaustively for many sizes."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest

from argus.core.algebra import sym
from argus.core.diagnostic import ArgusError
from argus.core.index import Symbol
from argus.core.walk import evaluate
from argus.language import Int, longest_first, span

NUMBER, COUNTS = Symbol("number", "loop", 0, None), tuple(Symbol(name, "size", 0, None) for name in "ijk")


def value(expression: Int, **names: int) -> int:
    known = {symbol: names[symbol.name] for symbol in (NUMBER, *COUNTS) if symbol.name in names}
    return int(cast(int, evaluate(expression.node, known)))


def tiles(sections: int, counts: tuple[int, int, int]) -> list[tuple[int, ...]]:
    order = longest_first(sections=sections)
    place = order(Int(sym(NUMBER)), tuple(Int(sym(symbol)) for symbol in COUNTS))
    known = dict(zip("ijk", counts, strict=True))
    total = counts[0] * counts[1] * counts[2]
    return [tuple(value(Int(axis.node), number=n, **known) for axis in map(as_int, place)) for n in range(total)]


def as_int(axis: object) -> Int:
    assert isinstance(axis, Int)
    return axis


@pytest.mark.parametrize(("sections", "counts"), [(1, (3, 2, 2)), (3, (4, 5, 2)), (8, (2, 3, 2)), (4, (5, 2, 4))])
def test_longest_first_is_descending_and_a_bijection(sections: int, counts: tuple[int, int, int]) -> None:
    found = tiles(sections, counts)
    assert sorted(found) == sorted(product(*map(range, counts)))
    pairs = counts[1] * counts[2]
    for first in range(0, pairs, sections):
        width = min(sections, pairs - first)
        section = found[first * counts[0] : (first + width) * counts[0]]
        assert {j + counts[1] * k for _, j, k in section} == set(range(first, first + width))
        rows = [i for i, _, _ in section]
        assert rows == sorted(rows, reverse=True)


def test_longest_first_takes_three_axes() -> None:
    with pytest.raises(ArgusError) as caught:
        longest_first(sections=2)(Int(sym(NUMBER)), (Int(sym(COUNTS[0])),))
    assert caught.value.diagnostic.code == "E106"


@pytest.mark.parametrize("parts", [1, 3, 4, 7])
@pytest.mark.parametrize("count", [0, 1, 3, 10, 28])
def test_spans_partition_the_range(parts: int, count: int) -> None:
    bounds = [span(part, parts, count) for part in range(parts)]
    numbers = [(value(low), value(high)) for low, high in bounds]
    assert [n for low, high in numbers for n in range(low, high)] == list(range(count))
    lengths = [high - low for low, high in numbers]
    assert max(lengths) - min(lengths) <= 1
