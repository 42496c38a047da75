"""Linear instances of a query: numbers replace the sizes that occur in products; its models are models of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.algebra import FALSE, TRUE, const
from argus.core.index import Cond, Index, Symbol
from argus.core.walk import substitute, symbols
from argus.solvers.session.slicing import multiplies, products_in
from argus.solvers.session.witnesses import nearest_to_zero


def linear_instance(
    assertions: Sequence[Cond], model: Mapping[Symbol, int], *, all_symbols: bool = False
) -> tuple[tuple[Cond, ...], dict[Symbol, int]] | None:
    """The assertions with the model's number for each size that occurs in a product, and those numbers.

    all_symbols: where products remain, also replace every other symbol in one of them. None where products remain even
    so, or where an assertion is then false for every value of the other symbols.
    """
    numbers: dict[Symbol, int] = {}
    made = tuple(assertions)
    for pinned in (_sizes, _all) if all_symbols else (_sizes,):
        found = {each for node in products_in(made) for each in symbols(node) if pinned(each)}
        numbers |= {each: model.get(each, nearest_to_zero(each)) for each in found}
        values: dict[Symbol, Index] = {each: const(numbers[each]) for each in found}
        try:
            made = tuple(dict.fromkeys(substitute(each, values) for each in made))
        except ZeroDivisionError:
            return None
        if FALSE in made:
            return None
    if any(map(multiplies, made)):
        return None
    return tuple(each for each in made if each is not TRUE), numbers


def _sizes(symbol: Symbol) -> bool:
    return symbol.kind == "size"


def _all(_: Symbol) -> bool:
    return True
