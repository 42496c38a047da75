"""A query with numbers for the sizes that it multiplies: a linear one, whose models are models of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.algebra import FALSE, TRUE, const
from argus.core.index import Cond, Index, Symbol
from argus.core.walk import substitute, symbols
from argus.solvers.session.slicing import multiplied, multiplies
from argus.solvers.session.witnesses import nearest_to_zero


def instance(
    assertions: Sequence[Cond], model: Mapping[Symbol, int], *, whatever: bool = False
) -> tuple[tuple[Cond, ...], dict[Symbol, int]] | None:
    """The assertions where each size that occurs in a product is the model's number, and those numbers.

    whatever: where products remain, each symbol in one of them is the model's number too. None where products remain,
    or where some assertion fails whatever the other symbols are.
    """
    numbers: dict[Symbol, int] = {}
    made = tuple(assertions)
    for pinned in (_sizes, _all) if whatever else (_sizes,):
        found = {each for node in multiplied(made) for each in symbols(node) if pinned(each)}
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
