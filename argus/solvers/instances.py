"""A query with numbers for the sizes that it multiplies: a linear one, whose models are models of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.algebra import FALSE, TRUE, const
from argus.core.index import Cond, Index, Symbol
from argus.core.walk import substitute, symbols
from argus.solvers.slicing import multiplied, multiplies
from argus.solvers.witnesses import nearest_to_zero


def instance(
    assertions: Sequence[Cond], model: Mapping[Symbol, int]
) -> tuple[tuple[Cond, ...], dict[Symbol, int]] | None:
    """The assertions where each size that occurs in a product is the model's number, and those numbers.

    None where products remain, or where some assertion fails whatever the other symbols are.
    """
    sizes = {each for node in multiplied(assertions) for each in symbols(node) if each.kind == "size"}
    numbers = {each: model.get(each, nearest_to_zero(each)) for each in sizes}
    values: dict[Symbol, Index] = {each: const(number) for each, number in numbers.items()}
    try:
        made = tuple(dict.fromkeys(substitute(each, values) for each in assertions))
    except ZeroDivisionError:
        return None
    if FALSE in made or any(map(multiplies, made)):
        return None
    return tuple(each for each in made if each is not TRUE), numbers
