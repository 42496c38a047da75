"""Tables as layouts of coordinates: what is found equals the table, and what has no form is not found."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.values.held.table_forms import is_function, layout_in
from argus.core.proof.values.held.tables import affine_in
from argus.core.walk import IntArray, evaluate

EXTENTS = 32, 16
ROWS, COLUMNS = np.indices(EXTENTS).reshape(2, 64, 8)
NAMES = algebra.coord(0), algebra.coord(1)
Places = Callable[[IntArray, IntArray], IntArray]

LAYOUTS: dict[str, Places] = {
    "affine": lambda r, c: r * 16 + c,
    "digits in another order": lambda r, _: r % 4 * 8 + r // 4,
    "digits of both": lambda r, c: r // 4 % 2 * 16 + r % 4 * 4 + r // 8 + c // 8 * 64 + c % 8 * 2,
    "rows again and again": lambda r, _: r % 8,
    "turned": lambda r, c: (r + 3) % 32 * 16 + c,
    "both turned": lambda r, c: (r + 3) % 32 * 16 + (c + 5) % 16,
    "groups of turned rows": lambda r, c: r // 8 * 8 + (r + 3) % 8 + c * 32,
    "turned groups": lambda r, _: (r // 8 + 1) % 4 * 8 + r % 8,
    "turned from the end": lambda r, _: (40 - r) % 32,
    "turned digits": lambda r, _: (r + 3) % 32 % 4 * 8 + (r + 3) % 32 // 4,
    "an incomplete digit": lambda r, _: r % 12 + r // 12 * 100,
    "swizzled": lambda r, c: r * 16 + (c ^ (r % 8)),
    "swizzled by groups": lambda r, c: (c // 4 ^ r % 4) * 4 + c % 4,
}
FORMLESS: dict[str, Places] = {
    "squares": lambda r, _: r * (r + 1) // 2 % 32,
    "diagonals": lambda r, c: (r + c) % 32,
    "products": lambda r, c: r * c,
    "from some element on": lambda r, c: (r * 16 + c >= 40).astype(np.int64),
}


def equals(found: Index, table: IntArray, others: Sequence[IntArray]) -> bool:
    return bool((np.asarray(evaluate(found, {}, others)) == table).all())


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_of_coordinates_is_found(name: str) -> None:
    table = LAYOUTS[name](ROWS, COLUMNS)

    found = layout_in(table, [ROWS, COLUMNS], NAMES)

    assert found is not None
    assert equals(found, table, [ROWS, COLUMNS])


def test_a_turned_layout_is_as_short_as_it_is_written() -> None:
    assert layout_in((ROWS + 3) % 32, [ROWS, COLUMNS], NAMES) is algebra.mod(algebra.add(NAMES[0], 3), 32)


@pytest.mark.parametrize("name", FORMLESS)
def test_a_function_without_such_a_form_has_none(name: str) -> None:
    table = FORMLESS[name](ROWS, COLUMNS)

    assert is_function(table, [ROWS, COLUMNS])
    assert layout_in(table, [ROWS, COLUMNS], NAMES) is None
    assert affine_in(table, [ROWS, COLUMNS], NAMES) is None


def test_a_table_that_is_no_function_of_coordinates_has_no_form() -> None:
    table = np.arange(64)[:, None] + np.zeros((1, 8), np.int64)
    rows = table // 2

    assert not is_function(table, [rows])
    assert layout_in(table, [rows], NAMES[:1]) is None
    assert affine_in(table, [rows], NAMES[:1]) is None


def test_elements_that_do_not_matter_need_not_be_equal() -> None:
    turned = (ROWS + 3) % 32
    need = COLUMNS < 8

    found = layout_in(np.where(need, turned, 99), [ROWS, COLUMNS], NAMES, need)

    assert found is algebra.mod(algebra.add(NAMES[0], 3), 32)


def test_random_layouts_are_found_and_a_changed_element_is_seen() -> None:
    drawn = random.Random(0)  # noqa: S311 reason: a seed makes failures repeatable
    for _ in range(100):
        table = _drawn(drawn, ROWS, 32) + _drawn(drawn, COLUMNS, 16)
        found = layout_in(table, [ROWS, COLUMNS], NAMES)
        assert found is not None
        assert equals(found, table, [ROWS, COLUMNS])

        table[drawn.randrange(64), drawn.randrange(8)] += drawn.choice((-1, 1, 8))
        found = layout_in(table, [ROWS, COLUMNS], NAMES)
        assert found is None or equals(found, table, [ROWS, COLUMNS])


def _drawn(drawn: random.Random, at: IntArray, extent: int) -> IntArray:
    """A layout of digits that may be turned, with strides in any order."""
    at = (at + drawn.randrange(extent)) % extent
    found, size = np.zeros_like(at), 1
    while size < extent:
        digit = drawn.choice([each for each in (2, 4, 8) if size * each <= extent])
        found = found + at // size % digit * drawn.choice((0, 1, 2, 3, 16, 40))
        size *= digit
    return found
