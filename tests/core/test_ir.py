"""Walks and rewrites of statements: nothing is forgotten, nothing else is changed."""

from __future__ import annotations

import pytest

from argus.core.algebra import add, const, sym
from argus.core.check import expressions, views
from argus.core.index import Symbol
from argus.core.ir import Alloc, For, Stmt, bodies, static, trips, walk, whole, with_bodies
from argus.core.ir.pretty import pretty
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.walk import symbols
from argus.kernels.gemm import gemm
from tests.conftest import Golden
from tests.core.every_statement import BY, STATEMENTS, TILE, K, S
from tests.core.texts import text_of

OTHER = Symbol("other", "size", 0, 100)
NAMES = [f"{number}-{type(stmt).__name__}" for number, stmt in enumerate(STATEMENTS)]


def below(stmt: Stmt) -> frozenset[Symbol]:
    return symbols(*(part for inner in walk((stmt,)) for part in expressions(inner)))


@pytest.mark.parametrize("stmt", STATEMENTS, ids=NAMES)
def test_bodies_round_trip(stmt: Stmt) -> None:
    assert text_of(with_bodies(stmt, bodies(stmt))) == text_of(stmt)
    emptied = with_bodies(stmt, tuple(() for _ in bodies(stmt)))
    assert list(walk((emptied,))) == [emptied]


@pytest.mark.parametrize("stmt", STATEMENTS, ids=NAMES)
def test_symbols_are_replaced_everywhere_and_back(stmt: Stmt) -> None:
    there = rewrite_stmt(stmt, {S: sym(OTHER)})
    assert S not in below(there)
    assert (OTHER in below(there)) == (S in below(stmt))
    assert text_of(rewrite_stmt(there, {OTHER: sym(S)})) == text_of(stmt)
    assert text_of(rewrite_stmt(stmt, {})) == text_of(stmt)


@pytest.mark.parametrize("stmt", STATEMENTS, ids=NAMES)
def test_the_text_names_each_symbol(stmt: Stmt) -> None:
    text = text_of(stmt)
    assert all(symbol.name in text for symbol in below(stmt))
    assert all(view.buffer.name in text for view in views(stmt))


def test_walk_is_in_program_order() -> None:
    order = [type(stmt).__name__ for stmt in walk(STATEMENTS[-14:-10])]
    assert order[0] == type(STATEMENTS[-14]).__name__
    assert len(list(walk(STATEMENTS))) == len(STATEMENTS) + 6


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 7, 1), (0, 7, 2), (3, 3, 1), (5, 2, 1), (6, -1, -1), (6, -1, -4), (0, 5, -1)]
)
def test_trips(start: int, stop: int, step: int) -> None:
    loop = For(K, const(start), const(stop), step, ())
    assert trips(loop) is const(len(range(start, stop, step)))


def test_static_extents() -> None:
    assert static(const(4)) == 4
    with pytest.raises(ValueError, match="symbolic"):
        static(add(sym(S), 1))


def test_statements_compare_by_identity() -> None:
    assert Alloc(TILE) != Alloc(TILE)
    assert whole(TILE).buffer.layout == BY


def test_text_of_the_shipped_gemm(golden: Golden) -> None:
    golden(pretty(gemm.trace("cdna3")))


def test_the_text_with_places_differs_by_the_places_alone() -> None:
    made = gemm.trace("cdna3")
    plain, placed = (pretty(made, spans=spans).splitlines() for spans in (False, True))
    assert [line.partition("  # ")[0] for line in placed] == plain
    places = ("gemm", "cdna3", "contraction")
    assert sum(any(f"  # {name}.py:" in line for name in places) for line in placed) == len(list(walk(made.body)))
    assert pretty(gemm.trace("cdna3")) == "\n".join([*plain, ""])
