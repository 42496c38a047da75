"""Integers over a fragment as a part without tables plus one table, and which bounds a whole tile meets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Cmp, Cond, Index, Read, Symbol
from argus.core.proof.values.held.elements import bounds
from argus.core.proof.values.held.tables import Tables
from argus.core.values.expr import Choose, Element, Expr, choose, element, expr
from argus.core.walk import evaluate, mentions, symbols

SHAPE = 8, 16
THREADS, VALUES = np.indices(SHAPE)
BLOCK = Symbol("n", "loop", 0)
N = algebra.sym(BLOCK)
PLACES: dict[str, Callable[[Index], Index]] = {
    "a remainder": lambda at: algebra.mod(at, 16),
    "digits in another order": lambda at: algebra.add(
        algebra.mul(algebra.floordiv(at, 16), 16), algebra.mul(algebra.mod(at, 2), 8), algebra.mod(at, 8)
    ),
    "the lesser of two": lambda at: algebra.minimum(at, 9),
    "bits": lambda at: algebra.bit_xor(at, 5),
}


@pytest.mark.parametrize("name", PLACES)
def test_operations_on_tables_are_tables(name: str) -> None:
    tables = Tables()
    at = PLACES[name](tables.index(16 * THREADS + VALUES))
    root = choose(algebra.le(at, N), element("X", algebra.add(algebra.mul(N, 128), at)), expr(0))

    found = tables.over_tables(root)

    parts = [index for each in (root, found) for index in _indices(each)]
    assert len(parts) == 4
    for n in range(3):
        before, test, after, other = (evaluate(each, {**tables.known, BLOCK: n}) for each in parts)
        assert (np.broadcast_to(before, SHAPE) == np.broadcast_to(after, SHAPE)).all()
        assert (np.broadcast_to(test, SHAPE) == np.broadcast_to(other, SHAPE)).all()
    own = symbols(*_indices(found)) - {BLOCK}
    assert len(own) == 1, "what was made of the table is one table"


def _indices(root: Expr) -> tuple[Index, Index]:
    """The place of an element, and by how much the test before it is met."""
    assert isinstance(root, Choose)
    assert isinstance(root.test, Cmp)
    assert isinstance(root.then, Element)
    return root.then.at[0], algebra.sub(root.test.right, root.test.left)


def test_integers_in_memory_stay() -> None:
    tables = Tables()
    found = tables.over_tables(element("X", algebra.read("starts", [tables.index(VALUES)])))
    assert isinstance(found, Element)
    assert mentions(found.at[0], (Read,))


KEPT = {"a whole tile": (True, 127, False), "all but one": (True, 126, True), "single elements": (False, 127, True)}


@pytest.mark.parametrize("name", KEPT)
def test_a_bound_is_left_out_where_the_last_element_meets_it(name: str) -> None:
    """Of 128 places from n on, of which the one after so many is known to be inside."""
    tables = Tables()
    whole, inside, kept = KEPT[name]
    size = algebra.sym(Symbol("M", "size", 0))
    at = algebra.add(N, tables.index(16 * THREADS + VALUES))

    def holds(cond: Cond) -> bool:
        return cond is algebra.TRUE or cond is algebra.lt(algebra.add(N, inside), size)

    found = [*bounds(tables, [at], [size], holds, whole=whole)]
    assert [each for each in found if each is not algebra.TRUE] == ([algebra.lt(at, size)] if kept else [])
