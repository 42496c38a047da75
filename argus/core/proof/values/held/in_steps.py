"""Values of unrolled stores over a number that they share: where the rows of a tile are stored, over the row.

Rows y = F t + k of a tile t, for several k, hold values over t, in which t has multiples of a factor g of F. With
m = F / g, k = m q + b and u = g t + q, the coordinate is y = m u + b, and t occurs as g t = u - q alone. Rows of one b
then hold one value, where they held as many as the tile has rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import TypeVar, cast

from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Node, Sum, Sym, Symbol
from argus.core.proof.values.held.outputs import Stored
from argus.core.proof.values.held.terms import all_symbols
from argus.core.values.expr import Expr
from argus.core.values.rewriting import mapped, nodes, own_integers
from argus.core.walk import fold, rebuild, symbols, topological


@frozen
class Shared:
    """Cases that store one value: it, with what holds in all of them. names: coordinates by the row's number."""

    names: Mapping[Symbol, Index]
    case: Stored

    @property
    def rows(self) -> tuple[Symbol, ...]:
        """The numbers over which coordinates are given."""
        return tuple(frozenset[Symbol]().union(*map(symbols, self.names.values())))


def over_shared_rows(cases: Sequence[Stored], at: Sequence[Sym]) -> list[Shared]:
    """The cases, one for all that store the same where a row's number replaces its tile's; none if none are fewer."""
    found: dict[tuple[Expr, Sym | None, tuple[tuple[Symbol, Index], ...]], list[_OverRow]] = {}
    multiples = _multiples(cases, at)
    for case in cases:
        own = _over_row(case, at, multiples)
        found.setdefault((own.case.value, own.row, tuple(own.names.items())), []).append(own)
    if len(found) == len(cases):
        return []
    return [Shared(dict(names), Stored(value, _common(own, row))) for (value, row, names), own in found.items()]


@frozen
class _OverRow:
    """A case over the row that it stores, which is at least `least`, and its coordinate by that row."""

    case: Stored
    names: Mapping[Symbol, Index]
    row: Sym | None = None
    least: int = 0


def _common(cases: Sequence[_OverRow], row: Sym | None) -> tuple[Cond, ...]:
    common = common_conditions([each.case for each in cases])
    return common if row is None else (*common, algebra.le(min(each.least for each in cases), row))


def common_conditions(cases: Sequence[Stored]) -> tuple[Cond, ...]:
    """What holds in all cases: a comparison that they have with other constants with that of the weakest."""
    bounds = [{form[0]: form[1] for cond in case.given if (form := _bound(cond))} for case in cases]
    found: dict[Cond, None] = {}
    for cond in cases[0].given:
        form = _bound(cond)
        if all(cond in case.given for case in cases):
            found[cond] = None
        elif form and all(form[0] in each for each in bounds):
            weakest = max(each[form[0]] for each in bounds)
            found[algebra.le(0, algebra.linear(form[0], weakest))] = None
    return tuple(found)


def _bound(cond: Cond) -> tuple[tuple[tuple[Index, int], ...], int] | None:
    """The terms and the constant of a comparison: that their sum is at least 0."""
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return None
    return linear_terms(algebra.sub(cond.right, cond.left))


def _multiples(cases: Sequence[Stored], at: Sequence[Sym]) -> Mapping[tuple[Sym, Sym, int], int]:
    """Of coordinates y = F t + k, by (y, t, F): the largest factor of F by which all values have t multiplied."""
    found: dict[tuple[Sym, Sym, int], int] = {}
    for case in cases:
        for y, tile, factor, _ in _rows(case.given, at):
            known = found.get((y, tile, factor), factor)
            found[y, tile, factor] = gcd(known, *_factors(_places(case.value), tile))
    return found


