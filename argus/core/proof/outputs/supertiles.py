"""Supertiles (threadblock swizzling): bands of `h` rows of tiles, the last band lower, each taken column by column.

With X rows and Y columns of tiles, a number b in [0, X Y) has
    q = b // (h Y)          its band
    g = min(h, X - h q)     the band's rows
    r = b - h q Y           its number in the band
    column r // g, row h q + r % g, or h q + b % g instead.
Lemma. For X, Y, h >= 1 this is one to one onto [0, X) x [0, Y), and h q < X. Proof: h q Y <= b < X Y gives h q < X, so
g >= 1. Where g = h, r < h Y since r = b mod h Y; else X = h q + g and r = b - h q Y < g Y: so column < Y in both. The
row is below h q + g <= X. Given a row m and a column n, q = m // h is the only band with h q <= m < h q + g, and
r = g n + m - h q < g Y the only number in it; so b = h q Y + r is the only one, and b < X Y since h q + g <= X. With
b % g in place of r % g this holds too: b - r is the same for a whole band, so each column has the same g rows, begun at
another of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cond, Const, Index, Node, Symbol
from argus.core.layout.symbolic.polynomial import exact_quotient
from argus.core.walk import topological


@frozen(eq=False)
class Supertiles:
    """The terms of a supertiled block number.

    block: the number. rows, columns: counts of tiles. divisor: h * columns. start: the band's first row. high: the
    band's number of rows. column, row: the tile's coordinates.
    """

    block: Symbol
    rows: Index
    columns: Index
    divisor: Index
    start: Index
    high: Index
    column: Index
    row: Index

    @property
    def facts(self) -> tuple[tuple[Cond, tuple[Index, ...]], ...]:
        """The lemma's facts about a number below the count, each with the divisors that must be positive for it."""
        return (
            (algebra.lt(self.start, self.rows), (self.divisor,)),
            (algebra.all_of((algebra.le(0, self.column), algebra.lt(self.column, self.columns))), self._all),
            (algebra.all_of((algebra.le(0, self.row), algebra.lt(self.row, self.rows))), self._all),
        )

    @property
    def _all(self) -> tuple[Index, ...]:
        return self.divisor, self.high


def supertiles(block: Symbol, count: Index, roots: Sequence[Node]) -> Supertiles | None:
    """The supertiles that expressions over a block number use; None if they use none."""
    if not isinstance(count, Bin) or count.op != "*":
        return None
    own = algebra.sym(block)
    for node in topological(roots):
        if isinstance(node, Bin) and node.op == "//" and node.left is own:
            for rows, columns in factor_pairs(count):
                height = multiple_of(node.right, columns)
                if height is not None:
                    return _made(block, rows, columns, node, height, roots)
    return None


def factor_pairs(count: Index) -> Iterator[tuple[Index, Index]]:
    """Every split of a product into one factor and the product of the others, in both orders."""
    factors = factors_of(count)
    for place, factor in enumerate(factors):
        rest = product_of(factors[:place] + factors[place + 1 :])
        yield from ((factor, rest), (rest, factor))


def factors_of(product: Index) -> list[Index]:
    if isinstance(product, Bin) and product.op == "*":
        return [*factors_of(product.left), *factors_of(product.right)]
    return [product]


def product_of(factors: Sequence[Index]) -> Index:
    found: Index = algebra.const(1)
    for factor in factors:
        found = algebra.mul(found, factor)
    return found


def without_factors(count: Index, divisor: Index) -> Index | None:
    """The product of the factors of a count without those of a divisor; None if it is no multiple of the divisor."""
    rest = factors_of(count)
    for factor in factors_of(divisor):
        if factor not in rest:
            return exact_quotient(count, divisor)
        rest.remove(factor)
    return product_of(rest)


def multiple_of(divisor: Index, of: Index) -> int | None:
    """h > 0 if a divisor is h times the index; else None."""
    terms, constant = linear_terms(divisor)
    whole = len(terms) == 1 and constant == 0 and terms[0][0] is of and terms[0][1] > 0
    return terms[0][1] if whole else None


def _made(block: Symbol, rows: Index, columns: Index, band: Bin, height: int, roots: Sequence[Node]) -> Supertiles:
    own, start = algebra.sym(block), algebra.mul(band, height)
    high = algebra.minimum(height, algebra.sub(rows, start))
    number = algebra.sub(own, algebra.mul(start, columns))
    column = algebra.floordiv(number, high)
    turn = algebra.floordiv(own, high)
    turned = any(node is turn for node in topological(roots))
    in_band = algebra.sub(own, algebra.mul(turn, high)) if turned else algebra.sub(number, algebra.mul(column, high))
    return Supertiles(block, rows, columns, band.right, start, high, column, algebra.add(start, in_band))


def without_row(base: Index, found: Supertiles) -> tuple[int, Index]:
    """(f, rest) with base = f * row + rest, where the block number itself occurs only in the row."""
    own = algebra.sym(found.block)
    factor = next((factor for atom, factor in linear_terms(base)[0] if atom is own), 0)
    return factor, algebra.sub(base, algebra.mul(found.row, factor))


def supertile_lemmas(
    blocks: Sequence[tuple[Symbol, Index]], roots: Sequence[Node]
) -> Iterator[tuple[Cond, tuple[Index, ...]]]:
    """The lemma's facts for every grid coordinate that the expressions use as a supertile number."""
    for block, count in blocks:
        found = supertiles(block, count, roots)
        if found is not None and not isinstance(found.divisor, Const):
            yield from found.facts