def _over_row(case: Stored, at: Sequence[Sym], multiples: Mapping[tuple[Sym, Sym, int], int]) -> _OverRow:
    """The case over the row that it stores, or as it is."""
    for y, tile, factor, first in _rows(case.given, at):
        own = multiples[y, tile, factor]
        if own in (1, factor):
            continue
        step = factor // own
        row = algebra.sym(Symbol(f"{y.symbol.name}~row", "fresh", 0))
        moved = algebra.sub(row, first // step)
        names = {y.symbol: algebra.add(algebra.mul(row, step), first % step)}

        def index(of: Index, tile: Sym = tile, own: int = own, moved: Index = moved) -> Index:
            return _with_multiples(of, tile, own, moved)

        def cond(of: Cond, tile: Sym = tile, own: int = own, moved: Index = moved) -> Cond:
            return _with_multiples(of, tile, own, moved)

        value, given = mapped(case.value, index, cond), map(cond, case.given)
        if tile.symbol not in all_symbols(value):
            kept = tuple(each for each in given if tile.symbol not in symbols(each))
            return _OverRow(Stored(value, kept), names, row, first // step)
    return _OverRow(case, {})


def _rows(given: Sequence[Cond], at: Sequence[Sym]) -> Iterator[tuple[Sym, Sym, int, int]]:
    """Coordinates y that are F t + k for a number t of tiles: (y, t, F, k)."""
    for cond in given:
        if not isinstance(cond, Cmp) or cond.op != "==":
            continue
        for difference in (algebra.sub(cond.left, cond.right), algebra.sub(cond.right, cond.left)):
            terms, constant = linear_terms(difference)
            mine = [atom for atom, factor in terms if atom in at and factor == -1]
            tiles = [(atom, factor) for atom, factor in terms if atom not in at and factor > 1]
            if len(terms) == 2 and mine and tiles and constant >= 0:
                (y,), ((tile, factor),) = mine, tiles
                if isinstance(y, Sym) and isinstance(tile, Sym) and _counts(tile.symbol):
                    yield y, tile, factor, constant


def _counts(symbol: Symbol) -> bool:
    """Whether it is the number of a block or an iteration, from 0 on or later: a row is then no less."""
    return symbol.kind in ("block", "loop") and symbol.low is not None and symbol.low >= 0


def _places(value: Expr) -> list[Node]:
    """All integers and conditions of a value."""
    return [each for node in nodes(value) for kind in own_integers(node) for each in kind]


def _factors(roots: Sequence[Node], tile: Sym) -> Iterator[int]:
    """The factors of a tile's number in expressions, 1 where it stands outside sums; not in comparisons of sums."""
    for node in topological(roots):
        if not isinstance(node, Cmp | Sum):
            for each in node.operands:
                yield from _factors_in(each, tile)
    for root in roots:
        yield from _factors_in(root, tile)


def _factors_in(of: Node, tile: Sym) -> Iterator[int]:
    if isinstance(of, Sym | Sum):
        yield from (factor for atom, factor in linear_terms(of)[0] if atom is tile)


NodeT = TypeVar("NodeT", Index, Cond)


def _with_multiples(root: NodeT, tile: Sym, factor: int, moved: Index) -> NodeT:
    """The expression with `factor` times the tile's number replaced, and what is compared multiplied by it first."""
    if tile.symbol not in symbols(root):
        return root

    def linear(of: Index, parts: Mapping[Node, Node], by: int = 1) -> Index:
        terms, constant = linear_terms(of)
        made: list[tuple[Index, int]] = []
        for atom, f in terms:
            if atom is tile and by * f % factor == 0:
                made.append((moved, by * f // factor))
            else:
                made.append((cast(Index, parts.get(atom, atom)), by * f))
        return algebra.linear(made, by * constant)

    done: dict[Node, Node] = {}

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Sum):
            return linear(node, done)
        if isinstance(node, Cmp) and tile in {
            atom for each in (node.left, node.right) for atom, _ in linear_terms(each)[0]
        }:
            left, right = (linear(each, done, factor) for each in (node.left, node.right))
            # Both are multiples, so that one is at most the other even if it is larger by less than the factor.
            return rebuild(node, [left, algebra.add(right, factor - 1) if node.op == "<=" else right])
        return rebuild(node, parts)

    return cast(NodeT, fold(root, visit, done))
